/* SPDX-License-Identifier: MIT */
#include "persist/tree_trust.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/info.h"
#include "base/mem.h"
#include "persist/text_queue.h"
#include "persist/tree.h"
#include "persist/tree_watch.h"

#define TICK_MS     100
#define LATE_US     200000  /* a word that has not come by then; it comes in the time of an answer */
#define WRITTEN_MAX 4000000 /* bytes of ids written during a load; beyond that nothing of it is trusted */

struct expected {
	uint64_t word;
	int64_t since_us;
	tree_trust_cb fn;
	void *arg;
	TAILQ_ENTRY(expected) link;
};

struct tree_trust {
	struct tree *tree;
	struct tree_watch *watch;
	struct event *tick;
	void (*tried)(void *arg);
	void *tried_arg;
	bool up;
	bool loaded;     /* as the picture was loaded it is trusted */
	bool loading;    /* a picture is being loaded that will be */
	uint32_t period; /* dept->trusted of what was found in it. It begins when the watch comes up, or
			    everything was written */
	uint64_t news, words;
	struct text_queue written; /* since the loading began */
	TAILQ_HEAD(, expected) expected;
	/* for INFO */
	uint64_t losses;
};

/* ---- words ---- */

static void tell(struct tree_trust *t, struct expected *e, const struct bytes *text)
{
	TAILQ_REMOVE(&t->expected, e, link);
	e->fn(text, e->arg);
	free(e);
}

static void tell_none(struct tree_trust *t)
{
	struct expected *e;

	while ((e = TAILQ_FIRST(&t->expected)) != NULL)
		tell(t, e, NULL);
}

static void on_word(struct bytes word, void *arg)
{
	struct tree_trust *t = arg;
	struct expected *e;
	int64_t n;

	if (!bytes_to_i64(bytes_cut(&word, '|'), &n))
		return;
	TAILQ_FOREACH (e, &t->expected, link) {
		if (e->word == (uint64_t)n) {
			tell(t, e, &word);
			return;
		}
	}
}

uint64_t tree_trust_expect(struct tree_trust *t, tree_trust_cb fn, void *arg)
{
	struct expected *e = xcalloc(1, sizeof(*e));

	*e = (struct expected){.word = ++t->words, .since_us = clock_mono_us(), .fn = fn, .arg = arg};
	TAILQ_INSERT_TAIL(&t->expected, e, link);
	return e->word;
}

void tree_trust_forget(struct tree_trust *t, uint64_t word)
{
	struct expected *e;

	TAILQ_FOREACH (e, &t->expected, link) {
		if (e->word != word)
			continue;
		TAILQ_REMOVE(&t->expected, e, link);
		free(e);
		return;
	}
}

const char *tree_trust_channel(const struct tree_trust *t)
{
	return tree_watch_channel(t->watch);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct tree_trust *t = arg;
	const struct expected *e = TAILQ_FIRST(&t->expected);

	(void)fd;
	(void)what;
	if (e != NULL && clock_mono_us() - e->since_us > LATE_US) {
		tree_watch_doubt(t->watch);
		tell_none(t);
	}
}

/* ---- news ---- */

static void begin_period(struct tree_trust *t)
{
	t->period++;
	t->news++;
	t->loaded = t->loading = false;
}

static void on_tried(void *arg)
{
	struct tree_trust *t = arg;

	t->tried(t->tried_arg);
}

static void on_up(void *arg)
{
	struct tree_trust *t = arg;

	t->up = true;
	begin_period(t);
}

static void on_down(void *arg)
{
	struct tree_trust *t = arg;

	t->up = false;
	t->losses++;
	begin_period(t);
	tell_none(t);
}

static void on_written(struct bytes id, void *arg)
{
	struct tree_trust *t = arg;
	struct dept *d = tree_find(t->tree, id);

	t->news++;
	if (id.n == 0)
		begin_period(t);
	if (d != NULL)
		d->trusted = TRUST_NOT;
	if (t->loading && t->written.text.len < WRITTEN_MAX)
		text_push(&t->written, id);
	else
		t->loading = false;
}

/* All that was read has come when a load has ended, so that what was written before and after its reading is
 * found alike. */
static void on_renewal(bool done, void *arg)
{
	struct tree_trust *t = arg;
	struct bytes id;

	if (!done) {
		text_release(&t->written);
		t->loading = t->up;
		return;
	}
	t->loaded = t->loading;
	t->loading = false;
	while (text_pop(&t->written, &id)) {
		struct dept *d = tree_find(t->tree, id);
		if (d != NULL)
			d->trusted = TRUST_NOT;
	}
	text_release(&t->written);
}

uint64_t tree_trust_news(const struct tree_trust *t)
{
	return t->news;
}

static bool is_same(const struct dept *d, const struct dept_fields *read)
{
	return bytes_eq(read->parent, bytes_of(d->parent != NULL ? d->parent->id : "")) &&
	       bytes_eq(read->name, bytes_of(d->name)) && bytes_eq(read->manager, bytes_of(d->manager)) &&
	       read->version == d->version && read->retired == d->retired;
}

void tree_trust_found(struct tree_trust *t, const struct dept_fields *read, int64_t below)
{
	struct dept *d = t->up ? tree_find(t->tree, read->id) : NULL;

	if (d != NULL && below == d->below && is_same(d, read))
		d->trusted = t->period;
}

int tree_trust_line(const struct tree_trust *t, const struct dept *d)
{
	int above = -1;

	for (; d != NULL && t->up; d = d->parent, above++) {
		if (d->trusted != t->period && !(d->trusted == TRUST_LOADED && t->loaded))
			return -1;
	}
	return above;
}

/* ---- life ---- */

static void write_info(struct buf *out, void *arg)
{
	const struct tree_trust *t = arg;

	buf_addf(out, "watch_up:%d\r\nwatch_losses:%llu\r\nwatch_news:%llu\r\nwatch_loaded:%d\r\n", t->up,
		(unsigned long long)t->losses, (unsigned long long)t->news, t->loaded);
}

struct tree_trust *tree_trust_new(struct event_base *base, const struct config *config, struct tree *tree)
{
	static const struct tree_watch_events events = {
		.tried = on_tried, .up = on_up, .down = on_down, .written = on_written, .word = on_word};
	struct tree_trust *t = xcalloc(1, sizeof(*t));
	struct timeval every = {0, TICK_MS * 1000};

	t->tree = tree;
	t->period = TRUST_FIRST;
	TAILQ_INIT(&t->expected);
	t->watch = tree_watch_new(base, config, &events, t);
	t->tick = event_new(base, -1, EV_PERSIST, on_tick, t);
	event_add(t->tick, &every);
	tree_on_renewal(tree, on_renewal, t);
	info_register("Tree watch", write_info, t);
	return t;
}

void tree_trust_free(struct tree_trust *t)
{
	if (t == NULL)
		return;
	tree_trust_stop(t);
	event_free(t->tick);
	text_release(&t->written);
	free(t);
}

void tree_trust_start(struct tree_trust *t, void (*tried)(void *arg), void *arg)
{
	t->tried = tried;
	t->tried_arg = arg;
	tree_watch_start(t->watch);
}

void tree_trust_stop(struct tree_trust *t)
{
	tree_watch_free(t->watch); /* goes down, which tells what is expected */
	t->watch = NULL;
}
