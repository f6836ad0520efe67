/* SPDX-License-Identifier: MIT */
/* A channel in confirm mode. Every message is persistent and mandatory, and ends in exactly one outcome; at
 * most `window` are under way. When the channel or the connection goes, all that are under way end as
 * MQ_LOST. */
#ifndef MQ_PUBLISHER_H
#define MQ_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mq/message.h"

struct link;
struct publisher;

struct publisher_ops {
	/* There is room where there was none. At the end of the turn. */
	void (*room)(void *arg);
	/* The broker closed the channel: 404 when an exchange is missing. It opens again by itself. */
	void (*broken)(void *arg, int code, const char *text);
};

struct publisher_counts {
	uint64_t published;
	uint64_t outcome[MQ_LOST + 1];
};

/* Starts on hold. `ops` must outlive it. */
struct publisher *publisher_new(struct link *link, size_t window, const struct publisher_ops *ops, void *arg);
/* Without callbacks. Takes NULL. */
void publisher_free(struct publisher *p);

/* While on hold there is no room; what is under way goes on. */
void publisher_hold(struct publisher *p, bool hold);
void publisher_set_window(struct publisher *p, size_t window);

/* 0; -EAGAIN when there is no room now; -EINVAL when the message can never be sent: a key over 255 bytes, or
 * more CC keys than fit a frame. */
int publisher_send(struct publisher *p, const struct mq_message *m, mq_publish_cb cb, void *arg)
	__attribute__((warn_unused_result));
/* How many messages it would take now. */
size_t publisher_room(const struct publisher *p);
size_t publisher_pending(const struct publisher *p);
const struct publisher_counts *publisher_counts(const struct publisher *p);

#endif
