/* SPDX-License-Identifier: MIT */
/* What a real broker refuses, holds back or lets hang: reported, and over when it is over. */
#include "tests/component/mq_broker.h"

static bool is_misconfigured(void *arg)
{
	return mq_state(arg) == MQ_MISCONFIGURED;
}

static void test_wrong_password(void **state)
{
	(void)state;
	set(&config, "password", "not this one");
	struct mq *mq = mq_new(loop, &config);
	wait_for(is_misconfigured, mq);
	assert_non_null(strstr(mq_error(mq), "403"));
	assert_null(strstr(mq_error(mq), "not this one"));
	assert_int_equal(mq_room(mq), 0);
	drain_and_free(mq);
}

static void test_missing_vhost(void **state)
{
	(void)state;
	set(&config, "vhost", "no-such-vhost");
	struct mq *mq = mq_new(loop, &config);
	wait_for(is_misconfigured, mq);
	assert_non_null(strstr(mq_error(mq), "530"));
	mq_free(mq);
}

static bool is_down_with_error(void *arg)
{
	return mq_state(arg) == MQ_DOWN && mq_error(arg)[0] != '\0';
}

static void test_nobody_listens(void **state)
{
	struct proxy proxy;

	(void)state;
	/* A port that was free a moment ago. */
	proxy_start(&proxy, &config);
	proxy_stop(&proxy);
	struct mq *mq = mq_new(loop, &config);
	wait_for(is_down_with_error, mq);
	mq_free(mq);
}

/* Comes up by itself when the broker does. */
static void test_late_broker(void **state)
{
	struct proxy proxy;

	(void)state;
	proxy_start(&proxy, &config);
	evconnlistener_disable(proxy.listener);
	struct mq *mq = mq_new(loop, &config);
	assert_false(wait_ms(mq_is_ready, mq, 300));
	evconnlistener_enable(proxy.listener);
	wait_for(mq_is_ready, mq);
	drain_and_free(mq);
	proxy_stop(&proxy);
}

static bool connected_twice(void *arg)
{
	return ((struct proxy *)arg)->connections >= 4;
}

/* The connection stays but nothing comes any more: two heartbeats later it is given up. */
static void test_silence_is_noticed(void **state)
{
	struct proxy proxy;

	(void)state;
	set(&config, "heartbeat", "1s");
	proxy_start(&proxy, &config);
	struct mq *mq = mq_new(loop, &config);
	wait_for(mq_is_ready, mq);
	/* Three heartbeats without a message: still the same connections. */
	wait_ms(connected_twice, &proxy, 3000);
	assert_int_equal(proxy.connections, 2);
	proxy_hold(&proxy, true);
	int64_t began = clock_mono_us();
	wait_for(connected_twice, &proxy);
	assert_true(clock_mono_us() - began < 4000000);
	assert_non_null(strstr(mq_error(mq), "no byte from the broker"));
	proxy_hold(&proxy, false);
	wait_for(mq_is_ready, mq);
	drain_and_free(mq);
	proxy_stop(&proxy);
}

static void declare_odd_delay(void)
{
	amqp_table_entry_t entries[3] = {
		{.key = amqp_text("x-queue-type"), .value = {.kind = AMQP_FIELD_KIND_UTF8}},
		{.key = amqp_text("x-message-ttl"), .value = {.kind = AMQP_FIELD_KIND_I32}},
		{.key = amqp_text("x-dead-letter-exchange"), .value = {.kind = AMQP_FIELD_KIND_UTF8}}};
	amqp_queue_declare_t d = {.queue = amqp_text("muster.delay.200ms"),
		.durable = 1,
		.arguments = {.num_entries = 3, .entries = entries}};

	entries[0].value.value.bytes = amqp_text("quorum");
	entries[1].value.value.i32 = 999;
	entries[2].value.value.bytes = amqp_text("");
	assert_int_equal(probe_call(&probe, AMQP_QUEUE_DECLARE_METHOD, &d), 0);
}

static void count_outcome(enum mq_outcome outcome, void *arg)
{
	((int *)arg)[outcome]++;
}

static bool one_confirmed(void *arg)
{
	return ((int *)arg)[MQ_CONFIRMED] > 0;
}

/* A delay queue with another TTL: said, left alone; notices go out all the same. */
static void test_mismatch_is_reported(void **state)
{
	struct mq_message m = {.exchange = BYTES_LIT("muster.notices"),
		.routing_key = BYTES_LIT("attendance.in.1"),
		.message_id = BYTES_LIT("p1-1"),
		.body = BYTES_LIT("{}")};
	int outcomes[MQ_LOST + 1] = {0};
	int connections_before;
	struct proxy proxy;

	(void)state;
	declare_odd_delay();
	proxy_start(&proxy, &config);
	struct mq *mq = mq_new(loop, &config);
	wait_for(is_misconfigured, mq);
	assert_non_null(strstr(mq_error(mq), "muster.delay.200ms: 406"));
	assert_non_null(strstr(mq_error(mq), "x-message-ttl"));
	connections_before = proxy.connections;
	assert_true(mq_room(mq) > 0);
	assert_int_equal(mq_publish(mq, &m, count_outcome, outcomes), 0);
	wait_for(one_confirmed, outcomes);
	assert_int_equal(proxy.connections, connections_before);
	assert_int_equal(probe_count(&probe, "muster.delay.200ms"), 0);
	drain_and_free(mq);
	proxy_stop(&proxy);
}

static void inject(struct proxy *p, const void *frame, size_t n)
{
	for (struct proxy_pair *pair = p->pairs; pair != NULL; pair = pair->next)
		bufferevent_write(pair->client, frame, n);
}

static bool is_blocked(void *arg)
{
	return mq_state(arg) == MQ_BLOCKED;
}

/* connection.blocked stops publishing without losing anything; unblocked lets it go on. */
static void test_blocked(void **state)
{
	static const char blocked[] = "\1\0\0\0\0\0\x08\0\x0a\0\x3c\3low\xce";
	static const char unblocked[] = "\1\0\0\0\0\0\4\0\x0a\0\x3d\xce";
	struct mq_message m = {.exchange = BYTES_LIT("muster.notices"),
		.routing_key = BYTES_LIT("attendance.in.1"),
		.message_id = BYTES_LIT("p1-1"),
		.body = BYTES_LIT("{}")};
	int outcomes[MQ_LOST + 1] = {0};
	bool room = false;
	struct proxy proxy;

	(void)state;
	proxy_start(&proxy, &config);
	struct mq *mq = mq_new(loop, &config);
	mq_on_room(mq, set_flag, &room);
	wait_for(flag_is_set, &room);
	inject(&proxy, blocked, sizeof(blocked) - 1);
	wait_for(is_blocked, mq);
	assert_int_equal(mq_room(mq), 0);
	assert_true(mq_publish(mq, &m, count_outcome, outcomes) < 0);
	room = false;
	inject(&proxy, unblocked, sizeof(unblocked) - 1);
	wait_for(flag_is_set, &room);
	assert_int_equal(mq_publish(mq, &m, count_outcome, outcomes), 0);
	wait_for(one_confirmed, outcomes);
	drain_and_free(mq);
	proxy_stop(&proxy);
}

/* Bytes that are no AMQP: dropped, tried again, up in the end. */
static void test_garbage_from_the_server(void **state)
{
	static const char garbage[] = "\1\0\0\xff\xff\xff\xff and so on";
	struct proxy proxy;

	(void)state;
	proxy_start(&proxy, &config);
	struct mq *mq = mq_new(loop, &config);
	wait_for(mq_is_ready, mq);
	inject(&proxy, garbage, sizeof(garbage) - 1);
	wait_for(is_down_with_error, mq);
	assert_non_null(strstr(mq_error(mq), "protocol error"));
	wait_for(mq_is_ready, mq);
	drain_and_free(mq);
	proxy_stop(&proxy);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, broker_setup, broker_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_wrong_password),
		TEST(test_missing_vhost),
		TEST(test_nobody_listens),
		TEST(test_late_broker),
		TEST(test_silence_is_noticed),
		TEST(test_mismatch_is_reported),
		TEST(test_blocked),
		TEST(test_garbage_from_the_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
