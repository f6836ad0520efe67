/* SPDX-License-Identifier: MIT */
#include "persist/close_merge.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/close_batch.h"
#include "persist/day_row.h"
#include "persist/mysql_text.h"
#include "persist/revision.h"
#include "rules/when.h"
#include "rules/workday.h"

struct merge {
	struct mysql_link *link;
	int32_t day;
	struct close_row *rows;
	const bool *bad;
	size_t count;
	const char *text;
	void (*done)(bool ok, void *arg);
	void *arg;
	struct close_row **sorted; /* by employee */
	struct revision_rows revisions;
};

static const char *merge_text; /* of the sort that is running; one thread */

static void finish(struct merge *m, bool ok)
{
	revision_rows_release(&m->revisions);
	free(m->sorted);
	m->done(ok, m->arg);
	free(m);
}

static struct bytes employee_of(const struct close_row *row, const char *text)
{
	return (struct bytes){text + row->employee_at, row->employee_n};
}

static int compare(struct bytes a, struct bytes b)
{
	int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

static int by_employee(const void *a, const void *b)
{
	const struct close_row *const *x = a, *const *y = b;

	return compare(employee_of(*x, merge_text), employee_of(*y, merge_text));
}

/* Where this employee's rows begin in `sorted`; m->count when he has none. One who was removed and hired
 * elsewhere on the same day is in two maps, and may have both in this batch. */
static size_t find(const struct merge *m, struct bytes employee)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare(employee, employee_of(m->sorted[middle], m->text)) <= 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low < m->count && bytes_eq(employee_of(m->sorted[low], m->text), employee) ? low : m->count;
}

static void on_written(bool ok, void *arg)
{
	finish(arg, ok);
}

/* What the row says now. It counts in its own department and in no other. */
static void settle(struct close_row *row, const struct revision_row *r)
{
	row->status = r->new.status;
	row->late = r->new.late_ms > 0;
	row->elsewhere = !bytes_eq(r->dept, bytes_of(row->item->dept));
	row->item->expected -= row->elsewhere;
	row->item->written -= row->elsewhere;
}

/* One row that is there. Columns: employee, dept, status, punch_set, revision. */
static void look_at(struct merge *m, const struct mysql_result *result, size_t i, int64_t now)
{
	struct bytes old_set = mysql_cell(result, i, 3), employee = mysql_cell(result, i, 0);
	struct shift shift = workday_shift(m->day);
	struct revision_row r = {.day = m->day,
		.employee = employee,
		.dept = mysql_cell(result, i, 1),
		.old_status = mysql_cell(result, i, 2),
		.old_set = old_set,
		.cause = "close_merge"};
	struct buf set = BUF_INIT;
	size_t first = find(m, employee), end = first;

	if (first == m->count || !bytes_to_i64(mysql_cell(result, i, 4), &r.revision))
		return;
	day_row_union(&set, old_set);
	for (; end < m->count && bytes_eq(employee_of(m->sorted[end], m->text), employee); end++)
		day_row_union(&set, (struct bytes){m->text + m->sorted[end]->set_at, m->sorted[end]->set_n});
	r.new_set = buf_bytes(&set);
	if (punch_judge(old_set, &shift, true, &r.old) == 0 &&
		punch_judge(r.new_set, &shift, true, &r.new) == 0) {
		for (size_t k = first; k < end; k++)
			settle(m->sorted[k], &r);
		r.revision++;
		if (!bytes_eq(r.new_set, old_set))
			revision_row_add(&m->revisions, &r, now);
	}
	buf_release(&set);
}

static void on_rows(const struct mysql_result *result, void *arg)
{
	struct merge *m = arg;
	int64_t now = clock_wall_ms();

	if (result->outcome != SQL_OK) {
		finish(m, false);
		return;
	}
	revision_rows_init(&m->revisions);
	for (size_t i = 0; i < result->rows; i++)
		look_at(m, result, i, now);
	if (m->revisions.checks.count == 0) {
		finish(m, true);
		return;
	}
	revision_rows_write(&m->revisions, m->link, on_written, m);
}

void close_merge_start(struct mysql_link *link, int32_t day, struct close_row *rows, const bool *bad,
	size_t count, const char *text, void (*done)(bool ok, void *arg), void *arg)
{
	struct merge *m = xcalloc(1, sizeof(*m));
	struct buf sql = BUF_INIT;
	char date[DATE_TEXT];
	bool any = false;

	*m = (struct merge){.link = link,
		.day = day,
		.rows = rows,
		.bad = bad,
		.count = count,
		.text = text,
		.done = done,
		.arg = arg};
	m->sorted = xcalloc(count + 1, sizeof(m->sorted[0]));
	buf_addf(&sql,
		"SELECT employee,dept,status,punch_set,revision FROM attendance_day WHERE work_date='%s' AND "
		"employee IN (",
		date_format(day, date));
	for (size_t i = 0; i < count; i++) {
		m->sorted[i] = &rows[i];
		if (bad[i])
			continue;
		if (any)
			buf_add_char(&sql, ',');
		mysql_add_quoted(&sql, employee_of(&rows[i], text));
		any = true;
	}
	if (!any)
		buf_add_str(&sql, "''");
	buf_add_char(&sql, ')');
	merge_text = text;
	qsort(m->sorted, count, sizeof(m->sorted[0]), by_employee);
	mysql_link_query(link, &sql, on_rows, m);
}
