/* SPDX-License-Identifier: MIT */
#include "persist/tree_follow.h"

#include <limits.h>

#include "persist/tree.h"
#include "persist/tree_gone.h"

static const char *add(struct forest *f, const struct tree_record *r)
{
	struct dept *parent = forest_find(f, r->fields.parent);

	if (parent == NULL && r->fields.parent.n > 0)
		return "its parent is not known";
	forest_add(f, &r->fields, parent);
	return NULL;
}

static const char *move(struct forest *f, struct dept *d, struct bytes parent_id)
{
	struct dept *parent = forest_find(f, parent_id);

	if (parent == NULL && parent_id.n > 0)
		return "its parent is not known";
	return forest_move(f, d, parent) ? NULL : "it would be below itself";
}

static const char *set(struct forest *f, struct dept *d, const struct tree_record *r)
{
	bool gap = r->fields.version > d->version + 1;
	const char *doubt = r->change == TREE_MOVE ? move(f, d, r->fields.parent) : NULL;

	forest_set(f, d, &r->fields);
	return gap ? "a change before this one was not seen" : doubt;
}

static void take_out(struct forest *f, struct tree_gone *gone, struct dept *d, struct bytes path)
{
	int all = INT_MAX;

	/* Two in one entry: the first has to go whole. */
	if (forest_taken_out(f) != NULL)
		(void)forest_drop(f, &all, tree_gone_last_words, gone);
	tree_gone_begin(gone, path_above(path));
	forest_take_out(f, d);
}

const char *tree_follow(struct forest *f, struct tree_gone *gone, const struct tree_record *r)
{
	if (r->change == TREE_REPAIRED)
		return "it was repaired";
	bool goes = r->change == TREE_LIFT || r->change == TREE_REMOVE;
	struct dept *d = forest_find(f, r->fields.id);
	if (d == NULL && r->change == TREE_ADD)
		return add(f, r);
	if (d == NULL)
		return goes ? NULL : "it is not known";
	if (r->fields.version <= d->version)
		return NULL;
	if (!goes)
		return set(f, d, r);
	tree_gone_add(gone, r->path, bytes_of(d->name));
	tree_gone_read(gone);
	if (r->change == TREE_LIFT)
		forest_lift(f, d);
	else
		take_out(f, gone, d, r->path);
	return NULL;
}
