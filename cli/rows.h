/* SPDX-License-Identifier: MIT */
/* The rows of an import file: CSV with a head line that names the columns in any order, checked one by one
 * against what the server accepts. A row that does not pass is reported and left out. */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"

enum row_kind { ROW_DEPARTMENT, ROW_EMPLOYEE, ROW_MEMBER, ROW_UNKNOWN };

struct row {
	uint64_t line;
	uint64_t offset; /* bytes of the file that were read before, about */
	enum row_kind kind;
	struct bytes id, parent, name, manager; /* empty when not given */
	bool retired;
};

/* Anything but 0 stops the reading. */
struct rows_events {
	int (*row)(const struct row *row, void *arg);
	/* Line and kind are set, the texts as far as they are known. */
	int (*error)(const struct row *row, const char *message, void *arg);
};

/* What rows_read() returns besides what a callback returned. */
enum { ROWS_OK = 0, ROWS_NO_HEAD = -1, ROWS_UNREADABLE = -2 };

/* Reads from `start` to the end of a seekable file. A head line that is missing or wrong is reported as an
 * error and ends the reading with ROWS_NO_HEAD; a failed read leaves errno and gives ROWS_UNREADABLE. */
int rows_read(int fd, off_t start, const struct rows_events *events, void *arg)
	__attribute__((warn_unused_result));

#endif
