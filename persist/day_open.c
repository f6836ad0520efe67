/* SPDX-License-Identifier: MIT */
#include "persist/day_open.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/day_init.h"
#include "persist/keys.h"
#include "persist/redis.h"

#define INFLIGHT_MAX 32

struct opening {
	struct redis *redis;
	int partition;
	int32_t day;
	struct buf depts; /* ids, each once, each with its NUL */
	size_t next;      /* where in it */
	int inflight;
	int64_t maps;
	bool failed;
	void (*done)(bool ok, int64_t maps, void *arg);
	void *arg;
	struct turn_task failure;
};

static void finish(struct opening *o)
{
	o->done(!o->failed, o->maps, o->arg);
	buf_release(&o->depts);
	free(o);
}

static void open_more(struct opening *o);

static void on_map(bool ok, void *arg)
{
	struct opening *o = arg;

	o->inflight--;
	o->maps += ok;
	o->failed = o->failed || !ok;
	open_more(o);
}

static void open_more(struct opening *o)
{
	while (!o->failed && o->next < o->depts.len && o->inflight < INFLIGHT_MAX) {
		struct bytes dept = bytes_of(o->depts.data + o->next);
		o->next += dept.n + 1;
		o->inflight++;
		day_init_start(o->redis, dept, o->day, on_map, o);
	}
	if (o->inflight == 0)
		finish(o);
}

static int by_bytes(const void *a, const void *b)
{
	const struct bytes *x = a, *y = b;
	int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);

	return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

/* Each field of `days` begins with a department and ':'. */
static void collect(struct buf *out, const struct redisReply *days)
{
	size_t count = redis_count(days) / 2;
	struct bytes *ids = xcalloc(count + 1, sizeof(ids[0]));

	for (size_t i = 0; i < count; i++) {
		struct bytes part[2];
		(void)bytes_split(redis_text(redis_at(days, 2 * i)), ':', part, 2);
		ids[i] = part[0];
	}
	qsort(ids, count, sizeof(ids[0]), by_bytes);
	for (size_t i = 0; i < count; i++) {
		if (!id_valid(ids[i]) || (i > 0 && bytes_eq(ids[i], ids[i - 1])))
			continue;
		buf_add_bytes(out, ids[i]);
		buf_add_char(out, '\0');
	}
	free(ids);
}

static void on_days(const struct redisReply *reply, void *arg)
{
	struct opening *o = arg;

	/* Asking again does not help when it is of another type, and must not keep the others waiting. */
	if (redis_wrong_type(reply))
		log_error("persist day event=no-maps partition=%d reason=\"its hash 'days' is of another "
			  "type\"",
			o->partition);
	else
		o->failed = !redis_is_array(reply);
	if (redis_is_array(reply))
		collect(&o->depts, reply);
	open_more(o);
}

static void fail(void *arg)
{
	struct opening *o = arg;

	o->failed = true;
	finish(o);
}

void day_open_start(struct redis *redis, int partition, int32_t day,
	void (*done)(bool ok, int64_t maps, void *arg), void *arg)
{
	struct opening *o = xcalloc(1, sizeof(*o));
	struct redis_args a;
	struct buf key = BUF_INIT;

	*o = (struct opening){.redis = redis, .partition = partition, .day = day, .done = done, .arg = arg};
	redis_args_init(&a);
	redis_arg_str(&a, "HGETALL");
	key_days(&key, partition);
	redis_arg_key(&a, &key);
	buf_release(&key);
	if (redis_query(redis, &a, on_days, o) == REDIS_SENT)
		return;
	turn_task_init(&o->failure, fail, o);
	turn_schedule(&o->failure);
}
