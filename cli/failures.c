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
#include "cli/pages.h"
#include "cli/show.h"
#include "cli/table.h"
#include "cli/when.h"

#define PAGE "500"

struct failures {
	const struct cli_options *options;
	const char *day, *dept;
};

static struct table *new_table(const struct failures *f)
{
	static const char *const heads[] = {
		"ID", "KIND", "DAY", "DEPARTMENT", "EMPLOYEE", "TRIES", "SINCE", "REASON"};

	struct table *table = table_new(stdout, f->options->color);
	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		table_column(table, heads[i], TABLE_LEFT);
	return table;
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

static void add_row(struct table *table, const redisReply *item, void *arg)
{
	char text[WHEN_MAX];
	struct bytes reason = answer_bytes(item, "reason"), detail = answer_bytes(item, "detail");
	struct buf why = BUF_INIT;

	(void)arg;
	buf_add_bytes(&why, reason);
	if (detail.n > 0)
		buf_add_str(&why, reason.n > 0 ? ": " : "");
	buf_add_bytes(&why, detail);
	table_str(table, STYLE_PLAIN, number_or_text(text, item, "id"));
	table_str(table, STYLE_PLAIN, answer_str(item, "kind"));
	table_str(table, STYLE_PLAIN, answer_str(item, "day"));
	table_str(table, STYLE_PLAIN, answer_str(item, "dept"));
	table_str(table, STYLE_PLAIN, answer_str(item, "employee"));
	table_str(table, STYLE_PLAIN, number_or_text(text, item, "attempts"));
	table_str(table, STYLE_PLAIN, created_text(text, item));
	table_cell(table, STYLE_WARN, buf_bytes(&why));
	buf_release(&why);
}

static void write_request(struct request *r, void *arg)
{
	const struct failures *f = arg;

	request_init(r, "FAILURE.LIST");
	request_option(r, "DAY", f->day);
	request_option(r, "DEPT", f->dept);
}

static int list(struct failures *f)
{
	struct pages pages = {.options = f->options,
		.table = new_table(f),
		.page = PAGE,
		.none = "No failures.",
		.request = write_request,
		.row = add_row,
		.arg = f};

	return pages_print(&pages);
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
