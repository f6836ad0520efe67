/* SPDX-License-Identifier: MIT */
/* Subcommands that have verbs of their own, such as `muster team move`: a verb becomes one command, with the
 * words behind it and the options that it takes. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"
#include "cli/conn.h"

struct verb_args {
	const struct cli_options *options;
	char **words; /* behind the verb */
	int count;
	const char *
		given[128]; /* by the letters of verbs.c: an option's value, "" of a flag; NULL = not given */
};

struct verb {
	const char *name, *command;
	int words;
	const char *letters; /* the options it takes */
	/* Sends the command and prints its reply; the exit code. */
	int (*run)(const struct verb *verb, const struct verb_args *args);
	int more; /* words that may follow; -1 = any number */
};

/* The verb that argv names. */
int verbs_run(
	int argc, char **argv, const struct cli_options *options, const struct verb *verbs, size_t count);
/* The options that are options of the command too; and the whole command, with its words before them. */
void verb_options(const struct verb_args *args, struct request *r);
void verb_request(const struct verb *verb, const struct verb_args *args, struct request *r);

/* Common ways to run one: the reply is a map, or anything else; a dry run's is always a map. */
int verb_map(const struct verb *verb, const struct verb_args *args);
int verb_value(const struct verb *verb, const struct verb_args *args);

#endif
