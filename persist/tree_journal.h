/* SPDX-License-Identifier: MIT */
/* Reading the organisation's journal from Redis, for the picture of the tree. */
#ifndef PERSIST_TREE_JOURNAL_H
#define PERSIST_TREE_JOURNAL_H

#include "persist/redis.h"
#include "persist/stream_id.h"

/* Asks for the entries after `after`, at most `count`; or, with it included, from it on. False when it could
 * not be sent. */
bool tree_journal_after(struct redis *redis, struct stream_id after, int count, redis_cb cb, void *arg)
	__attribute__((warn_unused_result));
bool tree_journal_from(struct redis *redis, struct stream_id from, int count, redis_cb cb, void *arg)
	__attribute__((warn_unused_result));

/* The i-th entry of a reply: its id, and fn(text, arg) for each of its records. False when it is none. */
bool tree_journal_entry(const struct redisReply *reply, size_t i, struct stream_id *ret_id,
	void (*fn)(struct bytes text, void *arg), void *arg) __attribute__((warn_unused_result));

#endif
