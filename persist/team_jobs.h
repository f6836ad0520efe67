/* SPDX-License-Identifier: MIT */
/* Runs the big changes of the tree, step by step: lua/team_job.lua does them, this calls it. The daemon that
 * holds the organisation's lease runs all jobs there are, also those that another one has begun or that a
 * crash has left; where a job stands is in Redis alone. */
#ifndef PERSIST_TEAM_JOBS_H
#define PERSIST_TEAM_JOBS_H

#include <stdint.h>

#include "base/bytes.h"

struct batch;
struct config;
struct event_base;
struct lease;
struct redis;
struct team_jobs;

struct team_jobs_deps {
	struct event_base *base;
	const struct config *config;
	struct redis *redis;
	struct lease *lease;
	struct batch *employees;    /* of lua/employee_set.lua */
	void (*changed)(void *arg); /* a step has written to journals */
	void *arg;
};

struct team_jobs *team_jobs_new(const struct team_jobs_deps *deps);
void team_jobs_free(struct team_jobs *j);
/* Looks at once for what there is to do. */
void team_jobs_wake(struct team_jobs *j);
/* Nobody waits any longer; the jobs go on. */
void team_jobs_hurry(struct team_jobs *j);
/* Begins no further step. */
void team_jobs_stop(struct team_jobs *j);

/* fn once, later: `phase` is done, cancelled or failed (`wrong` says why, in the letters of the change's
 * script), or NULL when nobody knows: after `timeout_ms`, or without Redis. */
typedef void (*team_jobs_cb)(const char *phase, struct bytes wrong, void *arg);
void team_jobs_wait(struct team_jobs *j, struct bytes job, int64_t timeout_ms, team_jobs_cb fn, void *arg);

#endif
