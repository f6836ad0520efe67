/* SPDX-License-Identifier: MIT */
/* What the tests of mq/ share that run against the real broker: its address, a connection of the test's own
 * to it, and none of Muster's queues and exchanges there when a test starts. */
#ifndef TESTS_COMPONENT_MQ_BROKER_H
#define TESTS_COMPONENT_MQ_BROKER_H

#include "tests/component/mq_fixture.h"

#include "mq/consumer.h"

static struct config config;
static struct probe probe;

static inline int broker_setup(void **state)
{
	(void)state;
	loop_start();
	config_of_broker(&config);
	probe_start(&probe, &config);
	probe_clean(&probe);
	return 0;
}

static inline int broker_teardown(void **state)
{
	(void)state;
	probe_stop(&probe);
	config_release(&config);
	loop_stop();
	return 0;
}

/* Params of a consumer at the broker that config names now; the queue and the keys stay the caller's. */
static inline struct consumer_params broker_consumer(const char *queue, const char *const *keys, size_t count)
{
	return (struct consumer_params){.host = config.amqp_host,
		.port = (int)config.amqp_port,
		.user = config.amqp_user,
		.password = config.amqp_password,
		.vhost = config.amqp_vhost,
		.queue = queue,
		.keys = keys,
		.key_count = count};
}

#endif
