/* SPDX-License-Identifier: MIT */
/* Looking at tasks and queues: lua/task_get.lua and lua/task_stats.lua, as they are asked in one turn of the
 * loop. */
#ifndef PERSIST_TASK_READ_H
#define PERSIST_TASK_READ_H

#include "persist/batch.h"

struct redis;
struct task_reads;

struct task_reads *task_reads_new(struct redis *redis);
/* After the link has been freed. */
void task_reads_free(struct task_reads *r);

/* T<row, for task_row_read()> · U no such task · X it is damaged · A ask again. `id` has been checked. */
void task_get_send(struct task_reads *r, struct bytes id, batch_cb cb, void *arg);
/* A row for task_stats_read(). */
void task_stats_send(struct task_reads *r, struct bytes queue, batch_cb cb, void *arg);

/* A task as it is stored. Texts point into what was read, and have no pointer where there is none, but for
 * the payload; instants, in unix ms, and max_retries are -1 then. */
struct task_row {
	struct bytes id, queue, status, key, worker, token, error, result, payload;
	int64_t priority, size, retries, crashes, max_retries, cancel, submitted, claimed;
	int64_t not_before, deadline, finished; /* of a task that is delayed, is running, has ended */
};

/* A row of T above, or one of lua/task_list.lua, which has neither result nor payload. False when it is
 * damaged. */
bool task_row_read(struct bytes text, struct task_row *ret) __attribute__((warn_unused_result));

/* What a queue has, in the order of lua/task_stats.lua; -1 for what can't be read. */
enum task_stat {
	STAT_READY,
	STAT_DELAYED,
	STAT_RUNNING,
	STAT_SUCCESS,
	STAT_FAILED,
	STAT_TIMEOUT,
	STAT_CANCELLED,
	STAT_WAITING,
	STAT_PAUSED,
	STAT_BYTES,
	/* How many have come to it since the queue began. */
	STAT_TOTAL_SUBMITTED,
	STAT_TOTAL_SUCCESS,
	STAT_TOTAL_FAILED,
	STAT_TOTAL_TIMEOUT,
	STAT_TOTAL_CANCELLED,
	STAT_TOTAL_RETRIED,
	STAT_TOTAL_BROUGHT_BACK, /* by TASK.RETRY */
	STAT_TOTAL_EXPIRED,
	STAT_TOTAL_RELEASED,
	STAT_TOTAL_AGED,
	STAT_TOTAL_DROPPED,
	STAT_OLDEST, /* when the task that is next was submitted, unix ms; -1 also when there is none */
	TASK_STATS
};
void task_stats_read(struct bytes text, int64_t stats[TASK_STATS]);

#endif
