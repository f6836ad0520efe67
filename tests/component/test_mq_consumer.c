/* SPDX-License-Identifier: MIT */
/* The consumer of programs of their own: what it makes, gets, keeps after a cut, and gives up on. */
#include "tests/component/mq_broker.h"

struct reader {
	struct consumer *consumer;
	int ready;
	int got;
	bool failed_for_good;
	char queue[128], last_key[128], error[256];
};

static int teardown(void **state)
{
	probe_clean(&probe);
	return broker_teardown(state);
}

static void on_ready(void *arg, const char *queue)
{
	struct reader *r = arg;

	r->ready++;
	snprintf(r->queue, sizeof(r->queue), "%s", queue);
}

static void on_notice(void *arg, const struct consumer_notice *notice)
{
	struct reader *r = arg;

	r->got++;
	bytes_copy(r->last_key, sizeof(r->last_key), notice->message.routing_key);
	consumer_ack(r->consumer, notice->tag);
}

static void on_failed(void *arg, const char *error, bool final)
{
	struct reader *r = arg;

	r->failed_for_good = final;
	snprintf(r->error, sizeof(r->error), "%s", error);
}

static const struct consumer_ops ops = {on_ready, on_notice, on_failed};

static void start(struct reader *r, enum consumer_task task, const char *queue)
{
	static const char *const keys[] = {"attendance.*.2.#", "attendance.late.9"};
	struct consumer_params params = broker_consumer(queue, keys, ARRAY_LEN(keys));

	params.task = task;
	*r = (struct reader){0};
	r->consumer = consumer_new(loop, &params, &ops, r);
}

static bool is_ready(void *arg)
{
	return ((struct reader *)arg)->ready > 0;
}

static bool is_ready_twice(void *arg)
{
	return ((struct reader *)arg)->ready > 1;
}

static bool got_three(void *arg)
{
	return ((struct reader *)arg)->got == 3;
}

static bool has_given_up(void *arg)
{
	return ((struct reader *)arg)->failed_for_good;
}

static void stop(struct reader *r)
{
	consumer_free(r->consumer);
}

static void make_exchange(void)
{
	amqp_exchange_declare_t d = {
		.exchange = amqp_text("muster.notices"), .type = amqp_text("topic"), .durable = 1};

	assert_int_equal(probe_call(&probe, AMQP_EXCHANGE_DECLARE_METHOD, &d), 0);
}

static void publish(const char *key)
{
	amqp_basic_publish_t p = {.exchange = amqp_text("muster.notices"), .routing_key = amqp_text(key)};
	amqp_basic_properties_t properties = {0};

	wait_for(probe_is_open, &probe);
	assert_true(channel_publish(probe.channel, &p, &properties, BYTES_LIT("{}")));
}

static void publish_five(void)
{
	publish("attendance.in.3");
	publish("attendance.late.3");
	publish("attendance.in.2");
	publish("attendance.late.2.sub");
	publish("attendance.late.9");
}

static void test_own_queue(void **state)
{
	struct reader r;

	(void)state;
	make_exchange();
	start(&r, CONSUMER_READ, NULL);
	wait_for(is_ready, &r);
	assert_int_equal(strncmp(r.queue, "amq.gen", 7), 0);
	publish_five();
	wait_for(got_three, &r);
	assert_string_equal(r.last_key, "attendance.late.9");
	char queue[128];
	snprintf(queue, sizeof(queue), "%s", r.queue);
	stop(&r);
	wait_for_count(&probe, queue, -1);
}

static void test_lasting_queue(void **state)
{
	struct reader r;

	(void)state;
	make_exchange();
	start(&r, CONSUMER_MAKE, "muster.sub.test");
	wait_for(is_ready, &r);
	stop(&r);
	publish_five();
	wait_for_count(&probe, "muster.sub.test", 3);
	start(&r, CONSUMER_READ, "muster.sub.test");
	wait_for(got_three, &r);
	stop(&r);
	start(&r, CONSUMER_REMOVE, "muster.sub.test");
	wait_for(is_ready, &r);
	stop(&r);
	wait_for_count(&probe, "muster.sub.test", -1);
}

static void test_back_after_a_cut(void **state)
{
	struct reader r;
	struct proxy proxy;

	(void)state;
	make_exchange();
	proxy_start(&proxy, &config);
	start(&r, CONSUMER_READ, NULL);
	wait_for(is_ready, &r);
	proxy_cut(&proxy);
	wait_for(is_ready_twice, &r);
	assert_true(r.error[0] != '\0');
	assert_false(r.failed_for_good);
	publish_five();
	wait_for(got_three, &r);
	stop(&r);
	proxy_stop(&proxy);
}

static void test_no_exchange(void **state)
{
	struct reader r;

	(void)state;
	start(&r, CONSUMER_READ, NULL);
	wait_for(has_given_up, &r);
	assert_non_null(strstr(r.error, "no exchange 'muster.notices'"));
	stop(&r);
}

static void test_other_arguments(void **state)
{
	struct reader r;

	(void)state;
	make_exchange();
	probe_make_queue(&probe, "muster.sub.test");
	start(&r, CONSUMER_MAKE, "muster.sub.test");
	wait_for(has_given_up, &r);
	assert_non_null(strstr(r.error, "inequivalent arg"));
	stop(&r);
}

static void test_wrong_password(void **state)
{
	struct reader r;

	(void)state;
	set(&config, "password", "not this one");
	start(&r, CONSUMER_READ, NULL);
	wait_for(has_given_up, &r);
	assert_non_null(strstr(r.error, "403"));
	stop(&r);
}

static void test_queue_deleted(void **state)
{
	struct reader r;

	(void)state;
	make_exchange();
	start(&r, CONSUMER_READ, "muster.sub.test");
	wait_for(is_ready, &r);
	probe_delete_queue(&probe, "muster.sub.test");
	wait_for(has_given_up, &r);
	assert_string_equal(r.error, "queue muster.sub.test was deleted");
	stop(&r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, broker_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_own_queue),
		TEST(test_lasting_queue),
		TEST(test_back_after_a_cut),
		TEST(test_no_exchange),
		TEST(test_other_arguments),
		TEST(test_wrong_password),
		TEST(test_queue_deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
