/* SPDX-License-Identifier: MIT */
/* One job in the hands of this daemon. It has one thing under way at a time: a step of lua/team_job.lua, or
 * the moving of employees out of departments that are to be deleted, or the deletion (lua/team_bury.lua).
 * Whatever goes wrong ends the run; the job stays in Redis and a new run goes on with it. */
#ifndef PERSIST_JOB_RUN_H
#define PERSIST_JOB_RUN_H

#include <stdbool.h>

#include "base/bytes.h"

struct batch;
struct config;
struct job_run;
struct redis;

/* Room for a job's number. */
#define JOB_NUMBER 24

struct job_run_deps {
	const struct config *config;
	struct redis *redis;
	struct batch *employees; /* of lua/employee_set.lua */
	bool (*may_go_on)(void *arg);
	void (*changed)(void *arg); /* something was written to journals */
	/* The job has ended in this phase (done, cancelled, failed: `wrong` says why), or the run alone when
	 * it is NULL. Once, never before job_run_new() returns; the run is gone afterwards. */
	void (*ended)(struct job_run *run, const char *phase, struct bytes wrong, void *arg);
	void *arg;
};

struct job_run *job_run_new(const struct job_run_deps *deps, struct bytes job);
const char *job_run_number(const struct job_run *r);
/* For shutdown, when Redis and the batch are gone and nothing is under way. */
void job_run_free(struct job_run *r);

#endif
