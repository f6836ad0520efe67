/* SPDX-License-Identifier: MIT */
/* Lists of maps as tables: which field stands in which column. */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include <stddef.h>

#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/table.h"

struct listing_column {
	const char *head, *field;
	enum table_align align;
};

struct listing {
	const struct listing_column *columns;
	size_t count;
	const char *none; /* what is said when there is nothing */
};

struct table *listing_table(const struct listing *l, const struct cli_options *options);
void listing_row(const struct listing *l, struct table *table, const redisReply *map);
/* Sends a request whose reply is an array of maps and prints it; returns the exit code. */
int listing_request(const struct listing *l, const struct cli_options *options, const struct request *r);

#endif
