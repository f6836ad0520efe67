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
#include "base/config.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/batch.h"
#include "persist/employee_set.h"
#include "persist/keys.h"
#include "persist/lease.h"
#include "persist/redis.h"
#include "persist/team_change.h"
#include "rules/workday.h"

#define TICK_MS     50
#define LOOK_MS     250
#define JOB_MAX     24
#define PEOPLE_PAGE 100

enum run_state {
	RUN_STEP,  /* the script is at work */
	RUN_BURY,  /* the departments in `ids` are being deleted */
	RUN_LIST,  /* the employees of the first of `ids` are being read */
	RUN_EMPTY, /* they are being moved */
	RUN_ENDED  /* freed at the end of the turn */
};

struct run {
	struct team_jobs *jobs;
	char job[JOB_MAX];
	enum run_state state;
	char target[ID_MAX + 1]; /* where the employees go */
	struct buf ids;          /* NUL after each */
	size_t at;               /* the first of `ids` that may have employees */
	int moving;              /* employees under way */
	bool failed;
	TAILQ_ENTRY(run) link;
};

struct wait {
	struct team_jobs *jobs;
	char job[JOB_MAX];
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
	TAILQ_HEAD(, run) runs;
	TAILQ_HEAD(, wait) waits;
	uint64_t steps, ended, failures;
};

static void run_step(struct run *r);
static void bury(struct run *r);
static void empty_next(struct run *r);

static void set_state(struct run *r, enum run_state state)
{
	static const char *const names[] = {"step", "bury", "list", "empty", "ended"};

	if (r->state != state)
		log_debug("persist job event=state job=%s from=%s to=%s", r->job, names[r->state],
			names[state]);
	r->state = state;
}

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
	char job[JOB_MAX];
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

/* ---- a run ---- */

static void destroy(void *ptr)
{
	struct run *r = ptr;

	buf_release(&r->ids);
	free(r);
}

static void end(struct run *r)
{
	TAILQ_REMOVE(&r->jobs->runs, r, link);
	set_state(r, RUN_ENDED);
	turn_free(r, destroy);
}

static void fail(struct run *r, const char *error)
{
	log_warning("persist job event=interrupted job=%s error=\"%s\"", r->job, error);
	r->jobs->failures++;
	end(r);
}

static bool may_go_on(const struct run *r)
{
	return !r->jobs->stopped && lease_holds(r->jobs->deps.lease, keys_org());
}

static void take_ids(struct run *r, const struct redisReply *reply, size_t from)
{
	buf_clear(&r->ids);
	r->at = 0;
	for (size_t i = from; i < redis_count(reply); i++) {
		buf_add_bytes(&r->ids, redis_text(redis_at(reply, i)));
		buf_add_char(&r->ids, '\0');
	}
}

static void on_step(const struct redisReply *reply, void *arg)
{
	struct run *r = arg;
	struct team_jobs *j = r->jobs;
	struct bytes what = redis_text(redis_at(reply, 0));
	char phase[16];

	if (redis_reply_error(reply) != NULL) {
		fail(r, redis_reply_error(reply));
		return;
	}
	j->steps++;
	if (bytes_eq(what, BYTES_LIT("end"))) {
		bytes_copy(phase, sizeof(phase), redis_text(redis_at(reply, 1)));
		log_notice("persist job event=ended job=%s phase=%s", r->job, phase);
		j->ended++;
		j->deps.changed(j->deps.arg);
		answer_all(j, r->job, phase, redis_text(redis_at(reply, 2)));
		end(r);
	} else if (!may_go_on(r)) {
		end(r);
	} else if (bytes_eq(what, BYTES_LIT("bury"))) {
		bytes_copy(r->target, sizeof(r->target), redis_text(redis_at(reply, 1)));
		take_ids(r, reply, 2);
		bury(r);
	} else {
		run_step(r);
	}
}

static void run_step(struct run *r)
{
	const struct team_jobs_deps *deps = &r->jobs->deps;
	struct redis_args a;
	struct buf text = BUF_INIT;

	redis_args_init(&a);
	key_org(&text, "roots");
	redis_arg_key(&a, &text);
	key_org(&text, "");
	redis_arg_key(&a, &text);
	buf_release(&text);
	redis_arg_str(&a, r->job);
	redis_arg_i64(&a, deps->config->chunk);
	set_state(r, RUN_STEP);
	enum redis_sent sent = redis_eval(deps->redis, SCRIPT_TEAM_JOB, 1, &a, on_step, r);
	if (sent != REDIS_SENT)
		fail(r, redis_sent_error(sent));
}

/* ---- the employees of departments that go ---- */

/* One of them. */
struct mover {
	struct run *run;
	char dept[ID_MAX + 1], employee[ID_MAX + 1];
	bool unassigned; /* the first place did not take him */
};

static void move_person(struct mover *m);

static void mover_end(struct mover *m, const char *error)
{
	struct run *r = m->run;

	free(m);
	if (error != NULL && !r->failed) {
		log_warning("persist job event=not-moved job=%s error=\"%s\"", r->job, error);
		r->failed = true;
	}
	if (--r->moving > 0)
		return;
	r->jobs->deps.changed(r->jobs->deps.arg);
	if (r->failed || !may_go_on(r))
		end(r);
	else
		empty_next(r);
}

static void on_forgotten(const struct redisReply *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

/* The directory says that he is somewhere else: his record here is a left-over. */
static void forget_person(const struct mover *m)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "HDEL");
	key_emps(&key, bytes_of(m->dept));
	redis_arg_key(&a, &key);
	redis_arg_str(&a, m->employee);
	buf_release(&key);
	/* Not sent is not bad: he is met again. */
	(void)!redis_send(m->run->jobs->deps.redis, &a, on_forgotten, NULL);
}

static void on_moved(struct bytes line, const char *error, void *arg)
{
	struct mover *m = arg;
	char letter = line.n > 0 ? line.p[0] : '?';

	if (error == NULL && (letter == 'T' || letter == 'S') && !m->unassigned) {
		m->unassigned = true;
		move_person(m);
		return;
	}
	if (error == NULL && letter == 'R')
		forget_person(m);
	else if (error == NULL && letter != 'O')
		error = "an employee could not be moved";
	mover_end(m, error);
}

static void move_person(struct mover *m)
{
	const struct employee_change c = {.id = bytes_of(m->employee),
		.believed = bytes_of(m->dept),
		.dept = m->unassigned ? BYTES_LIT("0") : bytes_of(m->run->target),
		.must_exist = true};

	employee_set_add(m->run->jobs->deps.employees, &c, workday_of(clock_wall_ms()), on_moved, m);
}

static void on_people(const struct redisReply *reply, void *arg)
{
	struct run *r = arg;
	const struct redisReply *fields = redis_at(reply, 1);
	const char *dept = r->ids.data + r->at;

	if (redis_reply_error(reply) != NULL) {
		fail(r, redis_reply_error(reply));
		return;
	}
	if (redis_count(fields) == 0) {
		/* Nobody in this page; who is in others is found when the department is to be deleted again.
		 */
		r->at += strlen(dept) + 1;
		empty_next(r);
		return;
	}
	set_state(r, RUN_EMPTY);
	r->moving = (int)(redis_count(fields) / 2);
	for (size_t i = 0; i + 1 < redis_count(fields); i += 2) {
		struct mover *m = xcalloc(1, sizeof(*m));
		m->run = r;
		bytes_copy(m->dept, sizeof(m->dept), bytes_of(dept));
		bytes_copy(m->employee, sizeof(m->employee), redis_text(redis_at(fields, i)));
		move_person(m);
	}
}

/* The employees of the next department, a page of them; those that were moved are no longer found. */
static void empty_next(struct run *r)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	if (r->at >= r->ids.len) {
		run_step(r);
		return;
	}
	redis_args_init(&a);
	redis_arg_str(&a, "HSCAN");
	key_emps(&key, bytes_of(r->ids.data + r->at));
	redis_arg_key(&a, &key);
	redis_arg_str(&a, "0");
	redis_arg_str(&a, "COUNT");
	redis_arg_i64(&a, PEOPLE_PAGE);
	buf_release(&key);
	set_state(r, RUN_LIST);
	enum redis_sent sent = redis_query(r->jobs->deps.redis, &a, on_people, r);
	if (sent != REDIS_SENT)
		fail(r, redis_sent_error(sent));
}

static void on_buried(const struct redisReply *reply, void *arg)
{
	struct run *r = arg;

	if (redis_reply_error(reply) != NULL) {
		fail(r, redis_reply_error(reply));
	} else if (!may_go_on(r)) {
		end(r);
	} else {
		take_ids(r, reply, 0);
		empty_next(r);
	}
}

static void bury(struct run *r)
{
	struct redis_args a;
	struct buf text = BUF_INIT;
	int keys = 1;
	int32_t today = workday_of(clock_wall_ms());

	redis_args_init(&a);
	key_org(&text, "roots");
	redis_arg_key(&a, &text);
	for (size_t i = 0; i < r->ids.len; i += strlen(r->ids.data + i) + 1)
		keys += team_day_keys(&a, bytes_of(r->ids.data + i), today);
	key_org(&text, "");
	redis_arg_key(&a, &text);
	buf_release(&text);
	redis_arg_str(&a, r->job);
	redis_arg_i64(&a, clock_wall_ms());
	for (size_t i = 0; i < r->ids.len; i += strlen(r->ids.data + i) + 1)
		redis_arg_str(&a, r->ids.data + i);
	set_state(r, RUN_BURY);
	enum redis_sent sent = redis_eval(r->jobs->deps.redis, SCRIPT_TEAM_BURY, keys, &a, on_buried, r);
	if (sent != REDIS_SENT)
		fail(r, redis_sent_error(sent));
}

/* ---- looking for jobs ---- */

static bool is_run(const struct team_jobs *j, struct bytes job)
{
	const struct run *r;

	TAILQ_FOREACH (r, &j->runs, link) {
		if (bytes_eq(bytes_of(r->job), job))
			return true;
	}
	return false;
}

static void begin(struct team_jobs *j, struct bytes job)
{
	if (is_run(j, job))
		return;
	struct run *r = xcalloc(1, sizeof(*r));
	r->jobs = j;
	bytes_copy(r->job, sizeof(r->job), job);
	TAILQ_INSERT_TAIL(&j->runs, r, link);
	log_notice("persist job event=run job=%s", r->job);
	run_step(r);
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
	const struct run *r;
	int running = 0;

	TAILQ_FOREACH (r, &j->runs, link)
		running++;
	buf_addf(out, "jobs_running:%d\r\njobs_ended:%llu\r\njob_steps:%llu\r\njob_interruptions:%llu\r\n",
		running, (unsigned long long)j->ended, (unsigned long long)j->steps,
		(unsigned long long)j->failures);
}

struct team_jobs *team_jobs_new(const struct team_jobs_deps *deps)
{
	struct team_jobs *j = xcalloc(1, sizeof(*j));
	struct timeval every = {0, TICK_MS * 1000};

	j->deps = *deps;
	TAILQ_INIT(&j->runs);
	TAILQ_INIT(&j->waits);
	turn_task_init(&j->look, look, j);
	j->timer = event_new(deps->base, -1, EV_PERSIST, on_timer, j);
	event_add(j->timer, &every);
	info_register("Tree jobs", write_info, j);
	return j;
}

void team_jobs_free(struct team_jobs *j)
{
	struct run *r;

	if (j == NULL)
		return;
	team_jobs_hurry(j);
	while ((r = TAILQ_FIRST(&j->runs)) != NULL) {
		TAILQ_REMOVE(&j->runs, r, link);
		destroy(r);
	}
	turn_cancel(&j->look);
	event_free(j->timer);
	free(j);
}
