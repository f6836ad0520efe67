/* SPDX-License-Identifier: MIT */
#include "cli/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/answer.h"
#include "cli/text.h"

#define LABEL_WIDTH 12

void show_field(
	const struct cli_options *options, const char *label, enum table_style style, const char *text)
{
	struct buf clean = BUF_INIT;

	text_clean(&clean, label, strlen(label));
	printf("%-*s ", LABEL_WIDTH, clean.data != NULL ? clean.data : "");
	table_styled(stdout, options->color, style, text[0] != '\0' ? text : "-");
	putchar('\n');
	buf_release(&clean);
}

static void print_text(const redisReply *reply)
{
	struct buf clean = BUF_INIT;

	text_clean(&clean, reply->str, (size_t)reply->len);
	puts(clean.data != NULL ? clean.data : "");
	buf_release(&clean);
}

/* One value behind `indent` columns that are taken already. */
static void print_value(const redisReply *reply, int indent)
{
	switch (reply->type) {
	case REDIS_REPLY_INTEGER:
		printf("%lld\n", reply->integer);
		break;
	case REDIS_REPLY_NIL:
		puts("(nil)");
		break;
	case REDIS_REPLY_ARRAY:
		if (reply->elements == 0)
			puts("(empty)");
		for (size_t i = 0; i < reply->elements; i++) {
			char number[24];
			int taken = snprintf(number, sizeof(number), "%zu) ", i + 1);
			printf("%*s%s", i > 0 ? indent : 0, "", number);
			print_value(reply->element[i], indent + taken);
		}
		break;
	default:
		print_text(reply);
	}
}

static void show_list(const struct cli_options *options, const char *label, const redisReply *list)
{
	struct buf text = BUF_INIT;

	for (size_t i = 0; i < list->elements; i++)
		buf_addf(&text, "%s%s", i > 0 ? ", " : "",
			list->element[i]->str != NULL ? list->element[i]->str : "");
	show_field(options, label, STYLE_PLAIN, list->elements > 0 ? text.data : "");
	buf_release(&text);
}

void show_map(const struct cli_options *options, const redisReply *map)
{
	if (options->json) {
		answer_print(answer_map_json(map));
		return;
	}
	for (size_t i = 0; map->type == REDIS_REPLY_ARRAY && i + 1 < map->elements; i += 2) {
		const char *label = map->element[i]->str;
		if (label == NULL)
			continue;
		if (map->element[i + 1]->type == REDIS_REPLY_INTEGER) {
			char digits[24];
			snprintf(digits, sizeof(digits), "%lld", map->element[i + 1]->integer);
			show_field(options, label, STYLE_PLAIN, digits);
		} else if (map->element[i + 1]->type == REDIS_REPLY_ARRAY) {
			show_list(options, label, map->element[i + 1]);
		} else {
			enum table_style style = strcmp(label, "state") == 0
							 ? table_state_style(answer_str(map, label))
							 : STYLE_PLAIN;
			show_field(options, label, style, answer_str(map, label));
		}
	}
}

void show_reply(const struct cli_options *options, const redisReply *reply)
{
	if (options->json)
		answer_print(answer_json(reply));
	else
		print_value(reply, 0);
}

int show_request_map(const struct cli_options *options, const struct request *r)
{
	redisReply *reply;
	int result = conn_ask(options, r, &reply);

	if (result != CLI_OK)
		return result;
	show_map(options, reply);
	freeReplyObject(reply);
	return CLI_OK;
}

int show_request(const struct cli_options *options, const struct request *r)
{
	redisReply *reply;
	int result = conn_ask(options, r, &reply);

	if (result != CLI_OK)
		return result;
	show_reply(options, reply);
	freeReplyObject(reply);
	return CLI_OK;
}
