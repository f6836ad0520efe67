/* SPDX-License-Identifier: MIT */
#include "base/turn.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/mem.h"

struct grave {
	void *ptr;
	void (*destroy)(void *ptr);
	struct grave *next;
};

static struct event *turn_event;
static TAILQ_HEAD(, turn_task) tasks = TAILQ_HEAD_INITIALIZER(tasks);
static struct grave *graves;

static void wake(void)
{
	if (turn_event != NULL)
		event_active(turn_event, EV_TIMEOUT, 1);
}

static void bury(void)
{
	while (graves != NULL) {
		struct grave *g = graves;
		graves = g->next;
		if (g->destroy != NULL)
			g->destroy(g->ptr);
		else
			free(g->ptr);
		free(g);
	}
}

/* event_active() puts the event behind everything that is already active, so this runs last. */
static void run(evutil_socket_t fd, short what, void *arg)
{
	struct turn_task *task;

	(void)fd;
	(void)what;
	(void)arg;
	while ((task = TAILQ_FIRST(&tasks)) != NULL) {
		turn_cancel(task);
		task->fn(task->arg);
	}
	bury();
}

void turn_init(struct event_base *base)
{
	turn_event = event_new(base, -1, 0, run, NULL);
}

void turn_release(void)
{
	struct turn_task *task;

	while ((task = TAILQ_FIRST(&tasks)) != NULL)
		turn_cancel(task);
	bury();
	if (turn_event != NULL)
		event_free(turn_event);
	turn_event = NULL;
}

void turn_task_init(struct turn_task *task, void (*fn)(void *arg), void *arg)
{
	*task = (struct turn_task){.fn = fn, .arg = arg};
}

void turn_schedule(struct turn_task *task)
{
	if (task->queued)
		return;
	if (TAILQ_EMPTY(&tasks))
		wake();
	task->queued = true;
	TAILQ_INSERT_TAIL(&tasks, task, link);
}

void turn_cancel(struct turn_task *task)
{
	if (!task->queued)
		return;
	TAILQ_REMOVE(&tasks, task, link);
	task->queued = false;
}

void turn_free(void *ptr, void (*destroy)(void *ptr))
{
	struct grave *g = xmalloc(sizeof(*g));

	if (graves == NULL)
		wake();
	*g = (struct grave){.ptr = ptr, .destroy = destroy, .next = graves};
	graves = g;
}
