/* SPDX-License-Identifier: MIT */
#include "persist/forest_build.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "persist/forest_private.h"

#define LEVELS_MAX 1000 /* a chain that is longer goes round in a circle */

/* ---- raw nodes ---- */

struct dept *build_find(const struct forest *f, struct bytes id)
{
	struct node *n = forest_node(f, id);

	return n != NULL ? &n->dept : NULL;
}

enum node_mark build_mark(const struct dept *d)
{
	return (enum node_mark)((const struct node *)d)->mark;
}

/* Below `parent`, NULL = a root. */
static void hang(struct forest *f, struct dept *d, struct dept *parent)
{
	d->parent = parent;
	forest_append_child(above(f, d), d);
	node_of(d)->hung = true;
}

/* The list is searched from its end: those who are read again are asked for from there. */
static void unhang(struct forest *f, struct dept *d)
{
	struct dept *parent = above(f, d);
	uint32_t at = parent->child_count;

	if (!node_of(d)->hung)
		return;
	do
		at--;
	while (parent->children[at] != d);
	parent->children[at] = parent->children[--parent->child_count];
	node_of(d)->hung = false;
	d->parent = NULL;
}

/* NULL for a root. */
static struct dept *parent_by_id(struct forest *f, struct bytes id)
{
	struct dept_fields named = {.id = id, .name = {"", 0}, .manager = {"", 0}};
	struct dept *parent = id.n > 0 ? build_find(f, id) : NULL;

	return id.n > 0 && parent == NULL ? &forest_new_node(f, &named)->dept : parent;
}

/* Whether somebody has to read it, who has not been told yet. */
static bool must_be_read(struct dept *d)
{
	bool known = d == NULL || build_mark(d) == NODE_READ || build_mark(d) == NODE_LIFTED;

	if (known || node_of(d)->asked)
		return false;
	node_of(d)->asked = true;
	return true;
}

bool build_put(struct forest *f, const struct dept_fields *fields, enum node_mark mark)
{
	struct dept *parent = parent_by_id(f, fields->parent), *d = build_find(f, fields->id);

	if (d == NULL)
		d = &forest_new_node(f, fields)->dept;
	if (!node_of(d)->hung || d->parent != parent) {
		unhang(f, d);
		hang(f, d, parent);
	}
	forest_set_text(node_of(d), fields->name, fields->manager);
	d->version = fields->version;
	d->retired = fields->retired;
	node_of(d)->mark = (uint8_t)mark;
	node_of(d)->asked = false;
	return must_be_read(parent);
}

void build_absent(struct dept *d)
{
	node_of(d)->mark = NODE_ABSENT;
	node_of(d)->asked = false;
}

bool build_lift(struct forest *f, struct dept *d, struct bytes parent)
{
	struct dept *up = parent_by_id(f, parent);

	if (up == d)
		return false; /* damaged: it stays, and goes with what no root is above */
	unhang(f, d);
	for (uint32_t i = 0; i < d->child_count; i++) {
		hang(f, d->children[i], up);
		d->children[i]->trusted = TRUST_NOT; /* Redis still has them where they were */
	}
	node_of(d)->gave_way = d->child_count > 0;
	node_of(d)->mark = NODE_ABSENT;
	d->child_count = 0;
	return must_be_read(up);
}

bool build_gave_way(const struct dept *d)
{
	return ((const struct node *)d)->gave_way;
}

bool build_has_root(const struct dept *d)
{
	for (int level = 0; level < LEVELS_MAX && build_mark(d) == NODE_READ; level++) {
		if (d->parent == NULL)
			return true;
		d = d->parent;
	}
	return false;
}

void build_take_out(struct forest *f, struct dept *d)
{
	assert(f->taken_out == NULL);
	unhang(f, d);
	f->taken_out = d;
}

/* ---- sorting ---- */

/* A merge sort from the bottom up that can stop anywhere: pairs of runs of `width` are merged from one array
 * into the other. */
struct sorter {
	struct dept **from, **to;
	struct dept **spare; /* owned */
	uint32_t spare_cap;
	uint32_t n, width;
	uint32_t i, i_end, j, j_end, out; /* the pair under way */
};

static uint32_t at_most(uint64_t value, uint32_t limit)
{
	return value < limit ? (uint32_t)value : limit;
}

static void next_pair(struct sorter *s)
{
	s->i = s->out;
	s->i_end = s->j = at_most((uint64_t)s->i + s->width, s->n);
	s->j_end = at_most((uint64_t)s->j + s->width, s->n);
}

static void sorter_begin(struct sorter *s, struct dept *parent)
{
	if (s->spare_cap < parent->child_count) {
		s->spare_cap = parent->child_count;
		free(s->spare);
		s->spare = xmalloc(s->spare_cap * sizeof(s->spare[0]));
	}
	s->from = parent->children;
	s->to = s->spare;
	s->n = parent->child_count;
	s->width = 1;
	s->out = 0;
	next_pair(s);
}

static struct dept *take_lower(struct sorter *s)
{
	bool right =
		s->i == s->i_end || (s->j < s->j_end && strcmp(s->from[s->j]->id, s->from[s->i]->id) < 0);

	return right ? s->from[s->j++] : s->from[s->i++];
}

static bool sorter_step(struct sorter *s, struct dept *parent, int *budget)
{
	while (s->width<s->n && * budget> 0) {
		s->to[s->out++] = take_lower(s);
		--*budget;
		if (s->out == s->n) {
			struct dept **swap = s->from;
			s->from = s->to;
			s->to = swap;
			s->width = at_most((uint64_t)s->width * 2, s->n);
			s->out = 0;
			next_pair(s);
		} else if (s->out == s->j_end) {
			next_pair(s);
		}
	}
	if (s->width < s->n)
		return false;
	if (s->from != parent->children && s->n > 0)
		memcpy(parent->children, s->from, s->n * sizeof(s->from[0]));
	return true;
}

/* ---- the end of the building ---- */

enum build_state {
	BUILD_SORTING,  /* bucket by bucket, the lists of each node's children */
	BUILD_COUNTING, /* from the roots, depth first */
	BUILD_SWEEPING, /* bucket by bucket, what no root was above */
	BUILD_DONE
};

struct build {
	struct forest *forest;
	enum build_state state;
	struct sorter sorter;
	struct dept *parent; /* whose list is being sorted */
	uint32_t bucket;
	struct node *in_bucket; /* the next one of the bucket */
	struct dept *at;        /* while counting */
	size_t stray;
	char example[ID_MAX + 1];
};

static void set_state(struct build *b, enum build_state state)
{
	b->state = state;
	b->bucket = 0;
	b->in_bucket = *bucket_at(b->forest, 0);
}

struct build *build_new(struct forest *f)
{
	struct build *b = xcalloc(1, sizeof(*b));

	b->forest = f;
	set_state(b, BUILD_SORTING);
	return b;
}

void build_free(struct build *b)
{
	if (b == NULL)
		return;
	free(b->sorter.spare);
	free(b);
}

/* The nodes bucket by bucket, NULL at the end or when the budget is spent. The one returned may be freed. */
static struct node *next_node(struct build *b, int *budget)
{
	while (b->in_bucket == NULL && b->bucket + 1 < b->forest->buckets && *budget > 0) {
		b->in_bucket = *bucket_at(b->forest, ++b->bucket);
		--*budget;
	}
	struct node *n = b->in_bucket;
	if (n != NULL) {
		b->in_bucket = n->next_in_bucket;
		--*budget;
	}
	return n;
}

static bool at_the_end(const struct build *b)
{
	return b->in_bucket == NULL && b->bucket + 1 == b->forest->buckets;
}

/* Those that are not to stay go from the list first. */
static void begin_sorting(struct build *b, struct dept *parent, int *budget)
{
	uint32_t kept = 0;

	*budget -= (int)parent->child_count / 8;
	for (uint32_t i = 0; i < parent->child_count; i++) {
		if (build_mark(parent->children[i]) == NODE_READ)
			parent->children[kept++] = parent->children[i];
	}
	parent->child_count = kept;
	b->parent = parent;
	sorter_begin(&b->sorter, parent);
}

static void sort_some(struct build *b, int *budget)
{
	struct node *n;

	while (*budget > 0) {
		if (b->parent != NULL) {
			if (!sorter_step(&b->sorter, b->parent, budget))
				return;
			bool last = b->parent == &b->forest->top;
			b->parent = NULL;
			if (last) {
				b->at = b->forest->top.child_count > 0 ? b->forest->top.children[0] : NULL;
				set_state(b, BUILD_COUNTING);
				return;
			}
		}
		if (at_the_end(b))
			begin_sorting(b, &b->forest->top, budget);
		else if ((n = next_node(b, budget)) != NULL && n->dept.child_count > 0)
			begin_sorting(b, &n->dept, budget);
	}
}

/* All that is below d is counted: on to its next sibling, or up to where there is one. */
static struct dept *leave(struct build *b, struct dept *d)
{
	for (;;) {
		struct dept *parent = above(b->forest, d);
		parent->below += 1 + d->below;
		parent->listed += forest_listed(d);
		struct dept *sibling = forest_child_after(parent, bytes_of(d->id));
		if (sibling != NULL || parent == &b->forest->top)
			return sibling;
		d = parent;
	}
}

static void count_some(struct build *b, int *budget)
{
	while (b->at != NULL && *budget > 0) {
		node_of(b->at)->reached = true;
		b->at = b->at->child_count > 0 ? b->at->children[0] : leave(b, b->at);
		*budget -= 2;
	}
	if (b->at == NULL)
		set_state(b, BUILD_SWEEPING);
}

static void sweep_some(struct build *b, int *budget)
{
	struct node *n;

	while (*budget > 0 && (n = next_node(b, budget)) != NULL) {
		if (n->reached)
			continue;
		if (n->mark == NODE_READ && b->stray++ == 0)
			snprintf(b->example, sizeof(b->example), "%s", n->id);
		forest_free_node(b->forest, n);
	}
	if (at_the_end(b))
		set_state(b, BUILD_DONE);
}

bool build_step(struct build *b, int *budget)
{
	while (*budget > 0 && b->state != BUILD_DONE) {
		if (b->state == BUILD_SORTING)
			sort_some(b, budget);
		else if (b->state == BUILD_COUNTING)
			count_some(b, budget);
		else
			sweep_some(b, budget);
	}
	return b->state == BUILD_DONE;
}

size_t build_stray(const struct build *b, const char **ret_example)
{
	*ret_example = b->example;
	return b->stray;
}
