/* SPDX-License-Identifier: MIT */
/* STATUS: today from the employee's record, an open day from its map, a closed one from MySQL. */
#include "handlers/attendance.h"

#include <stdlib.h>

#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/attendance_view.h"
#include "handlers/employee.h"
#include "handlers/options.h"
#include "persist/directory.h"
#include "persist/keys.h"
#include "persist/mysql_link.h"
#include "persist/mysql_text.h"
#include "persist/record.h"
#include "persist/redis.h"
#include "persist/tree.h"
#include "rules/when.h"
#include "rules/workday.h"

struct status_op {
	struct call *call;
	int32_t day, today;
	int tries;
	char home[ID_MAX + 1];
	struct buf record; /* the employee's, once it is read */
};

static void end(struct status_op *op, const char *error)
{
	struct call *call = op->call;

	if (error != NULL)
		(void)call_fail(call, "%s", error);
	buf_release(&op->record);
	free(op);
	call_finish(call);
}

static void reply_with(struct status_op *op, struct bytes dept, const struct judgement *j)
{
	struct reply *r = &op->call->reply;
	struct employee_record record = {.name = {"", 0}};
	struct buf path = BUF_INIT;
	char date[DATE_TEXT];
	struct bytes gone_path = dept, gone_name;
	const struct dept *d = tree_find(op->call->app->tree, dept);

	/* It was parsed before. */
	(void)!record_parse_employee(buf_bytes(&op->record), &record);
	if (d != NULL)
		view_path(&path, d);
	else
		(void)!tree_gone(op->call->app->tree, dept, &gone_path, &gone_name);
	reply_map(r, 5 + VIEW_FIELDS);
	reply_field_bulk(r, "id", op->call->argv[1]);
	reply_field_bulk(r, "name", record.name);
	reply_field_bulk(r, "dept", dept);
	reply_field_bulk(r, "path", d != NULL ? buf_bytes(&path) : gone_path);
	reply_field_str(r, "day", date_format(op->day, date));
	view_judgement(r, j);
	buf_release(&path);
	end(op, NULL);
}

static void reply_set(struct status_op *op, struct bytes dept, struct bytes set)
{
	struct shift shift = workday_shift(op->day);
	struct judgement j;

	if (punch_judge(set, &shift, false, &j) != 0)
		end(op, "ERR the punches of this employee are damaged in Redis");
	else
		reply_with(op, dept, &j);
}

static void on_row(const struct mysql_result *result, void *arg)
{
	struct status_op *op = arg;
	struct judgement j;
	char dept[ID_MAX + 1];

	if (result->outcome != SQL_OK) {
		end(op, "UNAVAILABLE the day is closed and MySQL, which has it, is away; send it again");
	} else if (result->rows == 0) {
		end(op, "UNKNOWN nothing is recorded of this employee on that day");
	} else {
		view_row(result, 0, &j);
		bytes_copy(dept, sizeof(dept), mysql_cell(result, 0, 1));
		reply_with(op, bytes_of(dept), &j);
	}
}

static void ask_mysql(struct status_op *op)
{
	struct buf sql = BUF_INIT;
	char date[DATE_TEXT];

	buf_addf(&sql, "SELECT " VIEW_COLUMNS " FROM attendance_day WHERE work_date='%s' AND employee=",
		date_format(op->day, date));
	mysql_add_quoted(&sql, op->call->argv[1]);
	mysql_link_query(op->call->app->work_sql, &sql, on_row, op);
}

static void on_map(const struct redisReply *reply, void *arg)
{
	struct status_op *op = arg;

	if (redis_reply_error(reply) != NULL)
		end(op, redis_reply_error(reply));
	else if (!redis_is_null(redis_at(reply, 0)))
		reply_set(op, bytes_of(op->home), redis_text(redis_at(reply, 0)));
	else if (op->day >= op->today)
		reply_set(op, bytes_of(op->home), (struct bytes){"", 0});
	else
		ask_mysql(op);
}

static void ask_map(struct status_op *op, struct bytes dept)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "HMGET");
	key_day(&key, dept, op->day);
	redis_arg_key(&a, &key);
	redis_arg(&a, op->call->argv[1]);
	buf_release(&key);
	enum redis_sent sent = redis_query(op->call->app->redis, &a, on_map, op);
	if (sent != REDIS_SENT)
		end(op, redis_sent_error(sent));
}

static void ask_record(struct status_op *op);

static void on_home(struct bytes dept, const char *error, void *arg)
{
	struct status_op *op = arg;

	if (error != NULL || dept.n == 0) {
		end(op, error != NULL ? error : "UNKNOWN no such employee");
		return;
	}
	bytes_copy(op->home, sizeof(op->home), dept);
	ask_record(op);
}

static void on_record(const struct redisReply *reply, void *arg)
{
	struct status_op *op = arg;
	struct employee_record record;
	char date[DATE_TEXT];

	if (redis_reply_error(reply) != NULL) {
		end(op, redis_reply_error(reply));
		return;
	}
	if (redis_is_null(reply) && op->tries++ == 0) {
		/* Moved since the look-up. */
		directory_lookup(op->call->app->directory, op->call->argv[1], on_home, op);
		return;
	}
	buf_add_bytes(&op->record, redis_text(reply));
	if (redis_is_null(reply) || !record_parse_employee(buf_bytes(&op->record), &record)) {
		end(op, "UNKNOWN no such employee");
		return;
	}
	bool same = bytes_eq(record.day, bytes_of(date_format(op->day, date)));
	if (op->day == op->today)
		reply_set(op, same ? record.dept : bytes_of(op->home),
			same ? record.set : (struct bytes){"", 0});
	else
		ask_map(op, same ? record.dept : bytes_of(op->home));
}

static enum redis_sent send_record(struct status_op *op)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "HGET");
	key_emps(&key, bytes_of(op->home));
	redis_arg_key(&a, &key);
	redis_arg(&a, op->call->argv[1]);
	buf_release(&key);
	return redis_query(op->call->app->redis, &a, on_record, op);
}

static void ask_record(struct status_op *op)
{
	enum redis_sent sent = send_record(op);

	if (sent != REDIS_SENT)
		end(op, redis_sent_error(sent));
}

enum verdict status_exec(struct call *call)
{
	struct bytes day_text = {0}, home;
	const struct option options[] = {{"DAY", &day_text, NULL}, {0}};
	int32_t day;

	if (!employee_home(call, &home) || options_read(call, 2, options) != 0 ||
		!check_day(call, day_text, &day))
		return CALL_DONE;
	struct status_op *op = xcalloc(1, sizeof(*op));
	op->call = call;
	op->day = day;
	op->today = app_today();
	bytes_copy(op->home, sizeof(op->home), home);
	enum redis_sent sent = send_record(op);
	if (sent == REDIS_SENT)
		return CALL_WAIT;
	free(op);
	return call_fail(call, "%s", redis_sent_error(sent));
}
