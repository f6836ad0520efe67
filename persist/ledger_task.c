/* SPDX-License-Identifier: MIT */
#include "persist/ledger_task.h"

#include "persist/journal_position.h"
#include "persist/mysql_text.h"
#include "rules/when.h"
#include "rules/workday.h"

/* Assigned from left to right: journal_ref, by which the others are decided, comes last. */
#define NEWER(column) column "=IF(VALUES(journal_ref)>=journal_ref,VALUES(" column ")," column ")"

/* ---- fields, each with the comma behind it ---- */

static void add_quoted(struct buf *out, struct bytes value)
{
	mysql_add_quoted(out, value);
	buf_add_char(out, ',');
}

static void add_number(struct buf *out, int64_t n)
{
	buf_add_i64(out, n);
	buf_add_char(out, ',');
}

static void add_instant(struct buf *out, int64_t ms)
{
	mysql_add_datetime(out, ms);
	buf_add_char(out, ',');
}

static void add_token(struct buf *out, int64_t token)
{
	if (token < 0)
		buf_add(out, "NULL,", 5);
	else
		add_number(out, token);
}

static void add_text(struct buf *out, struct bytes text)
{
	if (text.n == 0)
		buf_add(out, "NULL,", 5);
	else
		add_quoted(out, text);
}

static void add_work_date(struct buf *out, int64_t at)
{
	char date[DATE_TEXT];

	add_quoted(out, bytes_of(date_format(workday_of(at), date)));
}

static void add_ref(struct buf *out, struct bytes ref)
{
	buf_add_char(out, '\'');
	journal_position_add(out, ref);
	buf_add_char(out, '\'');
}

/* ---- rows ---- */

static bool has_row(const struct task_record *t)
{
	return task_change_is_end(t->change) || t->change == TASK_CHANGE_RETRIED;
}

static void add_task(struct buf *out, const struct task_record *t, struct bytes ref)
{
	bool ended = task_change_is_end(t->change);

	buf_add_char(out, '(');
	add_quoted(out, t->id);
	add_quoted(out, t->queue);
	add_quoted(out, bytes_of(ended ? task_change_name(t->change) : "pending"));
	add_number(out, t->priority);
	add_instant(out, t->submitted);
	add_instant(out, t->claimed);
	add_instant(out, ended ? t->at : -1);
	add_work_date(out, t->at);
	add_quoted(out, t->worker);
	add_token(out, t->token);
	add_number(out, t->retries);
	add_number(out, t->crashes);
	add_quoted(out, t->key);
	add_text(out, t->result);
	add_text(out, t->error);
	add_text(out, t->payload);
	add_instant(out, t->at);
	add_ref(out, ref);
	buf_add_char(out, ')');
}

static bool has_event(const struct task_record *t)
{
	return t->change != TASK_CHANGE_SUCCESS || t->retries > 0 || t->crashes > 0;
}

static void add_event(struct buf *out, const struct task_record *t, struct bytes ref)
{
	buf_add_char(out, '(');
	add_quoted(out, t->id);
	add_ref(out, ref);
	buf_add_char(out, ',');
	add_quoted(out, bytes_of(task_change_name(t->change)));
	add_quoted(out, t->queue);
	add_instant(out, t->at);
	add_work_date(out, t->at);
	add_number(out, t->retries);
	add_number(out, t->crashes);
	add_quoted(out, t->worker);
	add_token(out, t->token);
	add_instant(out, t->claimed);
	add_instant(out, t->until);
	add_text(out, t->error);
	out->data[out->len - 1] = ')';
}

/* clang-format off */
static const char task_head[] =
	"INSERT INTO task (id,queue,status,priority,submitted,claimed,finished,work_date,worker,token,retries,"
	"crashes,dedupe_key,result,error,payload,updated,journal_ref) VALUES";
static const char task_tail[] =
	"ON DUPLICATE KEY UPDATE " NEWER("status") "," NEWER("claimed") "," NEWER("finished") ","
	NEWER("work_date") "," NEWER("worker") "," NEWER("token") "," NEWER("retries") "," NEWER("crashes") ","
	NEWER("dedupe_key") "," NEWER("result") "," NEWER("error") "," NEWER("payload") "," NEWER("updated") ","
	NEWER("journal_ref");
static const char event_head[] =
	"INSERT INTO task_event (task,journal_ref,event,queue,at,work_date,retries,crashes,worker,token,claimed,"
	"not_before,error) VALUES";
static const char event_tail[] = "ON DUPLICATE KEY UPDATE event=VALUES(event)";
/* clang-format on */

const struct task_insert task_inserts[TASK_TABLES] = {
	[TASK_TABLE_TASK] = {task_head, task_tail, has_row, add_task},
	[TASK_TABLE_EVENT] = {event_head, event_tail, has_event, add_event},
};

bool ledger_task_insert(struct buf *out, enum task_table table, struct bytes record, struct bytes ref)
{
	const struct task_insert *insert = &task_inserts[table];
	struct task_record t;

	if (!record_parse_task(record, &t))
		return false;
	if (insert->wants(&t)) {
		buf_add_str(out, insert->head);
		insert->add(out, &t, ref);
		buf_add_str(out, insert->tail);
	}
	return true;
}
