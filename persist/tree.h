/* SPDX-License-Identifier: MIT */
/* The daemon's picture of the organisation: every department with its parent, children and names, loaded at
 * start and kept fresh from the organisation's journal (within half a second of a change by another daemon,
 * at once for our own). Redis holds the truth. What needs the picture exact asks a script for `last`, the id
 * of the newest journal entry, and waits with tree_sync() until the picture has got that far.
 *
 * A struct dept is good until the loop turns: it goes when the department is removed or lifted, and all go
 * when the picture is made anew. What outlives a turn keeps the id.
 *
 * Children are kept in the order of their ids, so that a walk can be continued from an id, whatever has
 * become of it. */
#ifndef PERSIST_TREE_H
#define PERSIST_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct event_base;
struct redis;
struct tree;

/* dept->trusted; greater numbers are tree_trust.c's own. */
enum { TRUST_NOT, TRUST_LOADED, TRUST_FIRST };

struct dept {
	char *id, *name, *manager; /* manager "" = none */
	struct dept *parent;       /* NULL = a root */
	struct dept **children;    /* by id; read only */
	uint32_t child_count, child_cap;
	int64_t below;  /* descendants */
	int64_t listed; /* of them without retired ones and what is below those */
	int64_t version;
	bool retired;
	uint32_t trusted; /* tree_trust.c */
};

/* fn(arg) after the first load and after each change. */
struct tree *tree_new(struct event_base *base, struct redis *redis, void (*fn)(void *arg), void *arg);
void tree_free(struct tree *t);
/* The picture is complete, and the journal followed since. */
bool tree_loaded(const struct tree *t);

/* NULL when it is not known. */
struct dept *tree_find(const struct tree *t, struct bytes id);
int64_t tree_count(const struct tree *t);
/* The roots, by id. */
struct dept *const *tree_roots(const struct tree *t, uint32_t *ret_count);
/* The next department of the subtree of `top` in depth-first order, NULL at the end. */
struct dept *tree_next(const struct dept *top, const struct dept *at);
/* The first child of `parent` (NULL = of the roots) whose id comes after `id`, in O(log n); NULL at the end.
 */
struct dept *tree_child_after(const struct tree *t, const struct dept *parent, struct bytes id);
/* The ids of a removed department's former ancestors and itself, root first, joined by ':', and its name,
 * while there may still be news of it; false when nothing is known of it. */
bool tree_gone(const struct tree *t, struct bytes id, struct bytes *ret_path, struct bytes *ret_name);

/* The picture is the tree as of this entry of the organisation's journal. */
bool tree_is_at(const struct tree *t, struct bytes entry);
/* fn(false, arg) when a picture begins to be loaded, fn(true, arg) when it has taken the place of the one
 * before. */
void tree_on_renewal(struct tree *t, void (*fn)(bool done, void *arg), void *arg);

/* Another number whenever departments have changed their places: what was walked over before may have moved
 * to where the walk still has to go. */
uint64_t tree_shape(const struct tree *t);

/* Has something to read in the journal: after a change of our own. */
void tree_doorbell(struct tree *t);
/* fn(true, arg) once the picture contains everything up to the entry `last` of the organisation's journal
 * ("" = whatever), fn(false, arg) when that takes longer than two seconds. Once, never before this returns.
 */
void tree_sync(struct tree *t, struct bytes last, void (*fn)(bool ok, void *arg), void *arg);

#endif
