/* SPDX-License-Identifier: MIT */
/* A link to Redis: one connection, pipelined, asynchronous. What is sent first is applied first. All goes
 * over REDIS_MAIN; REDIS_WAKE is for commands that block, which would hold up everything behind them.
 *
 * Every command that redis_send() took gets exactly one callback, later: with a reply, or with NULL when the
 * link was lost under it and nobody knows whether it was applied. A command that was not taken gets none. The
 * link reconnects by itself with a capped backoff. Deadlines are our own: when the oldest command waits
 * longer than the timeout, the link is dropped. NOSCRIPT is healed here by sending the refused call again
 * with its text. */
#ifndef PERSIST_REDIS_H
#define PERSIST_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "persist/scripts.h"

struct config;
struct event_base;
struct redis;
struct redisReply;

typedef void (*redis_cb)(const struct redisReply *reply, void *arg);

enum redis_role { REDIS_MAIN, REDIS_WAKE };
struct redis *redis_new(struct event_base *base, const struct config *config, enum redis_role role);
void redis_free(struct redis *r);
void redis_start(struct redis *r);
/* Commands can be sent. */
bool redis_ready(const struct redis *r);
/* fn(arg) on every change between ready and not ready. At most 16. */
void redis_on_change(struct redis *r, void (*fn)(void *arg), void *arg);
size_t redis_inflight(const struct redis *r);

/* In front of the arguments, for "*<argc>\r\n" and the head of an EVALSHA. */
#define REDIS_HEAD_ROOM 128

/* A command under construction: arguments are encoded as they are added. */
struct redis_args {
	struct buf buf; /* begins with the room for the head */
	int argc;
};

void redis_args_init(struct redis_args *a);
void redis_args_release(struct redis_args *a);
void redis_arg(struct redis_args *a, struct bytes value);
void redis_arg_str(struct redis_args *a, const char *value);
void redis_arg_i64(struct redis_args *a, int64_t value);
/* An argument that a key function writes: redis_arg_key(a, &scratch) after key_…(&scratch, …); empties
 * scratch. */
void redis_arg_key(struct redis_args *a, struct buf *scratch);

/* Appends the arguments of src to dst and releases src. */
void redis_args_append(struct redis_args *dst, struct redis_args *src);

enum redis_sent {
	REDIS_SENT = 0,
	REDIS_NOT_READY = -1, /* the link is away: UNAVAILABLE */
	REDIS_FULL = -2       /* too much is under way: BUSY */
};

/* Takes the arguments (releases them in every case). For commands that change something. */
enum redis_sent redis_send(struct redis *r, struct redis_args *a, redis_cb cb, void *arg)
	__attribute__((warn_unused_result));
/* The same for commands that only read, which may be asked twice. */
enum redis_sent redis_query(struct redis *r, struct redis_args *a, redis_cb cb, void *arg)
	__attribute__((warn_unused_result));
/* The same for a script: `a` holds the keys and arguments only. */
enum redis_sent redis_eval(struct redis *r, enum script script, int keys, struct redis_args *a, redis_cb cb,
	void *arg) __attribute__((warn_unused_result));

/* The error for a client ("UNAVAILABLE …", "BUSY …"), or NULL when the reply is none. */
const char *redis_reply_error(const struct redisReply *reply);
/* The same for an error of Redis that a script has caught and reports for one of its events. */
const char *redis_error_text(struct bytes error);
/* Somebody has made the key something else: no repeat heals it. */
bool redis_wrong_type(const struct redisReply *reply);
const char *redis_sent_error(enum redis_sent sent);

/* Reading replies without their library's header. All tolerate a reply of another type. */
bool redis_is_array(const struct redisReply *reply);
size_t redis_count(const struct redisReply *reply);
const struct redisReply *redis_at(const struct redisReply *reply, size_t i);
bool redis_is_null(const struct redisReply *reply);
struct bytes redis_text(const struct redisReply *reply);
int64_t redis_int(const struct redisReply *reply);

#endif
