/* SPDX-License-Identifier: MIT */
/* Rows of attendance_day and persist_failure as SQL: one place for the close and for the ledger's revisions.
 */
#ifndef PERSIST_DAY_ROW_H
#define PERSIST_DAY_ROW_H

#include <stdint.h>

#include "persist/sql_writer.h"
#include "rules/punch.h"

/* keep: a row that is there stays as it is. revise: it is changed if its revision is the one before the new
 * one. */
extern const char day_row_head[], day_row_keep_tail[], day_row_revise_tail[];
void day_row_add(struct sql_rows *rows, int32_t day, struct bytes employee, struct bytes dept,
	struct bytes set, const struct judgement *judgement, int64_t revision, int64_t now_ms);

/* Adds the punches of `more` that `set` lacks: same direction and instant, or same event id, is the same
 * punch. A set that is full gives up one that is neither the first nor the last of its direction. */
void day_row_union(struct buf *set, struct bytes more);

/* What is longer is cut. */
#define FAILURE_PAYLOAD_MAX 60000

struct failure_row {
	const char *kind; /* day, event, task or rejected */
	struct bytes ref; /* names the thing: with kind, unique */
	int32_t day;      /* or -1 */
	struct bytes dept, employee, payload;
	const char *reason, *detail;
	struct bytes owner; /* the department's manager, "" when it has none */
};

extern const char failure_row_head[], failure_row_tail[];
void failure_row_add(struct sql_rows *rows, const struct failure_row *failure, int64_t now_ms);

#endif
