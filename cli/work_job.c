/* SPDX-License-Identifier: MIT */
/* One task of `muster work`: its command runs, beats keep the claim, and its end is told until the server has
 * answered. Whether the claim still holds is for the server to say, by the token: as long as it can't be
 * asked, the command goes on. */
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/when.h"
#include "cli/work.h"

#define LEASE_MS       60000 /* of a server that does not tell */
#define AGAIN_FIRST_MS 200
#define AGAIN_MAX_MS   5000
#define BEAT_LIMIT_MS  1000
#define PAUSE_MS       1000 /* after a task that was given back, which would be the next one again */

enum job_state {
	JOB_RUNNING, /* the command runs; the timer leads to the next beat */
	JOB_ENDING,  /* the command is over, what becomes of the task is settled and being told */
	JOB_OVER     /* answered, or nothing to tell */
};

/* What becomes of the task. */
enum job_end { END_DONE, END_FAIL, END_RELEASE, END_CANCEL, END_STALE };

static const char *const end_names[] = {"done", "failed", "released", "cancelled", "stale"};

struct job {
	struct work *work;
	enum job_state state;
	enum job_end end; /* while RUNNING: what it will be, when something else than the command decides */
	bool decided;     /* … which is so */
	char *id, *token;
	int64_t attempt, lease_ms, started_us, again_ms;
	struct child *child; /* NULL when it was never begun */
	struct event *timer;
	bool beating, telling; /* a BEAT, the end is under way */
	bool next;             /* the end was told with NEXT */
	struct buf text;       /* RESULT or ERROR */
	TAILQ_ENTRY(job) entry;
};

struct job *job_next(const struct job *job)
{
	return TAILQ_NEXT(job, entry);
}

static void arm(struct job *job, int64_t ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	event_add(job->timer, &tv);
}

static void set_state(struct job *job, enum job_state state)
{
	job->state = state;
	event_del(job->timer);
}

void job_free(struct job *job)
{
	TAILQ_REMOVE(&job->work->jobs, job, entry);
	job->work->running--;
	child_free(job->child);
	event_free(job->timer);
	buf_release(&job->text);
	free(job->id);
	free(job->token);
	free(job);
}

/* ---- what is said of a task that is over ---- */

static void say_json(const struct job *job, int64_t ms)
{
	json_t *line = json_pack("{s:s, s:s, s:s, s:I, s:s, s:I}", "id", job->id, "token", job->token,
		"queue", job->work->plan.queue, "attempt", (json_int_t)job->attempt, "end",
		end_names[job->end], "ms", (json_int_t)ms);
	int status = job->child != NULL ? child_status(job->child) : 0;

	if (job->child != NULL && WIFEXITED(status))
		json_object_set_new(line, "exit", json_integer(WEXITSTATUS(status)));
	if (job->child != NULL && WIFSIGNALED(status))
		json_object_set_new(line, "signal", json_integer(WTERMSIG(status)));
	char *text = json_dumps(line, JSON_COMPACT);
	work_say(STDOUT_FILENO, "%s\n", text);
	free(text);
	json_decref(line);
}

static void say_end(const struct job *job)
{
	char took[WHEN_MAX], at[WHEN_MAX];
	int64_t ms = (clock_mono_us() - job->started_us) / 1000;

	if (job->work->plan.options->json) {
		say_json(job, ms);
		return;
	}
	work_say(STDOUT_FILENO, "%s  %s  %-9s  attempt %" PRId64 ", %s\n",
		when_format(at, clock_wall_ms(), NULL, false), job->id, end_names[job->end], job->attempt,
		when_duration(took, ms));
}

/* Its place is free again, or goes to the tasks that came with the answer; NULL: none did. */
static void finish(struct job *job, const redisReply *tasks)
{
	struct work *w = job->work;

	set_state(job, JOB_OVER);
	say_end(job);
	job_free(job);
	if (tasks != NULL && tasks->type == REDIS_REPLY_ARRAY)
		work_take(w, tasks);
	work_go_on(w);
}

/* ---- telling the end ---- */

static void tell(struct job *job);

static bool is_code(const redisReply *error, const char *code)
{
	return strncmp(error->str, code, strlen(code)) == 0;
}

static void again_later(struct job *job)
{
	arm(job, job->again_ms);
	job->again_ms = job->again_ms * 2 < AGAIN_MAX_MS ? job->again_ms * 2 : AGAIN_MAX_MS;
}

/* The server takes less than we thought: half of it, this time and from now on. */
static void shrink(struct job *job)
{
	job->work->output_max = job->text.len / 2;
	job->text.len /= 2;
	work_say(STDERR_FILENO,
		"muster: task %s: the server takes no result of that size, cut to %zu bytes\n", job->id,
		job->text.len);
	tell(job);
}

static void on_told(const redisReply *reply, void *arg)
{
	struct job *job = arg;

	job->telling = false;
	if (reply == NULL)
		return; /* told again when the wire is up again: a repeat is answered as the first was */
	if (reply->type != REDIS_REPLY_ERROR) {
		finish(job, job->next ? reply : NULL);
	} else if (conn_is_temporary(reply->str)) {
		again_later(job);
	} else if (is_code(reply, "TOOBIG ") && job->end == END_DONE && job->text.len > 0) {
		shrink(job);
	} else {
		work_say(STDERR_FILENO, "muster: task %s: %s\n", job->id, reply->str);
		job->end = END_STALE;
		finish(job, NULL);
	}
}

static void tell(struct job *job)
{
	static const char *const commands[] = {[END_DONE] = "TASK.DONE",
		[END_FAIL] = "TASK.FAIL",
		[END_RELEASE] = "TASK.RELEASE",
		[END_CANCEL] = "TASK.RELEASE"};
	struct request r;

	request_init(&r, commands[job->end]);
	request_add(&r, job->id);
	request_add(&r, job->token);
	if (job->text.len > 0) {
		request_add(&r, job->end == END_DONE ? "RESULT" : "ERROR");
		request_add_bytes(&r, buf_bytes(&job->text));
	}
	job->next = job->end == END_DONE && work_wants_next(job->work);
	if (job->next)
		request_add(&r, "NEXT");
	job->telling = wire_send(job->work->talk, &r, job->work->plan.options->timeout_ms, on_told, job);
}

/* ---- beats ---- */

static void decide(struct job *job, enum job_end end)
{
	job->decided = true;
	job->end = end;
	if (end == END_STALE)
		event_del(job->timer);
	child_stop(job->child);
}

static bool names_it(const redisReply *reply, const char *field)
{
	const redisReply *ids = answer_field(reply, field);

	return ids != NULL && ids->type == REDIS_REPLY_ARRAY && ids->elements > 0;
}

static void on_beat(const redisReply *reply, void *arg)
{
	struct job *job = arg;

	job->beating = false;
	if (job->state != JOB_RUNNING || reply == NULL)
		return;
	if (reply->type == REDIS_REPLY_ERROR) {
		arm(job, job->lease_ms / 6 < AGAIN_MAX_MS ? job->lease_ms / 6 : AGAIN_MAX_MS);
	} else if (names_it(reply, "stale")) {
		work_say(STDERR_FILENO, "muster: task %s: the claim has ended, its command is stopped\n",
			job->id);
		decide(job, END_STALE);
	} else if (names_it(reply, "cancel") && !job->decided) {
		work_say(STDERR_FILENO, "muster: task %s: cancelled, its command is stopped\n", job->id);
		decide(job, END_CANCEL);
	}
}

/* A connection that lets a beat wait until the next is due is given up for a new one, before it is too late.
 */
static void beat(struct job *job)
{
	struct work *w = job->work;
	int64_t limit_ms = job->lease_ms / 3 > BEAT_LIMIT_MS ? job->lease_ms / 3 : BEAT_LIMIT_MS;
	struct request r;

	arm(job, job->lease_ms / 3);
	if (job->beating)
		return;
	request_init(&r, "TASK.BEAT");
	request_add(&r, w->plan.worker);
	request_add(&r, job->id);
	request_add(&r, job->token);
	request_option(&r, "LEASE", w->plan.lease);
	job->beating = wire_send(w->talk, &r,
		limit_ms < w->plan.options->timeout_ms ? limit_ms : w->plan.options->timeout_ms, on_beat,
		job);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct job *job = arg;

	(void)fd;
	(void)what;
	if (job->state == JOB_RUNNING)
		beat(job);
	else
		tell(job);
}

void job_wire_up(struct job *job)
{
	if (job->state == JOB_RUNNING && !(job->decided && job->end == END_STALE))
		beat(job);
	else if (job->state == JOB_ENDING && !job->telling)
		tell(job);
}

/* ---- the command ---- */

/* `exit 3`, or what else ended it, and the end of what it complained of. */
static void write_error(struct job *job)
{
	struct bytes said = child_error(job->child);
	int status = child_status(job->child);
	char limit[WHEN_MAX];

	while (said.n > 0 && said.p[said.n - 1] == '\n')
		said.n--;
	if (child_timed_out(job->child))
		buf_addf(&job->text, "ran longer than %s",
			when_duration(limit, job->work->plan.limits.max_time_ms));
	else if (WIFSIGNALED(status))
		buf_addf(&job->text, "signal %d", WTERMSIG(status));
	else
		buf_addf(&job->text, "exit %d", WEXITSTATUS(status));
	if (said.n > 0)
		buf_add_str(&job->text, ": ");
	buf_add_bytes(&job->text, said);
}

static void write_result(struct job *job)
{
	struct bytes output = child_output(job->child);

	buf_add_bytes(&job->text, output);
	if (child_output_total(job->child) > output.n)
		work_say(STDERR_FILENO,
			"muster: task %s: of %" PRIu64 " bytes of output, the first %zu are its result\n",
			job->id, child_output_total(job->child), output.n);
}

static enum job_end end_of(const struct job *job)
{
	int status = child_status(job->child);

	if (child_timed_out(job->child) || !WIFEXITED(status))
		return END_FAIL;
	if (WEXITSTATUS(status) == 0)
		return END_DONE;
	return WEXITSTATUS(status) == job->work->plan.release_on ? END_RELEASE : END_FAIL;
}

void job_reap(struct job *job)
{
	if (job->state != JOB_RUNNING || !child_reap(job->child))
		return;
	if (!job->decided)
		job->end = end_of(job);
	set_state(job, JOB_ENDING);
	if (job->end == END_STALE) {
		finish(job, NULL);
		return;
	}
	if (job->end == END_FAIL)
		write_error(job);
	else if (job->end == END_DONE)
		write_result(job);
	else if (job->end == END_RELEASE)
		work_pause(job->work, PAUSE_MS);
	tell(job);
}

void job_hurry(struct job *job)
{
	if (job->state == JOB_RUNNING && !job->decided)
		decide(job, END_RELEASE);
}

static void set_environment(const struct job *job)
{
	char attempt[24];

	snprintf(attempt, sizeof(attempt), "%" PRId64, job->attempt);
	setenv("MUSTER_TASK_ID", job->id, 1);
	setenv("MUSTER_TASK_TOKEN", job->token, 1);
	setenv("MUSTER_TASK_QUEUE", job->work->plan.queue, 1);
	setenv("MUSTER_TASK_ATTEMPT", attempt, 1);
}

/* False after a message: the task is none the worse for it, and another worker may do better. */
static bool begin(struct job *job, struct bytes payload)
{
	struct work *w = job->work;
	struct child_limits limits = w->plan.limits;

	limits.output = w->output_max;
	set_environment(job);
	job->child = child_start(w->base, w->plan.command, payload, &limits);
	if (job->child != NULL)
		return true;
	bool passing = errno == EAGAIN || errno == ENOMEM || errno == EMFILE || errno == ENFILE;
	work_say(STDERR_FILENO, "muster: can't start %s: %s\n", w->plan.command[0], strerror(errno));
	work_pause(w, PAUSE_MS);
	if (!passing)
		work_give_up(w, "the command can't be run");
	return false;
}

/* A new claim of a task whose command still runs here: the claim before it has ended, which we were about to
 * hear. Two commands for one task are one too many, so the new one goes back until the old one is gone. */
static bool still_runs(struct work *w, const char *id)
{
	struct job *job;

	TAILQ_FOREACH (job, &w->jobs, entry) {
		if (job->child == NULL || job->state != JOB_RUNNING || strcmp(job->id, id) != 0)
			continue;
		decide(job, END_STALE);
		work_pause(w, PAUSE_MS);
		return true;
	}
	return false;
}

void job_start(struct work *w, const redisReply *task)
{
	bool wanted = !w->leaving && !still_runs(w, answer_str(task, "id"));
	struct job *job = xcalloc(1, sizeof(*job));

	*job = (struct job){.work = w,
		.id = xstrdup(answer_str(task, "id")),
		.token = xstrdup(answer_str(task, "token")),
		.attempt = answer_int(task, "attempt", 0),
		.lease_ms = answer_int(task, "lease", LEASE_MS),
		.started_us = clock_mono_us(),
		.again_ms = AGAIN_FIRST_MS};
	job->timer = event_new(w->base, -1, 0, on_timer, job);
	TAILQ_INSERT_TAIL(&w->jobs, job, entry);
	w->running++;
	if (wanted && begin(job, answer_bytes(task, "payload"))) {
		w->left -= w->left > 0;
		arm(job, job->lease_ms / 3);
		return;
	}
	job->end = END_RELEASE;
	set_state(job, JOB_ENDING);
	tell(job);
}
