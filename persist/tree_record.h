/* SPDX-License-Identifier: MIT */
/* A change of the tree as the organisation's journal tells of it:
 *   T|change|id|parent or -|manager or -|version|state|path|old path or -|name
 * Paths are ids joined by ':', root first, the department itself last: `path` as it is after the change
 * (before it when the department is removed or lifted), `old path` as it was before a move.
 * And Z|repaired: a check has put something back; what was read before may lack it. */
#ifndef PERSIST_TREE_RECORD_H
#define PERSIST_TREE_RECORD_H

#include "persist/forest.h"

enum tree_change {
	TREE_ADD,
	TREE_RENAME,
	TREE_MANAGER,
	TREE_RETIRE,
	TREE_RESTORE,
	TREE_MOVE,
	TREE_LIFT,
	TREE_REMOVE,
	TREE_REPAIRED /* without fields */
};

/* All texts point into the record. */
struct tree_record {
	enum tree_change change;
	struct dept_fields fields;
	struct bytes path, old_path; /* old_path empty but of a move */
};

/* False for records of other kinds, too. */
bool tree_record_parse(struct bytes text, struct tree_record *ret) __attribute__((warn_unused_result));
/* The first id of a path, the one before the last ("" when there is none), and the path up to it. */
struct bytes path_root(struct bytes path);
struct bytes path_parent(struct bytes path);
struct bytes path_above(struct bytes path);

#endif
