/* SPDX-License-Identifier: MIT */
/* `muster check`: looks through the whole tree and everything derived from it, and repairs it when asked to.
 */
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
#include "cli/show.h"

static const struct listing_column columns[] = {
	{"CODE", "code", TABLE_LEFT},
	{"ID", "id", TABLE_LEFT},
	{"REPAIRED", "repaired", TABLE_RIGHT},
	{"DETAIL", "detail", TABLE_LEFT},
};
static const struct listing findings = {columns, ARRAY_LEN(columns), "Nothing found."};

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
	(void)arg;
	if (reply->type != REDIS_REPLY_STRING)
		return;
	*ret_done = info_number(reply->str, "check_nodes");
	*ret_total = info_number(reply->str, "departments");
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

static void show_items(const struct cli_options *options, const redisReply *items, int64_t total)
{
	struct table *table = listing_table(&findings, options);

	for (size_t i = 0; i < items->elements; i++)
		listing_row(&findings, table, items->element[i]);
	table_flush(table);
	table_free(table);
	if ((int64_t)items->elements < total)
		printf("and %" PRId64 " more\n", total - (int64_t)items->elements);
}

static void show_check(const struct cli_options *options, const redisReply *map)
{
	const redisReply *items = answer_field(map, "items");
	int64_t found = answer_int(map, "findings", 0);

	if (options->json) {
		answer_print(check_json(map));
		return;
	}
	printf("checked      %" PRId64 " departments, %" PRId64 " keys\n", answer_int(map, "nodes", 0),
		answer_int(map, "keys", 0));
	printf("findings     %" PRId64 ", %" PRId64 " repaired\n", found, answer_int(map, "repaired", 0));
	show_codes(answer_field(map, "codes"));
	if (items != NULL && items->elements > 0)
		show_items(options, items, found);
}

/* The daemon answers when the pass is over, or after a while that it still runs: asking again joins it. */
static int check(const struct cli_options *options, const struct request *r, redisReply **ret)
{
	struct request look;
	const struct patience patience = {options, "checking", "departments", &look, seen_info, NULL};
	int result;

	request_init(&look, "INFO");
	while ((result = patience_ask(&patience, r, ret)) == CLI_OK &&
		strcmp(answer_str(*ret, "state"), "running") == 0)
		freeReplyObject(*ret);
	return result;
}

int cmd_check(int argc, char **argv, const struct cli_options *options)
{
	static const struct option own[] = {
		{"repair", no_argument, NULL, 'r'}, {"truth", no_argument, NULL, 't'}, {0}};
	bool repair = false, truth = false;
	struct request r;
	redisReply *reply;

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == '?')
			return cli_bad_option("check");
		*(c == 'r' ? &repair : &truth) = true;
	}
	if (argc > optind || (truth && !repair))
		return cli_usage("check", "expected nothing, --repair, or --repair --truth");
	request_init(&r, "TEAM.CHECK");
	if (repair)
		request_add(&r, "REPAIR");
	if (truth)
		request_add(&r, "TRUTH");
	int result = check(options, &r, &reply);
	if (result != CLI_OK)
		return result;
	bool clean = answer_int(reply, "findings", 0) <= answer_int(reply, "repaired", 0);
	show_check(options, reply);
	freeReplyObject(reply);
	return clean ? CLI_OK : CLI_FAILED;
}
