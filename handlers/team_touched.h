/* SPDX-License-Identifier: MIT */
/* What a change of the tree would touch: for DRYRUN. */
#ifndef HANDLERS_TEAM_TOUCHED_H
#define HANDLERS_TEAM_TOUCHED_H

#include <stdbool.h>
#include <stdint.h>

struct call;
struct team_change;

struct team_touched {
	int64_t nodes;       /* that change or change their place */
	int64_t employees;   /* distinct people in the subtree */
	int64_t supervisors; /* distinct managers in the subtree, above it, and above its new place */
	bool job;            /* it would run as a job */
};

/* Counts employees and supervisors; `touched` is copied. Once, later. */
void team_touched_count(struct call *call, const struct team_change *change,
	const struct team_touched *touched,
	void (*fn)(const struct team_touched *touched, const char *error, void *arg), void *arg);

#endif
