/* SPDX-License-Identifier: MIT */
/* Where a depth-first walk over the picture stands, in a form that outlives the picture: the ids from below
 * the walk's top down to the present department, joined by ':', empty at the top itself. Such a path may come
 * back from a client as a cursor, after any change of the tree: the walk then goes on behind the place where
 * the path breaks off. */
#ifndef HANDLERS_WALK_H
#define HANDLERS_WALK_H

#include <stdbool.h>

#include "base/buf.h"

struct dept;
struct tree;

/* The error where tree_sync() has given up before the walk. */
#define WALK_BEHIND "BUSY the daemon's picture of the tree is behind; try again"

/* Whether it can be a path: nothing is known of its ids. */
bool walk_path_valid(struct bytes path);
/* Sets `out` to the path of `at`, which is `top` or below it. */
void walk_path(struct buf *out, const struct dept *top, const struct dept *at);
/* The department at the path and true; or, when it is there no longer, the one that comes next in the walk,
 * NULL at the end, and false. */
const struct dept *walk_find(
	const struct tree *tree, const struct dept *top, struct bytes path, bool *ret_exact);
/* Whether it is `top` or below it. NULL is not. */
bool walk_within(const struct dept *top, const struct dept *at);

#endif
