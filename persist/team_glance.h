/* SPDX-License-Identifier: MIT */
/* Reading teams from the picture, where that is as good as reading them from Redis (persist/tree_trust.h):
 * one short call tells how far the journal is and how many people there are; when the picture stands there
 * and all that would be read is trusted, the answer is what team_read.lua would have said at that instant. */
#ifndef PERSIST_TEAM_GLANCE_H
#define PERSIST_TEAM_GLANCE_H

#include "persist/team_read.h"

struct tree;
struct tree_trust;

struct team_glances {
	struct redis *redis;
	struct tree *tree;
	struct tree_trust *trust;
};

/* nodes NULL: it can't be answered so. Otherwise as team_read_cb, and all fields are told but counters of
 * people when they were not asked for. */
typedef void (*team_glance_cb)(const struct team_node *nodes, size_t count, struct bytes last, void *arg);

/* Of ids, a NUL after each, that stay until the end; `people` counts them. fn once, later; or false, and it
 * never comes, when there is no use in asking. */
bool team_glance(const struct team_glances *g, struct bytes ids, bool people, team_glance_cb fn, void *arg)
	__attribute__((warn_unused_result));

#endif
