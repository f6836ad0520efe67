/* SPDX-License-Identifier: MIT */
/* What is published and how it ended, in words that need no AMQP header. All bytes are borrowed: they are
 * copied or encoded before the call that takes them returns. */
#ifndef MQ_MESSAGE_H
#define MQ_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct mq_message {
	struct bytes exchange; /* "" is the default exchange: the routing key is a queue */
	struct bytes routing_key;
	const struct bytes *cc; /* further routing keys, sent as the CC header */
	size_t cc_count;
	struct bytes message_id;
	struct bytes type;
	int64_t timestamp_s; /* 0 = none */
	struct bytes body;   /* JSON */
	/* The headers of a message that has failed before; 0 and empty on a new one. */
	int attempt;         /* failed tries so far */
	struct bytes queue;  /* where it failed and goes back to */
	struct bytes reason; /* of the last failure */
	struct bytes key;    /* the routing key that it was first published with */
};

enum mq_outcome {
	MQ_CONFIRMED, /* the broker has it, in a queue at least */
	MQ_RETURNED,  /* no queue took it */
	MQ_NACKED,    /* the broker failed on it */
	MQ_LOST,      /* the connection or the channel went first: it may or may not be in a queue */
};

const char *mq_outcome_name(enum mq_outcome outcome);

/* Called once, from the loop, never before the publishing call has returned. */
typedef void (*mq_publish_cb)(enum mq_outcome outcome, void *arg);

/* An owned copy of a message without its CC keys, in one piece of memory: free() it. NULL when there is none.
 */
struct mq_message *mq_message_copy(const struct mq_message *m) __attribute__((warn_unused_result));

#endif
