/* SPDX-License-Identifier: MIT */
#include "persist/ledger.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/day_row.h"
#include "persist/journal.h"
#include "persist/keys.h"
#include "persist/ledger_task.h"
#include "persist/ledger_tree.h"
#include "persist/mysql_text.h"
#include "persist/record.h"
#include "persist/revision.h"
#include "persist/sql_writer.h"
#include "persist/tree.h"
#include "rules/workday.h"

/* Failures last, since a bad row of another becomes one. */
enum insert {
	INSERT_EVENTS,
	INSERT_EMPLOYEES,
	INSERT_TASKS,
	INSERT_FAILURES = INSERT_TASKS + TASK_TABLES,
	INSERT_COUNT
};

static const struct {
	const char *head, *tail;
} inserts[INSERT_COUNT] = {
	[INSERT_EVENTS] = {"INSERT INTO attendance_event "
			   "(work_date,employee,at_ms,direction,dept,at,received,utc_offset,"
			   "event_id,source,marks,late,journal_ref) VALUES",
		"ON DUPLICATE KEY UPDATE employee=VALUES(employee)"},
	/* Partitions are read on their own, so an older record may come after a newer one: `updated` decides.
	 */
	[INSERT_EMPLOYEES] = {"INSERT INTO employee (id,name,dept,state,updated,journal_ref) VALUES",
		"ON DUPLICATE KEY UPDATE name=IF(VALUES(updated)>=updated AND "
		"VALUES(state)='active',VALUES(name),name),"
		"dept=IF(VALUES(updated)>=updated,VALUES(dept),dept),state=IF(VALUES(updated)>=updated,"
		"VALUES(state),state),"
		"journal_ref=IF(VALUES(updated)>=updated,VALUES(journal_ref),journal_ref),"
		"updated=IF(VALUES(updated)>=updated,VALUES(updated),updated)"},
	[INSERT_FAILURES] = {failure_row_head, failure_row_tail},
};

/* One window. */
struct work {
	struct ledger *ledger;
	struct journal_window *window;
	struct sql_rows inserts[INSERT_COUNT];
	int *records[INSERT_FAILURES]; /* which record each row is */
	int late;                      /* punches of closed days */
};

struct ledger {
	struct mysql_link *link;
	const struct tree *tree;
	void (*done)(struct journal_window *window, bool ok, void *arg);
	void *arg;
	uint64_t events, tasks, failures, revisions, retries;
};

static void finish(struct work *w, bool ok)
{
	struct ledger *l = w->ledger;
	struct journal_window *window = w->window;

	for (int i = 0; i < INSERT_COUNT; i++)
		sql_rows_release(&w->inserts[i]);
	for (int i = 0; i < INSERT_FAILURES; i++)
		free(w->records[i]);
	free(w);
	l->retries += !ok;
	l->done(window, ok, l->arg);
}

/* ---- rows ---- */

static void add_quoted(struct buf *out, struct bytes value)
{
	mysql_add_quoted(out, value);
	buf_add_char(out, ',');
}

static void add_instant(struct buf *out, int64_t ms)
{
	mysql_add_datetime(out, ms);
	buf_add_char(out, ',');
}

/* The row of a record is complete. */
static void row_end(struct work *w, enum insert insert, int index)
{
	struct sql_rows *rows = &w->inserts[insert];

	if (w->records[insert] == NULL)
		w->records[insert] = xcalloc((size_t)w->window->count, sizeof(w->records[insert][0]));
	w->records[insert][rows->count] = index;
	sql_row_end(rows);
}

static struct bytes manager_of(const struct ledger *l, struct bytes dept)
{
	const struct dept *d = tree_find(l->tree, dept);

	return d != NULL ? bytes_of(d->manager) : (struct bytes){"", 0};
}

static void add_failure(
	struct work *w, const struct journal_record *record, const struct failure_row *failure)
{
	struct failure_row f = *failure;

	f.ref = record->ref;
	f.payload = record->text;
	f.owner = manager_of(w->ledger, f.dept);
	w->ledger->failures++;
	failure_row_add(&w->inserts[INSERT_FAILURES], &f, clock_wall_ms());
}

static void add_event(struct buf *out, const struct punch_record *p, struct bytes ref)
{
	buf_add_char(out, '(');
	add_quoted(out, p->date);
	add_quoted(out, p->employee);
	buf_add_i64(out, p->at);
	buf_addf(out, ",'%c',", p->direction);
	add_quoted(out, p->dept);
	add_instant(out, p->at);
	add_instant(out, p->received);
	buf_add_i64(out, workday_utc_offset(p->at));
	buf_add_char(out, ',');
	add_quoted(out, p->event_id);
	add_quoted(out, p->source);
	add_quoted(out, p->marks);
	buf_add_char(out, p->late ? '1' : '0');
	buf_add_char(out, ',');
	mysql_add_quoted(out, ref);
	buf_add_char(out, ')');
}

bool ledger_event_insert(struct buf *out, struct bytes record, struct bytes ref)
{
	struct punch_record p;

	if (!record_parse_punch(record, &p))
		return false;
	buf_add_str(out, inserts[INSERT_EVENTS].head);
	add_event(out, &p, ref);
	buf_add_str(out, inserts[INSERT_EVENTS].tail);
	return true;
}

static void add_punch(struct work *w, int index)
{
	const struct journal_record *record = &w->window->records[index];
	struct punch_record p;

	if (!record_parse_punch(record->text, &p)) {
		struct failure_row f = {
			.kind = "event", .day = -1, .reason = "malformed", .detail = "not a punch record"};
		add_failure(w, record, &f);
		return;
	}
	add_event(&w->inserts[INSERT_EVENTS].text, &p, record->ref);
	row_end(w, INSERT_EVENTS, index);
	w->late += p.late;
	w->ledger->events++;
}

/* E|employee|dept|received|old dept or -|name and X|employee|dept|received */
static void add_employee(struct work *w, int index)
{
	const struct journal_record *record = &w->window->records[index];
	struct buf *row = &w->inserts[INSERT_EMPLOYEES].text;
	struct bytes f[6];
	int64_t received;
	bool hired = record->text.p[0] == 'E';
	int fields = hired ? 6 : 4;

	if (bytes_split(record->text, '|', f, fields) != fields || !bytes_to_i64(f[3], &received))
		return;
	buf_add_char(row, '(');
	add_quoted(row, f[1]);
	add_quoted(row, hired ? f[5] : (struct bytes){"", 0});
	add_quoted(row, f[2]);
	buf_add_str(row, hired ? "'active'," : "'removed',");
	add_instant(row, received);
	mysql_add_quoted(row, record->ref);
	buf_add_char(row, ')');
	row_end(w, INSERT_EMPLOYEES, index);
}

/* R|dept|employee|at|received|reason|event id or -|source or - */
static void add_rejected(struct work *w, int index)
{
	struct bytes f[8];
	char reason[33], detail[64];

	if (bytes_split(w->window->records[index].text, '|', f, 8) != 8)
		return;
	snprintf(detail, sizeof(detail), "event time %.*s ms", (int)f[3].n, f[3].p);
	struct failure_row failure = {.kind = "rejected",
		.day = -1,
		.dept = f[1],
		.employee = f[2],
		.reason = bytes_copy(reason, sizeof(reason), f[5]),
		.detail = detail};
	add_failure(w, &w->window->records[index], &failure);
}

static void add_task(struct work *w, int index)
{
	const struct journal_record *record = &w->window->records[index];
	struct task_record t;

	if (!record_parse_task(record->text, &t)) {
		struct failure_row f = {
			.kind = "task", .day = -1, .reason = "malformed", .detail = "not a task record"};
		add_failure(w, record, &f);
		return;
	}
	for (int i = 0; i < TASK_TABLES; i++) {
		if (!task_inserts[i].wants(&t))
			continue;
		task_inserts[i].add(&w->inserts[INSERT_TASKS + i].text, &t, record->ref);
		row_end(w, (enum insert)(INSERT_TASKS + i), index);
	}
	w->ledger->tasks++;
}

static const struct {
	char letter;
	void (*add)(struct work *w, int index);
} adders[] = {
	{'P', add_punch}, {'K', add_task}, {'E', add_employee}, {'X', add_employee}, {'R', add_rejected}};

/* ---- the write ---- */

static void keep_bad_event(struct work *w, const struct journal_record *record, const char *message)
{
	struct punch_record p;

	if (!record_parse_punch(record->text, &p))
		return;
	struct failure_row f = {.kind = "event",
		.day = p.day,
		.dept = p.dept,
		.employee = p.employee,
		.reason = "refused",
		.detail = message};
	add_failure(w, record, &f);
}

/* Whichever of its rows it is: one failure a record. */
static void keep_bad_task(struct work *w, const struct journal_record *record, const char *message)
{
	struct task_record t;
	char detail[200];

	if (!record_parse_task(record->text, &t))
		return;
	snprintf(detail, sizeof(detail), "%.*s of %.*s: %s", (int)t.id.n, t.id.p, (int)t.queue.n, t.queue.p,
		message);
	struct failure_row f = {.kind = "task", .day = -1, .reason = "refused", .detail = detail};
	add_failure(w, record, &f);
}

static void on_bad(size_t insert, size_t row, unsigned code, const char *message, void *arg)
{
	struct work *w = arg;

	log_warning("persist ledger event=bad-row insert=%zu code=%u message=\"%s\"", insert, code, message);
	if (insert >= INSERT_FAILURES || insert == INSERT_EMPLOYEES)
		return;
	const struct journal_record *record = &w->window->records[w->records[insert][row]];
	if (insert == INSERT_EVENTS)
		keep_bad_event(w, record, message);
	else
		keep_bad_task(w, record, message);
}

static void on_revised(bool ok, int revised, void *arg)
{
	struct work *w = arg;

	w->ledger->revisions += (uint64_t)revised;
	finish(w, ok);
}

static void on_written(enum sql_outcome outcome, const char *message, const uint64_t *affected, void *arg)
{
	struct work *w = arg;

	(void)affected;
	if (outcome != SQL_OK) {
		if (outcome != SQL_LOST)
			log_warning("persist ledger event=failed outcome=%s message=\"%s\"",
				sql_outcome_name(outcome), message);
		finish(w, false);
	} else if (w->late > 0) {
		revision_start(w->ledger->link, w->window, on_revised, w);
	} else {
		finish(w, true);
	}
}

static void on_tree(bool ok, void *arg)
{
	finish(arg, ok);
}

static void collect(struct work *w)
{
	for (int i = 0; i < INSERT_COUNT; i++) {
		w->inserts[i].head = inserts[i].head;
		w->inserts[i].tail = inserts[i].tail;
	}
	for (int i = 0; i < TASK_TABLES; i++) {
		w->inserts[INSERT_TASKS + i].head = task_inserts[i].head;
		w->inserts[INSERT_TASKS + i].tail = task_inserts[i].tail;
	}
	for (int i = 0; i < w->window->count; i++) {
		struct bytes text = w->window->records[i].text;
		for (size_t k = 0; k < ARRAY_LEN(adders); k++) {
			if (text.n > 0 && text.p[0] == adders[k].letter)
				adders[k].add(w, i);
		}
	}
}

void ledger_process(struct journal_window *window, void *arg)
{
	struct ledger *l = arg;

	if (!mysql_link_ready(l->link)) {
		l->done(window, false, l->arg);
		return;
	}
	struct work *w = xcalloc(1, sizeof(*w));
	w->ledger = l;
	w->window = window;
	if (window->partition == keys_org()) {
		ledger_tree_start(l->link, window, on_tree, w);
		return;
	}
	collect(w);
	size_t rows = 0;
	for (int i = 0; i < INSERT_COUNT; i++)
		rows += w->inserts[i].count;
	if (rows == 0) {
		finish(w, true);
		return;
	}
	struct sql_write write = {.inserts = w->inserts,
		.insert_count = INSERT_COUNT,
		.bad = on_bad,
		.done = on_written,
		.arg = w};
	sql_write_start(l->link, &write);
}

static void write_info(struct buf *out, void *arg)
{
	const struct ledger *l = arg;

	buf_addf(out,
		"ledger_events:%llu\r\nledger_tasks:%llu\r\nledger_failures:%llu\r\n"
		"ledger_revisions:%llu\r\nledger_retries:%llu\r\n",
		(unsigned long long)l->events, (unsigned long long)l->tasks, (unsigned long long)l->failures,
		(unsigned long long)l->revisions, (unsigned long long)l->retries);
}

struct ledger *ledger_new(struct mysql_link *link, const struct tree *tree,
	void (*done)(struct journal_window *window, bool ok, void *arg), void *arg)
{
	struct ledger *l = xcalloc(1, sizeof(*l));

	l->link = link;
	l->tree = tree;
	l->done = done;
	l->arg = arg;
	info_register("History", write_info, l);
	return l;
}

void ledger_free(struct ledger *l)
{
	free(l);
}
