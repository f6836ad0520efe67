/* SPDX-License-Identifier: MIT */
#include "persist/opener.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/info.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/day_open.h"
#include "persist/keys.h"
#include "persist/lease.h"
#include "persist/partition.h"
#include "persist/redis.h"
#include "rules/workday.h"

#define TICK_MS  500
#define RETRY_MS 1000

/* Of a partition: the date on which, seen from there, its maps of today and of tomorrow were ready; 0 =
 * never.
 */
struct ready {
	int32_t today, tomorrow;
};

struct opener {
	struct redis *redis;
	struct lease *lease;
	struct event *timer;
	struct turn_task more;
	struct ready ready[PARTITIONS_MAX];
	/* One partition and date at a time. */
	bool opening;
	int partition;
	int32_t date, seen_from;
	bool stopped, caught_up;
	int64_t not_before_us;
	uint64_t made, failures;
};

static void on_opened(bool ok, int64_t maps, void *arg)
{
	struct opener *o = arg;
	struct ready *r = &o->ready[o->partition];

	o->opening = false;
	o->made += (uint64_t)maps;
	if (!ok) {
		o->failures++;
		o->not_before_us = clock_mono_us() + RETRY_MS * 1000;
	} else if (o->date == o->seen_from) {
		r->today = o->seen_from;
	} else {
		r->tomorrow = o->seen_from;
	}
	turn_schedule(&o->more);
}

static void open_maps(struct opener *o, int partition, int32_t date, int32_t today)
{
	o->opening = true;
	o->partition = partition;
	o->date = date;
	o->seen_from = today;
	day_open_start(o->redis, partition, date, on_opened, o);
}

/* Starts what is missing, today's maps before tomorrow's; whether anything is. Today's were tomorrow's
 * yesterday, and are looked at again: another daemon, whose clock goes after ours, may have hired somebody
 * since. */
static bool scan(struct opener *o, int32_t today)
{
	for (int32_t date = today; date <= today + 1; date++) {
		for (int p = 0; p < keys_partitions(); p++) {
			int32_t seen_from = date == today ? o->ready[p].today : o->ready[p].tomorrow;
			if (!lease_holds(o->lease, p))
				o->ready[p] = (struct ready){0};
			else if (seen_from != today) {
				open_maps(o, p, date, today);
				return true;
			}
		}
	}
	return false;
}

static void work(void *arg)
{
	struct opener *o = arg;

	if (o->stopped || o->opening || !redis_ready(o->redis) || clock_mono_us() < o->not_before_us)
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
	memset(o->ready, 0, sizeof(o->ready));
}

static void write_info(struct buf *out, void *arg)
{
	const struct opener *o = arg;

	buf_addf(out, "maps_ready:%d\r\nmaps_made:%llu\r\nmap_failures:%llu\r\n", o->caught_up,
		(unsigned long long)o->made, (unsigned long long)o->failures);
}

struct opener *opener_new(struct event_base *base, struct redis *redis, struct lease *lease)
{
	struct opener *o = xcalloc(1, sizeof(*o));
	struct timeval every = {0, TICK_MS * 1000};

	o->redis = redis;
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
