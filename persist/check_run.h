/* SPDX-License-Identifier: MIT */
/* What the checks of what is in Redis have in common. A check goes over its keys in rounds, until one repairs
 * nothing more; a round is many short steps, one script each, with pauses in between; changes go on
 * meanwhile. Each kind of check has one run, which does one check at a time in a daemon. Nothing is kept over
 * a restart.
 *
 * A step that Redis refuses for now is done again; a check that loses Redis ends. */
#ifndef PERSIST_CHECK_RUN_H
#define PERSIST_CHECK_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "persist/redis.h"

struct check_run;
struct event_base;
struct finding;
struct findings;

/* What a kind of check does itself. */
struct check_ops {
	const char *section, *name;     /* of INFO; the name stands before its fields and in the log */
	const char *items;              /* what it counts besides keys */
	bool queued;                    /* its findings are of queues, and it may skip what is too big */
	const char *const *modes;       /* names, by number */
	void (*begin_round)(void *arg); /* may be NULL: the scan begins anew by itself */
	/* Whether there is something to do; false at the end of the round. */
	bool (*find_work)(void *arg);
	/* Sends the next step, whose callback begins with check_run_answered(). */
	enum redis_sent (*ask)(void *arg);
	/* A line of a step's reply that is no finding: its sign and the rest. */
	void (*take)(char sign, struct bytes rest, void *arg);
	/* A finding that is not repaired; `fresh`: it was not known. */
	void (*found)(const struct finding *finding, bool fresh, void *arg);
	/* Whether a round that has repaired nothing is followed by another; may be NULL. */
	bool (*again)(int64_t left, void *arg);
	/* A round has repaired something; may be NULL. */
	void (*repaired)(void *arg);
	/* The check is over: nothing more is to be looked at. */
	void (*drop)(void *arg);
};

struct check_report {
	const char *status; /* none (since the start), running, done, failed */
	const char *mode;
	const char *error;     /* of a failed one, for the client; else NULL */
	const char *item_name; /* as in the ops */
	bool queued;
	int64_t rounds;
	int64_t keys, items;             /* looked at in the last round */
	int64_t skipped;                 /* not looked at, since they are too big for one step */
	int64_t ms;                      /* how long it took, or takes */
	const struct findings *findings; /* valid until the loop's next turn */
};

struct check_run *check_run_new(
	struct event_base *base, struct redis *redis, const struct check_ops *ops, void *arg);
void check_run_free(struct check_run *r);

/* Begins a check; one of the same mode that runs already is joined. False when one of another mode runs. */
bool check_run_start(struct check_run *r, int mode) __attribute__((warn_unused_result));
/* Ends what runs. */
void check_run_stop(struct check_run *r);
/* fn(arg) once, later: when the check that runs has ended, or after timeout_ms. */
void check_run_wait(struct check_run *r, int64_t timeout_ms, void (*fn)(void *arg), void *arg);
/* Of the check that runs, else of the last one. */
void check_run_report(const struct check_run *r, struct check_report *ret);

/* For the ops. */

int check_run_mode(const struct check_run *r);
int check_run_round(const struct check_run *r);
/* Whether the step has an answer that can be used; the next step follows. */
bool check_run_answered(struct check_run *r, const struct redisReply *reply)
	__attribute__((warn_unused_result));
/* The lines of a step's reply, from element i on. */
void check_run_take(struct check_run *r, const struct redisReply *reply, size_t i);
void check_run_add(struct check_run *r, const struct finding *finding);
void check_run_count(struct check_run *r, int64_t keys, int64_t items, int64_t skipped);
/* The next page of all keys that begin with `base`, for which fn(key, arg) is called. */
enum redis_sent check_run_scan(struct check_run *r, const char *base, void (*fn)(struct bytes key, void *arg))
	__attribute__((warn_unused_result));
/* All keys of this round have been seen. */
bool check_run_scanned(const struct check_run *r);

#endif
