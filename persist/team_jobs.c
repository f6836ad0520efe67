/* SPDX-License-Identifier: MIT */
/* A run is one job in the hands of this daemon. It has one thing under way at a time: a step of the script,
 * or the moving of employees out of departments that are to be deleted, or the deletion. Whatever goes wrong
 * ends the run; the job stays in Redis and the next look begins a new one. */
#include "persist/team_jobs.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/info.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/job_run.h"
#include "persist/keys.h"
#include "persist/lease.h"
#include "persist/redis.h"

#define TICK_MS  50
#define LOOK_MS  250
#define RUNS_MAX 64 /* as many jobs as there can be: lua/team_move.lua */

struct wait {
	struct team_jobs *jobs;
	char job[JOB_NUMBER];
	int64_t deadline_us;
	team_jobs_cb fn;
	void *arg;
	TAILQ_ENTRY(wait) link;
};

struct team_jobs {
	struct team_jobs_deps deps;
	struct event *timer;
	struct turn_task look;
	bool looking, again, stopped;
	int64_t look_us;
	struct job_run *runs[RUNS_MAX];
	int run_count;
	TAILQ_HEAD(, wait) waits;
	uint64_t ended, interrupted;
};

/* ---- waiting for the end ---- */

static void answer(struct wait *w, const char *phase, struct bytes wrong)
{
	TAILQ_REMOVE(&w->jobs->waits, w, link);
	w->fn(phase, wrong, w->arg);
	free(w);
}

static void answer_all(struct team_jobs *j, const char *job, const char *phase, struct bytes wrong)
{
	struct wait *w, *next;

	for (w = TAILQ_FIRST(&j->waits); w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		if (strcmp(w->job, job) == 0)
			answer(w, phase, wrong);
	}
}

static bool is_end(struct bytes phase)
{
	return bytes_eq(phase, BYTES_LIT("done")) || bytes_eq(phase, BYTES_LIT("cancelled")) ||
	       bytes_eq(phase, BYTES_LIT("failed"));
}

/* A job that is not run here: asked for by its number, since the waiter may have gone meanwhile. */
struct question {
	struct team_jobs *jobs;
	char job[JOB_NUMBER];
};

static void on_phase(const struct redisReply *reply, void *arg)
{
	struct question *q = arg;
	struct bytes phase = redis_text(redis_at(reply, 0));
	char text[16];

	if (redis_is_array(reply) && redis_is_null(redis_at(reply, 0)))
		answer_all(q->jobs, q->job, "done", (struct bytes){"", 0}); /* an hour ago */
	else if (is_end(phase))
		answer_all(q->jobs, q->job, bytes_copy(text, sizeof(text), phase),
			redis_text(redis_at(reply, 1)));
	free(q);
}

static void ask_phase(struct wait *w)
{
	struct question *q = xcalloc(1, sizeof(*q));
	struct redis_args a;
	struct buf key = BUF_INIT;

	q->jobs = w->jobs;
	memcpy(q->job, w->job, sizeof(q->job));
	redis_args_init(&a);
	redis_arg_str(&a, "HMGET");
	key_org_of(&key, "job", bytes_of(w->job));
	redis_arg_key(&a, &key);
	redis_arg_str(&a, "phase");
	redis_arg_str(&a, "error");
	buf_release(&key);
	if (redis_query(w->jobs->deps.redis, &a, on_phase, q) != REDIS_SENT)
		free(q);
}

void team_jobs_wait(struct team_jobs *j, struct bytes job, int64_t timeout_ms, team_jobs_cb fn, void *arg)
{
	struct wait *w = xcalloc(1, sizeof(*w));

	w->jobs = j;
	bytes_copy(w->job, sizeof(w->job), job);
	w->deadline_us = clock_mono_us() + timeout_ms * 1000;
	w->fn = fn;
	w->arg = arg;
	TAILQ_INSERT_TAIL(&j->waits, w, link);
}

/* ---- looking for jobs ---- */

static bool is_run(const struct team_jobs *j, struct bytes job)
{
	for (int i = 0; i < j->run_count; i++) {
		if (bytes_eq(bytes_of(job_run_number(j->runs[i])), job))
			return true;
	}
	return false;
}

static bool may_go_on(void *arg)
{
	const struct team_jobs *j = arg;

	return !j->stopped && lease_holds(j->deps.lease, keys_org());
}

static void on_changed(void *arg)
{
	struct team_jobs *j = arg;

	j->deps.changed(j->deps.arg);
}

static void on_ended(struct job_run *run, const char *phase, struct bytes wrong, void *arg)
{
	struct team_jobs *j = arg;
	int i = 0;

	while (j->runs[i] != run)
		i++;
	j->runs[i] = j->runs[--j->run_count];
	j->ended += phase != NULL;
	j->interrupted += phase == NULL;
	if (phase != NULL)
		answer_all(j, job_run_number(run), phase, wrong);
}

static void begin(struct team_jobs *j, struct bytes job)
{
	const struct job_run_deps deps = {.config = j->deps.config,
		.redis = j->deps.redis,
		.employees = j->deps.employees,
		.may_go_on = may_go_on,
		.changed = on_changed,
		.ended = on_ended,
		.arg = j};

	if (!is_run(j, job) && j->run_count < RUNS_MAX)
		j->runs[j->run_count++] = job_run_new(&deps, job);
}

static void on_jobs(const struct redisReply *reply, void *arg)
{
	struct team_jobs *j = arg;

	j->looking = false;
	for (size_t i = 0; redis_is_array(reply) && !j->stopped && i < redis_count(reply); i++)
		begin(j, redis_text(redis_at(reply, i)));
	if (j->again)
		turn_schedule(&j->look);
}

static void look(void *arg)
{
	struct team_jobs *j = arg;
	struct redis_args a;
	struct buf key = BUF_INIT;

	j->again = j->looking; /* what came after the question was sent */
	if (j->looking || j->stopped || !lease_holds(j->deps.lease, keys_org()))
		return;
	redis_args_init(&a);
	redis_arg_str(&a, "SMEMBERS");
	key_org(&key, "jobs");
	redis_arg_key(&a, &key);
	buf_release(&key);
	j->looking = redis_query(j->deps.redis, &a, on_jobs, j) == REDIS_SENT;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct team_jobs *j = arg;
	struct wait *w, *next;
	int64_t now = clock_mono_us();

	(void)fd;
	(void)what;
	for (w = TAILQ_FIRST(&j->waits); w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		if (now > w->deadline_us || !redis_ready(j->deps.redis))
			answer(w, NULL, (struct bytes){"", 0});
		else if (!is_run(j, bytes_of(w->job)))
			ask_phase(w);
	}
	if (now < j->look_us)
		return;
	j->look_us = now + LOOK_MS * 1000;
	look(j);
}

void team_jobs_wake(struct team_jobs *j)
{
	turn_schedule(&j->look);
}

void team_jobs_hurry(struct team_jobs *j)
{
	struct wait *w;

	while ((w = TAILQ_FIRST(&j->waits)) != NULL)
		answer(w, NULL, (struct bytes){"", 0});
}

void team_jobs_stop(struct team_jobs *j)
{
	j->stopped = true;
}

static void write_info(struct buf *out, void *arg)
{
	const struct team_jobs *j = arg;

	buf_addf(out, "jobs_running:%d\r\njobs_ended:%llu\r\njob_interruptions:%llu\r\n", j->run_count,
		(unsigned long long)j->ended, (unsigned long long)j->interrupted);
}

struct team_jobs *team_jobs_new(const struct team_jobs_deps *deps)
{
	struct team_jobs *j = xcalloc(1, sizeof(*j));
	struct timeval every = {0, TICK_MS * 1000};

	j->deps = *deps;
	TAILQ_INIT(&j->waits);
	turn_task_init(&j->look, look, j);
	j->timer = event_new(deps->base, -1, EV_PERSIST, on_timer, j);
	event_add(j->timer, &every);
	info_register("Tree jobs", write_info, j);
	return j;
}

void team_jobs_free(struct team_jobs *j)
{
	if (j == NULL)
		return;
	team_jobs_hurry(j);
	while (j->run_count > 0)
		job_run_free(j->runs[--j->run_count]);
	turn_cancel(&j->look);
	event_free(j->timer);
	free(j);
}
