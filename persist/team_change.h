/* SPDX-License-Identifier: MIT */
/* Changes of the tree. What is added in one turn of the loop goes to Redis as one call of the script; all
 * else is a call each. The scripts' heads (lua/team_….lua) say what the answer's letters mean. */
#ifndef PERSIST_TEAM_CHANGE_H
#define PERSIST_TEAM_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "persist/batch.h"

struct config;
struct team_changes;

enum team_verb { TEAM_ADD, TEAM_RENAME, TEAM_MANAGER, TEAM_RETIRE, TEAM_RESTORE, TEAM_MOVE, TEAM_REMOVE };

/* What a change needs of these; all texts are borrowed until it is sent, and empty ones may have no pointer.
 */
struct team_change {
	enum team_verb verb;
	bool dry;             /* only say whether it may be */
	struct bytes id;      /* ADD: "*" makes one */
	struct bytes parent;  /* ADD, MOVE: empty = a root */
	struct bytes name;    /* ADD: empty = the id; RENAME */
	struct bytes fold;    /* of the name: rules/name.h */
	struct bytes manager; /* ADD, MANAGER: empty = none */
	struct bytes version; /* what it must be now, digits; empty = any. Not of ADD */
	struct bytes mode;    /* REMOVE: empty, "cascade" or "lift" */
	struct bytes height;  /* MOVE: levels below the node, digits, as of the journal entry `seen`; empty =
				 not known */
	struct bytes seen;
};

struct team_changes *team_changes_new(struct redis *redis, const struct config *config);
/* After the link has been freed. */
void team_changes_free(struct team_changes *t);

/* `today` is the present work date. fn once, later, with the script's answer or an error. */
void team_change_send(
	struct team_changes *t, const struct team_change *change, int32_t today, batch_cb fn, void *arg);
/* Adds the keys of a department's attendance: its employees, its maps of today and tomorrow, `days`; returns
 * how many. */
int team_day_keys(struct redis_args *a, struct bytes id, int32_t today);

#endif
