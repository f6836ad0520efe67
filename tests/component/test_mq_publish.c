/* SPDX-License-Identifier: MIT */
/* Publishing through a real broker: every message ends in one outcome, and none that was confirmed is
 * missing. */
#include "tests/component/mq_broker.h"

#include <errno.h>

#define MANY 20000

struct sender {
	struct mq *mq;
	int total;
	int next; /* never sent so far */
	int outcomes[MQ_LOST + 1];
	bool inside; /* mq_publish() is running */
	int *again;  /* a stack of numbers to send again */
	int again_count;
	struct ticket {
		struct sender *sender;
		int number;
		int confirmed;
	} * tickets;
};

static void send_more(void *arg);

static void on_outcome(enum mq_outcome outcome, void *arg)
{
	struct ticket *t = arg;
	struct sender *s = t->sender;

	assert_false(s->inside);
	s->outcomes[outcome]++;
	if (outcome == MQ_CONFIRMED)
		t->confirmed++;
	else
		s->again[s->again_count++] = t->number;
}

static int send_one(struct sender *s, int number)
{
	static const struct bytes cc[] = {
		{"attendance.in.1.sub", 19}, {"attendance.in.2.sub", 19}, {"attendance.in.3.sub", 19}};
	char id[32], body[160];
	struct mq_message m = {.exchange = BYTES_LIT("muster.notices"),
		.routing_key = BYTES_LIT("attendance.in.4"),
		.cc = cc,
		.cc_count = ARRAY_LEN(cc),
		.type = BYTES_LIT("attendance.in"),
		.timestamp_s = 1700000000};

	snprintf(id, sizeof(id), "p1-%d", number);
	snprintf(body, sizeof(body), "{\"v\":1,\"events\":[{\"employee\":\"E%d\",\"path\":\"1:2:3:4\"}]}",
		number);
	m.message_id = bytes_of(id);
	m.body = bytes_of(body);
	s->inside = true;
	int rc = mq_publish(s->mq, &m, on_outcome, &s->tickets[number]);
	s->inside = false;
	return rc;
}

static void send_more(void *arg)
{
	struct sender *s = arg;

	while (mq_room(s->mq) > 0 && (s->again_count > 0 || s->next < s->total)) {
		int number = s->again_count > 0 ? s->again[--s->again_count] : s->next++;
		assert_int_equal(send_one(s, number), 0);
	}
}

static bool all_confirmed(void *arg)
{
	struct sender *s = arg;

	for (int i = 0; i < s->total; i++) {
		if (s->tickets[i].confirmed == 0)
			return false;
	}
	return true;
}

static void sender_start(struct sender *s, int total)
{
	*s = (struct sender){.total = total};
	s->tickets = xcalloc((size_t)total, sizeof(*s->tickets));
	s->again = xcalloc((size_t)total, sizeof(int));
	for (int i = 0; i < total; i++)
		s->tickets[i] = (struct ticket){.sender = s, .number = i};
	s->mq = mq_new(loop, &config);
	assert_non_null(s->mq);
	mq_on_room(s->mq, send_more, s);
}

static void sender_stop(struct sender *s)
{
	drain_and_free(s->mq);
	free(s->tickets);
	free(s->again);
}

/* How many different numbers are in the queue; all its messages are counted into *all. */
static int distinct(const char *queue, int total, int *all)
{
	char *seen = xcalloc((size_t)total, 1);
	const struct mq_message *m;
	int found = 0, number;

	*all = 0;
	while ((m = probe_get(&probe, queue)) != NULL) {
		char id[32];
		assert_int_equal(sscanf(bytes_copy(id, sizeof(id), m->message_id), "p1-%d", &number), 1);
		assert_true(number >= 0 && number < total);
		found += seen[number] == 0;
		seen[number] = 1;
		(*all)++;
	}
	free(seen);
	return found;
}

static void test_twenty_thousand_confirmed(void **state)
{
	struct sender s;

	(void)state;
	sender_start(&s, MANY);
	wait_for(all_confirmed, &s);
	assert_int_equal(s.outcomes[MQ_CONFIRMED], MANY);
	wait_for_count(&probe, "muster.supervisors", MANY);
	struct mq_counts n;
	mq_counts(s.mq, &n);
	assert_int_equal(n.published, MANY);
	assert_int_equal(n.confirmed, MANY);
	assert_int_equal(n.unconfirmed, 0);
	sender_stop(&s);
}

static void test_cc_keys_reach_a_queue_once(void **state)
{
	struct sender s;

	(void)state;
	sender_start(&s, 1);
	mq_on_room(s.mq, NULL, NULL);
	wait_for(mq_is_ready, s.mq);
	probe_make_queue(&probe, "muster.test");
	probe_bind(&probe, "muster.test", "attendance.*.2.#");
	probe_bind(&probe, "muster.test", "attendance.in.4");
	send_more(&s);
	wait_for(all_confirmed, &s);
	wait_for_count(&probe, "muster.test", 1);
	const struct mq_message *m = probe_get(&probe, "muster.test");
	assert_true(bytes_eq(m->message_id, BYTES_LIT("p1-0")));
	assert_true(bytes_eq(m->type, BYTES_LIT("attendance.in")));
	assert_int_equal(m->timestamp_s, 1700000000);
	assert_int_equal(m->attempt, 0);
	sender_stop(&s);
}

static bool one_outcome(void *arg)
{
	struct sender *s = arg;

	return s->outcomes[0] + s->outcomes[1] + s->outcomes[2] + s->outcomes[3] > 0;
}

static void test_unroutable_is_returned(void **state)
{
	struct sender s;
	struct mq_message m = {.exchange = BYTES_LIT("muster.notices"),
		.routing_key = BYTES_LIT("nobody.listens"),
		.message_id = BYTES_LIT("p1-0"),
		.body = BYTES_LIT("{}")};

	(void)state;
	sender_start(&s, 1);
	mq_on_room(s.mq, NULL, NULL);
	wait_for(mq_is_ready, s.mq);
	assert_int_equal(mq_publish(s.mq, &m, on_outcome, &s.tickets[0]), 0);
	wait_for(one_outcome, &s);
	assert_int_equal(s.outcomes[MQ_RETURNED], 1);
	sender_stop(&s);
}

static void test_large_and_empty_bodies(void **state)
{
	struct sender s;
	size_t size = 700001;
	char *body = xmalloc(size);
	struct mq_message m = {.routing_key = BYTES_LIT("muster.test"), .message_id = BYTES_LIT("big")};

	(void)state;
	for (size_t i = 0; i < size; i++)
		body[i] = (char)('a' + i % 23);
	m.body = (struct bytes){body, size};
	probe_make_queue(&probe, "muster.test");
	sender_start(&s, 2);
	mq_on_room(s.mq, NULL, NULL);
	wait_for(mq_is_ready, s.mq);
	assert_int_equal(mq_publish(s.mq, &m, on_outcome, &s.tickets[0]), 0);
	m.body = (struct bytes){"", 0};
	assert_int_equal(mq_publish(s.mq, &m, on_outcome, &s.tickets[1]), 0);
	wait_for(all_confirmed, &s);
	assert_true(bytes_eq(probe_get(&probe, "muster.test")->body, (struct bytes){body, size}));
	assert_int_equal(probe_get(&probe, "muster.test")->body.n, 0);
	free(body);
	sender_stop(&s);
}

static void test_impossible_is_refused(void **state)
{
	struct sender s;
	char key[300];
	struct mq_message m = {.exchange = BYTES_LIT("muster.notices"), .routing_key = {key, sizeof(key)}};

	(void)state;
	memset(key, 'k', sizeof(key));
	sender_start(&s, 1);
	mq_on_room(s.mq, NULL, NULL);
	assert_int_equal(mq_publish(s.mq, &m, on_outcome, &s.tickets[0]), -EAGAIN);
	wait_for(mq_is_ready, s.mq);
	assert_int_equal(mq_publish(s.mq, &m, on_outcome, &s.tickets[0]), -EINVAL);
	sender_stop(&s);
}

static bool third_confirmed(void *arg)
{
	struct sender *s = arg;

	return s->outcomes[MQ_CONFIRMED] > s->total / 3;
}

/* The connection is cut twice while messages are under way: what was lost is sent again, nothing is missing.
 */
static void test_cut_while_publishing(void **state)
{
	struct sender s;
	struct proxy proxy;
	int all;

	(void)state;
	proxy_start(&proxy, &config);
	sender_start(&s, 3000);
	wait_for(third_confirmed, &s);
	proxy_cut_and_wait(&proxy, s.mq);
	proxy_cut_and_wait(&proxy, s.mq);
	wait_for(all_confirmed, &s);
	assert_true(s.outcomes[MQ_LOST] > 0);
	sender_stop(&s);
	proxy_stop(&proxy);
	config.amqp_port = proxy.to;
	assert_int_equal(distinct("muster.supervisors", 3000, &all), 3000);
	assert_true(all >= 3000);
}

/* Someone deletes the exchange: what was under way is lost, the exchange comes back, all arrives. */
static void test_exchange_deleted(void **state)
{
	struct sender s;

	(void)state;
	sender_start(&s, 3000);
	wait_for(third_confirmed, &s);
	probe_delete_exchange(&probe, "muster.notices");
	wait_for(all_confirmed, &s);
	sender_stop(&s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, broker_setup, broker_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_twenty_thousand_confirmed),
		TEST(test_cc_keys_reach_a_queue_once),
		TEST(test_unroutable_is_returned),
		TEST(test_large_and_empty_bodies),
		TEST(test_impossible_is_refused),
		TEST(test_cut_while_publishing),
		TEST(test_exchange_deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
