/* SPDX-License-Identifier: MIT */
/* The check of the tree: goes through all keys of the organisation and compares what is derived with what it
 * is derived from, while changes go on. What the findings mean is in the heads of lua/team_check.lua and
 * lua/team_check_keys.lua.
 *
 * One check at a time in a daemon, one short script at a time with a pause behind it. It may run on any
 * daemon, and on several: each step looks before it writes. Nothing is kept over a restart; a new check
 * begins anew. */
#ifndef PERSIST_TEAM_CHECK_H
#define PERSIST_TEAM_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct redis;
struct team_check;
struct team_findings;

enum team_check_mode {
	TEAM_CHECK_LOOK,   /* changes nothing */
	TEAM_CHECK_REPAIR, /* what is derived */
	TEAM_CHECK_TRUTH   /* where nodes hang, too: those that hang nowhere go to lost and found */
};

struct team_check_report {
	const char *status; /* none (since the start), running, done, failed */
	const char *mode;
	const char *error; /* of a failed one, for the client; else NULL */
	int64_t rounds;
	int64_t keys, nodes;                  /* looked at in the last round */
	int64_t ms;                           /* how long it took, or takes */
	const struct team_findings *findings; /* valid until the loop's next turn */
};

/* changed(arg): a repair may have written to the journal. */
struct team_check *team_check_new(
	struct event_base *base, struct redis *redis, void (*changed)(void *arg), void *arg);
void team_check_free(struct team_check *c);
/* Ends what runs. */
void team_check_stop(struct team_check *c);

/* Begins a check; one of the same mode that runs already is joined. False when one of another mode runs. */
bool team_check_start(struct team_check *c, enum team_check_mode mode) __attribute__((warn_unused_result));
/* fn(arg) once, later: when the check that runs has ended, or after timeout_ms. */
void team_check_wait(struct team_check *c, int64_t timeout_ms, void (*fn)(void *arg), void *arg);
/* Of the check that runs, else of the last one. */
void team_check_report(const struct team_check *c, struct team_check_report *ret);

#endif
