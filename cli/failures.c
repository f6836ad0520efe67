/* SPDX-License-Identifier: MIT */
/* `muster failures`: what could not be stored, and what to do about it. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/show.h"
#include "cli/table.h"
#include "cli/when.h"

#define PAGE "500"

struct failures {
	const struct cli_options *options;
	const char *day, *dept;
	struct table *table;
	size_t count;
};

static void begin(struct failures *f)
{
	static const char *const heads[] = {
		"ID", "KIND", "DAY", "DEPARTMENT", "EMPLOYEE", "TRIES", "SINCE", "REASON"};

	f->table = table_new(stdout, f->options->color);
	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		table_column(f->table, heads[i], TABLE_LEFT);
}

/* `created` may be an instant or a date and time of the database. */
static const char *created_text(char dst[WHEN_MAX], const redisReply *item)
{
	int64_t at = answer_int(item, "created", -1);
	return at >= 0 ? when_format(dst, at, NULL, false) : answer_str(item, "created");
}

static const char *number_or_text(char dst[WHEN_MAX], const redisReply *item, const char *name)
{
	int64_t n = answer_int(item, name, -1);

	if (n < 0)
		return answer_str(item, name);
	snprintf(dst, WHEN_MAX, "%lld", (long long)n);
	return dst;
}

static void add_row(struct failures *f, const redisReply *item)
{
	char text[WHEN_MAX];
	struct bytes reason = answer_bytes(item, "reason"), detail = answer_bytes(item, "detail");
	struct buf why = BUF_INIT;

	f->count++;
	if (f->options->json) {
		answer_print(answer_map_json(item));
		return;
	}
	buf_add_bytes(&why, reason);
	if (detail.n > 0)
		buf_add_str(&why, reason.n > 0 ? ": " : "");
	buf_add_bytes(&why, detail);
	table_str(f->table, STYLE_PLAIN, number_or_text(text, item, "id"));
	table_str(f->table, STYLE_PLAIN, answer_str(item, "kind"));
	table_str(f->table, STYLE_PLAIN, answer_str(item, "day"));
	table_str(f->table, STYLE_PLAIN, answer_str(item, "dept"));
	table_str(f->table, STYLE_PLAIN, answer_str(item, "employee"));
	table_str(f->table, STYLE_PLAIN, number_or_text(text, item, "attempts"));
	table_str(f->table, STYLE_PLAIN, created_text(text, item));
	table_cell(f->table, STYLE_WARN, buf_bytes(&why));
	buf_release(&why);
}

static int list_page(struct failures *f, struct conn *conn, struct buf *cursor)
{
	struct request r;
	redisReply *reply;
	const char *next;

	request_init(&r, "FAILURE.LIST");
	request_option(&r, "DAY", f->day);
	request_option(&r, "DEPT", f->dept);
	request_option(&r, "CURSOR", cursor->len > 0 ? cursor->data : NULL);
	request_option(&r, "COUNT", PAGE);
	int result = conn_request(conn, &r, &reply);
	if (result != CLI_OK)
		return result;
	const redisReply *items = answer_page(reply, &next);
	buf_clear(cursor);
	if (items != NULL)
		buf_add_str(cursor, next);
	for (size_t i = 0; items != NULL && i < items->elements; i++)
		add_row(f, items->element[i]);
	freeReplyObject(reply);
	return items != NULL ? CLI_OK : CLI_FAILED;
}

static int list(struct failures *f)
{
	struct buf cursor = BUF_INIT;
	int result;
	struct conn *conn = conn_open(f->options, false, &result);

	if (conn == NULL)
		return result;
	begin(f);
	do {
		result = list_page(f, conn, &cursor);
		if (result == CLI_OK && !f->options->json && f->count > 0)
			table_flush(f->table);
	} while (result == CLI_OK && cursor.len > 0 && ferror(stdout) == 0);
	if (result == CLI_OK && f->count == 0 && !f->options->json)
		puts("No failures.");
	table_free(f->table);
	buf_release(&cursor);
	conn_close(conn);
	return result;
}

static int act(const struct cli_options *options, const char *command, const char *verb, const char *id)
{
	struct request r;
	redisReply *reply;

	request_init(&r, command);
	request_add(&r, id);
	int result = conn_ask(options, &r, &reply);
	if (result != CLI_OK)
		return result;
	if (options->json)
		answer_print(answer_json(reply));
	else
		printf("%lld %s\n", reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0, verb);
	freeReplyObject(reply);
	return CLI_OK;
}

int cmd_failures(int argc, char **argv, const struct cli_options *options)
{
	static const struct option own[] = {
		{"day", required_argument, NULL, 'd'}, {"dept", required_argument, NULL, 'p'}, {0}};
	struct failures f = {.options = options};

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c != 'd' && c != 'p')
			return cli_bad_option("failures");
		*(c == 'd' ? &f.day : &f.dept) = optarg;
	}
	int words = argc - optind;
	const char *what = words > 0 ? argv[optind] : "list";
	if (strcmp(what, "list") == 0 && words <= 1)
		return list(&f);
	if (strcmp(what, "retry") == 0 && words == 2)
		return act(options, "FAILURE.RETRY", "written", argv[optind + 1]);
	if (strcmp(what, "discard") == 0 && words == 2)
		return act(options, "FAILURE.DISCARD", "discarded", argv[optind + 1]);
	return cli_usage("failures", "expected list, retry ID or discard ID");
}
