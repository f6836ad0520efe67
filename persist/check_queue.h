/* SPDX-License-Identifier: MIT */
/* What a check's script is to look at, in order: items, as the head of lua/check.lua names them. */
#ifndef PERSIST_CHECK_QUEUE_H
#define PERSIST_CHECK_QUEUE_H

#include <stddef.h>

#include "base/bytes.h"
#include "persist/redis.h"

/* Items of one script call at most. */
#define CHECK_ITEMS 200

struct check_queue;

/* key(out, item, arg) writes the key that an item touches, or the anchor's; of item "" the anchor. */
struct check_queue *check_queue_new(
	enum script script, void (*key)(struct buf *out, const char *item, void *arg), void *arg);
void check_queue_free(struct check_queue *q);
void check_queue_clear(struct check_queue *q);
size_t check_queue_count(const struct check_queue *q);

/* `from` says where to begin in the item, in its own way; empty = at its beginning. */
void check_queue_push(struct check_queue *q, struct bytes item, struct bytes from);
/* To be looked at before all others, but for one that has been begun. */
void check_queue_push_first(struct check_queue *q, struct bytes item);
/* Has the first items looked at; they stay until check_queue_take(). `head`: the arguments before the
 * items, which this takes. */
enum redis_sent check_queue_send(struct check_queue *q, struct redis *redis, struct redis_args *head,
	redis_cb cb, void *arg) __attribute__((warn_unused_result));
/* Drops what the reply says is done, and notes how far the next one has got. Returns where the reply's lines
 * begin. */
size_t check_queue_take(struct check_queue *q, const struct redisReply *reply);

#endif
