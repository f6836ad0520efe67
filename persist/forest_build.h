/* SPDX-License-Identifier: MIT */
/* Building a forest from nodes that come in any order and were read at different instants. Until build_step()
 * has come to its end lists of children are in no order, nothing is counted, there may be circles, and a node
 * may be known by name only, because another says that it is its parent. */
#ifndef PERSIST_FOREST_BUILD_H
#define PERSIST_FOREST_BUILD_H

#include "persist/forest.h"

enum node_mark {
	NODE_NAMED,  /* somebody's parent, not read yet */
	NODE_READ,   /* as Redis has it */
	NODE_LIFTED, /* being lifted: what it has below belongs to its parent */
	NODE_ABSENT  /* there was no such node, or it and all below it is being removed */
};

/* Any node, by name only too; NULL when there is none. */
struct dept *build_find(const struct forest *f, struct bytes id);
enum node_mark build_mark(const struct dept *d);
/* Takes over what was read; what was read last is true. True when the parent has to be read, too: it is known
 * by name only, or was absent. It is said once until the parent comes. */
bool build_put(struct forest *f, const struct dept_fields *fields, enum node_mark mark);
/* The node is kept as NODE_ABSENT, with the children that it may have. */
void build_absent(struct dept *d);
/* Its children become those of `parent` ("" = roots), and it is NODE_ABSENT. True as for build_put(). */
bool build_lift(struct forest *f, struct dept *d, struct bytes parent);
/* It has had children to give up in build_lift(), whatever has become of it since. */
bool build_gave_way(const struct dept *d);
/* It and all above it, up to a root, are NODE_READ. */
bool build_has_root(const struct dept *d);
/* As forest_take_out(). */
void build_take_out(struct forest *f, struct dept *d);

/* The end of the building, in slices: lists are put in order, nodes counted, and those freed that no root is
 * above or that are not NODE_READ. */
struct build;

struct build *build_new(struct forest *f);
void build_free(struct build *b);
/* About *budget small steps, by which the budget is lowered; true when it is complete. */
bool build_step(struct build *b, int *budget);
/* How many nodes were read and hang in the air, because no root is above them, and the id of one ("" = none).
 */
size_t build_stray(const struct build *b, const char **ret_example);

#endif
