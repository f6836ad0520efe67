/* SPDX-License-Identifier: MIT */
#include "persist/close_batch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/close_end.h"
#include "persist/close_merge.h"
#include "persist/day_row.h"
#include "persist/lease.h"
#include "persist/mysql_text.h"
#include "persist/sql_writer.h"
#include "persist/tree.h"
#include "rules/when.h"
#include "rules/workday.h"

enum insert { INSERT_DAYS, INSERT_FAILURES, INSERT_COUNT };

struct close_batch {
	const struct closer_deps *deps;
	int32_t day;
	struct shift shift;
	struct sql_rows inserts[INSERT_COUNT];
	struct close_row *rows; /* one for each of INSERT_DAYS */
	size_t row_cap;
	struct buf text; /* what the rows point into, by offset */
	struct close_item **complete, **also;
	size_t complete_count, also_count;
	void (*done)(bool ok, void *arg);
	void *arg;
};

struct close_batch *close_batch_new(const struct closer_deps *deps, int32_t day)
{
	struct close_batch *b = xcalloc(1, sizeof(*b));

	b->deps = deps;
	b->day = day;
	b->shift = workday_shift(day);
	b->inserts[INSERT_DAYS].head = day_row_head;
	b->inserts[INSERT_DAYS].tail = day_row_keep_tail;
	b->inserts[INSERT_FAILURES].head = failure_row_head;
	b->inserts[INSERT_FAILURES].tail = failure_row_tail;
	return b;
}

void close_batch_free(struct close_batch *b)
{
	if (b == NULL)
		return;
	for (int i = 0; i < INSERT_COUNT; i++)
		sql_rows_release(&b->inserts[i]);
	buf_release(&b->text);
	free(b->rows);
	free(b->complete);
	free(b->also);
	free(b);
}

size_t close_batch_rows(const struct close_batch *b)
{
	return b->inserts[INSERT_DAYS].count + b->inserts[INSERT_FAILURES].count;
}

void close_field(struct buf *out, const struct close_item *item)
{
	char date[DATE_TEXT];

	buf_addf(out, "%s:%s", item->dept, date_format(item->day, date));
}

static void add_failure(struct close_batch *b, struct close_item *item, struct bytes employee,
	struct bytes set, const char *reason, const char *detail)
{
	struct buf ref = BUF_INIT;
	const struct dept *dept = tree_find(b->deps->tree, bytes_of(item->dept));
	char date[DATE_TEXT];

	buf_addf(&ref, "%s/%s/", date_format(item->day, date), item->dept);
	buf_add_bytes(&ref, employee);
	struct failure_row f = {.kind = "day",
		.ref = buf_bytes(&ref),
		.day = item->day,
		.dept = bytes_of(item->dept),
		.employee = employee,
		.payload = set,
		.reason = reason,
		.detail = detail,
		.owner = dept != NULL ? bytes_of(dept->manager) : (struct bytes){"", 0}};
	failure_row_add(&b->inserts[INSERT_FAILURES], &f, clock_wall_ms());
	log_warning("persist close event=failure date=%s dept=%s employee=%.*s reason=%s detail=\"%s\"", date,
		item->dept, (int)(employee.n < 80 ? employee.n : 80), employee.p, reason, detail);
	buf_release(&ref);
}

void close_batch_add(struct close_batch *b, struct close_item *item, struct bytes employee, struct bytes set)
{
	struct judgement j;

	if (punch_judge(set, &b->shift, true, &j) != 0) {
		item->failed++;
		add_failure(b, item, employee, set, "bad_value", "not a set of punches");
		return;
	}
	if (j.status == ATTENDANCE_ABSENT && !item->marked) {
		/* Without a whole roster nobody can be judged absent. */
		item->failed++;
		add_failure(b, item, employee, set, "no_roster", "the day map was never initialised");
		return;
	}
	size_t n = b->inserts[INSERT_DAYS].count;
	if (n == b->row_cap) {
		b->row_cap = b->row_cap == 0 ? 256 : b->row_cap * 2;
		b->rows = xrealloc(b->rows, b->row_cap * sizeof(b->rows[0]));
	}
	b->rows[n] = (struct close_row){.item = item, .employee_at = b->text.len, .employee_n = employee.n};
	buf_add_bytes(&b->text, employee);
	b->rows[n].set_at = b->text.len;
	b->rows[n].set_n = set.n;
	buf_add_bytes(&b->text, set);
	b->rows[n].status = j.status;
	b->rows[n].late = j.late_ms > 0;
	day_row_add(&b->inserts[INSERT_DAYS], b->day, employee, bytes_of(item->dept), set, &j, 1,
		clock_wall_ms());
}

void close_batch_no_map(struct close_batch *b, struct close_item *item, bool damaged)
{
	struct bytes none = {"", 0};

	if (damaged)
		add_failure(b, item, none, none, "bad_map", "the day map is no hash; it is kept as :damaged");
	else
		add_failure(b, item, none, none, "no_map", "the day map is missing; nobody was judged");
}

static void append(struct close_item ***list, size_t *count, struct close_item *item)
{
	*list = xrealloc(*list, (*count + 1) * sizeof(**list));
	(*list)[(*count)++] = item;
}

void close_batch_complete(struct close_batch *b, struct close_item *item)
{
	append(&b->complete, &b->complete_count, item);
}

/* ---- after the rows are committed ---- */

static void end_batch(struct close_batch *b, bool ok)
{
	b->done(ok, b->arg);
}

/* The counts of what this batch wrote, and its absentees. From here on it is not written again. */
static void count_rows(struct close_batch *b)
{
	const struct sql_rows *days = &b->inserts[INSERT_DAYS];

	for (size_t i = 0; i < days->count; i++) {
		struct close_row *row = &b->rows[i];
		if (days->bad[i] || row->elsewhere)
			continue;
		if (row->status == ATTENDANCE_ABSENT)
			buf_add(&row->item->absentees, b->text.data + row->employee_at, row->employee_n),
				buf_add_char(&row->item->absentees, '\0');
		row->item->absent += row->status == ATTENDANCE_ABSENT;
		row->item->late += row->late;
	}
	for (size_t i = 0; i < b->also_count; i++)
		b->also[i]->recorded = true;
	for (size_t i = 0; i < b->complete_count; i++)
		b->complete[i]->phase = CLOSE_WRITTEN;
	end_batch(b, true);
}

void close_batch_end(struct close_batch *b, void (*done)(void *arg), void *arg)
{
	close_end_start(b->deps, b->complete, b->complete_count, done, arg);
}

static void on_merged(bool ok, void *arg)
{
	struct close_batch *b = arg;

	if (ok)
		count_rows(b);
	else
		end_batch(b, false);
}

static void on_written(enum sql_outcome outcome, const char *message, const uint64_t *affected, void *arg)
{
	struct close_batch *b = arg;
	struct sql_rows *days = &b->inserts[INSERT_DAYS];

	if (outcome != SQL_OK) {
		log_warning("persist close event=write-failed outcome=%s message=\"%s\"",
			sql_outcome_name(outcome), message);
		end_batch(b, false);
	} else if (affected[INSERT_DAYS] != sql_rows_good(days)) {
		/* Some rows were there before: from a try whose end we did not see, or from punches that came
		 * late. */
		close_merge_start(
			b->deps->sql, b->day, b->rows, days->bad, days->count, b->text.data, on_merged, b);
	} else {
		count_rows(b);
	}
}

static void on_bad(size_t insert, size_t row, unsigned code, const char *message, void *arg)
{
	struct close_batch *b = arg;

	if (insert != INSERT_DAYS) {
		log_error("persist close event=failure-lost code=%u message=\"%s\"", code, message);
		return;
	}
	const struct close_row *r = &b->rows[row];
	r->item->failed++;
	r->item->written--;
	add_failure(b, r->item, (struct bytes){b->text.data + r->employee_at, r->employee_n},
		(struct bytes){b->text.data + r->set_at, r->set_n}, "refused", message);
}

static void add_ledger_row(struct buf *sql, const struct close_batch *b, const struct close_item *item)
{
	char date[DATE_TEXT];
	bool ended = item->phase == CLOSE_DONE;

	buf_addf(sql, "('%s',", date_format(item->day, date));
	mysql_add_quoted(sql, bytes_of(item->dept));
	buf_addf(sql, ",'%s',", ended ? "closed" : "written");
	mysql_add_quoted(sql, bytes_of(lease_name(b->deps->lease)));
	int64_t absent = item->absent;
	for (size_t i = 0; !ended && i < b->inserts[INSERT_DAYS].count; i++)
		absent += b->rows[i].item == item && !b->inserts[INSERT_DAYS].bad[i] &&
			  b->rows[i].status == ATTENDANCE_ABSENT;
	buf_addf(sql, ",%d,%lld,%lld,%lld,%lld,", item->marked, (long long)item->expected,
		(long long)item->written, (long long)item->failed, (long long)absent);
	mysql_add_datetime(sql, item->started_ms);
	buf_add_char(sql, ',');
	mysql_add_datetime(sql, ended ? item->finished_ms : -1);
	buf_add_char(sql, ')');
}

/* What says closed stays: the daemon that closed the department knows more than one that had lost it
 * meanwhile. */
#define KEEP(column) #column "=IF(phase='closed'," #column ",VALUES(" #column ")),"

/* The reconciling ledger: departments complete with this batch, and those whose end is to be recorded. */
static void add_ledger(struct buf *sql, void *arg)
{
	const struct close_batch *b = arg;

	buf_add_str(sql, "INSERT INTO day_close "
			 "(work_date,dept,phase,daemon,marker,expected,written,failed,absent,started,"
			 "finished) VALUES ");
	for (size_t i = 0; i < b->also_count + b->complete_count; i++) {
		if (i > 0)
			buf_add_char(sql, ',');
		add_ledger_row(sql, b, i < b->also_count ? b->also[i] : b->complete[i - b->also_count]);
	}
	buf_add_str(sql, " ON DUPLICATE KEY UPDATE " KEEP(daemon) KEEP(marker) KEEP(expected) KEEP(written)
				 KEEP(failed) KEEP(absent)
					 KEEP(finished) "phase=IF(phase='closed',phase,VALUES(phase))");
}

void close_batch_write(struct close_batch *b, struct close_item **also, size_t also_count,
	void (*done)(bool ok, void *arg), void *arg)
{
	b->done = done;
	b->arg = arg;
	free(b->also);
	b->also = NULL;
	b->also_count = 0;
	for (size_t i = 0; i < also_count; i++)
		append(&b->also, &b->also_count, also[i]);
	bool ledger = b->also_count + b->complete_count > 0;
	struct sql_write write = {.inserts = b->inserts,
		.insert_count = INSERT_COUNT,
		.bad = on_bad,
		.done = on_written,
		.extra = ledger ? add_ledger : NULL,
		.arg = b};
	sql_write_start(b->deps->sql, &write);
}
