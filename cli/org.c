/* SPDX-License-Identifier: MIT */
/* `muster employee` and `muster team`: one employee or department, by the commands of the same name. */
#include <getopt.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/show.h"

/* A verb: its words behind it, the command it becomes, and which options it takes. */
struct verb {
	const char *name, *command;
	int words;
	const char *options; /* letters of `own` below */
	bool map;            /* the reply is a map */
};

struct org_args {
	const char *dept, *name, *manager;
	char given[4]; /* letters of the options that were used */
};

static const struct option own[] = {{"dept", required_argument, NULL, 'd'},
	{"name", required_argument, NULL, 'n'}, {"manager", required_argument, NULL, 'm'}, {0}};

/* False after getopt's message. */
static bool read_args(int argc, char **argv, struct org_args *ret)
{
	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == '?')
			return false;
		*(c == 'd' ? &ret->dept : c == 'n' ? &ret->name : &ret->manager) = optarg;
		if (strchr(ret->given, c) == NULL)
			ret->given[strlen(ret->given)] = (char)c;
	}
	return true;
}

static int run(
	const struct verb *verb, char **words, const struct org_args *args, const struct cli_options *options)
{
	struct request r;

	request_init(&r, verb->command);
	for (int i = 0; i < verb->words; i++)
		request_add(&r, words[i]);
	request_option(&r, "DEPT", args->dept);
	request_option(&r, "NAME", args->name);
	request_option(&r, "MANAGER", args->manager);
	return verb->map ? show_request_map(options, &r) : show_request(options, &r);
}

static int dispatch(
	int argc, char **argv, const struct cli_options *options, const struct verb *verbs, size_t count)
{
	struct org_args args = {0};

	if (!read_args(argc, argv, &args))
		return cli_bad_option(argv[0]);
	for (size_t i = 0; i < count; i++) {
		if (optind == argc || strcmp(argv[optind], verbs[i].name) != 0)
			continue;
		if (argc - optind - 1 != verbs[i].words ||
			strspn(args.given, verbs[i].options) != strlen(args.given))
			return cli_usage(argv[0], "%s does not go with these arguments", verbs[i].name);
		return run(&verbs[i], argv + optind + 1, &args, options);
	}
	return cli_usage(argv[0], "expected one of the verbs below");
}

int cmd_employee(int argc, char **argv, const struct cli_options *options)
{
	static const struct verb verbs[] = {
		{"get", "EMPLOYEE.GET", 1, "", true},
		{"set", "EMPLOYEE.SET", 1, "dn", false},
		{"move", "EMPLOYEE.MOVE", 2, "", false},
		{"remove", "EMPLOYEE.REMOVE", 1, "", false},
	};
	return dispatch(argc, argv, options, verbs, ARRAY_LEN(verbs));
}

int cmd_team(int argc, char **argv, const struct cli_options *options)
{
	static const struct verb verbs[] = {
		{"get", "TEAM.GET", 1, "", true},
		{"add", "TEAM.ADD", 2, "nm", false},
	};
	return dispatch(argc, argv, options, verbs, ARRAY_LEN(verbs));
}
