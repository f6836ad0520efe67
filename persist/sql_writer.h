/* SPDX-License-Identifier: MIT */
/* Multi-row inserts that a bad row can't stop. All inserts of a write go into one transaction, together with
 * the statements behind them. When the server refuses a value, the insert is halved until the bad rows are
 * known; they are told one by one and left out, and the transaction is done with all the others.
 *
 * While it looks for the bad rows, good ones are already written: every insert must bear repetition. */
#ifndef PERSIST_SQL_WRITER_H
#define PERSIST_SQL_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "persist/mysql_link.h"

/* The rows of one INSERT, as SQL text. `head` and `tail` are borrowed and must outlive the write. */
struct sql_rows {
	const char *head; /* INSERT INTO t (…) VALUES */
	const char *tail; /* ON DUPLICATE KEY UPDATE …, or "" */
	struct buf text;
	size_t *ends; /* of each row in text */
	bool *bad;
	size_t count, cap;
};

/* Writes a row between these two: "(…)" into rows->text. */
void sql_row_end(struct sql_rows *rows);
void sql_rows_release(struct sql_rows *rows);
/* Rows that were not bad. */
size_t sql_rows_good(const struct sql_rows *rows);

#define SQL_INSERTS_MAX 5

struct sql_write {
	struct sql_rows *inserts; /* borrowed until done */
	size_t insert_count;
	/* Fills in what follows the inserts, when they are about to be sent; may be called several times.
	 * NULL: none. */
	void (*extra)(struct buf *statement, void *arg);
	/* A row is bad: which insert, which row of it. The callback may add a row to a later insert. */
	void (*bad)(size_t insert, size_t row, unsigned code, const char *message, void *arg);
	/* affected[] is of the inserts. With another outcome than SQL_OK nothing is promised: write it again.
	 */
	void (*done)(enum sql_outcome outcome, const char *message, const uint64_t *affected, void *arg);
	void *arg;
};

/* done() is called exactly once, later. */
void sql_write_start(struct mysql_link *link, const struct sql_write *write);

#endif
