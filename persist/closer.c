/* SPDX-License-Identifier: MIT */
/* The reading half of the close and its schedule. One department is read at a time, into the batch that is
 * being filled, while the batch before it is being written: MySQL never waits for Redis. */
#include "persist/closer.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/close_batch.h"
#include "persist/close_look.h"
#include "persist/close_read.h"
#include "persist/keys.h"
#include "persist/lease.h"
#include "persist/mysql_link.h"
#include "persist/partition.h"
#include "persist/redis.h"
#include "rules/when.h"
#include "rules/workday.h"

#define TICK_MS      200
#define RETRY_MS     1000
#define REQUESTS_MAX 64

enum closer_state {
	CLOSER_IDLE,
	CLOSER_LOOKING, /* the `days` hashes of our partitions are being read */
	CLOSER_RUNNING  /* departments are being closed */
};

struct request {
	int32_t day;
	char dept[ID_MAX + 1];
	int64_t deadline_us;
	void (*fn)(bool ok, void *arg);
	void *arg;
	bool looked; /* the schedule has been looked at since it came */
	TAILQ_ENTRY(request) link;
};

struct closer {
	struct closer_deps deps;
	enum closer_state state;
	struct event *timer;
	struct turn_task pump;
	int64_t not_before_us;
	bool stopped;
	int32_t through;                        /* the last date that is due in this run */
	int32_t looked_through[PARTITIONS_MAX]; /* nothing is left to close up to this date; 0 = not known */
	bool held[PARTITIONS_MAX];              /* ours since the look that this run began with */
	/* Running. */
	struct close_item *items;
	size_t count, cap, next;
	struct close_reader *reader;
	struct close_batch *filling, *writing;
	int ending; /* written batches whose departments are being ended in Redis */
	int32_t filling_day;
	bool failed; /* the run ends as soon as nothing is under way; what is left is done by the next */
	TAILQ_HEAD(, request) requests;
	/* For INFO. */
	int32_t last_day;
	int64_t last_ms, last_departments, last_written, last_failed, last_absent, runs, started_us;
};

static void pump(void *arg);

static void set_state(struct closer *c, enum closer_state state)
{
	static const char *const names[] = {"idle", "looking", "running"};

	if (c->state != state)
		log_debug("persist close event=state from=%s to=%s", names[c->state], names[state]);
	c->state = state;
}

/* ---- the end of a run ---- */

static void answer_requests(struct closer *c, bool timeouts_only)
{
	struct request *r, *next;
	int64_t now = clock_mono_us();

	for (r = TAILQ_FIRST(&c->requests); r != NULL; r = next) {
		next = TAILQ_NEXT(r, link);
		bool late = now > r->deadline_us;
		if (!late && (timeouts_only || !r->looked))
			continue;
		TAILQ_REMOVE(&c->requests, r, link);
		r->fn(!late, r->arg);
		free(r);
	}
}

static void items_release(struct closer *c)
{
	for (size_t i = 0; i < c->count; i++)
		buf_release(&c->items[i].absentees);
	c->count = c->next = 0;
}

static void sum_up(struct closer *c)
{
	char date[DATE_TEXT];

	c->last_departments = c->last_written = c->last_failed = c->last_absent = 0;
	for (size_t i = 0; i < c->count; i++) {
		const struct close_item *item = &c->items[i];
		if (item->phase != CLOSE_DONE)
			continue;
		c->last_day = item->day;
		c->last_departments++;
		c->last_written += item->written;
		c->last_failed += item->failed;
		c->last_absent += item->absent;
	}
	c->last_ms = (clock_mono_us() - c->started_us) / 1000;
	c->runs++;
	log_notice("persist close event=done through=%s departments=%lld written=%lld failed=%lld "
		   "absent=%lld ms=%lld",
		date_format(c->through, date), (long long)c->last_departments, (long long)c->last_written,
		(long long)c->last_failed, (long long)c->last_absent, (long long)c->last_ms);
}

/* After a run, or a look that found nothing: when nothing failed, all that is due is closed. */
static void settle_run(struct closer *c)
{
	set_state(c, CLOSER_IDLE);
	if (c->failed) {
		/* Departments may have ended that day_close does not know of: look everywhere afresh. */
		memset(c->looked_through, 0, sizeof(c->looked_through));
		c->not_before_us = clock_mono_us() + RETRY_MS * 1000;
		return;
	}
	for (int p = 0; p < keys_partitions(); p++)
		c->looked_through[p] = c->held[p] && lease_holds(c->deps.lease, p) ? c->through : 0;
	answer_requests(c, false);
}

static void end_run(struct closer *c)
{
	sum_up(c);
	items_release(c);
	settle_run(c);
}

/* ---- writing ---- */

/* A written batch, whose departments are being ended while the next one is written. */
struct ending {
	struct closer *closer;
	struct close_batch *batch;
};

static void on_ended(void *arg)
{
	struct ending *e = arg;

	e->closer->ending--;
	turn_schedule(&e->closer->pump);
	close_batch_free(e->batch);
	free(e);
}

static void on_batch(bool ok, void *arg)
{
	struct closer *c = arg;
	struct close_batch *b = c->writing;

	c->writing = NULL;
	turn_schedule(&c->pump);
	/* After a failure the run is begun again with a fresh view: what was written stays, the rest is found
	 * again.
	 */
	c->failed = c->failed || !ok;
	if (!ok) {
		close_batch_free(b);
		return;
	}
	struct ending *e = xmalloc(sizeof(*e));
	*e = (struct ending){c, b};
	c->ending++;
	close_batch_end(b, on_ended, e);
}

/* Departments that have ended and whose end day_close does not say yet. */
static size_t collect_ended(struct closer *c, struct close_item **list)
{
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++) {
		struct close_item *item = &c->items[i];
		if (item->phase == CLOSE_ABANDONED)
			c->failed = true;
		if (item->phase == CLOSE_DONE && !item->recorded)
			list[n++] = item;
	}
	return n;
}

/* Hands the filled batch over; false when there is nothing to write. */
static bool write_batch(struct closer *c)
{
	struct close_item **ended = xcalloc(c->count + 1, sizeof(ended[0]));
	size_t count = collect_ended(c, ended);
	bool something = c->filling != NULL || count > 0;

	if (something && mysql_link_ready(c->deps.sql)) {
		c->writing = c->filling != NULL ? c->filling : close_batch_new(&c->deps, c->filling_day);
		c->filling = NULL;
		close_batch_write(c->writing, ended, count, on_batch, c);
	} else if (something) {
		c->failed = true;
		close_batch_free(c->filling);
		c->filling = NULL;
		something = false;
	}
	free(ended);
	return something;
}

/* ---- the pump: does whatever can be done next ---- */

/* What the reader has come to. */
static enum close_read_state take_note(struct closer *c)
{
	enum close_read_state state = close_reader_state(c->reader);

	if (state == CLOSE_READ_DONE)
		c->next++;
	if (state == CLOSE_READ_FAILED)
		c->failed = true;
	if (state == CLOSE_READ_DONE || state == CLOSE_READ_FAILED ||
		(state == CLOSE_READ_BETWEEN && c->failed)) {
		close_read_reset(c->reader);
		state = CLOSE_READ_IDLE;
	}
	return state;
}

/* Whether the filled batch is to be written now: it is full, the next department is of another day, or there
 * is none.
 */
static bool is_due(const struct closer *c, enum close_read_state reading)
{
	bool more = c->next < c->count;
	bool other_day = more && reading == CLOSE_READ_IDLE && c->items[c->next].day != c->filling_day;

	return close_batch_rows(c->filling) >= CLOSE_BATCH_ROWS || other_day || !more;
}

static void read_on(struct closer *c, enum close_read_state reading)
{
	struct close_item *item = &c->items[c->next];

	if (c->filling == NULL) {
		c->filling_day = item->day;
		c->filling = close_batch_new(&c->deps, item->day);
	}
	if (reading == CLOSE_READ_BETWEEN)
		close_read_page(c->reader, c->filling);
	else
		close_read_begin(c->reader, item, c->filling);
}

static void run_on(struct closer *c)
{
	enum close_read_state reading = take_note(c);

	if (reading == CLOSE_READ_WAITING)
		return;
	if (!c->failed && c->filling != NULL && is_due(c, reading)) {
		if (c->writing != NULL)
			return; /* its end comes back here */
		write_batch(c);
		reading = take_note(c); /* when that failed, a department may be half read: let go of it */
	}
	if (!c->failed && c->next < c->count) {
		read_on(c, reading);
		return;
	}
	if (c->writing != NULL || c->ending > 0)
		return;
	close_batch_free(c->filling);
	c->filling = NULL;
	/* The last departments' end is recorded by a transaction of its own. */
	if (c->failed || !write_batch(c))
		end_run(c);
}

static void pump(void *arg)
{
	struct closer *c = arg;

	if (c->state == CLOSER_RUNNING)
		run_on(c);
}

/* ---- looking for what is due ---- */

static bool asked_for(const struct closer *c, int32_t day, struct bytes dept)
{
	const struct request *r;

	TAILQ_FOREACH (r, &c->requests, link) {
		if (day <= r->day && (r->dept[0] == '\0' || bytes_eq(bytes_of(r->dept), dept)))
			return true;
	}
	return false;
}

/* The last date that is to be closed by the clock. */
static int32_t due_through(const struct closer *c)
{
	int64_t now = clock_wall_ms();
	int32_t day = workday_of(now) - 1;

	if (!c->deps.config->close_auto)
		return 0;
	return now >= workday_end(day) + c->deps.config->close_delay ? day : day - 1;
}

static void add_item(struct closer *c, int partition, struct bytes dept, int32_t day)
{
	if (c->count == c->cap) {
		c->cap = c->cap == 0 ? 64 : c->cap * 2;
		c->items = xrealloc(c->items, c->cap * sizeof(c->items[0]));
	}
	struct close_item *item = &c->items[c->count++];
	*item = (struct close_item){.day = day, .partition = partition, .phase = CLOSE_QUEUED};
	bytes_copy(item->dept, sizeof(item->dept), dept);
}

static int by_date(const void *a, const void *b)
{
	const struct close_item *x = a, *y = b;

	if (x->day != y->day)
		return x->day < y->day ? -1 : 1;
	return strcmp(x->dept, y->dept);
}

static void on_found(int partition, struct bytes dept, int32_t day, void *arg)
{
	struct closer *c = arg;
	bool over = clock_wall_ms() >= workday_end(day);

	if (day <= c->through || (over && asked_for(c, day, dept)))
		add_item(c, partition, dept, day);
}

static void on_looked(bool ok, void *arg)
{
	struct closer *c = arg;

	c->failed = !ok || c->stopped;
	if (c->count == 0 || c->failed) {
		items_release(c);
		settle_run(c);
		return;
	}
	qsort(c->items, c->count, sizeof(c->items[0]), by_date);
	c->started_us = clock_mono_us();
	set_state(c, CLOSER_RUNNING);
	log_notice("persist close event=start departments=%zu", c->count);
	turn_schedule(&c->pump);
}

/* Looks into the partitions that may have something that is due. */
static void look(struct closer *c)
{
	bool wanted[PARTITIONS_MAX] = {false}, fresh[PARTITIONS_MAX] = {false}, any = false;
	struct close_look_spec spec = {.deps = &c->deps, .found = on_found, .done = on_looked, .arg = c};
	struct request *r;

	c->through = due_through(c);
	for (int p = 0; p < keys_partitions(); p++) {
		/* A clock that was put back has days before it that it had passed. */
		if (c->looked_through[p] > c->through)
			c->looked_through[p] = c->through;
		bool behind = !TAILQ_EMPTY(&c->requests) || c->looked_through[p] < c->through;
		c->held[p] = lease_holds(c->deps.lease, p);
		wanted[p] = behind && c->held[p];
		fresh[p] = c->looked_through[p] == 0;
		any = any || wanted[p];
	}
	if (!any && TAILQ_EMPTY(&c->requests))
		return;
	set_state(c, CLOSER_LOOKING);
	/* Those that come later wait for the next look. */
	TAILQ_FOREACH (r, &c->requests, link)
		r->looked = true;
	close_look_start(&spec, wanted, fresh);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct closer *c = arg;

	(void)fd;
	(void)what;
	answer_requests(c, true);
	for (int p = 0; p < keys_partitions(); p++) {
		if (lease_holds(c->deps.lease, p))
			continue;
		c->looked_through[p] = 0;
		c->held[p] = false;
	}
	if (c->state == CLOSER_IDLE && !c->stopped && clock_mono_us() >= c->not_before_us &&
		redis_ready(c->deps.redis) && mysql_link_ready(c->deps.sql))
		look(c);
}

bool closer_caught_up(const struct closer *c)
{
	int32_t through = due_through(c);

	for (int p = 0; p < keys_partitions(); p++) {
		if (lease_holds(c->deps.lease, p) && c->looked_through[p] < through)
			return false;
	}
	return true;
}

void closer_wake(struct closer *c)
{
	on_timer(-1, 0, c);
}

bool closer_running(const struct closer *c)
{
	return c->state != CLOSER_IDLE;
}

void closer_stop(struct closer *c)
{
	c->stopped = true;
	if (c->state == CLOSER_RUNNING)
		c->failed = true;
}

void closer_request(struct closer *c, int32_t day, struct bytes dept, int64_t timeout_ms,
	void (*fn)(bool ok, void *arg), void *arg)
{
	struct request *r = xcalloc(1, sizeof(*r));

	r->day = day;
	bytes_copy(r->dept, sizeof(r->dept), dept);
	r->deadline_us = clock_mono_us() + timeout_ms * 1000;
	r->fn = fn;
	r->arg = arg;
	TAILQ_INSERT_TAIL(&c->requests, r, link);
}

/* Redis may come back as it was before the end of a close that is ended here: look everywhere afresh. */
static void on_link(void *arg)
{
	struct closer *c = arg;

	memset(c->looked_through, 0, sizeof(c->looked_through));
	memset(c->held, 0, sizeof(c->held));
}

static void write_info(struct buf *out, void *arg)
{
	const struct closer *c = arg;
	char date[DATE_TEXT] = "";

	if (c->last_day > 0)
		date_format(c->last_day, date);
	buf_addf(out, "close_running:%d\r\nclose_caught_up:%d\r\nclose_runs:%lld\r\nlast_close_day:%s\r\n",
		closer_running(c), closer_caught_up(c), (long long)c->runs, date);
	buf_addf(out, "last_close_departments:%lld\r\nlast_close_written:%lld\r\nlast_close_failed:%lld\r\n",
		(long long)c->last_departments, (long long)c->last_written, (long long)c->last_failed);
	buf_addf(out, "last_close_absent:%lld\r\nlast_close_ms:%lld\r\n", (long long)c->last_absent,
		(long long)c->last_ms);
}

struct closer *closer_new(const struct closer_deps *deps)
{
	struct closer *c = xcalloc(1, sizeof(*c));
	struct timeval every = {0, TICK_MS * 1000};

	c->deps = *deps;
	TAILQ_INIT(&c->requests);
	turn_task_init(&c->pump, pump, c);
	c->reader = close_reader_new(&c->deps, pump, c);
	c->timer = event_new(deps->base, -1, EV_PERSIST, on_timer, c);
	event_add(c->timer, &every);
	redis_on_change(deps->redis, on_link, c);
	info_register("Close", write_info, c);
	return c;
}

void closer_free(struct closer *c)
{
	struct request *r;

	if (c == NULL)
		return;
	while ((r = TAILQ_FIRST(&c->requests)) != NULL) {
		TAILQ_REMOVE(&c->requests, r, link);
		r->fn(false, r->arg);
		free(r);
	}
	turn_cancel(&c->pump);
	items_release(c);
	close_reader_free(c->reader);
	close_batch_free(c->filling);
	event_free(c->timer);
	free(c->items);
	free(c);
}
