/* SPDX-License-Identifier: MIT */
#include "persist/batch.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/turn.h"

#define UNDER_WAY_MAX 2 /* one that Redis works on, and one that waits for it */

struct event_slot {
	batch_cb cb;
	void *arg;
};

/* A batch on its way, and what it ends with. */
struct flight {
	struct batch *batch;
	const char *error;
	struct turn_task failure;
	int count;
	struct event_slot slots[];
};

struct batch {
	struct redis *redis;
	enum script script;
	int keys_each, most;
	void (*head)(struct redis_args *args, void *arg);
	void *head_arg;
	struct redis_args keys, args;
	struct flight *open; /* NULL while empty */
	int weight;          /* of what is in it: events, and what batch_weigh() adds */
	int under_way;       /* sent and not answered */
	struct turn_task flush;
};

static void flush(struct batch *b);

static void flush_task(void *arg)
{
	struct batch *b = arg;

	if (b->under_way < UNDER_WAY_MAX)
		flush(b);
}

struct batch *batch_new(struct redis *redis, enum script script, int keys, int most,
	void (*head)(struct redis_args *args, void *arg), void *arg)
{
	struct batch *b = xcalloc(1, sizeof(*b));

	b->redis = redis;
	b->script = script;
	b->keys_each = keys;
	b->most = most;
	b->head = head;
	b->head_arg = arg;
	turn_task_init(&b->flush, flush_task, b);
	return b;
}

static void fail(struct flight *f, const char *error)
{
	for (int i = 0; i < f->count; i++)
		f->slots[i].cb((struct bytes){"", 0}, error, f->slots[i].arg);
	free(f);
}

static void failure_task(void *arg)
{
	struct flight *f = arg;

	fail(f, f->error);
}

void batch_free(struct batch *b)
{
	if (b == NULL)
		return;
	turn_cancel(&b->flush);
	if (b->open != NULL) {
		redis_args_release(&b->keys);
		redis_args_release(&b->args);
		fail(b->open, "NOTREADY shutting down, nothing was done");
	}
	free(b);
}

void batch_add_begin(struct batch *b, struct redis_args **ret_keys, struct redis_args **ret_args)
{
	if (b->open == NULL) {
		b->open = xmalloc(sizeof(*b->open) + (size_t)b->most * sizeof(b->open->slots[0]));
		b->open->count = 0;
		b->open->batch = b;
		b->weight = 0;
		redis_args_init(&b->keys);
		redis_args_init(&b->args);
		if (b->head != NULL)
			b->head(&b->args, b->head_arg);
		turn_schedule(&b->flush);
	}
	*ret_keys = &b->keys;
	*ret_args = &b->args;
}

void batch_weigh(struct batch *b, int more)
{
	b->weight += more;
}

void batch_add_end(struct batch *b, batch_cb cb, void *arg)
{
	b->open->slots[b->open->count++] = (struct event_slot){cb, arg};
	if (++b->weight >= b->most || b->args.buf.len >= BATCH_BYTES)
		flush(b);
}

/* The answers stand in lines. */
static void tell_lines(const struct flight *f, struct bytes rest)
{
	for (int i = 0; i < f->count; i++) {
		const char *end = rest.n > 0 ? memchr(rest.p, '\n', rest.n) : NULL;
		struct bytes line = {rest.p, end != NULL ? (size_t)(end - rest.p) : rest.n};
		size_t step = end != NULL ? line.n + 1 : line.n;
		rest.p += step;
		rest.n -= step;
		f->slots[i].cb(line, NULL, f->slots[i].arg);
	}
}

static void on_reply(const struct redisReply *reply, void *arg)
{
	struct flight *f = arg;
	const char *error = redis_reply_error(reply);

	f->batch->under_way--;
	if (f->batch->open != NULL)
		turn_schedule(&f->batch->flush);
	if (error != NULL) {
		fail(f, error);
		return;
	}
	if (!redis_is_array(reply))
		tell_lines(f, redis_text(reply));
	for (int i = 0; redis_is_array(reply) && i < f->count; i++)
		f->slots[i].cb(redis_text(redis_at(reply, (size_t)i)), NULL, f->slots[i].arg);
	free(f);
}

static void flush(struct batch *b)
{
	struct flight *f = b->open;

	if (f == NULL)
		return;
	b->open = NULL;
	turn_cancel(&b->flush);
	redis_args_append(&b->keys, &b->args);
	enum redis_sent sent =
		redis_eval(b->redis, b->script, f->count * b->keys_each, &b->keys, on_reply, f);
	if (sent == REDIS_SENT) {
		b->under_way++;
		return;
	}
	f->error = redis_sent_error(sent);
	turn_task_init(&f->failure, failure_task, f);
	turn_schedule(&f->failure);
}
