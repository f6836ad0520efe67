/* SPDX-License-Identifier: MIT */
/* The end of a turn of the loop: work that was asked for while events were handled and is done once, after
 * all that were ready: sending a batch, writing replies, freeing what could not be freed inside its own
 * callback. turn_init() comes first; everything here belongs to the one loop thread. */
#ifndef BASE_TURN_H
#define BASE_TURN_H

#include <stdbool.h>
#include <sys/queue.h>

struct event_base;

/* A piece of work that its owner embeds; at most once in the queue at a time. */
struct turn_task {
	void (*fn)(void *arg);
	void *arg;
	bool queued;
	TAILQ_ENTRY(turn_task) link;
};

void turn_init(struct event_base *base);
/* Drops what is queued; for shutdown. */
void turn_release(void);

void turn_task_init(struct turn_task *task, void (*fn)(void *arg), void *arg);
/* Runs task->fn at the end of this turn; asking twice is once. A task queued while the queue runs runs in it
 * too. */
void turn_schedule(struct turn_task *task);
void turn_cancel(struct turn_task *task);
/* free(ptr) at the end of this turn, by `destroy` when given. For things that are inside their own callback.
 */
void turn_free(void *ptr, void (*destroy)(void *ptr));

#endif
