/* SPDX-License-Identifier: MIT */
#include "mq/relay.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "mq/message.h"
#include "mq/mq.h"
#include "mq/notice.h"
#include "persist/journal.h"
#include "persist/keys.h"
#include "persist/partition.h"
#include "persist/tree.h"

#define EXCHANGE "muster.notices"
#define TICK_MS  250
#define RETRY_MS 1000
/* So long a window waits for a department that is not known: its making is on the way in another journal. One
 * that stays unknown was removed long ago, and must not keep the notices of others waiting; where there is
 * one such, there may be many, and the next are given less time. */
#define PATIENCE_US       (30 * INT64_C(1000000))
#define PATIENCE_SPENT_US (3 * INT64_C(1000000))
#define SPENT_FOR_US      (600 * INT64_C(1000000))

enum letter_state { LETTER_WAITING, LETTER_SENT, LETTER_CONFIRMED };

struct work;

/* One message of a window. */
struct letter {
	struct work *work;
	const struct notice *notice;
	enum letter_state state;
	bool returned; /* at least once */
	int64_t not_before_us;
};

/* One window. */
struct work {
	struct relay *relay;
	struct journal_window *window;
	struct notices notices;
	struct letter *letters;
	size_t left; /* not confirmed */
	TAILQ_ENTRY(work) link;
};

/* Of a partition: the department that its window waits for, or waited for in vain. */
struct wait {
	char dept[ID_MAX + 1];
	int64_t since_us, spent_us;
};

struct relay {
	struct mq *mq;
	struct tree *tree;
	const int64_t *task_ends;
	void (*done)(struct journal_window *window, bool ok, void *arg);
	void *arg;
	struct event *timer;
	struct turn_task send;
	TAILQ_HEAD(, work) works;
	struct wait waits[PARTITIONS_MAX + 1];
	struct bytes *cc; /* of the message that is being sent */
	size_t cc_size;
	uint64_t messages, events, returned, nacked, oversized;
	bool alarm; /* a message could not be routed */
};

static void letter_set_state(struct letter *l, enum letter_state state)
{
	static const char *const names[] = {"waiting", "sent", "confirmed"};

	log_debug("mq relay event=state id=%s from=%s to=%s", l->notice->id.data, names[l->state],
		names[state]);
	l->state = state;
}

static void work_free(struct work *w)
{
	notices_release(&w->notices);
	free(w->letters);
	free(w);
}

static void finish(struct work *w)
{
	struct relay *r = w->relay;
	struct journal_window *window = w->window;

	TAILQ_REMOVE(&r->works, w, link);
	work_free(w);
	r->done(window, true, r->arg);
}

static void on_outcome(enum mq_outcome outcome, void *arg)
{
	struct letter *l = arg;
	struct relay *r = l->work->relay;

	if (outcome == MQ_CONFIRMED) {
		letter_set_state(l, LETTER_CONFIRMED);
		if (l->returned)
			r->alarm = false;
		if (--l->work->left == 0)
			finish(l->work);
		return;
	}
	letter_set_state(l, LETTER_WAITING);
	l->not_before_us = clock_mono_us() + (outcome == MQ_LOST ? 0 : RETRY_MS * 1000);
	r->nacked += outcome == MQ_NACKED;
	if (outcome == MQ_RETURNED) {
		r->returned++;
		l->returned = true;
		if (!r->alarm)
			log_error("mq relay event=unroutable key=%s: no queue takes this notice; "
				  "it stays in the journal and is tried again",
				l->notice->key.data);
		r->alarm = true;
	}
}

static size_t collect_keys(struct relay *r, const struct notice *n)
{
	size_t count = 0;

	if (n->key_count > r->cc_size) {
		r->cc_size = n->key_count * 2;
		r->cc = xrealloc(r->cc, r->cc_size * sizeof(r->cc[0]));
	}
	for (size_t at = 0; at < n->keys.len; at += r->cc[count++].n + 1)
		r->cc[count] = bytes_of(n->keys.data + at);
	return count;
}

/* False when there is no room for more now. */
static bool send_letter(struct letter *l)
{
	const struct notice *n = l->notice;
	size_t count = collect_keys(l->work->relay, n);

	struct mq_message m = {.exchange = BYTES_LIT(EXCHANGE),
		.routing_key = buf_bytes(&n->key),
		.cc = l->work->relay->cc,
		.cc_count = count,
		.message_id = buf_bytes(&n->id),
		.type = buf_bytes(&n->type),
		.timestamp_s = clock_wall_ms() / 1000,
		.body = buf_bytes(&n->body)};
	int rc = mq_publish(l->work->relay->mq, &m, on_outcome, l);
	if (rc == -EAGAIN)
		return false;
	l->work->relay->messages++;
	l->work->relay->events += (uint64_t)n->events;
	letter_set_state(l, LETTER_SENT);
	if (rc != 0) {
		/* It can never be sent; the ledger has its events all the same. */
		l->work->relay->oversized++;
		log_error("mq relay event=unsendable key=%s bytes=%zu", n->key.data, n->body.len);
		letter_set_state(l, LETTER_CONFIRMED);
		l->work->left--;
	}
	return true;
}

static bool send_work(struct work *w, int64_t now)
{
	for (size_t i = 0; i < w->notices.count; i++) {
		struct letter *l = &w->letters[i];
		if (l->state == LETTER_WAITING && now >= l->not_before_us && !send_letter(l))
			return false;
	}
	return true;
}

static void send_all(void *arg)
{
	struct relay *r = arg;
	struct work *w, *next;
	int64_t now = clock_mono_us();

	for (w = TAILQ_FIRST(&r->works); w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		bool room = send_work(w, now);
		if (w->left == 0)
			finish(w);
		if (!room)
			return;
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	send_all(arg);
}

/* Whether it has been waited long enough for this department. */
static bool out_of_patience(struct relay *r, int partition, const char *dept)
{
	struct wait *w = &r->waits[partition];
	int64_t now = clock_mono_us();

	if (strcmp(w->dept, dept) != 0 || !tree_loaded(r->tree)) {
		bytes_copy(w->dept, sizeof(w->dept), bytes_of(dept));
		w->since_us = now;
	}
	bool spent = w->spent_us > 0 && now - w->spent_us < SPENT_FOR_US;
	if (now - w->since_us < (spent ? PATIENCE_SPENT_US : PATIENCE_US))
		return false;
	w->spent_us = now;
	return true;
}

/* False when the window must wait for a department. */
static bool make_notices(struct relay *r, struct notices *notices, const struct journal_window *window)
{
	if (notices_make(notices, window, r->tree))
		return true;
	if (!out_of_patience(r, window->partition, notices->unknown)) {
		log_info("mq relay event=waiting dept=%s reason=\"it is not known yet\"", notices->unknown);
		return false;
	}
	log_error("mq relay event=stranger dept=%s: told to nobody above it, since it is not known",
		notices->unknown);
	notices->alone = true;
	return notices_make(notices, window, r->tree);
}

static void report_deep(const struct notices *notices)
{
	for (size_t i = 0; i < notices->count; i++) {
		const struct notice *n = &notices->list[i];
		if (n->left_out > 0)
			log_warning("mq relay event=deep key=%s named=%zu left_out=%zu", n->key.data,
				n->key_count, n->left_out);
	}
}

static void give_back(struct work *w)
{
	struct relay *r = w->relay;
	struct journal_window *window = w->window;

	work_free(w);
	r->done(window, false, r->arg);
}

static void start(struct work *w)
{
	struct relay *r = w->relay;

	if (!make_notices(r, &w->notices, w->window)) {
		give_back(w);
		return;
	}
	report_deep(&w->notices);
	TAILQ_INSERT_TAIL(&r->works, w, link);
	w->left = w->notices.count;
	if (w->left == 0) {
		finish(w);
		return;
	}
	w->letters = xcalloc(w->left, sizeof(w->letters[0]));
	for (size_t i = 0; i < w->left; i++) {
		w->letters[i].work = w;
		w->letters[i].notice = &w->notices.list[i];
	}
	turn_schedule(&r->send);
}

static void on_synced(bool ok, void *arg)
{
	struct work *w = arg;

	if (ok)
		start(w);
	else
		give_back(w);
}

void relay_process(struct journal_window *window, void *arg)
{
	struct relay *r = arg;
	struct work *w = xcalloc(1, sizeof(*w));

	w->relay = r;
	w->window = window;
	w->notices.task_ends = *r->task_ends;
	if (window->partition == keys_org()) {
		/* What the picture does not know when it has got so far has been removed since: no use to
		 * wait. */
		w->notices.alone = true;
		tree_sync(r->tree, window->last, on_synced, w);
		return;
	}
	start(w);
}

static void write_info(struct buf *out, void *arg)
{
	const struct relay *r = arg;

	buf_addf(out,
		"notices_sent:%llu\r\nnotice_events:%llu\r\nnotices_unroutable:%llu\r\nnotices_nacked:%"
		"llu\r\n",
		(unsigned long long)r->messages, (unsigned long long)r->events,
		(unsigned long long)r->returned, (unsigned long long)r->nacked);
	buf_addf(out, "notices_unsendable:%llu\r\nnotices_alarm:%d\r\n", (unsigned long long)r->oversized,
		r->alarm);
}

struct relay *relay_new(struct event_base *base, struct mq *mq, struct tree *tree, const int64_t *task_ends,
	void (*done)(struct journal_window *window, bool ok, void *arg), void *arg)
{
	struct relay *r = xcalloc(1, sizeof(*r));
	struct timeval every = {0, TICK_MS * 1000};

	r->mq = mq;
	r->tree = tree;
	r->task_ends = task_ends;
	r->done = done;
	r->arg = arg;
	TAILQ_INIT(&r->works);
	turn_task_init(&r->send, send_all, r);
	r->timer = event_new(base, -1, EV_PERSIST, on_timer, r);
	event_add(r->timer, &every);
	mq_on_room(mq, send_all, r);
	info_register("Notices", write_info, r);
	return r;
}

void relay_free(struct relay *r)
{
	struct work *w;

	if (r == NULL)
		return;
	turn_cancel(&r->send);
	while ((w = TAILQ_FIRST(&r->works)) != NULL) {
		TAILQ_REMOVE(&r->works, w, link);
		work_free(w);
	}
	event_free(r->timer);
	free(r->cc);
	free(r);
}
