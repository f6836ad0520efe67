/* SPDX-License-Identifier: MIT */
#include "persist/tree_watch.h"

#include <event2/event.h>
#include <event2/util.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/keys.h"
#include "persist/redis_login.h"

#define TICK_MS  100
#define RETRY_MS 500
#define NEWS     "__redis__:invalidate" /* Redis's own channel */

enum watch_state {
	WATCH_DOWN,        /* the tick leads to the next try */
	WATCH_LOGIN,       /* login is set, and watches its own deadlines */
	WATCH_SUBSCRIBING, /* tracking and subscription are asked for */
	WATCH_UP,          /* subscribed */
	WATCH_FAILED       /* the tick drops it: never inside a callback of hiredis */
};

static const char *const state_names[] = {"down", "login", "subscribing", "up", "failed"};

struct tree_watch {
	struct event_base *base;
	const struct config *config;
	struct tree_watch_events events;
	void *arg;
	enum watch_state state;
	bool tried; /* once */
	int64_t since_us;
	struct redis_login *login;
	redisAsyncContext *ac; /* from SUBSCRIBING on; NULL when Redis has closed it */
	struct event *tick;
	struct buf prefix; /* of the nodes' keys */
	char channel[KEYS_PREFIX_MAX + 64];
};

static void set_state(struct tree_watch *w, enum watch_state state)
{
	bool was_up = w->state == WATCH_UP;

	if (w->state == state)
		return;
	log_info("persist watch event=state from=%s to=%s", state_names[w->state], state_names[state]);
	w->state = state;
	w->since_us = clock_mono_us();
	if (state == WATCH_UP)
		w->events.up(w->arg);
	else if (was_up)
		w->events.down(w->arg);
	if (!w->tried && (state == WATCH_UP || state == WATCH_FAILED)) {
		w->tried = true;
		w->events.tried(w->arg);
	}
}

static void fail(struct tree_watch *w, const char *why)
{
	log_notice("persist watch event=trouble reason=\"%s\"", why);
	set_state(w, WATCH_FAILED);
}

/* Only from the tick. */
static void drop(struct tree_watch *w)
{
	redisAsyncContext *ac = w->ac;

	w->ac = NULL;
	redis_login_cancel(w->login);
	w->login = NULL;
	set_state(w, WATCH_DOWN);
	if (ac != NULL) {
		ac->data = NULL;
		redisAsyncFree(ac);
	}
}

/* ---- news ---- */

static void tell_written(struct tree_watch *w, const redisReply *keys)
{
	size_t prefix = w->prefix.len;

	if (keys->type != REDIS_REPLY_ARRAY) /* everything was flushed */
		w->events.written((struct bytes){"", 0}, w->arg);
	for (size_t i = 0; keys->type == REDIS_REPLY_ARRAY && i < keys->elements; i++) {
		const redisReply *key = keys->element[i];
		if (key->type == REDIS_REPLY_STRING && key->len > prefix)
			w->events.written((struct bytes){key->str + prefix, key->len - prefix}, w->arg);
	}
}

static void on_message(redisAsyncContext *ac, void *raw, void *data)
{
	struct tree_watch *w = ac->data;
	const redisReply *reply = raw;

	(void)data;
	if (w == NULL || reply == NULL)
		return;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3) {
		fail(w, reply->type == REDIS_REPLY_ERROR ? reply->str : "an unexpected message");
		return;
	}
	const redisReply *what = reply->element[2];
	if (what->type == REDIS_REPLY_INTEGER) {
		if (what->integer == 2 && w->state == WATCH_SUBSCRIBING) /* channels */
			set_state(w, WATCH_UP);
	} else if (strcmp(reply->element[1]->str, NEWS) == 0) {
		tell_written(w, what);
	} else if (what->type == REDIS_REPLY_STRING) {
		w->events.word((struct bytes){what->str, what->len}, w->arg);
	}
}

/* ---- subscribing ---- */

static void on_tracking(redisAsyncContext *ac, void *raw, void *data)
{
	struct tree_watch *w = ac->data;
	const redisReply *reply = raw;

	(void)data;
	if (w != NULL && reply != NULL && reply->type == REDIS_REPLY_ERROR)
		fail(w, reply->str);
}

/* It tells itself: a connection that is subscribed gets what another one tracks, or it itself. */
static void on_id(redisAsyncContext *ac, void *raw, void *data)
{
	struct tree_watch *w = ac->data;
	const redisReply *reply = raw;

	(void)data;
	if (w == NULL || reply == NULL)
		return;
	if (reply->type != REDIS_REPLY_INTEGER) {
		fail(w, reply->type == REDIS_REPLY_ERROR ? reply->str : "an unexpected message");
		return;
	}
	redisAsyncCommand(ac, on_tracking, NULL, "CLIENT TRACKING on REDIRECT %lld BCAST PREFIX %b",
		reply->integer, w->prefix.data, w->prefix.len);
	redisAsyncCommand(ac, on_message, NULL, "SUBSCRIBE " NEWS " %s", w->channel);
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
	struct tree_watch *w = ac->data;

	(void)status;
	if (w == NULL)
		return;
	w->ac = NULL;
	fail(w, redis_login_lost(ac));
}

static void on_login(struct redisAsyncContext *ac, const char *error, void *arg)
{
	struct tree_watch *w = arg;

	w->login = NULL;
	if (ac == NULL) {
		fail(w, error);
		return;
	}
	w->ac = ac;
	ac->data = w;
	redisAsyncSetDisconnectCallback(ac, on_disconnect);
	set_state(w, WATCH_SUBSCRIBING);
	redisAsyncCommand(ac, on_id, NULL, "CLIENT ID");
}

void tree_watch_start(struct tree_watch *w)
{
	static const struct redis_login_for who = {"watch", "musterd-watch", on_login, NULL};

	set_state(w, WATCH_LOGIN);
	w->login = redis_login_start(w->base, w->config, &who, w);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct tree_watch *w = arg;
	int64_t ms = (clock_mono_us() - w->since_us) / 1000;

	(void)fd;
	(void)what;
	if (w->state == WATCH_FAILED)
		drop(w);
	else if (w->state == WATCH_SUBSCRIBING && ms > w->config->redis_timeout)
		fail(w, redis_login_late);
	else if (w->state == WATCH_DOWN && ms > RETRY_MS)
		tree_watch_start(w);
}

/* ---- life ---- */

struct tree_watch *tree_watch_new(struct event_base *base, const struct config *config,
	const struct tree_watch_events *events, void *arg)
{
	struct tree_watch *w = xcalloc(1, sizeof(*w));
	struct timeval every = {0, TICK_MS * 1000};
	struct buf channel = BUF_INIT;
	uint64_t random;

	w->base = base;
	w->config = config;
	w->events = *events;
	w->arg = arg;
	key_org(&w->prefix, "dept:");
	evutil_secure_rng_get_bytes(&random, sizeof(random));
	key_org(&channel, "watch:");
	buf_addf(&channel, "%016llx", (unsigned long long)random);
	bytes_copy(w->channel, sizeof(w->channel), buf_bytes(&channel));
	buf_release(&channel);
	w->tick = event_new(base, -1, EV_PERSIST, on_tick, w);
	event_add(w->tick, &every);
	return w;
}

void tree_watch_free(struct tree_watch *w)
{
	if (w == NULL)
		return;
	drop(w);
	event_free(w->tick);
	buf_release(&w->prefix);
	free(w);
}

const char *tree_watch_channel(const struct tree_watch *w)
{
	return w->channel;
}

void tree_watch_doubt(struct tree_watch *w)
{
	if (w->state == WATCH_UP)
		fail(w, "news are late");
}
