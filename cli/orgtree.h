/* SPDX-License-Identifier: MIT */
/* The departments of an import file: collected in any order, then put in an order in which every parent comes
 * before its children. Finds duplicates, cycles, and what hangs on a department that failed. */
#ifndef CLI_ORGTREE_H
#define CLI_ORGTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct orgtree;

enum org_state {
	ORG_WAITING, /* not decided */
	ORG_OK,
	ORG_FAILED, /* its message has been printed */
};

struct org {
	char *id, *parent, *name, *manager; /* "" when not given; owned by the tree */
	uint64_t line;
	unsigned depth;         /* after orgtree_order(): 0 = its parent is not in the file */
	struct org *parent_org; /* after orgtree_order(): NULL = not in the file */
	enum org_state state;
};

struct orgtree *orgtree_new(void);
void orgtree_free(struct orgtree *t);

/* The new department, or NULL with the earlier one of that id in *ret_earlier. */
struct org *orgtree_add(struct orgtree *t, struct bytes id, uint64_t line, struct org **ret_earlier);
struct org *orgtree_find(const struct orgtree *t, struct bytes id);
/* Sets parent_org and depth. Departments on a cycle become ORG_FAILED and are handed to on_cycle. */
void orgtree_order(struct orgtree *t, void (*on_cycle)(const struct org *org, void *arg), void *arg);

size_t orgtree_count(const struct orgtree *t);
/* After orgtree_order(): from parents to children, by line within a depth. */
struct org *orgtree_at(const struct orgtree *t, size_t index);

#endif
