/* SPDX-License-Identifier: MIT */
#include "persist/check_queue.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/mem.h"

struct item {
	STAILQ_ENTRY(item) link;
	char *from; /* owned */
	char text[];
};

struct check_queue {
	enum script script;
	void (*key)(struct buf *out, const char *item, void *arg);
	void *arg;
	STAILQ_HEAD(, item) items;
	size_t count;
	bool begun; /* the first one */
};

struct check_queue *check_queue_new(
	enum script script, void (*key)(struct buf *out, const char *item, void *arg), void *arg)
{
	struct check_queue *q = xcalloc(1, sizeof(*q));

	q->script = script;
	q->key = key;
	q->arg = arg;
	STAILQ_INIT(&q->items);
	return q;
}

static void pop(struct check_queue *q)
{
	struct item *i = STAILQ_FIRST(&q->items);

	STAILQ_REMOVE_HEAD(&q->items, link);
	q->count--;
	free(i->from);
	free(i);
}

void check_queue_clear(struct check_queue *q)
{
	while (q->count > 0)
		pop(q);
	q->begun = false;
}

void check_queue_free(struct check_queue *q)
{
	check_queue_clear(q);
	free(q);
}

size_t check_queue_count(const struct check_queue *q)
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

void check_queue_push(struct check_queue *q, struct bytes item, struct bytes from)
{
	struct item *i = item_new(item, from);

	STAILQ_INSERT_TAIL(&q->items, i, link);
	q->count++;
}

void check_queue_push_first(struct check_queue *q, struct bytes item)
{
	struct item *i = item_new(item, BYTES_LIT("")), *first = STAILQ_FIRST(&q->items);

	if (first != NULL && q->begun)
		STAILQ_INSERT_AFTER(&q->items, first, i, link);
	else
		STAILQ_INSERT_HEAD(&q->items, i, link);
	q->count++;
}

static void add_key(const struct check_queue *q, struct redis_args *a, const char *item)
{
	struct buf key = BUF_INIT;

	q->key(&key, item, q->arg);
	redis_arg_key(a, &key);
	buf_release(&key);
}

enum redis_sent check_queue_send(
	struct check_queue *q, struct redis *redis, struct redis_args *head, redis_cb cb, void *arg)
{
	struct redis_args keys;
	const struct item *item;
	int n = 0;

	redis_args_init(&keys);
	add_key(q, &keys, "");
	STAILQ_FOREACH (item, &q->items, link) {
		add_key(q, &keys, item->text);
		redis_arg_str(head, item->text);
		redis_arg_str(head, item->from);
		if (++n == CHECK_ITEMS)
			break;
	}
	redis_args_append(&keys, head);
	return redis_eval(redis, q->script, n + 1, &keys, cb, arg);
}

size_t check_queue_take(struct check_queue *q, const struct redisReply *reply)
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
