/* SPDX-License-Identifier: MIT */
#include "persist/task_sweep.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/keys.h"
#include "persist/lease.h"
#include "persist/partition.h"
#include "persist/redis.h"
#include "persist/task.h"

#define LOOK_MS     200
#define PAGE        32  /* due queues of a partition that one look sees */
#define ITEMS       100 /* of one call: 1 to 2 ms of Redis, during which nobody else is served */
#define REST_MS     1000
#define REST_MAX_MS 60000
#define WARN_MS     1000 /* between two warnings of quarantined entries */

enum queue_state {
	QUEUE_WAITING, /* for its turn */
	QUEUE_ASKED,   /* a call is under way */
	QUEUE_RESTING  /* its last call failed */
};

/* A queue that is due, or was when it failed. Owned by the table. */
struct queue {
	UT_hash_handle hh;
	TAILQ_ENTRY(queue) link; /* while waiting */
	struct task_sweep *sweep;
	int partition;
	enum queue_state state;
	int failures; /* in a row */
	int64_t rest_until_us;
	char name[ID_MAX + 1];
};

/* What a call has done, in the order of its reply. */
enum sweep_count {
	SWEEP_MORE,
	SWEEP_EXPIRED,
	SWEEP_PROMOTED,
	SWEEP_TIMED_OUT,
	SWEEP_FAILED,
	SWEEP_CANCELLED,
	SWEEP_REMOVED,
	SWEEP_QUARANTINED,
	SWEEP_JOURNALLED,
	SWEEP_COUNTS
};

struct part {
	struct task_sweep *sweep;
	int number;
	int resting; /* queues, which stay in front of `due` meanwhile */
	bool damaged;
};

struct task_sweep {
	struct task_sweep_deps deps;
	struct event *timer;
	struct part parts[PARTITIONS_MAX];
	struct queue *queues;
	TAILQ_HEAD(, queue) waiting;
	bool calling; /* one at a time, so that others come in between */
	int looking;  /* answers that a look still waits for */
	bool stopped;
	int64_t now_us;           /* of Redis, when the look began */
	int64_t late_us, late_ms; /* the longest that a queue has been due: of this look, of the last one */
	int64_t warned_us;
	int64_t unwarned; /* quarantined entries */
	uint64_t calls, failures;
	int64_t totals[SWEEP_COUNTS];
};

/* ---- queues ---- */

static void leave_state(struct queue *q)
{
	struct task_sweep *s = q->sweep;

	if (q->state == QUEUE_WAITING)
		TAILQ_REMOVE(&s->waiting, q, link);
	else if (q->state == QUEUE_RESTING)
		s->parts[q->partition].resting--;
}

static void set_state(struct queue *q, enum queue_state state)
{
	static const char *const names[] = {"waiting", "asked", "resting"};
	struct task_sweep *s = q->sweep;

	log_debug("persist sweep event=state queue=%s from=%s to=%s", q->name, names[q->state], names[state]);
	leave_state(q);
	q->state = state;
	if (state == QUEUE_WAITING)
		TAILQ_INSERT_TAIL(&s->waiting, q, link);
	else if (state == QUEUE_RESTING)
		s->parts[q->partition].resting++;
}

static void forget(struct queue *q)
{
	leave_state(q);
	HASH_DEL(q->sweep->queues, q);
	free(q);
}

/* They are found again when they are still due. */
static void forget_waiting(struct task_sweep *s)
{
	struct queue *q;

	while ((q = TAILQ_FIRST(&s->waiting)) != NULL)
		forget(q);
}

static void add_due(struct part *part, struct bytes name)
{
	struct task_sweep *s = part->sweep;
	struct queue *q;

	HASH_FIND(hh, s->queues, name.p, name.n, q);
	if (q == NULL) {
		q = xcalloc(1, sizeof(*q));
		q->sweep = s;
		q->partition = part->number;
		bytes_copy(q->name, sizeof(q->name), name);
		HASH_ADD_KEYPTR(hh, s->queues, q->name, name.n, q);
		TAILQ_INSERT_TAIL(&s->waiting, q, link);
	} else if (q->state == QUEUE_RESTING && clock_mono_us() >= q->rest_until_us) {
		set_state(q, QUEUE_WAITING);
	}
}

/* ---- sweeping ---- */

static void run(struct task_sweep *s);

/* Damage comes in heaps: one line a second says how much. */
static void warn(struct task_sweep *s, const char *queue)
{
	int64_t now = clock_mono_us();

	if (s->unwarned == 0 || now - s->warned_us < WARN_MS * 1000)
		return;
	log_warning("persist sweep event=quarantined entries=%lld queue=%s", (long long)s->unwarned, queue);
	s->unwarned = 0;
	s->warned_us = now;
}

static bool read_counts(struct bytes text, int64_t counts[SWEEP_COUNTS])
{
	struct bytes f[SWEEP_COUNTS];

	if (bytes_split(text, '|', f, SWEEP_COUNTS) != SWEEP_COUNTS)
		return false;
	for (int i = 0; i < SWEEP_COUNTS; i++) {
		if (!bytes_to_i64(f[i], &counts[i]))
			return false;
	}
	return true;
}

static void take_counts(struct queue *q, const int64_t counts[SWEEP_COUNTS])
{
	struct task_sweep *s = q->sweep;

	for (int i = 0; i < SWEEP_COUNTS; i++)
		s->totals[i] += counts[i];
	s->unwarned += counts[SWEEP_QUARANTINED];
	warn(s, q->name);
	if (counts[SWEEP_JOURNALLED] != 0)
		s->deps.journalled(q->partition, s->deps.arg);
	q->failures = 0;
	if (counts[SWEEP_MORE] != 0)
		set_state(q, QUEUE_WAITING);
	else
		forget(q);
}

static void rest(struct queue *q, const char *error)
{
	int64_t ms = REST_MS << (q->failures < 6 ? q->failures : 6);

	q->sweep->failures++;
	log_line(q->failures == 0 ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG,
		"persist sweep event=failed queue=%s reason=\"%s\"", q->name, error);
	q->failures++;
	q->rest_until_us = clock_mono_us() + (ms < REST_MAX_MS ? ms : REST_MAX_MS) * 1000;
	set_state(q, QUEUE_RESTING);
}

/* Redis as a whole does not take it now; it is not the queue's fault. */
static bool is_passing(const char *error)
{
	return strncmp(error, "ERR ", 4) != 0;
}

static void on_swept(const struct redisReply *reply, void *arg)
{
	struct queue *q = arg;
	struct task_sweep *s = q->sweep;
	const char *error = redis_reply_error(reply);
	int64_t counts[SWEEP_COUNTS];

	s->calling = false;
	if (error != NULL && is_passing(error)) {
		forget(q);
		forget_waiting(s);
		return;
	}
	if (error == NULL && read_counts(redis_text(reply), counts))
		take_counts(q, counts);
	else
		rest(q, error != NULL ? error : "its keys are damaged; TASK.CHECK tells which");
	run(s);
}

static enum redis_sent ask(struct queue *q)
{
	const struct task_sweep_deps *deps = &q->sweep->deps;
	struct redis_args a;
	struct buf text = BUF_INIT;

	redis_args_init(&a);
	key_queue_info(&text, bytes_of(q->name));
	redis_arg_key(&a, &text);
	task_defaults(&text, deps->config);
	redis_arg_key(&a, &text);
	buf_release(&text);
	redis_arg_i64(&a, ITEMS);
	return redis_eval(deps->redis, SCRIPT_TASK_SWEEP, 1, &a, on_swept, q);
}

static void run(struct task_sweep *s)
{
	struct queue *q;

	while (!s->calling && (q = TAILQ_FIRST(&s->waiting)) != NULL) {
		if (s->stopped || !lease_holds(s->deps.lease, q->partition)) {
			forget(q);
			continue;
		}
		set_state(q, QUEUE_ASKED);
		if (ask(q) != REDIS_SENT) {
			forget(q);
			forget_waiting(s);
			return;
		}
		s->calling = true;
		s->calls++;
	}
}

/* ---- looking ---- */

static void on_dropped(const struct redisReply *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

/* What is not a queue of this partition can't be swept, ever. */
static void quarantine(struct part *part, struct bytes member)
{
	struct redis *redis = part->sweep->deps.redis;
	struct buf text = BUF_INIT;
	struct redis_args a;

	redis_args_init(&a);
	redis_arg_str(&a, "ZADD");
	key_part(&text, part->number, "quarantine");
	redis_arg_key(&a, &text);
	redis_arg_i64(&a, part->sweep->now_us);
	buf_add_str(&text, "due||");
	buf_add_bytes(&text, member);
	redis_arg_key(&a, &text);
	if (redis_send(redis, &a, on_dropped, NULL) == REDIS_SENT) {
		redis_args_init(&a);
		redis_arg_str(&a, "ZREM");
		key_part(&text, part->number, "due");
		redis_arg_key(&a, &text);
		redis_arg(&a, member);
		/* Not sent is not bad: it is met again. */
		(void)!redis_send(redis, &a, on_dropped, NULL);
	}
	buf_release(&text);
	part->sweep->totals[SWEEP_QUARANTINED]++;
	part->sweep->unwarned++;
	warn(part->sweep, "-");
}

static void end_answer(struct task_sweep *s)
{
	if (--s->looking > 0)
		return;
	s->late_ms = s->late_us / 1000;
	run(s);
}

static void on_time(const struct redisReply *reply, void *arg)
{
	struct task_sweep *s = arg;

	/* 0, so that nothing is due, when there is no answer. */
	s->now_us = redis_int(redis_at(reply, 0)) * 1000000 + redis_int(redis_at(reply, 1));
	end_answer(s);
}

static void take_due(struct part *part, struct bytes name, struct bytes score)
{
	struct task_sweep *s = part->sweep;
	double since = strtod(score.p, NULL);

	if (since > (double)s->now_us)
		return;
	if (since > 0 && s->now_us - (int64_t)since > s->late_us)
		s->late_us = s->now_us - (int64_t)since;
	if (id_valid(name) && keys_partition_of(name) == part->number)
		add_due(part, name);
	else
		quarantine(part, name);
}

static void on_due(const struct redisReply *reply, void *arg)
{
	struct part *part = arg;
	bool damaged = redis_wrong_type(reply);

	if (damaged && !part->damaged)
		log_error("persist sweep event=failed partition=%d reason=\"due is of another type\"",
			part->number);
	part->damaged = damaged;
	for (size_t i = 0; i + 1 < redis_count(reply); i += 2)
		take_due(part, redis_text(redis_at(reply, i)), redis_text(redis_at(reply, i + 1)));
	end_answer(part->sweep);
}

static bool send_look(struct task_sweep *s, struct redis_args *a, redis_cb cb, void *arg)
{
	bool sent = redis_query(s->deps.redis, a, cb, arg) == REDIS_SENT;

	s->looking += sent;
	return sent;
}

/* The first queues by when they are due: those after Redis's time, which is asked for first, are not yet. */
static bool ask_due(struct part *part)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "ZRANGE");
	key_part(&key, part->number, "due");
	redis_arg_key(&a, &key);
	buf_release(&key);
	redis_arg_i64(&a, 0);
	redis_arg_i64(&a, PAGE + part->resting - 1);
	redis_arg_str(&a, "WITHSCORES");
	return send_look(part->sweep, &a, on_due, part);
}

static void look(struct task_sweep *s)
{
	struct redis_args a;

	redis_args_init(&a);
	redis_arg_str(&a, "TIME");
	s->late_us = 0;
	if (!send_look(s, &a, on_time, s))
		return;
	for (int p = 0; p < keys_partitions(); p++) {
		if (lease_holds(s->deps.lease, p) && !ask_due(&s->parts[p]))
			return;
	}
}

/* One that nobody has found due again since is well, or somebody else's. */
static void forget_rested(struct task_sweep *s)
{
	struct queue *q, *tmp;
	int64_t past = clock_mono_us() - REST_MAX_MS * 1000;

	HASH_ITER (hh, s->queues, q, tmp) {
		if (q->state == QUEUE_RESTING && q->rest_until_us < past)
			forget(q);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct task_sweep *s = arg;

	(void)fd;
	(void)what;
	forget_rested(s);
	if (!s->stopped && s->looking == 0 && redis_ready(s->deps.redis))
		look(s);
}

/* ---- life ---- */

static void write_info(struct buf *out, void *arg)
{
	const struct task_sweep *s = arg;
	static const char *const names[SWEEP_COUNTS] = {[SWEEP_EXPIRED] = "expired",
		[SWEEP_PROMOTED] = "promoted",
		[SWEEP_TIMED_OUT] = "timed_out",
		[SWEEP_FAILED] = "failed",
		[SWEEP_CANCELLED] = "cancelled",
		[SWEEP_REMOVED] = "removed",
		[SWEEP_QUARANTINED] = "quarantined"};
	int resting = 0;

	for (int p = 0; p < keys_partitions(); p++)
		resting += s->parts[p].resting;
	buf_addf(out, "sweep_calls:%llu\r\nsweep_failures:%llu\r\n", (unsigned long long)s->calls,
		(unsigned long long)s->failures);
	for (int i = 0; i < SWEEP_COUNTS; i++) {
		if (names[i] != NULL)
			buf_addf(out, "sweep_%s:%lld\r\n", names[i], (long long)s->totals[i]);
	}
	buf_addf(out, "sweep_queues_due:%u\r\nsweep_queues_resting:%d\r\nsweep_late_ms:%lld\r\n",
		HASH_COUNT(s->queues) - (unsigned)resting, resting, (long long)s->late_ms);
}

struct task_sweep *task_sweep_new(const struct task_sweep_deps *deps)
{
	struct task_sweep *s = xcalloc(1, sizeof(*s));
	struct timeval every = {0, LOOK_MS * 1000};

	s->deps = *deps;
	TAILQ_INIT(&s->waiting);
	for (int p = 0; p < keys_partitions(); p++)
		s->parts[p] = (struct part){.sweep = s, .number = p};
	s->timer = event_new(deps->base, -1, EV_PERSIST, on_timer, s);
	event_add(s->timer, &every);
	info_register("Sweep", write_info, s);
	return s;
}

void task_sweep_free(struct task_sweep *s)
{
	struct queue *q, *tmp;

	if (s == NULL)
		return;
	HASH_ITER (hh, s->queues, q, tmp)
		forget(q);
	event_free(s->timer);
	free(s);
}

void task_sweep_stop(struct task_sweep *s)
{
	s->stopped = true;
	forget_waiting(s);
}
