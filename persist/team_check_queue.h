/* SPDX-License-Identifier: MIT */
/* What one of the check's two scripts is to look at, in order: items, as the head of lua/tree_check.lua names
 * them. */
#ifndef PERSIST_TEAM_CHECK_QUEUE_H
#define PERSIST_TEAM_CHECK_QUEUE_H

#include <stddef.h>

#include "base/bytes.h"
#include "persist/redis.h"

/* Items of one script call at most. */
#define TEAM_CHECK_ITEMS 200

struct team_check_queue;

struct team_check_queue *team_check_queue_new(enum script script);
void team_check_queue_free(struct team_check_queue *q);
void team_check_queue_clear(struct team_check_queue *q);
size_t team_check_queue_count(const struct team_check_queue *q);

/* `from` says where to begin in the item, in its own way; empty = at its beginning. */
void team_check_queue_push(struct team_check_queue *q, struct bytes item, struct bytes from);
/* To be looked at before all others, but for one that has been begun. */
void team_check_queue_push_first(struct team_check_queue *q, struct bytes item);
/* Has the first items looked at; they stay until team_check_queue_take(). `head`: the arguments before the
 * items, which this takes. */
enum redis_sent team_check_queue_send(struct team_check_queue *q, struct redis *redis,
	struct redis_args *head, redis_cb cb, void *arg) __attribute__((warn_unused_result));
/* Drops what the reply says is done, and notes how far the next one has got. Returns where the reply's lines
 * begin. */
size_t team_check_queue_take(struct team_check_queue *q, const struct redisReply *reply);

#endif
