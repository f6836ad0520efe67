/* SPDX-License-Identifier: MIT */
/* `muster import`: departments and employees from a CSV file.
 *
 * The file is read twice (what can't be read twice is copied to a temporary file first). The first pass
 * checks every line and collects the departments, which are few; they are put in order and sent level by
 * level, parents first. The second pass sends the employees as they come, so memory does not grow with their
 * number. Every line ends in exactly one of the counts; one that failed was named on stderr. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/orgtree.h"
#include "cli/progress.h"
#include "cli/rows.h"
#include "cli/sender.h"
#include "cli/text.h"
#include "cli/when.h"

struct count {
	uint64_t sent, ok, failed;
};

struct import {
	const struct cli_options *options;
	const char *file; /* as messages name it */
	int fd;
	off_t start, size;
	bool dry_run;
	size_t window;
	int64_t patience_ms;
	struct orgtree *tree;
	struct sender *sender; /* NULL with dry_run */
	struct progress *progress;
	struct count counts[ROW_UNKNOWN + 1]; /* by kind; unknown = lines that are neither */
	uint64_t employees;                   /* lines that passed their own checks */
	int64_t started_us;
	int stopped; /* the exit code, once the sender has given up */
};

static void fail_line(struct import *im, enum row_kind kind, uint64_t line, const char *message)
{
	struct buf clean = BUF_INIT;

	progress_hide(im->progress);
	text_clean(&clean, message, strlen(message));
	fprintf(stderr, "%s:%" PRIu64 ": %s\n", im->file, line, clean.data != NULL ? clean.data : "");
	im->counts[kind].failed++;
	buf_release(&clean);
}

/* First pass. */

static int collect_department(struct import *im, const struct row *row)
{
	char message[96];
	struct org *earlier, *org = orgtree_add(im->tree, row->id, row->line, &earlier);

	if (org == NULL) {
		snprintf(message, sizeof(message), "this department is in line %" PRIu64 " already",
			earlier->line);
		fail_line(im, ROW_DEPARTMENT, row->line, message);
		return 0;
	}
	free(org->parent);
	free(org->name);
	free(org->manager);
	org->parent = xstrndup(row->parent.p, row->parent.n);
	org->name = xstrndup(row->name.p, row->name.n);
	org->manager = xstrndup(row->manager.p, row->manager.n);
	return 0;
}

static int on_first_row(const struct row *row, void *arg)
{
	struct import *im = arg;

	if (row->kind == ROW_DEPARTMENT)
		return collect_department(im, row);
	im->employees++;
	return 0;
}

static int on_first_error(uint64_t line, enum row_kind kind, const char *message, void *arg)
{
	fail_line(arg, kind, line, message);
	return 0;
}

static void on_cycle(const struct org *org, void *arg)
{
	fail_line(arg, ROW_DEPARTMENT, org->line, "this department is above itself");
}

static int first_pass(struct import *im)
{
	static const struct rows_events events = {on_first_row, on_first_error};

	int result = rows_read(im->fd, im->start, &events, im);
	if (result == ROWS_UNREADABLE)
		cli_error("%s: can't read it: %s", im->file, strerror(errno));
	if (result != ROWS_OK)
		return CLI_FAILED;
	orgtree_order(im->tree, on_cycle, im);
	return CLI_OK;
}

/* Sending. */

static void on_done(void *tag, uint64_t line, const char *error, void *arg)
{
	struct import *im = arg;
	struct org *org = tag;
	enum row_kind kind = org != NULL ? ROW_DEPARTMENT : ROW_EMPLOYEE;

	if (org != NULL)
		org->state = error == NULL ? ORG_OK : ORG_FAILED;
	if (error != NULL)
		fail_line(im, kind, line, error);
	else
		im->counts[kind].ok++;
}

struct words {
	int argc;
	const char *argv[REQUEST_MAX];
	size_t len[REQUEST_MAX];
};

static void add_word(struct words *w, struct bytes word)
{
	w->argv[w->argc] = word.p;
	w->len[w->argc++] = word.n;
}

static void add_option(struct words *w, const char *name, struct bytes value)
{
	if (value.n == 0)
		return;
	add_word(w, bytes_of(name));
	add_word(w, value);
}

static void put(struct import *im, const struct words *w, uint64_t line, struct org *org)
{
	if (im->sender == NULL) {
		on_done(org, line, NULL, im);
		return;
	}
	im->stopped = sender_put(im->sender, w->argc, w->argv, w->len, line, org);
	if (im->stopped == 0)
		im->counts[org != NULL ? ROW_DEPARTMENT : ROW_EMPLOYEE].sent++;
}

static void send_department(struct import *im, struct org *org)
{
	char message[ID_MAX + 96];
	struct words w = {0};

	if (org->state == ORG_FAILED)
		return;
	if (org->parent_org != NULL && org->parent_org->state == ORG_FAILED) {
		snprintf(message, sizeof(message), "its parent %s of line %" PRIu64 " failed", org->parent,
			org->parent_org->line);
		org->state = ORG_FAILED;
		fail_line(im, ROW_DEPARTMENT, org->line, message);
		return;
	}
	add_word(&w, BYTES_LIT("TEAM.ADD"));
	add_word(&w, bytes_of(org->id));
	add_word(&w, org->parent[0] != '\0' ? bytes_of(org->parent) : BYTES_LIT("-"));
	add_option(&w, "NAME", bytes_of(org->name));
	add_option(&w, "MANAGER", bytes_of(org->manager));
	put(im, &w, org->line, org);
}

static void flush_sender(struct import *im)
{
	if (im->sender != NULL && im->stopped == 0)
		im->stopped = sender_flush(im->sender);
}

static void send_departments(struct import *im)
{
	unsigned depth = 0;
	size_t count = orgtree_count(im->tree);

	for (size_t i = 0; i < count && im->stopped == 0; i++) {
		struct org *org = orgtree_at(im->tree, i);
		if (org->depth != depth)
			flush_sender(im); /* whether a parent was accepted must be known */
		depth = org->depth;
		if (im->stopped == 0)
			send_department(im, org);
	}
	flush_sender(im);
}

static void send_employee(struct import *im, const struct row *row)
{
	char message[ID_MAX + 96];
	struct words w = {0};
	struct org *org = row->parent.n > 0 ? orgtree_find(im->tree, row->parent) : NULL;

	if (org != NULL && org->state == ORG_FAILED) {
		snprintf(message, sizeof(message), "its department %s of line %" PRIu64 " failed", org->id,
			org->line);
		fail_line(im, ROW_EMPLOYEE, row->line, message);
		return;
	}
	add_word(&w, BYTES_LIT("EMPLOYEE.SET"));
	add_word(&w, row->id);
	add_option(&w, "DEPT", row->parent);
	add_option(&w, "NAME", row->name);
	put(im, &w, row->line, NULL);
}

static int on_second_row(const struct row *row, void *arg)
{
	struct import *im = arg;
	const struct count *done = &im->counts[ROW_EMPLOYEE];

	if (row->kind == ROW_EMPLOYEE)
		send_employee(im, row);
	progress_set(im->progress, row->offset, (uint64_t)im->size, done->ok + done->failed);
	return im->stopped;
}

static int on_second_error(uint64_t line, enum row_kind kind, const char *message, void *arg)
{
	(void)line;
	(void)kind;
	(void)message;
	(void)arg;
	return 0; /* the first pass has said it */
}

static void send_employees(struct import *im)
{
	static const struct rows_events events = {on_second_row, on_second_error};
	const struct count *done = &im->counts[ROW_EMPLOYEE];

	if (im->employees == 0 || im->stopped != 0)
		return;
	im->progress = progress_new(im->dry_run ? "checking" : "importing", "employees");
	int result = rows_read(im->fd, im->start, &events, im);
	if (result == ROWS_UNREADABLE || result == ROWS_NO_HEAD) {
		progress_hide(im->progress);
		cli_error("%s: changed or failed while it was read", im->file);
		im->stopped = CLI_FAILED;
	}
	flush_sender(im);
	if (im->stopped == 0)
		progress_set(im->progress, (uint64_t)im->size, (uint64_t)im->size, done->ok + done->failed);
	progress_free(im->progress);
	im->progress = NULL;
}

/* The end. */

static uint64_t failed_lines(const struct import *im)
{
	uint64_t failed = 0;

	for (size_t i = 0; i < ARRAY_LEN(im->counts); i++)
		failed += im->counts[i].failed;
	return failed;
}

static json_t *count_json(const struct count *c)
{
	return json_pack("{s:I, s:I, s:I}", "sent", (json_int_t)c->sent, "ok", (json_int_t)c->ok, "failed",
		(json_int_t)c->failed);
}

static void show_counts_json(const struct import *im, double seconds)
{
	answer_print(json_pack("{s:s, s:b, s:b, s:o, s:o, s:I, s:f}", "file", im->file, "dry_run",
		im->dry_run, "complete", im->stopped == 0, "departments",
		count_json(&im->counts[ROW_DEPARTMENT]), "employees", count_json(&im->counts[ROW_EMPLOYEE]),
		"malformed", (json_int_t)im->counts[ROW_UNKNOWN].failed, "seconds", seconds));
}

static void show_count(const char *label, const struct count *c)
{
	printf("%-12s %" PRIu64 " sent, %" PRIu64 " ok, %" PRIu64 " failed\n", label, c->sent, c->ok,
		c->failed);
}

static void show_counts(const struct import *im)
{
	double seconds = (double)(clock_mono_us() - im->started_us) / 1e6;
	uint64_t malformed = im->counts[ROW_UNKNOWN].failed;
	uint64_t lines = im->counts[ROW_DEPARTMENT].ok + im->counts[ROW_EMPLOYEE].ok + failed_lines(im);

	if (im->options->json) {
		show_counts_json(im, seconds);
		return;
	}
	show_count("departments", &im->counts[ROW_DEPARTMENT]);
	show_count("employees", &im->counts[ROW_EMPLOYEE]);
	if (malformed > 0)
		printf("%-12s %" PRIu64 " failed\n", "other lines", malformed);
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
		send_departments(im);
		send_employees(im);
		show_counts(im);
	}
	sender_free(im->sender);
	if (result == CLI_OK)
		result = im->stopped;
	return result != CLI_OK ? result : failed_lines(im) > 0 ? CLI_FAILED : CLI_OK;
}

/* What can't be read twice is copied to a temporary file. The descriptor, or -1 after a message. */
static int spool(int from, const char *file)
{
	static char chunk[65536];
	FILE *copy = tmpfile();
	ssize_t n = 0;

	while (copy != NULL && (n = read(from, chunk, sizeof(chunk))) > 0 &&
		fwrite(chunk, 1, (size_t)n, copy) == (size_t)n)
		;
	bool copied = copy != NULL && n == 0 && fflush(copy) == 0;
	int fd = copied ? fcntl(fileno(copy), F_DUPFD_CLOEXEC, 0) : -1;
	if (fd < 0)
		cli_error("%s: can't copy it to a temporary file: %s", file, strerror(errno));
	if (copy != NULL)
		fclose(copy);
	return fd;
}

static int open_source(struct import *im, const char *name)
{
	struct stat st;
	bool standard_input = strcmp(name, "-") == 0;

	im->file = standard_input ? "stdin" : name;
	im->fd = standard_input ? dup(STDIN_FILENO) : open(name, O_RDONLY | O_CLOEXEC);
	if (im->fd < 0 || fstat(im->fd, &st) != 0) {
		cli_error("%s: can't open it: %s", im->file, strerror(errno));
		return CLI_FAILED;
	}
	if (!S_ISREG(st.st_mode)) {
		int copy = spool(im->fd, im->file);
		if (copy < 0)
			return CLI_FAILED;
		close(im->fd);
		im->fd = copy;
	} else {
		im->start = lseek(im->fd, 0, SEEK_CUR);
	}
	im->size = fstat(im->fd, &st) == 0 && st.st_size > im->start ? st.st_size - im->start : 0;
	return CLI_OK;
}

static int read_options(int argc, char **argv, struct import *im)
{
	static const struct option own[] = {{"dry-run", no_argument, NULL, 'n'},
		{"window", required_argument, NULL, 'w'}, {"retry", required_argument, NULL, 'r'}, {0}};
	int64_t window = 512, patience_s = 60;

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == '?')
			return cli_bad_option("import");
		if (c == 'n')
			im->dry_run = true;
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
	struct import im = {.options = options, .fd = -1, .started_us = clock_mono_us()};
	int result = read_options(argc, argv, &im);

	if (result == CLI_OK)
		result = open_source(&im, argv[optind]);
	if (result == CLI_OK) {
		im.tree = orgtree_new();
		result = run_import(&im);
		orgtree_free(im.tree);
	}
	if (im.fd >= 0)
		close(im.fd);
	return result;
}
