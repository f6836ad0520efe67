/* SPDX-License-Identifier: MIT */
#include "persist/job_run.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/batch.h"
#include "persist/employee_set.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/team_change.h"
#include "rules/workday.h"

#define PEOPLE_PAGE 100

enum run_state {
	RUN_STEP,  /* the script is at work */
	RUN_BURY,  /* the departments in `ids` are being deleted */
	RUN_LIST,  /* the employees of the first of `ids` are being read */
	RUN_EMPTY, /* they are being moved */
	RUN_ENDED  /* freed at the end of the turn */
};

struct job_run {
	struct job_run_deps deps;
	char job[JOB_NUMBER];
	enum run_state state;
	char target[ID_MAX + 1]; /* where the employees go */
	struct buf ids;          /* NUL after each */
	size_t at;               /* the first of `ids` that may have employees */
	char cursor[24];         /* how far its employees have been read */
	int moving;              /* employees under way */
	bool failed;
	struct turn_task begin;
};

static void run_step(struct job_run *r);
static void bury(struct job_run *r);
static void empty_next(struct job_run *r);

static void set_state(struct job_run *r, enum run_state state)
{
	static const char *const names[] = {"step", "bury", "list", "empty", "ended"};

	if (r->state != state)
		log_debug("persist job event=state job=%s from=%s to=%s", r->job, names[r->state],
			names[state]);
	r->state = state;
}

/* ---- steps ---- */

static void destroy(void *ptr)
{
	struct job_run *r = ptr;

	buf_release(&r->ids);
	free(r);
}

static void end(struct job_run *r, const char *phase, struct bytes wrong)
{
	set_state(r, RUN_ENDED);
	r->deps.ended(r, phase, wrong, r->deps.arg);
	turn_free(r, destroy);
}

/* The job stays in Redis; somebody's next run goes on with it. */
static void stop(struct job_run *r)
{
	end(r, NULL, (struct bytes){"", 0});
}

static void fail(struct job_run *r, const char *error)
{
	log_warning("persist job event=interrupted job=%s error=\"%s\"", r->job, error);
	stop(r);
}

static bool may_go_on(const struct job_run *r)
{
	return r->deps.may_go_on(r->deps.arg);
}

static void take_ids(struct job_run *r, const struct redisReply *reply, size_t from)
{
	buf_clear(&r->ids);
	r->at = 0;
	bytes_copy(r->cursor, sizeof(r->cursor), BYTES_LIT("0"));
	for (size_t i = from; i < redis_count(reply); i++) {
		buf_add_bytes(&r->ids, redis_text(redis_at(reply, i)));
		buf_add_char(&r->ids, '\0');
	}
}

static void on_step(const struct redisReply *reply, void *arg)
{
	struct job_run *r = arg;
	struct bytes what = redis_text(redis_at(reply, 0));
	char phase[16];

	if (redis_reply_error(reply) != NULL) {
		fail(r, redis_reply_error(reply));
	} else if (bytes_eq(what, BYTES_LIT("end"))) {
		bytes_copy(phase, sizeof(phase), redis_text(redis_at(reply, 1)));
		log_notice("persist job event=ended job=%s phase=%s", r->job, phase);
		r->deps.changed(r->deps.arg);
		end(r, phase, redis_text(redis_at(reply, 2)));
	} else if (!may_go_on(r)) {
		stop(r);
	} else if (bytes_eq(what, BYTES_LIT("bury"))) {
		bytes_copy(r->target, sizeof(r->target), redis_text(redis_at(reply, 1)));
		take_ids(r, reply, 2);
		bury(r);
	} else {
		run_step(r);
	}
}

static void run_step(struct job_run *r)
{
	const struct job_run_deps *deps = &r->deps;
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
	struct job_run *run;
	char dept[ID_MAX + 1], employee[ID_MAX + 1];
	bool unassigned; /* the first place did not take him */
};

static void move_person(struct mover *m);

static void mover_end(struct mover *m, const char *error)
{
	struct job_run *r = m->run;

	free(m);
	if (error != NULL && !r->failed) {
		log_warning("persist job event=not-moved job=%s error=\"%s\"", r->job, error);
		r->failed = true;
	}
	if (--r->moving > 0)
		return;
	r->deps.changed(r->deps.arg);
	if (r->failed || !may_go_on(r))
		stop(r);
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
	(void)!redis_send(m->run->deps.redis, &a, on_forgotten, NULL);
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

	employee_set_add(m->run->deps.employees, &c, workday_of(clock_wall_ms()), on_moved, m);
}

static void on_people(const struct redisReply *reply, void *arg)
{
	struct job_run *r = arg;
	const struct redisReply *fields = redis_at(reply, 1);
	const char *dept = r->ids.data + r->at;

	if (redis_reply_error(reply) != NULL) {
		fail(r, redis_reply_error(reply));
		return;
	}
	bytes_copy(r->cursor, sizeof(r->cursor), redis_text(redis_at(reply, 0)));
	if (redis_count(fields) == 0) {
		/* A page may be empty although there are others. Who came behind it is found when the
		 * department is to be deleted again. */
		if (strcmp(r->cursor, "0") == 0)
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
static void empty_next(struct job_run *r)
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
	redis_arg_str(&a, r->cursor);
	redis_arg_str(&a, "COUNT");
	redis_arg_i64(&a, PEOPLE_PAGE);
	buf_release(&key);
	set_state(r, RUN_LIST);
	enum redis_sent sent = redis_query(r->deps.redis, &a, on_people, r);
	if (sent != REDIS_SENT)
		fail(r, redis_sent_error(sent));
}

static void on_buried(const struct redisReply *reply, void *arg)
{
	struct job_run *r = arg;

	if (redis_reply_error(reply) != NULL) {
		fail(r, redis_reply_error(reply));
	} else if (!may_go_on(r)) {
		stop(r);
	} else {
		take_ids(r, reply, 0);
		empty_next(r);
	}
}

static void bury(struct job_run *r)
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
	enum redis_sent sent = redis_eval(r->deps.redis, SCRIPT_TEAM_BURY, keys, &a, on_buried, r);
	if (sent != REDIS_SENT)
		fail(r, redis_sent_error(sent));
}

/* ---- life ---- */

static void first_step(void *arg)
{
	run_step(arg);
}

struct job_run *job_run_new(const struct job_run_deps *deps, struct bytes job)
{
	struct job_run *r = xcalloc(1, sizeof(*r));

	r->deps = *deps;
	bytes_copy(r->job, sizeof(r->job), job);
	log_notice("persist job event=run job=%s", r->job);
	turn_task_init(&r->begin, first_step, r);
	turn_schedule(&r->begin);
	return r;
}

const char *job_run_number(const struct job_run *r)
{
	return r->job;
}

void job_run_free(struct job_run *r)
{
	turn_cancel(&r->begin);
	destroy(r);
}
