/* SPDX-License-Identifier: MIT */
#include "persist/day_row.h"

#include "persist/mysql_text.h"
#include "rules/when.h"
#include "rules/workday.h"

const char day_row_head[] =
	"INSERT INTO attendance_day (work_date,employee,dept,status,first_in,last_out,utc_offset,"
	"late_ms,early_ms,worked_ms,punches,punch_set,reason,revision,created,updated) VALUES";
const char day_row_keep_tail[] = "ON DUPLICATE KEY UPDATE employee=VALUES(employee)";
/* Only from the revision before: a row that somebody else has changed meanwhile stays as it is. */
#define REVISE(column) #column "=IF(revision=VALUES(revision)-1,VALUES(" #column ")," #column "),"
const char day_row_revise_tail[] = "ON DUPLICATE KEY UPDATE " REVISE(status) REVISE(first_in) REVISE(last_out)
	REVISE(late_ms) REVISE(early_ms) REVISE(worked_ms) REVISE(punches) REVISE(punch_set) REVISE(reason)
		REVISE(updated) "revision=IF(revision=VALUES(revision)-1,VALUES(revision),revision)";

const char failure_row_head[] =
	"INSERT INTO persist_failure (kind,ref,work_date,dept,employee,reason,detail,payload,"
	"owner,created,updated) VALUES";
const char failure_row_tail[] = "ON DUPLICATE KEY UPDATE attempts=attempts+1,updated=VALUES(updated)";

static void add_date(struct buf *out, int32_t day)
{
	char text[DATE_TEXT];

	buf_add_char(out, '\'');
	buf_add(out, date_format(day, text), DATE_TEXT - 1);
	buf_add_char(out, '\'');
}

static void add_number(struct buf *out, int64_t n)
{
	buf_add_char(out, ',');
	buf_add_i64(out, n);
}

static void add_quoted(struct buf *out, struct bytes value)
{
	buf_add_char(out, ',');
	mysql_add_quoted(out, value);
}

static void add_instant(struct buf *out, int64_t ms)
{
	buf_add_char(out, ',');
	mysql_add_datetime(out, ms);
}

void day_row_add(struct sql_rows *rows, int32_t day, struct bytes employee, struct bytes dept,
	struct bytes set, const struct judgement *j, int64_t revision, int64_t now_ms)
{
	struct buf *out = &rows->text;

	buf_add_char(out, '(');
	add_date(out, day);
	add_quoted(out, employee);
	add_quoted(out, dept);
	add_quoted(out, bytes_of(attendance_name(j->status)));
	add_instant(out, j->in);
	add_instant(out, j->out);
	add_number(out, workday_utc_offset(workday_shift(day).start));
	add_number(out, j->late_ms);
	add_number(out, j->early_ms);
	add_number(out, j->worked_ms);
	add_number(out, j->punches);
	add_quoted(out, set);
	add_quoted(out, bytes_of(j->reason));
	add_number(out, revision);
	add_instant(out, now_ms);
	add_instant(out, now_ms);
	buf_add_char(out, ')');
	sql_row_end(rows);
}

void failure_row_add(struct sql_rows *rows, const struct failure_row *f, int64_t now_ms)
{
	struct buf *out = &rows->text;
	char detail[201];

	/* The server's words may quote a bad value, cut anywhere: ASCII is what is safe to store. */
	bytes_copy(detail, sizeof(detail), bytes_of(f->detail));
	for (char *p = detail; *p != '\0'; p++) {
		if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
			*p = '?';
	}
	buf_add_str(out, "('");
	buf_add_str(out, f->kind);
	buf_add_char(out, '\'');
	add_quoted(out, f->ref.n <= 192 ? f->ref : (struct bytes){f->ref.p, 192});
	buf_add_char(out, ',');
	if (f->day >= 0)
		add_date(out, f->day);
	else
		buf_add_str(out, "NULL");
	add_quoted(out, f->dept.n <= ID_MAX ? f->dept : (struct bytes){f->dept.p, ID_MAX});
	add_quoted(out, f->employee.n <= 255 ? f->employee : (struct bytes){f->employee.p, 255});
	add_quoted(out, bytes_of(f->reason));
	add_quoted(out, bytes_of(detail));
	add_quoted(out, f->payload.n <= FAILURE_PAYLOAD_MAX
				? f->payload
				: (struct bytes){f->payload.p, FAILURE_PAYLOAD_MAX});
	add_quoted(out, f->owner);
	add_instant(out, now_ms);
	add_instant(out, now_ms);
	buf_add_char(out, ')');
	sql_row_end(rows);
}

static bool contains(struct bytes set, struct bytes token)
{
	const char *mark = memchr(token.p, '#', token.n);
	struct bytes punch = {token.p, mark != NULL ? (size_t)(mark - token.p) : token.n};
	struct bytes id = mark != NULL ? (struct bytes){mark, token.n - punch.n} : (struct bytes){"", 0};

	while (set.n > 0) {
		struct bytes f[2];
		int parts = bytes_split(set, ' ', f, 2);
		const char *other = memchr(f[0].p, '#', f[0].n);
		size_t n = other != NULL ? (size_t)(other - f[0].p) : f[0].n;
		if (bytes_eq((struct bytes){f[0].p, n}, punch))
			return true;
		if (id.n > 0 && other != NULL && bytes_eq((struct bytes){other, f[0].n - n}, id))
			return true;
		set = parts == 2 ? f[1] : (struct bytes){"", 0};
	}
	return false;
}

#define SET_MAX 8000 /* bytes: well below the column and PUNCH_SET_MAX punches */

/* Gives up one punch between the first and the last of its direction, when the set is full. */
static void make_room(struct buf *set)
{
	static struct punch punches[PUNCH_SET_MAX];
	int64_t first[128], last[128];
	int count = set->len < SET_MAX ? 0 : punch_set_parse(buf_bytes(set), punches);

	memset(first, 0x7f, sizeof(first));
	memset(last, 0, sizeof(last));
	for (int i = 0; i < count; i++) {
		int d = punches[i].direction;
		first[d] = punches[i].at < first[d] ? punches[i].at : first[d];
		last[d] = punches[i].at > last[d] ? punches[i].at : last[d];
	}
	size_t at = 0;
	for (int i = 0; i < count; i++) {
		const char *end = memchr(set->data + at, ' ', set->len - at);
		size_t n = end != NULL ? (size_t)(end - set->data) - at + 1 : set->len - at;
		int d = punches[i].direction;
		if (end != NULL && punches[i].at != first[d] && punches[i].at != last[d]) {
			memmove(set->data + at, set->data + at + n, set->len - at - n);
			set->len -= n;
			return;
		}
		at += n;
	}
}

void day_row_union(struct buf *set, struct bytes more)
{
	while (more.n > 0) {
		struct bytes f[2];
		int parts = bytes_split(more, ' ', f, 2);
		if (f[0].n > 0 && !contains(buf_bytes(set), f[0])) {
			make_room(set);
			if (set->len > 0)
				buf_add_char(set, ' ');
			buf_add_bytes(set, f[0]);
		}
		more = parts == 2 ? f[1] : (struct bytes){"", 0};
	}
}
