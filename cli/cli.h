/* SPDX-License-Identifier: MIT */
/* What every subcommand of `muster` shares: the table's type, the common options, exit codes and messages.
 *
 * main.c holds the one table of subcommands. It takes the common options out of the command line wherever
 * they stand (see options.h), so that a subcommand sees only its own words: argv[0] is its name, and it may
 * hand argc and argv to getopt_long() as they are (optind is 0). What it returns is the exit code of the
 * program. Results go to stdout, messages and progress to stderr. SIGPIPE is ignored. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,      /* the server refused, or something could not be done */
	CLI_USAGE = 2,       /* the command line or the configuration file is wrong */
	CLI_UNREACHABLE = 3, /* no connection, or it was lost, or no answer in time */
};

/* RabbitMQ, for `watch` and `subscribe`. */
struct cli_amqp {
	char *host;
	int port;
	char *user;
	char *password;
	char *vhost;
};

/* All strings are owned by the options and never NULL; an unset one is "". */
struct cli_options {
	char *host;
	int port;
	char *user;     /* "" = the token alone is enough, or no AUTH */
	char *token;    /* secret; "" = no AUTH */
	int timeout_ms; /* for connecting and for each answer */
	bool json;      /* machine-readable: each line of stdout is one JSON document */
	bool color;     /* already decided: stdout is a terminal and colours are wanted */
	struct cli_amqp amqp;
};

enum cli_command_flag {
	CLI_RAW_ARGS = 1, /* common options are looked for only up to the first argument that is not one */
};

struct cli_command {
	const char *name;
	const char *summary; /* one line for `muster help` */
	const char *usage;   /* what follows the name, such as "ID [--day D]" */
	const char *help;    /* the rest of `muster help NAME`, lines ending in \n; may be NULL */
	int (*fn)(int argc, char **argv, const struct cli_options *options);
	unsigned flags;
};

/* The table; an entry with a NULL name ends it. */
extern const struct cli_command cli_commands[];
const struct cli_command *cli_find(const char *name);

/* `muster: text` on stderr. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with the usage line of a subcommand; returns CLI_USAGE: `return cli_usage("status", "expected
 * …")`. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* After getopt_long() has answered '?' (it has printed its message): the usage line; returns CLI_USAGE. */
int cli_bad_option(const char *command);

/* The list of subcommands and common options, and the help of one subcommand; the latter returns an exit
 * code. */
void cli_print_overview(FILE *out);
int cli_print_help(const char *name);

/* Subcommands, one file each or one per family. */
int cmd_call(int argc, char **argv, const struct cli_options *options);
int cmd_check(int argc, char **argv, const struct cli_options *options);
int cmd_checkin(int argc, char **argv, const struct cli_options *options);
int cmd_close(int argc, char **argv, const struct cli_options *options);
int cmd_day(int argc, char **argv, const struct cli_options *options);
int cmd_employee(int argc, char **argv, const struct cli_options *options);
int cmd_export(int argc, char **argv, const struct cli_options *options);
int cmd_failures(int argc, char **argv, const struct cli_options *options);
int cmd_help(int argc, char **argv, const struct cli_options *options);
int cmd_import(int argc, char **argv, const struct cli_options *options);
int cmd_info(int argc, char **argv, const struct cli_options *options);
int cmd_init(int argc, char **argv, const struct cli_options *options);
int cmd_jobs(int argc, char **argv, const struct cli_options *options);
int cmd_parked(int argc, char **argv, const struct cli_options *options);
int cmd_replay(int argc, char **argv, const struct cli_options *options);
int cmd_roll(int argc, char **argv, const struct cli_options *options);
int cmd_status(int argc, char **argv, const struct cli_options *options);
int cmd_subscribe(int argc, char **argv, const struct cli_options *options);
int cmd_task(int argc, char **argv, const struct cli_options *options);
int cmd_team(int argc, char **argv, const struct cli_options *options);
int cmd_tree(int argc, char **argv, const struct cli_options *options);
int cmd_watch(int argc, char **argv, const struct cli_options *options);
int cmd_work(int argc, char **argv, const struct cli_options *options);

#endif
