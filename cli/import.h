/* SPDX-License-Identifier: MIT */
/* What the two halves of `muster import` share: import.c reads the file, sends people and counts,
 * import_departments.c has the departments. */
#ifndef CLI_IMPORT_H
#define CLI_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "cli/conn.h"
#include "cli/orgtree.h"
#include "cli/progress.h"
#include "cli/rows.h"
#include "cli/sender.h"
#include "cli/source.h"

struct import_count {
	uint64_t sent, ok, failed;
};

struct import {
	const struct cli_options *options;
	struct source source;
	bool dry_run;
	bool whole; /* a tree of the file with an error in it is left out whole */
	size_t window;
	int64_t patience_ms;
	struct orgtree *tree;
	struct sender *sender; /* NULL with dry_run */
	struct progress *progress;
	enum row_kind sending;                       /* what commands that are no department's are about */
	struct import_count counts[ROW_UNKNOWN + 1]; /* by kind; unknown = lines that are none of them */
	uint64_t lines[ROW_UNKNOWN];                 /* that passed their own checks, by kind */
	uint64_t duplicates;                         /* departments that came once more, just as before */
	uint64_t decided;                            /* departments, for the progress */
	uint64_t created, unchanged;                 /* departments, in the end */
	int64_t started_us;
	int stopped; /* the exit code, once the sender has given up */
};

/* The words of one command; add_option() leaves an empty value out. */
struct import_words {
	int argc;
	const char *argv[REQUEST_MAX];
	size_t len[REQUEST_MAX];
};

void import_word(struct import_words *w, struct bytes word);
void import_option(struct import_words *w, const char *name, struct bytes value);

/* A line that fails: its message, and its count. */
void import_fail(struct import *im, enum row_kind kind, uint64_t line, const char *message);
/* Sends a command for a line, or for a department, which is then told of the reply. */
void import_put(struct import *im, const struct import_words *w, uint64_t line, struct org *org);
/* Waits until all that was sent is decided. */
void import_flush(struct import *im);

/* First pass: a department's row, and one that is wrong. */
void import_collect(struct import *im, const struct row *row);
/* What only the whole file shows. */
void import_check(struct import *im);
/* Adds the departments, parents first; and retires those that are to be, once everybody is in. */
void import_departments(struct import *im);
void import_retire(struct import *im);
/* The reply to a department's command; NULL in a dry run. */
void import_department_done(struct import *im, struct org *org, const redisReply *reply);
/* Sums up `created` and `unchanged`. */
void import_count_departments(struct import *im);

#endif
