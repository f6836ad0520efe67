/* SPDX-License-Identifier: MIT */
/* Claims that wait for a task. One that finds nothing is registered by the script, in order of arrival;
 * whoever makes a task ready takes out the first and puts it on the wake list of its daemon (a list a
 * partition), which tries it again in its old place. The lists are read by a blocking command on a link of
 * their own. What may go wrong on this way is lost: so the first of each queue is also tried once a second,
 * and when that gives something, those behind it.
 *
 * A daemon says once a second that it lives, since those that wait for one that has gone must not be woken in
 * vain for long. A claim that is no longer here passes its wake-up on. */
#ifndef PERSIST_TASK_WAIT_H
#define PERSIST_TASK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "persist/task.h"

struct event_base;
struct task_waiter;
struct task_waits;

struct task_waits *task_waits_new(
	struct event_base *base, struct redis *redis, struct tasks *tasks, const struct config *config);
/* After the link and the tasks have been freed. */
void task_waits_free(struct task_waits *waits);
void task_waits_start(struct task_waits *waits);
/* Those that wait end with nothing; no claim waits from now on. */
void task_waits_stop(struct task_waits *waits);

/* The answer as of task_claim_send(), but never W: N when the time is over. `waited`: it was not the first
 * try that gave it. */
typedef void (*task_wait_cb)(struct bytes line, const char *error, bool waited, void *arg);

/* Copies the claim, whose `waiter` and `arrival` don't matter. The result is valid until `cb` has been
 * called, which happens once, later. */
struct task_waiter *task_wait_begin(struct task_waits *waits, const struct task_claim *claim, int64_t wait_ms,
	task_wait_cb cb, void *arg);
/* It does not wait any longer: ends at once with N, or with the answer that is under way. */
void task_wait_end(struct task_waiter *waiter);

#endif
