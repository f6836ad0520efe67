/* SPDX-License-Identifier: MIT */
#include "persist/revision.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "persist/day_row.h"
#include "persist/mysql_text.h"
#include "rules/when.h"

void revision_rows_init(struct revision_rows *r)
{
	r->inserts[0].head = day_row_head;
	r->inserts[0].tail = day_row_revise_tail;
	r->inserts[1].head =
		"INSERT INTO attendance_revision (work_date,employee,revision,at,cause,cause_ref,old_status,"
		"new_status,old_in,new_in,old_out,new_out,old_punch_set,new_punch_set) VALUES";
	r->inserts[1].tail = "ON DUPLICATE KEY UPDATE revision=VALUES(revision)";
}

void revision_rows_release(struct revision_rows *r)
{
	sql_rows_release(&r->inserts[0]);
	sql_rows_release(&r->inserts[1]);
	sql_rows_release(&r->checks);
}

static void add_instant(struct buf *out, int64_t ms)
{
	mysql_add_datetime(out, ms);
	buf_add_char(out, ',');
}

static void add_quoted(struct buf *out, struct bytes value)
{
	mysql_add_quoted(out, value);
	buf_add_char(out, ',');
}

static void add_record(
	struct sql_rows *rows, const struct revision_row *row, const char *date, int64_t now_ms)
{
	struct buf *out = &rows->text;

	buf_addf(out, "('%s',", date);
	add_quoted(out, row->employee);
	buf_addf(out, "%lld,", (long long)row->revision);
	add_instant(out, now_ms);
	buf_addf(out, "'%s',", row->cause);
	add_quoted(out, row->cause_ref);
	add_quoted(out, row->old_status);
	add_quoted(out, bytes_of(attendance_name(row->new.status)));
	add_instant(out, row->old.in);
	add_instant(out, row->new.in);
	add_instant(out, row->old.out);
	add_instant(out, row->new.out);
	add_quoted(out, row->old_set);
	mysql_add_quoted(out, row->new_set);
	buf_add_char(out, ')');
	sql_row_end(rows);
}

static void add_check(struct sql_rows *rows, const struct revision_row *row, const char *date)
{
	buf_addf(&rows->text, "('%s',", date);
	add_quoted(&rows->text, row->employee);
	buf_addf(&rows->text, "%lld,", (long long)row->revision);
	mysql_add_quoted(&rows->text, row->new_set);
	buf_add_char(&rows->text, ')');
	sql_row_end(rows);
}

void revision_row_add(struct revision_rows *r, const struct revision_row *row, int64_t now_ms)
{
	char date[DATE_TEXT];

	date_format(row->day, date);
	day_row_add(&r->inserts[0], row->day, row->employee, row->dept, row->new_set, &row->new,
		row->revision, now_ms);
	add_record(&r->inserts[1], row, date, now_ms);
	add_check(&r->checks, row, date);
}

/* ---- the write ---- */

struct write {
	struct revision_rows *rows;
	void (*done)(bool ok, void *arg);
	void *arg;
};

/* An error, and with it the end of the transaction, unless every row is what it was made: a scalar subquery
 * of two rows is the one error that a SELECT can choose to have. */
static void add_assertion(struct buf *sql, void *arg)
{
	const struct write *w = arg;
	const struct sql_rows *checks = &w->rows->checks, *days = &w->rows->inserts[0];
	size_t count = 0;

	buf_add_str(sql, "SELECT IF((SELECT COUNT(*) FROM attendance_day WHERE "
			 "(work_date,employee,revision,punch_set) IN (('1970-01-01','',0,'')");
	for (size_t i = 0; i < checks->count; i++) {
		size_t begin = i == 0 ? 0 : checks->ends[i - 1];
		if (days->bad[i])
			continue;
		buf_add_char(sql, ',');
		buf_add(sql, checks->text.data + begin, checks->ends[i] - begin);
		count++;
	}
	buf_addf(sql, "))=%zu,1,(SELECT 1 UNION SELECT 2))", count);
}

static void on_bad(size_t insert, size_t row, unsigned code, const char *message, void *arg)
{
	(void)arg;
	log_error("persist revision event=bad-row insert=%zu row=%zu code=%u message=\"%s\"", insert, row,
		code, message);
}

static void on_written(enum sql_outcome outcome, const char *message, const uint64_t *affected, void *arg)
{
	struct write *w = arg;

	(void)affected;
	if (outcome != SQL_OK)
		log_warning("persist revision event=failed outcome=%s message=\"%s\"",
			sql_outcome_name(outcome), message);
	w->done(outcome == SQL_OK, w->arg);
	free(w);
}

void revision_rows_write(
	struct revision_rows *r, struct mysql_link *link, void (*done)(bool ok, void *arg), void *arg)
{
	struct write *w = xmalloc(sizeof(*w));

	*w = (struct write){r, done, arg};
	struct sql_write write = {.inserts = r->inserts,
		.insert_count = 2,
		.extra = add_assertion,
		.bad = on_bad,
		.done = on_written,
		.arg = w};
	sql_write_start(link, &write);
}
