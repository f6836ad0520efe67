/* SPDX-License-Identifier: MIT */
/* Group commit: the events of one verb that arrive in one turn of the loop go to Redis as one script call, at
 * the end of the turn or when the batch is full. Nothing waits for company: an idle system sends a batch of
 * one.
 *
 * The script answers one line an event, joined by '\n', or an array with an element an event. Each event has
 * one callback, never before batch_add_end() has returned. */
#ifndef PERSIST_BATCH_H
#define PERSIST_BATCH_H

#include <stdbool.h>

#include "persist/redis.h"

struct batch;

#define BATCH_BYTES 262144

/* `line` is the event's own; or error is the text for the client and line is empty. */
typedef void (*batch_cb)(struct bytes line, const char *error, void *arg);

/* `keys`: keys an event. `head` writes the arguments in front of the events'; may be NULL. */
struct batch *batch_new(struct redis *redis, enum script script, int keys, int most,
	void (*head)(struct redis_args *args, void *arg), void *arg);
/* After the link has been freed. Events that are still open get an error. */
void batch_free(struct batch *b);

/* Adds one event: begin, write its keys into *ret_keys and its arguments into *ret_args, end. A batch that
 * has grown to BATCH_BYTES is sent, too. */
void batch_add_begin(struct batch *b, struct redis_args **ret_keys, struct redis_args **ret_args);
void batch_add_end(struct batch *b, batch_cb cb, void *arg);
/* In between: the event is as much work for Redis as so many more. */
void batch_weigh(struct batch *b, int more);

#endif
