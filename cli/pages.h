/* SPDX-License-Identifier: MIT */
/* A list that comes in pages, each behind a cursor: asks for all of them on one connection and prints every
 * item, as a row of a table or, with --json, as one object a line. */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include <stddef.h>

#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/table.h"

struct pages {
	const struct cli_options *options;
	struct table *table; /* freed by pages_print() */
	const char *page;    /* COUNT */
	const char *none;    /* what is said when there is nothing */
	/* Writes the command and its options but for CURSOR and COUNT. */
	void (*request)(struct request *r, void *arg);
	/* Adds one item to the table. */
	void (*row)(struct table *table, const redisReply *item, void *arg);
	void *arg;
};

/* The exit code. */
int pages_print(const struct pages *pages);

#endif
