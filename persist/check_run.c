/* SPDX-License-Identifier: MIT */
#include "persist/check_run.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/findings.h"

#define SCAN_COUNT   "500"
#define WORK_MS      8
#define PAUSE_MS     2
#define RETRY_MS     500
#define FAILURES_MAX 60 /* in a row */
#define ROUNDS_MAX   40
#define LOGGED_MAX   1000 /* repairs of a check, so that a million of them don't fill a disk */

struct wait {
	int64_t deadline_us;
	void (*fn)(void *arg);
	void *arg;
	TAILQ_ENTRY(wait) link;
};

struct check_run {
	struct redis *redis;
	struct event *timer;
	const struct check_ops *ops;
	void *arg;
	bool running, asking;
	int mode;
	const char *error;
	struct findings *findings;
	int round, failures;
	int64_t keys, items, skipped, fixed; /* of this round */
	int64_t rested_us;                   /* end of the last pause */
	int64_t began_us, took_ms, ended_ms;
	char cursor[24]; /* of SCAN */
	bool scanned;
	void (*take_key)(struct bytes key, void *arg);
	TAILQ_HEAD(, wait) waits;
};

static void arm(struct check_run *r, int64_t ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	event_add(r->timer, &tv);
}

/* The next step: at once, with a pause now and then, so that Redis is others' at least a fifth of the time.
 */
static void go_on(struct check_run *r)
{
	int64_t now = clock_mono_us();
	bool tired = now - r->rested_us > WORK_MS * 1000;

	if (tired)
		r->rested_us = now + PAUSE_MS * 1000;
	arm(r, tired ? PAUSE_MS : 0);
}

/* ---- rounds ---- */

static void begin_round(struct check_run *r)
{
	r->round++;
	r->keys = r->items = r->skipped = r->fixed = 0;
	r->scanned = false;
	snprintf(r->cursor, sizeof(r->cursor), "0");
	if (r->ops->begin_round != NULL)
		r->ops->begin_round(r->arg);
	go_on(r);
}

static void answer(struct check_run *r, bool late_only)
{
	struct wait *w, *next;
	int64_t now = clock_mono_us();

	for (w = TAILQ_FIRST(&r->waits); w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		if (late_only && now < w->deadline_us)
			continue;
		TAILQ_REMOVE(&r->waits, w, link);
		w->fn(w->arg);
		free(w);
	}
}

static void end(struct check_run *r, const char *error)
{
	r->ops->drop(r->arg);
	event_del(r->timer);
	r->running = false;
	r->error = error;
	r->took_ms = (clock_mono_us() - r->began_us) / 1000;
	r->ended_ms = clock_wall_ms();
	log_notice("persist %s event=%s mode=%s rounds=%d %s=%lld findings=%lld left=%lld ms=%lld",
		r->ops->name, error == NULL ? "done" : "failed", r->ops->modes[r->mode], r->round,
		r->ops->items, (long long)r->items, (long long)findings_count(r->findings),
		(long long)findings_left(r->findings), (long long)r->took_ms);
	answer(r, false);
}

/* Until a round repairs nothing more. */
static void end_round(struct check_run *r)
{
	bool again =
		r->fixed > 0 || (r->ops->again != NULL && r->ops->again(findings_left(r->findings), r->arg));

	findings_end_round(r->findings);
	if (r->fixed > 0 && r->ops->repaired != NULL)
		r->ops->repaired(r->arg);
	if (again && r->round < ROUNDS_MAX)
		begin_round(r);
	else
		end(r, NULL);
}

/* ---- steps ---- */

static void retry(struct check_run *r, const char *error)
{
	if (++r->failures > FAILURES_MAX)
		end(r, error);
	else
		arm(r, RETRY_MS);
}

bool check_run_answered(struct check_run *r, const struct redisReply *reply)
{
	const char *error = redis_reply_error(reply);

	r->asking = false;
	if (!r->running)
		return false;
	if (reply == NULL) {
		end(r, error);
		return false;
	}
	if (error != NULL || !redis_is_array(reply)) {
		retry(r, error != NULL ? error : "ERR the check was given an answer that it can't use");
		return false;
	}
	r->failures = 0;
	go_on(r);
	return true;
}

void check_run_add(struct check_run *r, const struct finding *f)
{
	bool fresh = findings_add(r->findings, f);

	r->fixed += f->repaired;
	if (f->repaired)
		log_line(findings_count(r->findings) <= LOGGED_MAX ? LOG_LEVEL_NOTICE : LOG_LEVEL_DEBUG,
			"persist %s event=repaired code=%.*s id=%.*s queue=%.*s detail=\"%.*s\"",
			r->ops->name, (int)f->code.n, f->code.p, (int)f->id.n, f->id.p, (int)f->queue.n,
			f->queue.p, (int)f->detail.n, f->detail.p);
	else
		r->ops->found(f, fresh, r->arg);
}

static void take_finding(struct check_run *r, struct bytes line)
{
	struct bytes f[5];

	if (bytes_split(line, '|', f, 5) != 5)
		return;
	struct finding finding = {.code = f[0],
		.id = f[1],
		.queue = f[2],
		.repaired = bytes_eq(f[3], BYTES_LIT("1")),
		.detail = f[4]};
	check_run_add(r, &finding);
}

void check_run_take(struct check_run *r, const struct redisReply *reply, size_t i)
{
	for (; i < redis_count(reply); i++) {
		struct bytes line = redis_text(redis_at(reply, i));
		if (line.n > 0 && strchr("+=-", line.p[0]) != NULL)
			r->ops->take(line.p[0], (struct bytes){line.p + 1, line.n - 1}, r->arg);
		else
			take_finding(r, line);
	}
}

static void step(struct check_run *r)
{
	if (!r->ops->find_work(r->arg)) {
		end_round(r);
		return;
	}
	enum redis_sent sent = r->ops->ask(r->arg);
	r->asking = sent == REDIS_SENT;
	if (sent == REDIS_FULL)
		retry(r, redis_sent_error(sent));
	else if (sent == REDIS_NOT_READY)
		end(r, redis_sent_error(sent));
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct check_run *r = arg;

	(void)fd;
	(void)what;
	answer(r, true);
	if (r->running && !r->asking)
		step(r);
}

/* ---- all keys ---- */

static void on_page(const struct redisReply *reply, void *arg)
{
	struct check_run *r = arg;
	const struct redisReply *keys = redis_at(reply, 1);

	if (!check_run_answered(r, reply))
		return;
	bytes_copy(r->cursor, sizeof(r->cursor), redis_text(redis_at(reply, 0)));
	r->scanned = strcmp(r->cursor, "0") == 0;
	for (size_t i = 0; i < redis_count(keys); i++)
		r->take_key(redis_text(redis_at(keys, i)), r->arg);
}

/* The prefix is configured and may hold what is special in a pattern. */
static void add_pattern(struct redis_args *a, const char *base)
{
	struct buf pattern = BUF_INIT;

	for (; *base != '\0'; base++) {
		if (strchr("*?[]\\", *base) != NULL)
			buf_add_char(&pattern, '\\');
		buf_add_char(&pattern, *base);
	}
	buf_add_char(&pattern, '*');
	redis_arg_key(a, &pattern);
	buf_release(&pattern);
}

enum redis_sent check_run_scan(struct check_run *r, const char *base, void (*fn)(struct bytes key, void *arg))
{
	struct redis_args a;

	r->take_key = fn;
	redis_args_init(&a);
	redis_arg_str(&a, "SCAN");
	redis_arg_str(&a, r->cursor);
	redis_arg_str(&a, "MATCH");
	add_pattern(&a, base);
	redis_arg_str(&a, "COUNT");
	redis_arg_str(&a, SCAN_COUNT);
	return redis_query(r->redis, &a, on_page, r);
}

bool check_run_scanned(const struct check_run *r)
{
	return r->scanned;
}

/* ---- outside ---- */

int check_run_mode(const struct check_run *r)
{
	return r->mode;
}

int check_run_round(const struct check_run *r)
{
	return r->round;
}

void check_run_count(struct check_run *r, int64_t keys, int64_t items, int64_t skipped)
{
	r->keys += keys;
	r->items += items;
	r->skipped += skipped;
}

static void write_info(struct buf *out, void *arg)
{
	const struct check_run *r = arg;
	const char *name = r->ops->name, *items = r->ops->items;
	struct check_report report;

	check_run_report(r, &report);
	int64_t count = findings_count(report.findings);
	buf_addf(out, "%s_state:%s\r\n%s_mode:%s\r\n", name, report.status, name, report.mode);
	buf_addf(out, "%s_round:%lld\r\n%s_keys:%lld\r\n", name, (long long)report.rounds, name,
		(long long)report.keys);
	buf_addf(out, "%s_%s:%lld\r\n", name, items, (long long)report.items);
	buf_addf(out, "%s_findings:%lld\r\n%s_repaired:%lld\r\n", name, (long long)count, name,
		(long long)(count - findings_left(report.findings)));
	buf_addf(out, "%s_ms:%lld\r\n", name, (long long)report.ms);
	buf_addf(out, "%s_%s_per_second:%lld\r\n", name, items,
		(long long)(report.ms > 0 ? report.items * 1000 / report.ms : 0));
	buf_addf(out, "%s_ended:%lld\r\n", name, (long long)r->ended_ms);
}

struct check_run *check_run_new(
	struct event_base *base, struct redis *redis, const struct check_ops *ops, void *arg)
{
	struct check_run *r = xcalloc(1, sizeof(*r));

	r->redis = redis;
	r->ops = ops;
	r->arg = arg;
	TAILQ_INIT(&r->waits);
	r->findings = findings_new();
	r->timer = event_new(base, -1, 0, on_timer, r);
	info_register(ops->section, write_info, r);
	return r;
}

void check_run_free(struct check_run *r)
{
	findings_free(r->findings);
	event_free(r->timer);
	free(r);
}

void check_run_stop(struct check_run *r)
{
	if (r->running)
		end(r, "NOTREADY shutting down; what was repaired stays so");
}

bool check_run_start(struct check_run *r, int mode)
{
	if (r->running)
		return r->mode == mode;
	findings_free(r->findings);
	r->findings = findings_new();
	r->running = true;
	r->mode = mode;
	r->round = r->failures = 0;
	r->error = NULL;
	r->began_us = clock_mono_us();
	begin_round(r);
	return true;
}

void check_run_wait(struct check_run *r, int64_t timeout_ms, void (*fn)(void *arg), void *arg)
{
	struct wait *w = xmalloc(sizeof(*w));

	*w = (struct wait){.deadline_us = clock_mono_us() + timeout_ms * 1000, .fn = fn, .arg = arg};
	TAILQ_INSERT_TAIL(&r->waits, w, link);
}

void check_run_report(const struct check_run *r, struct check_report *ret)
{
	*ret = (struct check_report){.status = "none",
		.mode = r->round > 0 ? r->ops->modes[r->mode] : "",
		.error = r->running ? NULL : r->error,
		.item_name = r->ops->items,
		.queued = r->ops->queued,
		.rounds = r->round,
		.keys = r->keys,
		.items = r->items,
		.skipped = r->skipped,
		.ms = r->running ? (clock_mono_us() - r->began_us) / 1000 : r->took_ms,
		.findings = r->findings};
	if (r->running)
		ret->status = "running";
	else if (r->round > 0)
		ret->status = r->error != NULL ? "failed" : "done";
}
