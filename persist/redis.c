/* SPDX-License-Identifier: MIT */
#include "persist/redis.h"

#include <assert.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/redis_login.h"
#include "persist/redis_pipe.h"
#include "persist/redis_prepare.h"

#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 5000
#define TICK_MS        100
#define LISTENERS_MAX  16

enum redis_state {
	REDIS_DOWN,      /* no connection; the timer leads to the next try */
	REDIS_LOGIN,     /* login is set, and watches its own deadlines */
	REDIS_PREPARING, /* the pipe is open, for our own commands */
	REDIS_READY      /* and for all */
};

static const char *const state_names[] = {"down", "login", "preparing", "ready"};

struct redis {
	struct event_base *base;
	const struct config *config;
	enum redis_role role;
	enum redis_state state;
	struct redis_login *login;
	struct redis_pipe *pipe;
	struct event *timer; /* DOWN: the next try; with the pipe open: the tick that watches its deadline */
	int64_t backoff_ms;
	char doom[160];    /* why the tick is to drop the connection, or "" */
	char trouble[160]; /* the last, or "" since it is ready */
	struct {
		void (*fn)(void *arg);
		void *arg;
	} listeners[LISTENERS_MAX];
	int listener_count;
	/* for INFO */
	uint64_t reconnects, timeouts;
};

static void on_login(struct redisAsyncContext *ac, const char *error, void *arg);
static void on_wait(const char *why, void *arg);

static const struct {
	struct redis_login_for login;
	const char *section; /* of INFO */
	const char *prefix;  /* of its fields there */
} roles[] = {
	[REDIS_MAIN] = {{"link", "musterd", on_login, on_wait}, "Redis", "redis"},
	[REDIS_WAKE] = {{"wake", "musterd", on_login, on_wait}, "Redis wake", "redis_wake"},
};

static const char *id_of(const struct redis *r)
{
	return roles[r->role].login.id;
}

static void set_state(struct redis *r, enum redis_state state)
{
	bool was_ready = r->state == REDIS_READY;

	if (r->state == state)
		return;
	log_info("redis %s event=state from=%s to=%s", id_of(r), state_names[r->state], state_names[state]);
	r->state = state;
	if (state == REDIS_READY) {
		r->backoff_ms = BACKOFF_MIN_MS;
		r->trouble[0] = '\0';
		log_notice("redis %s event=ready", id_of(r));
	}
	if (was_ready != (state == REDIS_READY)) {
		for (int i = 0; i < r->listener_count; i++)
			r->listeners[i].fn(r->listeners[i].arg);
	}
}

static void arm(struct redis *r, int64_t ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};
	event_add(r->timer, &tv);
}

static void trouble(struct redis *r, const char *what)
{
	if (strcmp(r->trouble, what) != 0)
		log_warning("redis %s event=trouble reason=\"%s\"", id_of(r), what);
	snprintf(r->trouble, sizeof(r->trouble), "%s", what);
}

/* ---- the connection ---- */

static void fall(struct redis *r, const char *why)
{
	trouble(r, why);
	r->reconnects++;
	r->timeouts += why == redis_login_late;
	set_state(r, REDIS_DOWN);
	arm(r, r->backoff_ms);
	r->backoff_ms = r->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : r->backoff_ms * 2;
}

/* Only from the timer: it closes the pipe. */
static void drop(struct redis *r, const char *why)
{
	fall(r, why);
	redis_pipe_close(r->pipe);
}

static void on_lost(const char *why, void *arg)
{
	fall(arg, why);
}

static void on_demoted(void *arg)
{
	struct redis *r = arg;
	snprintf(r->doom, sizeof(r->doom), "no longer the master");
}

static void on_prepared(const char *error, void *arg)
{
	struct redis *r = arg;

	if (r->state != REDIS_PREPARING)
		return;
	if (error == NULL)
		set_state(r, REDIS_READY);
	else
		snprintf(r->doom, sizeof(r->doom), "%s", error);
}

static void on_login(struct redisAsyncContext *ac, const char *error, void *arg)
{
	struct redis *r = arg;

	r->login = NULL;
	if (ac == NULL) {
		fall(r, error);
		return;
	}
	redis_pipe_open(r->pipe, ac);
	r->doom[0] = '\0';
	arm(r, TICK_MS);
	if (r->role == REDIS_MAIN) {
		set_state(r, REDIS_PREPARING);
		redis_prepare(r->pipe, on_prepared, r);
	} else {
		set_state(r, REDIS_READY);
	}
}

static void on_wait(const char *why, void *arg)
{
	trouble(arg, why);
}

void redis_start(struct redis *r)
{
	set_state(r, REDIS_LOGIN);
	r->login = redis_login_start(r->base, r->config, &roles[r->role].login, r);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct redis *r = arg;

	(void)fd;
	(void)what;
	if (r->state == REDIS_DOWN)
		redis_start(r);
	else if (redis_pipe_oldest_ms(r->pipe) > r->config->redis_timeout)
		drop(r, redis_login_late);
	else if (r->doom[0] != '\0')
		drop(r, r->doom);
	else
		arm(r, TICK_MS);
}

/* ---- commands ---- */

/* Releases the arguments of what is not sent. */
static enum redis_sent admit(struct redis *r, struct redis_args *a)
{
	enum redis_sent verdict = REDIS_SENT;

	if (r->state != REDIS_READY)
		verdict = REDIS_NOT_READY;
	else if (buf_failed(&a->buf) ||
		 redis_inflight(r) + a->buf.len > (size_t)r->config->redis_max_inflight)
		verdict = REDIS_FULL;
	if (verdict != REDIS_SENT)
		redis_args_release(a);
	return verdict;
}

enum redis_sent redis_send(struct redis *r, struct redis_args *a, redis_cb cb, void *arg)
{
	enum redis_sent verdict = admit(r, a);

	if (verdict == REDIS_SENT)
		redis_pipe_send(r->pipe, a, cb, arg);
	return verdict;
}

enum redis_sent redis_query(struct redis *r, struct redis_args *a, redis_cb cb, void *arg)
{
	enum redis_sent verdict = admit(r, a);

	if (verdict == REDIS_SENT)
		redis_pipe_query(r->pipe, a, cb, arg);
	return verdict;
}

enum redis_sent redis_eval(
	struct redis *r, enum script script, int keys, struct redis_args *a, redis_cb cb, void *arg)
{
	enum redis_sent verdict = admit(r, a);

	if (verdict == REDIS_SENT)
		redis_pipe_eval(r->pipe, script, keys, a, cb, arg);
	return verdict;
}

/* ---- how it is ---- */

bool redis_ready(const struct redis *r)
{
	return r->state == REDIS_READY;
}

void redis_on_change(struct redis *r, void (*fn)(void *arg), void *arg)
{
	assert(r->listener_count < LISTENERS_MAX);
	r->listeners[r->listener_count].fn = fn;
	r->listeners[r->listener_count++].arg = arg;
}

size_t redis_inflight(const struct redis *r)
{
	return redis_pipe_bytes(r->pipe);
}

static void write_info(struct buf *out, void *arg)
{
	const struct redis *r = arg;
	const char *prefix = roles[r->role].prefix;
	const char *state = r->login != NULL ? redis_login_step(r->login) : state_names[r->state];
	const struct redis_pipe_counts *counts = redis_pipe_counts(r->pipe);

	buf_addf(out, "%s_link:%s\r\n%s_trouble:%s\r\n", prefix, state, prefix, r->trouble);
	buf_addf(out, "%s_commands:%llu\r\n%s_errors:%llu\r\n", prefix, (unsigned long long)counts->commands,
		prefix, (unsigned long long)counts->errors);
	buf_addf(out, "%s_reconnects:%llu\r\n%s_timeouts:%llu\r\n", prefix, (unsigned long long)r->reconnects,
		prefix, (unsigned long long)r->timeouts);
	buf_addf(out, "%s_noscript_healed:%llu\r\n", prefix, (unsigned long long)counts->noscript);
	buf_addf(out, "%s_inflight_bytes:%zu\r\n%s_oldest_ms:%lld\r\n", prefix, redis_inflight(r), prefix,
		(long long)redis_pipe_oldest_ms(r->pipe));
}

/* ---- life ---- */

struct redis *redis_new(struct event_base *base, const struct config *config, enum redis_role role)
{
	static const struct redis_pipe_events events = {.lost = on_lost, .demoted = on_demoted};
	struct redis *r = xcalloc(1, sizeof(*r));

	r->base = base;
	r->config = config;
	r->role = role;
	r->backoff_ms = BACKOFF_MIN_MS;
	r->pipe = redis_pipe_new(&events, r);
	r->timer = event_new(base, -1, 0, on_timer, r);
	info_register(roles[role].section, write_info, r);
	return r;
}

void redis_free(struct redis *r)
{
	if (r == NULL)
		return;
	r->listener_count = 0;
	redis_login_cancel(r->login);
	if (r->state == REDIS_PREPARING || r->state == REDIS_READY)
		drop(r, "shutting down");
	redis_pipe_free(r->pipe);
	event_free(r->timer);
	free(r);
}
