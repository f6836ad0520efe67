/* SPDX-License-Identifier: MIT */
#include "persist/lease.h"

#include <event2/event.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/keys.h"
#include "persist/partition.h"
#include "persist/redis.h"

struct lease {
	struct redis *redis;
	const struct config *config;
	struct event *timer;
	char name[160];
	char place[120]; /* what the names of all runs of this daemon begin with; "" when nobody knows its
			    port */
	bool introduced; /* earlier runs have been replaced */
	bool held[PARTITIONS_MAX + 1];
	int held_count, daemons;
	int64_t asked_us; /* when the renewal under way was sent */
	int64_t until_us; /* what was renewed last is ours until then */
	bool asking, settled, leaving;
};

static void lose_all(struct lease *l)
{
	if (l->held_count > 0)
		log_warning("persist lease event=lost partitions=%d", l->held_count);
	memset(l->held, 0, sizeof(l->held));
	l->held_count = 0;
	l->settled = false;
}

static void on_reply(const struct redisReply *reply, void *arg)
{
	struct lease *l = arg;
	const struct redisReply *mine = redis_at(reply, 1);
	bool held[PARTITIONS_MAX + 1] = {false};
	int count = 0;

	l->asking = false;
	if (!redis_is_array(reply))
		return;
	for (size_t i = 0; i < redis_count(mine); i++) {
		int64_t p = redis_int(redis_at(mine, i));
		if (p >= 0 && p <= keys_org()) {
			held[p] = true;
			count++;
		}
	}
	l->daemons = (int)redis_int(redis_at(reply, 0));
	if (count != l->held_count)
		log_notice("persist lease event=share partitions=%d of=%d daemons=%d", count, keys_org() + 1,
			l->daemons);
	memcpy(l->held, held, sizeof(held));
	l->held_count = count;
	l->introduced = true;
	l->until_us = l->asked_us + l->config->lease * 1000;
	l->settled = true;
}

static void ask(struct lease *l)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	if (l->asking)
		return;
	redis_args_init(&a);
	key_daemons(&key);
	redis_arg_key(&a, &key);
	for (int p = 0; p <= keys_org(); p++) {
		key_owner(&key, p);
		redis_arg_key(&a, &key);
	}
	buf_release(&key);
	redis_arg_str(&a, l->name);
	redis_arg_i64(&a, l->config->lease);
	redis_arg_str(&a, l->leaving ? "1" : "0");
	redis_arg_str(&a, l->introduced ? "" : l->place);
	l->asked_us = clock_mono_us();
	l->asking = redis_eval(l->redis, SCRIPT_LEASE, keys_org() + 2, &a, on_reply, l) == REDIS_SENT;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct lease *l = arg;

	(void)fd;
	(void)what;
	if (l->held_count > 0 && clock_mono_us() > l->until_us)
		lose_all(l);
	if (redis_ready(l->redis) && !l->leaving)
		ask(l);
}

static void on_link(void *arg)
{
	struct lease *l = arg;

	if (redis_ready(l->redis))
		ask(l);
}

static void write_info(struct buf *out, void *arg)
{
	const struct lease *l = arg;

	buf_addf(out, "daemon:%s\r\ndaemons:%d\r\npartitions:%d\r\npartitions_held:%d\r\n", l->name,
		l->daemons, keys_partitions(), l->held_count);
}

struct lease *lease_new(struct event_base *base, struct redis *redis, const struct config *config)
{
	struct lease *l = xcalloc(1, sizeof(*l));
	char host[64] = "";
	unsigned random;

	gethostname(host, sizeof(host) - 1);
	evutil_secure_rng_get_bytes(&random, sizeof(random));
	if (config->port != 0)
		snprintf(l->place, sizeof(l->place), "%s:%lld/", host, (long long)config->port);
	snprintf(l->name, sizeof(l->name), "%s:%lld/%ld.%08x", host, (long long)config->port, (long)getpid(),
		random);
	l->redis = redis;
	l->config = config;
	int64_t period_us = config->lease * 1000 / 3;
	struct timeval every = {period_us / 1000000, period_us % 1000000};
	l->timer = event_new(base, -1, EV_PERSIST, on_timer, l);
	event_add(l->timer, &every);
	redis_on_change(redis, on_link, l);
	info_register("Partitions", write_info, l);
	return l;
}

void lease_free(struct lease *l)
{
	if (l == NULL)
		return;
	event_free(l->timer);
	free(l);
}

bool lease_holds(const struct lease *l, int partition)
{
	return l->held[partition];
}

const char *lease_name(const struct lease *l)
{
	return l->name;
}

bool lease_settled(const struct lease *l)
{
	return l->settled;
}

void lease_give_up(struct lease *l)
{
	l->leaving = true;
	l->asking = false;
	if (redis_ready(l->redis))
		ask(l);
	lose_all(l);
}
