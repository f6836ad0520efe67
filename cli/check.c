/* SPDX-License-Identifier: MIT */
/* `muster check` and `muster task check`: look through the whole tree and everything derived from it, or
 * through all tasks, and repair it when asked to. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/listing.h"
#include "cli/patience.h"
#include "cli/task.h"

static const struct listing_column tree_columns[] = {
	{"CODE", "code", TABLE_LEFT},
	{"ID", "id", TABLE_LEFT},
	{"REPAIRED", "repaired", TABLE_RIGHT},
	{"DETAIL", "detail", TABLE_LEFT},
};
static const struct listing_column task_columns[] = {
	{"CODE", "code", TABLE_LEFT},
	{"QUEUE", "queue", TABLE_LEFT},
	{"TASK", "task", TABLE_LEFT},
	{"REPAIRED", "repaired", TABLE_RIGHT},
	{"DETAIL", "detail", TABLE_LEFT},
};

struct check {
	const char *command, *unit;
	const char *items;        /* the field of the reply that counts them */
	const char *done, *total; /* the fields of INFO that tell how far it is; no total: nobody knows */
	struct listing findings;
};

static const struct check tree_check = {"TEAM.CHECK", "departments", "nodes", "check_nodes", "departments",
	{tree_columns, ARRAY_LEN(tree_columns), "Nothing found."}};
static const struct check tasks_check = {"TASK.CHECK", "tasks", "tasks", "task_check_tasks", NULL,
	{task_columns, ARRAY_LEN(task_columns), "Nothing found."}};

/* The number in the line `name:number`; 0 without one. */
static uint64_t info_number(const char *text, const char *name)
{
	size_t n = strlen(name);
	int64_t number;

	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, n) != 0 || line[n] != ':')
			continue;
		struct bytes digits = {line + n + 1, strcspn(line + n + 1, "\r\n")};
		return bytes_to_i64(digits, &number) && number > 0 ? (uint64_t)number : 0;
	}
	return 0;
}

static void seen_info(const redisReply *reply, uint64_t *ret_done, uint64_t *ret_total, void *arg)
{
	const struct check *check = arg;

	if (reply->type != REDIS_REPLY_STRING)
		return;
	*ret_done = info_number(reply->str, check->done);
	*ret_total = check->total != NULL ? info_number(reply->str, check->total) : 0;
}

/* The map of a check whose fields are maps and lists of maps themselves. */
static json_t *check_json(const redisReply *map)
{
	json_t *object = answer_map_json(map), *items = json_array();
	const redisReply *codes = answer_field(map, "codes"), *list = answer_field(map, "items");

	if (codes != NULL)
		json_object_set_new(object, "codes", answer_map_json(codes));
	for (size_t i = 0; list != NULL && list->type == REDIS_REPLY_ARRAY && i < list->elements; i++)
		json_array_append_new(items, answer_map_json(list->element[i]));
	json_object_set_new(object, "items", items);
	return object;
}

static void show_codes(const redisReply *codes)
{
	for (size_t i = 0; codes != NULL && codes->type == REDIS_REPLY_ARRAY && i + 1 < codes->elements;
		i += 2)
		printf("%s%s %lld", i > 0 ? ", " : "             ", codes->element[i]->str,
			codes->element[i + 1]->integer);
	if (codes != NULL && codes->elements > 0)
		putchar('\n');
}

static void show_items(const struct cli_options *options, const struct listing *findings,
	const redisReply *items, int64_t total)
{
	struct table *table = listing_table(findings, options);

	for (size_t i = 0; i < items->elements; i++)
		listing_row(findings, table, items->element[i]);
	table_flush(table);
	table_free(table);
	if ((int64_t)items->elements < total)
		printf("and %" PRId64 " more\n", total - (int64_t)items->elements);
}

static void show_check(const struct cli_options *options, const struct check *check, const redisReply *map)
{
	const redisReply *items = answer_field(map, "items");
	int64_t found = answer_int(map, "findings", 0);

	if (options->json) {
		answer_print(check_json(map));
		return;
	}
	printf("checked      %" PRId64 " %s, %" PRId64 " keys\n", answer_int(map, check->items, 0),
		check->unit, answer_int(map, "keys", 0));
	if (answer_int(map, "skipped", 0) > 0)
		printf("skipped      %" PRId64 "\n", answer_int(map, "skipped", 0));
	printf("findings     %" PRId64 ", %" PRId64 " repaired\n", found, answer_int(map, "repaired", 0));
	show_codes(answer_field(map, "codes"));
	if (items != NULL && items->elements > 0)
		show_items(options, &check->findings, items, found);
}

/* The daemon answers when the pass is over, or after a while that it still runs: asking again joins it. */
static int ask(const struct cli_options *options, const struct check *check, const struct request *r,
	redisReply **ret)
{
	struct request look;
	struct check progress = *check;
	const struct patience patience = {options, "checking", check->unit, &look, seen_info, &progress};
	int result;

	request_init(&look, "INFO");
	while ((result = patience_ask(&patience, r, ret)) == CLI_OK &&
		strcmp(answer_str(*ret, "state"), "running") == 0)
		freeReplyObject(*ret);
	return result;
}

/* Exit code 1 when something that was found is not repaired. */
static int run(const struct cli_options *options, const struct check *check, const struct request *r)
{
	redisReply *reply;
	int result = ask(options, check, r, &reply);

	if (result != CLI_OK)
		return result;
	bool clean = answer_int(reply, "findings", 0) <= answer_int(reply, "repaired", 0);
	show_check(options, check, reply);
	freeReplyObject(reply);
	return clean ? CLI_OK : CLI_FAILED;
}

int task_check(const struct verb *verb, const struct verb_args *args)
{
	struct request r;

	request_init(&r, verb->command);
	if (args->given['z'] != NULL)
		request_add(&r, "REPAIR");
	return run(args->options, &tasks_check, &r);
}

int cmd_check(int argc, char **argv, const struct cli_options *options)
{
	static const struct option own[] = {
		{"repair", no_argument, NULL, 'r'}, {"truth", no_argument, NULL, 't'}, {0}};
	bool repair = false, truth = false;
	struct request r;

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == '?')
			return cli_bad_option("check");
		*(c == 'r' ? &repair : &truth) = true;
	}
	if (argc > optind || (truth && !repair))
		return cli_usage("check", "expected nothing, --repair, or --repair --truth");
	request_init(&r, tree_check.command);
	if (repair)
		request_add(&r, "REPAIR");
	if (truth)
		request_add(&r, "TRUTH");
	return run(options, &tree_check, &r);
}
