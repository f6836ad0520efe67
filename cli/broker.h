/* SPDX-License-Identifier: MIT */
/* One stay at RabbitMQ for `watch` and `subscribe`: connects by the options' amqp part, runs until what was
 * asked for is done, the caller has enough, or a signal comes. Faults are told on stderr. */
#ifndef CLI_BROKER_H
#define CLI_BROKER_H

#include <stdbool.h>

#include "cli/cli.h"
#include "mq/consumer.h"

struct broker_visit {
	enum consumer_task task;
	const char *queue; /* NULL: one of our own, gone with the connection */
	const char *const *keys;
	size_t key_count;
	/* The queue is as asked for. With CONSUMER_READ the first time only; may be NULL. */
	void (*ready)(void *arg, const char *queue);
	/* Of CONSUMER_READ. False: enough. */
	bool (*notice)(void *arg, const struct mq_message *message);
	void *arg;
};

/* An exit code. */
int broker_visit(const struct cli_options *options, const struct broker_visit *visit);

#endif
