/* SPDX-License-Identifier: MIT */
/* Tasks: every change is one event of a script's batch (lua/task_*.lua), so state, places and journal change
 * together or not at all. What is sent gets exactly one answer, later, also when it could not be sent.
 *
 * Answers are lines whose first letter says what happened; E<text> (an error of Redis, for
 * redis_error_text()) and X (the task's own hash is damaged: CORRUPT) are possible everywhere, U where an id
 * is given: no such task. */
#ifndef PERSIST_TASK_H
#define PERSIST_TASK_H

#include "persist/batch.h"
#include "persist/task_id.h"

struct config;
struct redis;
struct tasks;

struct tasks *tasks_new(struct redis *redis, const struct config *config);
/* After the link has been freed. */
void tasks_free(struct tasks *t);

struct task_submit {
	struct bytes queue, payload;
	int priority;
	int64_t delay_ms;
	struct bytes key;    /* empty: none */
	int64_t window_ms;   /* 0: until done */
	int64_t max_retries; /* -1: the queue's */
	int64_t lease_ms;    /* 0: the queue's */
	bool full;           /* Redis has no room: only a repeat of a key that is held is answered */
};
/* N<id> made · D<id>|<status> the key is held by that one · B<text> over the budget, nothing was done */
void task_submit_send(struct tasks *t, const struct task_submit *submit, batch_cb cb, void *arg);

struct task_claim {
	struct bytes queue, worker;
	int64_t count, lease_ms; /* 0: the task's or the queue's */
	struct bytes waiter;     /* "<run>|<n>": is registered when there is nothing; empty: does not wait */
	struct bytes arrival;    /* of a waiter that has been registered before, as W told; else empty */
};
/* T<tasks, for task_claimed_next()> · N nothing there · W<arrival> registered as waiting */
void task_claim_send(struct tasks *t, const struct task_claim *claim, batch_cb cb, void *arg);

/* One task of a T answer. Everything points into the answer. */
struct task_claimed {
	struct bytes id, token;
	int64_t priority, attempt, deadline, submitted; /* instants in unix ms */
	int64_t lease;                                  /* ms */
	struct bytes payload;
};
/* Takes the next task from *rest, which begins as the answer without its T. False at the end. */
bool task_claimed_next(struct bytes *rest, struct task_claimed *ret) __attribute__((warn_unused_result));

enum task_end_verb { TASK_END_DONE, TASK_END_FAIL, TASK_END_RELEASE };
struct task_end {
	enum task_end_verb verb;
	struct bytes id, token;
	struct bytes text; /* DONE: the result; FAIL: the error; empty: none */
	int64_t delay_ms;  /* FAIL: -1 the queue's backoff */
};
/* O<status>|<queue>|<worker>|<retries>|<not before or -> it is so now, or was already by an earlier call with
 * this token · S the token does not hold */
void task_end_send(struct tasks *t, const struct task_end *end, batch_cb cb, void *arg);

/* O<deadline> · C<deadline> extended, but it is to be cancelled · S does not hold, or no such task.
 * `lease_ms` 0: as claimed. */
void task_beat_send(
	struct tasks *t, struct bytes id, struct bytes token, int64_t lease_ms, batch_cb cb, void *arg);

/* O cancelled · R running: its worker is told · F<status> has ended */
void task_cancel_send(struct tasks *t, struct bytes id, batch_cb cb, void *arg);
/* O ready · F<status> running or success · D<id> its key is held by that one */
void task_retry_send(struct tasks *t, struct bytes id, batch_cb cb, void *arg);

/* Of a queue: `word` is PAUSE, RESUME, GET or SET; for SET `names` and `values` of `count` settings, a value
 * empty for the default.
 * O<name>|<value>|<1 when it is the queue's own, else 0>, one line each, joined by ';' */
void task_queue_send(struct tasks *t, struct bytes queue, const char *word, const struct bytes *names,
	const struct bytes *values, size_t count, batch_cb cb, void *arg);

/* A wake-up that found its waiter gone goes on to the next. No answer. */
void task_wake_send(struct tasks *t, struct bytes queue, struct bytes waiter);

/* ARGV[1] of every task script: what holds for a queue that says nothing else. */
void task_defaults(struct buf *out, const struct config *config);

#endif
