/* SPDX-License-Identifier: MIT */
#include "mq/relay.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
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

#define EXCHANGE "muster.notices"
#define TICK_MS  250
#define RETRY_MS 1000
#define CC_MAX   256 /* ancestors that a notice can name; deeper ones are left out, with a warning */

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

struct relay {
	struct mq *mq;
	const struct tree *tree;
	void (*done)(struct journal_window *window, bool ok, void *arg);
	void *arg;
	struct event *timer;
	struct turn_task send;
	TAILQ_HEAD(, work) works;
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

/* False when there is no room for more now. */
static bool send_letter(struct letter *l)
{
	const struct notice *n = l->notice;
	struct bytes cc[CC_MAX];
	size_t count = 0;

	for (size_t at = 0; at < n->keys.len && count < CC_MAX; count++) {
		cc[count] = bytes_of(n->keys.data + at);
		at += cc[count].n + 1;
	}
	if (n->key_count > CC_MAX)
		log_warning("mq relay event=deep key=%s ancestors=%zu named=%d", n->key.data, n->key_count,
			CC_MAX);
	struct mq_message m = {.exchange = BYTES_LIT(EXCHANGE),
		.routing_key = buf_bytes(&n->key),
		.cc = cc,
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

void relay_process(struct journal_window *window, void *arg)
{
	struct relay *r = arg;
	struct work *w = xcalloc(1, sizeof(*w));

	w->relay = r;
	w->window = window;
	if (!notices_make(&w->notices, window, r->tree)) {
		log_info("mq relay event=waiting reason=\"a department is not known yet\"");
		free(w);
		r->done(window, false, r->arg);
		return;
	}
	w->left = w->notices.count;
	if (w->left == 0) {
		work_free(w);
		r->done(window, true, r->arg);
		return;
	}
	w->letters = xcalloc(w->left, sizeof(w->letters[0]));
	for (size_t i = 0; i < w->left; i++) {
		w->letters[i].work = w;
		w->letters[i].notice = &w->notices.list[i];
	}
	TAILQ_INSERT_TAIL(&r->works, w, link);
	turn_schedule(&r->send);
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

struct relay *relay_new(struct event_base *base, struct mq *mq, const struct tree *tree,
	void (*done)(struct journal_window *window, bool ok, void *arg), void *arg)
{
	struct relay *r = xcalloc(1, sizeof(*r));
	struct timeval every = {0, TICK_MS * 1000};

	r->mq = mq;
	r->tree = tree;
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
	free(r);
}
