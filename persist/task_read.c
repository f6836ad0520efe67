/* SPDX-License-Identifier: MIT */
#include "persist/task_read.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/task_id.h"

#define GETS_MAX  100 /* of one call of a script: each about 1 ms of Redis */
#define STATS_MAX 50

struct task_reads {
	struct batch *gets, *stats;
};

struct task_reads *task_reads_new(struct redis *redis)
{
	struct task_reads *r = xcalloc(1, sizeof(*r));

	r->gets = batch_new(redis, SCRIPT_TASK_GET, 1, GETS_MAX, NULL, NULL);
	r->stats = batch_new(redis, SCRIPT_TASK_STATS, 1, STATS_MAX, NULL, NULL);
	return r;
}

void task_reads_free(struct task_reads *r)
{
	if (r == NULL)
		return;
	batch_free(r->gets);
	batch_free(r->stats);
	free(r);
}

/* Both scripts take keys and no arguments. */
static void add_event(struct batch *b, struct buf *key, batch_cb cb, void *arg)
{
	struct redis_args *keys, *args;

	batch_add_begin(b, &keys, &args);
	redis_arg_key(keys, key);
	buf_release(key);
	batch_add_end(b, cb, arg);
}

void task_get_send(struct task_reads *r, struct bytes id, batch_cb cb, void *arg)
{
	struct buf key = BUF_INIT;
	int partition = 0;

	bool valid = task_id_parse(id, &partition, NULL);
	assert(valid);
	(void)valid;
	key_task(&key, partition, id);
	add_event(r->gets, &key, cb, arg);
}

void task_stats_send(struct task_reads *r, struct bytes queue, batch_cb cb, void *arg)
{
	struct buf key = BUF_INIT;

	key_queue_info(&key, queue);
	add_event(r->stats, &key, cb, arg);
}

/* ---- rows ---- */

/* The fields of a row in front of its texts. */
enum {
	ROW_ID,
	ROW_PLACE,
	ROW_AT,
	ROW_QUEUE,
	ROW_STATUS,
	ROW_PRIORITY,
	ROW_SIZE,
	ROW_RETRIES,
	ROW_CRASHES,
	ROW_MAX_RETRIES,
	ROW_KEY,
	ROW_CANCEL,
	ROW_WORKER,
	ROW_TOKEN,
	ROW_CLAIMED,
	ROW_ERROR_SIZE,
	ROW_RESULT_SIZE,
	ROW_PAYLOAD_SIZE,
	ROW_TEXTS,
	ROW_FIELDS
};

static bool read_number(struct bytes text, int64_t none, int64_t *ret)
{
	*ret = none;
	return text.n == 0 || (bytes_to_i64(text, ret) && *ret >= 0);
}

static struct bytes unless_empty(struct bytes text)
{
	return text.n > 0 ? text : (struct bytes){NULL, 0};
}

/* Takes one of the texts at the end of a row; its length stands in front. */
static bool take_text(struct bytes *rest, struct bytes length, struct bytes *ret)
{
	int64_t n;

	if (!read_number(length, 0, &n) || (size_t)n > rest->n)
		return false;
	*ret = (struct bytes){rest->p, (size_t)n};
	rest->p += n;
	rest->n -= (size_t)n;
	return true;
}

bool task_row_read(struct bytes text, struct task_row *ret)
{
	struct task_row r = {.not_before = -1, .deadline = -1, .finished = -1};
	struct bytes f[ROW_FIELDS];
	int64_t at;

	if (bytes_split(text, '|', f, ROW_FIELDS) != ROW_FIELDS ||
		!task_id_parse(f[ROW_ID], NULL, &r.submitted) || !read_number(f[ROW_AT], -1, &at) ||
		!read_number(f[ROW_PRIORITY], 0, &r.priority) || r.priority < 1 || r.priority > 10 ||
		!read_number(f[ROW_SIZE], 0, &r.size) || !read_number(f[ROW_RETRIES], 0, &r.retries) ||
		!read_number(f[ROW_CRASHES], 0, &r.crashes) ||
		!read_number(f[ROW_MAX_RETRIES], -1, &r.max_retries) ||
		!read_number(f[ROW_CANCEL], 0, &r.cancel) || !read_number(f[ROW_CLAIMED], -1, &r.claimed) ||
		!take_text(&f[ROW_TEXTS], f[ROW_ERROR_SIZE], &r.error) ||
		!take_text(&f[ROW_TEXTS], f[ROW_RESULT_SIZE], &r.result) ||
		!take_text(&f[ROW_TEXTS], f[ROW_PAYLOAD_SIZE], &r.payload) || f[ROW_TEXTS].n > 0)
		return false;
	r.id = f[ROW_ID];
	r.queue = f[ROW_QUEUE];
	r.status = f[ROW_STATUS];
	r.key = unless_empty(f[ROW_KEY]);
	r.worker = unless_empty(f[ROW_WORKER]);
	r.token = unless_empty(f[ROW_TOKEN]);
	r.error = unless_empty(r.error);
	r.result = unless_empty(r.result);
	if (bytes_eq(f[ROW_PLACE], BYTES_LIT("delayed")))
		r.not_before = at;
	else if (bytes_eq(f[ROW_PLACE], BYTES_LIT("running")))
		r.deadline = at;
	else
		r.finished = at; /* of a ready one there is no instant */
	*ret = r;
	return true;
}

void task_stats_read(struct bytes text, int64_t stats[TASK_STATS])
{
	for (int i = 0; i < TASK_STATS; i++) {
		struct bytes field = bytes_cut(&text, '|');
		bool known = i == STAT_OLDEST ? task_id_parse(field, NULL, &stats[i])
					      : field.n > 0 && read_number(field, -1, &stats[i]);
		if (!known)
			stats[i] = -1;
	}
}
