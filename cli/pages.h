/* SPDX-License-Identifier: MIT */
/* Lists that come in pages, each behind a cursor: walked on one connection, page by page. */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include <stddef.h>

#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/table.h"

struct pages_walk {
	struct conn *conn;
	const char *page; /* COUNT */
	/* Writes the command and its options but for CURSOR and COUNT. */
	void (*request)(struct request *r, void *arg);
	/* Takes the items of a page. Anything but CLI_OK ends the walk and is what it returns. */
	int (*take)(const redisReply *items, void *arg);
	void *arg;
};

#define PAGES_ENOUGH (-1) /* for take: no more is wanted, and nothing is wrong */

/* CLI_OK at the end, an exit code after a message, or what take() returned. */
int pages_walk(const struct pages_walk *walk) __attribute__((warn_unused_result));

struct pages {
	const struct cli_options *options;
	struct table *table; /* freed by pages_print() */
	const char *page;    /* COUNT */
	const char *none;    /* what is said when there is nothing */
	void (*request)(struct request *r, void *arg);
	/* Adds one item to the table. */
	void (*row)(struct table *table, const redisReply *item, void *arg);
	void *arg;
};

/* Prints every item, as a row of a table or, with --json, as one object (or whatever it is) a line. The exit
 * code.
 */
int pages_print(const struct pages *pages);

#endif
