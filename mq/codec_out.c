/* SPDX-License-Identifier: MIT */
/* What goes out: frames encoded straight into the output buffer. */
#include "mq/codec.h"

#include <event2/buffer.h>

#define FRAME_HEAD   7
#define FRAME_END    0xce
#define CLASS_BASIC  60
#define METHOD_ROOM  4096 /* the most that a method we send may take */
#define SHORTSTR_MAX 255

static void put16(uint8_t *p, uint32_t n)
{
	p[0] = (uint8_t)(n >> 8);
	p[1] = (uint8_t)n;
}

static void put32(uint8_t *p, uint32_t n)
{
	put16(p, n >> 16);
	put16(p + 2, n);
}

static void put_head(uint8_t *p, uint8_t type, uint16_t channel, size_t n)
{
	p[0] = type;
	put16(p + 1, channel);
	put32(p + 3, (uint32_t)n);
}

int codec_put_greeting(struct evbuffer *out)
{
	return evbuffer_add(out, "AMQP\0\0\x09\x01", 8);
}

int codec_put_heartbeat(struct evbuffer *out)
{
	static const uint8_t frame[FRAME_HEAD + 1] = {AMQP_FRAME_HEARTBEAT, 0, 0, 0, 0, 0, 0, FRAME_END};

	return evbuffer_add(out, frame, sizeof(frame));
}

/* Writes a method frame to p, which has room for `room` bytes; its length, or -1. */
static ssize_t encode_method(
	uint8_t *p, size_t room, uint16_t channel, amqp_method_number_t id, void *decoded)
{
	amqp_bytes_t args = {.len = room - FRAME_HEAD - 4 - 1, .bytes = p + FRAME_HEAD + 4};
	int n = amqp_encode_method(id, decoded, args);

	if (n < 0)
		return -1;
	put_head(p, AMQP_FRAME_METHOD, channel, (size_t)n + 4);
	put32(p + FRAME_HEAD, id);
	p[FRAME_HEAD + 4 + n] = FRAME_END;
	return FRAME_HEAD + 4 + n + 1;
}

/* Writes a content header frame to p; its length, or -1. */
static ssize_t encode_header(
	uint8_t *p, size_t room, uint16_t channel, amqp_basic_properties_t *properties, uint64_t size)
{
	amqp_bytes_t encoded = {.len = room - FRAME_HEAD - 12 - 1, .bytes = p + FRAME_HEAD + 12};
	int n = amqp_encode_properties(CLASS_BASIC, properties, encoded);

	if (n < 0)
		return -1;
	put_head(p, AMQP_FRAME_HEADER, channel, (size_t)n + 12);
	put32(p + FRAME_HEAD, (uint32_t)CLASS_BASIC << 16);
	put32(p + FRAME_HEAD + 4, (uint32_t)(size >> 32));
	put32(p + FRAME_HEAD + 8, (uint32_t)size);
	p[FRAME_HEAD + 12 + n] = FRAME_END;
	return FRAME_HEAD + 12 + n + 1;
}

int codec_put_method(struct evbuffer *out, uint16_t channel, amqp_method_number_t id, void *decoded)
{
	struct evbuffer_iovec room;

	if (evbuffer_reserve_space(out, METHOD_ROOM, &room, 1) != 1)
		return -1;
	ssize_t n = encode_method(room.iov_base, METHOD_ROOM, channel, id, decoded);
	if (n < 0)
		return -1;
	room.iov_len = (size_t)n;
	return evbuffer_commit_space(out, &room, 1);
}

static size_t value_size(const amqp_field_value_t *v)
{
	size_t n = 1 + 8;

	if (v->kind == AMQP_FIELD_KIND_UTF8)
		n += v->value.bytes.len;
	for (int i = 0; v->kind == AMQP_FIELD_KIND_ARRAY && i < v->value.array.num_entries; i++)
		n += value_size(&v->value.array.entries[i]);
	return n;
}

/* An upper bound of what properties take, for the kinds of values that we send. */
static size_t properties_size(const amqp_basic_properties_t *p)
{
	size_t n = 64 + p->content_type.len + p->message_id.len + p->type.len;

	for (int i = 0; i < p->headers.num_entries; i++)
		n += 1 + p->headers.entries[i].key.len + value_size(&p->headers.entries[i].value);
	return n;
}

static int put_body(struct evbuffer *out, uint16_t channel, uint32_t frame_max, struct bytes body)
{
	static const uint8_t end = FRAME_END;

	while (body.n > 0) {
		uint8_t head[FRAME_HEAD];
		size_t n = body.n < frame_max - FRAME_HEAD - 1 ? body.n : frame_max - FRAME_HEAD - 1;
		put_head(head, AMQP_FRAME_BODY, channel, n);
		if (evbuffer_add(out, head, sizeof(head)) != 0 || evbuffer_add(out, body.p, n) != 0 ||
			evbuffer_add(out, &end, 1) != 0)
			return -1;
		body.p += n;
		body.n -= n;
	}
	return 0;
}

int codec_put_publish(struct evbuffer *out, uint16_t channel, uint32_t frame_max,
	amqp_basic_publish_t *publish, amqp_basic_properties_t *properties, struct bytes body)
{
	struct evbuffer_iovec room;
	size_t method_room = 64 + publish->exchange.len + publish->routing_key.len;
	size_t header_room = FRAME_HEAD + 12 + 1 + properties_size(properties);

	if (publish->exchange.len > SHORTSTR_MAX || publish->routing_key.len > SHORTSTR_MAX ||
		properties->message_id.len > SHORTSTR_MAX || properties->type.len > SHORTSTR_MAX ||
		header_room > frame_max)
		return -1;
	if (evbuffer_reserve_space(out, (ev_ssize_t)(method_room + header_room), &room, 1) != 1)
		return -1;
	uint8_t *p = room.iov_base;
	ssize_t method = encode_method(p, method_room, channel, AMQP_BASIC_PUBLISH_METHOD, publish);
	ssize_t header =
		method < 0 ? -1 : encode_header(p + method, header_room, channel, properties, body.n);
	if (header < 0)
		return -1;
	room.iov_len = (size_t)(method + header);
	if (evbuffer_commit_space(out, &room, 1) != 0)
		return -1;
	return put_body(out, channel, frame_max, body);
}
