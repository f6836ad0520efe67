/* SPDX-License-Identifier: MIT */
#include "persist/memory.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/redis.h"

/* Of ten: above it Redis counts as full. */
#define FULL_TENTHS 9
/* Ticks of a second between two looks while there is no limit: somebody may set one. */
#define UNLIMITED_TICKS 10

struct memory {
	struct redis *redis;
	struct event *tick;
	int64_t used, limit; /* bytes; limit 0: none, or not known */
	unsigned ticks;
	bool asking, full;
};

/* The number behind `name:`; 0 when there is no such line. */
static int64_t number(struct bytes text, struct bytes name)
{
	int64_t n = 0;

	while (text.n > 0) {
		struct bytes value = bytes_cut(&text, '\n');
		value = bytes_cut(&value, '\r');
		if (bytes_eq(bytes_cut(&value, ':'), name) && bytes_to_i64(value, &n))
			break;
	}
	return n;
}

static void set_full(struct memory *m, bool full)
{
	if (full != m->full)
		log_notice("persist memory event=%s used=%lld maxmemory=%lld", full ? "full" : "room",
			(long long)m->used, (long long)m->limit);
	m->full = full;
}

static void on_info(const struct redisReply *reply, void *arg)
{
	struct memory *m = arg;
	struct bytes text = redis_text(reply);

	m->asking = false;
	if (redis_reply_error(reply) != NULL)
		return;
	/* Buffers of replicas and of the append-only file do not count for the limit. */
	m->used =
		number(text, BYTES_LIT("used_memory")) - number(text, BYTES_LIT("mem_not_counted_for_evict"));
	m->limit = number(text, BYTES_LIT("maxmemory"));
	set_full(m, m->limit > 0 && m->used > m->limit / 10 * FULL_TENTHS);
}

static void ask(struct memory *m)
{
	struct redis_args a;

	if (m->asking || !redis_ready(m->redis))
		return;
	redis_args_init(&a);
	redis_arg_str(&a, "INFO");
	redis_arg_str(&a, "memory");
	m->asking = redis_query(m->redis, &a, on_info, m) == REDIS_SENT;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct memory *m = arg;

	(void)fd;
	(void)what;
	if (m->limit > 0 || ++m->ticks % UNLIMITED_TICKS == 0)
		ask(m);
}

/* Another Redis, perhaps. */
static void on_link(void *arg)
{
	ask(arg);
}

struct memory *memory_new(struct event_base *base, struct redis *redis)
{
	struct memory *m = xcalloc(1, sizeof(*m));
	const struct timeval second = {1, 0};

	m->redis = redis;
	m->tick = event_new(base, -1, EV_PERSIST, on_tick, m);
	event_add(m->tick, &second);
	redis_on_change(redis, on_link, m);
	return m;
}

void memory_free(struct memory *m)
{
	if (m == NULL)
		return;
	event_free(m->tick);
	free(m);
}

bool memory_full(const struct memory *m)
{
	return m->full;
}

void memory_info(const struct memory *m, struct buf *out)
{
	buf_addf(out, "redis_memory_used:%lld\r\nredis_memory_limit:%lld\r\nredis_memory_full:%d\r\n",
		(long long)m->used, (long long)m->limit, m->full);
}
