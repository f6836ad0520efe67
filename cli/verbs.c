/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include <getopt.h>
#include <string.h>

#include "base/mem.h"
#include "cli/show.h"

static const struct option own[] = {
	{"dept", required_argument, NULL, 'd'},
	{"name", required_argument, NULL, 'n'},
	{"manager", required_argument, NULL, 'm'},
	{"if-version", required_argument, NULL, 'i'},
	{"cascade", no_argument, NULL, 'C'},
	{"lift", no_argument, NULL, 'L'},
	{"retire", no_argument, NULL, 'R'},
	{"dry-run", no_argument, NULL, 'D'},
	{"subtree", no_argument, NULL, 's'},
	{"all", no_argument, NULL, 'a'},
	{0},
};

static void take(struct verb_args *args, int letter)
{
	switch (letter) {
	case 'd':
		args->dept = optarg;
		break;
	case 'n':
		args->name = optarg;
		break;
	case 'm':
		args->manager = optarg;
		break;
	case 'i':
		args->version = optarg;
		break;
	case 'C':
		args->mode = "CASCADE";
		break;
	case 'L':
		args->mode = "LIFT";
		break;
	case 'R':
		args->mode = "RETIRE";
		break;
	case 'D':
		args->dry_run = true;
		break;
	case 's':
		args->subtree = true;
		break;
	default:
		args->all = true;
	}
}

/* Which letters were given goes to `given`, each once. False after getopt's message. */
static bool read_args(int argc, char **argv, struct verb_args *args, char given[ARRAY_LEN(own)])
{
	size_t count = 0;

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == '?')
			return false;
		take(args, c);
		if (memchr(given, c, count) == NULL)
			given[count++] = (char)c;
	}
	given[count] = '\0';
	return true;
}

/* Modes of a removal exclude each other. */
static size_t count_modes(const char *given)
{
	size_t count = 0;

	for (; *given != '\0'; given++)
		count += strchr("CLR", *given) != NULL;
	return count;
}

int verbs_run(
	int argc, char **argv, const struct cli_options *options, const struct verb *verbs, size_t count)
{
	struct verb_args args = {.options = options};
	char given[ARRAY_LEN(own)];

	if (!read_args(argc, argv, &args, given))
		return cli_bad_option(argv[0]);
	for (size_t i = 0; i < count; i++) {
		if (optind == argc || strcmp(argv[optind], verbs[i].name) != 0)
			continue;
		if (argc - optind - 1 != verbs[i].words || strspn(given, verbs[i].letters) != strlen(given) ||
			count_modes(given) > 1)
			return cli_usage(argv[0], "%s does not go with these arguments", verbs[i].name);
		args.words = argv + optind + 1;
		return verbs[i].run(&verbs[i], &args);
	}
	return cli_usage(argv[0], "expected one of the verbs below");
}

void verb_request(const struct verb *verb, const struct verb_args *args, struct request *r)
{
	request_init(r, verb->command);
	for (int i = 0; i < verb->words; i++)
		request_add(r, args->words[i]);
	request_option(r, "DEPT", args->dept);
	request_option(r, "NAME", args->name);
	request_option(r, "MANAGER", args->manager);
	if (args->mode != NULL)
		request_add(r, args->mode);
	request_option(r, "IF", args->version);
	if (args->dry_run)
		request_add(r, "DRYRUN");
	if (args->subtree)
		request_add(r, "SUBTREE");
	if (args->all)
		request_add(r, "ALL");
}

int verb_map(const struct verb *verb, const struct verb_args *args)
{
	struct request r;

	verb_request(verb, args, &r);
	return show_request_map(args->options, &r);
}

int verb_value(const struct verb *verb, const struct verb_args *args)
{
	struct request r;

	verb_request(verb, args, &r);
	return args->dry_run ? show_request_map(args->options, &r) : show_request(args->options, &r);
}
