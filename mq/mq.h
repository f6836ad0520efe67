/* SPDX-License-Identifier: MIT */
/* RabbitMQ as the daemon uses it: publish notices with an outcome for each, give dead ones another try, park,
 * list and replay. Two connections, one to publish and one to consume; both come back by themselves. Needs
 * turn_init(). */
#ifndef MQ_MQ_H
#define MQ_MQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mq/message.h"
#include "mq/parked.h"

struct config;
struct event_base;
struct mq;

enum mq_state {
	MQ_DOWN,          /* not connected; it is being tried */
	MQ_MISCONFIGURED, /* the login, the virtual host, or an exchange or queue is not as it must be: see
			     mq_error() */
	MQ_STARTING,      /* connected; exchanges and queues are being looked at */
	MQ_BLOCKED,       /* the broker is short of memory or disk and takes nothing */
	MQ_READY,
	MQ_STOPPED, /* drained */
};

/* Starts to connect and registers the INFO section "rabbitmq". NULL, and a log line, when [amqp] delays can't
 * be read. `config` is not kept. */
struct mq *mq_new(struct event_base *base, const struct config *config);
/* At once: outcomes that are still open are never told. Not from inside a callback of mq. Takes NULL. */
void mq_free(struct mq *mq);
/* Takes nothing more, waits for confirms, says goodbye, then calls `done`; after timeout_ms in any case.
 * Until then outcomes are told as ever. */
void mq_drain(struct mq *mq, int64_t timeout_ms, void (*done)(void *arg), void *arg);
/* Takes over what a reload may change: the confirm window. */
void mq_reload(struct mq *mq, const struct config *config);

/* 0; -EAGAIN when there is no room now (wait for mq_on_room); -EINVAL when the message can never be sent: a
 * routing key or id over 255 bytes, or CC keys that do not fit a frame (about 100 KiB). An outcome follows
 * only after 0. */
int mq_publish(struct mq *mq, const struct mq_message *m, mq_publish_cb cb, void *arg)
	__attribute__((warn_unused_result));
/* How many messages mq_publish() would take now; 0 while not ready or blocked. */
size_t mq_room(const struct mq *mq);
/* fn is called from the loop when there is room where there was none. One listener. */
void mq_on_room(struct mq *mq, void (*fn)(void *arg), void *arg);

/* See parked.h. */
int mq_parked_list(struct mq *mq, size_t count, mq_parked_cb cb, void *arg)
	__attribute__((warn_unused_result));
int mq_parked_replay(struct mq *mq, size_t count, struct bytes message_id, mq_replay_cb cb, void *arg)
	__attribute__((warn_unused_result));

enum mq_state mq_state(const struct mq *mq);
const char *mq_state_name(enum mq_state state);
/* What is or was wrong, "" when nothing has been. */
const char *mq_error(const struct mq *mq);

struct mq_counts {
	uint64_t published, confirmed, returned, nacked, lost; /* notices */
	uint64_t retried, parked;
	uint64_t reconnects;
	size_t unconfirmed;
};
void mq_counts(const struct mq *mq, struct mq_counts *ret);

#endif
