/* SPDX-License-Identifier: MIT */
#include "cli/listing.h"

#include <stdio.h>

#include "cli/answer.h"

struct table *listing_table(const struct listing *l, const struct cli_options *options)
{
	struct table *table = table_new(stdout, options->color);

	for (size_t i = 0; i < l->count; i++)
		table_column(table, l->columns[i].head, l->columns[i].align);
	return table;
}

void listing_row(const struct listing *l, struct table *table, const redisReply *map)
{
	for (size_t i = 0; i < l->count; i++) {
		const redisReply *value = answer_field(map, l->columns[i].field);
		if (value != NULL && value->type == REDIS_REPLY_INTEGER)
			table_int(table, value->integer);
		else
			table_cell(table, STYLE_PLAIN, answer_bytes(map, l->columns[i].field));
	}
}

static void print(const struct listing *l, const struct cli_options *options, const redisReply *list)
{
	struct table *table = listing_table(l, options);

	for (size_t i = 0; i < list->elements; i++) {
		if (options->json)
			answer_print(answer_map_json(list->element[i]));
		else
			listing_row(l, table, list->element[i]);
	}
	if (!options->json && list->elements == 0)
		puts(l->none);
	else if (!options->json)
		table_flush(table);
	table_free(table);
}

int listing_request(const struct listing *l, const struct cli_options *options, const struct request *r)
{
	redisReply *reply;
	int result = conn_ask(options, r, &reply);

	if (result != CLI_OK)
		return result;
	print(l, options, reply);
	freeReplyObject(reply);
	return CLI_OK;
}
