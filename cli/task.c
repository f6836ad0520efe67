/* SPDX-License-Identifier: MIT */
/* `muster task`: units of work, given in, taken and ended by hand or by scripts. */
#include "cli/task.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/duration.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/when.h"

#define PAYLOAD_SHOWN 60 /* bytes in a table */

void task_worker_name(char dst[WORKER_MAX], long suffix)
{
	char number[24] = "";

	if (suffix != 0)
		snprintf(number, sizeof(number), ".%ld", suffix);
	size_t room = WORKER_MAX - strlen(number);
	if (gethostname(dst, room) != 0)
		snprintf(dst, room, "worker");
	dst[room - 1] = '\0';
	for (size_t i = 0; dst[i] != '\0'; i++) {
		if (!person_id_valid((struct bytes){dst + i, 1}) && dst[i] != '-')
			dst[i] = '_';
	}
	memcpy(dst + strlen(dst), number, strlen(number) + 1);
}

bool task_read_file(const char *name, struct buf *out)
{
	int fd = strcmp(name, "-") == 0 ? dup(STDIN_FILENO) : open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd;

	while (n >= 0 && buf_reserve(out, 65536)) {
		n = read(fd, out->data + out->len, 65536);
		if (n == 0)
			break;
		out->len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		cli_error("%s: can't read it: %s", name, strerror(errno));
	else if (buf_failed(out))
		cli_error("%s: too big", name);
	if (fd >= 0)
		close(fd);
	return n >= 0 && !buf_failed(out);
}

bool task_duration(const char *option, const char *text, int64_t *ret_ms)
{
	if (duration_parse(bytes_of(text), ret_ms))
		return true;
	cli_error("--%s: expected " DURATION_EXPECTED ", found '%s'", option, text);
	return false;
}

enum table_style task_status_style(const char *status)
{
	static const struct {
		const char *status;
		enum table_style style;
	} styles[] = {{"success", STYLE_GOOD}, {"running", STYLE_HEAD}, {"failed", STYLE_BAD},
		{"timeout", STYLE_BAD}, {"cancelled", STYLE_DIM}};

	for (size_t i = 0; i < ARRAY_LEN(styles); i++) {
		if (strcmp(styles[i].status, status) == 0)
			return styles[i].style;
	}
	return STYLE_PLAIN;
}

/* ---- giving in ---- */

/* The id alone on standard output, for scripts. */
static void show_submitted(const struct cli_options *options, const redisReply *map)
{
	if (options->json) {
		answer_print(answer_map_json(map));
		return;
	}
	if (answer_int(map, "duplicate", 0) != 0)
		fprintf(stderr, "There already, and %s.\n", answer_str(map, "status"));
	puts(answer_str(map, "id"));
}

static int submit(const struct verb *verb, const struct verb_args *args, struct bytes payload)
{
	struct request r;
	redisReply *reply;

	request_init(&r, verb->command);
	request_add(&r, args->words[0]);
	request_add_bytes(&r, payload);
	verb_options(args, &r);
	int result = conn_ask(args->options, &r, &reply);
	if (result != CLI_OK)
		return result;
	show_submitted(args->options, reply);
	freeReplyObject(reply);
	return CLI_OK;
}

static int run_submit(const struct verb *verb, const struct verb_args *args)
{
	const char *file = args->given['f'], *word = args->count > 1 ? args->words[1] : NULL;
	struct buf payload = BUF_INIT;

	if (file != NULL && word != NULL)
		return cli_usage("task", "expected the payload or --file, not both");
	if (word != NULL && strcmp(word, "-") == 0)
		file = word;
	else if (word != NULL)
		buf_add_str(&payload, word);
	int result = file == NULL || task_read_file(file, &payload) ? submit(verb, args, buf_bytes(&payload))
								    : CLI_FAILED;
	buf_release(&payload);
	return result;
}

/* ---- taking ---- */

static void claimed_row(struct table *table, const redisReply *task)
{
	char text[WHEN_MAX];
	struct bytes payload = answer_bytes(task, "payload");
	struct buf shown = BUF_INIT;

	buf_add(&shown, payload.p, payload.n < PAYLOAD_SHOWN ? payload.n : PAYLOAD_SHOWN);
	if (payload.n > PAYLOAD_SHOWN)
		buf_addf(&shown, "... (%zu bytes)", payload.n);
	table_cell(table, STYLE_PLAIN, answer_bytes(task, "id"));
	table_cell(table, STYLE_PLAIN, answer_bytes(task, "token"));
	table_int(table, answer_int(task, "priority", 0));
	table_int(table, answer_int(task, "attempt", 0));
	table_str(table, STYLE_PLAIN, when_format(text, answer_int(task, "deadline", 0), NULL, false));
	table_cell(table, STYLE_PLAIN, buf_bytes(&shown));
	buf_release(&shown);
}

static void show_claimed(const struct cli_options *options, const redisReply *tasks)
{
	static const char *const heads[] = {"ID", "TOKEN", "PRIORITY", "ATTEMPT", "DEADLINE", "PAYLOAD"};
	struct table *table = table_new(stdout, options->color);

	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		table_column(table, heads[i], i == 2 || i == 3 ? TABLE_RIGHT : TABLE_LEFT);
	for (size_t i = 0; i < tasks->elements; i++) {
		if (options->json)
			answer_print(answer_map_json(tasks->element[i]));
		else
			claimed_row(table, tasks->element[i]);
	}
	if (!options->json && tasks->elements == 0)
		puts("Nothing is ready.");
	else if (!options->json)
		table_flush(table);
	table_free(table);
}

static int run_claim(const struct verb *verb, const struct verb_args *args)
{
	struct cli_options patient = *args->options;
	char worker[WORKER_MAX], wait[24];
	int64_t wait_ms = 0;
	struct request r;
	redisReply *reply;

	task_worker_name(worker, 0);
	if (args->given['x'] != NULL && !task_duration("wait", args->given['x'], &wait_ms))
		return CLI_USAGE;
	request_init(&r, verb->command);
	request_add(&r, args->words[0]);
	request_add(&r, args->given['W'] != NULL ? args->given['W'] : worker);
	verb_options(args, &r);
	snprintf(wait, sizeof(wait), "%" PRId64, wait_ms);
	request_option(&r, "WAIT", wait_ms > 0 ? wait : NULL);
	patient.timeout_ms += wait_ms < INT32_MAX / 2 ? (int)wait_ms : INT32_MAX / 2;
	int result = conn_ask(&patient, &r, &reply);
	if (result != CLI_OK)
		return result;
	show_claimed(args->options, reply);
	freeReplyObject(reply);
	return CLI_OK;
}

/* ---- keeping and ending ---- */

/* Exit code 1 when the claim does not hold, or is to be given up. */
static int run_beat(const struct verb *verb, const struct verb_args *args)
{
	static const char *const ends[] = {"stale", "cancel"};
	char worker[WORKER_MAX];
	const char *said = "extended";
	struct request r;
	redisReply *reply;

	task_worker_name(worker, 0);
	request_init(&r, verb->command);
	request_add(&r, args->given['W'] != NULL ? args->given['W'] : worker);
	request_add(&r, args->words[0]);
	request_add(&r, args->words[1]);
	verb_options(args, &r);
	int result = conn_ask(args->options, &r, &reply);
	if (result != CLI_OK)
		return result;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const redisReply *ids = answer_field(reply, ends[i]);
		if (ids != NULL && ids->elements > 0) {
			said = ends[i];
			result = CLI_FAILED;
		}
	}
	if (args->options->json)
		answer_print(answer_map_json(reply));
	else
		puts(said);
	freeReplyObject(reply);
	return result;
}

/* The result may come from a file, as it is. */
static int run_done(const struct verb *verb, const struct verb_args *args)
{
	struct buf output = BUF_INIT;
	struct request r;
	int result = CLI_FAILED;

	if (args->given['f'] != NULL && args->given['r'] != NULL)
		return cli_usage("task", "expected --result or --file, not both");
	verb_request(verb, args, &r);
	if (args->given['f'] == NULL) {
		result = show_request(args->options, &r);
	} else if (task_read_file(args->given['f'], &output)) {
		request_add(&r, "RESULT");
		request_add_bytes(&r, buf_bytes(&output));
		result = show_request(args->options, &r);
	}
	buf_release(&output);
	return result;
}

int cmd_task(int argc, char **argv, const struct cli_options *options)
{
	static const struct verb verbs[] = {
		{"submit", "TASK.SUBMIT", 1, "fpykwtl", run_submit, 1},
		{"claim", "TASK.CLAIM", 1, "Wcxl", run_claim},
		{"beat", "TASK.BEAT", 2, "Wl", run_beat},
		{"done", "TASK.DONE", 2, "rf", run_done},
		{"fail", "TASK.FAIL", 2, "ey", verb_map},
		{"release", "TASK.RELEASE", 2, "", verb_value},
		{"list", "TASK.LIST", 1, "SpABW", task_list},
		{"show", "TASK.GET", 1, "Po", task_show},
		{"stats", "TASK.STATS", 0, "", task_stats, 1},
		{"retry", "TASK.RETRY", 0, "aqS", task_many, -1},
		{"cancel", "TASK.CANCEL", 0, "aqS", task_many, -1},
		{"pause", "TASK.PAUSE", 1, "", verb_value},
		{"resume", "TASK.RESUME", 1, "", verb_value},
		{"config", "TASK.CONFIG", 1, "", verb_map, REQUEST_MAX - 2},
		{"check", "TASK.CHECK", 0, "z", task_check},
	};
	return verbs_run(argc, argv, options, verbs, ARRAY_LEN(verbs));
}
