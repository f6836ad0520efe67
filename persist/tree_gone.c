/* SPDX-License-Identifier: MIT */
#include "persist/tree_gone.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/tree.h"

#define PAGE "500"
/* While somebody misses something or a removal may be under way, the hash is read again and again, the more
 * seldom the longer it is. */
#define PAUSE_US       INT64_C(1000000)
#define PAUSE_ENTRY_US 100
#define REMOVAL_MAX_US (600 * INT64_C(1000000))
/* Our own are only for the meantime. */
#define OWN_MAX 20000

struct entry {
	UT_hash_handle hh;
	int64_t own_until_us; /* 0 = it was in the hash */
	unsigned round;       /* of the last reading that has seen it */
	size_t path_len, name_len;
	char id[ID_MAX + 1];
	char text[]; /* path and name */
};

struct tree_gone {
	struct redis *redis;
	struct entry *entries;
	size_t own;
	unsigned round;
	struct buf out, path; /* above the subtree that was taken out last; of one of its departments */
	bool reading, wanted;
	int64_t read_us;  /* of the last reading */
	int64_t quiet_us; /* no removal is under way any more, as far as we know */
};

static void drop(struct tree_gone *g, struct entry *e)
{
	g->own -= e->own_until_us != 0;
	HASH_DEL(g->entries, e);
	free(e);
}

static void put(
	struct tree_gone *g, struct bytes id, struct bytes path, struct bytes name, int64_t own_until_us)
{
	struct entry *e;

	if (id.n == 0 || id.n > ID_MAX)
		return;
	HASH_FIND(hh, g->entries, id.p, id.n, e);
	if (e != NULL)
		drop(g, e);
	e = xmalloc(sizeof(*e) + path.n + name.n);
	*e = (struct entry){
		.own_until_us = own_until_us, .round = g->round, .path_len = path.n, .name_len = name.n};
	bytes_copy(e->id, sizeof(e->id), id);
	memcpy(e->text, path.p, path.n);
	memcpy(e->text + path.n, name.p, name.n);
	g->own += own_until_us != 0;
	HASH_ADD(hh, g->entries, id, id.n, e);
}

static struct bytes last_id(struct bytes path)
{
	const char *colon = path.n > 0 ? memrchr(path.p, ':', path.n) : NULL;

	return colon != NULL ? (struct bytes){colon + 1, (size_t)(path.p + path.n - colon) - 1} : path;
}

void tree_gone_add(struct tree_gone *g, struct bytes path, struct bytes name)
{
	g->quiet_us = clock_mono_us() + REMOVAL_MAX_US;
	if (g->own < OWN_MAX)
		put(g, last_id(path), path, name, g->quiet_us);
}

void tree_gone_begin(struct tree_gone *g, struct bytes path)
{
	buf_clear(&g->out);
	buf_add_bytes(&g->out, path);
}

static void add_ids(struct buf *path, const struct dept *d)
{
	if (d->parent != NULL)
		add_ids(path, d->parent);
	if (path->len > 0)
		buf_add_char(path, ':');
	buf_add_str(path, d->id);
}

struct bytes tree_gone_path(struct tree_gone *g, const struct dept *d)
{
	buf_clear(&g->path);
	buf_add_bytes(&g->path, buf_bytes(&g->out));
	add_ids(&g->path, d);
	return buf_bytes(&g->path);
}

void tree_gone_last_words(const struct dept *d, void *arg)
{
	struct tree_gone *g = arg;

	tree_gone_add(g, tree_gone_path(g, d), bytes_of(d->name));
}

bool tree_gone_find(struct tree_gone *g, struct bytes id, struct bytes *ret_path, struct bytes *ret_name)
{
	struct entry *e;

	HASH_FIND(hh, g->entries, id.p, id.n, e);
	if (e == NULL) {
		g->wanted = true;
		return false;
	}
	*ret_path = (struct bytes){e->text, e->path_len};
	*ret_name = (struct bytes){e->text + e->path_len, e->name_len};
	return true;
}

size_t tree_gone_count(const struct tree_gone *g)
{
	return HASH_COUNT(g->entries);
}

/* ---- reading ---- */

static void scan(struct tree_gone *g, struct bytes cursor);

/* What this reading has not seen is forgotten. */
static void reading_done(struct tree_gone *g)
{
	int64_t now = clock_mono_us();
	struct entry *e, *tmp;

	g->reading = false;
	HASH_ITER (hh, g->entries, e, tmp) {
		if (e->round != g->round && e->own_until_us < now)
			drop(g, e);
	}
}

static void on_page(const struct redisReply *reply, void *arg)
{
	struct tree_gone *g = arg;
	const struct redisReply *fields = redis_at(reply, 1);
	struct bytes cursor = redis_text(redis_at(reply, 0)), f[3];

	if (!redis_is_array(reply)) {
		g->reading = false;
		g->wanted = !redis_wrong_type(reply);
		return;
	}
	for (size_t i = 0; i + 1 < redis_count(fields); i += 2) {
		if (bytes_split(redis_text(redis_at(fields, i + 1)), '|', f, 3) == 3)
			put(g, redis_text(redis_at(fields, i)), f[1], f[2], 0);
	}
	if (bytes_eq(cursor, BYTES_LIT("0")))
		reading_done(g);
	else
		scan(g, cursor);
}

static void scan(struct tree_gone *g, struct bytes cursor)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "HSCAN");
	key_org(&key, "gone");
	redis_arg_key(&a, &key);
	redis_arg(&a, cursor);
	redis_arg_str(&a, "COUNT");
	redis_arg_str(&a, PAGE);
	buf_release(&key);
	g->reading = redis_query(g->redis, &a, on_page, g) == REDIS_SENT;
	g->wanted = g->wanted || !g->reading;
}

void tree_gone_read(struct tree_gone *g)
{
	if (g->reading || !redis_ready(g->redis)) {
		g->wanted = true;
		return;
	}
	g->wanted = false;
	g->read_us = clock_mono_us();
	g->round++;
	scan(g, BYTES_LIT("0"));
}

void tree_gone_tick(struct tree_gone *g)
{
	int64_t now = clock_mono_us();
	int64_t pause = PAUSE_US + PAUSE_ENTRY_US * (int64_t)tree_gone_count(g);

	if ((g->wanted || now < g->quiet_us) && now - g->read_us >= pause)
		tree_gone_read(g);
}

struct tree_gone *tree_gone_new(struct redis *redis)
{
	struct tree_gone *g = xcalloc(1, sizeof(*g));

	g->redis = redis;
	return g;
}

void tree_gone_free(struct tree_gone *g)
{
	struct entry *e, *tmp;

	if (g == NULL)
		return;
	HASH_ITER (hh, g->entries, e, tmp)
		drop(g, e);
	buf_release(&g->out);
	buf_release(&g->path);
	free(g);
}
