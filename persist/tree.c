/* SPDX-License-Identifier: MIT */
#include "persist/tree.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/keys.h"
#include "persist/partition.h"
#include "persist/redis.h"

#define FETCHES_MAX 1000 /* nodes asked for at once while loading */
#define PAGE        1000 /* journal entries a step */
#define POLL_MS     500
/* Half of what the organisation's journal keeps: after a longer sleep of ours entries may be gone unseen. */
#define SLEEP_MAX_US (30 * INT64_C(1000000))

struct node {
	struct dept dept;
	UT_hash_handle hh;
};

enum tree_state {
	TREE_EMPTY,   /* nothing is known, or the link was away: load when it is back */
	TREE_LOADING, /* the walk from the roots is under way */
	TREE_FOLLOWING
};

/* A node being fetched. */
struct fetch {
	struct tree *tree;
	int walk;
	char id[ID_MAX + 1];
	struct fetch *next;
};

struct tree {
	struct redis *redis;
	struct event *timer;
	void (*fn)(void *arg);
	void *arg;
	enum tree_state state;
	struct node *nodes;
	struct dept *roots, **last_root;
	struct dept *partitions[PARTITIONS_MAX];
	struct fetch *waiting, **last_waiting;
	int fetching;
	int walk; /* number of the present walk: answers of an earlier one are dropped */
	bool reading;
	int64_t polled_us;
	char last_id[48];
};

static void set_state(struct tree *t, enum tree_state state)
{
	static const char *const names[] = {"empty", "loading", "following"};

	if (t->state != state)
		log_info("persist tree event=state from=%s to=%s departments=%lld", names[t->state],
			names[state], (long long)tree_count(t));
	t->state = state;
}

struct dept *tree_find(const struct tree *t, struct bytes id)
{
	struct node *n;

	HASH_FIND(hh, t->nodes, id.p, id.n, n);
	return n != NULL ? &n->dept : NULL;
}

struct dept *tree_partition(const struct tree *t, int partition)
{
	return t->partitions[partition];
}

int64_t tree_count(const struct tree *t)
{
	return (int64_t)HASH_COUNT(t->nodes);
}

struct dept *tree_next(const struct dept *top, const struct dept *at)
{
	if (at->first_child != NULL)
		return at->first_child;
	while (at != top) {
		if (at->next_sibling != NULL)
			return at->next_sibling;
		at = at->parent;
	}
	return NULL;
}

static void replace_text(char **dst, struct bytes value)
{
	if (*dst != NULL && bytes_eq(bytes_of(*dst), value))
		return;
	free(*dst);
	*dst = xstrndup(value.p, value.n);
}

static void link_child(struct tree *t, struct dept *d, struct dept *parent)
{
	struct dept **at = parent != NULL ? &parent->first_child : &t->roots;

	d->parent = parent;
	d->next_sibling = *at;
	*at = d;
}

/* Adds a node or brings it up to date. A parent that is not known yet cannot happen in a sound tree. */
static void upsert(
	struct tree *t, struct bytes id, struct bytes parent_id, struct bytes name, struct bytes manager)
{
	struct dept *d = tree_find(t, id);
	struct dept *parent = parent_id.n > 0 ? tree_find(t, parent_id) : NULL;

	if (parent == NULL && parent_id.n > 0) {
		log_error("persist tree event=orphan id=%.*s parent=%.*s", (int)id.n, id.p, (int)parent_id.n,
			parent_id.p);
		return;
	}
	if (d == NULL) {
		struct node *n = xcalloc(1, sizeof(*n));
		d = &n->dept;
		d->id = xstrndup(id.p, id.n);
		d->partition = keys_partition_of(id);
		d->next_in_partition = t->partitions[d->partition];
		t->partitions[d->partition] = d;
		HASH_ADD_KEYPTR(hh, t->nodes, d->id, id.n, n);
		link_child(t, d, parent);
	}
	replace_text(&d->name, name);
	replace_text(&d->manager, manager);
}

/* ---- loading ---- */

static void fetch_more(struct tree *t);

static void give_up(struct tree *t)
{
	t->walk++;
	t->fetching = 0;
	set_state(t, TREE_EMPTY);
}

static struct fetch *fetch_new(struct tree *t, struct bytes id)
{
	struct fetch *f = xcalloc(1, sizeof(*f));

	f->tree = t;
	f->walk = t->walk;
	bytes_copy(f->id, sizeof(f->id), id);
	return f;
}

static void queue_ids(struct tree *t, const struct redisReply *reply)
{
	for (size_t i = 0; i < redis_count(reply); i++) {
		struct fetch *f = fetch_new(t, redis_text(redis_at(reply, i)));
		*t->last_waiting = f;
		t->last_waiting = &f->next;
	}
}

static void on_children(const struct redisReply *reply, void *arg)
{
	struct fetch *f = arg;
	struct tree *t = f->tree;
	bool ours = f->walk == t->walk && t->state == TREE_LOADING;

	free(f);
	if (!ours)
		return;
	if (!redis_is_array(reply)) {
		give_up(t);
		return;
	}
	t->fetching--;
	queue_ids(t, reply);
	fetch_more(t);
}

static void on_node(const struct redisReply *reply, void *arg)
{
	struct fetch *f = arg;

	if (f->walk == f->tree->walk && redis_is_array(reply) && !redis_is_null(redis_at(reply, 0)))
		upsert(f->tree, bytes_of(f->id), redis_text(redis_at(reply, 0)),
			redis_text(redis_at(reply, 1)), redis_text(redis_at(reply, 2)));
	free(f);
}

static bool send_key(struct tree *t, const char *command, const char *kind, const char *id,
	const char *const *fields, redis_cb cb, void *arg)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, command);
	if (id != NULL)
		key_org_of(&key, kind, bytes_of(id));
	else
		key_org(&key, kind);
	redis_arg_key(&a, &key);
	for (; fields != NULL && *fields != NULL; fields++)
		redis_arg_str(&a, *fields);
	buf_release(&key);
	return redis_query(t->redis, &a, cb, arg) == REDIS_SENT;
}

/* Asks for a node and its children. Each command has a fetch of its own, which its reply frees. */
static bool fetch_node(struct tree *t, const char *id)
{
	static const char *const fields[] = {"parent_id", "name", "manager", NULL};
	struct fetch *node = fetch_new(t, bytes_of(id)), *children = fetch_new(t, bytes_of(id));

	if (!send_key(t, "HMGET", "dept", id, fields, on_node, node)) {
		free(node);
		free(children);
		return false;
	}
	if (!send_key(t, "SMEMBERS", "direct_children", id, NULL, on_children, children)) {
		free(children);
		return false;
	}
	return true;
}

static void fetch_more(struct tree *t)
{

	while (t->waiting != NULL && t->fetching < FETCHES_MAX) {
		struct fetch *f = t->waiting;
		t->waiting = f->next;
		if (t->waiting == NULL)
			t->last_waiting = &t->waiting;
		t->fetching++;
		bool sent = fetch_node(t, f->id);
		free(f);
		if (!sent) {
			give_up(t);
			return;
		}
	}
	if (t->fetching == 0 && t->waiting == NULL) {
		set_state(t, TREE_FOLLOWING);
		t->fn(t->arg);
	}
}

static void on_roots(const struct redisReply *reply, void *arg)
{
	struct tree *t = arg;

	if (t->state != TREE_LOADING)
		return;
	if (!redis_is_array(reply)) {
		give_up(t);
		return;
	}
	queue_ids(t, reply);
	fetch_more(t);
}

static void on_last_entry(const struct redisReply *reply, void *arg)
{
	struct tree *t = arg;

	if (reply == NULL)
		return;
	struct bytes id = redis_text(redis_at(redis_at(reply, 0), 0));
	bytes_copy(t->last_id, sizeof(t->last_id), id.n > 0 ? id : BYTES_LIT("0-0"));
}

static void drop_waiting(struct tree *t)
{
	for (struct fetch *f = t->waiting, *next; f != NULL; f = next) {
		next = f->next;
		free(f);
	}
	t->waiting = NULL;
	t->last_waiting = &t->waiting;
}

/* The journal's end first, then the walk: a change in between is seen twice, never missed. */
static void load(struct tree *t)
{
	static const char *const last[] = {"+", "-", "COUNT", "1", NULL};

	drop_waiting(t);
	t->walk++;
	t->fetching = 0;
	set_state(t, TREE_LOADING);
	if (!send_key(t, "XREVRANGE", "journal", NULL, last, on_last_entry, t) ||
		!send_key(t, "SMEMBERS", "roots", NULL, NULL, on_roots, t))
		give_up(t);
}

/* ---- following ---- */

/* T|add|<id>|<parent or ->|<manager or ->|<path>|<name> */
static void apply(struct tree *t, struct bytes record)
{
	struct bytes f[7];

	if (bytes_split(record, '|', f, 7) != 7 || !bytes_eq(f[0], BYTES_LIT("T")))
		return;
	struct bytes none = {"", 0};
	upsert(t, f[2], bytes_eq(f[3], BYTES_LIT("-")) ? none : f[3], f[6],
		bytes_eq(f[4], BYTES_LIT("-")) ? none : f[4]);
}

static void read_on(struct tree *t);

static void on_entries(const struct redisReply *reply, void *arg)
{
	struct tree *t = arg;
	size_t count = redis_count(reply);

	t->reading = false;
	if (!redis_is_array(reply) || t->state != TREE_FOLLOWING)
		return;
	for (size_t i = 0; i < count; i++) {
		const struct redisReply *entry = redis_at(reply, i), *values = redis_at(entry, 1);
		bytes_copy(t->last_id, sizeof(t->last_id), redis_text(redis_at(entry, 0)));
		for (size_t v = 1; v < redis_count(values); v += 2)
			apply(t, redis_text(redis_at(values, v)));
	}
	if (count > 0)
		t->fn(t->arg);
	if (count == PAGE)
		read_on(t);
}

static void read_on(struct tree *t)
{
	char from[64];
	const char *const fields[] = {from, "+", "COUNT", "1000", NULL};

	if (t->reading || t->state != TREE_FOLLOWING)
		return;
	snprintf(from, sizeof(from), "(%s", t->last_id);
	t->reading = send_key(t, "XRANGE", "journal", NULL, fields, on_entries, t);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct tree *t = arg;

	(void)fd;
	(void)what;
	int64_t slept = clock_mono_us() - t->polled_us;
	t->polled_us += slept;
	if (!redis_ready(t->redis))
		return;
	if (t->state == TREE_EMPTY || (t->state == TREE_FOLLOWING && slept > SLEEP_MAX_US))
		load(t);
	else
		read_on(t);
}

static void on_link(void *arg)
{
	struct tree *t = arg;

	/* After a break entries may have been trimmed unseen: walk again. The old picture serves until then.
	 */
	if (redis_ready(t->redis))
		load(t);
	else if (t->state != TREE_EMPTY)
		give_up(t);
}

static void write_info(struct buf *out, void *arg)
{
	buf_addf(out, "departments:%lld\r\n", (long long)tree_count(arg));
}

struct tree *tree_new(struct event_base *base, struct redis *redis, void (*fn)(void *arg), void *arg)
{
	struct tree *t = xcalloc(1, sizeof(*t));
	struct timeval every = {0, POLL_MS * 1000};

	t->redis = redis;
	t->fn = fn;
	t->arg = arg;
	t->last_waiting = &t->waiting;
	t->polled_us = clock_mono_us();
	snprintf(t->last_id, sizeof(t->last_id), "0-0");
	t->timer = event_new(base, -1, EV_PERSIST, on_timer, t);
	event_add(t->timer, &every);
	redis_on_change(redis, on_link, t);
	info_register("Organisation", write_info, t);
	return t;
}

void tree_free(struct tree *t)
{
	struct node *n, *tmp;

	if (t == NULL)
		return;
	drop_waiting(t);
	HASH_ITER (hh, t->nodes, n, tmp) {
		HASH_DEL(t->nodes, n);
		free(n->dept.id);
		free(n->dept.name);
		free(n->dept.manager);
		free(n);
	}
	event_free(t->timer);
	free(t);
}

bool tree_loaded(const struct tree *t)
{
	return t->state == TREE_FOLLOWING;
}

void tree_doorbell(struct tree *t)
{
	read_on(t);
}
