/* SPDX-License-Identifier: MIT */
/* The departments of an import file: collected in any order, then put in an order in which every parent comes
 * before its children. Finds what only the whole file shows: ids that come twice, cycles, siblings of one
 * name.
 *
 * Made for millions: a department is 32 bytes, its texts, and 12 bytes of index. */
#ifndef CLI_ORGTREE_H
#define CLI_ORGTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "cli/rows.h"

struct orgtree;

enum org_state {
	ORG_WAITING,   /* not decided */
	ORG_NEW,       /* the server does not have it */
	ORG_OTHER,     /* the server has one of that id which is not quite as the file says */
	ORG_CREATED,   /* by this import */
	ORG_UNCHANGED, /* it was there just so */
	ORG_FAILED,    /* its message has been printed */
};

struct org {
	const char *text; /* id, parent, manager and name, each with its NUL; the tree's */
	uint64_t line;
	uint32_t above; /* the parent's index in the order of collection; ORG_NONE = not in the file */
	uint32_t depth; /* after orgtree_order(): 0 = its parent is not in the file */
	uint8_t parent_at, manager_at, name_at;
	uint8_t state; /* enum org_state */
	bool retired;  /* as the file says */
	bool retired_there;
};

#define ORG_NONE UINT32_MAX

/* "" when not given. */
static inline const char *org_id(const struct org *org)
{
	return org->text;
}

static inline const char *org_parent(const struct org *org)
{
	return org->text + org->parent_at;
}

static inline const char *org_manager(const struct org *org)
{
	return org->text + org->manager_at;
}

static inline const char *org_name(const struct org *org)
{
	return org->text + org->name_at;
}

struct orgtree *orgtree_new(void);
void orgtree_free(struct orgtree *t);

/* The new department of a row, or NULL with the earlier one of that id in *ret_earlier. Pointers to
 * departments hold until the next is added. */
struct org *orgtree_add(struct orgtree *t, const struct row *row, struct org **ret_earlier);
/* Does the row say of the department what has been said already? */
bool org_is_as(const struct org *org, const struct row *row);
/* Notes that something is wrong below `parent` which is no department itself; see orgtree_spoil(). */
void orgtree_add_flaw(struct orgtree *t, struct bytes parent);
struct org *orgtree_find(const struct orgtree *t, struct bytes id);

/* Sets above, depth and the order. Departments on a cycle become ORG_FAILED and are handed to on_cycle. */
void orgtree_order(struct orgtree *t, void (*on_cycle)(const struct org *org, void *arg), void *arg);
/* A department whose name a sibling of an earlier line has becomes ORG_FAILED and is handed to on_taken.
 * Names are compared as the server does. */
void orgtree_check_names(struct orgtree *t,
	void (*on_taken)(const struct org *org, const struct org *earlier, void *arg), void *arg);
/* Fails every tree of the file in which something has failed: each department of it that has not is handed to
 * on_spoilt. A tree is a department whose parent is not in the file, and all below it. */
void orgtree_spoil(struct orgtree *t, void (*on_spoilt)(const struct org *org, void *arg), void *arg);

size_t orgtree_count(const struct orgtree *t);
/* After orgtree_order(): from parents to children, by line within a depth. */
struct org *orgtree_at(const struct orgtree *t, size_t index);
/* NULL = not in the file. */
struct org *orgtree_above(const struct orgtree *t, const struct org *org);

#endif
