/* SPDX-License-Identifier: MIT */
/* Reading teams exactly, each with the line above it, as Redis has them at one instant: from the picture
 * where that is as good (team_glance.h), otherwise by lua/team_read.lua. What is damaged is said so, never
 * guessed. What one turn of the loop asks for, or what comes while two calls are under way, goes to Redis as
 * one call; many teams take as many calls of the script as its bound asks for. */
#ifndef PERSIST_TEAM_READ_H
#define PERSIST_TEAM_READ_H

#include <stdbool.h>

#include "persist/redis.h"

struct team_reads;
struct tree;
struct tree_trust;

struct team_reads *team_reads_new(struct redis *redis, struct tree *tree, struct tree_trust *trust);
/* After the link has been freed. */
void team_reads_free(struct team_reads *r);

/* Ids of one read. */
#define TEAM_READ_MAX 100

struct team_ancestor {
	struct bytes id, name, manager, state;
};

struct team_node {
	bool known;
	char refused; /* when not known: 'P' there is no such team, 'C' the tree above it is damaged */
	struct bytes id, parent, name, manager, state; /* parent "" = a root; all but id only when known */
	int64_t sub, version;
	int64_t joined, employees; /* how many have joined it, how many are at home in it; if asked for */
	size_t ancestor_count;
	const struct team_ancestor *ancestors; /* nearest first */
};

/* One node for each id in their order; all is valid until the callback returns. `last` is the id of the
 * newest entry of the organisation's journal, for tree_sync(). Or error is the text for the client, and there
 * are no nodes. Called once, never before what asks has returned. */
typedef void (*team_read_cb)(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg);

/* At most TEAM_READ_MAX ids. */
void team_read_send(struct team_reads *r, const struct bytes *ids, size_t count, team_read_cb cb, void *arg);
/* The same with `joined` and `employees`. */
void team_read_people(
	struct team_reads *r, const struct bytes *ids, size_t count, team_read_cb cb, void *arg);
/* Behind the nodes of the ids the employee's home, then the teams that he has joined, in no order; no nodes
 * at all when there is no such employee. */
void team_read_of(struct team_reads *r, struct bytes employee, const struct bytes *ids, size_t count,
	team_read_cb cb, void *arg);

/* Appends the ids from the root to the node, joined by ':'. */
void team_node_path(struct buf *out, const struct team_node *node);

#endif
