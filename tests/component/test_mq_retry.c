/* SPDX-License-Identifier: MIT */
/* Dead messages on a real broker: rejected, waiting, back, and after the last try parked; listed, sent again.
 */
#include "tests/component/mq_broker.h"

#define MESSAGES 200
#define TRIES    3 /* the first and one after each of the two delays */

static struct mq *mq;

/* A consumer that rejects whatever `accept` is not set for. */
struct subscriber {
	struct consumer *consumer;
	bool ready;
	bool accept;
	int deliveries;
	int accepted;
	int tries[MESSAGES]; /* deliveries by number of the message */
	int last_attempt[MESSAGES];
	bool wrong_key;
};

static int setup(void **state)
{
	broker_setup(state);
	mq = mq_new(loop, &config);
	wait_for(mq_is_ready, mq);
	return 0;
}

static int teardown(void **state)
{
	drain_and_free(mq);
	return broker_teardown(state);
}

static void on_ready(void *arg, const char *queue)
{
	((struct subscriber *)arg)->ready = true;
	assert_string_equal(queue, "muster.sub.test");
}

static void on_notice(void *arg, const struct consumer_notice *notice)
{
	struct subscriber *s = arg;
	char id[32];
	int number;

	assert_int_equal(sscanf(bytes_copy(id, sizeof(id), notice->message.message_id), "p1-%d", &number), 1);
	s->deliveries++;
	s->tries[number]++;
	s->last_attempt[number] = notice->message.attempt;
	if (!bytes_eq(notice->message.routing_key, BYTES_LIT("attendance.late.7")))
		s->wrong_key = true;
	if (!s->accept) {
		consumer_reject(s->consumer, notice->tag);
		return;
	}
	s->accepted++;
	consumer_ack(s->consumer, notice->tag);
}

static void on_failed(void *arg, const char *error, bool final)
{
	(void)arg;
	print_message("subscriber: %s%s\n", error, final ? " (final)" : "");
}

static const struct consumer_ops consumer_ops = {on_ready, on_notice, on_failed};

static void subscribe(struct subscriber *s, bool accept)
{
	static const char *const keys[] = {"attendance.late.7"};
	struct consumer_params params = broker_consumer("muster.sub.test", keys, 1);

	*s = (struct subscriber){.accept = accept};
	s->consumer = consumer_new(loop, &params, &consumer_ops, s);
	wait_for(flag_is_set, &s->ready);
}

static void count_confirmed(enum mq_outcome outcome, void *arg)
{
	assert_int_equal(outcome, MQ_CONFIRMED);
	++*(int *)arg;
}

static bool all_there(void *arg)
{
	return *(int *)arg == MESSAGES;
}

static void publish_all(void)
{
	int confirmed = 0;

	for (int i = 0; i < MESSAGES; i++) {
		char id[32], body[64];
		snprintf(id, sizeof(id), "p1-%d", i);
		snprintf(body, sizeof(body), "{\"n\":%d}", i);
		struct mq_message m = {.exchange = BYTES_LIT("muster.notices"),
			.routing_key = BYTES_LIT("attendance.late.7"),
			.message_id = bytes_of(id),
			.type = BYTES_LIT("attendance.late"),
			.timestamp_s = 1700000000 + i,
			.body = bytes_of(body)};
		assert_int_equal(mq_publish(mq, &m, count_confirmed, &confirmed), 0);
	}
	wait_for(all_there, &confirmed);
}

static bool all_parked(void *arg)
{
	struct mq_counts n;

	(void)arg;
	mq_counts(mq, &n);
	return n.parked == MESSAGES;
}

static bool all_accepted(void *arg)
{
	struct subscriber *s = arg;

	return s->accepted == MESSAGES;
}

struct listing {
	bool done;
	size_t count;
	bool as_expected;
	char first_id[64];
	bool seen[MESSAGES];
	int distinct;
};

static void see(struct listing *l, const struct mq_message *m)
{
	char id[32];
	int number;

	assert_int_equal(sscanf(bytes_copy(id, sizeof(id), m->message_id), "p1-%d", &number), 1);
	l->distinct += !l->seen[number];
	l->seen[number] = true;
}

static void on_list(const struct mq_message *const *items, size_t count, const char *error, void *arg)
{
	struct listing *l = arg;

	l->done = l->as_expected = true;
	l->count = count;
	if (error != NULL)
		print_message("list: %s\n", error);
	for (size_t i = 0; i < count; i++) {
		const struct mq_message *m = items[i];
		if (m->attempt != TRIES || !bytes_eq(m->queue, BYTES_LIT("muster.sub.test")) ||
			!bytes_eq(m->reason, BYTES_LIT("rejected")) || m->timestamp_s < 1700000000 ||
			!bytes_eq(m->type, BYTES_LIT("attendance.late")))
			l->as_expected = false;
		see(l, m);
	}
	if (count > 0)
		bytes_copy(l->first_id, sizeof(l->first_id), items[0]->message_id);
}

static void list(struct listing *l, size_t count)
{
	*l = (struct listing){0};
	assert_int_equal(mq_parked_list(mq, count, on_list, l), 0);
	assert_false(l->done);
	wait_for(flag_is_set, &l->done);
}

struct replaying {
	bool done;
	size_t replayed;
	char error[256];
};

static void on_replay(size_t replayed, const char *error, void *arg)
{
	struct replaying *r = arg;

	r->done = true;
	r->replayed = replayed;
	snprintf(r->error, sizeof(r->error), "%s", error != NULL ? error : "");
}

static void replay(struct replaying *r, size_t count, const char *id)
{
	*r = (struct replaying){0};
	assert_int_equal(mq_parked_replay(mq, count, bytes_of(id), on_replay, r), 0);
	assert_false(r->done);
	wait_for(flag_is_set, &r->done);
}

static void park_all(struct subscriber *s)
{

	subscribe(s, false);
	publish_all();
	wait_for(all_parked, NULL);
	wait_for_count(&probe, "muster.parked", MESSAGES);
}

static void test_rejected_until_parked(void **state)
{
	struct subscriber s;

	(void)state;
	park_all(&s);
	assert_int_equal(s.deliveries, MESSAGES * TRIES);
	for (int i = 0; i < MESSAGES; i++) {
		assert_int_equal(s.tries[i], TRIES);
		assert_int_equal(s.last_attempt[i], TRIES - 1);
	}
	assert_false(s.wrong_key);
	wait_for_count(&probe, "muster.dead", 0);
	wait_for_count(&probe, "muster.supervisors", MESSAGES);
	struct mq_counts n;
	mq_counts(mq, &n);
	assert_int_equal(n.retried, MESSAGES * (TRIES - 1));
	consumer_free(s.consumer);
}

static void test_list_takes_nothing(void **state)
{
	struct subscriber s;
	struct listing l, again;

	(void)state;
	park_all(&s);
	list(&l, 50);
	assert_int_equal(l.count, 50);
	assert_true(l.as_expected);
	wait_for_count(&probe, "muster.parked", MESSAGES);
	list(&again, MESSAGES + 50);
	assert_int_equal(again.count, MESSAGES);
	assert_string_equal(again.first_id, l.first_id);
	wait_for_count(&probe, "muster.parked", MESSAGES);
	/* Far more often than the 20 returns after which a 4.x broker drops a message by default. */
	for (int i = 0; i < 30; i++)
		list(&again, 1);
	wait_for_count(&probe, "muster.parked", MESSAGES);
	consumer_free(s.consumer);
}

static void test_replay(void **state)
{
	struct subscriber s;
	struct replaying r;

	(void)state;
	park_all(&s);
	s.accept = true;
	replay(&r, 1, "p1-133");
	assert_string_equal(r.error, "");
	assert_int_equal(r.replayed, 1);
	wait_for_count(&probe, "muster.parked", MESSAGES - 1);
	assert_int_equal(s.accepted, 1);
	assert_int_equal(s.tries[133], TRIES + 1);
	assert_int_equal(s.last_attempt[133], 0);
	replay(&r, 1, "p1-133");
	assert_int_equal(r.replayed, 0);
	replay(&r, 9, "");
	assert_int_equal(r.replayed, 9);
	replay(&r, MESSAGES, "");
	assert_int_equal(r.replayed, MESSAGES - 10);
	wait_for(all_accepted, &s);
	wait_for_count(&probe, "muster.parked", 0);
	assert_false(s.wrong_key);
	consumer_free(s.consumer);
}

/* The queue it came from is gone: the replay says so and the message stays. */
static void test_replay_to_nowhere(void **state)
{
	struct subscriber s;
	struct replaying r;

	(void)state;
	park_all(&s);
	consumer_free(s.consumer);
	probe_delete_queue(&probe, "muster.sub.test");
	replay(&r, 5, "");
	assert_int_equal(r.replayed, 0);
	assert_string_equal(r.error, "queue muster.sub.test does not exist");
	wait_for_count(&probe, "muster.parked", MESSAGES);
}

/* Something without x-death in muster.dead is parked with the reason and does not stop the rest. */
static void test_malformed_dead(void **state)
{
	struct mq_message m = {.routing_key = BYTES_LIT("muster.dead"),
		.message_id = BYTES_LIT("odd"),
		.body = BYTES_LIT("?")};
	int confirmed = 0;
	struct replaying r;

	(void)state;
	assert_int_equal(mq_publish(mq, &m, count_confirmed, &confirmed), 0);
	wait_for_count(&probe, "muster.parked", 1);
	assert_int_equal(confirmed, 1);
	replay(&r, 1, "");
	assert_int_equal(r.replayed, 0);
	assert_string_equal(r.error, "message odd does not say where it came from");
	wait_for_count(&probe, "muster.parked", 1);
	const struct mq_message *got = probe_get(&probe, "muster.parked");
	assert_true(bytes_eq(got->body, BYTES_LIT("?")));
	assert_int_equal(got->attempt, 1);
	assert_true(got->reason.n > 0);
}

static bool parked_at_least_all(void *arg)
{
	(void)arg;
	return probe_count(&probe, "muster.parked") >= MESSAGES;
}

/* All connections of the daemon go again and again while messages die: each is parked at least once. */
static void test_cut_while_retrying(void **state)
{
	struct subscriber s;
	struct proxy proxy;
	struct config through = config;
	struct listing l;

	(void)state;
	drain_and_free(mq);
	proxy_start(&proxy, &through);
	mq = mq_new(loop, &through);
	wait_for(mq_is_ready, mq);
	subscribe(&s, false);
	publish_all();
	for (int i = 0; i < 4; i++)
		proxy_cut_and_wait(&proxy, mq);
	struct mq_counts n;
	wait_for(parked_at_least_all, NULL);
	mq_counts(mq, &n);
	assert_true(n.reconnects >= 8);
	list(&l, 10 * MESSAGES);
	assert_true(l.count >= MESSAGES);
	assert_int_equal(l.distinct, MESSAGES);
	for (int i = 0; i < MESSAGES; i++)
		assert_true(s.tries[i] >= TRIES);
	consumer_free(s.consumer);
	drain_and_free(mq);
	proxy_stop(&proxy);
	mq = mq_new(loop, &config);
	wait_for(mq_is_ready, mq);
}

/* Someone deletes muster.dead under the consumer: it is made anew, and dead messages are taken from it again.
 */
static void test_dead_queue_deleted(void **state)
{
	struct subscriber s;

	(void)state;
	probe_delete_queue(&probe, "muster.dead");
	wait_for_count(&probe, "muster.dead", 0);
	park_all(&s);
	consumer_free(s.consumer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rejected_until_parked),
		TEST(test_list_takes_nothing),
		TEST(test_replay),
		TEST(test_replay_to_nowhere),
		TEST(test_malformed_dead),
		TEST(test_dead_queue_deleted),
		TEST(test_cut_while_retrying),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
