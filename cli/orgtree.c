/* SPDX-License-Identifier: MIT */
#include "cli/orgtree.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

struct node {
	struct org org; /* first: a struct org of this tree is its node */
	unsigned walk;  /* the walk towards the root that met it last */
	bool placed;    /* depth is known */
	UT_hash_handle hh;
};

struct orgtree {
	struct node *by_id;
	struct node **order;
	size_t count, cap;
};

struct orgtree *orgtree_new(void)
{
	return xcalloc(1, sizeof(struct orgtree));
}

static void free_node(struct node *node)
{
	free(node->org.id);
	free(node->org.parent);
	free(node->org.name);
	free(node->org.manager);
	free(node);
}

void orgtree_free(struct orgtree *t)
{
	if (t == NULL)
		return;
	HASH_CLEAR(hh, t->by_id);
	for (size_t i = 0; i < t->count; i++)
		free_node(t->order[i]);
	free(t->order);
	free(t);
}

static struct node *find(const struct orgtree *t, const char *id, size_t n)
{
	struct node *node;

	HASH_FIND(hh, t->by_id, id, n, node);
	return node;
}

struct org *orgtree_add(struct orgtree *t, struct bytes id, uint64_t line, struct org **ret_earlier)
{
	struct node *node = find(t, id.p, id.n);

	if (node != NULL) {
		*ret_earlier = &node->org;
		return NULL;
	}
	node = xcalloc(1, sizeof(*node));
	node->org.id = xstrndup(id.p, id.n);
	node->org.parent = xstrdup("");
	node->org.name = xstrdup("");
	node->org.manager = xstrdup("");
	node->org.line = line;
	HASH_ADD_KEYPTR(hh, t->by_id, node->org.id, id.n, node);
	if (t->count == t->cap) {
		t->cap = t->cap != 0 ? t->cap * 2 : 64;
		t->order = xrealloc(t->order, t->cap * sizeof(struct node *));
	}
	t->order[t->count++] = node;
	return &node->org;
}

struct org *orgtree_find(const struct orgtree *t, struct bytes id)
{
	struct node *node = find(t, id.p, id.n);
	return node != NULL ? &node->org : NULL;
}

static struct node *parent_of(const struct node *node)
{
	return (struct node *)node->org.parent_org;
}

/* Fails every department of the cycle that `node` is on. */
static void fail_cycle(struct node *node, void (*on_cycle)(const struct org *org, void *arg), void *arg)
{
	for (struct node *at = node; at->org.state != ORG_FAILED; at = parent_of(at)) {
		at->org.state = ORG_FAILED;
		at->placed = true;
		on_cycle(&at->org, arg);
	}
}

/* Walks from `start` towards the root until a department whose depth is known, the root, or one that this
 * walk has met already; then sets the depth of those on the way. */
static void place(
	struct node *start, unsigned walk, void (*on_cycle)(const struct org *org, void *arg), void *arg)
{
	unsigned above = 0;
	struct node *at = start;

	for (; at != NULL && !at->placed && at->walk != walk; at = parent_of(at)) {
		at->walk = walk;
		above++;
	}
	if (at != NULL && !at->placed)
		fail_cycle(at, on_cycle, arg);
	above = at != NULL ? above + at->org.depth : above - (above > 0);
	for (at = start; at != NULL && !at->placed; at = parent_of(at)) {
		at->placed = true;
		at->org.depth = above--;
	}
}

static int by_depth_and_line(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;

	if (x->org.depth != y->org.depth)
		return x->org.depth < y->org.depth ? -1 : 1;
	return x->org.line < y->org.line ? -1 : x->org.line > y->org.line;
}

void orgtree_order(struct orgtree *t, void (*on_cycle)(const struct org *org, void *arg), void *arg)
{
	for (size_t i = 0; i < t->count; i++) {
		const char *parent = t->order[i]->org.parent;
		struct node *node = find(t, parent, strlen(parent));
		t->order[i]->org.parent_org = node != NULL ? &node->org : NULL;
	}
	for (size_t i = 0; i < t->count; i++)
		place(t->order[i], (unsigned)i + 1, on_cycle, arg);
	if (t->count > 0)
		qsort(t->order, t->count, sizeof(struct node *), by_depth_and_line);
}

size_t orgtree_count(const struct orgtree *t)
{
	return t->count;
}

struct org *orgtree_at(const struct orgtree *t, size_t index)
{
	return &t->order[index]->org;
}
