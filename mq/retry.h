/* SPDX-License-Identifier: MIT */
/* Takes dead messages from muster.dead and gives each another try later, or parks it. The dead one is
 * acknowledged only after its fresh copy is confirmed: a crash in between gives a repeat with the same
 * message id, never a loss.
 *
 * Consumes on one link and publishes on another. A copy that is returned, refused or lost is sent again. */
#ifndef MQ_RETRY_H
#define MQ_RETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mq/delays.h"
#include "mq/message.h"

struct event_base;
struct link;
struct publisher;
struct retry;

/* Where a dead message goes next, as a fresh message without x-death: the delay exchange of its attempt with
 * the queue it returns to as routing key, or muster.parked. `dead` is as letter_read() gave it; *ret borrows
 * from it and from `exchange`. True when it is parked. */
#define RETRY_EXCHANGE_MAX 64
bool retry_route(
	const struct mq_message *dead, const struct delays *delays, char *exchange, struct mq_message *ret);

struct retry_counts {
	uint64_t retried; /* confirmed into a delay queue */
	uint64_t parked;
	size_t held; /* taken and not yet dealt with */
};

/* `lost` is called when muster.dead went away under the consumer, or can't be consumed. */
struct retry *retry_new(struct event_base *base, struct link *consume, struct publisher *publisher,
	const struct delays *delays, void (*lost)(void *arg), void *arg);
/* After the publisher's last callback: free the publisher first. Takes NULL. */
void retry_free(struct retry *r);
/* Consumes from now on, whenever the link is up; without effect when it does. */
void retry_start(struct retry *r);
/* Takes nothing more. What is held is dealt with as far as confirms still come. */
void retry_stop(struct retry *r);
/* The publisher has room. */
void retry_room(struct retry *r);
void retry_counts(const struct retry *r, struct retry_counts *ret);

#endif
