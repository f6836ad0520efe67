/* SPDX-License-Identifier: MIT */
/* Looks into muster.parked and sends messages from it again. One operation runs at a time, the others wait;
 * each has a deadline and ends in exactly one callback, never before the call that started it has returned.
 *
 * Messages are got one by one and held unacknowledged. Listing gives all back at the end. A replay publishes
 * a fresh message with attempt 0 to the queue it came from and acknowledges the parked one after the confirm;
 * all others go back. A crash at any step leaves a message parked, or parked and sent again with the same id.
 */
#ifndef MQ_PARKED_H
#define MQ_PARKED_H

#include <stddef.h>

#include "mq/message.h"

struct event_base;
struct link;
struct parked;
struct publisher;

/* The items live until the callback returns. `error` is NULL when all went well; items got before are given.
 */
typedef void (*mq_parked_cb)(
	const struct mq_message *const *items, size_t count, const char *error, void *arg);
/* `error` may come with replayed > 0: the rest stays parked. */
typedef void (*mq_replay_cb)(size_t replayed, const char *error, void *arg);

struct parked *parked_new(struct event_base *base, struct link *consume, struct publisher *publisher);
/* Operations that wait or run end without a callback. Takes NULL. Free the publisher first. */
void parked_free(struct parked *p);

/* -1, and no callback, when the link is down or too many operations wait. */
int parked_list(struct parked *p, size_t count, mq_parked_cb cb, void *arg)
	__attribute__((warn_unused_result));
/* The first `count`, or with a message id those that bear it (up to count), wherever they stand. */
int parked_replay(struct parked *p, size_t count, struct bytes message_id, mq_replay_cb cb, void *arg)
	__attribute__((warn_unused_result));
/* The publisher has room. */
void parked_room(struct parked *p);

#endif
