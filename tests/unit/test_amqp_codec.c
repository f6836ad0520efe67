/* SPDX-License-Identifier: MIT */
/* AMQP frames in and out of a buffer: whole, in pieces, and wrong in every way a peer can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "mq/codec.h"

/* What the handler saw, as text. */
struct seen {
	struct buf log;
	struct codec *codec;
	bool stop;
};

static void on_method(void *arg, uint16_t channel, const amqp_method_t *method)
{
	struct seen *s = arg;

	buf_addf(&s->log, "[%u %s", channel, amqp_method_name(method->id));
	if (method->id == AMQP_CONNECTION_TUNE_METHOD) {
		const amqp_connection_tune_t *t = method->decoded;
		buf_addf(&s->log, " %u/%u/%u", t->channel_max, t->frame_max, t->heartbeat);
	}
	if (method->id == AMQP_BASIC_ACK_METHOD) {
		const amqp_basic_ack_t *a = method->decoded;
		buf_addf(&s->log, " %llu/%d", (unsigned long long)a->delivery_tag, a->multiple);
	}
	buf_add_str(&s->log, "]");
	if (s->stop)
		codec_stop(s->codec);
}

static void on_content(void *arg, uint16_t channel, const struct codec_content *content)
{
	struct seen *s = arg;
	const amqp_basic_properties_t *p = content->properties;

	buf_addf(&s->log, "{%u %s id=%.*s headers=%d body=", channel, amqp_method_name(content->method->id),
		(int)p->message_id.len, (const char *)p->message_id.bytes, p->headers.num_entries);
	buf_add_bytes(&s->log, content->body);
	buf_add_str(&s->log, "}");
}

static const struct codec_handler handler = {on_method, on_content};

static void seen_start(struct seen *s)
{
	*s = (struct seen){0};
	s->codec = codec_new(&handler, s);
}

static void seen_stop(struct seen *s)
{
	codec_free(s->codec);
	buf_release(&s->log);
}

static void put_tune(struct evbuffer *out)
{
	amqp_connection_tune_t t = {.channel_max = 2047, .frame_max = 131072, .heartbeat = 60};

	assert_int_equal(codec_put_method(out, 0, AMQP_CONNECTION_TUNE_METHOD, &t), 0);
}

static void put_ack(struct evbuffer *out, uint64_t tag)
{
	amqp_basic_ack_t a = {.delivery_tag = tag, .multiple = 1};

	assert_int_equal(codec_put_method(out, 1, AMQP_BASIC_ACK_METHOD, &a), 0);
}

/* A delivery: the method, then header and bodies as codec_put_publish() makes them. */
static void put_delivery(struct evbuffer *out, uint16_t channel, uint32_t frame_max, struct bytes body)
{
	amqp_basic_deliver_t d = {.consumer_tag = amqp_text("c"),
		.delivery_tag = 7,
		.exchange = amqp_text("e"),
		.routing_key = amqp_text("k")};
	amqp_basic_publish_t publish = {0};
	amqp_table_entry_t entry = {.key = amqp_text("n"), .value = {.kind = AMQP_FIELD_KIND_I32}};
	amqp_basic_properties_t p = {._flags = AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_HEADERS_FLAG,
		.message_id = amqp_text("m1"),
		.headers = {.num_entries = 1, .entries = &entry}};
	struct evbuffer *published = evbuffer_new();
	uint8_t head[7];

	assert_int_equal(codec_put_method(out, channel, AMQP_BASIC_DELIVER_METHOD, &d), 0);
	assert_int_equal(codec_put_publish(published, channel, frame_max, &publish, &p, body), 0);
	evbuffer_copyout(published, head, sizeof(head));
	evbuffer_drain(published, (size_t)head[5] * 256 + head[6] + 8);
	evbuffer_add_buffer(out, published);
	evbuffer_free(published);
}

static void expect(struct evbuffer *in, const char *log)
{
	struct seen s;

	seen_start(&s);
	assert_int_equal(codec_input(s.codec, in), 0);
	assert_string_equal(s.log.data, log);
	assert_int_equal(evbuffer_get_length(in), 0);
	seen_stop(&s);
}

static void test_methods(void **state)
{
	struct evbuffer *in = evbuffer_new();

	(void)state;
	put_tune(in);
	assert_int_equal(codec_put_heartbeat(in), 0);
	put_ack(in, 300000000000);
	expect(in, "[0 AMQP_CONNECTION_TUNE_METHOD 2047/131072/60][1 AMQP_BASIC_ACK_METHOD 300000000000/1]");
	evbuffer_free(in);
}

static void test_contents(void **state)
{
	struct evbuffer *in = evbuffer_new();

	(void)state;
	put_delivery(in, 1, 4096, BYTES_LIT("hello"));
	put_delivery(in, 2, 4096, BYTES_LIT(""));
	expect(in, "{1 AMQP_BASIC_DELIVER_METHOD id=m1 headers=1 body=hello}"
		   "{2 AMQP_BASIC_DELIVER_METHOD id=m1 headers=1 body=}");
	evbuffer_free(in);
}

static void test_body_of_many_frames(void **state)
{
	struct evbuffer *in = evbuffer_new();
	struct seen s;
	size_t size = 300000;
	char *body = xmalloc(size);

	(void)state;
	for (size_t i = 0; i < size; i++)
		body[i] = (char)('a' + i % 23);
	put_delivery(in, 3, 4096, (struct bytes){body, size});
	seen_start(&s);
	assert_int_equal(codec_input(s.codec, in), 0);
	assert_non_null(s.log.data);
	assert_memory_equal(s.log.data + s.log.len - 1 - size, body, size);
	free(body);
	seen_stop(&s);
	evbuffer_free(in);
}

/* Two contents on two channels, their frames mixed. */
static void test_channels_do_not_mix(void **state)
{
	struct evbuffer *one = evbuffer_new(), *two = evbuffer_new(), *in = evbuffer_new();
	uint8_t head[7];

	(void)state;
	put_delivery(one, 1, 4096, BYTES_LIT("first"));
	put_delivery(two, 2, 4096, BYTES_LIT("second"));
	while (evbuffer_get_length(one) > 0) {
		for (int i = 0; i < 2; i++) {
			struct evbuffer *from = i == 0 ? one : two;
			evbuffer_copyout(from, head, sizeof(head));
			evbuffer_remove_buffer(from, in, (size_t)head[5] * 256 + head[6] + 8);
		}
	}
	expect(in, "{1 AMQP_BASIC_DELIVER_METHOD id=m1 headers=1 body=first}"
		   "{2 AMQP_BASIC_DELIVER_METHOD id=m1 headers=1 body=second}");
	evbuffer_free(one);
	evbuffer_free(two);
	evbuffer_free(in);
}

static void test_byte_by_byte(void **state)
{
	struct evbuffer *whole = evbuffer_new(), *in = evbuffer_new();
	struct seen s;
	char c;

	(void)state;
	put_tune(whole);
	put_delivery(whole, 1, 4096, BYTES_LIT("hello"));
	put_ack(whole, 5);
	seen_start(&s);
	while (evbuffer_remove(whole, &c, 1) == 1) {
		evbuffer_add(in, &c, 1);
		assert_int_equal(codec_input(s.codec, in), 0);
	}
	assert_string_equal(s.log.data, "[0 AMQP_CONNECTION_TUNE_METHOD 2047/131072/60]"
					"{1 AMQP_BASIC_DELIVER_METHOD id=m1 headers=1 body=hello}"
					"[1 AMQP_BASIC_ACK_METHOD 5/1]");
	seen_stop(&s);
	evbuffer_free(whole);
	evbuffer_free(in);
}

static void test_stop(void **state)
{
	struct evbuffer *in = evbuffer_new();
	struct seen s;

	(void)state;
	put_ack(in, 1);
	put_ack(in, 2);
	seen_start(&s);
	s.stop = true;
	assert_int_equal(codec_input(s.codec, in), 0);
	assert_string_equal(s.log.data, "[1 AMQP_BASIC_ACK_METHOD 1/1]");
	assert_true(evbuffer_get_length(in) > 0);
	seen_stop(&s);
	evbuffer_free(in);
}

static void refuse(const void *bytes, size_t n, const char *reason)
{
	struct evbuffer *in = evbuffer_new();
	struct seen s;

	seen_start(&s);
	evbuffer_add(in, bytes, n);
	assert_int_equal(codec_input(s.codec, in), -1);
	if (strstr(codec_error(s.codec), reason) == NULL)
		fail_msg("'%s' does not say '%s'", codec_error(s.codec), reason);
	assert_null(s.log.data);
	seen_stop(&s);
	evbuffer_free(in);
}

#define REFUSE(literal, reason) refuse(literal, sizeof(literal) - 1, reason)

static void test_wrong_frames(void **state)
{
	(void)state;
	REFUSE("AMQP\0\0\x08\0", "AMQP 0-0-8");
	REFUSE("HTTP/1.1 400", "not an AMQP frame");
	REFUSE("\4\0\0\0\0\0\0\xce", "type 4");
	REFUSE("\1\0\x10\0\0\0\4\0\x14\0\x0b\xce", "channel 16");
	REFUSE("\1\0\1\0\1\0\0 ", "65536 bytes");
	REFUSE("\1\0\1\xff\xff\xff\xff ", "4294967295 bytes");
	REFUSE("\1\0\1\0\0\0\3\0\x14\0\xce", "with 3 bytes");
	REFUSE("\2\0\1\0\0\0\5\0\x3c\0\0\0\xce", "with 5 bytes");
	REFUSE("\x08\0\0\0\0\0\1x\xce", "with 1 bytes");
	REFUSE("\x08\0\1\0\0\0\0\xce", "with 0 bytes");
	REFUSE("\1\0\0\0\0\0\4\0\x0a\0\x3d\0", "without its end");
	REFUSE("\1\0\0\0\0\0\4\0\x0a\0\x99\xce", "not one to expect");
	REFUSE("\1\0\1\0\0\0\x05\0\x3c\0\x50\0\xce", "0x003c0050");
	REFUSE("\3\0\1\0\0\0\1x\xce", "out of place");
	REFUSE("\2\0\1\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\0\0\0\0\xce", "out of place");
}

/* A client's method from a server, although well-formed: a queue.declare could bring a table. */
static void test_method_of_a_client(void **state)
{
	struct evbuffer *in = evbuffer_new();
	amqp_queue_declare_t d = {.queue = amqp_text("q")};
	char bytes[128];

	(void)state;
	assert_int_equal(codec_put_method(in, 1, AMQP_QUEUE_DECLARE_METHOD, &d), 0);
	ev_ssize_t n = evbuffer_copyout(in, bytes, sizeof(bytes));
	refuse(bytes, (size_t)n, "not one to expect");
	evbuffer_free(in);
}

static void add_be(struct buf *b, uint64_t n, int size)
{
	while (size-- > 0)
		buf_add_char(b, (char)(n >> (8 * size)));
}

static void add_frame(struct buf *b, char type, struct bytes payload)
{
	buf_add_char(b, type);
	add_be(b, 1, 2);
	add_be(b, payload.n, 4);
	buf_add_bytes(b, payload);
	buf_add_char(b, '\xce');
}

/* A delivery whose headers are tables in tables. */
static void add_nested(struct buf *b, int depth)
{
	struct buf header = BUF_INIT;

	add_frame(b, 1, (struct bytes){"\0\x3c\0\x3c\1c\0\0\0\0\0\0\0\1\0\1e\1k", 20});
	add_be(&header, 60, 2);
	add_be(&header, 0, 2);
	add_be(&header, 0, 8);
	add_be(&header, 0x2000, 2);
	for (int i = 0; i < depth; i++) {
		add_be(&header, (uint64_t)(depth - i - 1) * 6, 4);
		if (i < depth - 1)
			buf_add(&header, "\0F", 2);
	}
	add_frame(b, 2, buf_bytes(&header));
	buf_release(&header);
}

static int take(const struct buf *b)
{
	struct evbuffer *in = evbuffer_new();
	struct seen s;

	seen_start(&s);
	evbuffer_add(in, b->data, b->len);
	int rc = codec_input(s.codec, in);
	seen_stop(&s);
	evbuffer_free(in);
	return rc;
}

static void test_nested_tables(void **state)
{
	struct buf b = BUF_INIT;

	(void)state;
	add_nested(&b, 5);
	assert_int_equal(take(&b), 0);
	buf_clear(&b);
	add_nested(&b, 10000);
	assert_int_equal(take(&b), -1);
	buf_release(&b);
}

/* Valid streams with bytes changed, cut and doubled: whatever comes of it, no crash and no hang. */
static void test_mutations(void **state)
{
	struct evbuffer *valid = evbuffer_new();
	unsigned seed = 1;

	(void)state;
	put_tune(valid);
	put_delivery(valid, 1, 4096, BYTES_LIT("hello, this is a body"));
	put_ack(valid, 9);
	size_t n = evbuffer_get_length(valid);
	const char *bytes = (const char *)evbuffer_pullup(valid, -1);
	for (int round = 0; round < 20000; round++) {
		struct buf b = BUF_INIT;
		buf_add(&b, bytes, n);
		for (int i = rand_r(&seed) % 4; i >= 0; i--)
			b.data[(size_t)rand_r(&seed) % n] = (char)rand_r(&seed);
		b.len -= (size_t)rand_r(&seed) % n / 2;
		take(&b);
		buf_release(&b);
	}
	evbuffer_free(valid);
}

static void test_publish_limits(void **state)
{
	struct evbuffer *out = evbuffer_new();
	char key[256], header[5000];
	amqp_basic_publish_t publish = {.routing_key = {.len = sizeof(key), .bytes = key}};
	amqp_table_entry_t entry = {.key = amqp_text("n"), .value = {.kind = AMQP_FIELD_KIND_UTF8}};
	amqp_basic_properties_t p = {
		._flags = AMQP_BASIC_HEADERS_FLAG, .headers = {.num_entries = 1, .entries = &entry}};

	(void)state;
	memset(key, 'k', sizeof(key));
	memset(header, 'h', sizeof(header));
	entry.value.value.bytes = (amqp_bytes_t){.len = 1, .bytes = header};
	assert_int_equal(codec_put_publish(out, 1, 4096, &publish, &p, BYTES_LIT("b")), -1);
	assert_int_equal(evbuffer_get_length(out), 0);
	publish.routing_key.len = 255;
	assert_int_equal(codec_put_publish(out, 1, 4096, &publish, &p, BYTES_LIT("b")), 0);
	evbuffer_drain(out, evbuffer_get_length(out));
	entry.value.value.bytes.len = sizeof(header);
	assert_int_equal(codec_put_publish(out, 1, 4096, &publish, &p, BYTES_LIT("b")), -1);
	assert_int_equal(evbuffer_get_length(out), 0);
	evbuffer_free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_methods),
		cmocka_unit_test(test_contents),
		cmocka_unit_test(test_body_of_many_frames),
		cmocka_unit_test(test_channels_do_not_mix),
		cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_wrong_frames),
		cmocka_unit_test(test_method_of_a_client),
		cmocka_unit_test(test_nested_tables),
		cmocka_unit_test(test_mutations),
		cmocka_unit_test(test_publish_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
