/* SPDX-License-Identifier: MIT */
/* Looking at tasks: a queue's list, one task with its payload, numbers of queues. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/listing.h"
#include "cli/pages.h"
#include "cli/show.h"
#include "cli/task.h"
#include "cli/when.h"

#define PAGE "500"

/* ---- list ---- */

struct query {
	const struct verb_args *args;
	struct bytes first, last; /* priorities; no first: all */
	char since[WHEN_MAX], until[WHEN_MAX];
};

/* What a user may type for an instant; without one the end that `fallback` stands for. */
static bool read_when(char dst[WHEN_MAX], const char *option, const char *text, const char *fallback)
{
	if (when_parse(dst, text != NULL ? text : fallback, clock_wall_ms()))
		return true;
	cli_error("--%s: expected a time, found '%s'", option, text);
	return false;
}

static bool read_query(struct query *q, const struct verb_args *args)
{
	const char *priorities = args->given['p'];

	*q = (struct query){.args = args};
	if (priorities != NULL) {
		q->last = bytes_of(priorities);
		q->first = bytes_cut(&q->last, '-');
		q->last = q->last.n > 0 ? q->last : q->first;
	}
	return read_when(q->since, "since", args->given['A'], "0") &&
	       read_when(q->until, "until", args->given['B'], "9999-12-31T23:59:59Z");
}

static void write_query(struct request *r, void *arg)
{
	const struct query *q = arg;

	request_init(r, "TASK.LIST");
	request_add(r, q->args->words[0]);
	request_option(r, "STATUS", q->args->given['S']);
	request_option(r, "WORKER", q->args->given['W']);
	if (q->first.p != NULL) {
		request_add(r, "PRIORITY");
		request_add_bytes(r, q->first);
		request_add_bytes(r, q->last);
	}
	if (q->args->given['A'] != NULL || q->args->given['B'] != NULL) {
		request_add(r, "SUBMITTED");
		request_add(r, q->since);
		request_add(r, q->until);
	}
}

/* The instant that matters in this status: when it ended, must be heard of, or may begin. */
static const char *due_text(char dst[WHEN_MAX], const redisReply *task)
{
	static const char *const fields[] = {"finished", "deadline", "not_before"};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		int64_t at = answer_int(task, fields[i], 0);
		if (at > 0)
			return when_format(dst, at, NULL, false);
	}
	return "";
}

static void task_row(struct table *table, const redisReply *task, void *arg)
{
	char text[WHEN_MAX];
	const char *status = answer_str(task, "status");

	(void)arg;
	table_cell(table, STYLE_PLAIN, answer_bytes(task, "id"));
	table_str(table, task_status_style(status), status);
	table_int(table, answer_int(task, "priority", 0));
	table_str(table, STYLE_PLAIN, when_format(text, answer_int(task, "submitted", 0), NULL, false));
	table_int(table, answer_int(task, "retries", 0));
	table_str(table, STYLE_PLAIN, due_text(text, task));
	table_cell(table, STYLE_PLAIN, answer_bytes(task, "worker"));
	table_cell(table, STYLE_PLAIN, answer_bytes(task, "key"));
	table_cell(table, STYLE_WARN, answer_bytes(task, "error"));
}

int task_list(const struct verb *verb, const struct verb_args *args)
{
	static const char *const heads[] = {
		"ID", "STATUS", "PRIORITY", "SUBMITTED", "RETRIES", "ENDED OR DUE", "WORKER", "KEY", "ERROR"};
	struct query q;

	(void)verb;
	if (!read_query(&q, args))
		return CLI_USAGE;
	struct pages pages = {
		.options = args->options,
		.table = table_new(stdout, args->options->color),
		.page = PAGE,
		.none = "No tasks.",
		.request = write_query,
		.row = task_row,
		.arg = &q,
	};
	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		table_column(pages.table, heads[i], i == 2 || i == 4 ? TABLE_RIGHT : TABLE_LEFT);
	return pages_print(&pages);
}

/* ---- show ---- */

static bool is_instant(const char *field)
{
	static const char *const fields[] = {"submitted", "not_before", "claimed", "deadline", "finished"};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (strcmp(fields[i], field) == 0)
			return true;
	}
	return false;
}

/* Fields that are null are left out, and so is the payload, which is asked for by its option. */
static void show_task(const struct cli_options *options, const redisReply *task)
{
	char text[WHEN_MAX];

	for (size_t i = 0; i + 1 < task->elements; i += 2) {
		const char *field = task->element[i]->str;
		const redisReply *value = task->element[i + 1];
		bool number = value->type == REDIS_REPLY_INTEGER;
		if (field == NULL || value->type == REDIS_REPLY_NIL || strcmp(field, "payload") == 0)
			continue;
		if (number && is_instant(field))
			when_format(text, value->integer, NULL, true);
		else if (number)
			snprintf(text, sizeof(text), "%lld", value->integer);
		show_field(options, field,
			strcmp(field, "status") == 0 ? task_status_style(value->str) : STYLE_PLAIN,
			number ? text : answer_str(task, field));
	}
}

int task_show(const struct verb *verb, const struct verb_args *args)
{
	const char *raw = args->given['P'] != NULL ? "payload" : args->given['o'] != NULL ? "result" : NULL;
	struct request r;
	redisReply *task;

	request_init(&r, verb->command);
	request_add(&r, args->words[0]);
	int result = conn_ask(args->options, &r, &task);
	if (result != CLI_OK)
		return result;
	if (raw != NULL) {
		struct bytes value = answer_bytes(task, raw);
		fwrite(value.p, 1, value.n, stdout);
	} else if (args->options->json) {
		answer_print(answer_map_json(task));
	} else {
		show_task(args->options, task);
	}
	freeReplyObject(task);
	return CLI_OK;
}

/* ---- stats ---- */

static const struct listing_column columns[] = {
	{"QUEUE", "queue", TABLE_LEFT},
	{"READY", "ready", TABLE_RIGHT},
	{"DELAYED", "delayed", TABLE_RIGHT},
	{"RUNNING", "running", TABLE_RIGHT},
	{"SUCCESS", "success", TABLE_RIGHT},
	{"FAILED", "failed", TABLE_RIGHT},
	{"TIMEOUT", "timeout", TABLE_RIGHT},
	{"CANCELLED", "cancelled", TABLE_RIGHT},
	{"WAITING", "waiting", TABLE_RIGHT},
	{"PAUSED", "paused", TABLE_RIGHT},
	{"BYTES", "bytes", TABLE_RIGHT},
};
static const struct listing queues = {columns, ARRAY_LEN(columns), "No queues."};

static void write_stats(struct request *r, void *arg)
{
	(void)arg;
	request_init(r, "TASK.STATS");
}

static void queue_row(struct table *table, const redisReply *queue, void *arg)
{
	char text[WHEN_MAX] = "";
	int64_t oldest = answer_int(queue, "oldest", 0);

	(void)arg;
	listing_row(&queues, table, queue);
	table_str(table, STYLE_PLAIN, oldest > 0 ? when_format(text, oldest, NULL, false) : text);
}

int task_stats(const struct verb *verb, const struct verb_args *args)
{
	if (args->count == 1)
		return verb_map(verb, args);
	struct pages pages = {
		.options = args->options,
		.table = listing_table(&queues, args->options),
		.page = PAGE,
		.none = queues.none,
		.request = write_stats,
		.row = queue_row,
	};
	table_column(pages.table, "OLDEST", TABLE_LEFT);
	return pages_print(&pages);
}
