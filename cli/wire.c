/* SPDX-License-Identifier: MIT */
#include "cli/wire.h"

#include <event2/event.h>
#include <fcntl.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <hiredis/adapters/libevent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/resolve.h"

#define PAUSE_FIRST_MS 100
#define PAUSE_MAX_MS   5000
#define GOODBYE_MS     2000

enum wire_state {
	WIRE_DOWN,       /* no connection; the timer leads to the next try */
	WIRE_RESOLVING,  /* the name look-up is under way, which has a deadline of its own */
	WIRE_CONNECTING, /* until the login, or a PING, is answered */
	WIRE_UP,
	WIRE_LEAVING, /* our side is closed, what is under way may still be answered */
	WIRE_OVER     /* no connection, and there will be none */
};

struct pending {
	struct wire *wire;
	wire_cb cb;
	void *arg;
	int64_t deadline_us;
	TAILQ_ENTRY(pending) entry;
};

struct wire {
	struct event_base *base;
	const struct cli_options *options;
	const struct wire_events *events;
	void *arg;
	enum wire_state state;
	redisAsyncContext *ac;
	struct resolve *resolve;
	struct event *timer; /* DOWN: the next try; else the deadline of what happens */
	int64_t pause_ms;
	TAILQ_HEAD(, pending) pending; /* answers come in this order */
};

static void arm(struct wire *w, int64_t us)
{
	struct timeval tv = {us / 1000000, us % 1000000};

	event_add(w->timer, us > 0 ? &tv : &(struct timeval){0});
}

/* The oldest request decides until when an answer must have come. */
static void watch(struct wire *w)
{
	const struct pending *oldest = TAILQ_FIRST(&w->pending);

	if (oldest != NULL)
		arm(w, oldest->deadline_us - clock_mono_us());
	else
		event_del(w->timer);
}

/* The connection is gone or going. The pause has jitter, lest a hundred workers come back at once. */
static void fall(struct wire *w)
{
	w->ac = NULL;
	if (w->state >= WIRE_LEAVING) {
		w->state = WIRE_OVER;
		event_del(w->timer);
		return;
	}
	w->state = WIRE_DOWN;
	arm(w, w->pause_ms * 500 + clock_mono_us() % (w->pause_ms * 500));
	w->pause_ms = w->pause_ms * 2 < PAUSE_MAX_MS ? w->pause_ms * 2 : PAUSE_MAX_MS;
}

static void fail(struct wire *w, const char *error)
{
	bool trying = w->state < WIRE_UP;

	fall(w);
	if (trying)
		w->events->failed(w->arg, error, false);
}

/* hiredis puts the end of a context off when one of its callbacks is at work. */
static void drop(struct wire *w, const char *error)
{
	redisAsyncContext *ac = w->ac;

	fail(w, error);
	if (ac != NULL) {
		ac->data = NULL;
		redisAsyncFree(ac);
	}
}

static const char *error_of(const redisAsyncContext *ac)
{
	return ac->errstr[0] != '\0' ? ac->errstr : "the connection was closed";
}

static void on_reply(redisAsyncContext *ac, void *raw, void *data)
{
	struct pending *p = data;
	struct wire *w = p->wire;

	TAILQ_REMOVE(&w->pending, p, entry);
	/* hiredis answers everything with NULL before it says that the connection is lost. */
	if (raw == NULL && w->ac == ac)
		fail(w, error_of(ac));
	if (w->ac == ac)
		watch(w);
	p->cb(raw, p->arg);
	free(p);
}

static void put(struct wire *w, const struct request *r, int64_t limit_ms, wire_cb cb, void *arg)
{
	const char *words[REQUEST_MAX];
	struct pending *p = xcalloc(1, sizeof(*p));

	*p = (struct pending){.wire = w, .cb = cb, .arg = arg};
	p->deadline_us = clock_mono_us() + limit_ms * 1000;
	memcpy(words, r->argv, (size_t)r->argc * sizeof(*words));
	TAILQ_INSERT_TAIL(&w->pending, p, entry);
	/* Can't fail: the context is neither disconnecting nor being freed, or it would not be ours. */
	redisAsyncCommandArgv(w->ac, on_reply, p, r->argc, words, r->len);
	watch(w);
}

bool wire_send(struct wire *w, const struct request *r, int64_t limit_ms, wire_cb cb, void *arg)
{
	if (w->state != WIRE_UP)
		return false;
	put(w, r, limit_ms, cb, arg);
	return true;
}

static void on_greeted(const redisReply *reply, void *arg)
{
	struct wire *w = arg;

	if (reply == NULL || w->state != WIRE_CONNECTING)
		return;
	if (reply->type == REDIS_REPLY_ERROR) {
		w->state = WIRE_OVER;
		w->events->failed(w->arg, reply->str, true);
		return;
	}
	w->state = WIRE_UP;
	w->pause_ms = PAUSE_FIRST_MS;
	w->events->up(w->arg);
}

static void on_connect(const redisAsyncContext *ac, int status)
{
	struct wire *w = ac->data;
	struct request r;

	if (w == NULL || w->ac != ac)
		return;
	if (status != REDIS_OK) {
		fail(w, error_of(ac));
		return;
	}
	if (!conn_login(w->options, &r))
		request_init(&r, "PING");
	put(w, &r, w->options->timeout_ms, on_greeted, w);
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
	struct wire *w = ac->data;

	(void)status;
	if (w != NULL && w->ac == ac)
		fail(w, error_of(ac));
}

static void on_address(const char *address, const char *error, void *arg)
{
	struct wire *w = arg;

	w->resolve = NULL;
	if (address == NULL) {
		fail(w, error);
		return;
	}
	redisAsyncContext *ac = redisAsyncConnect(address, w->options->port);
	if (ac == NULL || ac->err != 0) {
		fail(w, ac != NULL ? error_of(ac) : "out of memory");
		if (ac != NULL)
			redisAsyncFree(ac);
		return;
	}
	fcntl(ac->c.fd, F_SETFD, FD_CLOEXEC); /* no business of the programs that we run */
	ac->data = w;
	w->ac = ac;
	w->state = WIRE_CONNECTING;
	redisLibeventAttach(ac, w->base);
	redisAsyncSetConnectCallback(ac, on_connect);
	redisAsyncSetDisconnectCallback(ac, on_disconnect);
	arm(w, (int64_t)w->options->timeout_ms * 1000);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct wire *w = arg;

	(void)fd;
	(void)what;
	if (w->state != WIRE_DOWN) {
		drop(w, "no answer in time");
		return;
	}
	w->state = WIRE_RESOLVING;
	w->resolve = resolve_start(w->base, w->options->host, w->options->timeout_ms, on_address, w);
}

struct wire *wire_new(struct event_base *base, const struct cli_options *options,
	const struct wire_events *events, void *arg)
{
	struct wire *w = xcalloc(1, sizeof(*w));

	*w = (struct wire){.base = base, .options = options, .events = events, .arg = arg};
	w->pause_ms = PAUSE_FIRST_MS;
	TAILQ_INIT(&w->pending);
	w->timer = event_new(base, -1, 0, on_timer, w);
	arm(w, 0);
	return w;
}

void wire_hang_up(struct wire *w)
{
	struct pending *p;

	if (w->state != WIRE_UP) {
		resolve_cancel(w->resolve);
		w->resolve = NULL;
		w->state = WIRE_LEAVING;
		drop(w, "");
		return;
	}
	w->state = WIRE_LEAVING;
	shutdown(w->ac->c.fd, SHUT_WR);
	TAILQ_FOREACH (p, &w->pending, entry)
		p->deadline_us = clock_mono_us() + (int64_t)GOODBYE_MS * 1000;
	watch(w);
}

void wire_free(struct wire *w)
{
	if (w == NULL)
		return;
	resolve_cancel(w->resolve);
	w->state = WIRE_LEAVING;
	drop(w, "");
	event_free(w->timer);
	free(w);
}
