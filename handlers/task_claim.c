/* SPDX-License-Identifier: MIT */
/* Tasks that nobody would receive, since the client has gone while its claim waited, go back at once. */
#include "handlers/task_claim.h"

#include <stdlib.h>

#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "handlers/task.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/task.h"
#include "persist/task_wait.h"

#define COUNT_MAX 100

struct claim_op {
	struct call *call;
	struct task_waiter *waiter; /* while it waits, or may come to wait */
	char queue[ID_MAX + 1];
	size_t releasing; /* tasks on their way back */
};

static void end(struct claim_op *op)
{
	struct call *call = op->call;

	call->on_hangup = NULL;
	free(op);
	call_finish(call);
}

/* ---- the reply ---- */

static void add_task(struct reply *r, const char *queue, const struct task_claimed *task)
{
	reply_map(r, 9);
	reply_field_bulk(r, "id", task->id);
	reply_field_bulk(r, "token", task->token);
	reply_field_str(r, "queue", queue);
	reply_field_int(r, "priority", task->priority);
	reply_field_int(r, "attempt", task->attempt);
	reply_field_int(r, "lease", task->lease);
	reply_field_int(r, "deadline", task->deadline);
	reply_field_int(r, "submitted", task->submitted);
	reply_field_bulk(r, "payload", task->payload);
}

static size_t count_tasks(struct bytes tasks)
{
	struct task_claimed task;
	size_t n = 0;

	while (task_claimed_next(&tasks, &task))
		n++;
	return n;
}

static void reply_tasks(struct claim_op *op, struct bytes tasks)
{
	struct call *call = op->call;
	struct task_claimed task;
	size_t n = count_tasks(tasks);

	call->app->task_totals.claimed += n;
	reply_array(&call->reply, n);
	while (task_claimed_next(&tasks, &task))
		add_task(&call->reply, op->queue, &task);
}

/* ---- nobody is there to receive them ---- */

/* What could not be given back comes back with the end of its lease. */
static void on_released(struct bytes line, const char *error, void *arg)
{
	struct claim_op *op = arg;

	(void)line;
	(void)error;
	if (--op->releasing > 0)
		return;
	app_journalled(op->call->app, keys_partition_of(bytes_of(op->queue)));
	reply_array(&op->call->reply, 0);
	end(op);
}

static void release(struct claim_op *op, struct bytes tasks)
{
	struct task_claimed task;

	op->releasing = count_tasks(tasks);
	while (task_claimed_next(&tasks, &task)) {
		const struct task_end end_of = {.verb = TASK_END_RELEASE, .id = task.id, .token = task.token};
		log_info("task %.*s event=given_back reason=client_gone", (int)task.id.n, task.id.p);
		task_end_send(op->call->app->tasks, &end_of, on_released, op);
	}
}

/* ---- the claim ---- */

static void settle(struct bytes line, const char *error, bool waited, void *arg)
{
	struct claim_op *op = arg;
	struct call *call = op->call;
	struct bytes rest = {line.p + 1, line.n > 0 ? line.n - 1 : 0};
	bool heard = call->client != NULL && !(waited && call_hung_up(call));

	op->waiter = NULL;
	if (error == NULL && (line.n == 0 || line.p[0] == 'E'))
		error = redis_error_text(rest);
	if (error != NULL) {
		bool behind = call->command->exec == task_done_exec;
		(void)call_fail(call, "%s%s", error, behind ? " (this was the claim: the task is done)" : "");
	} else if (line.p[0] == 'N') {
		reply_array(&call->reply, 0);
	} else if (heard) {
		reply_tasks(op, rest);
	} else {
		release(op, rest);
		return;
	}
	end(op);
}

static void on_claimed(struct bytes line, const char *error, void *arg)
{
	settle(line, error, false, arg);
}

static void on_hangup(struct call *call)
{
	struct claim_op *op = call->op;

	if (op->waiter != NULL)
		task_wait_end(op->waiter);
}

void task_claim_begin(struct call *call, const struct task_claim *claim, int64_t wait_ms)
{
	if (call->client == NULL) {
		reply_array(&call->reply, 0);
		call_finish(call);
		return;
	}
	struct claim_op *op = xcalloc(1, sizeof(*op));
	op->call = call;
	bytes_copy(op->queue, sizeof(op->queue), claim->queue);
	if (wait_ms == 0 || call->hung_up) {
		task_claim_send(call->app->tasks, claim, on_claimed, op);
		return;
	}
	call->op = op;
	call->on_hangup = on_hangup;
	op->waiter = task_wait_begin(call->app->task_waits, claim, wait_ms, settle, op);
}

bool task_claim_check(
	struct call *call, struct bytes count, struct bytes wait, int64_t *ret_count, int64_t *ret_wait_ms)
{
	*ret_count = 1;
	*ret_wait_ms = 0;
	if (!check_number(call, "COUNT", count, 1, COUNT_MAX, ret_count) ||
		!check_number(call, "WAIT", wait, 0, call->app->config->task_wait_max, ret_wait_ms))
		return false;
	call->alone = *ret_wait_ms > 0;
	return true;
}

enum verdict task_claim_exec(struct call *call)
{
	struct bytes count = {0}, wait = {0}, lease = {0};
	const struct option options[] = {
		{"COUNT", &count, NULL}, {"WAIT", &wait, NULL}, {"LEASE", &lease, NULL}, {0}};
	struct task_claim claim = {.queue = call->argv[1], .worker = call->argv[2]};
	int64_t wait_ms;

	if (!check_queue(call, claim.queue) || !check_worker(call, claim.worker) ||
		options_read(call, 3, options) != 0 || !check_lease(call, lease, &claim.lease_ms) ||
		!task_claim_check(call, count, wait, &claim.count, &wait_ms))
		return CALL_DONE;
	task_claim_begin(call, &claim, wait_ms);
	return CALL_WAIT;
}
