/* SPDX-License-Identifier: MIT */
#include "handlers/walk.h"

#include "persist/tree.h"

bool walk_path_valid(struct bytes path)
{
	while (path.n > 0) {
		if (!id_valid(bytes_cut(&path, ':')))
			return false;
	}
	return true;
}

static void add_path(struct buf *out, const struct dept *top, const struct dept *at)
{
	if (at == top)
		return;
	add_path(out, top, at->parent);
	if (out->len > 0)
		buf_add_char(out, ':');
	buf_add_str(out, at->id);
}

void walk_path(struct buf *out, const struct dept *top, const struct dept *at)
{
	buf_clear(out);
	add_path(out, top, at);
}

/* What follows a child of `parent` that was called `id`, and all that was below it. */
static const struct dept *after(
	const struct tree *tree, const struct dept *top, const struct dept *parent, struct bytes id)
{
	const struct dept *next = tree_child_after(tree, parent, id);

	for (; next == NULL && parent != top; parent = parent->parent)
		next = tree_child_after(tree, parent->parent, bytes_of(parent->id));
	return next;
}

const struct dept *walk_find(
	const struct tree *tree, const struct dept *top, struct bytes path, bool *ret_exact)
{
	const struct dept *at = top;

	while (path.n > 0) {
		struct bytes id = bytes_cut(&path, ':');
		const struct dept *child = tree_find(tree, id);
		*ret_exact = child != NULL && child->parent == at;
		if (!*ret_exact)
			return after(tree, top, at, id);
		at = child;
	}
	*ret_exact = true;
	return at;
}

bool walk_within(const struct dept *top, const struct dept *at)
{
	while (at != NULL && at != top)
		at = at->parent;
	return at != NULL;
}
