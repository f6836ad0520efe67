/* SPDX-License-Identifier: MIT */
#include "persist/task.h"

#include <assert.h>
#include <event2/util.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/mem.h"
#include "persist/keys.h"
#include "persist/redis.h"

#define EVENTS_MAX 200 /* of one call of a script: some 2 ms of Redis */
#define DIGITS     "0123456789abcdefghijklmnopqrstuv"

enum kind {
	KIND_SUBMIT,
	KIND_CLAIM,
	KIND_END,
	KIND_BEAT,
	KIND_CANCEL,
	KIND_RETRY,
	KIND_QUEUE,
	KIND_WAKE,
	KINDS
};

struct tasks {
	const struct config *config;
	struct batch *batches[KINDS];
};

void task_defaults(struct buf *out, const struct config *c)
{
	const int64_t numbers[] = {c->task_lease, c->task_retries, c->task_crashes, c->task_backoff,
		c->task_backoff_max, c->task_max_tasks, c->task_max_bytes, c->task_keep, c->task_keep_for,
		c->task_age_after, c->task_queues_max};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		buf_addf(out, "%s%lld", i > 0 ? " " : "", (long long)numbers[i]);
}

static void head(struct redis_args *args, void *arg)
{
	const struct tasks *t = arg;
	struct buf text = BUF_INIT;

	task_defaults(&text, t->config);
	redis_arg_key(args, &text);
	buf_release(&text);
}

/* Redis has no chance of its own: a script's is the same in every call. */
static void head_random(struct redis_args *args, void *arg)
{
	const struct tasks *t = arg;
	struct buf text = BUF_INIT;
	uint32_t random;

	evutil_secure_rng_get_bytes(&random, sizeof(random));
	task_defaults(&text, t->config);
	buf_addf(&text, " %u", (unsigned)random);
	redis_arg_key(args, &text);
	buf_release(&text);
}

struct tasks *tasks_new(struct redis *redis, const struct config *config)
{
	static const enum script scripts[KINDS] = {SCRIPT_TASK_SUBMIT, SCRIPT_TASK_CLAIM, SCRIPT_TASK_END,
		SCRIPT_TASK_BEAT, SCRIPT_TASK_CANCEL, SCRIPT_TASK_RETRY, SCRIPT_TASK_QUEUE, SCRIPT_TASK_WAKE};
	struct tasks *t = xcalloc(1, sizeof(*t));

	t->config = config;
	for (int i = 0; i < KINDS; i++)
		t->batches[i] = batch_new(redis, scripts[i], 1, i == KIND_QUEUE ? 1 : EVENTS_MAX,
			i == KIND_END ? head_random : head, t);
	return t;
}

void tasks_free(struct tasks *t)
{
	if (t == NULL)
		return;
	for (int i = 0; i < KINDS; i++)
		batch_free(t->batches[i]);
	free(t);
}

/* ---- events ---- */

/* Begins an event of a queue; what follows adds its arguments to the result. */
static struct redis_args *begin_queue(struct batch *b, struct bytes queue)
{
	struct redis_args *keys, *args;
	struct buf key = BUF_INIT;

	batch_add_begin(b, &keys, &args);
	key_queue_info(&key, queue);
	redis_arg_key(keys, &key);
	buf_release(&key);
	return args;
}

/* The same of a task; ids have been checked before. */
static struct redis_args *begin_task(struct batch *b, struct bytes id)
{
	struct redis_args *keys, *args;
	struct buf key = BUF_INIT;
	int partition = 0;

	bool valid = task_id_parse(id, &partition, NULL);
	assert(valid);
	batch_add_begin(b, &keys, &args);
	key_task(&key, partition, id);
	redis_arg_key(keys, &key);
	buf_release(&key);
	return args;
}

/* A number, or nothing for `none`. */
static void arg_unless(struct redis_args *args, int64_t n, int64_t none)
{
	if (n == none)
		redis_arg_str(args, "");
	else
		redis_arg_i64(args, n);
}

void task_submit_send(struct tasks *t, const struct task_submit *s, batch_cb cb, void *arg)
{
	struct redis_args *args = begin_queue(t->batches[KIND_SUBMIT], s->queue);
	int partition = keys_partition_of(s->queue);
	const char suffix[] = {DIGITS[partition / 32], DIGITS[partition % 32]};

	redis_arg(args, (struct bytes){suffix, sizeof(suffix)});
	redis_arg_i64(args, s->priority);
	redis_arg_i64(args, s->delay_ms);
	redis_arg(args, s->key);
	redis_arg_i64(args, s->window_ms);
	arg_unless(args, s->max_retries, -1);
	arg_unless(args, s->lease_ms, 0);
	redis_arg_str(args, s->full ? "1" : "0");
	redis_arg(args, s->payload);
	batch_add_end(t->batches[KIND_SUBMIT], cb, arg);
}

void task_claim_send(struct tasks *t, const struct task_claim *c, batch_cb cb, void *arg)
{
	struct redis_args *args = begin_queue(t->batches[KIND_CLAIM], c->queue);

	redis_arg(args, c->worker);
	redis_arg_i64(args, c->count);
	arg_unless(args, c->lease_ms, 0);
	redis_arg(args, c->waiter);
	redis_arg(args, c->arrival);
	batch_weigh(t->batches[KIND_CLAIM], (int)c->count - 1);
	batch_add_end(t->batches[KIND_CLAIM], cb, arg);
}

bool task_claimed_next(struct bytes *rest, struct task_claimed *ret)
{
	int64_t size;
	struct bytes f[7];

	if (rest->n == 0)
		return false;
	if (bytes_split(bytes_cut(rest, '\n'), '|', f, 7) != 7 || !bytes_to_i64(f[2], &ret->priority) ||
		!bytes_to_i64(f[3], &ret->attempt) || !bytes_to_i64(f[4], &ret->deadline) ||
		!bytes_to_i64(f[5], &ret->lease) || !bytes_to_i64(f[6], &size) || size < 0 ||
		(size_t)size > rest->n || !task_id_parse(f[0], NULL, &ret->submitted))
		return false;
	ret->id = f[0];
	ret->token = f[1];
	ret->payload = (struct bytes){rest->p, (size_t)size};
	rest->p += size;
	rest->n -= (size_t)size;
	return true;
}

void task_end_send(struct tasks *t, const struct task_end *e, batch_cb cb, void *arg)
{
	static const char *const verbs[] = {
		[TASK_END_DONE] = "D", [TASK_END_FAIL] = "F", [TASK_END_RELEASE] = "R"};
	struct redis_args *args = begin_task(t->batches[KIND_END], e->id);

	redis_arg_str(args, verbs[e->verb]);
	redis_arg(args, e->token);
	redis_arg(args, e->text);
	arg_unless(args, e->delay_ms, -1);
	batch_add_end(t->batches[KIND_END], cb, arg);
}

void task_beat_send(
	struct tasks *t, struct bytes id, struct bytes token, int64_t lease_ms, batch_cb cb, void *arg)
{
	struct redis_args *args = begin_task(t->batches[KIND_BEAT], id);

	redis_arg(args, token);
	arg_unless(args, lease_ms, 0);
	batch_add_end(t->batches[KIND_BEAT], cb, arg);
}

void task_cancel_send(struct tasks *t, struct bytes id, batch_cb cb, void *arg)
{
	begin_task(t->batches[KIND_CANCEL], id);
	batch_add_end(t->batches[KIND_CANCEL], cb, arg);
}

void task_retry_send(struct tasks *t, struct bytes id, batch_cb cb, void *arg)
{
	begin_task(t->batches[KIND_RETRY], id);
	batch_add_end(t->batches[KIND_RETRY], cb, arg);
}

/* ---- queues ---- */

void task_queue_send(struct tasks *t, struct bytes queue, const char *word, const struct bytes *names,
	const struct bytes *values, size_t count, batch_cb cb, void *arg)
{
	struct redis_args *args = begin_queue(t->batches[KIND_QUEUE], queue);

	redis_arg_str(args, word);
	for (size_t i = 0; i < count; i++) {
		redis_arg(args, names[i]);
		redis_arg(args, values[i]);
	}
	batch_add_end(t->batches[KIND_QUEUE], cb, arg);
}

/* If it is lost, those who wait look themselves within a second. */
static void on_woken(struct bytes line, const char *error, void *arg)
{
	(void)line;
	(void)error;
	(void)arg;
}

void task_wake_send(struct tasks *t, struct bytes queue, struct bytes waiter)
{
	redis_arg(begin_queue(t->batches[KIND_WAKE], queue), waiter);
	batch_add_end(t->batches[KIND_WAKE], on_woken, NULL);
}
