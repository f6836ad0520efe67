/* SPDX-License-Identifier: MIT */
/* What happens to tasks by the clock: leases end, delayed tasks become ready, old ones age, those that ended
 * long ago leave. `due` of a partition says which queue has such work and from when on; by Redis's clock, so
 * that ours may be wrong. One call of lua/task_sweep.lua does a bounded part of a queue's work, and the next
 * one follows while there is more.
 *
 * The daemon that holds a partition sweeps it. Two may do it at once for a moment: the script is atomic. A
 * queue whose keys are damaged rests for a while and keeps nobody else waiting. */
#ifndef PERSIST_TASK_SWEEP_H
#define PERSIST_TASK_SWEEP_H

struct config;
struct event_base;
struct lease;
struct redis;
struct task_sweep;

struct task_sweep_deps {
	struct event_base *base;
	const struct config *config;
	struct redis *redis;
	const struct lease *lease;
	/* The journal of the partition has something new. */
	void (*journalled)(int partition, void *arg);
	void *arg;
};

struct task_sweep *task_sweep_new(const struct task_sweep_deps *deps);
/* After the link has been freed. */
void task_sweep_free(struct task_sweep *s);
/* Begins nothing more. */
void task_sweep_stop(struct task_sweep *s);

#endif
