/* SPDX-License-Identifier: MIT */
/* What records do to nodes that were read at an unknown time behind them: most have been read with the change
 * in them, which their version tells. */
#include "persist/tree_load.h"

#include <limits.h>

#include "persist/tree.h"
#include "persist/tree_load_private.h"

static enum load_answer apply_remove(struct tree_load *l, struct dept *d)
{
	int all = INT_MAX;

	if (d == NULL)
		return LOAD_APPLIED;
	if (forest_taken_out(l->forest) != NULL)
		(void)forest_drop(l->forest, &all, NULL, NULL);
	build_take_out(l->forest, d);
	return LOAD_DROP;
}

static enum load_answer apply_lift(struct tree_load *l, struct dept *d, struct bytes path)
{
	struct bytes parent = path_parent(path);

	if (parent.n == 0)
		return LOAD_RESTART; /* its children may be in no set that was scanned */
	if (d != NULL && build_lift(l->forest, d, parent))
		text_push(&l->unread, parent);
	return LOAD_APPLIED;
}

/* From one root to another it may have been moved past the scan, with all that is below it; and once a
 * subtree has been read again, anything may have been moved out of that. */
static enum load_answer apply_move(struct tree_load *l, const struct dept *d, const struct tree_record *r)
{
	bool across = !bytes_eq(path_root(r->path), path_root(r->old_path));

	if (across || l->wary || d == NULL || build_mark(d) != NODE_READ) {
		l->wary = true;
		load_subtree(l, r->fields.id);
		return LOAD_READ;
	}
	if (r->fields.version > d->version)
		load_put(l, &r->fields, NODE_READ);
	return LOAD_APPLIED;
}

/* The id may have been another department's, whose end was under way when the reading began: then what hangs
 * on it may be of the one or of the other. */
static enum load_answer apply_add(struct tree_load *l, const struct dept *d, const struct tree_record *r)
{
	bool read = d != NULL && build_mark(d) == NODE_READ;

	if (d != NULL && build_gave_way(d))
		return LOAD_RESTART; /* the record of the lift may have torn away what is of this one */
	if (d != NULL)
		load_children_again(l, d);
	if (!read)
		load_put(l, &r->fields, NODE_READ);
	else if (!build_has_root(d))
		text_push(&l->again, r->fields.id);
	return LOAD_APPLIED;
}

/* One that is not known comes with a subtree that has been moved; the record of that is still to come. */
static enum load_answer apply_fields(struct tree_load *l, const struct dept *d, const struct tree_record *r)
{
	struct dept_fields fields = r->fields;

	if (d == NULL || build_mark(d) != NODE_READ || fields.version <= d->version)
		return LOAD_APPLIED;
	fields.parent = d->parent != NULL ? bytes_of(d->parent->id) : (struct bytes){"", 0};
	load_put(l, &fields, NODE_READ);
	return LOAD_APPLIED;
}

enum load_answer tree_load_apply(struct tree_load *l, const struct tree_record *r)
{
	if (r->change == TREE_REPAIRED)
		return LOAD_RESTART;
	struct dept *d = build_find(l->forest, r->fields.id);
	switch (r->change) {
	case TREE_REMOVE:
		return apply_remove(l, d);
	case TREE_LIFT:
		return apply_lift(l, d, r->path);
	case TREE_MOVE:
		return apply_move(l, d, r);
	case TREE_ADD:
		return apply_add(l, d, r);
	default:
		return apply_fields(l, d, r);
	}
}
