/* SPDX-License-Identifier: MIT */
/* TASK.GET: a task as Redis has it at one instant. TASK.STATS: what a queue has, or each of all queues.
 *
 * All queues are walked partition by partition and in the order of their names, so the cursor, the partition
 * and the name of the last one, is a place: a queue is told once, whatever comes and goes. */
#include "handlers/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "handlers/task_view.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/task_read.h"

#define SCAN_COUNT "500" /* names of a call: 0.3 ms of Redis */

/* ---- TASK.GET ---- */

static void on_get(struct bytes line, const char *error, void *arg)
{
	struct call *call = arg;
	struct bytes rest = {line.p + 1, line.n > 0 ? line.n - 1 : 0};
	struct task_row row;
	char letter = line.n > 0 ? line.p[0] : '?';

	if (letter == 'A') {
		task_get_send(call->app->task_reads, call->argv[1], on_get, call);
		return;
	}
	if (error != NULL)
		(void)call_fail(call, "%s", error);
	else if (letter != 'T')
		(void)task_refuse(call, call->argv[1], line);
	else if (!task_row_read(rest, &row))
		(void)task_refuse(call, call->argv[1], BYTES_LIT("X"));
	else
		view_task(&call->reply, &row, true);
	call_finish(call);
}

enum verdict task_get_exec(struct call *call)
{
	if (!check_task(call, call->argv[1]))
		return CALL_DONE;
	task_get_send(call->app->task_reads, call->argv[1], on_get, call);
	return CALL_WAIT;
}

/* ---- TASK.STATS queue ---- */

static const char *const stat_names[TASK_STATS] = {[STAT_READY] = "ready",
	[STAT_DELAYED] = "delayed",
	[STAT_RUNNING] = "running",
	[STAT_SUCCESS] = "success",
	[STAT_FAILED] = "failed",
	[STAT_TIMEOUT] = "timeout",
	[STAT_CANCELLED] = "cancelled",
	[STAT_WAITING] = "waiting",
	[STAT_PAUSED] = "paused",
	[STAT_BYTES] = "bytes",
	[STAT_TOTAL_SUBMITTED] = "total_submitted",
	[STAT_TOTAL_SUCCESS] = "total_success",
	[STAT_TOTAL_FAILED] = "total_failed",
	[STAT_TOTAL_TIMEOUT] = "total_timeout",
	[STAT_TOTAL_CANCELLED] = "total_cancelled",
	[STAT_TOTAL_RETRIED] = "total_retried",
	[STAT_TOTAL_BROUGHT_BACK] = "total_brought_back",
	[STAT_TOTAL_EXPIRED] = "total_expired",
	[STAT_TOTAL_RELEASED] = "total_released",
	[STAT_TOTAL_AGED] = "total_aged",
	[STAT_TOTAL_DROPPED] = "total_dropped",
	[STAT_OLDEST] = "oldest"};

static void reply_stats(struct reply *r, struct bytes queue, struct bytes row)
{
	int64_t stats[TASK_STATS];

	task_stats_read(row, stats);
	reply_map(r, 1 + TASK_STATS);
	reply_field_bulk(r, "queue", queue);
	for (int i = 0; i < TASK_STATS; i++) /* null for what can't be read */
		reply_field_instant(r, stat_names[i], stats[i]);
}

static void on_queue(struct bytes row, const char *error, void *arg)
{
	struct call *call = arg;

	if (error != NULL)
		(void)call_fail(call, "%s", error);
	else
		reply_stats(&call->reply, call->argv[1], row);
	call_finish(call);
}

/* ---- TASK.STATS of all queues ---- */

struct walk_op {
	struct call *call;
	int partition;
	char after[ID_MAX + 1]; /* names of this partition up to it have been told */
	int64_t wanted;         /* queues that the page still takes */
	struct reply items;
	size_t listed;
	/* Of this partition: the first names behind `after`, in their order, at most `wanted`. */
	char **names;
	int64_t name_count, told;
	const char *error;
};

static void drop_names(struct walk_op *op)
{
	for (int64_t i = 0; i < op->name_count; i++)
		free(op->names[i]);
	op->name_count = op->told = 0;
}

static void walk_end(struct walk_op *op, struct bytes cursor)
{
	struct call *call = op->call;
	struct reply *r = &call->reply;

	if (op->error != NULL) {
		(void)call_fail(call, "%s", op->error);
	} else {
		reply_array(r, 2);
		reply_bulk(r, cursor);
		reply_array(r, op->listed);
		buf_add_bytes(&r->buf, buf_bytes(&op->items.buf));
	}
	drop_names(op);
	free(op->names);
	reply_release(&op->items);
	free(op);
	call_finish(call);
}

/* Into the order of the names, if it belongs to the page and is not there yet: a scan may tell a name twice.
 */
static void add_name(struct walk_op *op, struct bytes name)
{
	char text[ID_MAX + 1];
	int64_t at = op->name_count;

	if (!id_valid(name) || strcmp(bytes_copy(text, sizeof(text), name), op->after) <= 0)
		return;
	while (at > 0 && strcmp(op->names[at - 1], text) > 0)
		at--;
	if (at == op->wanted || (at > 0 && strcmp(op->names[at - 1], text) == 0))
		return;
	if (op->name_count == op->wanted)
		free(op->names[--op->name_count]);
	memmove(op->names + at + 1, op->names + at, (size_t)(op->name_count - at) * sizeof(*op->names));
	op->names[at] = xstrdup(text);
	op->name_count++;
}

static bool scan(struct walk_op *op, struct bytes from);

/* To the next partition, or to the end of the walk or of the page. */
static void go_on(struct walk_op *op)
{
	char cursor[ID_MAX + 8] = "";

	if (op->error == NULL && op->wanted == op->told)
		snprintf(cursor, sizeof(cursor), "%d:%s", op->partition, op->names[op->told - 1]);
	op->wanted -= op->told;
	drop_names(op);
	op->after[0] = '\0';
	if (op->error == NULL && op->wanted > 0 && ++op->partition < keys_partitions() &&
		scan(op, BYTES_LIT("0")))
		return;
	walk_end(op, bytes_of(cursor));
}

static void on_stats(struct bytes row, const char *error, void *arg)
{
	struct walk_op *op = arg;

	if (error != NULL)
		op->error = error;
	else
		reply_stats(&op->items, bytes_of(op->names[op->told]), row);
	op->listed++;
	if (++op->told == op->name_count)
		go_on(op);
}

static void on_names(const struct redisReply *reply, void *arg)
{
	struct walk_op *op = arg;
	const struct redisReply *names = redis_at(reply, 1);
	struct bytes next = redis_text(redis_at(reply, 0));

	op->error = redis_wrong_type(reply) ? "CORRUPT the set of queues is damaged in Redis: TASK.CHECK"
					    : redis_reply_error(reply);
	for (size_t i = 0; i < redis_count(names); i++)
		add_name(op, redis_text(redis_at(names, i)));
	if (op->error == NULL && !bytes_eq(next, BYTES_LIT("0")) && scan(op, next))
		return;
	if (op->error != NULL || op->name_count == 0) {
		go_on(op);
		return;
	}
	for (int64_t i = 0, count = op->name_count; i < count; i++)
		task_stats_send(op->call->app->task_reads, bytes_of(op->names[i]), on_stats, op);
}

/* False when it could not be sent: op->error says why. */
static bool scan(struct walk_op *op, struct bytes from)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "SSCAN");
	key_part(&key, op->partition, "queues");
	redis_arg_key(&a, &key);
	redis_arg(&a, from);
	redis_arg_str(&a, "COUNT");
	redis_arg_str(&a, SCAN_COUNT);
	buf_release(&key);
	enum redis_sent sent = redis_query(op->call->app->redis, &a, on_names, op);
	if (sent != REDIS_SENT)
		op->error = redis_sent_error(sent);
	return sent == REDIS_SENT;
}

static bool check_cursor(struct call *call, struct bytes cursor, struct walk_op *op)
{
	struct bytes f[2];
	int64_t partition = 0;

	if (cursor.n == 0)
		return true;
	if (bytes_split(cursor, ':', f, 2) == 2 && bytes_to_i64(f[0], &partition) && partition >= 0 &&
		partition < keys_partitions() && id_valid(f[1])) {
		op->partition = (int)partition;
		bytes_copy(op->after, sizeof(op->after), f[1]);
		return true;
	}
	(void)call_fail(call, "ERR invalid CURSOR, expected one that TASK.STATS gave");
	return false;
}

static enum verdict stats_of_all(struct call *call)
{
	struct bytes cursor = {0}, count = {0};
	struct walk_op o = {.call = call};
	const struct option options[] = {{"CURSOR", &cursor, NULL}, {"COUNT", &count, NULL}, {0}};

	if (options_read(call, 1, options) != 0 || !check_count(call, count, &o.wanted) ||
		!check_cursor(call, cursor, &o))
		return CALL_DONE;
	struct walk_op *op = xmalloc(sizeof(*op));
	*op = o;
	op->names = xcalloc((size_t)op->wanted + 1, sizeof(*op->names));
	reply_init(&op->items, call->reply.protocol);
	if (scan(op, BYTES_LIT("0")))
		return CALL_WAIT;
	(void)call_fail(call, "%s", op->error);
	free(op->names);
	reply_release(&op->items);
	free(op);
	return CALL_DONE;
}

enum verdict task_stats_exec(struct call *call)
{
	if (call->argc != 2)
		return stats_of_all(call);
	if (!check_queue(call, call->argv[1]))
		return CALL_DONE;
	task_stats_send(call->app->task_reads, call->argv[1], on_queue, call);
	return CALL_WAIT;
}
