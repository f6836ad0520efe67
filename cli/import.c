/* SPDX-License-Identifier: MIT */
/* `muster import`: departments, employees and memberships from a CSV file.
 *
 * The file is read once for each kind of line. The first pass checks every line and collects the departments
 * (see import_departments.c), which are then sent level by level, parents first. The others send employees
 * and members as they come, so memory does not grow with their number. Departments that are to be retired are
 * so in the end, since nobody can be put into a retired one. Every line ends in exactly one of the counts;
 * one that failed was named on stderr. */
#include "cli/import.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/text.h"

void import_fail(struct import *im, enum row_kind kind, uint64_t line, const char *message)
{
	struct buf clean = BUF_INIT;

	progress_hide(im->progress);
	text_clean(&clean, message, strlen(message));
	fprintf(stderr, "%s:%" PRIu64 ": %s\n", im->source.name, line, clean.data != NULL ? clean.data : "");
	im->counts[kind].failed++;
	buf_release(&clean);
}

/* First pass. */

static int on_first_row(const struct row *row, void *arg)
{
	struct import *im = arg;

	im->lines[row->kind]++;
	if (row->kind == ROW_DEPARTMENT)
		import_collect(im, row);
	return 0;
}

static int on_first_error(const struct row *row, const char *message, void *arg)
{
	struct import *im = arg;

	import_fail(im, row->kind, row->line, message);
	if (row->kind == ROW_DEPARTMENT)
		orgtree_add_flaw(im->tree, row->parent);
	return 0;
}

static int first_pass(struct import *im)
{
	static const struct rows_events events = {on_first_row, on_first_error};

	int result = rows_read(im->source.fd, im->source.start, &events, im);
	if (result == ROWS_UNREADABLE)
		cli_error("%s: can't read it: %s", im->source.name, strerror(errno));
	if (result != ROWS_OK)
		return CLI_FAILED;
	if (im->whole && im->counts[ROW_UNKNOWN].failed > 0) {
		cli_error(
			"%s: with --whole nothing is sent while a line can't be understood", im->source.name);
		return CLI_FAILED;
	}
	import_check(im);
	return CLI_OK;
}

/* Sending. */

void import_word(struct import_words *w, struct bytes word)
{
	w->argv[w->argc] = word.p;
	w->len[w->argc++] = word.n;
}

void import_option(struct import_words *w, const char *name, struct bytes value)
{
	if (value.n == 0)
		return;
	import_word(w, bytes_of(name));
	import_word(w, value);
}

static void on_done(void *tag, uint64_t line, const redisReply *reply, void *arg)
{
	struct import *im = arg;

	if (tag != NULL)
		import_department_done(im, tag, reply);
	else if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		import_fail(im, im->sending, line, reply->str);
	else
		im->counts[im->sending].ok++;
}

void import_put(struct import *im, const struct import_words *w, uint64_t line, struct org *org)
{
	if (im->sender == NULL) {
		on_done(org, line, NULL, im);
		return;
	}
	im->stopped = sender_put(im->sender, w->argc, w->argv, w->len, line, org);
	if (im->stopped == 0 && org == NULL)
		im->counts[im->sending].sent++;
}

void import_flush(struct import *im)
{
	if (im->sender != NULL && im->stopped == 0)
		im->stopped = sender_flush(im->sender);
}

static void send_person(struct import *im, const struct row *row)
{
	char message[ID_MAX + 96];
	struct import_words w = {0};
	struct org *org = row->parent.n > 0 ? orgtree_find(im->tree, row->parent) : NULL;

	if (org != NULL && org->state == ORG_FAILED) {
		snprintf(message, sizeof(message), "its department %s of line %" PRIu64 " failed",
			org_id(org), org->line);
		import_fail(im, row->kind, row->line, message);
		return;
	}
	if (row->kind == ROW_EMPLOYEE) {
		import_word(&w, BYTES_LIT("EMPLOYEE.SET"));
		import_word(&w, row->id);
		import_option(&w, "DEPT", row->parent);
		import_option(&w, "NAME", row->name);
	} else {
		import_word(&w, BYTES_LIT("TEAM.JOIN"));
		import_word(&w, row->parent);
		import_word(&w, row->id);
	}
	import_put(im, &w, row->line, NULL);
}

static int on_later_row(const struct row *row, void *arg)
{
	struct import *im = arg;
	const struct import_count *done = &im->counts[im->sending];

	if (row->kind == im->sending)
		send_person(im, row);
	progress_set(im->progress, row->offset, (uint64_t)im->source.size, done->ok + done->failed);
	return im->stopped;
}

static int on_later_error(const struct row *row, const char *message, void *arg)
{
	(void)row;
	(void)message;
	(void)arg;
	return 0; /* the first pass has said it */
}

/* A pass that sends the employees, or the members. */
static void send_people(struct import *im, enum row_kind kind, const char *unit)
{
	static const struct rows_events events = {on_later_row, on_later_error};
	const struct import_count *done = &im->counts[kind];
	uint64_t size = (uint64_t)im->source.size;

	if (im->lines[kind] == 0 || im->stopped != 0)
		return;
	im->sending = kind;
	im->progress = progress_new(im->dry_run ? "checking" : "importing", unit);
	int result = rows_read(im->source.fd, im->source.start, &events, im);
	if (result == ROWS_UNREADABLE || result == ROWS_NO_HEAD) {
		progress_hide(im->progress);
		cli_error("%s: changed or failed while it was read", im->source.name);
		im->stopped = CLI_FAILED;
	}
	import_flush(im);
	if (im->stopped == 0)
		progress_set(im->progress, size, size, done->ok + done->failed);
	progress_free(im->progress);
	im->progress = NULL;
}

static void send_all(struct import *im)
{
	import_departments(im);
	send_people(im, ROW_EMPLOYEE, "employees");
	send_people(im, ROW_MEMBER, "members");
	import_retire(im);
	import_count_departments(im);
}

/* The end. */

static uint64_t failed_lines(const struct import *im)
{
	uint64_t failed = 0;

	for (size_t i = 0; i < ARRAY_LEN(im->counts); i++)
		failed += im->counts[i].failed;
	return failed;
}

static json_t *count_json(const struct import_count *c)
{
	return json_pack("{s:I, s:I, s:I}", "sent", (json_int_t)c->sent, "ok", (json_int_t)c->ok, "failed",
		(json_int_t)c->failed);
}

static void show_counts_json(const struct import *im, double seconds)
{
	json_t *departments = count_json(&im->counts[ROW_DEPARTMENT]);

	json_object_set_new(departments, "created", json_integer((json_int_t)im->created));
	json_object_set_new(departments, "unchanged", json_integer((json_int_t)im->unchanged));
	answer_print(json_pack("{s:s, s:b, s:b, s:o, s:o, s:o, s:I, s:I, s:f}", "file", im->source.name,
		"dry_run", im->dry_run, "complete", im->stopped == 0, "departments", departments, "employees",
		count_json(&im->counts[ROW_EMPLOYEE]), "members", count_json(&im->counts[ROW_MEMBER]),
		"duplicates", (json_int_t)im->duplicates, "malformed",
		(json_int_t)im->counts[ROW_UNKNOWN].failed, "seconds", seconds));
}

static void show_count(const char *label, const struct import_count *c)
{
	printf("%-12s %" PRIu64 " sent, %" PRIu64 " ok, %" PRIu64 " failed\n", label, c->sent, c->ok,
		c->failed);
}

static void show_departments(const struct import *im)
{
	const struct import_count *c = &im->counts[ROW_DEPARTMENT];

	if (im->dry_run)
		show_count("departments", c);
	else
		printf("departments  %" PRIu64 " created, %" PRIu64 " unchanged, %" PRIu64 " failed\n",
			im->created, im->unchanged, c->failed);
	if (im->duplicates > 0)
		printf("duplicates   %" PRIu64 " left out\n", im->duplicates);
}

static void show_counts(const struct import *im)
{
	double seconds = (double)(clock_mono_us() - im->started_us) / 1e6;
	uint64_t malformed = im->counts[ROW_UNKNOWN].failed, lines = failed_lines(im);

	if (im->options->json) {
		show_counts_json(im, seconds);
		return;
	}
	show_departments(im);
	show_count("employees", &im->counts[ROW_EMPLOYEE]);
	if (im->counts[ROW_MEMBER].ok + im->counts[ROW_MEMBER].failed > 0)
		show_count("members", &im->counts[ROW_MEMBER]);
	if (malformed > 0)
		printf("%-12s %" PRIu64 " failed\n", "other lines", malformed);
	for (size_t i = 0; i < ARRAY_LEN(im->counts); i++)
		lines += im->counts[i].ok;
	printf("%" PRIu64 " lines in %.1f s, %.0f/s%s\n", lines, seconds,
		seconds > 0 ? (double)lines / seconds : 0, im->dry_run ? " (dry run, nothing was sent)" : "");
	if (im->stopped != 0)
		puts("The rest was not sent. It is safe to run the import again.");
}

static int run_import(struct import *im)
{
	const struct sender_config config = {im->options, im->window, im->patience_ms, on_done, im};
	int result = first_pass(im);

	if (result == CLI_OK && !im->dry_run) {
		im->sender = sender_new(&config, &result);
		if (im->sender == NULL)
			return result;
	}
	if (result == CLI_OK) {
		send_all(im);
		show_counts(im);
	}
	sender_free(im->sender);
	if (result == CLI_OK)
		result = im->stopped;
	return result != CLI_OK ? result : failed_lines(im) > 0 ? CLI_FAILED : CLI_OK;
}

static int read_options(int argc, char **argv, struct import *im)
{
	static const struct option own[] = {{"dry-run", no_argument, NULL, 'n'},
		{"whole", no_argument, NULL, 'a'}, {"window", required_argument, NULL, 'w'},
		{"retry", required_argument, NULL, 'r'}, {0}};
	int64_t window = 512, patience_s = 60;

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == '?')
			return cli_bad_option("import");
		if (c == 'n')
			im->dry_run = true;
		else if (c == 'a')
			im->whole = true;
		else if (!bytes_to_i64(bytes_of(optarg), c == 'w' ? &window : &patience_s))
			return cli_usage("import", "expected a number, found '%s'", optarg);
	}
	if (window < 1 || window > SENDER_MAX_WINDOW || patience_s < 0 || patience_s > 86400)
		return cli_usage(
			"import", "expected --window 1 to %d, --retry 0 to 86400", SENDER_MAX_WINDOW);
	if (argc - optind != 1)
		return cli_usage("import", "expected one file, or - for stdin");
	im->window = (size_t)window;
	im->patience_ms = patience_s * 1000;
	return CLI_OK;
}

int cmd_import(int argc, char **argv, const struct cli_options *options)
{
	struct import im = {.options = options, .source.fd = -1, .started_us = clock_mono_us()};
	int result = read_options(argc, argv, &im);

	if (result == CLI_OK && source_open(&im.source, argv[optind]) != 0)
		result = CLI_FAILED;
	if (result == CLI_OK) {
		im.tree = orgtree_new();
		result = run_import(&im);
		orgtree_free(im.tree);
	}
	source_close(&im.source);
	return result;
}
