/* SPDX-License-Identifier: MIT */
/* `muster status`, `muster checkin` and `muster roll`: people and their day. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/pages.h"
#include "cli/show.h"
#include "cli/table.h"
#include "cli/when.h"

#define ROLL_PAGE "500"

static const char *instant_text(
	char dst[WHEN_MAX], const redisReply *map, const char *name, const char *day, bool exact)
{
	int64_t at = answer_int(map, name, -1);
	return at < 0 ? "" : when_format(dst, at, day, exact);
}

static const char *duration_text(char dst[WHEN_MAX], const redisReply *map, const char *name)
{
	int64_t ms = answer_int(map, name, 0);
	return ms <= 0 ? "" : when_duration(dst, ms);
}

static void show_day(const struct cli_options *options, const redisReply *map)
{
	char text[WHEN_MAX];
	const char *day = answer_str(map, "day"), *state = answer_str(map, "state");

	show_field(options, "employee", STYLE_HEAD, answer_str(map, "id"));
	if (answer_field(map, "name") != NULL)
		show_field(options, "name", STYLE_PLAIN, answer_str(map, "name"));
	show_field(options, "department", STYLE_PLAIN, answer_str(map, "dept"));
	if (answer_field(map, "path") != NULL)
		show_field(options, "path", STYLE_PLAIN, answer_str(map, "path"));
	show_field(options, "day", STYLE_PLAIN, day);
	show_field(options, "state", table_state_style(state), state);
	show_field(options, "in", STYLE_PLAIN, instant_text(text, map, "in", day, true));
	show_field(options, "out", STYLE_PLAIN, instant_text(text, map, "out", day, true));
	snprintf(text, sizeof(text), "%lld", (long long)answer_int(map, "punches", 0));
	show_field(options, "punches", STYLE_PLAIN, text);
	if (answer_int(map, "late", 0) > 0)
		show_field(options, "late by", STYLE_WARN, duration_text(text, map, "late"));
	if (answer_int(map, "early", 0) > 0)
		show_field(options, "early by", STYLE_WARN, duration_text(text, map, "early"));
	if (answer_bytes(map, "marks").n > 0)
		show_field(options, "marks", STYLE_WARN, answer_str(map, "marks"));
	if (answer_int(map, "duplicate", 0) != 0)
		show_field(options, "duplicate", STYLE_DIM, "yes, counted once");
}

static int ask_day(const struct cli_options *options, const struct request *r)
{
	redisReply *reply;
	int result = conn_ask(options, r, &reply);

	if (result != CLI_OK)
		return result;
	if (options->json)
		answer_print(answer_map_json(reply));
	else
		show_day(options, reply);
	freeReplyObject(reply);
	return CLI_OK;
}

int cmd_status(int argc, char **argv, const struct cli_options *options)
{
	static const struct option own[] = {{"day", required_argument, NULL, 'd'}, {0}};
	const char *day = NULL;
	struct request r;

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c != 'd')
			return cli_bad_option("status");
		day = optarg;
	}
	if (argc - optind != 1)
		return cli_usage("status", "expected one employee");
	request_init(&r, "STATUS");
	request_add(&r, argv[optind]);
	request_option(&r, "DAY", day);
	return ask_day(options, &r);
}

struct checkin {
	const char *id, *direction, *at, *event, *source;
};

/* 0, or an exit code after a message. */
static int read_checkin(int argc, char **argv, struct checkin *ret)
{
	static const struct option own[] = {{"at", required_argument, NULL, 'a'},
		{"id", required_argument, NULL, 'i'}, {"source", required_argument, NULL, 's'}, {0}};

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == 'a')
			ret->at = optarg;
		else if (c == 'i')
			ret->event = optarg;
		else if (c == 's')
			ret->source = optarg;
		else
			return cli_bad_option("checkin");
	}
	if (argc - optind < 1 || argc - optind > 2)
		return cli_usage("checkin", "expected an employee, and then perhaps in or out");
	ret->id = argv[optind];
	ret->direction = argc - optind == 2 ? argv[optind + 1] : NULL;
	if (ret->direction != NULL && strcasecmp(ret->direction, "in") != 0 &&
		strcasecmp(ret->direction, "out") != 0)
		return cli_usage("checkin", "expected in or out, found '%s'", ret->direction);
	return 0;
}

int cmd_checkin(int argc, char **argv, const struct cli_options *options)
{
	struct checkin checkin = {0};
	char at[WHEN_MAX];
	struct request r;

	int result = read_checkin(argc, argv, &checkin);
	if (result != 0)
		return result;
	if (checkin.at != NULL && !when_parse(at, checkin.at, clock_wall_ms()))
		return cli_usage("checkin", "--at: no such time: '%s'", checkin.at);
	request_init(&r, "CHECKIN");
	request_add(&r, checkin.id);
	if (checkin.direction != NULL)
		request_add(&r, strcasecmp(checkin.direction, "in") == 0 ? "IN" : "OUT");
	request_option(&r, "AT", checkin.at != NULL ? at : NULL);
	request_option(&r, "ID", checkin.event);
	request_option(&r, "SOURCE", checkin.source);
	return ask_day(options, &r);
}

struct roll {
	const struct cli_options *options;
	const char *dept, *day, *state;
	bool subtree, count;
	char reference[WHEN_MAX]; /* instants of this date are shown without it */
};

static int read_roll(int argc, char **argv, struct roll *ret)
{
	static const struct option own[] = {{"day", required_argument, NULL, 'd'},
		{"state", required_argument, NULL, 's'}, {"subtree", no_argument, NULL, 't'},
		{"count", no_argument, NULL, 'c'}, {0}};

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == 'd')
			ret->day = optarg;
		else if (c == 's')
			ret->state = optarg;
		else if (c == 't')
			ret->subtree = true;
		else if (c == 'c')
			ret->count = true;
		else
			return cli_bad_option("roll");
	}
	if (argc - optind != 1)
		return cli_usage("roll", "expected one department");
	if (ret->count && ret->state != NULL)
		return cli_usage("roll", "--count counts all states; --state can't be with it");
	ret->dept = argv[optind];
	return 0;
}

static struct table *new_roll_table(struct roll *roll)
{
	static const struct {
		const char *head;
		enum table_align align;
	} columns[] = {{"EMPLOYEE", TABLE_LEFT}, {"NAME", TABLE_LEFT}, {"DEPARTMENT", TABLE_LEFT},
		{"STATE", TABLE_LEFT}, {"IN", TABLE_RIGHT}, {"OUT", TABLE_RIGHT}, {"PUNCHES", TABLE_RIGHT},
		{"LATE", TABLE_RIGHT}, {"EARLY", TABLE_RIGHT}};

	if (roll->day != NULL)
		snprintf(roll->reference, sizeof(roll->reference), "%s", roll->day);
	else
		when_date(roll->reference, clock_wall_ms());
	struct table *table = table_new(stdout, roll->options->color);
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		table_column(table, columns[i].head, columns[i].align);
	return table;
}

static void roll_row(struct table *t, const redisReply *item, void *arg)
{
	const struct roll *roll = arg;
	char text[WHEN_MAX];
	const char *state = answer_str(item, "state");

	table_str(t, STYLE_PLAIN, answer_str(item, "id"));
	table_cell(t, STYLE_PLAIN, answer_bytes(item, "name"));
	table_str(t, STYLE_PLAIN, answer_str(item, "dept"));
	table_str(t, table_state_style(state), state);
	table_str(t, STYLE_PLAIN, instant_text(text, item, "in", roll->reference, false));
	table_str(t, STYLE_PLAIN, instant_text(text, item, "out", roll->reference, false));
	table_int(t, answer_int(item, "punches", 0));
	table_str(t, STYLE_PLAIN, duration_text(text, item, "late"));
	table_str(t, STYLE_PLAIN, duration_text(text, item, "early"));
}

static void roll_request(struct request *r, void *arg)
{
	const struct roll *roll = arg;

	request_init(r, "ROLL");
	request_add(r, roll->dept);
	request_option(r, "DAY", roll->day);
	request_option(r, "STATE", roll->state);
	if (roll->subtree)
		request_add(r, "SUBTREE");
}

static int roll_people(struct roll *roll)
{
	struct pages pages = {.options = roll->options,
		.table = new_roll_table(roll),
		.page = ROLL_PAGE,
		.none = "No one.",
		.request = roll_request,
		.row = roll_row,
		.arg = roll};

	return pages_print(&pages);
}

int cmd_roll(int argc, char **argv, const struct cli_options *options)
{
	struct roll roll = {.options = options};
	struct request r;

	int result = read_roll(argc, argv, &roll);
	if (result != 0)
		return result;
	if (!roll.count)
		return roll_people(&roll);
	request_init(&r, "ROLL.COUNT");
	request_add(&r, roll.dept);
	request_option(&r, "DAY", roll.day);
	if (roll.subtree)
		request_add(&r, "SUBTREE");
	return show_request_map(options, &r);
}
