/* SPDX-License-Identifier: MIT */
#include "persist/tree_watch.h"

#include <event2/event.h>
#include <event2/util.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <hiredis/adapters/libevent.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/resolve.h"
#include "persist/keys.h"

#define TICK_MS  100
#define RETRY_MS 500
#define NEWS     "__redis__:invalidate" /* Redis's own channel */

enum watch_state {
	WATCH_DOWN,   /* the tick leads to the next try */
	WATCH_TRYING, /* resolving, connecting or greeting */
	WATCH_UP,     /* subscribed */
	WATCH_FAILED  /* the tick drops it: never inside a callback of hiredis */
};

static const char *const state_names[] = {"down", "trying", "up", "failed"};

struct tree_watch {
	struct event_base *base;
	const struct config *config;
	struct tree_watch_events events;
	void *arg;
	enum watch_state state;
	bool tried; /* once */
	int64_t since_us;
	redisAsyncContext *ac;
	struct resolve *resolve;
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
	resolve_cancel(w->resolve);
	w->resolve = NULL;
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
		if (what->integer == 2 && w->state == WATCH_TRYING) /* channels */
			set_state(w, WATCH_UP);
	} else if (strcmp(reply->element[1]->str, NEWS) == 0) {
		tell_written(w, what);
	} else if (what->type == REDIS_REPLY_STRING) {
		w->events.word((struct bytes){what->str, what->len}, w->arg);
	}
}

/* ---- connecting ---- */

static void on_greeted(redisAsyncContext *ac, void *raw, void *data)
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

	on_greeted(ac, raw, data);
	if (w == NULL || reply == NULL || reply->type != REDIS_REPLY_INTEGER)
		return;
	redisAsyncCommand(ac, on_greeted, NULL, "CLIENT TRACKING on REDIRECT %lld BCAST PREFIX %b",
		reply->integer, w->prefix.data, w->prefix.len);
	redisAsyncCommand(ac, on_message, NULL, "SUBSCRIBE " NEWS " %s", w->channel);
}

static void greet(struct tree_watch *w)
{
	const struct config *c = w->config;

	if (c->redis_password[0] != '\0' && c->redis_user[0] != '\0')
		redisAsyncCommand(w->ac, on_greeted, NULL, "AUTH %s %s", c->redis_user, c->redis_password);
	else if (c->redis_password[0] != '\0')
		redisAsyncCommand(w->ac, on_greeted, NULL, "AUTH %s", c->redis_password);
	redisAsyncCommand(w->ac, on_greeted, NULL, "CLIENT SETNAME musterd-watch");
	redisAsyncCommand(w->ac, on_id, NULL, "CLIENT ID");
}

static void on_connect(const redisAsyncContext *ac, int status)
{
	struct tree_watch *w = ac->data;

	if (w == NULL)
		return;
	if (status == REDIS_OK) {
		greet(w);
		return;
	}
	w->ac = NULL; /* hiredis frees it */
	fail(w, ac->errstr);
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
	struct tree_watch *w = ac->data;

	(void)status;
	if (w == NULL)
		return;
	w->ac = NULL;
	fail(w, ac->errstr[0] != '\0' ? ac->errstr : "connection closed");
}

static void on_address(const char *address, const char *error, void *arg)
{
	struct tree_watch *w = arg;

	w->resolve = NULL;
	redisAsyncContext *ac =
		address != NULL ? redisAsyncConnect(address, (int)w->config->redis_port) : NULL;
	if (ac == NULL || ac->err != 0) {
		fail(w, ac != NULL ? ac->errstr : address != NULL ? "out of memory" : error);
		if (ac != NULL)
			redisAsyncFree(ac);
		return;
	}
	ac->data = w;
	w->ac = ac;
	redisLibeventAttach(ac, w->base);
	redisAsyncSetConnectCallback(ac, on_connect);
	redisAsyncSetDisconnectCallback(ac, on_disconnect);
}

void tree_watch_start(struct tree_watch *w)
{
	set_state(w, WATCH_TRYING);
	w->resolve = resolve_start(w->base, w->config->redis_host, w->config->redis_timeout, on_address, w);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct tree_watch *w = arg;
	int64_t ms = (clock_mono_us() - w->since_us) / 1000;

	(void)fd;
	(void)what;
	if (w->state == WATCH_FAILED)
		drop(w);
	else if (w->state == WATCH_TRYING && ms > w->config->redis_timeout)
		fail(w, "no answer within the timeout");
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
