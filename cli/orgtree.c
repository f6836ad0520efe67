/* SPDX-License-Identifier: MIT */
#include "cli/orgtree.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "rules/name.h"

#define ARENA_CHUNK   (1 << 20)
#define TEXT_MAX      (3 * (ID_MAX + 1) + NAME_MAX_BYTES + 1)
#define DEPTH_UNKNOWN UINT32_MAX

struct chunk {
	struct chunk *next;
	size_t used;
	char text[ARENA_CHUNK];
};

/* Indices of departments by the hash of something about them: open addressing, at most half full. */
struct index {
	uint32_t *slots; /* ORG_NONE = free */
	size_t cap;      /* a power of two */
};

struct orgtree {
	struct chunk *chunks; /* the newest first */
	struct org *orgs;     /* as collected */
	uint32_t *order;
	size_t count, cap;
	struct index by_id;
	struct buf flaws; /* ids of parents, each with its NUL */
};

struct orgtree *orgtree_new(void)
{
	return xcalloc(1, sizeof(struct orgtree));
}

void orgtree_free(struct orgtree *t)
{
	if (t == NULL)
		return;
	for (struct chunk *c = t->chunks, *next; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	free(t->orgs);
	free(t->order);
	free(t->by_id.slots);
	buf_release(&t->flaws);
	free(t);
}

/* ---- the index ---- */

/* FNV-1a, mixed at the end: the low bits choose the slot. */
static size_t hash(struct bytes b, uint64_t seed)
{
	uint64_t h = 0xcbf29ce484222325u ^ seed;

	for (size_t i = 0; i < b.n; i++)
		h = (h ^ (unsigned char)b.p[i]) * 0x100000001b3u;
	return (size_t)(h ^ h >> 32);
}

static void index_init(struct index *x, size_t cap)
{
	*x = (struct index){.slots = xmalloc(cap * sizeof(*x->slots)), .cap = cap};
	memset(x->slots, 0xff, cap * sizeof(*x->slots));
}

static void index_put(struct index *x, size_t hash, uint32_t org)
{
	while (x->slots[hash & (x->cap - 1)] != ORG_NONE)
		hash++;
	x->slots[hash & (x->cap - 1)] = org;
}

static void index_ids(struct orgtree *t, size_t cap)
{
	free(t->by_id.slots);
	index_init(&t->by_id, cap);
	for (size_t i = 0; i < t->count; i++)
		index_put(&t->by_id, hash(bytes_of(org_id(&t->orgs[i])), 0), (uint32_t)i);
}

struct org *orgtree_find(const struct orgtree *t, struct bytes id)
{
	if (t->by_id.cap == 0)
		return NULL;
	for (size_t h = hash(id, 0);; h++) {
		uint32_t i = t->by_id.slots[h & (t->by_id.cap - 1)];
		if (i == ORG_NONE)
			return NULL;
		if (bytes_eq(bytes_of(org_id(&t->orgs[i])), id))
			return &t->orgs[i];
	}
}

/* ---- collecting ---- */

static char *room_for_text(struct orgtree *t)
{
	if (t->chunks == NULL || ARENA_CHUNK - t->chunks->used < TEXT_MAX) {
		struct chunk *c = xmalloc(sizeof(*c));
		c->next = t->chunks;
		c->used = 0;
		t->chunks = c;
	}
	return t->chunks->text + t->chunks->used;
}

static char *put_text(char *at, struct bytes text)
{
	memcpy(at, text.p, text.n);
	at[text.n] = '\0';
	return at + text.n + 1;
}

static void set_text(struct orgtree *t, struct org *org, const struct row *row)
{
	char *start = room_for_text(t), *at = put_text(start, row->id);

	org->text = start;
	org->parent_at = (uint8_t)(at - start);
	at = put_text(at, row->parent);
	org->manager_at = (uint8_t)(at - start);
	at = put_text(at, row->manager);
	org->name_at = (uint8_t)(at - start);
	at = put_text(at, row->name);
	t->chunks->used += (size_t)(at - start);
}

static struct org *push(struct orgtree *t)
{
	if (t->count == t->cap) {
		t->cap = t->cap != 0 ? t->cap * 2 : 64;
		t->orgs = xrealloc(t->orgs, t->cap * sizeof(*t->orgs));
		index_ids(t, t->cap * 2);
	}
	struct org *org = &t->orgs[t->count++];
	*org = (struct org){.above = ORG_NONE, .depth = DEPTH_UNKNOWN};
	return org;
}

struct org *orgtree_add(struct orgtree *t, const struct row *row, struct org **ret_earlier)
{
	*ret_earlier = orgtree_find(t, row->id);
	if (*ret_earlier != NULL)
		return NULL;
	struct org *org = push(t);
	org->line = row->line;
	org->retired = row->retired;
	set_text(t, org, row);
	index_put(&t->by_id, hash(row->id, 0), (uint32_t)(t->count - 1));
	return org;
}

bool org_is_as(const struct org *org, const struct row *row)
{
	return bytes_eq(bytes_of(org_parent(org)), row->parent) &&
	       bytes_eq(bytes_of(org_manager(org)), row->manager) &&
	       bytes_eq(bytes_of(org_name(org)), row->name) && org->retired == row->retired;
}

void orgtree_add_flaw(struct orgtree *t, struct bytes parent)
{
	buf_add_bytes(&t->flaws, parent);
	buf_add_char(&t->flaws, '\0');
}

/* ---- order ---- */

struct org *orgtree_above(const struct orgtree *t, const struct org *org)
{
	return org->above != ORG_NONE ? &t->orgs[org->above] : NULL;
}

/* Fails every department of the cycle that `org` is on. */
static void fail_cycle(
	struct orgtree *t, struct org *org, void (*on_cycle)(const struct org *org, void *arg), void *arg)
{
	for (struct org *at = org; at->state != ORG_FAILED; at = orgtree_above(t, at)) {
		at->state = ORG_FAILED;
		at->depth = 0;
		on_cycle(at, arg);
	}
}

/* Walks from `start` towards the root until a department whose depth is known, the root, or one that this
 * walk has met already (walks[i] = the walk that met department i last); then sets the depth of those on the
 * way. */
static void place(struct orgtree *t, uint32_t *walks, uint32_t start,
	void (*on_cycle)(const struct org *org, void *arg), void *arg)
{
	uint32_t above = 0, at = start;

	for (; at != ORG_NONE && t->orgs[at].depth == DEPTH_UNKNOWN && walks[at] != start + 1;
		at = t->orgs[at].above) {
		walks[at] = start + 1;
		above++;
	}
	if (at != ORG_NONE && t->orgs[at].depth == DEPTH_UNKNOWN)
		fail_cycle(t, &t->orgs[at], on_cycle, arg);
	above = at != ORG_NONE ? above + t->orgs[at].depth : above - (above > 0);
	for (at = start; at != ORG_NONE && t->orgs[at].depth == DEPTH_UNKNOWN; at = t->orgs[at].above)
		t->orgs[at].depth = above--;
}

/* Counts how many there are of each depth, which is below `count`, and puts each in its place. */
static void sort_by_depth(struct orgtree *t)
{
	size_t *starts = xcalloc(t->count + 1, sizeof(*starts));

	for (size_t i = 0; i < t->count; i++)
		starts[t->orgs[i].depth + 1]++;
	for (size_t i = 1; i <= t->count; i++)
		starts[i] += starts[i - 1];
	for (size_t i = 0; i < t->count; i++)
		t->order[starts[t->orgs[i].depth]++] = (uint32_t)i;
	free(starts);
}

void orgtree_order(struct orgtree *t, void (*on_cycle)(const struct org *org, void *arg), void *arg)
{
	uint32_t *walks = xcalloc(t->count + 1, sizeof(*walks));

	for (size_t i = 0; i < t->count; i++) {
		const struct org *above = orgtree_find(t, bytes_of(org_parent(&t->orgs[i])));
		t->orgs[i].above = above != NULL ? (uint32_t)(above - t->orgs) : ORG_NONE;
	}
	for (size_t i = 0; i < t->count; i++)
		place(t, walks, (uint32_t)i, on_cycle, arg);
	free(walks);
	t->order = xrealloc(t->order, (t->count + 1) * sizeof(*t->order));
	sort_by_depth(t);
}

/* ---- names ---- */

/* What siblings are known by: the parent's id behind the folded name, which is the id where there is none. */
static void sibling_key(const struct org *org, struct buf *out)
{
	buf_clear(out);
	name_fold(out, bytes_of(org_name(org)[0] != '\0' ? org_name(org) : org_id(org)));
	buf_add_char(out, '\0');
	buf_add_str(out, org_parent(org));
}

/* The one of the same key in the index; `org` itself is put there when there is none. */
static const struct org *find_namesake(
	const struct orgtree *t, struct index *x, uint32_t org, struct buf *key, struct buf *other)
{
	sibling_key(&t->orgs[org], key);
	size_t h = hash(buf_bytes(key), 1);
	for (size_t at = h; x->slots[at & (x->cap - 1)] != ORG_NONE; at++) {
		const struct org *candidate = &t->orgs[x->slots[at & (x->cap - 1)]];
		sibling_key(candidate, other);
		if (bytes_eq(buf_bytes(key), buf_bytes(other)))
			return candidate;
	}
	index_put(x, h, org);
	return NULL;
}

void orgtree_check_names(struct orgtree *t,
	void (*on_taken)(const struct org *org, const struct org *earlier, void *arg), void *arg)
{
	struct buf key = BUF_INIT, other = BUF_INIT;
	struct index names;

	if (t->count == 0)
		return;
	index_init(&names, t->by_id.cap);
	for (size_t i = 0; i < t->count; i++) {
		const struct org *earlier = t->orgs[i].state != ORG_FAILED
						    ? find_namesake(t, &names, (uint32_t)i, &key, &other)
						    : NULL;
		if (earlier == NULL)
			continue;
		t->orgs[i].state = ORG_FAILED;
		on_taken(&t->orgs[i], earlier, arg);
	}
	free(names.slots);
	buf_release(&key);
	buf_release(&other);
}

/* ---- whole trees ---- */

/* From the leaves up: a tree's top learns that something below it has failed. */
static void mark_above(const struct orgtree *t, bool *spoilt)
{
	for (size_t i = 0; i < t->flaws.len; i += strlen(t->flaws.data + i) + 1) {
		const struct org *parent = orgtree_find(t, bytes_of(t->flaws.data + i));
		if (parent != NULL)
			spoilt[parent - t->orgs] = true;
	}
	for (size_t i = t->count; i-- > 0;) {
		const struct org *org = orgtree_at(t, i);
		bool bad = spoilt[org - t->orgs] || org->state == ORG_FAILED;
		if (bad && org->above != ORG_NONE)
			spoilt[org->above] = true;
	}
}

void orgtree_spoil(struct orgtree *t, void (*on_spoilt)(const struct org *org, void *arg), void *arg)
{
	bool *spoilt = xcalloc(t->count + 1, sizeof(*spoilt));

	mark_above(t, spoilt);
	for (size_t i = 0; i < t->count; i++) {
		struct org *org = orgtree_at(t, i);
		bool bad = spoilt[org - t->orgs] || (org->above != ORG_NONE && spoilt[org->above]);
		spoilt[org - t->orgs] = bad;
		if (!bad || org->state == ORG_FAILED)
			continue;
		org->state = ORG_FAILED;
		on_spoilt(org, arg);
	}
	free(spoilt);
}

size_t orgtree_count(const struct orgtree *t)
{
	return t->count;
}

struct org *orgtree_at(const struct orgtree *t, size_t index)
{
	return &t->orgs[t->order[index]];
}
