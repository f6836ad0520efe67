/* SPDX-License-Identifier: MIT */
#include "persist/redis_login.h"

#include <event2/event.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <hiredis/adapters/libevent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/resolve.h"

#define LOADING_WAIT_MS 500

enum login_state {
	LOGIN_RESOLVING,  /* resolve is set, and has its own deadline; in all others ac is set */
	LOGIN_CONNECTING, /* no answer yet */
	LOGIN_GREETING,   /* connected; our commands are under way */
	LOGIN_LOADING     /* Redis loads its data: greeted again and again, the timer leads to the next */
};

const char redis_login_late[] = "no answer within the timeout";

static const char *const state_names[] = {"resolving", "connecting", "greeting", "loading"};

/* hiredis finds it by the data of its context, which is NULL once the login has no use for it any more. */
struct redis_login {
	struct event_base *base;
	const struct config *config;
	const struct redis_login_for *who;
	void *arg;
	enum login_state state;
	struct resolve *resolve;
	redisAsyncContext *ac;
	struct event *timer; /* the deadline, or the next greeting */
	int pending;         /* answers of this greeting that are still to come */
	bool loading;        /* one of them said so */
};

static void set_state(struct redis_login *l, enum login_state state)
{
	if (l->state == state)
		return;
	log_info("redis %s event=login from=%s to=%s", l->who->id, state_names[l->state], state_names[state]);
	l->state = state;
}

static void arm(struct redis_login *l, int64_t ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};
	event_add(l->timer, &tv);
}

/* ---- the end ---- */

static void destroy(struct redis_login *l)
{
	resolve_cancel(l->resolve);
	event_free(l->timer);
	free(l);
}

/* Takes the connection, if there is one, away from the login. */
static redisAsyncContext *take(struct redis_login *l)
{
	redisAsyncContext *ac = l->ac;

	l->ac = NULL;
	if (ac != NULL) {
		ac->data = NULL;
		ac->onDisconnect = NULL; /* redisAsyncSetDisconnectCallback() only sets the first */
	}
	return ac;
}

static void end(struct redis_login *l, redisAsyncContext *ac, const char *error)
{
	const struct redis_login_for *who = l->who;
	void *arg = l->arg;

	destroy(l);
	who->done(ac, error, arg);
}

/* hiredis has given the connection up and frees it. */
static void fail_lost(struct redis_login *l, const redisAsyncContext *ac)
{
	take(l);
	end(l, NULL, redis_login_lost(ac));
}

/* From the timer, or from the callback of a reply, to the end of which hiredis puts the freeing off; never
 * from that of the connect. */
static void fail(struct redis_login *l, const char *why)
{
	redisAsyncContext *ac = take(l);

	end(l, NULL, why);
	redisAsyncFree(ac);
}

const char *redis_login_lost(const struct redisAsyncContext *ac)
{
	return ac->errstr[0] != '\0' ? ac->errstr : "connection closed";
}

/* ---- the greeting ---- */

static void on_answer(redisAsyncContext *ac, void *raw, void *data);

static __attribute__((format(printf, 2, 3))) void say(struct redis_login *l, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	redisvAsyncCommand(l->ac, on_answer, NULL, format, ap);
	va_end(ap);
	l->pending++;
}

static void greet(struct redis_login *l)
{
	const struct config *c = l->config;

	l->pending = 0;
	l->loading = false;
	if (c->redis_password[0] != '\0' && c->redis_user[0] != '\0')
		say(l, "AUTH %s %s", c->redis_user, c->redis_password);
	else if (c->redis_password[0] != '\0')
		say(l, "AUTH %s", c->redis_password);
	say(l, "CLIENT SETNAME %s", l->who->client);
	say(l, "ROLE");
	say(l, "SELECT %lld", (long long)c->redis_db);
	if (l->who->waits != NULL)
		say(l, "EXISTS muster"); /* a Redis that loads its data takes all but this */
	arm(l, c->redis_timeout);
}

static void end_greeting(struct redis_login *l)
{
	bool first = l->state != LOGIN_LOADING;

	if (!l->loading) {
		end(l, take(l), NULL);
		return;
	}
	set_state(l, LOGIN_LOADING);
	arm(l, LOADING_WAIT_MS);
	if (first)
		l->who->waits("Redis is loading its data", l->arg);
}

static bool starts(const redisReply *reply, const char *word)
{
	return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, word, strlen(word)) == 0;
}

/* The answer to ROLE is the only array. */
static bool is_replica(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 && reply->element[0]->str != NULL &&
	       strcmp(reply->element[0]->str, "slave") == 0;
}

static void on_answer(redisAsyncContext *ac, void *raw, void *data)
{
	struct redis_login *l = ac->data;
	const redisReply *reply = raw;

	(void)data;
	if (l == NULL)
		return;
	if (reply == NULL) {
		fail_lost(l, ac);
		return;
	}
	bool loading = l->who->waits != NULL && starts(reply, "LOADING");
	l->loading |= loading;
	l->pending--;
	if (reply->type == REDIS_REPLY_ERROR && !loading)
		fail(l, reply->str);
	else if (is_replica(reply))
		fail(l, "Redis is a replica, a master is needed");
	else if (l->pending == 0)
		end_greeting(l);
}

/* ---- the connection ---- */

static void on_connect(const redisAsyncContext *ac, int status)
{
	struct redis_login *l = ac->data;

	if (l == NULL)
		return;
	if (status != REDIS_OK) {
		fail_lost(l, ac);
		return;
	}
	set_state(l, LOGIN_GREETING);
	greet(l);
}

/* Between two greetings; while answers are to come, they tell first. */
static void on_disconnect(const redisAsyncContext *ac, int status)
{
	struct redis_login *l = ac->data;

	(void)status;
	if (l != NULL)
		fail_lost(l, ac);
}

static void on_address(const char *address, const char *error, void *arg)
{
	struct redis_login *l = arg;

	l->resolve = NULL;
	if (address == NULL) {
		end(l, NULL, error);
		return;
	}
	l->ac = redisAsyncConnect(address, (int)l->config->redis_port);
	if (l->ac == NULL) {
		end(l, NULL, "out of memory");
	} else if (l->ac->err != 0) {
		fail(l, l->ac->errstr);
	} else {
		set_state(l, LOGIN_CONNECTING);
		l->ac->data = l;
		redisLibeventAttach(l->ac, l->base);
		redisAsyncSetConnectCallback(l->ac, on_connect);
		redisAsyncSetDisconnectCallback(l->ac, on_disconnect);
		arm(l, l->config->redis_timeout);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct redis_login *l = arg;

	(void)fd;
	(void)what;
	if (l->state == LOGIN_LOADING && l->pending == 0)
		greet(l);
	else
		fail(l, redis_login_late);
}

struct redis_login *redis_login_start(
	struct event_base *base, const struct config *config, const struct redis_login_for *who, void *arg)
{
	struct redis_login *l = xcalloc(1, sizeof(*l));

	*l = (struct redis_login){.base = base, .config = config, .who = who, .arg = arg};
	l->timer = event_new(base, -1, 0, on_timer, l);
	l->resolve = resolve_start(base, config->redis_host, config->redis_timeout, on_address, l);
	return l;
}

void redis_login_cancel(struct redis_login *l)
{
	if (l == NULL)
		return;
	redisAsyncContext *ac = take(l);
	destroy(l);
	if (ac != NULL)
		redisAsyncFree(ac);
}

const char *redis_login_step(const struct redis_login *l)
{
	return state_names[l->state];
}
