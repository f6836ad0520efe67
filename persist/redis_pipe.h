/* SPDX-License-Identifier: MIT */
/* The commands under way on a connection to Redis, first in, first out. Each gets exactly one callback, never
 * before it was taken: with a reply, or with NULL when the connection is lost or closed under it. NOSCRIPT is
 * healed here: the refused call goes again with its text, and so do the queries behind it, whose answers came
 * too early.
 *
 * A pipe lives longer than its connections, of which it has one at a time. */
#ifndef PERSIST_REDIS_PIPE_H
#define PERSIST_REDIS_PIPE_H

#include "persist/redis.h"

struct redisAsyncContext;
struct redis_pipe;

struct redis_pipe_events {
	/* The connection is gone. Comes before the callbacks of what was under way, and not after
	 * redis_pipe_close(). */
	void (*lost)(const char *why, void *arg);
	/* Redis is no longer the master. */
	void (*demoted)(void *arg);
};

struct redis_pipe_counts {
	uint64_t commands, errors, noscript;
};

struct redis_pipe *redis_pipe_new(const struct redis_pipe_events *events, void *arg);
/* Takes NULL; closes it first. */
void redis_pipe_free(struct redis_pipe *p);

/* Takes a connection over from its login. The pipe has none. */
void redis_pipe_open(struct redis_pipe *p, struct redisAsyncContext *ac);
/* Gives the connection up and calls back what was under way. Never from a callback of hiredis. */
void redis_pipe_close(struct redis_pipe *p);

/* All three take the arguments; the pipe is open. */
void redis_pipe_send(struct redis_pipe *p, struct redis_args *a, redis_cb cb, void *arg);
/* For what only reads and may be sent again. */
void redis_pipe_query(struct redis_pipe *p, struct redis_args *a, redis_cb cb, void *arg);
void redis_pipe_eval(
	struct redis_pipe *p, enum script script, int keys, struct redis_args *a, redis_cb cb, void *arg);

size_t redis_pipe_bytes(const struct redis_pipe *p);      /* that are under way */
int64_t redis_pipe_oldest_ms(const struct redis_pipe *p); /* age of the oldest unanswered command, or 0 */
const struct redis_pipe_counts *redis_pipe_counts(const struct redis_pipe *p);

#endif
