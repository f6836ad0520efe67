/* SPDX-License-Identifier: MIT */
#include "persist/seen.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

/* A table that grows moves all it has: many small ones never hold the loop up. */
#define SHARDS    256
#define FIRST_CAP 64

struct shard {
	uint64_t *slots; /* 0 = free */
	size_t count, cap;
};

struct seen {
	struct shard shards[SHARDS];
};

struct seen *seen_new(void)
{
	return xcalloc(1, sizeof(struct seen));
}

void seen_free(struct seen *s)
{
	if (s == NULL)
		return;
	for (int i = 0; i < SHARDS; i++)
		free(s->shards[i].slots);
	free(s);
}

/* FNV-1a, and a last mix, since its low bits alone are not even enough. */
static uint64_t hash(struct bytes text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < text.n; i++)
		h = (h ^ (unsigned char)text.p[i]) * UINT64_C(0x100000001b3);
	h = (h ^ (h >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	h ^= h >> 32;
	return h != 0 ? h : 1;
}

/* Where it is, or the free slot where it belongs; the top bits have chosen the shard. */
static uint64_t *find(const struct shard *t, uint64_t h)
{
	size_t i = (size_t)h & (t->cap - 1);

	while (t->slots[i] != 0 && t->slots[i] != h)
		i = (i + 1) & (t->cap - 1);
	return &t->slots[i];
}

static void grow(struct shard *t)
{
	struct shard next = {.count = t->count, .cap = t->cap == 0 ? FIRST_CAP : t->cap * 2};

	next.slots = xcalloc(next.cap, sizeof(next.slots[0]));
	for (size_t i = 0; i < t->cap; i++) {
		if (t->slots[i] != 0)
			*find(&next, t->slots[i]) = t->slots[i];
	}
	free(t->slots);
	*t = next;
}

bool seen_add(struct seen *s, struct bytes text)
{
	uint64_t h = hash(text);
	struct shard *t = &s->shards[h >> 56];

	if (t->count * 4 >= t->cap * 3)
		grow(t);
	uint64_t *slot = find(t, h);
	if (*slot == h)
		return false;
	*slot = h;
	t->count++;
	return true;
}

bool seen_has(const struct seen *s, struct bytes text)
{
	uint64_t h = hash(text);
	const struct shard *t = &s->shards[h >> 56];

	return t->cap > 0 && *find(t, h) == h;
}
