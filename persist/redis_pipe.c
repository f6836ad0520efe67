/* SPDX-License-Identifier: MIT */
#include "persist/redis_pipe.h"

#include <assert.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/mem.h"
#include "persist/redis_login.h"

enum op_kind {
	OP_PLAIN, /* sent once */
	OP_QUERY, /* only reads: may be sent again */
	OP_SCRIPT /* refused without a change when Redis has lost its text */
};

/* One command under way. It keeps its bytes, so that it can be sent again. */
struct op {
	struct redis_pipe *pipe;
	redis_cb cb;
	void *arg;
	int64_t sent_us;
	size_t bytes;
	enum op_kind kind;
	bool again; /* a query behind a script that was refused: its answer is too early */
	enum script script;
	int keys;
	struct redis_args args;
	TAILQ_ENTRY(op) link;
};

struct redis_pipe {
	struct redis_pipe_events events;
	void *arg;
	redisAsyncContext *ac; /* NULL while it is closed; its data is the pipe as long as it is ours */
	TAILQ_HEAD(, op) ops;
	size_t bytes;
	struct redis_pipe_counts counts;
};

/* ---- sending ---- */

static void on_reply(redisAsyncContext *ac, void *raw, void *data);

/* Sends an operation's arguments behind `head`, from the room in front of them where it fits. */
static void put(struct op *op, const char *head, size_t head_len)
{
	struct redis_pipe *p = op->pipe;
	const struct buf *tail = &op->args.buf;
	struct buf whole = BUF_INIT;
	char *from = tail->data + REDIS_HEAD_ROOM - head_len;

	op->bytes = head_len + tail->len - REDIS_HEAD_ROOM;
	if (head_len <= REDIS_HEAD_ROOM) {
		memcpy(from, head, head_len);
	} else {
		buf_add(&whole, head, head_len);
		buf_add(&whole, tail->data + REDIS_HEAD_ROOM, tail->len - REDIS_HEAD_ROOM);
		from = whole.data;
	}
	op->sent_us = clock_mono_us();
	p->bytes += op->bytes;
	p->counts.commands++;
	TAILQ_INSERT_TAIL(&p->ops, op, link);
	/* Cannot fail: the context is neither disconnecting nor being freed, or it would not be ours. */
	int rc = redisAsyncFormattedCommand(p->ac, on_reply, op, from, op->bytes);
	assert(rc == REDIS_OK);
	(void)rc;
	buf_release(&whole);
}

static void put_plain(struct op *op)
{
	char head[32];
	int n = snprintf(head, sizeof(head), "*%d\r\n", op->args.argc);

	put(op, head, (size_t)n);
}

static void put_script(struct op *op, bool with_text)
{
	struct bytes body = with_text ? script_text(op->script) : script_sha1(op->script);
	struct buf head = BUF_INIT;
	char keys[16];
	int n = snprintf(keys, sizeof(keys), "%d", op->keys);

	buf_addf(&head, "*%d\r\n%s\r\n$%zu\r\n", op->args.argc + 3,
		with_text ? "$4\r\nEVAL" : "$7\r\nEVALSHA", body.n);
	buf_add_bytes(&head, body);
	buf_addf(&head, "\r\n$%d\r\n%s\r\n", n, keys);
	put(op, head.data, head.len);
	buf_release(&head);
}

static struct op *op_new(
	struct redis_pipe *p, enum op_kind kind, struct redis_args *a, redis_cb cb, void *arg)
{
	struct op *op = xcalloc(1, sizeof(*op));

	*op = (struct op){.pipe = p, .kind = kind, .cb = cb, .arg = arg, .args = *a};
	*a = (struct redis_args){.buf = BUF_INIT};
	return op;
}

void redis_pipe_send(struct redis_pipe *p, struct redis_args *a, redis_cb cb, void *arg)
{
	put_plain(op_new(p, OP_PLAIN, a, cb, arg));
}

void redis_pipe_query(struct redis_pipe *p, struct redis_args *a, redis_cb cb, void *arg)
{
	put_plain(op_new(p, OP_QUERY, a, cb, arg));
}

void redis_pipe_eval(
	struct redis_pipe *p, enum script script, int keys, struct redis_args *a, redis_cb cb, void *arg)
{
	struct op *op = op_new(p, OP_SCRIPT, a, cb, arg);

	op->script = script;
	op->keys = keys;
	put_script(op, false);
}

/* ---- replies ---- */

static bool starts(const redisReply *reply, const char *word)
{
	return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, word, strlen(word)) == 0;
}

/* Whether an operation that Redis has answered must be sent again: a script whose text Redis has lost, and a
 * query whose answer came before such a script was applied. */
static bool send_again(struct op *op, const redisReply *reply)
{
	struct op *later;

	if (op->kind == OP_QUERY && op->again) {
		op->again = false;
		put_plain(op);
		return true;
	}
	if (op->kind != OP_SCRIPT || !starts(reply, "NOSCRIPT"))
		return false;
	op->pipe->counts.noscript++;
	TAILQ_FOREACH (later, &op->pipe->ops, link)
		later->again = true;
	put_script(op, true);
	return true;
}

static void lose(struct redis_pipe *p, const char *why)
{
	p->ac = NULL;
	p->events.lost(why, p->arg);
}

static void on_reply(redisAsyncContext *ac, void *raw, void *data)
{
	struct op *op = data;
	struct redis_pipe *p = op->pipe;
	const redisReply *reply = raw;

	TAILQ_REMOVE(&p->ops, op, link);
	p->bytes -= op->bytes;
	/* hiredis answers everything with NULL before it says that the connection is lost. */
	if (reply == NULL && p->ac == ac)
		lose(p, redis_login_lost(ac));
	if (reply != NULL && p->ac == ac && send_again(op, reply))
		return;
	if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
		p->counts.errors++;
	if (reply != NULL && (starts(reply, "READONLY") || starts(reply, "MASTERDOWN")))
		p->events.demoted(p->arg);
	op->cb(reply, op->arg);
	redis_args_release(&op->args);
	free(op);
}

/* ---- the connection ---- */

static void on_disconnect(const redisAsyncContext *ac, int status)
{
	struct redis_pipe *p = ac->data;

	(void)status;
	if (p != NULL && p->ac == ac)
		lose(p, redis_login_lost(ac));
}

void redis_pipe_open(struct redis_pipe *p, struct redisAsyncContext *ac)
{
	assert(p->ac == NULL && TAILQ_EMPTY(&p->ops));
	p->ac = ac;
	ac->data = p;
	redisAsyncSetDisconnectCallback(ac, on_disconnect);
}

void redis_pipe_close(struct redis_pipe *p)
{
	redisAsyncContext *ac = p->ac;

	if (ac == NULL)
		return;
	p->ac = NULL;
	ac->data = NULL;
	redisAsyncFree(ac);
}

/* ---- life ---- */

struct redis_pipe *redis_pipe_new(const struct redis_pipe_events *events, void *arg)
{
	struct redis_pipe *p = xcalloc(1, sizeof(*p));

	p->events = *events;
	p->arg = arg;
	TAILQ_INIT(&p->ops);
	return p;
}

void redis_pipe_free(struct redis_pipe *p)
{
	if (p == NULL)
		return;
	redis_pipe_close(p);
	free(p);
}

size_t redis_pipe_bytes(const struct redis_pipe *p)
{
	return p->bytes;
}

int64_t redis_pipe_oldest_ms(const struct redis_pipe *p)
{
	const struct op *oldest = TAILQ_FIRST(&p->ops);

	return oldest != NULL ? (clock_mono_us() - oldest->sent_us) / 1000 : 0;
}

const struct redis_pipe_counts *redis_pipe_counts(const struct redis_pipe *p)
{
	return &p->counts;
}
