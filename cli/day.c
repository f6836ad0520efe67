/* SPDX-License-Identifier: MIT */
/* `muster day`, `muster init` and `muster close`: the life of a work date. */
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "cli/when.h"

#define POLL_FIRST_MS   50
#define POLL_MAX_MS     1000
#define CLOSE_ANSWER_MS 90000
#define MAX_LIMIT_S     (7 * 86400)

/* A subcommand whose only argument is a date. */
static int date_command(int argc, char **argv, const struct cli_options *options, const char *command)
{
	static const struct option none[] = {{0}};
	struct request r;

	if (getopt_long(argc, argv, "", none, NULL) != -1)
		return cli_bad_option(argv[0]);
	if (argc - optind != 1 || !when_is_date(argv[optind]))
		return cli_usage(argv[0], "expected one date, such as 2026-11-30");
	request_init(&r, command);
	request_add(&r, argv[optind]);
	return show_request_map(options, &r);
}

int cmd_day(int argc, char **argv, const struct cli_options *options)
{
	return date_command(argc, argv, options, "DAY.STATE");
}

int cmd_init(int argc, char **argv, const struct cli_options *options)
{
	return date_command(argc, argv, options, "DAY.INIT");
}

struct close_job {
	const char *day, *dept;
	bool wait;
	int64_t limit_s;
};

static int read_close(int argc, char **argv, struct close_job *ret)
{
	static const struct option own[] = {{"dept", required_argument, NULL, 'd'},
		{"wait", no_argument, NULL, 'w'}, {"limit", required_argument, NULL, 'l'}, {0}};

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == 'd')
			ret->dept = optarg;
		else if (c == 'w')
			ret->wait = true;
		else if (c != 'l')
			return cli_bad_option("close");
		else if (!bytes_to_i64(bytes_of(optarg), &ret->limit_s) || ret->limit_s < 1 ||
			 ret->limit_s > MAX_LIMIT_S)
			return cli_usage(
				"close", "--limit: expected 1 to 604800 seconds, found '%s'", optarg);
	}
	if (argc - optind != 1 || !when_is_date(argv[optind]))
		return cli_usage("close", "expected one date, such as 2026-11-30");
	ret->day = argv[optind];
	return 0;
}

/* The daemon answers DAY.CLOSE when the close is over, or after a minute while it still runs. */
static struct cli_options patient(const struct cli_options *options)
{
	struct cli_options copy = *options;

	if (copy.timeout_ms < CLOSE_ANSWER_MS)
		copy.timeout_ms = CLOSE_ANSWER_MS;
	return copy;
}

static bool in_state(const redisReply *reply, const char *state)
{
	return strcmp(answer_str(reply, "state"), state) == 0;
}

/* A close that is waited for: DAY.CLOSE is under way on one connection, while DAY.STATE tells how far it is.
 * When the daemon is restarted, or still at it after its minute, DAY.CLOSE is sent again, which is harmless.
 */
struct close_wait {
	const struct close_job *job;
	const struct cli_options *options;
	struct cli_options patient;
	struct conn *conn; /* DAY.CLOSE is under way; NULL = it is to be sent */
	redisReply *reply; /* the last state; NULL = none yet */
	struct progress *progress;
	int wait_ms;
	bool over;
};

static void close_request(const struct close_job *job, struct request *r)
{
	request_init(r, "DAY.CLOSE");
	request_add(r, job->day);
	request_option(r, "DEPT", job->dept);
}

static void end_conn(struct close_wait *w)
{
	conn_close(w->conn);
	w->conn = NULL;
}

/* Sends DAY.CLOSE. Only at the first time is it an error that nobody is there. */
static int start_close(struct close_wait *w, bool quiet)
{
	struct request r;
	int result;

	close_request(w->job, &r);
	w->conn = conn_open(&w->patient, quiet, &result);
	if (w->conn != NULL && !conn_start(w->conn, &r))
		end_conn(w);
	return quiet ? CLI_OK : result;
}

static void take_state(struct close_wait *w, redisReply *fresh)
{
	freeReplyObject(w->reply);
	w->reply = fresh;
}

/* The reply to DAY.CLOSE is there, or the connection is lost. A department's own close has no state to look
 * for: its reply is its end. */
static int take_close_reply(struct close_wait *w)
{
	redisReply *reply = conn_next(w->conn);

	end_conn(w);
	if (reply == NULL || (reply->type == REDIS_REPLY_ERROR && conn_is_temporary(reply->str))) {
		freeReplyObject(reply);
		return CLI_OK;
	}
	if (reply->type == REDIS_REPLY_ERROR) {
		progress_hide(w->progress);
		conn_print_refusal(reply);
		freeReplyObject(reply);
		return CLI_FAILED;
	}
	take_state(w, reply);
	w->over = w->job->dept != NULL || in_state(reply, "closed") || in_state(reply, "none");
	return CLI_OK;
}

static void look(struct close_wait *w)
{
	struct request r;

	request_init(&r, "DAY.STATE");
	request_add(&r, w->job->day);
	redisReply *reply = conn_try(w->options, &r);
	if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
		freeReplyObject(reply);
		return;
	}
	int64_t done = answer_int(reply, "written", 0) + answer_int(reply, "failed", 0);
	int64_t expected = answer_int(reply, "expected", 0);
	if (done >= 0 && expected >= 0)
		progress_set(w->progress, (uint64_t)done, (uint64_t)expected, (uint64_t)done);
	take_state(w, reply);
}

/* One turn of waiting: for the reply, or for the time to look how far it is. */
static int wait_turn(struct close_wait *w)
{
	bool answered = w->conn != NULL ? conn_await(w->conn, w->wait_ms) : poll(NULL, 0, w->wait_ms) > 0;

	w->wait_ms = w->wait_ms * 2 < POLL_MAX_MS ? w->wait_ms * 2 : POLL_MAX_MS;
	if (answered)
		return take_close_reply(w);
	if (w->conn == NULL)
		return start_close(w, true);
	look(w);
	return CLI_OK;
}

static int wait_closed(struct close_wait *w)
{
	int64_t deadline_us = clock_mono_us() + w->job->limit_s * 1000000;
	int result = start_close(w, false);

	while (result == CLI_OK && !w->over && clock_mono_us() < deadline_us)
		result = wait_turn(w);
	end_conn(w);
	progress_free(w->progress);
	if (result == CLI_OK && !w->over) {
		cli_error("%s is not closed after %lld s", w->job->day, (long long)w->job->limit_s);
		result = CLI_FAILED;
	}
	return result;
}

/* *ret is NULL when the result is not CLI_OK. */
static int close_and_wait(const struct close_job *job, const struct cli_options *options, redisReply **ret)
{
	struct close_wait w = {
		.job = job,
		.options = options,
		.patient = patient(options),
		.progress = progress_new("closing", "rows"),
		.wait_ms = POLL_FIRST_MS,
	};
	int result = wait_closed(&w);

	if (result == CLI_OK && in_state(w.reply, "none")) {
		cli_error("there is nothing to close on %s", job->day);
		result = CLI_FAILED;
	}
	if (result != CLI_OK)
		take_state(&w, NULL);
	*ret = w.reply;
	return result;
}

static int close_and_go(const struct close_job *job, const struct cli_options *options, redisReply **ret)
{
	struct cli_options long_options = patient(options);
	struct request r;

	close_request(job, &r);
	return conn_ask(&long_options, &r, ret);
}

static int show_closed(
	const struct close_job *job, const struct cli_options *options, const redisReply *reply)
{
	int64_t failed = answer_int(reply, "failed", 0);

	show_map(options, reply);
	if (!job->wait || failed <= 0)
		return CLI_OK;
	cli_error("%lld rows could not be written; see `muster failures --day %s`", (long long)failed,
		job->day);
	return CLI_FAILED;
}

int cmd_close(int argc, char **argv, const struct cli_options *options)
{
	struct close_job job = {.limit_s = 3600};
	redisReply *reply;
	int result = read_close(argc, argv, &job);

	if (result != 0)
		return result;
	result = job.wait ? close_and_wait(&job, options, &reply) : close_and_go(&job, options, &reply);
	if (result != CLI_OK)
		return result;
	result = show_closed(&job, options, reply);
	freeReplyObject(reply);
	return result;
}
