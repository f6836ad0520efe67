/* SPDX-License-Identifier: MIT */
/* What a dead message says about itself, where it goes next, and the delays of the configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/mem.h"
#include "mq/delays.h"
#include "mq/letter.h"
#include "mq/retry.h"

#define assert_bytes(b, literal) assert_true(bytes_eq(b, BYTES_LIT(literal)))

static amqp_field_value_t text(const char *s)
{
	amqp_field_value_t v = {.kind = AMQP_FIELD_KIND_UTF8};

	v.value.bytes = amqp_text(s);
	return v;
}

/* A death as the broker writes it. The entries are the caller's. */
static amqp_field_value_t death(
	const char *queue, const char *reason, amqp_field_value_t *key, amqp_table_entry_t *entries)
{
	amqp_field_value_t v = {.kind = AMQP_FIELD_KIND_TABLE};
	amqp_field_value_t keys = {.kind = AMQP_FIELD_KIND_ARRAY};

	keys.value.array = (amqp_array_t){.num_entries = 1, .entries = key};
	entries[0] = (amqp_table_entry_t){amqp_text("reason"), text(reason)};
	entries[1] = (amqp_table_entry_t){amqp_text("queue"), text(queue)};
	entries[2] = (amqp_table_entry_t){amqp_text("routing-keys"), keys};
	v.value.table = (amqp_table_t){.num_entries = 3, .entries = entries};
	return v;
}

static struct mq_message read_with(amqp_table_entry_t *headers, int count)
{
	amqp_basic_properties_t p = {._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG,
		.message_id = amqp_text("p3-17")};
	struct codec_content content = {.properties = &p, .body = BYTES_LIT("{}")};
	struct mq_message m;

	p.headers = (amqp_table_t){.num_entries = count, .entries = headers};
	letter_read(&content, &m);
	return m;
}

static void test_first_death(void **state)
{
	amqp_table_entry_t entries[3];
	amqp_field_value_t key = text("attendance.in.4");
	amqp_field_value_t deaths[1] = {death("muster.sub.a", "rejected", &key, entries)};
	amqp_table_entry_t headers[1] = {{amqp_text("x-death"), {.kind = AMQP_FIELD_KIND_ARRAY}}};

	(void)state;
	headers[0].value.value.array = (amqp_array_t){.num_entries = 1, .entries = deaths};
	struct mq_message m = read_with(headers, 1);
	assert_bytes(m.message_id, "p3-17");
	assert_bytes(m.queue, "muster.sub.a");
	assert_bytes(m.reason, "rejected");
	assert_bytes(m.key, "attendance.in.4");
	assert_int_equal(m.attempt, 0);
}

/* On a later round our headers are there too, and the end of a wait may stand among the deaths. */
static void test_later_death(void **state)
{
	amqp_table_entry_t first[3], second[3];
	amqp_field_value_t key = text("muster.sub.a");
	amqp_field_value_t deaths[2] = {death("muster.delay.5s", "expired", &key, first),
		death("muster.sub.a", "delivery_limit", &key, second)};
	amqp_table_entry_t headers[4] = {{amqp_text("x-death"), {.kind = AMQP_FIELD_KIND_ARRAY}},
		{amqp_text(HEADER_ATTEMPT), {.kind = AMQP_FIELD_KIND_I32}},
		{amqp_text(HEADER_KEY), text("team.moved.9")}, {amqp_text(HEADER_QUEUE), text("another")}};

	(void)state;
	headers[0].value.value.array = (amqp_array_t){.num_entries = 2, .entries = deaths};
	headers[1].value.value.i32 = 2;
	struct mq_message m = read_with(headers, 4);
	assert_bytes(m.queue, "muster.sub.a");
	assert_bytes(m.reason, "delivery_limit");
	assert_bytes(m.key, "team.moved.9");
	assert_int_equal(m.attempt, 2);
}

static void test_odd_headers(void **state)
{
	char long_name[300] = {0};
	amqp_field_value_t junk[2] = {text("no table"), {.kind = AMQP_FIELD_KIND_TABLE}};
	amqp_table_entry_t headers[4] = {{amqp_text("x-death"), {.kind = AMQP_FIELD_KIND_ARRAY}},
		{amqp_text(HEADER_ATTEMPT), {.kind = AMQP_FIELD_KIND_I64}},
		{amqp_text(HEADER_REASON), {.kind = 'V'}}};

	(void)state;
	memset(long_name, 'q', sizeof(long_name) - 1);
	headers[0].value.value.array = (amqp_array_t){.num_entries = 2, .entries = junk};
	headers[1].value.value.i64 = -5;
	headers[3] = (amqp_table_entry_t){amqp_text(HEADER_QUEUE), text(long_name)};
	struct mq_message m = read_with(headers, 4);
	assert_int_equal(m.queue.n, 0);
	assert_int_equal(m.reason.n, 0);
	assert_int_equal(m.attempt, 0);
	headers[0].value = text("x-death should be an array");
	headers[1].value.value.i64 = INT64_MAX;
	m = read_with(headers, 2);
	assert_int_equal(m.queue.n, 0);
	assert_int_equal(m.attempt, 1000000);
}

static struct delays two_delays(void)
{
	struct buf errors = BUF_INIT;
	struct delays d;

	assert_int_equal(delays_parse(&d, "5s 30s", &errors), 0);
	return d;
}

static void test_route(void **state)
{
	struct delays d = two_delays();
	struct mq_message dead = {.queue = BYTES_LIT("muster.sub.a"), .reason = BYTES_LIT("rejected")}, fresh;
	char exchange[RETRY_EXCHANGE_MAX];

	(void)state;
	assert_false(retry_route(&dead, &d, exchange, &fresh));
	assert_bytes(fresh.exchange, "muster.delay.5s");
	assert_bytes(fresh.routing_key, "muster.sub.a");
	assert_int_equal(fresh.attempt, 1);
	dead.attempt = 1;
	assert_false(retry_route(&dead, &d, exchange, &fresh));
	assert_bytes(fresh.exchange, "muster.delay.30s");
	dead.attempt = 2;
	assert_true(retry_route(&dead, &d, exchange, &fresh));
	assert_bytes(fresh.exchange, "");
	assert_bytes(fresh.routing_key, "muster.parked");
	assert_int_equal(fresh.attempt, 3);
	assert_bytes(fresh.queue, "muster.sub.a");
}

static void test_route_from_nowhere(void **state)
{
	struct delays d = two_delays();
	struct mq_message dead = {0}, fresh;
	char exchange[RETRY_EXCHANGE_MAX];

	(void)state;
	assert_true(retry_route(&dead, &d, exchange, &fresh));
	assert_bytes(fresh.routing_key, "muster.parked");
	assert_true(fresh.reason.n > 0);
	assert_int_equal(fresh.queue.n, 0);
}

static void test_copy(void **state)
{
	char body[] = "{\"a\":1}";
	struct mq_message m = {.exchange = BYTES_LIT("e"),
		.routing_key = BYTES_LIT("k"),
		.body = bytes_of(body),
		.queue = BYTES_LIT("q"),
		.attempt = 4};
	struct mq_message *copy = mq_message_copy(&m);

	(void)state;
	body[0] = 'x';
	assert_bytes(copy->exchange, "e");
	assert_bytes(copy->routing_key, "k");
	assert_bytes(copy->body, "{\"a\":1}");
	assert_bytes(copy->queue, "q");
	assert_int_equal(copy->message_id.n, 0);
	assert_int_equal(copy->attempt, 4);
	free(copy);
}

static void test_delays(void **state)
{
	static const char *const wrong[] = {"5", "5x", "s", "-5s", "0s", "5s;30s", "31d", "99999999999s",
		"5s 1.5m", "1s 2s 3s 4s 5s 6s 7s 8s 9s 10s 11s 12s 13s 14s 15s 16s 17s", "000000000000005s",
		"5S"};
	struct buf errors = BUF_INIT;
	struct delays d = {0};

	(void)state;
	assert_int_equal(delays_parse(&d, " 200ms, 30s\t5m 1h 2d ", &errors), 0);
	assert_int_equal(d.count, 5);
	assert_string_equal(d.item[0].text, "200ms");
	assert_int_equal(d.item[0].ms, 200);
	assert_int_equal(d.item[2].ms, 300000);
	assert_int_equal(d.item[4].ms, 172800000);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		buf_clear(&errors);
		assert_int_equal(delays_parse(&d, wrong[i], &errors), -1);
		assert_true(errors.len > 0);
		assert_int_equal(d.count, 5);
	}
	assert_int_equal(delays_parse(&d, "", &errors), 0);
	assert_int_equal(d.count, 0);
	buf_release(&errors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_death),
		cmocka_unit_test(test_later_death),
		cmocka_unit_test(test_odd_headers),
		cmocka_unit_test(test_route),
		cmocka_unit_test(test_route_from_nowhere),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_delays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
