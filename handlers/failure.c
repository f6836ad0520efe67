/* SPDX-License-Identifier: MIT */
#include "handlers/failure.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "persist/failure_retry.h"
#include "persist/mysql_link.h"
#include "persist/mysql_text.h"
#include "rules/when.h"

static const char away[] = "UNAVAILABLE MySQL is away, nothing was done; try again";

/* ---- LIST ---- */

static const char *const columns[] = {
	"id", "kind", "day", "dept", "employee", "reason", "detail", "owner", "attempts", "created"};

static bool is_number(size_t column)
{
	return column == 8 || column == 9;
}

struct list_op {
	struct call *call;
	int64_t count;
};

static void on_list(const struct mysql_result *result, void *arg)
{
	struct list_op *op = arg;
	struct call *call = op->call;
	struct reply *r = &call->reply;
	int64_t n;

	if (result->outcome != SQL_OK) {
		(void)call_fail(call, "%s", away);
	} else {
		bool more = result->rows == (size_t)op->count;
		reply_array(r, 2);
		reply_bulk(r, more ? mysql_cell(result, result->rows - 1, 0) : (struct bytes){"", 0});
		reply_array(r, result->rows);
		for (size_t i = 0; i < result->rows; i++) {
			reply_map(r, ARRAY_LEN(columns));
			for (size_t c = 0; c < ARRAY_LEN(columns); c++) {
				struct bytes cell = mysql_cell(result, i, c);
				if (is_number(c) && bytes_to_i64(cell, &n))
					reply_field_int(r, columns[c], n);
				else
					reply_field_bulk(
						r, columns[c], cell.p != NULL ? cell : (struct bytes){"", 0});
			}
		}
	}
	free(op);
	call_finish(call);
}

enum verdict failure_list_exec(struct call *call)
{
	struct bytes day_text = {0}, dept = {0}, cursor = {0}, count_text = {0};
	const struct option options[] = {{"DAY", &day_text, NULL}, {"DEPT", &dept, NULL},
		{"CURSOR", &cursor, NULL}, {"COUNT", &count_text, NULL}, {0}};
	int64_t after = 0, count;
	int32_t day;
	char date[DATE_TEXT];

	if (options_read(call, 1, options) != 0 || !check_day(call, day_text, &day) ||
		!check_count(call, count_text, &count) || (dept.p != NULL && !check_dept(call, dept)))
		return CALL_DONE;
	if (cursor.n > 0 && !bytes_to_i64(cursor, &after))
		return call_fail(call, "ERR invalid CURSOR, expected one that FAILURE.LIST gave");
	struct buf sql = BUF_INIT;
	buf_addf(&sql,
		"SELECT id,kind,work_date,dept,employee,reason,detail,owner,attempts,"
		"CAST(UNIX_TIMESTAMP(created)*1000 AS SIGNED) FROM persist_failure WHERE state='open' AND "
		"id>%lld",
		(long long)after);
	if (day_text.p != NULL)
		buf_addf(&sql, " AND work_date='%s'", date_format(day, date));
	if (dept.p != NULL) {
		buf_add_str(&sql, " AND dept=");
		mysql_add_quoted(&sql, dept);
	}
	buf_addf(&sql, " ORDER BY id LIMIT %lld", (long long)count);
	struct list_op *op = xcalloc(1, sizeof(*op));
	op->call = call;
	op->count = count;
	mysql_link_query(call->app->work_sql, &sql, on_list, op);
	return CALL_WAIT;
}

/* ---- RETRY and DISCARD ---- */

static bool read_id(struct call *call, int64_t *ret)
{
	if (bytes_to_i64(call->argv[1], ret) && *ret > 0)
		return true;
	(void)call_fail(call, "ERR invalid failure id, expected a number as FAILURE.LIST gives it");
	return false;
}

static void on_retried(int64_t written, const char *error, void *arg)
{
	struct call *call = arg;

	if (error != NULL)
		(void)call_fail(call, "%s", error);
	else
		reply_int(&call->reply, written);
	call_finish(call);
}

enum verdict failure_retry_exec(struct call *call)
{
	int64_t id = 0;

	if (!bytes_is_word(call->argv[1], "ALL") && !read_id(call, &id))
		return CALL_DONE;
	failure_retry_start(call->app->work_sql, id, on_retried, call);
	return CALL_WAIT;
}

static void on_discarded(const struct mysql_result *result, void *arg)
{
	struct call *call = arg;

	if (result->outcome != SQL_OK)
		(void)call_fail(call, "%s", away);
	else
		reply_int(&call->reply, (int64_t)result->affected[0]);
	call_finish(call);
}

enum verdict failure_discard_exec(struct call *call)
{
	struct buf sql = BUF_INIT;
	int64_t id;

	if (!read_id(call, &id))
		return CALL_DONE;
	buf_add_str(&sql, "UPDATE persist_failure SET state='discarded',updated=");
	mysql_add_datetime(&sql, clock_wall_ms());
	buf_addf(&sql, " WHERE state='open' AND id=%lld", (long long)id);
	mysql_link_query(call->app->work_sql, &sql, on_discarded, call);
	return CALL_WAIT;
}
