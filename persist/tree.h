/* SPDX-License-Identifier: MIT */
/* The daemon's picture of the organisation: every department with its parent, children and names, loaded at
 * start and kept fresh from the organisation's journal (within a second of a change by another daemon, at
 * once for our own). Redis holds the truth; what needs it exact asks a script. */
#ifndef PERSIST_TREE_H
#define PERSIST_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct event_base;
struct redis;
struct tree;

struct dept {
	char *id, *name, *manager;
	struct dept *parent;       /* NULL = a root */
	struct dept *first_child;  /* in the order of loading */
	struct dept *next_sibling; /* of roots: the next root */
	struct dept *next_in_partition;
	int partition;
	int32_t ready_through; /* last date whose map this daemon has seen ready; 0 = none */
	bool opening;          /* a map of it is being made ready */
};

/* fn(arg) after the first load and after each change. */
struct tree *tree_new(struct event_base *base, struct redis *redis, void (*fn)(void *arg), void *arg);
void tree_free(struct tree *t);
/* The picture is complete since the link last came up. */
bool tree_loaded(const struct tree *t);

/* NULL when it is not known. */
struct dept *tree_find(const struct tree *t, struct bytes id);
struct dept *tree_partition(const struct tree *t, int partition);
int64_t tree_count(const struct tree *t);
/* The next department of the subtree of `top` in depth-first order, NULL at the end. */
struct dept *tree_next(const struct dept *top, const struct dept *at);
/* Has something to read in the journal: after a change of our own. */
void tree_doorbell(struct tree *t);

#endif
