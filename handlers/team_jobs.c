/* SPDX-License-Identifier: MIT */
/* TEAM.JOBS and TEAM.CANCEL. */
#include "handlers/team.h"

#include <stdlib.h>

#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/team_jobs.h"

static const char *const fields[] = {"op", "id", "parent", "phase", "done", "total", "started", "error"};

/* The jobs asked for; their answers come in the order of the questions. */
struct jobs_op {
	struct call *call;
	struct reply items;
	size_t left, count;
	const char *error;
};

struct job_question {
	struct jobs_op *op;
	int64_t number;
};

static void end(struct jobs_op *op)
{
	struct call *call = op->call;

	if (op->error != NULL) {
		(void)call_fail(call, "%s", op->error);
	} else if (call->argc == 2 && op->count == 0) {
		(void)call_fail(call, "UNKNOWN no such job, or it ended more than an hour ago");
	} else {
		reply_array(&call->reply, op->count);
		buf_add_bytes(&call->reply.buf, buf_bytes(&op->items.buf));
	}
	reply_release(&op->items);
	free(op);
	call_finish(call);
}

static void add_job(struct jobs_op *op, int64_t number, const struct redisReply *reply)
{
	struct reply *r = &op->items;

	op->count++;
	reply_map(r, 9);
	reply_field_int(r, "job", number);
	reply_field_bulk(r, "op", redis_text(redis_at(reply, 0)));
	reply_field_bulk(r, "team", redis_text(redis_at(reply, 1)));
	reply_field_bulk(r, "parent", redis_text(redis_at(reply, 2)));
	reply_field_bulk(r, "phase", redis_text(redis_at(reply, 3)));
	for (size_t i = 4; i < 7; i++) {
		int64_t n = 0;
		(void)!bytes_to_i64(redis_text(redis_at(reply, i)), &n);
		reply_field_int(r, fields[i], n);
	}
	struct bytes wrong = redis_text(redis_at(reply, 7));
	struct buf error = BUF_INIT;
	if (wrong.n > 0)
		team_write_refusal(&error, op->call->app->config, redis_text(redis_at(reply, 1)), wrong);
	reply_field_bulk(r, "error", buf_bytes(&error));
	buf_release(&error);
}

static void on_job(const struct redisReply *reply, void *arg)
{
	struct job_question *q = arg;
	struct jobs_op *op = q->op;

	if (redis_reply_error(reply) != NULL)
		op->error = redis_reply_error(reply);
	else if (!redis_is_null(redis_at(reply, 0)))
		add_job(op, q->number, reply);
	free(q);
	if (--op->left == 0)
		end(op);
}

static void ask(struct jobs_op *op, int64_t number)
{
	struct job_question *q = xcalloc(1, sizeof(*q));
	struct redis_args a;
	struct buf text = BUF_INIT;

	q->op = op;
	q->number = number;
	redis_args_init(&a);
	redis_arg_str(&a, "HMGET");
	buf_add_i64(&text, number);
	struct buf key = BUF_INIT;
	key_org_of(&key, "job", buf_bytes(&text));
	redis_arg_key(&a, &key);
	buf_release(&key);
	buf_release(&text);
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		redis_arg_str(&a, fields[i]);
	enum redis_sent sent = redis_query(op->call->app->redis, &a, on_job, q);
	if (sent == REDIS_SENT) {
		op->left++;
		return;
	}
	op->error = redis_sent_error(sent);
	free(q);
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void on_numbers(const struct redisReply *reply, void *arg)
{
	struct jobs_op *op = arg;
	size_t count = redis_count(reply), n = 0;
	int64_t *numbers = xcalloc(count + 1, sizeof(numbers[0]));

	op->error = redis_reply_error(reply);
	for (size_t i = 0; i < count; i++)
		n += bytes_to_i64(redis_text(redis_at(reply, i)), &numbers[n]);
	qsort(numbers, n, sizeof(numbers[0]), by_number);
	for (size_t i = 0; i < n && op->error == NULL; i++)
		ask(op, numbers[i]);
	free(numbers);
	if (op->left == 0)
		end(op);
}

enum verdict team_jobs_exec(struct call *call)
{
	struct jobs_op *op;
	struct redis_args a;
	struct buf key = BUF_INIT;
	int64_t number = 0;

	if (call->argc == 2 && (!bytes_to_i64(call->argv[1], &number) || number < 1))
		return call_fail(call, "ERR invalid job, expected its number");
	op = xcalloc(1, sizeof(*op));
	op->call = call;
	reply_init(&op->items, call->reply.protocol);
	enum redis_sent sent = REDIS_SENT;
	if (call->argc == 2) {
		ask(op, number);
		sent = op->error == NULL ? REDIS_SENT : REDIS_NOT_READY;
	} else {
		redis_args_init(&a);
		redis_arg_str(&a, "SMEMBERS");
		key_org(&key, "jobs");
		redis_arg_key(&a, &key);
		buf_release(&key);
		sent = redis_query(call->app->redis, &a, on_numbers, op);
	}
	if (sent == REDIS_SENT)
		return CALL_WAIT;
	reply_release(&op->items);
	free(op);
	return call_fail(call, "%s", redis_sent_error(sent));
}

static void on_cancelled(const struct redisReply *reply, void *arg)
{
	struct call *call = arg;
	struct bytes line = redis_text(reply);

	if (redis_reply_error(reply) != NULL) {
		(void)call_fail(call, "%s", redis_reply_error(reply));
	} else if (bytes_eq(line, BYTES_LIT("O"))) {
		team_jobs_wake(call->app->team_jobs);
		reply_status(&call->reply, "OK");
	} else if (bytes_eq(line, BYTES_LIT("L"))) {
		(void)call_fail(
			call, "CONFLICT too late: the change has taken place, the rest is tidying up");
	} else {
		(void)call_fail(call, "UNKNOWN no such job, or it ended more than an hour ago");
	}
	call_finish(call);
}

enum verdict team_cancel_exec(struct call *call)
{
	struct redis_args a;
	struct buf key = BUF_INIT;
	int64_t number;

	if (!bytes_to_i64(call->argv[1], &number) || number < 1)
		return call_fail(call, "ERR invalid job, expected its number");
	redis_args_init(&a);
	key_org(&key, "roots");
	redis_arg_key(&a, &key);
	key_org(&key, "");
	redis_arg_key(&a, &key);
	buf_release(&key);
	redis_arg_i64(&a, number);
	enum redis_sent sent = redis_eval(call->app->redis, SCRIPT_TEAM_CANCEL, 1, &a, on_cancelled, call);
	return sent == REDIS_SENT ? CALL_WAIT : call_fail(call, "%s", redis_sent_error(sent));
}
