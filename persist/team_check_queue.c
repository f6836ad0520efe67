/* SPDX-License-Identifier: MIT */
#include "persist/team_check_queue.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/mem.h"
#include "persist/keys.h"

struct item {
	STAILQ_ENTRY(item) link;
	char *from; /* owned */
	char text[];
};

struct team_check_queue {
	enum script script;
	STAILQ_HEAD(, item) items;
	size_t count;
	bool begun; /* the first one */
};

struct team_check_queue *team_check_queue_new(enum script script)
{
	struct team_check_queue *q = xcalloc(1, sizeof(*q));

	q->script = script;
	STAILQ_INIT(&q->items);
	return q;
}

static void pop(struct team_check_queue *q)
{
	struct item *i = STAILQ_FIRST(&q->items);

	STAILQ_REMOVE_HEAD(&q->items, link);
	q->count--;
	free(i->from);
	free(i);
}

void team_check_queue_clear(struct team_check_queue *q)
{
	while (q->count > 0)
		pop(q);
	q->begun = false;
}

void team_check_queue_free(struct team_check_queue *q)
{
	team_check_queue_clear(q);
	free(q);
}

size_t team_check_queue_count(const struct team_check_queue *q)
{
	return q->count;
}

static struct item *item_new(struct bytes text, struct bytes from)
{
	struct item *i = xmalloc(sizeof(*i) + text.n + 1);

	i->from = xstrndup(from.p, from.n);
	bytes_copy(i->text, text.n + 1, text);
	return i;
}

void team_check_queue_push(struct team_check_queue *q, struct bytes item, struct bytes from)
{
	struct item *i = item_new(item, from);

	STAILQ_INSERT_TAIL(&q->items, i, link);
	q->count++;
}

void team_check_queue_push_first(struct team_check_queue *q, struct bytes item)
{
	struct item *i = item_new(item, BYTES_LIT("")), *first = STAILQ_FIRST(&q->items);

	if (first != NULL && q->begun)
		STAILQ_INSERT_AFTER(&q->items, first, i, link);
	else
		STAILQ_INSERT_HEAD(&q->items, i, link);
	q->count++;
}

/* Where an item's employee is at home is a key of another slot, which a script must be given; every other
 * item has the anchor. */
static void add_key(struct redis_args *a, const char *text)
{
	struct bytes f[3];
	struct buf key = BUF_INIT;
	int n = bytes_split(bytes_of(text), ':', f, 3);

	if (n == 3 && bytes_eq(f[0], BYTES_LIT("member")))
		key_dir(&key, f[2]);
	else if (n == 2 && bytes_eq(f[0], BYTES_LIT("user_teams")))
		key_dir(&key, f[1]);
	else
		key_org(&key, "roots");
	redis_arg_key(a, &key);
	buf_release(&key);
}

enum redis_sent team_check_queue_send(
	struct team_check_queue *q, struct redis *redis, struct redis_args *head, redis_cb cb, void *arg)
{
	struct redis_args keys;
	const struct item *item;
	int n = 0;

	redis_args_init(&keys);
	add_key(&keys, "");
	STAILQ_FOREACH (item, &q->items, link) {
		add_key(&keys, item->text);
		redis_arg_str(head, item->text);
		redis_arg_str(head, item->from);
		if (++n == TEAM_CHECK_ITEMS)
			break;
	}
	redis_args_append(&keys, head);
	return redis_eval(redis, q->script, n + 1, &keys, cb, arg);
}

size_t team_check_queue_take(struct team_check_queue *q, const struct redisReply *reply)
{
	struct bytes from = redis_text(redis_at(reply, 1));

	for (int64_t done = redis_int(redis_at(reply, 0)); done > 0 && q->count > 0; done--)
		pop(q);
	struct item *next = STAILQ_FIRST(&q->items);
	q->begun = next != NULL && from.n > 0;
	if (q->begun) {
		free(next->from);
		next->from = xstrndup(from.p, from.n);
	}
	return 2;
}
