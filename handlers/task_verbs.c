/* SPDX-License-Identifier: MIT */
/* The end of a task, by its worker or from outside, and its return. */
#include "handlers/task.h"

#include <stdlib.h>

#include "base/config.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "handlers/task_claim.h"
#include "persist/keys.h"
#include "persist/task.h"
#include "rules/text.h"

struct end_op {
	struct call *call;
	enum task_end_verb verb;
	struct buf text; /* what is kept of the ERROR */
	/* DONE … NEXT */
	bool next;
	int64_t count, wait_ms;
};

/* What an O answer tells. It points into the answer. */
struct ended {
	struct bytes status, queue, worker;
	int64_t retries, not_before; /* -1: there is none */
};

static struct bytes behind_letter(struct bytes line)
{
	return (struct bytes){line.p + 1, line.n > 0 ? line.n - 1 : 0};
}

/* ---- by its worker ---- */

static bool read_ended(struct bytes line, struct ended *ret)
{
	struct bytes f[5];

	if (line.n == 0 || line.p[0] != 'O' || bytes_split(behind_letter(line), '|', f, 5) != 5 ||
		!bytes_to_i64(f[3], &ret->retries))
		return false;
	ret->status = f[0];
	ret->queue = f[1];
	ret->worker = f[2];
	ret->not_before = -1;
	return bytes_to_i64(f[4], &ret->not_before) || bytes_eq(f[4], BYTES_LIT("-"));
}

static void count(struct task_totals *totals, enum task_end_verb verb)
{
	if (verb == TASK_END_DONE)
		totals->done++;
	else if (verb == TASK_END_FAIL)
		totals->failed++;
	else
		totals->released++;
}

static void reply_failed(struct call *call, const struct ended *ended)
{
	struct reply *r = &call->reply;

	reply_map(r, 4);
	reply_field_bulk(r, "id", call->argv[1]);
	reply_field_bulk(r, "status", ended->status);
	reply_field_int(r, "retries", ended->retries);
	reply_field_instant(r, "not_before", ended->not_before);
}

static void succeed(const struct end_op *op, const struct ended *ended)
{
	struct call *call = op->call;

	count(&call->app->task_totals, op->verb);
	app_journalled(call->app, keys_partition_of(ended->queue));
	if (op->next) {
		const struct task_claim claim = {
			.queue = ended->queue, .worker = ended->worker, .count = op->count};
		task_claim_begin(call, &claim, op->wait_ms);
		return;
	}
	if (op->verb == TASK_END_FAIL)
		reply_failed(call, ended);
	else
		reply_status(&call->reply, "OK");
	call_finish(call);
}

static void on_ended(struct bytes line, const char *error, void *arg)
{
	struct end_op *op = arg;
	struct call *call = op->call;
	struct ended ended;

	if (error == NULL && read_ended(line, &ended)) {
		succeed(op, &ended);
	} else {
		if (error != NULL)
			(void)call_fail(call, "%s", error);
		else
			(void)task_refuse(call, call->argv[1], line);
		call->app->task_totals.stale += line.n > 0 && line.p[0] == 'S';
		call_finish(call);
	}
	buf_release(&op->text);
	free(op);
}

/* Takes `op` and what it holds. */
static enum verdict end_task(struct call *call, const struct task_end *end, struct end_op op)
{
	struct end_op *own = xmalloc(sizeof(*own));

	op.call = call;
	op.verb = end->verb;
	*own = op;
	task_end_send(call->app->tasks, end, on_ended, own);
	return CALL_WAIT;
}

/* The id and the token that all three begin with. */
static bool read_claim(struct call *call, struct task_end *end)
{
	end->id = call->argv[1];
	end->token = call->argv[2];
	return check_task(call, end->id) && check_token(call, end->token);
}

enum verdict task_done_exec(struct call *call)
{
	struct task_end end = {.verb = TASK_END_DONE};
	struct end_op op = {0};
	struct bytes how_many = {0}, wait = {0};
	const struct option options[] = {{"RESULT", &end.text, NULL}, {"NEXT", NULL, &op.next},
		{"COUNT", &how_many, NULL}, {"WAIT", &wait, NULL}, {0}};
	const struct config *config = call->app->config;

	if (!read_claim(call, &end) || options_read(call, 3, options) != 0 ||
		!task_claim_check(call, how_many, wait, &op.count, &op.wait_ms))
		return CALL_DONE;
	if (!op.next && (how_many.p != NULL || wait.p != NULL))
		return call_fail(call, "ERR syntax error, expected COUNT and WAIT with NEXT only");
	if (end.text.n > (size_t)config->task_max_result)
		return call_fail(call, "TOOBIG the RESULT, expected at most %lld bytes (task.max_result)",
			(long long)config->task_max_result);
	return end_task(call, &end, op);
}

enum verdict task_fail_exec(struct call *call)
{
	struct task_end end = {.verb = TASK_END_FAIL, .delay_ms = -1};
	struct end_op op = {0};
	struct bytes error = {0}, delay = {0};
	const struct option options[] = {{"ERROR", &error, NULL}, {"DELAY", &delay, NULL}, {0}};

	if (!read_claim(call, &end) || options_read(call, 3, options) != 0 ||
		!check_delay(call, delay, &end.delay_ms))
		return CALL_DONE;
	text_keep(&op.text, error, (size_t)call->app->config->task_max_error);
	end.text = buf_bytes(&op.text);
	return end_task(call, &end, op);
}

enum verdict task_release_exec(struct call *call)
{
	struct task_end end = {.verb = TASK_END_RELEASE};

	return read_claim(call, &end) ? end_task(call, &end, (struct end_op){0}) : CALL_DONE;
}

/* ---- from outside ---- */

static void reply_cancelled(struct call *call, const char *status)
{
	struct reply *r = &call->reply;

	reply_map(r, 2);
	reply_field_bulk(r, "id", call->argv[1]);
	reply_field_str(r, "status", status);
}

static void journalled(struct call *call)
{
	int partition;

	if (task_id_parse(call->argv[1], &partition, NULL))
		app_journalled(call->app, partition);
}

static void on_cancelled(struct bytes line, const char *error, void *arg)
{
	struct call *call = arg;
	char letter = line.n > 0 ? line.p[0] : '?';

	if (error != NULL) {
		(void)call_fail(call, "%s", error);
	} else if (letter == 'O') {
		call->app->task_totals.cancelled++;
		journalled(call);
		reply_cancelled(call, "cancelled");
	} else if (letter == 'R') {
		reply_cancelled(call, "running");
	} else {
		(void)task_refuse(call, call->argv[1], line);
	}
	call_finish(call);
}

enum verdict task_cancel_exec(struct call *call)
{
	if (!check_task(call, call->argv[1]))
		return CALL_DONE;
	task_cancel_send(call->app->tasks, call->argv[1], on_cancelled, call);
	return CALL_WAIT;
}

static void on_retried(struct bytes line, const char *error, void *arg)
{
	struct call *call = arg;

	if (error != NULL) {
		(void)call_fail(call, "%s", error);
	} else if (bytes_eq(line, BYTES_LIT("O"))) {
		journalled(call);
		reply_status(&call->reply, "OK");
	} else {
		(void)task_refuse(call, call->argv[1], line);
	}
	call_finish(call);
}

enum verdict task_retry_exec(struct call *call)
{
	if (!check_task(call, call->argv[1]))
		return CALL_DONE;
	task_retry_send(call->app->tasks, call->argv[1], on_retried, call);
	return CALL_WAIT;
}
