/* SPDX-License-Identifier: MIT */
/* A subscriber of notices on its own, for programs other than the daemon: it connects and stays connected,
 * makes its queue, binds it, and hands over what comes. Needs turn_init(). */
#ifndef MQ_CONSUMER_H
#define MQ_CONSUMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mq/message.h"

struct consumer;
struct event_base;

enum consumer_task {
	CONSUMER_READ,   /* consume from the queue */
	CONSUMER_MAKE,   /* make and bind the queue, no more */
	CONSUMER_REMOVE, /* delete the queue with what is in it */
};

struct consumer_params {
	const char *host;
	int port;
	const char *user;
	const char *password;
	const char *vhost;
	int64_t heartbeat_ms;
	enum consumer_task task;
	/* A durable quorum queue that dead-letters to muster.dead; NULL: one of our own, gone with the
	 * connection. */
	const char *queue;
	bool existing;           /* the queue is there: neither declare nor bind it */
	const char *const *keys; /* bound on muster.notices */
	size_t key_count;
	int prefetch; /* deliveries not yet acknowledged; 0 = 100 */
};

struct consumer_notice {
	struct mq_message message; /* the routing key is the one it was first published with */
	bool redelivered;
	uint64_t tag; /* for consumer_ack() and consumer_reject() */
};

struct consumer_ops {
	/* Everything asked for is done, or consuming has begun; again after each reconnect. May be NULL. */
	void (*ready)(void *arg, const char *queue);
	/* Must be followed by an ack or a reject, now or later. */
	void (*notice)(void *arg, const struct consumer_notice *notice);
	/* `final`: trying again would not help (login, virtual host, missing exchange, other arguments).
	 * Otherwise it tries on. */
	void (*failed)(void *arg, const char *error, bool final);
};

/* Connects at once. Copies the params; ops must outlive it. */
struct consumer *consumer_new(struct event_base *base, const struct consumer_params *params,
	const struct consumer_ops *ops, void *arg);
/* Not from inside a callback. Takes NULL. */
void consumer_free(struct consumer *c);
/* Says goodbye; `closed` comes from the loop. */
void consumer_close(struct consumer *c, void (*closed)(void *arg));

/* A tag of before a reconnect is ignored: the broker delivers that message again. */
void consumer_ack(struct consumer *c, uint64_t tag);
/* Not put back: it goes to muster.dead and is tried again later. */
void consumer_reject(struct consumer *c, uint64_t tag);

#endif
