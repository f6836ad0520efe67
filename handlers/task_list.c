/* SPDX-License-Identifier: MIT */
/* TASK.LIST: a walk over the places where the tasks of a queue are, each in its own order; lua/task_list.lua
 * does a page of it.
 *
 * A cursor is a place in that order, never an offset: the entry that was looked at last, in the script's
 * words, and a checksum over it and what was asked. So one that is broken, or belongs to another question, is
 * refused and the script need not check it. */
#include "handlers/task.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "handlers/task_view.h"
#include "persist/keys.h"
#include "persist/partition.h"
#include "persist/redis.h"
#include "persist/task_id.h"
#include "persist/task_read.h"
#include "rules/when.h"

/* What STATUS may say, and the places where such tasks are. */
static const struct {
	const char *word, *places;
} statuses[] = {{"pending", "ready delayed"}, {"ready", "ready"}, {"delayed", "delayed"},
	{"running", "running"}, {"success", "success"}, {"failed", "failed"}, {"timeout", "timeout"},
	{"cancelled", "cancelled"}};

#define EVERYWHERE "ready delayed running success failed timeout cancelled"

/* What is asked for: both ends of a range belong to it. */
struct ask {
	const char *places;
	int64_t priority_low, priority_high;
	int64_t seq_first, seq_last;
	struct bytes worker; /* empty: any */
};

struct list_op {
	struct call *call;
	struct ask ask;
};

/* ---- cursors ---- */

static uint16_t checksum(struct bytes queue, const struct ask *ask, struct bytes place)
{
	struct buf text = BUF_INIT;

	buf_addf(&text, "%.*s|%s|%lld|%lld|%lld|%lld|", (int)queue.n, queue.p, ask->places,
		(long long)ask->priority_low, (long long)ask->priority_high, (long long)ask->seq_first,
		(long long)ask->seq_last);
	buf_add_bytes(&text, ask->worker);
	buf_add_char(&text, '|');
	buf_add_bytes(&text, place);
	uint16_t sum = partition_crc16(buf_bytes(&text));
	buf_release(&text);
	return sum;
}

static void reply_cursor(struct reply *r, const struct list_op *op, struct bytes place)
{
	struct buf cursor = BUF_INIT;

	buf_add_bytes(&cursor, place);
	if (place.n > 0)
		buf_addf(&cursor, ":%04x", checksum(op->call->argv[1], &op->ask, place));
	reply_bulk(r, buf_bytes(&cursor));
	buf_release(&cursor);
}

/* The place in a cursor. False, and the error in the reply, when it is none of this question's. */
static bool read_cursor(
	struct call *call, const struct ask *ask, struct bytes cursor, struct bytes *ret_place)
{
	char sum[8];
	struct bytes place = {cursor.p, cursor.n > 5 ? cursor.n - 5 : 0};

	*ret_place = place;
	if (cursor.n == 0)
		return true;
	snprintf(sum, sizeof(sum), ":%04x", checksum(call->argv[1], ask, place));
	if (place.n > 0 && bytes_eq((struct bytes){cursor.p + place.n, 5}, bytes_of(sum)))
		return true;
	(void)call_fail(call, "ERR invalid CURSOR, expected one that TASK.LIST gave for the same question");
	return false;
}

/* ---- the page ---- */

static void reply_page(const struct list_op *op, const struct redisReply *page)
{
	struct reply *r = &op->call->reply, items;
	struct task_row row;
	size_t listed = 0;

	reply_init(&items, r->protocol);
	for (size_t i = 1; i < redis_count(page); i++) {
		if (!task_row_read(redis_text(redis_at(page, i)), &row))
			continue; /* damaged: TASK.GET says so */
		view_task(&items, &row, false);
		listed++;
	}
	reply_array(r, 2);
	reply_cursor(r, op, redis_text(redis_at(page, 0)));
	reply_array(r, listed);
	buf_add_bytes(&r->buf, buf_bytes(&items.buf));
	reply_release(&items);
}

static void on_page(const struct redisReply *page, void *arg)
{
	struct list_op *op = arg;
	struct call *call = op->call;

	if (redis_wrong_type(page))
		(void)call_fail(call, "CORRUPT a key of the queue is damaged in Redis: TASK.CHECK");
	else if (redis_reply_error(page) != NULL)
		(void)call_fail(call, "%s", redis_reply_error(page));
	else
		reply_page(op, page);
	free(op);
	call_finish(call);
}

static enum redis_sent send(struct list_op *op, int64_t count, struct bytes place)
{
	struct redis_args a;
	struct buf key = BUF_INIT;
	const struct ask *ask = &op->ask;

	redis_args_init(&a);
	key_queue_info(&key, op->call->argv[1]);
	redis_arg_key(&a, &key);
	redis_arg_str(&a, ask->places);
	redis_arg_i64(&a, count);
	redis_arg_i64(&a, ask->priority_low);
	redis_arg_i64(&a, ask->priority_high);
	redis_arg_i64(&a, ask->seq_first);
	redis_arg_i64(&a, ask->seq_last);
	redis_arg(&a, ask->worker);
	redis_arg(&a, place);
	buf_release(&key);
	return redis_eval(op->call->app->redis, SCRIPT_TASK_LIST, 1, &a, on_page, op);
}

/* ---- the question ---- */

static bool check_status(struct call *call, struct bytes text, struct ask *ask)
{
	if (text.p == NULL)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		if (!bytes_is_word(text, statuses[i].word))
			continue;
		ask->places = statuses[i].places;
		return true;
	}
	(void)call_fail(call,
		"ERR invalid STATUS, expected pending, ready, delayed, running, success, failed, "
		"timeout or cancelled");
	return false;
}

static bool check_priorities(struct call *call, const struct bytes text[2], struct ask *ask)
{
	if (!check_number(call, "PRIORITY", text[0], 1, 10, &ask->priority_low) ||
		!check_number(call, "PRIORITY", text[1], 1, 10, &ask->priority_high))
		return false;
	if (ask->priority_low <= ask->priority_high)
		return true;
	(void)call_fail(call, "ERR invalid PRIORITY, expected the lower number first");
	return false;
}

static bool check_submitted(struct call *call, const struct bytes text[2], struct ask *ask)
{
	int64_t from, to;

	if (text[0].p == NULL)
		return true;
	if (!when_parse(text[0], &from) || !when_parse(text[1], &to) || from > to) {
		(void)call_fail(
			call, "ERR invalid SUBMITTED, expected two times, the earlier first: " WHEN_EXPECTED);
		return false;
	}
	ask->seq_first = task_seq_of(from);
	ask->seq_last = task_seq_of(to + 1) - 1;
	return true;
}

enum verdict task_list_exec(struct call *call)
{
	struct bytes status = {0}, priority[2] = {{0}}, submitted[2] = {{0}}, cursor = {0}, count = {0},
		     place;
	struct ask ask = {.places = EVERYWHERE,
		.priority_low = 1,
		.priority_high = 10,
		.seq_last = task_seq_of(INT64_MAX)};
	const struct option options[] = {{"STATUS", &status, NULL},
		{"PRIORITY", &priority[0], NULL, &priority[1]},
		{"SUBMITTED", &submitted[0], NULL, &submitted[1]}, {"WORKER", &ask.worker, NULL},
		{"CURSOR", &cursor, NULL}, {"COUNT", &count, NULL}, {0}};
	int64_t most;

	if (!check_queue(call, call->argv[1]) || options_read(call, 2, options) != 0 ||
		(ask.worker.p != NULL && !check_worker(call, ask.worker)))
		return CALL_DONE;
	if (ask.worker.p != NULL)
		ask.places = "running";
	if (!check_status(call, status, &ask) || !check_priorities(call, priority, &ask) ||
		!check_submitted(call, submitted, &ask) || !check_count(call, count, &most) ||
		!read_cursor(call, &ask, cursor, &place))
		return CALL_DONE;
	struct list_op *op = xmalloc(sizeof(*op));
	*op = (struct list_op){.call = call, .ask = ask};
	enum redis_sent sent = send(op, most, place);
	if (sent == REDIS_SENT)
		return CALL_WAIT;
	free(op);
	return call_fail(call, "%s", redis_sent_error(sent));
}
