/* SPDX-License-Identifier: MIT */
/* Common ways to print a reply: as JSON, as lines of field and value, or as what it is. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/table.h"

/* `label        text`, with '-' for an empty one. */
void show_field(
	const struct cli_options *options, const char *label, enum table_style style, const char *text);
/* A map: its JSON, or a line a field. */
void show_map(const struct cli_options *options, const redisReply *map);
/* Any reply: its JSON, or text, numbers and numbered lists. */
void show_reply(const struct cli_options *options, const redisReply *reply);

/* Sends a request whose reply is a map, prints it and returns the exit code. */
int show_request_map(const struct cli_options *options, const struct request *r);
/* Sends a request whose reply says little: prints it ("OK", a number) and returns the exit code. */
int show_request(const struct cli_options *options, const struct request *r);

#endif
