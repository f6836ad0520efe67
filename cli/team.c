/* SPDX-License-Identifier: MIT */
/* `muster team`: one team, those below and above it, and the people in it. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/listing.h"
#include "cli/pages.h"
#include "cli/patience.h"
#include "cli/show.h"
#include "cli/verbs.h"

#define PAGE "500"

/* ---- changes that may run as jobs: answered at their end ---- */

static void seen_jobs(const redisReply *reply, uint64_t *ret_done, uint64_t *ret_total, void *arg)
{
	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
		const redisReply *job = reply->element[i];
		if (strcmp(answer_str(job, "team"), arg) != 0)
			continue;
		*ret_done = (uint64_t)answer_int(job, "done", 0);
		*ret_total = (uint64_t)answer_int(job, "total", 0);
	}
}

static int run_long(const struct verb *verb, const struct verb_args *args)
{
	struct request r, look;
	redisReply *reply;
	const struct patience patience = {
		args->options, "changing", "departments", &look, seen_jobs, args->words[0]};

	verb_request(verb, args, &r);
	request_init(&look, "TEAM.JOBS");
	int result = patience_ask(&patience, &r, &reply);
	if (result != CLI_OK)
		return result;
	if (args->given['D'] != NULL)
		show_map(args->options, reply);
	else
		show_reply(args->options, reply);
	freeReplyObject(reply);
	return CLI_OK;
}

/* ---- lists ---- */

static const struct listing_column child_columns[] = {
	{"ID", "id", TABLE_LEFT},
	{"NAME", "name", TABLE_LEFT},
	{"MANAGER", "manager", TABLE_LEFT},
	{"STATE", "state", TABLE_LEFT},
	{"BELOW", "descendants", TABLE_RIGHT},
};
static const struct listing children = {child_columns, ARRAY_LEN(child_columns), "None."};

static const struct listing_column ancestor_columns[] = {
	{"ID", "id", TABLE_LEFT},
	{"NAME", "name", TABLE_LEFT},
	{"MANAGER", "manager", TABLE_LEFT},
	{"STATE", "state", TABLE_LEFT},
};
static const struct listing ancestors = {ancestor_columns, ARRAY_LEN(ancestor_columns), "None."};

static const struct listing_column supervisor_columns[] = {
	{"EMPLOYEE", "employee", TABLE_LEFT},
	{"TEAM", "team", TABLE_LEFT},
	{"DISTANCE", "distance", TABLE_RIGHT},
};
static const struct listing supervisors = {supervisor_columns, ARRAY_LEN(supervisor_columns), "No one."};

static int run_list(const struct verb *verb, const struct verb_args *args, const struct listing *listing)
{
	struct request r;

	verb_request(verb, args, &r);
	return listing_request(listing, args->options, &r);
}

static int run_ancestors(const struct verb *verb, const struct verb_args *args)
{
	return run_list(verb, args, &ancestors);
}

static int run_supervisors(const struct verb *verb, const struct verb_args *args)
{
	return run_list(verb, args, &supervisors);
}

struct paged {
	const struct verb *verb;
	const struct verb_args *args;
};

static void write_paged(struct request *r, void *arg)
{
	const struct paged *p = arg;

	verb_request(p->verb, p->args, r);
}

static void write_children(struct request *r, void *arg)
{
	write_paged(r, arg);
	request_add(r, "DETAIL");
}

static void child_row(struct table *table, const redisReply *item, void *arg)
{
	(void)arg;
	listing_row(&children, table, item);
}

static int run_children(const struct verb *verb, const struct verb_args *args)
{
	struct paged paged = {verb, args};
	struct pages pages = {
		.options = args->options,
		.table = listing_table(&children, args->options),
		.page = PAGE,
		.none = children.none,
		.request = write_children,
		.row = child_row,
		.arg = &paged,
	};

	return pages_print(&pages);
}

static void member_row(struct table *table, const redisReply *item, void *arg)
{
	(void)arg;
	table_cell(table, STYLE_PLAIN, (struct bytes){item->str, (size_t)item->len});
}

static int run_members(const struct verb *verb, const struct verb_args *args)
{
	struct paged paged = {verb, args};
	struct pages pages = {
		.options = args->options,
		.table = table_new(stdout, args->options->color),
		.page = PAGE,
		.none = "No one.",
		.request = write_paged,
		.row = member_row,
		.arg = &paged,
	};

	table_column(pages.table, "EMPLOYEE", TABLE_LEFT);
	return pages_print(&pages);
}

/* ---- the teams of an employee ---- */

/* The names from the root to the team; the reply has them from the team up. */
static void add_line(struct table *table, const redisReply *line)
{
	struct buf text = BUF_INIT;

	for (size_t i = line != NULL && line->type == REDIS_REPLY_ARRAY ? line->elements : 0; i-- > 0;) {
		buf_add_bytes(&text, answer_bytes(line->element[i], "name"));
		buf_add_str(&text, i > 0 ? " / " : "");
	}
	table_cell(table, STYLE_PLAIN, buf_bytes(&text));
	buf_release(&text);
}

/* `line` is an array of maps, which the common printing does not know. */
static json_t *team_json(const redisReply *team)
{
	json_t *object = answer_map_json(team), *line = json_array();
	const redisReply *above = answer_field(team, "line");

	for (size_t i = 0; above != NULL && above->type == REDIS_REPLY_ARRAY && i < above->elements; i++)
		json_array_append_new(line, answer_map_json(above->element[i]));
	json_object_set_new(object, "line", line);
	return object;
}

static void show_teams(const struct cli_options *options, const redisReply *teams)
{
	struct table *table = table_new(stdout, options->color);

	table_column(table, "TEAM", TABLE_LEFT);
	table_column(table, "HOME", TABLE_LEFT);
	table_column(table, "LINE", TABLE_LEFT);
	for (size_t i = 0; i < teams->elements; i++) {
		const redisReply *team = teams->element[i];
		if (options->json) {
			answer_print(team_json(team));
			continue;
		}
		table_cell(table, STYLE_PLAIN, answer_bytes(team, "team"));
		table_str(table, STYLE_PLAIN, answer_int(team, "home", 0) != 0 ? "home" : "");
		add_line(table, answer_field(team, "line"));
	}
	if (!options->json)
		table_flush(table);
	table_free(table);
}

static int run_of(const struct verb *verb, const struct verb_args *args)
{
	struct request r;
	redisReply *reply;

	verb_request(verb, args, &r);
	int result = conn_ask(args->options, &r, &reply);
	if (result != CLI_OK)
		return result;
	show_teams(args->options, reply);
	freeReplyObject(reply);
	return CLI_OK;
}

int cmd_team(int argc, char **argv, const struct cli_options *options)
{
	static const struct verb verbs[] = {
		{"get", "TEAM.GET", 1, "", verb_map},
		{"add", "TEAM.ADD", 2, "nmD", verb_value},
		{"rename", "TEAM.RENAME", 2, "iD", verb_value},
		{"manager", "TEAM.MANAGER", 2, "iD", verb_value},
		{"move", "TEAM.MOVE", 2, "iD", run_long},
		{"remove", "TEAM.REMOVE", 1, "CLRiD", run_long},
		{"restore", "TEAM.RESTORE", 1, "iD", verb_value},
		{"children", "TEAM.CHILDREN", 1, "a", run_children},
		{"path", "TEAM.PATH", 1, "", verb_value},
		{"ancestors", "TEAM.ANCESTORS", 1, "", run_ancestors},
		{"count", "TEAM.COUNT", 1, "", verb_map},
		{"members", "TEAM.MEMBERS", 1, "s", run_members},
		{"join", "TEAM.JOIN", 2, "", verb_value},
		{"leave", "TEAM.LEAVE", 2, "", verb_value},
		{"of", "TEAM.OF", 1, "", run_of},
		{"supervisors", "TEAM.SUPERVISORS", 1, "", run_supervisors},
	};
	return verbs_run(argc, argv, options, verbs, ARRAY_LEN(verbs));
}
