/* SPDX-License-Identifier: MIT */
/* Journal records as notices: what a supervisor is told of them, grouped into messages. Pure but for the
 * picture of the organisation and the configuration; with the same ones a window always makes the same
 * messages. */
#ifndef MQ_NOTICE_H
#define MQ_NOTICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct journal_window;
struct tree;

/* Most events of one message, and a body of so many bytes takes no more of them. */
#define NOTICE_EVENTS_MAX 100
#define NOTICE_BODY_MAX   262144
/* Bytes that the further keys may take, since the header must fit one frame of AMQP (128 KiB): as many as a
 * department of 1,000 levels has. */
#define NOTICE_KEYS_MAX 102400

/* One message in the making, and then on its way. */
struct notice {
	struct buf key;   /* the routing key */
	struct buf keys;  /* further keys for the CC header, each with its NUL */
	size_t key_count; /* of `keys` */
	size_t left_out;  /* ancestors for whom there was no room, the farthest ones */
	struct buf type;  /* attendance.late */
	struct buf id;    /* message_id */
	struct buf body;  /* JSON, complete after notices_make() */
	int events;
	int what; /* how it is grouped: kind, and department, home and date, or queue */
	struct buf group;
};

struct notices {
	struct notice *list;
	size_t count, cap;
	int64_t task_ends;        /* which ends of tasks are told: [task] notices */
	bool alone;               /* tell of a department that is not known, but to nobody above it */
	char unknown[ID_MAX + 1]; /* the last that is not known, "" when all are */
};

/* Makes the messages of a window. False when a department is not known in the tree yet, and not to be told of
 * alone: try again shortly. `n` is empty but for `alone` and `task_ends`, and is empty again after false. */
bool notices_make(struct notices *n, const struct journal_window *window, const struct tree *tree)
	__attribute__((warn_unused_result));
void notices_release(struct notices *n);

#endif
