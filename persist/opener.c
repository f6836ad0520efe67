/* SPDX-License-Identifier: MIT */
#include "persist/opener.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/day_init.h"
#include "persist/keys.h"
#include "persist/lease.h"
#include "persist/redis.h"
#include "persist/tree.h"
#include "rules/workday.h"

#define TICK_MS      500
#define INFLIGHT_MAX 32
#define RETRY_MS     1000

struct opener {
	struct redis *redis;
	const struct tree *tree;
	struct lease *lease;
	struct event *timer;
	struct turn_task more;
	int inflight;
	bool stopped, caught_up;
	int64_t not_before_us;
	uint64_t made, failures;
};

/* One map. The department is named by its id, since it may go while this runs. */
struct opening {
	struct opener *opener;
	int32_t day;
	char dept[65];
};

static void on_done(bool ok, void *arg)
{
	struct opening *g = arg;
	struct opener *o = g->opener;
	struct dept *d = tree_find(o->tree, bytes_of(g->dept));

	o->inflight--;
	if (ok) {
		o->made++;
		if (d != NULL && d->ready_through < g->day)
			d->ready_through = g->day;
	} else {
		o->failures++;
		o->not_before_us = clock_mono_us() + RETRY_MS * 1000;
	}
	if (d != NULL)
		d->opening = false;
	free(g);
	turn_schedule(&o->more);
}

static void open_map(struct opener *o, struct dept *d, int32_t day)
{
	struct opening *g = xcalloc(1, sizeof(*g));

	g->opener = o;
	g->day = day;
	bytes_copy(g->dept, sizeof(g->dept), bytes_of(d->id));
	d->opening = true;
	o->inflight++;
	day_init_start(o->redis, bytes_of(d->id), day, on_done, g);
}

/* Starts what is missing, today's maps before tomorrow's; whether anything is. */
static bool scan(struct opener *o, int32_t today)
{
	bool missing = false;

	for (int32_t day = today; day <= today + 1; day++) {
		for (int p = 0; p < keys_partitions(); p++) {
			if (!lease_holds(o->lease, p))
				continue;
			for (struct dept *d = tree_partition(o->tree, p); d != NULL;
				d = d->next_in_partition) {
				if (d->ready_through > today + 1)
					d->ready_through = today - 1; /* the clock was put back */
				if (d->ready_through >= day)
					continue;
				missing = true;
				if (o->inflight >= INFLIGHT_MAX)
					return true;
				if (!d->opening)
					open_map(o, d, d->ready_through < today ? today : day);
			}
		}
	}
	return missing;
}

static void work(void *arg)
{
	struct opener *o = arg;

	if (o->stopped || !redis_ready(o->redis) || !tree_loaded(o->tree) ||
		clock_mono_us() < o->not_before_us)
		return;
	o->caught_up = !scan(o, workday_of(clock_wall_ms())) && lease_settled(o->lease);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	work(arg);
}

/* Redis may come back without what it had: look at every map again. */
static void on_link(void *arg)
{
	struct opener *o = arg;

	o->caught_up = false;
	for (int p = 0; p < keys_partitions(); p++) {
		for (struct dept *d = tree_partition(o->tree, p); d != NULL; d = d->next_in_partition)
			d->ready_through = 0;
	}
}

static void write_info(struct buf *out, void *arg)
{
	const struct opener *o = arg;

	buf_addf(out, "maps_ready:%d\r\nmaps_made:%llu\r\nmap_failures:%llu\r\n", o->caught_up,
		(unsigned long long)o->made, (unsigned long long)o->failures);
}

struct opener *opener_new(
	struct event_base *base, struct redis *redis, const struct tree *tree, struct lease *lease)
{
	struct opener *o = xcalloc(1, sizeof(*o));
	struct timeval every = {0, TICK_MS * 1000};

	o->redis = redis;
	o->tree = tree;
	o->lease = lease;
	turn_task_init(&o->more, work, o);
	o->timer = event_new(base, -1, EV_PERSIST, on_timer, o);
	event_add(o->timer, &every);
	redis_on_change(redis, on_link, o);
	info_register("Day", write_info, o);
	return o;
}

void opener_free(struct opener *o)
{
	if (o == NULL)
		return;
	turn_cancel(&o->more);
	event_free(o->timer);
	free(o);
}

void opener_wake(struct opener *o)
{
	turn_schedule(&o->more);
}

bool opener_caught_up(const struct opener *o)
{
	return o->caught_up;
}

void opener_stop(struct opener *o)
{
	o->stopped = true;
}
