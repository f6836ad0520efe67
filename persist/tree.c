/* SPDX-License-Identifier: MIT */
#include "persist/tree.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/forest.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/tree_follow.h"
#include "persist/tree_gone.h"
#include "persist/tree_journal.h"
#include "persist/tree_renew.h"

#define POLL_MS  500
#define SLICE    4000 /* small steps of long work before the loop turns */
#define SYNC_SEC 2
/* Journal entries of a read: fewer when applying them takes too long, as in very long lists of children. */
#define ENTRIES_MAX  1000
#define ENTRIES_MIN  10
#define APPLY_MAX_US 5000
/* Half of what the organisation's journal keeps: after a longer sleep of ours entries may be gone unseen. */
#define SLEEP_MAX_US (30 * INT64_C(1000000))
/* Between two loads for want of trust in the picture. */
#ifndef RELOAD_US /* tests don't wait so long */
#define RELOAD_US (10 * INT64_C(1000000))
#endif

enum tree_state {
	TREE_AWAY,     /* Redis is away, or reading it has failed: the timer begins again */
	TREE_ASKING,   /* whether the journal still has what follows on the picture */
	TREE_LOADING,  /* a new picture is being made; the one before, if any, stands still */
	TREE_FOLLOWING /* the journal is read on; a new picture may be being made, when this one is doubted */
};

static const char *const state_names[] = {"away", "asking", "loading", "following"};

struct waiter {
	struct stream_id last;
	int64_t deadline_us;
	void (*fn)(bool ok, void *arg);
	void *arg;
	TAILQ_ENTRY(waiter) link;
};

struct tree {
	struct event_base *base;
	struct redis *redis;
	void (*fn)(void *arg);
	void *arg;
	void (*on_renewal)(bool done, void *arg); /* may be NULL */
	void *renewal_arg;
	struct event *timer, *work, *late;
	enum tree_state state;

	struct forest *forest; /* the picture as of the journal's entry `at` */
	struct stream_id at;
	struct tree_gone *gone;
	struct tree_renew *renew; /* the next picture */
	struct forest *old;       /* one that is being freed */

	bool reading; /* of the journal */
	int entries;
	bool found;   /* while asking: the journal still has the entry of `at` */
	bool doubted; /* a record did not fit: the picture is to be made anew */
	uint64_t shapes;
	int64_t polled_us, load_us;

	TAILQ_HEAD(, waiter) waiters; /* by deadline */
	struct turn_task answer;

	/* for INFO */
	uint64_t loads, records, too_late;
	int64_t load_took_ms;
	size_t stray;
};

static void follow_on(struct tree *t);

static void set_state(struct tree *t, enum tree_state state)
{
	if (t->state != state)
		log_info("persist tree event=state from=%s to=%s departments=%lld", state_names[t->state],
			state_names[state], (long long)tree_count(t));
	t->state = state;
}

/* ---- looking ---- */

struct dept *tree_find(const struct tree *t, struct bytes id)
{
	return forest_find(t->forest, id);
}

int64_t tree_count(const struct tree *t)
{
	return forest_top(t->forest)->below;
}

struct dept *const *tree_roots(const struct tree *t, uint32_t *ret_count)
{
	const struct dept *top = forest_top(t->forest);

	*ret_count = top->child_count;
	return top->children;
}

struct dept *tree_child_after(const struct tree *t, const struct dept *parent, struct bytes id)
{
	return forest_child_after(parent != NULL ? parent : forest_top(t->forest), id);
}

struct dept *tree_next(const struct dept *top, const struct dept *at)
{
	if (at->child_count > 0)
		return at->children[0];
	while (at != top) {
		struct dept *sibling = forest_child_after(at->parent, bytes_of(at->id));
		if (sibling != NULL)
			return sibling;
		at = at->parent;
	}
	return NULL;
}

bool tree_loaded(const struct tree *t)
{
	return t->state == TREE_FOLLOWING;
}

bool tree_gone(const struct tree *t, struct bytes id, struct bytes *ret_path, struct bytes *ret_name)
{
	const struct dept *d = forest_find_taken_out(t->forest, id);

	if (d == NULL)
		return tree_gone_find(t->gone, id, ret_path, ret_name);
	*ret_path = tree_gone_path(t->gone, d);
	*ret_name = bytes_of(d->name);
	return true;
}

bool tree_is_at(const struct tree *t, struct bytes entry)
{
	struct stream_id id = {0};

	(void)!stream_id_parse(entry, &id); /* "" is before the first */
	return t->state == TREE_FOLLOWING && !t->doubted && stream_id_compare(t->at, id) == 0;
}

/* ---- waiting for the picture ---- */

static bool has_reached(const struct tree *t, struct stream_id last)
{
	return t->loads > 0 && stream_id_compare(t->at, last) >= 0;
}

static void answer(void *arg)
{
	struct tree *t = arg;
	int64_t now = clock_mono_us();

	for (struct waiter *w = TAILQ_FIRST(&t->waiters), *next; w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		bool reached = has_reached(t, w->last);
		if (!reached && now < w->deadline_us)
			continue;
		t->too_late += !reached;
		TAILQ_REMOVE(&t->waiters, w, link);
		w->fn(reached, w->arg);
		free(w);
	}
}

/* All wait equally long, so the first that came is the first to be told. */
static void set_late(struct tree *t)
{
	const struct waiter *first = TAILQ_FIRST(&t->waiters);

	if (first == NULL)
		return;
	int64_t us = first->deadline_us - clock_mono_us();
	struct timeval tv = {us > 0 ? us / 1000000 : 0, us > 0 ? us % 1000000 : 0};
	event_add(t->late, &tv);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	struct tree *t = arg;

	(void)fd;
	(void)what;
	answer(t);
	set_late(t);
}

void tree_sync(struct tree *t, struct bytes last, void (*fn)(bool ok, void *arg), void *arg)
{
	struct waiter *w = xcalloc(1, sizeof(*w));

	(void)!stream_id_parse(last, &w->last); /* "" leaves what everything has reached */
	w->deadline_us = clock_mono_us() + SYNC_SEC * INT64_C(1000000);
	w->fn = fn;
	w->arg = arg;
	TAILQ_INSERT_TAIL(&t->waiters, w, link);
	if (has_reached(t, w->last))
		turn_schedule(&t->answer);
	else
		follow_on(t);
	if (!event_pending(t->late, EV_TIMEOUT, NULL))
		set_late(t);
}

/* ---- following ---- */

static void set_work(struct tree *t)
{
	struct timeval now = {0, 0};

	event_add(t->work, &now);
}

uint64_t tree_shape(const struct tree *t)
{
	return t->shapes;
}

static void changed(struct tree *t)
{
	if (!TAILQ_EMPTY(&t->waiters))
		turn_schedule(&t->answer);
	t->fn(t->arg);
}

static void on_record(struct bytes text, void *arg)
{
	struct tree *t = arg;
	struct tree_record r;

	if (!tree_record_parse(text, &r))
		return;
	t->records++;
	const char *doubt = tree_follow(t->forest, t->gone, &r);
	t->shapes += r.change == TREE_MOVE || r.change == TREE_LIFT || r.change == TREE_REMOVE;
	if (doubt == NULL)
		return;
	t->doubted = true;
	log_notice("persist tree event=doubt id=%.*s version=%lld reason=\"%s\"", (int)r.fields.id.n,
		r.fields.id.p, (long long)r.fields.version, doubt);
}

static void adapt(struct tree *t, int64_t took_us)
{
	if (took_us > APPLY_MAX_US)
		t->entries = t->entries / 2 > ENTRIES_MIN ? t->entries / 2 : ENTRIES_MIN;
	else if (took_us < APPLY_MAX_US / 4)
		t->entries = t->entries * 2 < ENTRIES_MAX ? t->entries * 2 : ENTRIES_MAX;
}

static void on_entries(const struct redisReply *reply, void *arg)
{
	struct tree *t = arg;
	int64_t begun = clock_mono_us();
	size_t i = 0, count = redis_count(reply), asked = (size_t)t->entries;

	t->reading = false;
	if (t->state != TREE_FOLLOWING || !redis_is_array(reply))
		return;
	while (i < count && forest_taken_out(t->forest) == NULL &&
		tree_journal_entry(reply, i, &t->at, on_record, t))
		i++;
	adapt(t, clock_mono_us() - begun);
	if (forest_taken_out(t->forest) != NULL)
		set_work(t);
	else if (count == asked)
		follow_on(t);
	if (count > 0)
		changed(t);
}

/* Not while a subtree is being dropped: its ids may come again. */
static void follow_on(struct tree *t)
{
	if (t->state == TREE_FOLLOWING && !t->reading && forest_taken_out(t->forest) == NULL)
		t->reading = tree_journal_after(t->redis, t->at, t->entries, on_entries, t);
}

/* ---- loading ---- */

/* Gives a forest to be freed in slices. */
static void discard(struct tree *t, struct forest *f)
{
	forest_free(t->old);
	t->old = f;
	set_work(t);
}

static void end_renewal(struct tree *t)
{
	struct stream_id at;

	if (t->renew != NULL)
		discard(t, tree_renew_end(t->renew, &at));
	t->renew = NULL;
}

static void give_up(struct tree *t)
{
	end_renewal(t);
	set_state(t, TREE_AWAY);
}

void tree_on_renewal(struct tree *t, void (*fn)(bool done, void *arg), void *arg)
{
	t->on_renewal = fn;
	t->renewal_arg = arg;
}

static void tell_renewal(struct tree *t, bool done)
{
	if (t->on_renewal != NULL)
		t->on_renewal(done, t->renewal_arg);
}

static void on_renewed(bool ok, void *arg)
{
	struct tree *t = arg;

	if (!ok && t->state == TREE_LOADING) {
		give_up(t);
		return;
	}
	if (!ok) {
		end_renewal(t);
		return;
	}
	discard(t, t->forest);
	t->stray = tree_renew_stray(t->renew);
	t->forest = tree_renew_end(t->renew, &t->at);
	t->shapes++;
	t->renew = NULL;
	t->doubted = false;
	t->loads++;
	t->load_took_ms = (clock_mono_us() - t->load_us) / 1000;
	set_state(t, TREE_FOLLOWING);
	tree_gone_read(t->gone);
	tell_renewal(t, true);
	follow_on(t);
	changed(t);
}

static void renew(struct tree *t)
{
	tell_renewal(t, false);
	t->load_us = clock_mono_us();
	t->renew = tree_renew_new(t->base, t->redis, on_renewed, t);
}

static void load(struct tree *t)
{
	set_state(t, TREE_LOADING);
	renew(t);
}

/* ---- after a break ---- */

static void on_found(const struct redisReply *reply, void *arg)
{
	struct tree *t = arg;

	t->found = redis_count(reply) == 1;
}

/* The journal goes on from where we are when our last entry is still in it, or is the newest of all. */
static void on_last(const struct redisReply *reply, void *arg)
{
	struct tree *t = arg;
	struct stream_id last;

	if (t->state != TREE_ASKING || reply == NULL)
		return;
	if (stream_id_parse(redis_text(reply), &last) && stream_id_compare(last, t->at) == 0)
		t->found = true;
	if (!t->found) {
		load(t);
		return;
	}
	set_state(t, TREE_FOLLOWING);
	tree_gone_read(t->gone);
	follow_on(t);
	changed(t);
}

static void ask(struct tree *t)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	end_renewal(t);
	set_state(t, TREE_ASKING);
	redis_args_init(&a);
	redis_arg_str(&a, "GET");
	key_org(&key, "last");
	redis_arg_key(&a, &key);
	buf_release(&key);
	t->found = false;
	if (!tree_journal_from(t->redis, t->at, 1, on_found, t) ||
		redis_query(t->redis, &a, on_last, t) != REDIS_SENT)
		give_up(t);
}

static void begin(struct tree *t)
{
	if (t->loads > 0 && t->at.ms > 0 && !t->doubted)
		ask(t);
	else
		load(t);
}

/* ---- life ---- */

static void on_work(evutil_socket_t fd, short what, void *arg)
{
	struct tree *t = arg;
	int budget = SLICE;

	(void)fd;
	(void)what;
	if (forest_taken_out(t->forest) != NULL) {
		if (forest_drop(t->forest, &budget, tree_gone_last_words, t->gone))
			follow_on(t);
	} else if (t->old != NULL && forest_free_some(t->old, &budget)) {
		t->old = NULL;
	}
	if (forest_taken_out(t->forest) != NULL || t->old != NULL)
		set_work(t);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct tree *t = arg;
	int64_t now = clock_mono_us(), slept = now - t->polled_us;

	(void)fd;
	(void)what;
	t->polled_us = now;
	if (!redis_ready(t->redis))
		return;
	tree_gone_tick(t->gone);
	if (t->state == TREE_AWAY)
		begin(t);
	if (t->state != TREE_FOLLOWING || t->reading)
		return;
	if (slept > SLEEP_MAX_US) {
		ask(t);
		return;
	}
	if (t->doubted && t->renew == NULL && now - t->load_us >= RELOAD_US)
		renew(t);
	follow_on(t);
}

static void on_link(void *arg)
{
	struct tree *t = arg;

	if (!redis_ready(t->redis))
		give_up(t);
	else if (t->state == TREE_AWAY)
		begin(t);
}

static void write_info(struct buf *out, void *arg)
{
	const struct tree *t = arg;
	const struct waiter *w;
	char at[STREAM_ID_TEXT];
	int waiting = 0;

	TAILQ_FOREACH (w, &t->waiters, link)
		waiting++;
	buf_addf(out, "departments:%lld\r\ndepartments_stray:%zu\r\ndepartments_gone:%zu\r\n",
		(long long)tree_count(t), t->stray, tree_gone_count(t->gone));
	buf_addf(out, "tree_state:%s\r\ntree_journal:%s\r\ntree_records:%llu\r\n", state_names[t->state],
		stream_id_format(t->at, at), (unsigned long long)t->records);
	buf_addf(out, "tree_loading:%zu\r\n", t->renew != NULL ? tree_renew_size(t->renew) : 0);
	buf_addf(out, "tree_loads:%llu\r\ntree_load_ms:%lld\r\ntree_doubted:%d\r\n",
		(unsigned long long)t->loads, (long long)t->load_took_ms, t->doubted);
	buf_addf(out, "tree_waiting:%d\r\ntree_too_late:%llu\r\n", waiting, (unsigned long long)t->too_late);
}

struct tree *tree_new(struct event_base *base, struct redis *redis, void (*fn)(void *arg), void *arg)
{
	struct tree *t = xcalloc(1, sizeof(*t));
	struct timeval every = {0, POLL_MS * 1000};

	t->base = base;
	t->redis = redis;
	t->fn = fn;
	t->arg = arg;
	t->forest = forest_new();
	t->gone = tree_gone_new(redis);
	t->entries = ENTRIES_MAX;
	TAILQ_INIT(&t->waiters);
	turn_task_init(&t->answer, answer, t);
	t->polled_us = clock_mono_us();
	t->work = event_new(base, -1, 0, on_work, t);
	t->late = event_new(base, -1, 0, on_late, t);
	t->timer = event_new(base, -1, EV_PERSIST, on_timer, t);
	event_add(t->timer, &every);
	redis_on_change(redis, on_link, t);
	info_register("Organisation", write_info, t);
	return t;
}

void tree_free(struct tree *t)
{
	struct stream_id at;
	struct waiter *w;

	if (t == NULL)
		return;
	while ((w = TAILQ_FIRST(&t->waiters)) != NULL) {
		TAILQ_REMOVE(&t->waiters, w, link);
		w->fn(false, w->arg);
		free(w);
	}
	turn_cancel(&t->answer);
	if (t->renew != NULL)
		forest_free(tree_renew_end(t->renew, &at));
	forest_free(t->old);
	forest_free(t->forest);
	tree_gone_free(t->gone);
	event_free(t->timer);
	event_free(t->work);
	event_free(t->late);
	free(t);
}

void tree_doorbell(struct tree *t)
{
	follow_on(t);
}
