/* SPDX-License-Identifier: MIT */
/* `muster export`: the organisation, or the part of it below a team, as a file that `muster import` takes
 * back. First the departments, depth first; then, department by department, the employees at home in it and
 * the members who joined it. All of it is in the order of ids, so the same organisation gives the same bytes.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/csv.h"
#include "cli/pages.h"
#include "cli/people.h"
#include "cli/progress.h"

#define PAGE      "500"
#define BRANCH    100 /* descendants of what is worth asking for its people as a whole */
#define NO_BRANCH INT64_MAX

struct export
{
	const struct cli_options *options;
	const char *id; /* "-" = everything */
	FILE *out;
	struct conn *conn;
	struct progress *progress;
	struct buf line;
	int64_t empty_depth; /* all deeper than this is in a branch without people, until the walk leaves it
			      */
	uint64_t departments, employees, members;
};

/* ---- lines ---- */

static void put_line(struct export *e, const struct bytes *fields, size_t count)
{
	buf_clear(&e->line);
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_add_char(&e->line, ',');
		csv_put(&e->line, fields[i]);
	}
	buf_add_char(&e->line, '\n');
	fwrite(e->line.data, 1, e->line.len, e->out);
	progress_set(e->progress, 0, 0, e->departments + e->employees + e->members);
}

static void put_department(struct export *e, const redisReply *team)
{
	bool retired = strcmp(answer_str(team, "state"), "retired") == 0;
	const struct bytes fields[] = {BYTES_LIT("department"), answer_bytes(team, "id"),
		answer_bytes(team, "parent"), answer_bytes(team, "name"), answer_bytes(team, "manager"),
		retired ? BYTES_LIT("retired") : BYTES_LIT("")};

	e->departments++;
	put_line(e, fields, ARRAY_LEN(fields));
}

static void put_person(const char *team, const char *employee, struct bytes name, bool home, void *arg)
{
	struct export *e = arg;
	const struct bytes fields[] = {home ? BYTES_LIT("employee") : BYTES_LIT("member"), bytes_of(employee),
		bytes_of(team), name, BYTES_LIT(""), BYTES_LIT("")};

	*(home ? &e->employees : &e->members) += 1;
	put_line(e, fields, ARRAY_LEN(fields));
}

/* ---- walks ---- */

static int put_departments(const redisReply *teams, void *arg)
{
	struct export *e = arg;

	for (size_t i = 0; i < teams->elements; i++)
		put_department(e, teams->element[i]);
	return ferror(e->out) != 0 ? PAGES_ENOUGH : CLI_OK;
}

/* Whether anybody is in a team or below it. */
struct question {
	const char *id;
	bool peopled;
};

static void question_request(struct request *r, void *arg)
{
	const struct question *q = arg;

	request_init(r, "TEAM.MEMBERS");
	request_add(r, q->id);
	request_add(r, "SUBTREE");
}

static int take_people(const redisReply *ids, void *arg)
{
	struct question *q = arg;

	q->peopled = ids->elements > 0;
	return q->peopled ? PAGES_ENOUGH : CLI_OK;
}

static int ask_people(struct export *e, struct question *q)
{
	const struct pages_walk walk = {e->conn, PAGE, question_request, take_people, q};
	int result = pages_walk(&walk);

	return result == PAGES_ENOUGH ? CLI_OK : result;
}

/* Is the team in a branch without people, or the top of one? */
static int is_deserted(struct export *e, const redisReply *team, bool *ret)
{
	struct question q = {answer_str(team, "id"), true};
	int64_t depth = answer_int(team, "depth", 0);
	int result = CLI_OK;

	*ret = depth > e->empty_depth;
	if (*ret)
		return CLI_OK;
	if (answer_int(team, "descendants", 0) >= BRANCH)
		result = ask_people(e, &q);
	e->empty_depth = q.peopled ? NO_BRANCH : depth;
	*ret = !q.peopled;
	return result;
}

static int put_people(const redisReply *teams, void *arg)
{
	struct export *e = arg;
	const struct people_events events = {put_person, e};
	const char **ids = xcalloc(teams->elements + 1, sizeof(*ids));
	size_t count = 0;
	int result = CLI_OK;

	for (size_t i = 0; i < teams->elements && result == CLI_OK; i++) {
		bool deserted;
		result = is_deserted(e, teams->element[i], &deserted);
		if (!deserted)
			ids[count++] = answer_str(teams->element[i], "id");
	}
	if (result == CLI_OK)
		result = people_of(e->conn, ids, count, &events);
	free(ids);
	return result == CLI_OK && ferror(e->out) != 0 ? PAGES_ENOUGH : result;
}

static void teams_request(struct request *r, void *arg)
{
	const struct export *e = arg;

	request_init(r, "TEAM.DESCENDANTS");
	request_add(r, e->id);
	request_add(r, "ALL");
	request_add(r, "DETAIL");
}

static int walk(struct export *e, int (*take)(const redisReply *teams, void *arg))
{
	const struct pages_walk all = {e->conn, PAGE, teams_request, take, e};

	return pages_walk(&all);
}

/* The team at the top, which a walk below it does not give. */
static int put_top(struct export *e)
{
	struct request r;
	redisReply *reply;

	if (strcmp(e->id, "-") == 0)
		return CLI_OK;
	request_init(&r, "TEAM.GET");
	request_add(&r, e->id);
	int result = conn_request(e->conn, &r, &reply);
	if (result != CLI_OK)
		return result;
	put_department(e, reply);
	freeReplyObject(reply);
	return CLI_OK;
}

static int put_people_of_top(struct export *e)
{
	const struct people_events events = {put_person, e};

	return strcmp(e->id, "-") == 0 ? CLI_OK : people_of(e->conn, &e->id, 1, &events);
}

static int write_all(struct export *e)
{
	int result;

	e->conn = conn_open(e->options, false, &result);
	if (e->conn == NULL)
		return result;
	e->progress = progress_new("exporting", "lines");
	fputs("kind,id,parent,name,manager,state\n", e->out);
	result = put_top(e);
	if (result == CLI_OK)
		result = walk(e, put_departments);
	if (result == CLI_OK)
		result = put_people_of_top(e);
	if (result == CLI_OK)
		result = walk(e, put_people);
	progress_free(e->progress);
	conn_close(e->conn);
	buf_release(&e->line);
	return result == PAGES_ENOUGH ? CLI_OK : result; /* what could not be written is told of in the end */
}

/* ---- files ---- */

static int fault(const char *file)
{
	cli_error("%s: can't write it: %s", file, strerror(errno));
	return CLI_FAILED;
}

/* The file takes its name when it is complete. */
static int write_file(struct export *e, const char *file)
{
	struct buf part = BUF_INIT;

	buf_addf(&part, "%s.part", file);
	e->out = fopen(part.data, "we");
	int result = e->out != NULL ? write_all(e) : fault(part.data);
	if (e->out != NULL) {
		bool written = fflush(e->out) == 0 && ferror(e->out) == 0 && fsync(fileno(e->out)) == 0;
		written = fclose(e->out) == 0 && written;
		if (result == CLI_OK && (!written || rename(part.data, file) != 0))
			result = fault(file);
		if (result != CLI_OK)
			unlink(part.data);
	}
	buf_release(&part);
	return result;
}

/* When the output is the terminal or a pipe, what was written goes to stderr, if anywhere. */
static void show_counts(const struct export *e, const char *file)
{
	if (e->out == stdout)
		return;
	if (e->options->json)
		answer_print(json_pack("{s:s, s:I, s:I, s:I}", "file", file, "departments",
			(json_int_t)e->departments, "employees", (json_int_t)e->employees, "members",
			(json_int_t)e->members));
	else
		printf("%s: %" PRIu64 " departments, %" PRIu64 " employees, %" PRIu64 " members\n", file,
			e->departments, e->employees, e->members);
}

int cmd_export(int argc, char **argv, const struct cli_options *options)
{
	static const struct option none[] = {{0}};
	struct export e = {.options = options, .id = "-", .out = stdout, .empty_depth = NO_BRANCH};

	if (getopt_long(argc, argv, "", none, NULL) != -1)
		return cli_bad_option("export");
	if (argc - optind > 2)
		return cli_usage("export", "expected a file, or - for stdout, and perhaps a team");
	const char *file = argc > optind ? argv[optind] : "-";
	if (argc > optind + 1)
		e.id = argv[optind + 1];
	int result = strcmp(file, "-") == 0 ? write_all(&e) : write_file(&e, file);
	if (result == CLI_OK)
		show_counts(&e, file);
	return result;
}
