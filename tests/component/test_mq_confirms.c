/* SPDX-License-Identifier: MIT */
/* A publisher against a broker of the test's own, which says exactly what the test wants: confirms out of
 * order and by the many, returns, nacks, nonsense, silence. */
#include "tests/component/mq_fixture.h"

#include <errno.h>

#include "mq/publisher.h"

/* One connection at a time is enough. It answers the handshake and the opening of channels by itself. */
struct broker {
	struct evconnlistener *listener;
	struct bufferevent *bev;
	bool greeted;
	int port;
	int connections;
	int published;             /* on this connection */
	amqp_method_number_t mute; /* this method is not answered */
	uint32_t frame_max;        /* offered */
};

static struct broker broker;
static struct link *link_;
static struct publisher *publisher;
static bool room;
static int broken_code;
static char outcomes[256]; /* a letter each: C, R, N or L, with the number of the message, in order */

static void say(uint16_t channel, amqp_method_number_t id, void *decoded)
{
	assert_int_equal(codec_put_method(bufferevent_get_output(broker.bev), channel, id, decoded), 0);
}

static void say_start(void)
{
	amqp_connection_start_t start = {
		.version_minor = 9, .mechanisms = amqp_text("PLAIN AMQPLAIN"), .locales = amqp_text("en_US")};

	say(0, AMQP_CONNECTION_START_METHOD, &start);
}

static void say_tune(void)
{
	amqp_connection_tune_t tune = {.frame_max = broker.frame_max};

	say(0, AMQP_CONNECTION_TUNE_METHOD, &tune);
}

static void answer(uint16_t channel, amqp_method_number_t id)
{
	union {
		amqp_connection_open_ok_t open;
		amqp_channel_open_ok_t channel_open;
		amqp_confirm_select_ok_t select;
		amqp_connection_close_ok_t close;
	} ok = {0};

	if (id == AMQP_BASIC_PUBLISH_METHOD)
		broker.published++;
	if (id == broker.mute)
		return;
	if (id == AMQP_CONNECTION_START_OK_METHOD)
		say_tune();
	if (id == AMQP_CONNECTION_OPEN_METHOD)
		say(channel, AMQP_CONNECTION_OPEN_OK_METHOD, &ok);
	if (id == AMQP_CHANNEL_OPEN_METHOD)
		say(channel, AMQP_CHANNEL_OPEN_OK_METHOD, &ok);
	if (id == AMQP_CONFIRM_SELECT_METHOD)
		say(channel, AMQP_CONFIRM_SELECT_OK_METHOD, &ok);
	if (id == AMQP_CONNECTION_CLOSE_METHOD)
		say(channel, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
}

static void broker_read(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	uint8_t head[11];

	(void)arg;
	if (!broker.greeted && evbuffer_get_length(in) >= 8) {
		evbuffer_drain(in, 8);
		broker.greeted = true;
		say_start();
	}
	while (evbuffer_copyout(in, head, sizeof(head)) == (ev_ssize_t)sizeof(head)) {
		size_t n = (size_t)head[3] << 24 | (size_t)head[4] << 16 | (size_t)head[5] << 8 | head[6];
		if (evbuffer_get_length(in) < n + 8)
			return;
		if (head[0] == AMQP_FRAME_METHOD)
			answer((uint16_t)(head[1] << 8 | head[2]), (uint32_t)head[7] << 24 |
									   (uint32_t)head[8] << 16 |
									   (uint32_t)head[9] << 8 | head[10]);
		evbuffer_drain(in, n + 8);
	}
}

static void broker_hang_up(void)
{
	if (broker.bev != NULL)
		bufferevent_free(broker.bev);
	broker.bev = NULL;
}

static void broker_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	(void)what;
	(void)arg;
	broker_hang_up();
}

static void broker_accept(
	struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int len, void *arg)
{
	(void)l;
	(void)from;
	(void)len;
	(void)arg;
	broker_hang_up();
	broker.bev = bufferevent_socket_new(loop, fd, BEV_OPT_CLOSE_ON_FREE);
	broker.greeted = false;
	broker.published = 0;
	broker.connections++;
	bufferevent_setcb(broker.bev, broker_read, NULL, broker_event, NULL);
	bufferevent_enable(broker.bev, EV_READ | EV_WRITE);
}

static void broker_start(void)
{
	broker = (struct broker){0};
	broker.listener = listen_here(broker_accept, NULL, &broker.port);
}

static void on_room(void *arg)
{
	(void)arg;
	room = true;
}

static void on_broken(void *arg, int code, const char *text)
{
	(void)arg;
	(void)text;
	broken_code = code;
}

static const struct publisher_ops ops = {on_room, on_broken};
static const struct link_ops no_ops = {0};

static int setup(void **state)
{
	struct link_params params = {.name = "test",
		.host = "127.0.0.1",
		.user = "u",
		.password = "p",
		.vhost = "/",
		.timeout_ms = 400};

	(void)state;
	loop_start();
	broker_start();
	params.port = broker.port;
	link_ = link_new(loop, &params, &no_ops, NULL);
	publisher = publisher_new(link_, 16, &ops, NULL);
	publisher_hold(publisher, false);
	outcomes[0] = '\0';
	room = false;
	broken_code = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	publisher_free(publisher);
	link_free(link_);
	broker_hang_up();
	evconnlistener_free(broker.listener);
	loop_stop();
	return 0;
}

static void on_outcome(enum mq_outcome outcome, void *arg)
{
	size_t n = strlen(outcomes);

	snprintf(outcomes + n, sizeof(outcomes) - n, "%c%d ", "CRNL"[outcome], (int)(intptr_t)arg);
}

static int send_as(int number, const char *id)
{
	struct mq_message m = {
		.routing_key = BYTES_LIT("q"), .message_id = bytes_of(id), .body = BYTES_LIT("{}")};

	return publisher_send(publisher, &m, on_outcome, (void *)(intptr_t)number);
}

static void send_some(int count)
{
	for (int i = 1; i <= count; i++) {
		char id[16];
		snprintf(id, sizeof(id), "m%d", i);
		assert_int_equal(send_as(i, id), 0);
	}
}

static bool all_published(void *arg)
{
	return broker.published == *(int *)arg;
}

/* Starts, and sends messages 1 to count, which have the tags 1 to count. */
static void begin(int count)
{
	link_start(link_);
	wait_for(flag_is_set, &room);
	send_some(count);
	wait_for(all_published, &count);
}

static void ack(uint64_t tag, bool multiple)
{
	amqp_basic_ack_t a = {.delivery_tag = tag, .multiple = multiple};

	say(1, AMQP_BASIC_ACK_METHOD, &a);
}

static void nack(uint64_t tag, bool multiple)
{
	amqp_basic_nack_t n = {.delivery_tag = tag, .multiple = multiple};

	say(1, AMQP_BASIC_NACK_METHOD, &n);
}

static void give_back(const char *id)
{
	amqp_basic_return_t r = {.reply_code = 312, .reply_text = amqp_text("NO_ROUTE")};
	amqp_basic_publish_t publish = {0};
	amqp_basic_properties_t p = {._flags = AMQP_BASIC_MESSAGE_ID_FLAG, .message_id = amqp_text(id)};
	struct evbuffer *content = evbuffer_new();
	uint8_t head[7];

	say(1, AMQP_BASIC_RETURN_METHOD, &r);
	assert_int_equal(codec_put_publish(content, 1, 131072, &publish, &p, BYTES_LIT("{}")), 0);
	evbuffer_copyout(content, head, sizeof(head));
	evbuffer_drain(content, (size_t)head[6] + 8);
	evbuffer_add_buffer(bufferevent_get_output(broker.bev), content);
	evbuffer_free(content);
}

static const char *expected;

static bool outcomes_are_expected(void *arg)
{
	(void)arg;
	return strcmp(outcomes, expected) == 0;
}

static void expect(const char *text)
{
	expected = text;
	if (!wait_ms(outcomes_are_expected, NULL, 5000))
		fail_msg("outcomes are '%s', not '%s'", outcomes, text);
}

static void test_unordered_and_multiple(void **state)
{
	(void)state;
	begin(10);
	ack(5, false);
	ack(3, true);
	ack(9, false);
	ack(0, true);
	expect("C5 C1 C2 C3 C9 C4 C6 C7 C8 C10 ");
	assert_int_equal(publisher_pending(publisher), 0);
	assert_int_equal(publisher_room(publisher), 16);
}

static void test_nacks(void **state)
{
	(void)state;
	begin(4);
	nack(2, false);
	nack(3, true);
	ack(4, false);
	expect("N2 N1 N3 C4 ");
}

static void test_returns(void **state)
{
	(void)state;
	begin(3);
	assert_int_equal(send_as(4, "m2"), 0);
	give_back("m2");
	ack(4, true);
	expect("C1 R2 C3 C4 ");
	assert_int_equal(publisher_counts(publisher)->outcome[MQ_RETURNED], 1);
}

static bool reconnected(void *arg)
{
	(void)arg;
	return broker.connections == 2 && room;
}

static void expect_dropped(const char *reason)
{
	room = false;
	wait_for(reconnected, NULL);
	if (strstr(link_error(link_), reason) == NULL)
		fail_msg("'%s' does not say '%s'", link_error(link_), reason);
}

static void test_unknown_tag(void **state)
{
	(void)state;
	begin(2);
	ack(1, false);
	ack(3, false);
	expect_dropped("a confirm of message 3");
	expect("C1 L2 ");
}

static void test_same_tag_twice(void **state)
{
	(void)state;
	begin(2);
	ack(2, false);
	ack(2, false);
	expect_dropped("a confirm of message 2");
	expect("C2 L1 ");
}

static void test_return_of_nothing(void **state)
{
	(void)state;
	begin(1);
	give_back("m7");
	expect_dropped("a return");
	expect("L1 ");
}

static void test_connection_lost(void **state)
{
	(void)state;
	begin(3);
	ack(2, false);
	expect("C2 ");
	broker_hang_up();
	expect_dropped("closed by the broker");
	expect("C2 L1 L3 ");
	/* Tags start anew. */
	send_some(1);
	wait_for(all_published, &(int){1});
	ack(1, false);
	expect("C2 L1 L3 C1 ");
}

static void test_channel_closed(void **state)
{
	amqp_channel_close_t close = {.reply_code = 404, .reply_text = amqp_text("NOT_FOUND")};

	(void)state;
	begin(2);
	room = false;
	say(1, AMQP_CHANNEL_CLOSE_METHOD, &close);
	expect("L1 L2 ");
	assert_int_equal(broken_code, 404);
	assert_int_equal(send_as(1, "m1"), -EAGAIN);
	wait_for(flag_is_set, &room);
	assert_int_equal(broker.connections, 1);
	send_some(1);
	wait_for(all_published, &(int){3});
	ack(1, false);
	expect("L1 L2 C1 ");
}

/* The window counts what is under way, and a confirm that is late does not close it, up to the ring's 64. */
static void test_window(void **state)
{
	int sent = 16;

	(void)state;
	begin(16);
	assert_int_equal(publisher_room(publisher), 0);
	assert_int_equal(send_as(17, "m17"), -EAGAIN);
	for (uint64_t tag = 2; publisher_room(publisher) > 0 || sent < 64; tag++) {
		room = false;
		ack(tag, false);
		wait_for(flag_is_set, &room);
		assert_int_equal(send_as(0, "m"), 0);
		sent++;
	}
	assert_int_equal(sent, 64);
	room = false;
	ack(1, false);
	wait_for(flag_is_set, &room);
	assert_true(publisher_room(publisher) > 0);
}

static void test_window_grows(void **state)
{
	(void)state;
	begin(16);
	ack(3, false);
	expect("C3 ");
	publisher_set_window(publisher, 500);
	assert_int_equal(publisher_room(publisher), 485);
	for (int i = 0; i < 485; i++)
		assert_int_equal(send_as(99, "m"), 0);
	ack(16, false);
	ack(15, true);
	expect("C3 C16 C1 C2 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C14 C15 ");
}

static bool connected_thrice(void *arg)
{
	(void)arg;
	return broker.connections >= 3;
}

static void stuck(amqp_method_number_t mute, const char *reason)
{
	broker.mute = mute;
	link_start(link_);
	wait_for(connected_thrice, NULL);
	if (strstr(link_error(link_), reason) == NULL)
		fail_msg("'%s' does not say '%s'", link_error(link_), reason);
	broker.mute = 0;
	wait_for(flag_is_set, &room);
}

static void test_stuck_at_login(void **state)
{
	(void)state;
	stuck(AMQP_CONNECTION_START_OK_METHOD, "login: no answer");
}

static void test_stuck_at_open(void **state)
{
	(void)state;
	stuck(AMQP_CONNECTION_OPEN_METHOD, "opening: no answer");
}

static void test_stuck_at_channel(void **state)
{
	(void)state;
	stuck(AMQP_CHANNEL_OPEN_METHOD, "no answer on channel 1");
}

static void test_stuck_at_confirm_select(void **state)
{
	(void)state;
	stuck(AMQP_CONFIRM_SELECT_METHOD, "no answer on channel 1");
}

static void test_frames_too_small(void **state)
{
	(void)state;
	broker.frame_max = 100;
	link_start(link_);
	wait_for(connected_thrice, NULL);
	assert_non_null(strstr(link_error(link_), "frames of 100 bytes"));
}

static bool is_stopped(void *arg)
{
	(void)arg;
	return link_state(link_) == LINK_STOPPED;
}

/* A goodbye that is not answered ends all the same, and what was under way is told. */
static void test_close_without_answer(void **state)
{
	(void)state;
	begin(1);
	broker.mute = AMQP_CONNECTION_CLOSE_METHOD;
	link_close(link_);
	wait_for(is_stopped, NULL);
	expect("L1 ");
	assert_int_equal(broker.connections, 1);
}

static void test_out_of_place(void **state)
{
	amqp_connection_tune_t tune = {.frame_max = 131072};
	amqp_queue_bind_ok_t ok = {0};

	(void)state;
	begin(0);
	say(0, AMQP_CONNECTION_TUNE_METHOD, &tune);
	expect_dropped("out of place");
	say(1, AMQP_QUEUE_BIND_OK_METHOD, &ok);
	room = false;
	wait_for(connected_thrice, NULL);
	assert_non_null(strstr(link_error(link_), "not asked for"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_unordered_and_multiple),
		TEST(test_nacks),
		TEST(test_returns),
		TEST(test_unknown_tag),
		TEST(test_same_tag_twice),
		TEST(test_return_of_nothing),
		TEST(test_connection_lost),
		TEST(test_channel_closed),
		TEST(test_window),
		TEST(test_window_grows),
		TEST(test_stuck_at_login),
		TEST(test_stuck_at_open),
		TEST(test_stuck_at_channel),
		TEST(test_stuck_at_confirm_select),
		TEST(test_frames_too_small),
		TEST(test_close_without_answer),
		TEST(test_out_of_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
