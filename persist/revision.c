/* SPDX-License-Identifier: MIT */
/* Two steps: what the rows are and which revisions this window has made before (a crash may have come between
 * its commit and the cursor); then rows and revisions, with the window's punches added, in one transaction.
 */
#include "persist/revision.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/day_row.h"
#include "persist/journal.h"
#include "persist/mysql_link.h"
#include "persist/mysql_text.h"
#include "persist/record.h"
#include "rules/when.h"
#include "rules/workday.h"

#define CAUSE "late_punch"

/* One employee and day. */
struct target {
	struct punch_record punch; /* the last of this window; points into the window */
	struct bytes ref;
	bool known; /* there is a row */
	int64_t revision;
	char dept[ID_MAX + 1], status[17];
	struct buf old_set, set;
};

struct revision {
	struct mysql_link *link;
	struct journal_window *window;
	void (*done)(bool ok, int revised, void *arg);
	void *arg;
	struct target *targets;
	size_t count;
	struct revision_rows rows;
	int revised;
};

static void finish(struct revision *r, bool ok)
{
	for (size_t i = 0; i < r->count; i++) {
		buf_release(&r->targets[i].old_set);
		buf_release(&r->targets[i].set);
	}
	revision_rows_release(&r->rows);
	free(r->targets);
	r->done(ok, r->revised, r->arg);
	free(r);
}

static struct target *find(struct revision *r, struct bytes date, struct bytes employee)
{
	for (size_t i = 0; i < r->count; i++) {
		struct target *t = &r->targets[i];
		if (bytes_eq(t->punch.employee, employee) && bytes_eq(t->punch.date, date))
			return t;
	}
	return NULL;
}

static void collect(struct revision *r)
{
	struct punch_record p;

	r->targets = xcalloc((size_t)r->window->count, sizeof(r->targets[0]));
	for (int i = 0; i < r->window->count; i++) {
		if (!record_parse_punch(r->window->records[i].text, &p) || !p.late)
			continue;
		struct target *t = find(r, p.date, p.employee);
		if (t == NULL)
			t = &r->targets[r->count++];
		t->punch = p;
		t->ref = r->window->records[i].ref;
	}
}

static void add_keys(struct revision *r, struct buf *sql)
{
	buf_add_str(sql, " WHERE (work_date,employee) IN (");
	for (size_t i = 0; i < r->count; i++) {
		buf_add_str(sql, i == 0 ? "(" : ",(");
		mysql_add_quoted(sql, r->targets[i].punch.date);
		buf_add_char(sql, ',');
		mysql_add_quoted(sql, r->targets[i].punch.employee);
		buf_add_char(sql, ')');
	}
	buf_add_char(sql, ')');
}

static bool failed(struct revision *r, const struct mysql_result *result)
{
	if (result->outcome == SQL_OK)
		return false;
	log_warning("persist revision event=failed outcome=%s message=\"%s\"",
		sql_outcome_name(result->outcome), result->message);
	finish(r, false);
	return true;
}

/* ---- the last step: rows and revisions ---- */

static void append_withdrawal(struct revision *r, struct bytes date, struct bytes dept, struct bytes employee,
	int64_t revision, const char *new_status, int64_t at)
{
	buf_addf(&r->window->append, "W|%.*s|%.*s|%.*s|%lld|absent|%s|%lld", (int)date.n, date.p, (int)dept.n,
		dept.p, (int)employee.n, employee.p, (long long)revision, new_status, (long long)at);
	buf_add_char(&r->window->append, '\0');
}

static void on_written(bool ok, void *arg)
{
	finish(arg, ok);
}

static void revise(struct revision *r, struct target *t, int64_t now)
{
	struct shift shift = workday_shift(t->punch.day);
	struct revision_row row = {.day = t->punch.day,
		.employee = t->punch.employee,
		.old_status = bytes_of(t->status),
		.old_set = buf_bytes(&t->old_set),
		.new_set = buf_bytes(&t->set),
		.cause_ref = t->ref,
		.cause = CAUSE,
		.old = {.in = -1, .out = -1}};

	if (punch_judge(row.new_set, &shift, true, &row.new) != 0) {
		log_error("persist revision event=not-judged employee=%.*s reason=\"more than %d punches, or "
			  "a damaged set\"",
			(int)row.employee.n, row.employee.p, PUNCH_SET_MAX);
		return;
	}
	if (t->known &&
		(bytes_eq(row.new_set, row.old_set) || punch_judge(row.old_set, &shift, true, &row.old) != 0))
		return; /* nothing new: a repeat */
	if (!t->known)
		bytes_copy(t->dept, sizeof(t->dept), t->punch.dept);
	row.dept = bytes_of(t->dept);
	row.revision = t->known ? t->revision + 1 : 1;
	revision_row_add(&r->rows, &row, now);
	r->revised++;
	if (strcmp(t->status, "absent") == 0 && row.new.status != ATTENDANCE_ABSENT)
		append_withdrawal(r, t->punch.date, row.dept, row.employee, row.revision,
			attendance_name(row.new.status), t->punch.at);
}

static void write_all(struct revision *r)
{
	int64_t now = clock_wall_ms();

	revision_rows_init(&r->rows);
	for (size_t i = 0; i < r->count; i++)
		revise(r, &r->targets[i], now);
	if (r->revised == 0) {
		finish(r, true);
		return;
	}
	revision_rows_write(&r->rows, r->link, on_written, r);
}

/* ---- the punches of this window ---- */

static void add_token(struct revision *r, const struct punch_record *p)
{
	struct target *t = find(r, p->date, p->employee);
	struct buf token = BUF_INIT;

	buf_addf(&token, "%c%lld", p->direction, (long long)p->at);
	if (p->event_id.n > 0) {
		buf_add_char(&token, '#');
		buf_add_bytes(&token, p->event_id);
	}
	day_row_union(&t->set, buf_bytes(&token));
	buf_release(&token);
}

/* What came before is in the row: each window added its own. */
static void add_punches(struct revision *r)
{
	struct punch_record p;

	for (int i = 0; i < r->window->count; i++) {
		if (record_parse_punch(r->window->records[i].text, &p) && p.late)
			add_token(r, &p);
	}
	write_all(r);
}

/* ---- the rows as they are ---- */

static void on_rows(const struct mysql_result *result, void *arg)
{
	struct revision *r = arg;

	if (failed(r, result))
		return;
	for (size_t i = 0; i < result->rows; i++) {
		struct target *t = find(r, mysql_cell(result, i, 0), mysql_cell(result, i, 1));
		if (t == NULL || !bytes_to_i64(mysql_cell(result, i, 4), &t->revision))
			continue;
		t->known = true;
		bytes_copy(t->dept, sizeof(t->dept), mysql_cell(result, i, 2));
		bytes_copy(t->status, sizeof(t->status), mysql_cell(result, i, 3));
		buf_add_bytes(&t->old_set, mysql_cell(result, i, 5));
		day_row_union(&t->set, buf_bytes(&t->old_set));
	}
	add_punches(r);
}

/* Withdrawals of this window that were committed before the cursor moved: told again, with the same id. */
static void on_earlier(const struct mysql_result *result, void *arg)
{
	struct revision *r = arg;

	if (failed(r, result))
		return;
	for (size_t i = 0; i < result->rows; i++) {
		struct target *t = find(r, mysql_cell(result, i, 0), mysql_cell(result, i, 1));
		int64_t revision;
		char status[17];
		if (t == NULL || !bytes_to_i64(mysql_cell(result, i, 2), &revision))
			continue;
		append_withdrawal(r, mysql_cell(result, i, 0), mysql_cell(result, i, 4),
			mysql_cell(result, i, 1), revision,
			bytes_copy(status, sizeof(status), mysql_cell(result, i, 3)), t->punch.at);
	}
	struct buf sql = BUF_INIT;
	buf_add_str(&sql, "SELECT work_date,employee,dept,status,revision,punch_set FROM attendance_day");
	add_keys(r, &sql);
	mysql_link_query(r->link, &sql, on_rows, r);
}

void revision_start(struct mysql_link *link, struct journal_window *window,
	void (*done)(bool ok, int revised, void *arg), void *arg)
{
	struct revision *r = xcalloc(1, sizeof(*r));
	struct buf sql = BUF_INIT;

	r->link = link;
	r->window = window;
	r->done = done;
	r->arg = arg;
	collect(r);
	buf_add_str(&sql,
		"SELECT v.work_date,v.employee,v.revision,v.new_status,d.dept FROM attendance_revision v "
		"JOIN attendance_day d ON d.work_date=v.work_date AND d.employee=v.employee "
		"WHERE v.old_status='absent' AND v.new_status<>'absent' AND v.cause_ref IN (");
	/* Every record of the window: it may begin and end elsewhere than the one before the crash. */
	for (int i = 0; i < window->count; i++) {
		buf_add_str(&sql, i == 0 ? "" : ",");
		mysql_add_quoted(&sql, window->records[i].ref);
	}
	buf_add_char(&sql, ')');
	mysql_link_query(link, &sql, on_earlier, r);
}
