/* SPDX-License-Identifier: MIT */
/* `muster task retry` and `muster task cancel`: of tasks that are named, or of all of a queue that are in one
 * status, page by page. One that refuses is told of and keeps nothing else from being done. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/pages.h"
#include "cli/task.h"
#include "cli/text.h"

#define PAGE "500"

struct many {
	const struct verb *verb;
	const struct verb_args *args;
	struct conn *conn;
	uint64_t done, refused;
};

static void refuse(struct many *m, const char *id, const redisReply *error)
{
	struct buf clean = BUF_INIT;

	text_clean(&clean, error->str, (size_t)error->len);
	cli_error("%s: %s", id, clean.data);
	buf_release(&clean);
	m->refused++;
}

/* Takes one answer. */
static int settle(struct many *m, const char *id)
{
	redisReply *reply = conn_next(m->conn);

	if (reply == NULL) {
		cli_error("%s: no answer: %s", id, conn_fault(m->conn));
		return CLI_UNREACHABLE;
	}
	if (reply->type == REDIS_REPLY_ERROR)
		refuse(m, id, reply);
	else
		m->done++;
	freeReplyObject(reply);
	return CLI_OK;
}

static int send_one(struct many *m, const char *id)
{
	struct request r;

	request_init(&r, m->verb->command);
	request_add(&r, id);
	if (conn_start(m->conn, &r))
		return CLI_OK;
	cli_error("%s: can't send: %s", id, conn_fault(m->conn));
	return CLI_UNREACHABLE;
}

/* The ids of a page, all under way at once. */
static int take_page(const redisReply *tasks, void *arg)
{
	struct many *m = arg;
	int result = CLI_OK;

	for (size_t i = 0; i < tasks->elements && result == CLI_OK; i++)
		result = send_one(m, answer_str(tasks->element[i], "id"));
	for (size_t i = 0; i < tasks->elements && result == CLI_OK; i++)
		result = settle(m, answer_str(tasks->element[i], "id"));
	return result;
}

static void write_query(struct request *r, void *arg)
{
	const struct many *m = arg;

	request_init(r, "TASK.LIST");
	request_add(r, m->args->given['q']);
	request_add(r, "STATUS");
	request_add(r, m->args->given['S']);
}

static int walk(struct many *m)
{
	const struct pages_walk walk = {m->conn, PAGE, write_query, take_page, m};

	return pages_walk(&walk);
}

static int each_word(struct many *m)
{
	int result = CLI_OK;

	for (int i = 0; i < m->args->count && result == CLI_OK; i++) {
		result = send_one(m, m->args->words[i]);
		if (result == CLI_OK)
			result = settle(m, m->args->words[i]);
	}
	return result;
}

static void show_many(const struct many *m)
{
	if (m->args->options->json)
		answer_print(json_pack(
			"{s:I, s:I}", "done", (json_int_t)m->done, "refused", (json_int_t)m->refused));
	else if (m->refused > 0)
		printf("%" PRIu64 " done, %" PRIu64 " refused\n", m->done, m->refused);
	else
		printf("%" PRIu64 " done\n", m->done);
}

int task_many(const struct verb *verb, const struct verb_args *args)
{
	struct many m = {.verb = verb, .args = args};
	bool all = args->given['a'] != NULL, chosen = args->given['q'] != NULL && args->given['S'] != NULL;
	int result;

	if (all ? args->count > 0 || !chosen : args->count == 0 || args->given['q'] || args->given['S'])
		return cli_usage(
			"task", "%s: expected ids, or --all --queue QUEUE --status STATUS", verb->name);
	m.conn = conn_open(args->options, false, &result);
	if (m.conn == NULL)
		return result;
	result = all ? walk(&m) : each_word(&m);
	show_many(&m);
	conn_close(m.conn);
	return result == CLI_OK && m.refused > 0 ? CLI_FAILED : result;
}
