/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include <getopt.h>
#include <string.h>

#include "base/mem.h"
#include "cli/show.h"

/* Every option of every verb, and its word in a command; one that has none is for the verb itself. */
static const struct {
	const char *name;
	char letter;
	bool flag;
	const char *word;
} own[] = {
	{"dept", 'd', false, "DEPT"},
	{"name", 'n', false, "NAME"},
	{"manager", 'm', false, "MANAGER"},
	{"cascade", 'C', true, "CASCADE"},
	{"lift", 'L', true, "LIFT"},
	{"retire", 'R', true, "RETIRE"},
	{"if-version", 'i', false, "IF"},
	{"dry-run", 'D', true, "DRYRUN"},
	{"subtree", 's', true, "SUBTREE"},
	{"all", 'a', true, "ALL"},
	/* of tasks */
	{"priority", 'p', false, "PRIORITY"},
	{"delay", 'y', false, "DELAY"},
	{"key", 'k', false, "KEY"},
	{"window", 'w', false, "WINDOW"},
	{"retries", 't', false, "RETRIES"},
	{"lease", 'l', false, "LEASE"},
	{"count", 'c', false, "COUNT"},
	{"result", 'r', false, "RESULT"},
	{"error", 'e', false, "ERROR"},
	{"status", 'S', false, "STATUS"},
	{"worker", 'W', false, NULL},
	{"wait", 'x', false, NULL},
	{"file", 'f', false, NULL},
	{"queue", 'q', false, NULL},
	{"since", 'A', false, NULL},
	{"until", 'B', false, NULL},
	{"payload", 'P', true, NULL},
	{"output", 'o', true, NULL},
	{"repair", 'z', true, NULL},
};

/* False after getopt's message. */
static bool read_args(int argc, char **argv, struct verb_args *args)
{
	struct option list[ARRAY_LEN(own) + 1] = {0};

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		list[i] = (struct option){
			own[i].name, own[i].flag ? no_argument : required_argument, NULL, own[i].letter};
	for (int c; (c = getopt_long(argc, argv, "", list, NULL)) != -1;) {
		if (c == '?')
			return false;
		args->given[c] = optarg != NULL ? optarg : "";
	}
	return true;
}

/* Whether the verb takes all the options that were given; modes of a removal exclude each other. */
static bool takes(const struct verb *verb, const struct verb_args *args)
{
	int modes = 0;

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		if (args->given[(int)own[i].letter] == NULL)
			continue;
		if (strchr(verb->letters, own[i].letter) == NULL)
			return false;
		modes += strchr("CLR", own[i].letter) != NULL;
	}
	return modes <= 1 && args->count >= verb->words &&
	       (verb->more < 0 || args->count <= verb->words + verb->more);
}

int verbs_run(
	int argc, char **argv, const struct cli_options *options, const struct verb *verbs, size_t count)
{
	struct verb_args args = {.options = options};

	if (!read_args(argc, argv, &args))
		return cli_bad_option(argv[0]);
	for (size_t i = 0; i < count; i++) {
		if (optind == argc || strcmp(argv[optind], verbs[i].name) != 0)
			continue;
		args.words = argv + optind + 1;
		args.count = argc - optind - 1;
		if (!takes(&verbs[i], &args))
			return cli_usage(argv[0], "%s does not go with these arguments", verbs[i].name);
		return verbs[i].run(&verbs[i], &args);
	}
	return cli_usage(argv[0], "expected one of the verbs below");
}

void verb_options(const struct verb_args *args, struct request *r)
{
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		const char *value = args->given[(int)own[i].letter];
		if (own[i].word != NULL && value != NULL && own[i].flag)
			request_add(r, own[i].word);
		else if (own[i].word != NULL)
			request_option(r, own[i].word, value);
	}
}

void verb_request(const struct verb *verb, const struct verb_args *args, struct request *r)
{
	request_init(r, verb->command);
	for (int i = 0; i < args->count; i++)
		request_add(r, args->words[i]);
	verb_options(args, r);
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
	return args->given['D'] != NULL ? show_request_map(args->options, &r)
					: show_request(args->options, &r);
}
