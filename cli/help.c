/* SPDX-License-Identifier: MIT */
/* Messages and help of `muster`, from the table of subcommands. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const char common_help[] =
	"Options, before or behind the command:\n"
	"  --host HOST        address or name of musterd (127.0.0.1; MUSTER_HOST)\n"
	"  --port PORT        its port (7411; MUSTER_PORT)\n"
	"  --user USER        log in as (MUSTER_USER)\n"
	"  --token-file FILE  the token is its first line (MUSTER_TOKEN_FILE, or MUSTER_TOKEN itself)\n"
	"  --timeout SECONDS  longest wait for an answer (15)\n"
	"  --json             one JSON document a line; lists are one object a line\n"
	"  --no-color         no colours on a terminal (NO_COLOR)\n"
	"  --config FILE      instead of /etc/muster/client.conf and ~/.config/muster.conf\n"
	"  --help, --version\n"
	"Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 server not reached.\n";

const struct cli_command *cli_find(const char *name)
{
	for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
		if (strcmp(c->name, name) == 0)
			return c;
	}
	return NULL;
}

void cli_error(const char *format, ...)
{
	va_list ap;

	fputs("muster: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int cli_bad_option(const char *command)
{
	const struct cli_command *c = cli_find(command);

	fprintf(stderr, "usage: muster %s %s\n", c->name, c->usage);
	return CLI_USAGE;
}

int cli_usage(const char *command, const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "muster %s: ", command);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	return cli_bad_option(command);
}

void cli_print_overview(FILE *out)
{
	fputs("usage: muster [OPTION…] COMMAND [ARGUMENT…]\n\nCommands:\n", out);
	for (const struct cli_command *c = cli_commands; c->name != NULL; c++)
		fprintf(out, "  %-10s %s\n", c->name, c->summary);
	fprintf(out, "\n%s", common_help);
}

int cli_print_help(const char *name)
{
	const struct cli_command *c = cli_find(name);

	if (c == NULL) {
		cli_error("no command '%s'; `muster help` lists them", name);
		return CLI_USAGE;
	}
	printf("usage: muster %s %s\n%s.\n", c->name, c->usage, c->summary);
	if (c->help != NULL)
		printf("\n%s", c->help);
	return CLI_OK;
}

int cmd_help(int argc, char **argv, const struct cli_options *options)
{
	(void)options;
	if (argc > 2)
		return cli_usage("help", "expected at most one command");
	if (argc == 2)
		return cli_print_help(argv[1]);
	cli_print_overview(stdout);
	return CLI_OK;
}
