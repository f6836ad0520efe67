/* SPDX-License-Identifier: MIT */
/* How STATUS and ROLL show one employee's day, and where a closed day is read from. */
#ifndef HANDLERS_ATTENDANCE_VIEW_H
#define HANDLERS_ATTENDANCE_VIEW_H

#include "base/reply.h"
#include "rules/punch.h"

struct buf;
struct dept;
struct mysql_result;

/* The six fields state, in, out, punches, late, early. */
#define VIEW_FIELDS 6
void view_judgement(struct reply *r, const struct judgement *j);

/* Ids from the root to the department, joined by ':'. */
void view_path(struct buf *out, const struct dept *dept);

/* The columns that view_row() reads, for a SELECT from attendance_day. */
#define VIEW_COLUMNS                                                                                         \
	"employee, dept, status, punch_set, late_ms, early_ms, punches, "                                    \
	"CAST(UNIX_TIMESTAMP(first_in) * 1000 AS SIGNED), CAST(UNIX_TIMESTAMP(last_out) * 1000 AS SIGNED)"
void view_row(const struct mysql_result *result, size_t row, struct judgement *ret);

#endif
