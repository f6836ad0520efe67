/* SPDX-License-Identifier: MIT */
#include "persist/forest.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"
#include "persist/forest_private.h"

/* ---- the table ---- */

static uint32_t hash_of(struct bytes id)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < id.n; i++)
		h = (h ^ (unsigned char)id.p[i]) * 16777619u;
	return h ^ h >> 15;
}

/* The largest power of two up to the number of buckets splits them: those above it hold what has been taken
 * from those that lie that far below. */
static uint32_t bucket_of(const struct forest *f, uint32_t hash)
{
	uint32_t power = 1u << (31 - __builtin_clz(f->buckets));
	uint32_t bucket = hash & (2 * power - 1);

	return bucket < f->buckets ? bucket : bucket - power;
}

static void add_segment(struct forest *f)
{
	f->segments = xrealloc(f->segments, (f->segment_count + 1) * sizeof(f->segments[0]));
	f->segments[f->segment_count++] = xcalloc(SEGMENT_BUCKETS, sizeof(f->segments[0][0]));
}

static void add_bucket(struct forest *f)
{
	uint32_t fresh = f->buckets, power = 1u << (31 - __builtin_clz(fresh));

	if (fresh / SEGMENT_BUCKETS == f->segment_count)
		add_segment(f);
	f->buckets++;
	struct node **from = bucket_at(f, fresh - power), **to = bucket_at(f, fresh);
	while (*from != NULL) {
		struct node *n = *from;
		if (bucket_of(f, n->hash) != fresh) {
			from = &n->next_in_bucket;
			continue;
		}
		*from = n->next_in_bucket;
		n->next_in_bucket = *to;
		*to = n;
	}
}

static void table_add(struct forest *f, struct node *n)
{
	struct node **bucket = bucket_at(f, bucket_of(f, n->hash));

	n->next_in_bucket = *bucket;
	*bucket = n;
	if (++f->size > f->buckets)
		add_bucket(f);
}

static void table_remove(struct forest *f, struct node *n)
{
	struct node **at = bucket_at(f, bucket_of(f, n->hash));

	while (*at != n)
		at = &(*at)->next_in_bucket;
	*at = n->next_in_bucket;
	f->size--;
}

struct node *forest_node(const struct forest *f, struct bytes id)
{
	uint32_t hash = hash_of(id);
	struct node *n = *bucket_at(f, bucket_of(f, hash));

	while (n != NULL && (n->hash != hash || !bytes_eq(bytes_of(n->id), id)))
		n = n->next_in_bucket;
	return n;
}

/* ---- nodes ---- */

static char *put_text(char *to, struct bytes text)
{
	memcpy(to, text.p, text.n);
	to[text.n] = '\0';
	return to + text.n + 1;
}

struct node *forest_new_node(struct forest *f, const struct dept_fields *fields)
{
	struct bytes id = fields->id, name = fields->name, manager = fields->manager;
	struct node *n = xmalloc(sizeof(*n) + id.n + name.n + manager.n + 3);

	*n = (struct node){.hash = hash_of(id)};
	n->dept.id = n->id;
	n->dept.name = put_text(n->id, id);
	n->dept.manager = put_text(n->dept.name, name);
	put_text(n->dept.manager, manager);
	n->dept.version = fields->version;
	n->dept.retired = fields->retired;
	n->dept.trusted = TRUST_LOADED;
	table_add(f, n);
	return n;
}

void forest_set_text(struct node *n, struct bytes name, struct bytes manager)
{
	struct dept *d = &n->dept;

	if (bytes_eq(bytes_of(d->name), name) && bytes_eq(bytes_of(d->manager), manager))
		return;
	free(n->text);
	n->text = xmalloc(name.n + manager.n + 2);
	d->name = n->text;
	d->manager = put_text(d->name, name);
	put_text(d->manager, manager);
}

void forest_free_node(struct forest *f, struct node *n)
{
	table_remove(f, n);
	free(n->dept.children);
	free(n->text);
	free(n);
}

struct forest *forest_new(void)
{
	struct forest *f = xcalloc(1, sizeof(*f));

	add_segment(f);
	f->buckets = 1;
	return f;
}

/* A bucket that is empty costs, too. */
bool forest_free_some(struct forest *f, int *budget)
{
	while (f->buckets > 0 && *budget > 0) {
		struct node **bucket = bucket_at(f, f->buckets - 1);
		for (struct node *n = *bucket, *next; n != NULL; n = next) {
			next = n->next_in_bucket;
			free(n->dept.children);
			free(n->text);
			free(n);
			--*budget;
		}
		*bucket = NULL;
		f->buckets--;
		--*budget;
	}
	if (f->buckets > 0)
		return false;
	for (size_t i = 0; i < f->segment_count; i++)
		free(f->segments[i]);
	free(f->segments);
	free(f->top.children);
	free(f);
	return true;
}

void forest_free(struct forest *f)
{
	int all = INT_MAX;

	if (f != NULL)
		(void)!forest_free_some(f, &all);
}

/* ---- looking ---- */

static bool is_taken_out(const struct forest *f, const struct dept *d)
{
	if (f->taken_out == NULL)
		return false;
	while (d->parent != NULL)
		d = d->parent;
	return d == f->taken_out;
}

struct dept *forest_find(const struct forest *f, struct bytes id)
{
	struct node *n = forest_node(f, id);

	return n != NULL && !is_taken_out(f, &n->dept) ? &n->dept : NULL;
}

const struct dept *forest_find_taken_out(const struct forest *f, struct bytes id)
{
	const struct node *n = f->taken_out != NULL ? forest_node(f, id) : NULL;

	return n != NULL && is_taken_out(f, &n->dept) ? &n->dept : NULL;
}

const struct dept *forest_taken_out(const struct forest *f)
{
	return f->taken_out;
}

const struct dept *forest_top(const struct forest *f)
{
	return &f->top;
}

size_t forest_size(const struct forest *f)
{
	return f->size;
}

static int compare(struct bytes id, const char *other)
{
	size_t n = strlen(other);
	int order = memcmp(id.p, other, id.n < n ? id.n : n);

	return order != 0 ? order : (id.n > n) - (id.n < n);
}

/* How many children have an id up to this one. */
static uint32_t place_after(const struct dept *parent, struct bytes id)
{
	uint32_t low = 0, high = parent->child_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (compare(id, parent->children[middle]->id) < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct dept *forest_child_after(const struct dept *parent, struct bytes id)
{
	uint32_t at = place_after(parent, id);

	return at < parent->child_count ? parent->children[at] : NULL;
}

/* ---- lists of children ---- */

static void make_room(struct dept *parent, uint32_t count)
{
	if (parent->child_cap >= count)
		return;
	uint32_t cap = parent->child_cap > 0 ? parent->child_cap * 2 : 4;
	parent->child_cap = cap >= count ? cap : count;
	parent->children = xrealloc(parent->children, parent->child_cap * sizeof(parent->children[0]));
}

void forest_append_child(struct dept *parent, struct dept *d)
{
	make_room(parent, parent->child_count + 1);
	parent->children[parent->child_count++] = d;
}

static void insert_child(struct dept *parent, struct dept *d)
{
	uint32_t at = place_after(parent, bytes_of(d->id));

	make_room(parent, parent->child_count + 1);
	memmove(&parent->children[at + 1], &parent->children[at],
		(parent->child_count - at) * sizeof(parent->children[0]));
	parent->children[at] = d;
	parent->child_count++;
}

static void remove_child(struct dept *parent, const struct dept *d)
{
	uint32_t after = place_after(parent, bytes_of(d->id));

	assert(after > 0 && parent->children[after - 1] == d);
	memmove(&parent->children[after - 1], &parent->children[after],
		(parent->child_count - after) * sizeof(parent->children[0]));
	if (--parent->child_count == 0) {
		free(parent->children);
		parent->children = NULL;
		parent->child_cap = 0;
	}
}

/* Merges the children of `from`, which has them no longer, into those of `to`: from the end, so that nobody
 * is moved twice. */
static void merge_children(struct dept *to, struct dept *from)
{
	uint32_t i = to->child_count, j = from->child_count, at = i + j;

	make_room(to, at);
	to->child_count = at;
	while (j > 0) {
		struct dept *d = from->children[j - 1];
		if (i > 0 && strcmp(to->children[i - 1]->id, d->id) > 0)
			d = to->children[--i];
		else
			j--;
		to->children[--at] = d;
	}
	from->child_count = 0;
}

/* ---- changes ---- */

int64_t forest_listed(const struct dept *d)
{
	return d->retired ? 0 : 1 + d->listed;
}

/* Counts from `d` up. What a retired one has below is not listed in those above it. */
static void count(struct forest *f, struct dept *d, int64_t below, int64_t listed)
{
	for (;; d = above(f, d)) {
		d->below += below;
		d->listed += listed;
		if (d == &f->top)
			return;
		if (d->retired)
			listed = 0;
	}
}

static void hang_up(struct forest *f, struct dept *d, struct dept *parent)
{
	d->parent = parent;
	insert_child(above(f, d), d);
	count(f, above(f, d), 1 + d->below, forest_listed(d));
}

static void take_down(struct forest *f, struct dept *d)
{
	remove_child(above(f, d), d);
	count(f, above(f, d), -(1 + d->below), -forest_listed(d));
	d->parent = NULL;
}

struct dept *forest_add(struct forest *f, const struct dept_fields *fields, struct dept *parent)
{
	struct node *n = forest_new_node(f, fields);

	n->mark = NODE_READ;
	n->dept.trusted = TRUST_NOT;
	hang_up(f, &n->dept, parent);
	return &n->dept;
}

void forest_set(struct forest *f, struct dept *d, const struct dept_fields *fields)
{
	int64_t listed = forest_listed(d);

	forest_set_text(node_of(d), fields->name, fields->manager);
	d->version = fields->version;
	d->retired = fields->retired;
	count(f, above(f, d), 0, forest_listed(d) - listed);
}

bool forest_move(struct forest *f, struct dept *d, struct dept *parent)
{
	for (const struct dept *up = parent; up != NULL; up = up->parent) {
		if (up == d)
			return false;
	}
	take_down(f, d);
	hang_up(f, d, parent);
	return true;
}

void forest_lift(struct forest *f, struct dept *d)
{
	struct dept *parent = above(f, d);

	for (uint32_t i = 0; i < d->child_count; i++) {
		d->children[i]->parent = d->parent;
		d->children[i]->trusted = TRUST_NOT; /* Redis still has them where they were */
	}
	remove_child(parent, d);
	count(f, parent, -1, d->listed - forest_listed(d));
	merge_children(parent, d);
	forest_free_node(f, node_of(d));
}

void forest_take_out(struct forest *f, struct dept *d)
{
	assert(f->taken_out == NULL);
	take_down(f, d);
	f->taken_out = d;
}

bool forest_drop(
	struct forest *f, int *budget, void (*last_words)(const struct dept *d, void *arg), void *arg)
{
	struct dept *d = f->taken_out;

	while (d != NULL && *budget > 0) {
		while (d->child_count > 0)
			d = d->children[d->child_count - 1];
		struct dept *parent = d->parent;
		if (last_words != NULL)
			last_words(d, arg);
		if (parent != NULL)
			parent->child_count--;
		else
			f->taken_out = NULL;
		forest_free_node(f, node_of(d));
		d = parent;
		--*budget;
	}
	return f->taken_out == NULL;
}
