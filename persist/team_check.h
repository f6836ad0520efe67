/* SPDX-License-Identifier: MIT */
/* The check of the tree: goes through all keys of the organisation and compares what is derived with what it
 * is derived from, while changes go on. What the findings mean is in the heads of lua/team_check.lua and
 * lua/team_check_keys.lua. It may run on any daemon, and on several: each step looks before it writes. */
#ifndef PERSIST_TEAM_CHECK_H
#define PERSIST_TEAM_CHECK_H

struct check_run;
struct event_base;
struct redis;
struct team_check;

enum team_check_mode {
	TEAM_CHECK_LOOK,   /* changes nothing */
	TEAM_CHECK_REPAIR, /* what is derived */
	TEAM_CHECK_TRUTH   /* where nodes hang, too: those that hang nowhere go to lost and found */
};

/* changed(arg): a repair may have written to the journal. */
struct team_check *team_check_new(
	struct event_base *base, struct redis *redis, void (*changed)(void *arg), void *arg);
void team_check_free(struct team_check *c);
/* Starts it by a mode, waits for it, tells what it has found. */
struct check_run *team_check_run(struct team_check *c);

#endif
