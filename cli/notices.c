/* SPDX-License-Identifier: MIT */
/* `muster parked` and `muster replay`: notices that went through all their tries. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/show.h"
#include "cli/table.h"
#include "cli/when.h"

static const char *const heads[] = {"MESSAGE", "TYPE", "QUEUE", "TRIES", "TIME", "REASON", "BODY"};

static void add_row(struct table *t, const redisReply *item, bool body)
{
	char text[WHEN_MAX];
	int64_t at = answer_int(item, "time", -1);

	table_str(t, STYLE_PLAIN, answer_str(item, "id"));
	table_str(t, STYLE_PLAIN, answer_str(item, "type"));
	table_str(t, STYLE_PLAIN, answer_str(item, "queue"));
	table_int(t, answer_int(item, "attempts", 0));
	table_str(t, STYLE_PLAIN, at >= 0 ? when_format(text, at, NULL, false) : answer_str(item, "time"));
	table_str(t, STYLE_WARN, answer_str(item, "reason"));
	if (body)
		table_cell(t, STYLE_PLAIN, answer_bytes(item, "body"));
}

static void show_parked(const struct cli_options *options, const redisReply *reply, bool body)
{
	if (options->json) {
		for (size_t i = 0; i < reply->elements; i++)
			answer_print(answer_map_json(reply->element[i]));
		return;
	}
	if (reply->elements == 0) {
		puts("Nothing is parked.");
		return;
	}
	struct table *t = table_new(stdout, options->color);
	for (size_t i = 0; i < ARRAY_LEN(heads) - !body; i++)
		table_column(t, heads[i], TABLE_LEFT);
	for (size_t i = 0; i < reply->elements; i++)
		add_row(t, reply->element[i], body);
	table_flush(t);
	table_free(t);
}

static bool is_count(const char *text)
{
	int64_t n;
	return bytes_to_i64(bytes_of(text), &n) && n > 0;
}

int cmd_parked(int argc, char **argv, const struct cli_options *options)
{
	static const struct option own[] = {
		{"limit", required_argument, NULL, 'l'}, {"body", no_argument, NULL, 'b'}, {0}};
	const char *limit = "100";
	bool body = false;
	struct request r;
	redisReply *reply;

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == 'b')
			body = true;
		else if (c == 'l')
			limit = optarg;
		else
			return cli_bad_option("parked");
	}
	if (optind != argc || !is_count(limit))
		return cli_usage("parked", "expected no argument, and a number with --limit");
	request_init(&r, "NOTICE.PARKED");
	request_option(&r, "COUNT", limit);
	int result = conn_ask(options, &r, &reply);
	if (result != CLI_OK)
		return result;
	show_parked(options, reply, body);
	freeReplyObject(reply);
	return CLI_OK;
}

int cmd_replay(int argc, char **argv, const struct cli_options *options)
{
	static const struct option own[] = {{"limit", required_argument, NULL, 'l'}, {0}};
	const char *limit = NULL, *id = NULL;
	struct request r;
	redisReply *reply;

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c != 'l')
			return cli_bad_option("replay");
		limit = optarg;
	}
	id = argc - optind == 1 ? argv[optind] : NULL;
	if (argc - optind > 1 || (limit != NULL && (id != NULL || !is_count(limit))))
		return cli_usage("replay", "expected one message id, or --limit and a number, or nothing");
	request_init(&r, "NOTICE.REPLAY");
	request_option(&r, "COUNT", limit);
	request_option(&r, "ID", id);
	int result = conn_ask(options, &r, &reply);
	if (result != CLI_OK)
		return result;
	if (options->json)
		answer_print(answer_json(reply));
	else
		printf("%lld sent again\n", reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0);
	freeReplyObject(reply);
	return CLI_OK;
}
