/* SPDX-License-Identifier: MIT */
/* The departments in memory: found by id, listed by parent in the order of their ids, counted. It knows
 * nothing of Redis. A forest is first built in whatever order its nodes come (forest_build.h); from then on
 * it is exact and changed by the functions here, each in as many steps as the tree is deep or a list of
 * children is long.
 *
 * A department that is taken out is not found any more from that instant, with all that is below it; the
 * memory goes in slices, for a subtree may be a million nodes. */
#ifndef PERSIST_FOREST_H
#define PERSIST_FOREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct dept;
struct forest;

/* What is known of a department. */
struct dept_fields {
	struct bytes id, parent, name, manager; /* parent and manager "" = none */
	int64_t version;
	bool retired;
};

struct forest *forest_new(void);
/* NULL is none. */
void forest_free(struct forest *f);
/* Frees about *budget departments and lowers the budget by them; true when everything is freed. The forest is
 * good for nothing else from the first call on. */
bool forest_free_some(struct forest *f, int *budget) __attribute__((warn_unused_result));

/* NULL when there is none, or it has been taken out. */
struct dept *forest_find(const struct forest *f, struct bytes id);
/* Above all roots; its counters are those of the whole. */
const struct dept *forest_top(const struct forest *f);
/* How many are held, those that have been taken out and those that are only named included. */
size_t forest_size(const struct forest *f);
/* The first child whose id comes after `id`, NULL at the end. */
struct dept *forest_child_after(const struct dept *parent, struct bytes id);

/* The department must not be there, its parent must. */
struct dept *forest_add(struct forest *f, const struct dept_fields *fields, struct dept *parent);
/* Takes over all but parent and id. */
void forest_set(struct forest *f, struct dept *d, const struct dept_fields *fields);
/* parent NULL = it becomes a root. False, and nothing is changed, when that would be a circle. */
bool forest_move(struct forest *f, struct dept *d, struct dept *parent) __attribute__((warn_unused_result));
/* Its children take its place, and it is freed. */
void forest_lift(struct forest *f, struct dept *d);

/* Takes a department out with all that is below it. One at a time: the one before must have been dropped. */
void forest_take_out(struct forest *f, struct dept *d);
/* What has been taken out and is not dropped yet, NULL when nothing is. */
const struct dept *forest_taken_out(const struct forest *f);
/* The department of this id in it, or NULL. */
const struct dept *forest_find_taken_out(const struct forest *f, struct bytes id);
/* Frees about *budget departments of what has been taken out, the lowest first, each after last_words(d, arg)
 * if that is given; true when all of it is gone. */
bool forest_drop(
	struct forest *f, int *budget, void (*last_words)(const struct dept *d, void *arg), void *arg);

#endif
