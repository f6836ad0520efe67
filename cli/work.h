/* SPDX-License-Identifier: MIT */
/* What the halves of `muster work` share: work.c has the shift (who claims, when it ends), work_job.c a task
 * from its claim to its end.
 *
 * Invariants: a job holds its place among the `jobs` of the plan until its end has been answered, so never
 * more is claimed than can be begun at once; a job has at most one command, ever; and nothing here waits:
 * what would block is an event. */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cli/child.h"
#include "cli/wire.h"
#include "cli/task.h"

/* What was asked for; nothing here changes. */
struct work_plan {
	const struct cli_options *options;
	const char *queue;
	char worker[WORKER_MAX];
	char *const *command;
	int64_t jobs;       /* commands at once */
	const char *lease;  /* as it was given; NULL: the task's own */
	int64_t release_on; /* this exit code gives the task back; -1 = none does */
	int64_t limit;      /* tasks that are begun; -1 = no end */
	bool once;          /* ends when nothing is ready */
	struct child_limits limits;
};

struct job;

struct work {
	struct work_plan plan;
	struct event_base *base;
	struct wire *claims; /* has nothing but CLAIMs that wait, so that they are in nobody's way */
	struct wire *talk;   /* all the rest */
	struct event *pause; /* no claim before it is over */
	struct event *last;  /* the end, whatever is still open */
	TAILQ_HEAD(, job) jobs;
	int64_t running;   /* how many those are */
	int64_t left;      /* tasks that may still be begun; -1 = no end */
	size_t output_max; /* results longer than this are cut; the server may lower it */
	int64_t wait_ms;   /* of a CLAIM; 0 with `once` */
	bool claiming;     /* a CLAIM is under way */
	bool leaving;      /* no more claims */
	bool hurried;      /* the commands are being stopped, their tasks given back */
	bool away;         /* the server can't be reached, and that has been told */
	int result;        /* exit code */
};

/* work.c */

/* How many tasks may be claimed now beside those that are there or asked for. */
int64_t work_room(const struct work *w);
/* Whether the place of a task that ends is for another at once. */
bool work_wants_next(const struct work *w);
/* A CLAIM's answer: begins its tasks. */
void work_take(struct work *w, const redisReply *tasks);
/* After anything that may let it go on: claims, or ends when nothing is left to do. */
void work_go_on(struct work *w);
/* No claims for so long. */
void work_pause(struct work *w, int64_t ms);
/* The server refuses what we can't do without: says so, and leaves. */
void work_give_up(struct work *w, const char *error);
/* A line on `fd`; dropped when nobody takes it, since no task may wait for a reader. */
void work_say(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* work_job.c */

/* Begins a task as CLAIM gave it, or gives it back when the work is leaving. */
void job_start(struct work *w, const redisReply *task);
/* The wire `talk` is there again: what could not be told is told. */
void job_wire_up(struct job *job);
/* After SIGCHLD. */
void job_reap(struct job *job);
/* Stops the command; the task is given back. */
void job_hurry(struct job *job);
void job_free(struct job *job);
struct job *job_next(const struct job *job);

#endif
