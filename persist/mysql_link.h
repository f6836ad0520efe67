/* SPDX-License-Identifier: MIT */
/* A link to MySQL or MariaDB: one connection that is kept up, and a queue of jobs that run on it one after
 * the other. A job is one statement, or a transaction of several that nothing comes between.
 *
 * Every session is strict, in UTC, READ COMMITTED, utf8mb4 and waits 5 s for a row lock. A job is only
 * accepted by a link that is ready; when the connection goes, every job in the queue ends with SQL_LOST, none
 * is repeated: what to do again is for its sender to say, whose statements must therefore bear repetition.
 *
 * Each callback is called exactly once, from the loop, never inside the call that was given it. */
#ifndef PERSIST_MYSQL_LINK_H
#define PERSIST_MYSQL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "persist/mysql_error.h"

struct config;
struct event_base;
struct mysql_link;

struct mysql_result {
	enum sql_outcome outcome;
	unsigned code;             /* the server's number, or the client library's; 0 with SQL_OK */
	const char *message;       /* the server's words, which may quote a value; "" with SQL_OK */
	size_t failed;             /* which statement of the job: 0…count-1, or MYSQL_NO_STATEMENT */
	const uint64_t *affected;  /* rows affected (or returned), one entry a statement; 0 where none ran */
	const struct bytes *cells; /* what mysql_link_query() read; none of a batch: see mysql_cell() */
	size_t rows, columns;
};

#define MYSQL_NO_STATEMENT SIZE_MAX /* none failed, or BEGIN or COMMIT did */

/* The result and all it points to are gone when the callback returns. */
typedef void (*mysql_cb)(const struct mysql_result *result, void *arg);

/* A cell of the result; its p is NULL for an SQL NULL. */
static inline struct bytes mysql_cell(const struct mysql_result *result, size_t row, size_t column)
{
	return result->cells[row * result->columns + column];
}

/* `config` and `name` (for log and INFO) must outlive the link. It does nothing before mysql_link_start(). */
struct mysql_link *mysql_link_new(struct event_base *base, const struct config *config, const char *name);
/* Connects, and reconnects with growing pauses for as long as the link lives. */
void mysql_link_start(struct mysql_link *link);
/* Never blocks. Jobs that are not done end with SQL_LOST before this returns; their callbacks must not use
 * the link. May be called from a callback of the link. */
void mysql_link_free(struct mysql_link *link);

/* True while jobs are accepted. */
bool mysql_link_ready(const struct mysql_link *link);
/* fn(ready, arg) is called when mysql_link_ready() has changed. At most 4 watchers; there is no removal. */
void mysql_link_watch(struct mysql_link *link, void (*fn)(bool ready, void *arg), void *arg);
/* Why the link is not ready, or its last failure; "" when there was none. */
const char *mysql_link_last_error(const struct mysql_link *link);
/* The longest statement the server takes, in bytes; 0 while never connected. Stay well below: a quarter is
 * good. */
size_t mysql_link_max_packet(const struct mysql_link *link);
/* A deadline for each statement that starts from now on, in milliseconds; 0 = as configured. */
void mysql_link_set_timeout(struct mysql_link *link, int64_t timeout_ms);

/* Runs one statement. The text is taken: `sql` is as new when this returns. A statement past its deadline
 * costs the connection: SQL_LOST. One above the server's packet size is refused here, as SQL_DATA. */
void mysql_link_query(struct mysql_link *link, struct buf *sql, mysql_cb cb, void *arg);

/* Runs BEGIN, the statements in order, COMMIT; at the first that fails, ROLLBACK instead, and the result says
 * which. Whatever the outcome but SQL_OK and SQL_LOST, nothing was written; with SQL_LOST at the COMMIT that
 * is unknown. The array and the texts are borrowed until the callback, so that the caller can send them
 * again. */
void mysql_link_batch(
	struct mysql_link *link, const struct bytes *statements, size_t count, mysql_cb cb, void *arg);

#endif
