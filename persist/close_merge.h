/* SPDX-License-Identifier: MIT */
/* Rows of a close that were in attendance_day already. Most are from a try whose end was not seen and are as
 * they must be; where the map has punches beyond the row's, the row is revised. No row is ever overwritten
 * blindly. */
#ifndef PERSIST_CLOSE_MERGE_H
#define PERSIST_CLOSE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/punch.h"

struct close_item;
struct mysql_link;

/* One row of a batch; text by offset into the batch's. */
struct close_row {
	struct close_item *item;
	size_t employee_at, employee_n, set_at, set_n;
	enum attendance status; /* after a merge: what the row says now */
	bool late;
	bool elsewhere; /* the row is another department's: he was removed there and hired here on this day */
};

/* rows, bad and text are borrowed until done(). */
void close_merge_start(struct mysql_link *link, int32_t day, struct close_row *rows, const bool *bad,
	size_t count, const char *text, void (*done)(bool ok, void *arg), void *arg);

#endif
