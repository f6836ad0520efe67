/* SPDX-License-Identifier: MIT */
#include "persist/journal.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/keys.h"
#include "persist/lease.h"
#include "persist/partition.h"
#include "persist/redis.h"

#define TICK_MS     25
#define RETRY_MS    1000
#define TRIM_MS     2000
#define ORG_KEEP_MS 60000 /* every daemon reads the organisation's journal: entries stay at least so long */
#define ID_TEXT     48
/* A window ends with the entry that reaches so many bytes, or spec.records. */
#define BYTES_MAX     1048576
#define ENTRIES_FIRST 32
#define ENTRIES_MIN   4

enum part_state {
	PART_FOREIGN,    /* not ours, or its cursor is not known yet */
	PART_LOCATING,   /* the cursor is being read */
	PART_IDLE,       /* a window may be read when it is due */
	PART_READING,    /* XRANGE is under way */
	PART_PLANNING,   /* the window's end is being written down */
	PART_PROCESSING, /* the window is with `process` */
	PART_COMMITTING  /* the cursor is being moved */
};

struct part {
	struct journal *journal;
	int number;
	enum part_state state;
	char at[ID_TEXT];      /* the last entry done with */
	char planned[ID_TEXT]; /* end of the window that was planned before a crash; "" = none */
	char last[ID_TEXT];    /* last entry of the window */
	int64_t undone_ms;     /* its time, until the cursor is there, also between two tries; 0 = none */
	struct journal_window window;
	struct buf text;
	int entries;           /* how many to ask for, from how full they were */
	bool rung;             /* somebody says that there is more */
	bool more;             /* the last window was full */
	bool moved;            /* the cursor has, since the last trim */
	bool stale;            /* Redis went while the window was with `process` */
	int64_t not_before_us; /* after a failure, and between windows under load */
	int64_t poll_us, trim_us;
};

struct journal {
	struct redis *redis;
	struct lease *lease;
	struct journal_spec spec;
	struct event *timer;
	struct turn_task scan;
	struct part parts[PARTITIONS_MAX + 1];
	bool stopped;
	int64_t left[PARTITIONS_MAX + 1]; /* entries left, from the last trim */
	uint64_t windows, records;
};

static void enter(struct part *p, enum part_state state)
{
	static const char *const names[] = {
		"foreign", "locating", "idle", "reading", "planning", "processing", "committing"};

	log_debug("persist journal event=state cursor=%s partition=%d from=%s to=%s", p->journal->spec.cursor,
		p->number, names[p->state], names[state]);
	p->state = state;
}

static void pause_part(struct part *p, int64_t ms)
{
	p->not_before_us = clock_mono_us() + ms * 1000;
}

static void window_release(struct part *p)
{
	free(p->window.records);
	buf_release(&p->window.append);
	buf_clear(&p->text);
	p->window = (struct journal_window){.partition = p->number};
}

/* Back to the start: the cursor in Redis is the truth. */
static void forget(struct part *p, int64_t ms)
{
	window_release(p);
	p->entries = ENTRIES_FIRST; /* what has gathered meanwhile may be of any size */
	pause_part(p, ms);
	enter(p, PART_FOREIGN);
}

/* ---- locating ---- */

static void on_cursor(const struct redisReply *reply, void *arg)
{
	struct part *p = arg;

	if (!redis_is_array(reply)) {
		forget(p, RETRY_MS);
		return;
	}
	struct bytes at = redis_text(redis_at(reply, 0));
	bytes_copy(p->at, sizeof(p->at), at.n > 0 ? at : BYTES_LIT("0-0"));
	bytes_copy(p->planned, sizeof(p->planned), redis_text(redis_at(reply, 1)));
	if (strcmp(p->planned, p->at) == 0)
		p->planned[0] = '\0';
	p->rung = true;
	p->not_before_us = 0;
	enter(p, PART_IDLE);
	turn_schedule(&p->journal->scan);
}

static void locate(struct part *p)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "HMGET");
	key_cursor(&key, p->number);
	redis_arg_key(&a, &key);
	redis_arg_str(&a, p->journal->spec.cursor);
	buf_addf(&key, "%s_to", p->journal->spec.cursor);
	redis_arg_key(&a, &key);
	buf_release(&key);
	enter(p, PART_LOCATING);
	if (redis_query(p->journal->redis, &a, on_cursor, p) != REDIS_SENT)
		forget(p, RETRY_MS);
}

/* ---- the cursor script ---- */

static bool move_cursor(
	struct part *p, const char *position, const char *planned, const struct buf *append, redis_cb cb)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	key_cursor(&key, p->number);
	redis_arg_key(&a, &key);
	key_owner(&key, p->number);
	redis_arg_key(&a, &key);
	key_journal(&key, p->number);
	redis_arg_key(&a, &key);
	redis_arg_str(&a, lease_name(p->journal->lease));
	redis_arg_str(&a, p->journal->spec.cursor);
	redis_arg_str(&a, position);
	if (planned[0] != '\0')
		buf_addf(&key, "%s_to", p->journal->spec.cursor);
	redis_arg_key(&a, &key);
	redis_arg_str(&a, planned);
	for (size_t i = 0; append != NULL && i < append->len; i += strlen(append->data + i) + 1)
		redis_arg_str(&a, append->data + i);
	buf_release(&key);
	return redis_eval(p->journal->redis, SCRIPT_CURSOR, 3, &a, cb, p) == REDIS_SENT;
}

/* The fuller a window was, the longer the next one may fill: many small windows would cost more than what is
 * in them, and a single event must not wait. Where more wait already there is nothing to wait for. */
static int64_t gap_after(const struct part *p)
{
	const struct journal_spec *spec = &p->journal->spec;
	int records = p->window.count;

	if (records < 2 || p->more)
		return 0;
	return records >= spec->busy_records ? spec->gap_ms : spec->gap_ms * records / spec->busy_records;
}

static void on_committed(const struct redisReply *reply, void *arg)
{
	struct part *p = arg;
	struct journal *j = p->journal;

	if (reply == NULL || redis_reply_error(reply) != NULL || redis_int(reply) != 1) {
		/* Not ours any more, or nobody knows: whoever owns it reads the cursor. */
		forget(p, RETRY_MS);
		return;
	}
	memcpy(p->at, p->last, sizeof(p->at));
	p->undone_ms = 0;
	p->planned[0] = '\0';
	p->moved = true;
	int64_t gap = gap_after(p);
	if (p->window.append.len > 0)
		p->rung = true;
	window_release(p);
	pause_part(p, gap);
	enter(p, PART_IDLE);
	turn_schedule(&j->scan);
}

void journal_done(struct journal *j, struct journal_window *window, bool ok)
{
	struct part *p = &j->parts[window->partition];

	if (!ok || p->stale) {
		forget(p, RETRY_MS);
		return;
	}
	enter(p, PART_COMMITTING);
	if (!move_cursor(p, p->last, "", &window->append, on_committed))
		forget(p, RETRY_MS);
}

/* ---- reading ---- */

static void process(struct part *p)
{
	p->stale = false;
	p->journal->windows++;
	p->journal->records += (uint64_t)p->window.count;
	enter(p, PART_PROCESSING);
	p->journal->spec.process(&p->window, p->journal->spec.arg);
}

static void on_planned(const struct redisReply *reply, void *arg)
{
	struct part *p = arg;

	if (reply == NULL || redis_reply_error(reply) != NULL || redis_int(reply) != 1)
		forget(p, RETRY_MS);
	else
		process(p);
}

/* How many entries of the reply make the window, how many records these have, and how many of their size may
 * be asked for next. */
static size_t measure(
	const struct part *p, const struct redisReply *reply, size_t *ret_records, size_t *ret_next)
{
	size_t records = 0, most = (size_t)p->journal->spec.records, bytes = 0, i = 0;

	/* A planned window ends where it was planned to. */
	while (i < redis_count(reply) && ((records < most && bytes < BYTES_MAX) || p->planned[0] != '\0')) {
		const struct redisReply *values = redis_at(redis_at(reply, i++), 1);
		records += redis_count(values) / 2;
		for (size_t v = 1; v < redis_count(values); v += 2)
			bytes += redis_text(redis_at(values, v)).n;
	}
	size_t by_records = i * most / (records + 1), by_bytes = i * BYTES_MAX / (bytes + 1);
	*ret_next = by_records < by_bytes ? by_records : by_bytes;
	*ret_records = records;
	return i;
}

static int64_t id_ms(const char *id)
{
	return strtoll(id, NULL, 10);
}

/* Copies the records out of the reply: first all text into one buffer, then the pointers into it. */
static void take_window(struct part *p, const struct redisReply *reply)
{
	const char *tag = partition_tag(p->number, keys_partitions());
	size_t records, next, at = 0, n = 0;
	size_t entries = measure(p, reply, &records, &next);

	p->window.records = xcalloc(records + 1, sizeof(p->window.records[0]));
	for (size_t i = 0; i < entries; i++) {
		struct bytes id = redis_text(redis_at(redis_at(reply, i), 0));
		const struct redisReply *values = redis_at(redis_at(reply, i), 1);
		for (size_t v = 1; v < redis_count(values); v += 2) {
			buf_addf(&p->text, "%s-%.*s-%zu", tag, (int)id.n, id.p, v / 2);
			p->window.records[n].ref.n = p->text.len - at;
			at = p->text.len;
			buf_add_bytes(&p->text, redis_text(redis_at(values, v)));
			p->window.records[n++].text.n = p->text.len - at;
			at = p->text.len;
		}
		bytes_copy(p->last, sizeof(p->last), id);
	}
	at = 0;
	for (size_t i = 0; i < n; i++) {
		p->window.records[i].ref.p = p->text.data + at;
		at += p->window.records[i].ref.n;
		p->window.records[i].text.p = p->text.data + at;
		at += p->window.records[i].text.n;
	}
	p->window.count = (int)n;
	p->window.last = bytes_of(p->last);
	p->undone_ms = id_ms(p->last);
	p->more = entries < redis_count(reply) || (int)redis_count(reply) == p->entries;
	p->entries = next > (size_t)p->journal->spec.entries ? p->journal->spec.entries
		     : next < ENTRIES_MIN                    ? ENTRIES_MIN
							     : (int)next;
}

static void on_entries(const struct redisReply *reply, void *arg)
{
	struct part *p = arg;

	if (!redis_is_array(reply)) {
		forget(p, RETRY_MS);
		return;
	}
	if (redis_count(reply) == 0) {
		p->more = false;
		p->undone_ms = 0;
		p->planned[0] = '\0';
		p->poll_us = clock_mono_us() + p->journal->spec.poll_ms * 1000;
		enter(p, PART_IDLE);
		return;
	}
	take_window(p, reply);
	if (!p->journal->spec.planned || p->planned[0] != '\0') {
		process(p);
		return;
	}
	enter(p, PART_PLANNING);
	if (!move_cursor(p, "", p->last, NULL, on_planned))
		forget(p, RETRY_MS);
}

static void read_window(struct part *p)
{
	struct redis_args a;
	struct buf text = BUF_INIT;

	p->rung = false;
	redis_args_init(&a);
	redis_arg_str(&a, "XRANGE");
	key_journal(&text, p->number);
	redis_arg_key(&a, &text);
	buf_addf(&text, "(%s", p->at);
	redis_arg_key(&a, &text);
	redis_arg_str(&a, p->planned[0] != '\0' ? p->planned : "+");
	redis_arg_str(&a, "COUNT");
	redis_arg_i64(&a, p->planned[0] != '\0' ? p->journal->spec.entries : p->entries);
	buf_release(&text);
	enter(p, PART_READING);
	if (redis_query(p->journal->redis, &a, on_entries, p) != REDIS_SENT)
		forget(p, RETRY_MS);
}

/* ---- trimming ---- */

static void on_trimmed(const struct redisReply *reply, void *arg)
{
	struct part *p = arg;

	if (reply != NULL && redis_reply_error(reply) == NULL)
		p->journal->left[p->number] = redis_int(reply);
}

static void trim(struct part *p)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	p->moved = false;
	p->trim_us = clock_mono_us() + TRIM_MS * 1000;
	redis_args_init(&a);
	key_journal(&key, p->number);
	redis_arg_key(&a, &key);
	key_cursor(&key, p->number);
	redis_arg_key(&a, &key);
	key_owner(&key, p->number);
	redis_arg_key(&a, &key);
	buf_release(&key);
	redis_arg_str(&a, lease_name(p->journal->lease));
	redis_arg_i64(&a, p->number == keys_org() ? ORG_KEEP_MS : 0);
	/* Not sent is not bad: the next move of the cursor asks again. */
	if (redis_eval(p->journal->redis, SCRIPT_TRIM, 3, &a, on_trimmed, p) != REDIS_SENT)
		p->moved = true;
}

/* ---- the scan ---- */

static void scan_part(struct part *p, int64_t now)
{
	bool ours = lease_holds(p->journal->lease, p->number);

	if (p->state == PART_IDLE && !ours)
		forget(p, 0);
	if (!ours || p->journal->stopped || now < p->not_before_us)
		return;
	if (p->state == PART_FOREIGN)
		locate(p);
	else if (p->state == PART_IDLE && (p->rung || p->more || now >= p->poll_us))
		read_window(p);
}

static void scan(void *arg)
{
	struct journal *j = arg;
	int64_t now = clock_mono_us();

	if (!redis_ready(j->redis))
		return;
	for (int i = 0; i <= keys_org(); i++) {
		struct part *p = &j->parts[i];
		scan_part(p, now);
		if (p->moved && now >= p->trim_us && lease_holds(j->lease, i))
			trim(p);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	scan(arg);
}

int64_t journal_lag_ms(const struct journal *j)
{
	struct timespec now;
	int64_t oldest = 0;

	/* Entry ids are Redis's real time, so a held clock does not apply. */
	clock_gettime(CLOCK_REALTIME, &now);
	for (int i = 0; i <= keys_org(); i++) {
		const struct part *p = &j->parts[i];
		if (p->undone_ms == 0 || !lease_holds(j->lease, i))
			continue;
		int64_t lag = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - p->undone_ms;
		oldest = lag > oldest ? lag : oldest;
	}
	return oldest;
}

int journal_busy(const struct journal *j)
{
	int busy = 0;

	for (int i = 0; i <= keys_org(); i++)
		busy += j->parts[i].state >= PART_READING;
	return busy;
}

bool journal_idle(const struct journal *j)
{
	for (int i = 0; i <= keys_org(); i++) {
		const struct part *p = &j->parts[i];
		if (lease_holds(j->lease, i) && (p->state != PART_IDLE || p->rung || p->more))
			return false;
	}
	return true;
}

static void write_info(struct buf *out, void *arg)
{
	const struct journal *j = arg;
	int64_t left = 0;

	for (int i = 0; i <= keys_org(); i++)
		left += lease_holds(j->lease, i) ? j->left[i] : 0;
	buf_addf(out,
		"cursor:%s\r\nlag_ms:%lld\r\nidle:%d\r\nwindows:%llu\r\nrecords:%llu\r\njournal_entries:%"
		"lld\r\n",
		j->spec.cursor, (long long)journal_lag_ms(j), journal_idle(j), (unsigned long long)j->windows,
		(unsigned long long)j->records, (long long)left);
}

/* Redis may come back as it was a second ago, by another clock: what it writes then can be earlier than what
 * has been read here. What Redis is asked ends with its own answer; a window that others work on is done
 * again from the cursor. */
static void on_link(void *arg)
{
	struct journal *j = arg;

	for (int i = 0; i <= PARTITIONS_MAX; i++) {
		if (j->parts[i].state == PART_IDLE)
			forget(&j->parts[i], 0);
		j->parts[i].stale = true;
	}
}

struct journal *journal_new(
	struct event_base *base, struct redis *redis, struct lease *lease, const struct journal_spec *spec)
{
	struct journal *j = xcalloc(1, sizeof(*j));
	struct timeval every = {0, TICK_MS * 1000};

	j->redis = redis;
	j->lease = lease;
	j->spec = *spec;
	for (int i = 0; i <= PARTITIONS_MAX; i++) {
		j->parts[i].journal = j;
		j->parts[i].number = j->parts[i].window.partition = i;
		j->parts[i].entries = ENTRIES_FIRST;
	}
	turn_task_init(&j->scan, scan, j);
	redis_on_change(redis, on_link, j);
	j->timer = event_new(base, -1, EV_PERSIST, on_timer, j);
	event_add(j->timer, &every);
	info_register(spec->planned ? "Relay" : "Ledger", write_info, j);
	return j;
}

void journal_free(struct journal *j)
{
	if (j == NULL)
		return;
	turn_cancel(&j->scan);
	for (int i = 0; i <= PARTITIONS_MAX; i++) {
		window_release(&j->parts[i]);
		buf_release(&j->parts[i].text);
	}
	event_free(j->timer);
	free(j);
}

void journal_doorbell(struct journal *j, int partition)
{
	j->parts[partition].rung = true;
	turn_schedule(&j->scan);
}

void journal_stop(struct journal *j)
{
	j->stopped = true;
}
