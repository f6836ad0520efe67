/* SPDX-License-Identifier: MIT */
/* The calls of one connection, from parsed to answered: prepared ahead, started in order as their lanes
 * allow, finished in any order, answered in order. It knows no socket; its owner is told by wake() that a
 * call has moved and then calls pipeline_run(), at the end of the turn.
 *
 * A call is one allocation. One that is still with a handler when its connection goes is left to finish
 * alone. */
#ifndef DAEMON_PIPELINE_H
#define DAEMON_PIPELINE_H

#include <sys/queue.h>

#include "daemon/resp.h"
#include "handlers/command.h"

struct evbuffer;
struct queued;

struct pipeline_ops {
	/* Sets call->command; false with an error in call->reply. */
	bool (*resolve)(struct call *call);
	/* The checks of the moment of the start; false with an error in call->reply. */
	bool (*allow)(void *owner, struct call *call);
	/* May the client, as far as it is known now, have the command prepared? Never false where allow() is
	 * true. */
	bool (*may_prepare)(void *owner, const struct command *command);
	/* RESP version of the replies of calls that start now. */
	int (*protocol)(void *owner);
	/* A call is over and its reply complete; call->command is NULL when it was none of the table. */
	void (*done)(struct call *call);
	/* The peer has sent its last byte, as the connection itself says. */
	bool (*hung_up)(void *owner);
	/* A call has moved outside pipeline_run(). */
	void (*wake)(void *owner);
};

struct pipeline {
	const struct pipeline_ops *ops;
	void *owner;
	TAILQ_HEAD(queue, queued) queue;
	struct queued *next;           /* first that is not started */
	const struct command *barrier; /* the LANE_BARRIER command that runs now */
	bool alone;                    /* a call runs behind which nothing is started */
	bool hung_up;
	unsigned count;   /* calls in the queue */
	unsigned running; /* started and not finished */
	size_t held;      /* bytes of finished replies behind an unfinished call */
};

void pipeline_init(struct pipeline *p, const struct pipeline_ops *ops, void *owner);
/* The owner goes: unstarted calls are freed, running ones lose their client and their replies. */
void pipeline_abandon(struct pipeline *p);
/* Drops what has not been started. May be called by a handler of this connection. */
void pipeline_cut(struct pipeline *p);

/* The peer has sent its last byte, if it is there at all: tells the calls. */
void pipeline_hang_up(struct pipeline *p);

/* Copies a parsed command behind the others and prepares it. `data` and `args` are those of resp_parse(). */
void pipeline_push(struct pipeline *p, struct app *app, struct client *client, const char *data,
	const struct resp_arg *args, size_t argc, int64_t now_us);
/* Queues an error as the answer of something that was no command. */
void pipeline_push_error(struct pipeline *p, const char *error);

/* Moves finished replies to `out` and starts what may start while out and held replies are below `room`
 * bytes. False when it stopped for lack of room: run it again when `out` has been written, nothing else will
 * ask for it. */
bool pipeline_run(struct pipeline *p, struct evbuffer *out, size_t room);

/* Started and unfinished calls of all pipelines, abandoned ones included. */
unsigned pipeline_running_total(void);

#endif
