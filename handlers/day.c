/* SPDX-License-Identifier: MIT */
/* All three end with the state of the day: from Redis what is open, from MySQL what has been closed. */
#include "handlers/day.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/close_ask.h"
#include "handlers/options.h"
#include "persist/closer.h"
#include "persist/day_open.h"
#include "persist/keys.h"
#include "persist/mysql_link.h"
#include "persist/redis.h"
#include "persist/tree.h"
#include "rules/when.h"
#include "rules/workday.h"

#define CLOSE_WAIT_MS 60000 /* DAY.CLOSE answers after so long even while the close goes on */
#define INIT_AHEAD    1     /* days: who is hired, moved or removed is so in the maps of today and tomorrow */

struct day_op {
	struct call *call;
	int32_t day;
	int waiting; /* replies to come */
	const char *error;
	int64_t open, closing, closed; /* departments by state in Redis */
	int64_t expected;
	int partition; /* DAY.INIT: the next one */
};

static void end(struct day_op *op, const char *error)
{
	struct call *call = op->call;

	if (error != NULL)
		(void)call_fail(call, "%s", error);
	free(op);
	call_finish(call);
}

/* ---- the state ---- */

static const char *state_of(const struct day_op *op, int64_t recorded)
{
	if (op->closing > 0 || (op->open > 0 && op->closed > 0))
		return "closing";
	if (op->open > 0)
		return "open";
	return op->closed > 0 || recorded > 0 ? "closed" : "none";
}

static void on_sums(const struct mysql_result *result, void *arg)
{
	struct day_op *op = arg;
	struct reply *r = &op->call->reply;
	char date[DATE_TEXT];
	int64_t sums[5] = {0}; /* departments, expected, written, failed, absent */
	bool known = result->outcome == SQL_OK && result->rows == 1;

	for (size_t i = 0; known && i < ARRAY_LEN(sums); i++)
		(void)!bytes_to_i64(mysql_cell(result, 0, i), &sums[i]);
	int64_t in_redis = op->open + op->closing + op->closed;
	reply_map(r, 8);
	reply_field_str(r, "day", date_format(op->day, date));
	reply_field_str(r, "state", state_of(op, sums[0]));
	reply_field_int(r, "departments", in_redis > sums[0] ? in_redis : sums[0]);
	reply_field_int(r, "expected", sums[1] + op->expected);
	reply_field_int(r, "written", sums[2]);
	reply_field_int(r, "failed", sums[3]);
	reply_field_int(r, "absent", sums[4]);
	/* Without MySQL the numbers of what is closed are missing, and that must not look like zero. */
	reply_field_str(r, "history", known ? "ok" : "unavailable");
	end(op, NULL);
}

static void ask_sums(struct day_op *op)
{
	struct buf sql = BUF_INIT;
	char date[DATE_TEXT];

	if (op->error != NULL) {
		end(op, op->error);
		return;
	}
	buf_addf(&sql,
		"SELECT COUNT(*),CAST(IFNULL(SUM(expected),0) AS SIGNED),CAST(IFNULL(SUM(written),0) AS "
		"SIGNED),"
		"CAST(IFNULL(SUM(failed),0) AS SIGNED),CAST(IFNULL(SUM(absent),0) AS SIGNED) FROM day_close "
		"WHERE work_date='%s'",
		date_format(op->day, date));
	mysql_link_query(op->call->app->work_sql, &sql, on_sums, op);
}

static void settle(struct day_op *op, const char *error)
{
	if (error != NULL)
		op->error = error;
	if (--op->waiting == 0)
		ask_sums(op);
}

static void on_size(const struct redisReply *reply, void *arg)
{
	struct day_op *op = arg;

	/* The marker is no employee. */
	if (redis_int(reply) > 0)
		op->expected += redis_int(reply) - 1;
	/* A map of another type has nobody, and must not hide the rest of the day. */
	settle(op, redis_wrong_type(reply) ? NULL : redis_reply_error(reply));
}

static bool ask(struct day_op *op, const char *command, struct buf *key, redis_cb cb)
{
	struct redis_args a;

	redis_args_init(&a);
	redis_arg_str(&a, command);
	redis_arg_key(&a, key);
	enum redis_sent sent = redis_query(op->call->app->redis, &a, cb, op);
	if (sent == REDIS_SENT)
		op->waiting++;
	else
		op->error = redis_sent_error(sent);
	return sent == REDIS_SENT;
}

static void on_days(const struct redisReply *reply, void *arg)
{
	struct day_op *op = arg;
	struct buf key = BUF_INIT;
	int32_t day;

	for (size_t i = 0; i + 1 < redis_count(reply); i += 2) {
		struct bytes f[2];
		struct bytes state = redis_text(redis_at(reply, i + 1));
		if (bytes_split(redis_text(redis_at(reply, i)), ':', f, 2) != 2 || !date_parse(f[1], &day) ||
			day != op->day)
			continue;
		if (bytes_eq(state, BYTES_LIT("closed"))) {
			op->closed++;
		} else if (bytes_eq(state, BYTES_LIT("closing"))) {
			op->closing++;
		} else {
			op->open++;
			key_day(&key, f[0], day);
			ask(op, "HLEN", &key, on_size);
			buf_clear(&key);
		}
	}
	buf_release(&key);
	settle(op, redis_wrong_type(reply) ? NULL : redis_reply_error(reply));
}

static void tell_state(struct day_op *op)
{
	struct buf key = BUF_INIT;

	op->waiting = 1; /* ourselves, so that it can't reach zero before all are sent */
	for (int p = 0; p < keys_partitions(); p++) {
		key_days(&key, p);
		ask(op, "HGETALL", &key, on_days);
		buf_clear(&key);
	}
	buf_release(&key);
	if (--op->waiting == 0)
		ask_sums(op);
}

static struct day_op *op_new(struct call *call, int32_t day)
{
	struct day_op *op = xcalloc(1, sizeof(*op));

	op->call = call;
	op->day = day;
	return op;
}

enum verdict day_state_exec(struct call *call)
{
	int32_t day;

	if (!check_day(call, call->argv[1], &day))
		return CALL_DONE;
	if (!redis_ready(call->app->redis))
		return call_fail(call, "%s", redis_sent_error(REDIS_NOT_READY));
	tell_state(op_new(call, day));
	return CALL_WAIT;
}

/* ---- DAY.CLOSE ---- */

static void on_closed(bool ok, void *arg)
{
	struct day_op *op = arg;

	/* Done or not: the state says which. */
	(void)ok;
	tell_state(op);
}

/* A department that has been removed may have days that are not closed yet. */
static bool is_known(const struct tree *tree, struct bytes dept)
{
	struct bytes path, name;

	return tree_find(tree, dept) != NULL || tree_gone(tree, dept, &path, &name);
}

enum verdict day_close_exec(struct call *call)
{
	struct bytes dept = {0};
	const struct option options[] = {{"DEPT", &dept, NULL}, {0}};
	int32_t day;
	char date[DATE_TEXT];

	if (!check_day(call, call->argv[1], &day) || options_read(call, 2, options) != 0)
		return CALL_DONE;
	if (dept.p != NULL && !check_dept(call, dept))
		return CALL_DONE;
	if (dept.p != NULL && !is_known(call->app->tree, dept))
		return call_fail(call, "UNKNOWN no such department '%.*s'", (int)dept.n, dept.p);
	if (clock_wall_ms() < workday_end(day))
		return call_fail(call, "CONFLICT the window of %s is open until %lld, nothing was done",
			date_format(day, date), (long long)workday_end(day));
	if (!redis_ready(call->app->redis))
		return call_fail(call, "%s", redis_sent_error(REDIS_NOT_READY));
	close_ask_others(call->app, day, dept);
	closer_request(call->app->closer, day, dept.p != NULL ? dept : (struct bytes){"", 0}, CLOSE_WAIT_MS,
		on_closed, op_new(call, day));
	return CALL_WAIT;
}

/* ---- DAY.INIT ---- */

static void init_next(struct day_op *op);

static void on_initialised(bool ok, int64_t maps, void *arg)
{
	(void)maps;
	if (ok)
		init_next(arg);
	else
		end(arg, "UNAVAILABLE Redis was lost under the request; send it again");
}

static void init_next(struct day_op *op)
{
	if (op->partition < keys_partitions())
		day_open_start(op->call->app->redis, op->partition++, op->day, on_initialised, op);
	else
		tell_state(op);
}

enum verdict day_init_exec(struct call *call)
{
	int32_t day, today = app_today();

	if (!check_day(call, call->argv[1], &day))
		return CALL_DONE;
	if (day < today)
		return call_fail(call, "CLOSED the day is over; only today and days to come can be readied");
	if (day > today + INIT_AHEAD)
		return call_fail(call, "TIME the day is too far ahead, expected tomorrow at the latest");
	if (!redis_ready(call->app->redis))
		return call_fail(call, "%s", redis_sent_error(REDIS_NOT_READY));
	init_next(op_new(call, day));
	return CALL_WAIT;
}
