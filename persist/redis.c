/* SPDX-License-Identifier: MIT */
#include "persist/redis.h"

#include <assert.h>
#include <event2/event.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <hiredis/adapters/libevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/resolve.h"

#define BACKOFF_MIN_MS  100
#define BACKOFF_MAX_MS  5000
#define TICK_MS         100
#define LOADING_WAIT_MS 500
#define LISTENERS_MAX   16
/* Room in front of the encoded arguments for "*<argc>\r\n" and the head of an EVALSHA. */
#define HEAD_ROOM 128

enum redis_state {
	REDIS_DOWN,       /* no connection; the timer leads to the next try */
	REDIS_RESOLVING,  /* the name look-up is under way */
	REDIS_CONNECTING, /* ac exists, no answer yet */
	REDIS_GREETING,   /* connected; our own commands settle user, database and role */
	REDIS_READY
};

static const char *const state_names[] = {"down", "resolving", "connecting", "greeting", "ready"};

static const struct {
	const char *id;      /* in the log */
	const char *section; /* of INFO */
	const char *prefix;  /* of its fields there */
} names[] = {
	[REDIS_MAIN] = {"link", "Redis", "redis"},
	[REDIS_WAKE] = {"wake", "Redis wake", "redis_wake"},
};

enum op_kind {
	OP_PLAIN, /* sent once */
	OP_QUERY, /* only reads: may be sent again */
	OP_SCRIPT /* refused without a change when Redis has lost its text */
};

/* One command under way. Scripts and queries keep their bytes, so that they can be sent again. */
struct op {
	struct redis *redis;
	redis_cb cb;
	void *arg;
	int64_t sent_us;
	size_t bytes;
	enum op_kind kind;
	bool again; /* a query behind a script that was refused: its answer is too early */
	enum script script;
	int keys, argc;
	struct buf tail; /* the encoded arguments, behind HEAD_ROOM */
	TAILQ_ENTRY(op) link;
};

struct redis {
	struct event_base *base;
	const struct config *config;
	enum redis_role role;
	enum redis_state state;
	redisAsyncContext *ac;
	struct resolve *resolve;
	struct event *timer; /* DOWN: next try; otherwise the tick that watches deadlines */
	int64_t backoff_ms;
	int64_t since_us; /* of the present state */
	int greeting;     /* replies of the greeting that are still to come */
	bool greeting_failed, loading;
	TAILQ_HEAD(, op) ops;
	size_t inflight;
	char trouble[160];
	struct {
		void (*fn)(void *arg);
		void *arg;
	} listeners[LISTENERS_MAX];
	int listener_count;
	/* for INFO */
	uint64_t commands, errors, reconnects, timeouts, noscript;
};

static void connect_next(struct redis *r);

static void set_state(struct redis *r, enum redis_state state)
{
	bool was_ready = r->state == REDIS_READY;

	if (r->state == state)
		return;
	log_info("redis %s event=state from=%s to=%s", names[r->role].id, state_names[r->state],
		state_names[state]);
	r->state = state;
	r->since_us = clock_mono_us();
	if (state == REDIS_READY) {
		r->backoff_ms = BACKOFF_MIN_MS;
		r->trouble[0] = '\0';
		log_notice("redis %s event=ready", names[r->role].id);
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
		log_warning("redis %s event=trouble reason=\"%s\"", names[r->role].id, what);
	snprintf(r->trouble, sizeof(r->trouble), "%s", what);
}

/* The connection is gone or going: everything that needs a new try. hiredis runs the callbacks itself. */
static void fall(struct redis *r, const char *why)
{
	trouble(r, why);
	r->ac = NULL;
	r->reconnects++;
	set_state(r, REDIS_DOWN);
	arm(r, r->backoff_ms);
	r->backoff_ms = r->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : r->backoff_ms * 2;
}

/* Only from the timer, never from a callback of hiredis. */
static void drop(struct redis *r, const char *why)
{
	redisAsyncContext *ac = r->ac;

	fall(r, why);
	if (ac != NULL) {
		ac->data = NULL;
		redisAsyncFree(ac);
	}
}

static void op_free(struct op *op)
{
	buf_release(&op->tail);
	free(op);
}

/* ---- commands ---- */

void redis_args_init(struct redis_args *a)
{
	*a = (struct redis_args){.buf = BUF_INIT};
	if (buf_reserve(&a->buf, 512)) {
		memset(a->buf.data, ' ', HEAD_ROOM);
		a->buf.len = HEAD_ROOM;
	}
}

void redis_args_release(struct redis_args *a)
{
	buf_release(&a->buf);
	a->argc = 0;
}

void redis_arg(struct redis_args *a, struct bytes value)
{
	buf_add_char(&a->buf, '$');
	buf_add_i64(&a->buf, (int64_t)value.n);
	buf_add(&a->buf, "\r\n", 2);
	buf_add_bytes(&a->buf, value);
	buf_add(&a->buf, "\r\n", 2);
	a->argc++;
}

void redis_arg_str(struct redis_args *a, const char *value)
{
	redis_arg(a, bytes_of(value));
}

void redis_arg_i64(struct redis_args *a, int64_t value)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%lld", (long long)value);
	redis_arg(a, (struct bytes){text, (size_t)n});
}

void redis_arg_key(struct redis_args *a, struct buf *scratch)
{
	redis_arg(a, buf_bytes(scratch));
	buf_clear(scratch);
}

void redis_args_append(struct redis_args *dst, struct redis_args *src)
{
	buf_add(&dst->buf, src->buf.data + HEAD_ROOM, src->buf.len - HEAD_ROOM);
	dst->argc += src->argc;
	redis_args_release(src);
}

static void on_reply(redisAsyncContext *ac, void *raw, void *data);

/* Sends an operation's arguments behind `head`, from the room in front of them where it fits. */
static void put(struct redis *r, struct op *op, const char *head, size_t head_len)
{
	struct buf whole = BUF_INIT;
	char *from = op->tail.data + HEAD_ROOM - head_len;

	op->bytes = head_len + op->tail.len - HEAD_ROOM;
	if (head_len <= HEAD_ROOM) {
		memcpy(from, head, head_len);
	} else {
		buf_add(&whole, head, head_len);
		buf_add(&whole, op->tail.data + HEAD_ROOM, op->tail.len - HEAD_ROOM);
		from = whole.data;
	}
	op->sent_us = clock_mono_us();
	r->inflight += op->bytes;
	r->commands++;
	TAILQ_INSERT_TAIL(&r->ops, op, link);
	/* Cannot fail: the state says that the context is neither disconnecting nor being freed. */
	int rc = redisAsyncFormattedCommand(r->ac, on_reply, op, from, op->bytes);
	assert(rc == REDIS_OK);
	(void)rc;
	buf_release(&whole);
}

static void put_plain(struct redis *r, struct op *op)
{
	char head[32];
	int n = snprintf(head, sizeof(head), "*%d\r\n", op->argc);

	put(r, op, head, (size_t)n);
}

static void put_script(struct redis *r, struct op *op, bool with_text)
{
	struct bytes body = with_text ? script_text(op->script) : script_sha1(op->script);
	struct buf head = BUF_INIT;
	char keys[16];
	int n = snprintf(keys, sizeof(keys), "%d", op->keys);

	buf_addf(&head, "*%d\r\n%s\r\n$%zu\r\n", op->argc + 3, with_text ? "$4\r\nEVAL" : "$7\r\nEVALSHA",
		body.n);
	buf_add_bytes(&head, body);
	buf_addf(&head, "\r\n$%d\r\n%s\r\n", n, keys);
	put(r, op, head.data, head.len);
	buf_release(&head);
}

static struct op *op_new(struct redis *r, enum op_kind kind, struct redis_args *a, redis_cb cb, void *arg)
{
	struct op *op = xcalloc(1, sizeof(*op));

	*op = (struct op){.redis = r, .kind = kind, .cb = cb, .arg = arg, .argc = a->argc, .tail = a->buf};
	*a = (struct redis_args){.buf = BUF_INIT};
	return op;
}

static enum redis_sent admit(struct redis *r, struct redis_args *a)
{
	enum redis_sent verdict = REDIS_SENT;

	if (r->state != REDIS_READY)
		verdict = REDIS_NOT_READY;
	else if (buf_failed(&a->buf) || r->inflight + a->buf.len > (size_t)r->config->redis_max_inflight)
		verdict = REDIS_FULL;
	if (verdict != REDIS_SENT)
		redis_args_release(a);
	return verdict;
}

static enum redis_sent send_kind(
	struct redis *r, enum op_kind kind, struct redis_args *a, redis_cb cb, void *arg)
{
	enum redis_sent verdict = admit(r, a);

	if (verdict == REDIS_SENT)
		put_plain(r, op_new(r, kind, a, cb, arg));
	return verdict;
}

enum redis_sent redis_send(struct redis *r, struct redis_args *a, redis_cb cb, void *arg)
{
	return send_kind(r, OP_PLAIN, a, cb, arg);
}

enum redis_sent redis_query(struct redis *r, struct redis_args *a, redis_cb cb, void *arg)
{
	return send_kind(r, OP_QUERY, a, cb, arg);
}

enum redis_sent redis_eval(
	struct redis *r, enum script script, int keys, struct redis_args *a, redis_cb cb, void *arg)
{
	enum redis_sent verdict = admit(r, a);

	if (verdict != REDIS_SENT)
		return verdict;
	struct op *op = op_new(r, OP_SCRIPT, a, cb, arg);
	op->script = script;
	op->keys = keys;
	put_script(r, op, false);
	return REDIS_SENT;
}

static bool starts(const redisReply *reply, const char *word)
{
	return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, word, strlen(word)) == 0;
}

/* Whether an operation that Redis has answered must be sent again: a script whose text Redis has lost, and a
 * query whose answer came before such a script was applied. */
static bool send_again(struct redis *r, struct op *op, const redisReply *reply)
{
	struct op *later;

	if (op->kind == OP_QUERY && op->again) {
		op->again = false;
		put_plain(r, op);
		return true;
	}
	if (op->kind != OP_SCRIPT || !starts(reply, "NOSCRIPT"))
		return false;
	r->noscript++;
	TAILQ_FOREACH (later, &r->ops, link)
		later->again = true;
	put_script(r, op, true);
	return true;
}

static void on_reply(redisAsyncContext *ac, void *raw, void *data)
{
	struct op *op = data;
	struct redis *r = op->redis;
	const redisReply *reply = raw;

	TAILQ_REMOVE(&r->ops, op, link);
	r->inflight -= op->bytes;
	/* hiredis answers everything with NULL before it says that the connection is lost. */
	if (reply == NULL && r->ac == ac)
		fall(r, ac->errstr[0] != '\0' ? ac->errstr : "connection closed");
	if (reply != NULL && r->ac == ac && send_again(r, op, reply))
		return;
	if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
		r->errors++;
	if (reply != NULL && (starts(reply, "READONLY") || starts(reply, "MASTERDOWN"))) {
		/* We talk to a server that is no longer the master: look again, from the timer. */
		r->greeting_failed = true;
	}
	op->cb(reply, op->arg);
	op_free(op);
}

/* ---- greeting ---- */

static void greeting_done(struct redis *r)
{
	if (r->loading) {
		r->loading = false;
		r->greeting_failed = false;
		trouble(r, "Redis is loading its data");
		arm(r, LOADING_WAIT_MS);
		return;
	}
	if (!r->greeting_failed)
		set_state(r, REDIS_READY);
}

static void judge_greeting(struct redis *r, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR) {
		if (starts(reply, "LOADING"))
			r->loading = true;
		/* CONFIG may be forbidden to our user: then the operator has decided. */
		else if (strstr(reply->str, "config") == NULL && strstr(reply->str, "CONFIG") == NULL) {
			trouble(r, reply->str);
			r->greeting_failed = true;
		}
	} else if (reply->type == REDIS_REPLY_ARRAY && reply->elements >= 1 &&
		   reply->element[0]->str != NULL) {
		const char *word = reply->element[0]->str;
		const char *value =
			reply->elements > 1 && reply->element[1]->str != NULL ? reply->element[1]->str : "";
		if (strcmp(word, "slave") == 0) {
			trouble(r, "Redis is a replica, a master is needed");
			r->greeting_failed = true;
		} else if (strcmp(word, "maxmemory-policy") == 0 && strcmp(value, "noeviction") != 0) {
			log_warning("redis link event=unsafe maxmemory-policy=%s expected=noeviction: "
				    "Redis may throw away accepted events",
				value);
		} else if (strcmp(word, "appendonly") == 0 && strcmp(value, "yes") != 0) {
			log_warning("redis link event=unsafe appendonly=%s expected=yes: "
				    "accepted events are lost when Redis stops",
				value);
		}
	}
}

static void on_greeting(const struct redisReply *reply, void *arg)
{
	struct redis *r = arg;

	if (reply == NULL)
		return;
	judge_greeting(r, reply);
	if (--r->greeting == 0)
		greeting_done(r);
}

static void greet_with(struct redis *r, int argc, const char *const *argv)
{
	struct redis_args a;

	redis_args_init(&a);
	for (int i = 0; i < argc; i++)
		redis_arg_str(&a, argv[i]);
	r->greeting++;
	put_plain(r, op_new(r, OP_PLAIN, &a, on_greeting, r));
}

#define GREET(r, ...)                                                                                        \
	greet_with(                                                                                          \
		r, (int)ARRAY_LEN(((const char *const[]){__VA_ARGS__})), (const char *const[]){__VA_ARGS__})

static void greet_main(struct redis *r)
{
	GREET(r, "CONFIG", "GET", "maxmemory-policy");
	GREET(r, "CONFIG", "GET", "appendonly");
	for (int i = 0; i < SCRIPT_COUNT; i++)
		GREET(r, "SCRIPT", "LOAD", script_text((enum script)i).p);
}

static void greet(struct redis *r)
{
	const struct config *c = r->config;
	char db[24];

	snprintf(db, sizeof(db), "%lld", (long long)c->redis_db);
	r->greeting = 0;
	r->greeting_failed = r->loading = false;
	set_state(r, REDIS_GREETING);
	if (c->redis_password[0] != '\0' && c->redis_user[0] != '\0')
		GREET(r, "AUTH", c->redis_user, c->redis_password);
	else if (c->redis_password[0] != '\0')
		GREET(r, "AUTH", c->redis_password);
	GREET(r, "CLIENT", "SETNAME", "musterd");
	GREET(r, "ROLE");
	GREET(r, "SELECT", db);
	if (r->role == REDIS_MAIN)
		greet_main(r);
	GREET(r, "EXISTS", "muster");
}

/* ---- connection ---- */

static void on_connect(const redisAsyncContext *ac, int status)
{
	struct redis *r = ac->data;

	if (r == NULL || r->ac != ac)
		return;
	if (status != REDIS_OK)
		fall(r, ac->errstr[0] != '\0' ? ac->errstr : "can't connect");
	else
		greet(r);
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
	struct redis *r = ac->data;

	(void)status;
	if (r != NULL && r->ac == ac)
		fall(r, ac->errstr[0] != '\0' ? ac->errstr : "connection closed");
}

static void on_address(const char *address, const char *error, void *arg)
{
	struct redis *r = arg;

	r->resolve = NULL;
	if (address == NULL) {
		fall(r, error);
		return;
	}
	redisAsyncContext *ac = redisAsyncConnect(address, (int)r->config->redis_port);
	if (ac == NULL || ac->err != 0) {
		fall(r, ac != NULL ? ac->errstr : "out of memory");
		if (ac != NULL)
			redisAsyncFree(ac);
		return;
	}
	ac->data = r;
	r->ac = ac;
	set_state(r, REDIS_CONNECTING);
	redisLibeventAttach(ac, r->base);
	redisAsyncSetConnectCallback(ac, on_connect);
	redisAsyncSetDisconnectCallback(ac, on_disconnect);
	arm(r, TICK_MS);
}

static void connect_next(struct redis *r)
{
	set_state(r, REDIS_RESOLVING);
	r->resolve = resolve_start(r->base, r->config->redis_host, r->config->redis_timeout, on_address, r);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct redis *r = arg;

	(void)fd;
	(void)what;
	if (r->state == REDIS_DOWN) {
		connect_next(r);
		return;
	}
	if (r->state == REDIS_RESOLVING)
		return;
	int64_t limit_us = r->config->redis_timeout * 1000;
	bool slow = redis_now_lag_ms(r) * 1000 > limit_us;
	bool stuck = r->state != REDIS_READY && r->greeting > 0 && clock_mono_us() - r->since_us > limit_us;
	if (slow || stuck || (r->state == REDIS_CONNECTING && clock_mono_us() - r->since_us > limit_us)) {
		r->timeouts++;
		drop(r, "no answer within the timeout");
	} else if (r->greeting_failed) {
		drop(r, r->trouble[0] != '\0' ? r->trouble : "no longer the master");
	} else {
		if (r->state == REDIS_GREETING && r->greeting == 0)
			greet(r);
		arm(r, TICK_MS);
	}
}

static void write_info(struct buf *out, void *arg)
{
	struct redis *r = arg;
	const char *prefix = names[r->role].prefix;

	buf_addf(out, "%s_link:%s\r\n%s_trouble:%s\r\n", prefix, state_names[r->state], prefix, r->trouble);
	buf_addf(out, "%s_commands:%llu\r\n%s_errors:%llu\r\n", prefix, (unsigned long long)r->commands,
		prefix, (unsigned long long)r->errors);
	buf_addf(out, "%s_reconnects:%llu\r\n%s_timeouts:%llu\r\n", prefix, (unsigned long long)r->reconnects,
		prefix, (unsigned long long)r->timeouts);
	buf_addf(out, "%s_noscript_healed:%llu\r\n", prefix, (unsigned long long)r->noscript);
	buf_addf(out, "%s_inflight_bytes:%zu\r\n%s_oldest_ms:%lld\r\n", prefix, r->inflight, prefix,
		(long long)redis_now_lag_ms(r));
}

struct redis *redis_new(struct event_base *base, const struct config *config, enum redis_role role)
{
	struct redis *r = xcalloc(1, sizeof(*r));

	r->base = base;
	r->config = config;
	r->role = role;
	r->backoff_ms = BACKOFF_MIN_MS;
	TAILQ_INIT(&r->ops);
	r->timer = event_new(base, -1, 0, on_timer, r);
	info_register(names[role].section, write_info, r);
	return r;
}

void redis_free(struct redis *r)
{
	if (r == NULL)
		return;
	resolve_cancel(r->resolve);
	r->listener_count = 0;
	if (r->ac != NULL)
		drop(r, "shutting down");
	event_free(r->timer);
	free(r);
}

void redis_start(struct redis *r)
{
	connect_next(r);
}

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
	return r->inflight;
}

int64_t redis_now_lag_ms(const struct redis *r)
{
	const struct op *oldest = TAILQ_FIRST(&r->ops);

	return oldest != NULL ? (clock_mono_us() - oldest->sent_us) / 1000 : 0;
}
