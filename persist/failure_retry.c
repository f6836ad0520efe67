/* SPDX-License-Identifier: MIT */
#include "persist/failure_retry.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/day_row.h"
#include "persist/ledger.h"
#include "persist/ledger_task.h"
#include "persist/mysql_link.h"
#include "persist/mysql_text.h"
#include "rules/when.h"
#include "rules/workday.h"

#define STATEMENTS 3

struct kind;

/* One failure as it was read. */
struct failed {
	char id[24];
	const struct kind *kind;
	int32_t day;
	struct buf dept, employee, payload, ref;
};

struct retry {
	struct mysql_link *link;
	void (*done)(int64_t written, const char *error, void *arg);
	void *arg;
	struct failed *list;
	size_t count, next;
	int64_t written;
	struct buf texts[STATEMENTS];
	struct bytes statements[STATEMENTS];
};

static void try_next(struct retry *r);

static void finish(struct retry *r, const char *error)
{
	for (size_t i = 0; i < r->count; i++) {
		buf_release(&r->list[i].dept);
		buf_release(&r->list[i].employee);
		buf_release(&r->list[i].payload);
		buf_release(&r->list[i].ref);
	}
	for (int i = 0; i < STATEMENTS; i++)
		buf_release(&r->texts[i]);
	free(r->list);
	r->done(r->written, error, r->arg);
	free(r);
}

static void on_tried(const struct mysql_result *result, void *arg)
{
	struct retry *r = arg;
	const struct failed *f = &r->list[r->next++];

	if (result->outcome == SQL_OK) {
		r->written++;
		try_next(r);
	} else if (result->outcome == SQL_DATA) {
		log_warning("persist failure event=still-bad id=%s message=\"%s\"", f->id, result->message);
		try_next(r);
	} else {
		finish(r, "UNAVAILABLE MySQL was lost under the request; what was retried is done, send it "
			  "again");
	}
}

/* ---- what a failure of each kind writes: statements that may be empty; false when it still can't ---- */

static bool render_event(const struct failed *f, struct buf *texts)
{
	return ledger_event_insert(&texts[0], buf_bytes(&f->payload), buf_bytes(&f->ref));
}

/* A payload that was too long to be kept whole is no record: its lengths are wrong. */
static bool render_task(const struct failed *f, struct buf *texts)
{
	for (int i = 0; i < TASK_TABLES; i++) {
		if (!ledger_task_insert(
			    &texts[i], (enum task_table)i, buf_bytes(&f->payload), buf_bytes(&f->ref)))
			return false;
	}
	return true;
}

static bool render_day(const struct failed *f, struct buf *texts)
{
	struct buf *out = &texts[0];
	struct sql_rows rows = {0};
	struct shift shift = workday_shift(f->day);
	struct judgement j;
	char date[DATE_TEXT];

	/* A payload that was too long to be kept whole must not become a row. */
	if (f->employee.len == 0 || f->payload.len >= FAILURE_PAYLOAD_MAX ||
		punch_judge(buf_bytes(&f->payload), &shift, true, &j) != 0)
		return false;
	day_row_add(&rows, f->day, buf_bytes(&f->employee), buf_bytes(&f->dept), buf_bytes(&f->payload), &j,
		1, clock_wall_ms());
	buf_add_str(out, day_row_head);
	buf_add_bytes(out, buf_bytes(&rows.text));
	buf_add_str(out, day_row_keep_tail);
	sql_rows_release(&rows);
	buf_addf(&texts[1],
		"UPDATE day_close SET written=written+1,failed=failed-1 WHERE failed>0 AND work_date='%s' "
		"AND dept=",
		date_format(f->day, date));
	mysql_add_quoted(&texts[1], buf_bytes(&f->dept));
	/* Another RETRY or DISCARD may have been faster since the list was read. */
	buf_addf(
		&texts[1], " AND EXISTS (SELECT 1 FROM persist_failure WHERE id=%s AND state='open')", f->id);
	return true;
}

struct kind {
	const char *name;
	bool (*render)(const struct failed *f, struct buf *texts);
	bool dated;
};

static const struct kind kinds[] = {
	{"day", render_day, true}, {"event", render_event, false}, {"task", render_task, false}};

static const struct kind *find_kind(struct bytes name)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (bytes_eq(name, bytes_of(kinds[i].name)))
			return &kinds[i];
	}
	return NULL;
}

/* ---- one after the other ---- */

static void render_retried(const struct failed *f, struct buf *out)
{
	buf_add_str(out, "UPDATE persist_failure SET state='retried',attempts=attempts+1,updated=");
	mysql_add_datetime(out, clock_wall_ms());
	buf_addf(out, " WHERE id=%s AND state='open'", f->id);
}

static void send(struct retry *r)
{
	size_t n = 0;

	for (int i = 0; i < STATEMENTS; i++) {
		if (r->texts[i].len > 0)
			r->statements[n++] = buf_bytes(&r->texts[i]);
	}
	mysql_link_batch(r->link, r->statements, n, on_tried, r);
}

static void try_next(struct retry *r)
{
	while (r->next < r->count) {
		const struct failed *f = &r->list[r->next];
		for (int i = 0; i < STATEMENTS; i++)
			buf_clear(&r->texts[i]);
		if (f->kind->render(f, r->texts)) {
			render_retried(f, &r->texts[STATEMENTS - 1]);
			send(r);
			return;
		}
		r->next++;
	}
	finish(r, NULL);
}

static void on_list(const struct mysql_result *result, void *arg)
{
	struct retry *r = arg;

	if (result->outcome != SQL_OK) {
		finish(r, "UNAVAILABLE MySQL is away, nothing was done; try again");
		return;
	}
	r->list = xcalloc(result->rows + 1, sizeof(r->list[0]));
	for (size_t i = 0; i < result->rows; i++) {
		struct failed *f = &r->list[r->count];
		f->kind = find_kind(mysql_cell(result, i, 1));
		if (f->kind == NULL || (!date_parse(mysql_cell(result, i, 2), &f->day) && f->kind->dated))
			continue;
		bytes_copy(f->id, sizeof(f->id), mysql_cell(result, i, 0));
		buf_add_bytes(&f->dept, mysql_cell(result, i, 3));
		buf_add_bytes(&f->employee, mysql_cell(result, i, 4));
		buf_add_bytes(&f->payload, mysql_cell(result, i, 5));
		buf_add_bytes(&f->ref, mysql_cell(result, i, 6));
		r->count++;
	}
	try_next(r);
}

void failure_retry_start(struct mysql_link *link, int64_t id,
	void (*done)(int64_t written, const char *error, void *arg), void *arg)
{
	struct retry *r = xcalloc(1, sizeof(*r));
	struct buf sql = BUF_INIT;

	r->link = link;
	r->done = done;
	r->arg = arg;
	buf_add_str(&sql,
		"SELECT id,kind,work_date,dept,employee,payload,ref FROM persist_failure WHERE state='open' "
		"AND kind IN ('day','event','task') AND reason<>'no_roster'");
	if (id != 0)
		buf_addf(&sql, " AND id=%lld", (long long)id);
	buf_add_str(&sql, " ORDER BY id LIMIT 1000");
	mysql_link_query(link, &sql, on_list, r);
}
