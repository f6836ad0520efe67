/* SPDX-License-Identifier: MIT */
/* What an error number of MySQL, MariaDB or their client library means for whoever sent the statement: one
 * table from number to outcome, so that no caller knows numbers. */
#ifndef PERSIST_MYSQL_ERROR_H
#define PERSIST_MYSQL_ERROR_H

#include <stddef.h>

enum sql_outcome {
	SQL_OK,
	SQL_LOST,     /* no connection, or it went away: what was in flight may or may not have been done */
	SQL_RETRY,    /* deadlock, lock wait and the like: do the whole transaction again */
	SQL_DATA,     /* the server refuses a value: one row is bad, the others may be good */
	SQL_BUSY,     /* out of connections, memory or space: come back much later */
	SQL_READONLY, /* the server does not take writes now */
	SQL_SCHEMA, /* tables, columns, syntax or rights are not what the program expects: a person must look
		     */
	SQL_OTHER,
};

/* 0 is SQL_OK. Numbers of the client library that the table does not name are SQL_LOST, since the state of
 * the connection is unknown then; other unknown numbers are SQL_OTHER. */
enum sql_outcome sql_classify(unsigned code);
/* "ok", "lost" … */
const char *sql_outcome_name(enum sql_outcome outcome);

struct sql_code {
	unsigned code;
	enum sql_outcome outcome;
};

/* The table, sorted by code; *ret_count entries. */
const struct sql_code *sql_codes(size_t *ret_count);

#endif
