/* SPDX-License-Identifier: MIT */
/* Punches that arrived after their day was closed: the rows are judged again from all punches there are, the
 * old state is kept in attendance_revision, and an absence that falls is told once. */
#ifndef PERSIST_REVISION_H
#define PERSIST_REVISION_H

#include <stdbool.h>
#include <stdint.h>

#include "persist/sql_writer.h"
#include "rules/punch.h"

struct journal_window;
struct mysql_link;

/* One change of a row that exists or, with an empty old_status, of one that did not. All bytes are borrowed.
 */
struct revision_row {
	int32_t day;
	struct bytes employee, dept, old_status, old_set, new_set, cause_ref;
	const char *cause;
	struct judgement old, new;
	int64_t revision; /* the number of the new state */
};

/* Revisions on their way into MySQL: the rows themselves, the records of what they were, and what the rows
 * must be afterwards. When another has changed one of them meanwhile, the transaction fails and all is to be
 * read again. */
struct revision_rows {
	struct sql_rows inserts[2];
	struct sql_rows checks;
};

void revision_rows_init(struct revision_rows *r);
void revision_rows_release(struct revision_rows *r);
void revision_row_add(struct revision_rows *r, const struct revision_row *row, int64_t now_ms);
/* done(ok) once, later; r is borrowed until then. */
void revision_rows_write(
	struct revision_rows *r, struct mysql_link *link, void (*done)(bool ok, void *arg), void *arg);

/* Revises the rows of the window's late punches, whose raw events are in MySQL already. Withdrawals go to
 * window->append. ok is false when it must be done again; done is called once, later. */
void revision_start(struct mysql_link *link, struct journal_window *window,
	void (*done)(bool ok, int revised, void *arg), void *arg);

#endif
