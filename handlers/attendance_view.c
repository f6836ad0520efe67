/* SPDX-License-Identifier: MIT */
#include "handlers/attendance_view.h"

#include "base/buf.h"
#include "persist/mysql_link.h"
#include "persist/tree.h"

void view_judgement(struct reply *r, const struct judgement *j)
{
	reply_field_str(r, "state", attendance_name(j->status));
	reply_field_instant(r, "in", j->in);
	reply_field_instant(r, "out", j->out);
	reply_field_int(r, "punches", j->punches);
	reply_field_int(r, "late", j->late_ms);
	reply_field_int(r, "early", j->early_ms);
}

void view_path(struct buf *out, const struct dept *dept)
{
	if (dept->parent != NULL) {
		view_path(out, dept->parent);
		buf_add_char(out, ':');
	}
	buf_add_str(out, dept->id);
}

static int64_t number(const struct mysql_result *result, size_t row, size_t column, int64_t missing)
{
	int64_t n;

	return bytes_to_i64(mysql_cell(result, row, column), &n) ? n : missing;
}

void view_row(const struct mysql_result *result, size_t row, struct judgement *ret)
{
	*ret = (struct judgement){.status = ATTENDANCE_ABSENT, .reason = ""};
	if (!attendance_from_name(mysql_cell(result, row, 2), &ret->status))
		ret->status = ATTENDANCE_ABSENT;
	ret->late_ms = number(result, row, 4, 0);
	ret->early_ms = number(result, row, 5, 0);
	ret->punches = (int)number(result, row, 6, 0);
	ret->in = number(result, row, 7, -1);
	ret->out = number(result, row, 8, -1);
}
