/* SPDX-License-Identifier: MIT */
#include "persist/task_wait.h"

#include <assert.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/hash.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/keys.h"
#include "persist/partition.h"
#include "persist/redis.h"

#define TICK_MS      50
#define LOOK_US      INT64_C(1000000)
#define ALIVE_MS     3000 /* so long a daemon that says nothing is woken */
#define BLOCK_MAX_MS 1000
#define WAKES_MAX    100 /* read at once */
#define LOOKS_NEXT   2   /* tried when the look at one has given something */

enum waiter_state {
	WAITER_TRYING, /* its claim is at Redis, and ends or registers it */
	WAITER_PARKED, /* registered in Redis, or on a wake list */
};

struct task_waiter {
	uint64_t number;
	struct task_waits *waits;
	struct wait_queue *queue;
	enum waiter_state state;
	bool again;  /* was woken while it was tried */
	bool looked; /* is tried without having been woken */
	int64_t deadline_us;
	int64_t count, lease_ms;
	char worker[ID_MAX + 1];
	char arrival[24]; /* as the script told; "" before it was registered, and it is not in the queue's
			     list */
	task_wait_cb cb;
	void *arg;
	TAILQ_ENTRY(task_waiter) link;
	UT_hash_handle hh;
};

/* A queue for which somebody waits here. */
struct wait_queue {
	char name[ID_MAX + 1];
	int partition;
	unsigned users;
	TAILQ_HEAD(, task_waiter) waiters; /* in order of arrival */
	UT_hash_handle hh;
};

struct task_waits {
	struct redis *redis, *wake;
	struct tasks *tasks;
	const struct config *config;
	struct event *timer; /* runs while somebody waits */
	char run[17];        /* the name of this run of the daemon */
	uint64_t last_number;
	struct task_waiter *waiters; /* by number, in order of their beginning */
	struct wait_queue *queues;   /* by name */
	int64_t looked_us;
	int64_t alive_us[PARTITIONS_MAX]; /* when it was last said that we live */
	bool reading, stopped;
	int first_key;   /* of the next reading: each list is the first in turn */
	struct buf lost; /* <queue>|<number> a line: what the link's loss may have left registered */
	uint64_t woken, passed_on, rescued;
};

/* ---- queues ---- */

static struct wait_queue *queue_join(struct task_waits *waits, struct bytes name)
{
	struct wait_queue *q;

	HASH_FIND(hh, waits->queues, name.p, name.n, q);
	if (q == NULL) {
		q = xcalloc(1, sizeof(*q));
		bytes_copy(q->name, sizeof(q->name), name);
		q->partition = keys_partition_of(name);
		TAILQ_INIT(&q->waiters);
		HASH_ADD(hh, waits->queues, name, name.n, q);
	}
	q->users++;
	return q;
}

static void queue_leave(struct task_waits *waits, struct wait_queue *q)
{
	if (--q->users > 0)
		return;
	HASH_DEL(waits->queues, q);
	free(q);
}

/* ---- one claim ---- */

static void on_tried(struct bytes line, const char *error, void *arg);

static void set_state(struct task_waiter *w, enum waiter_state state)
{
	static const char *const names[] = {"trying", "parked"};

	log_debug("claim %llu event=state %s -> %s queue=%s", (unsigned long long)w->number, names[w->state],
		names[state], w->queue->name);
	w->state = state;
}

/* The name under which a claim is registered. */
static struct bytes member(const struct task_waits *waits, uint64_t number, char text[48])
{
	int n = snprintf(text, 48, "%s|%llu", waits->run, (unsigned long long)number);
	return (struct bytes){text, (size_t)n};
}

static void send_claim(struct task_waiter *w)
{
	char text[48];
	const struct task_claim claim = {
		.queue = bytes_of(w->queue->name),
		.worker = bytes_of(w->worker),
		.count = w->count,
		.lease_ms = w->lease_ms,
		.waiter = member(w->waits, w->number, text),
		.arrival = bytes_of(w->arrival),
	};

	w->again = false;
	task_claim_send(w->waits->tasks, &claim, on_tried, w);
}

static void try_again(struct task_waiter *w, bool looked)
{
	set_state(w, WAITER_TRYING);
	w->looked = looked;
	send_claim(w);
}

static void finish(struct task_waiter *w, struct bytes line, const char *error)
{
	struct task_waits *waits = w->waits;
	struct wait_queue *q = w->queue;
	bool waited = w->arrival[0] != '\0';

	HASH_DEL(waits->waiters, w);
	if (waited)
		TAILQ_REMOVE(&q->waiters, w, link);
	w->cb(line, error, waited, w->arg);
	queue_leave(waits, q);
	free(w);
}

static void ignore(const struct redisReply *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

static void unregister(struct task_waits *waits, struct bytes queue, uint64_t number)
{
	struct redis_args a;
	struct buf key = BUF_INIT;
	char text[48];

	redis_args_init(&a);
	redis_arg_str(&a, "ZREM");
	key_part(&key, keys_partition_of(queue), "waiting:");
	buf_add_bytes(&key, queue);
	redis_arg_key(&a, &key);
	redis_arg(&a, member(waits, number, text));
	buf_release(&key);
	/* If it can't be sent, its turn comes, and is passed on. */
	if (redis_send(waits->redis, &a, ignore, NULL) != REDIS_SENT)
		log_debug("claim %llu event=left_registered", (unsigned long long)number);
}

/* Ends a parked claim with nothing. If it has been taken out to be woken, the word that says so finds it gone
 * and is passed on. */
static void leave(struct task_waiter *w)
{
	struct bytes queue = bytes_of(w->queue->name);
	char text[48];

	unregister(w->waits, queue, w->number);
	if (w->again)
		task_wake_send(w->waits->tasks, queue, member(w->waits, w->number, text));
	finish(w, BYTES_LIT("N"), NULL);
}

/* The link was lost under a claim: it is over, and may still be registered. */
static void lose(struct task_waiter *w, const char *error)
{
	buf_addf(&w->waits->lost, "%s|%llu\n", w->queue->name, (unsigned long long)w->number);
	finish(w, (struct bytes){"", 0}, error);
}

/* The first that wait for a queue are tried although nobody has woken them. */
static void look(struct wait_queue *q, int most)
{
	struct task_waiter *w;

	TAILQ_FOREACH (w, &q->waiters, link) {
		if (most-- == 0)
			return;
		if (w->state == WAITER_PARKED)
			try_again(w, true);
	}
}

static void park(struct task_waiter *w, struct bytes arrival)
{
	if (w->arrival[0] == '\0')
		TAILQ_INSERT_TAIL(&w->queue->waiters, w, link);
	bytes_copy(w->arrival, sizeof(w->arrival), arrival);
	set_state(w, WAITER_PARKED);
	if (clock_mono_us() >= w->deadline_us)
		leave(w);
	else if (w->again)
		try_again(w, false);
}

static void on_tried(struct bytes line, const char *error, void *arg)
{
	struct task_waiter *w = arg;
	struct task_waits *waits = w->waits;
	struct wait_queue *q = w->queue;
	char letter = line.n > 0 ? line.p[0] : '\0';

	if (error == NULL && letter == 'W') {
		park(w, (struct bytes){line.p + 1, line.n - 1});
		return;
	}
	if (error != NULL && !redis_ready(waits->redis)) {
		lose(w, error);
		return;
	}
	bool rescued = letter == 'T' && w->looked && !w->again;
	waits->rescued += rescued;
	q->users++; /* stays for the look */
	finish(w, line, error);
	if (rescued)
		look(q, LOOKS_NEXT);
	queue_leave(waits, q);
}

void task_wait_end(struct task_waiter *w)
{
	w->deadline_us = 0;
	if (w->state == WAITER_PARKED)
		leave(w);
}

/* ---- being woken ---- */

static void read_wakes(struct task_waits *waits);

/* `word` is <queue>|<number>. */
static void wake(struct task_waits *waits, struct bytes word)
{
	struct bytes queue = bytes_cut(&word, '|');
	struct task_waiter *w = NULL;
	char gone[48];
	int64_t number;

	if (!id_valid(queue) || !bytes_to_i64(word, &number))
		return;
	HASH_FIND(hh, waits->waiters, &number, sizeof(w->number), w);
	if (w == NULL) {
		waits->passed_on++;
		task_wake_send(waits->tasks, queue, member(waits, (uint64_t)number, gone));
		return;
	}
	waits->woken++;
	if (w->state == WAITER_PARKED)
		try_again(w, false);
	else
		w->again = true;
}

static void on_wakes(const struct redisReply *reply, void *arg)
{
	struct task_waits *waits = arg;
	const struct redisReply *words = redis_at(reply, 1);

	waits->reading = false;
	for (size_t i = 0; i < redis_count(words); i++)
		wake(waits, redis_text(redis_at(words, i)));
	/* After an error the next look reads again. */
	if (redis_reply_error(reply) == NULL)
		read_wakes(waits);
}

/* Well within the time after which the link would be given up. */
static int64_t block_ms(const struct task_waits *waits)
{
	int64_t ms = waits->config->redis_timeout / 4;
	return ms < BLOCK_MAX_MS ? ms : BLOCK_MAX_MS;
}

/* Over all partitions, so that a claim can come to wait in another one meanwhile. */
static void read_wakes(struct task_waits *waits)
{
	struct redis_args a;
	struct buf text = BUF_INIT;
	int partitions = keys_partitions();

	if (waits->reading || waits->waiters == NULL || !redis_ready(waits->wake))
		return;
	redis_args_init(&a);
	redis_arg_str(&a, "BLMPOP");
	buf_addf(&text, "%.3f", (double)block_ms(waits) / 1000);
	redis_arg_key(&a, &text);
	redis_arg_i64(&a, partitions);
	for (int i = 0; i < partitions; i++) {
		key_part(&text, (waits->first_key + i) % partitions, "wake:");
		buf_add_str(&text, waits->run);
		redis_arg_key(&a, &text);
	}
	buf_release(&text);
	redis_arg_str(&a, "LEFT");
	redis_arg_str(&a, "COUNT");
	redis_arg_i64(&a, WAKES_MAX);
	waits->first_key = (waits->first_key + 1) % partitions;
	waits->reading = redis_send(waits->wake, &a, on_wakes, waits) == REDIS_SENT;
}

static void on_wake_link(void *arg)
{
	read_wakes(arg);
}

/* ---- all of them ---- */

static void keep_alive(struct task_waits *waits, int partition, int64_t now_us)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	if (now_us - waits->alive_us[partition] < LOOK_US)
		return;
	redis_args_init(&a);
	redis_arg_str(&a, "SET");
	key_part(&key, partition, "waits:");
	buf_add_str(&key, waits->run);
	redis_arg_key(&a, &key);
	buf_release(&key);
	redis_arg_str(&a, "1");
	redis_arg_str(&a, "PX");
	redis_arg_i64(&a, ALIVE_MS);
	if (redis_send(waits->redis, &a, ignore, NULL) == REDIS_SENT)
		waits->alive_us[partition] = now_us;
}

static void expire(struct task_waits *waits, int64_t now_us)
{
	struct task_waiter *w, *next;

	HASH_ITER (hh, waits->waiters, w, next) {
		if (w->state == WAITER_PARKED && now_us >= w->deadline_us)
			leave(w);
	}
}

static void look_after_all(struct task_waits *waits, int64_t now_us)
{
	struct wait_queue *q, *next;

	waits->looked_us = now_us;
	HASH_ITER (hh, waits->queues, q, next) {
		keep_alive(waits, q->partition, now_us);
		look(q, 1);
	}
	read_wakes(waits);
}

static void arm(struct task_waits *waits)
{
	event_add(waits->timer, &(struct timeval){0, TICK_MS * 1000});
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct task_waits *waits = arg;
	int64_t now_us = clock_mono_us();

	(void)fd;
	(void)what;
	expire(waits, now_us);
	if (now_us - waits->looked_us >= LOOK_US)
		look_after_all(waits, now_us);
	if (waits->waiters != NULL)
		arm(waits);
}

static void unregister_lost(struct task_waits *waits)
{
	struct bytes rest = buf_bytes(&waits->lost);

	while (rest.n > 0) {
		struct bytes word = bytes_cut(&rest, '\n');
		struct bytes queue = bytes_cut(&word, '|');
		int64_t number;
		if (bytes_to_i64(word, &number))
			unregister(waits, queue, (uint64_t)number);
	}
	buf_release(&waits->lost);
}

/* Those that are tried end with their answer, which is lost too. */
static void on_link(void *arg)
{
	struct task_waits *waits = arg;
	struct task_waiter *w, *next;

	if (redis_ready(waits->redis)) {
		unregister_lost(waits);
		return;
	}
	memset(waits->alive_us, 0, sizeof(waits->alive_us));
	HASH_ITER (hh, waits->waiters, w, next) {
		if (w->state == WAITER_PARKED)
			lose(w, redis_sent_error(REDIS_NOT_READY));
	}
}

struct task_waiter *task_wait_begin(
	struct task_waits *waits, const struct task_claim *claim, int64_t wait_ms, task_wait_cb cb, void *arg)
{
	struct task_waiter *w = xcalloc(1, sizeof(*w));
	int64_t now_us = clock_mono_us();

	w->number = ++waits->last_number;
	w->waits = waits;
	w->queue = queue_join(waits, claim->queue);
	w->deadline_us = waits->stopped ? 0 : now_us + wait_ms * 1000;
	w->count = claim->count;
	w->lease_ms = claim->lease_ms;
	bytes_copy(w->worker, sizeof(w->worker), claim->worker);
	w->cb = cb;
	w->arg = arg;
	HASH_ADD(hh, waits->waiters, number, sizeof(w->number), w);
	keep_alive(waits, w->queue->partition, now_us);
	send_claim(w);
	read_wakes(waits);
	if (!evtimer_pending(waits->timer, NULL))
		arm(waits);
	return w;
}

void task_waits_stop(struct task_waits *waits)
{
	struct task_waiter *w, *next;

	waits->stopped = true;
	HASH_ITER (hh, waits->waiters, w, next)
		task_wait_end(w);
}

static void write_info(struct buf *out, void *arg)
{
	const struct task_waits *waits = arg;

	buf_addf(out,
		"claims_waiting:%u\r\nclaims_woken:%llu\r\nwakes_passed_on:%llu\r\nclaims_rescued:%llu\r\n",
		HASH_COUNT(waits->waiters), (unsigned long long)waits->woken,
		(unsigned long long)waits->passed_on, (unsigned long long)waits->rescued);
}

struct task_waits *task_waits_new(
	struct event_base *base, struct redis *redis, struct tasks *tasks, const struct config *config)
{
	struct task_waits *waits = xcalloc(1, sizeof(*waits));
	uint64_t random;

	waits->redis = redis;
	waits->tasks = tasks;
	waits->config = config;
	waits->wake = redis_new(base, config, REDIS_WAKE);
	waits->timer = evtimer_new(base, on_tick, waits);
	evutil_secure_rng_get_bytes(&random, sizeof(random));
	snprintf(waits->run, sizeof(waits->run), "%016llx", (unsigned long long)random);
	redis_on_change(redis, on_link, waits);
	redis_on_change(waits->wake, on_wake_link, waits);
	info_register("Waiting claims", write_info, waits);
	return waits;
}

void task_waits_start(struct task_waits *waits)
{
	redis_start(waits->wake);
}

void task_waits_free(struct task_waits *waits)
{
	if (waits == NULL)
		return;
	assert(waits->waiters == NULL);
	redis_free(waits->wake);
	event_free(waits->timer);
	buf_release(&waits->lost);
	free(waits);
}
