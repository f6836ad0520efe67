/* SPDX-License-Identifier: MIT */
/* What comes in; codec_out.c is the other half. */
#include "mq/codec.h"

#include <event2/buffer.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"

#define FRAME_HEAD  7
#define FRAME_END   0xce
#define HEADER_MIN  14 /* class, weight, body size, property flags */
#define CLASS_BASIC 60
#define TABLE_DEPTH 12
#define POOL_PAGE   2048
#define BODY_MAX    ((uint64_t)128 << 20)

/* A content on its way in. Nothing of it exists while `method.id` is 0. */
struct assembly {
	amqp_pool_t pool; /* holds method, properties and the bytes they point to */
	amqp_method_t method;
	amqp_basic_properties_t *properties; /* NULL until the header frame came */
	uint64_t size;
	struct buf body;
};

struct codec {
	const struct codec_handler *handler;
	void *arg;
	uint32_t frame_max;
	bool stopped;
	struct assembly channels[CODEC_CHANNELS];
	char error[160];
};

struct frame {
	uint8_t type;
	uint16_t channel;
	const uint8_t *p;
	size_t n;
};

struct codec *codec_new(const struct codec_handler *handler, void *arg)
{
	struct codec *c = xcalloc(1, sizeof(*c));

	c->handler = handler;
	c->arg = arg;
	c->frame_max = CODEC_FRAME_FIRST;
	for (int i = 0; i < CODEC_CHANNELS; i++)
		init_amqp_pool(&c->channels[i].pool, POOL_PAGE);
	return c;
}

void codec_free(struct codec *c)
{
	if (c == NULL)
		return;
	for (int i = 0; i < CODEC_CHANNELS; i++) {
		empty_amqp_pool(&c->channels[i].pool);
		buf_release(&c->channels[i].body);
	}
	free(c);
}

void codec_set_frame_max(struct codec *c, uint32_t frame_max)
{
	c->frame_max = frame_max;
}

void codec_stop(struct codec *c)
{
	c->stopped = true;
}

const char *codec_error(const struct codec *c)
{
	return c->error;
}

static int __attribute__((format(printf, 2, 3))) fail(struct codec *c, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(c->error, sizeof(c->error), format, ap);
	va_end(ap);
	return -1;
}

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t be32(const uint8_t *p)
{
	return be16(p) << 16 | be16(p + 2);
}

static uint64_t be64(const uint8_t *p)
{
	return (uint64_t)be32(p) << 32 | be32(p + 4);
}

/* A cursor over bytes that came from the peer. A skip past the end sets `bad` and stays there. */
struct walk {
	const uint8_t *p;
	size_t n;
	bool bad;
};

static const uint8_t *walk_take(struct walk *w, size_t n)
{
	if (w->bad || n > w->n) {
		w->bad = true;
		return NULL;
	}
	const uint8_t *p = w->p;
	w->p += n;
	w->n -= n;
	return p;
}

static void walk_shortstr(struct walk *w)
{
	const uint8_t *len = walk_take(w, 1);

	if (len != NULL)
		walk_take(w, *len);
}

static struct walk walk_longstr(struct walk *w)
{
	const uint8_t *len = walk_take(w, 4);
	size_t n = len != NULL ? be32(len) : 0;
	const uint8_t *p = walk_take(w, n);

	return (struct walk){p, p != NULL ? n : 0, w->bad};
}

static void walk_values(struct walk *w, bool named, int depth);

static void walk_value(struct walk *w, int depth)
{
	static const struct {
		char kind;
		uint8_t size;
	} fixed[] = {{'t', 1}, {'b', 1}, {'B', 1}, {'s', 2}, {'u', 2}, {'I', 4}, {'i', 4}, {'f', 4}, {'l', 8},
		{'L', 8}, {'d', 8}, {'T', 8}, {'D', 5}, {'V', 0}};
	const uint8_t *kind = walk_take(w, 1);

	if (kind == NULL)
		return;
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		if (fixed[i].kind == *kind) {
			walk_take(w, fixed[i].size);
			return;
		}
	}
	struct walk inner = walk_longstr(w);
	if (*kind == 'F' || *kind == 'A')
		walk_values(&inner, *kind == 'F', depth + 1);
	else if (*kind != 'S' && *kind != 'x')
		w->bad = true;
	w->bad = w->bad || inner.bad;
}

static void walk_values(struct walk *w, bool named, int depth)
{
	if (depth > TABLE_DEPTH)
		w->bad = true;
	while (!w->bad && w->n > 0) {
		if (named)
			walk_shortstr(w);
		walk_value(w, depth);
	}
}

/* The library decodes tables by recursion without a limit: only tables that pass this are handed to it. */
static bool table_sound(struct walk *w)
{
	struct walk table = walk_longstr(w);

	walk_values(&table, true, 0);
	return !w->bad && !table.bad;
}

static bool properties_sound(const uint8_t *p, size_t n)
{
	struct walk w = {p, n, false};
	const uint8_t *flags = walk_take(&w, 2);

	/* Basic has 14 properties: its flags fit one word. */
	if (flags == NULL || (be16(flags) & 1) != 0)
		return false;
	if ((be16(flags) & AMQP_BASIC_CONTENT_TYPE_FLAG) != 0)
		walk_shortstr(&w);
	if ((be16(flags) & AMQP_BASIC_CONTENT_ENCODING_FLAG) != 0)
		walk_shortstr(&w);
	if ((be16(flags) & AMQP_BASIC_HEADERS_FLAG) != 0)
		return table_sound(&w);
	return !w.bad;
}

static bool carries_content(amqp_method_number_t id)
{
	return id == AMQP_BASIC_DELIVER_METHOD || id == AMQP_BASIC_RETURN_METHOD ||
	       id == AMQP_BASIC_GET_OK_METHOD;
}

/* What a server may say. None but connection.start holds a table. */
static bool from_server(amqp_method_number_t id)
{
	static const amqp_method_number_t known[] = {AMQP_BASIC_ACK_METHOD, AMQP_BASIC_DELIVER_METHOD,
		AMQP_BASIC_RETURN_METHOD, AMQP_BASIC_NACK_METHOD, AMQP_BASIC_GET_OK_METHOD,
		AMQP_BASIC_GET_EMPTY_METHOD, AMQP_BASIC_QOS_OK_METHOD, AMQP_BASIC_CONSUME_OK_METHOD,
		AMQP_BASIC_CANCEL_METHOD, AMQP_BASIC_CANCEL_OK_METHOD, AMQP_CONNECTION_START_METHOD,
		AMQP_CONNECTION_SECURE_METHOD, AMQP_CONNECTION_TUNE_METHOD, AMQP_CONNECTION_OPEN_OK_METHOD,
		AMQP_CONNECTION_CLOSE_METHOD, AMQP_CONNECTION_CLOSE_OK_METHOD, AMQP_CONNECTION_BLOCKED_METHOD,
		AMQP_CONNECTION_UNBLOCKED_METHOD, AMQP_CHANNEL_OPEN_OK_METHOD, AMQP_CHANNEL_FLOW_METHOD,
		AMQP_CHANNEL_CLOSE_METHOD, AMQP_CHANNEL_CLOSE_OK_METHOD, AMQP_EXCHANGE_DECLARE_OK_METHOD,
		AMQP_EXCHANGE_DELETE_OK_METHOD, AMQP_QUEUE_DECLARE_OK_METHOD, AMQP_QUEUE_BIND_OK_METHOD,
		AMQP_QUEUE_UNBIND_OK_METHOD, AMQP_QUEUE_DELETE_OK_METHOD, AMQP_CONFIRM_SELECT_OK_METHOD};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (known[i] == id)
			return true;
	}
	return false;
}

static bool method_sound(const struct frame *f, amqp_method_number_t id)
{
	struct walk w = {f->p, f->n, false};

	if (!from_server(id))
		return false;
	if (id != AMQP_CONNECTION_START_METHOD)
		return true;
	walk_take(&w, 4 + 2); /* the method, the two version bytes */
	return table_sound(&w);
}

/* Decoding points into its input, so what must outlive the frame is copied into the pool first. */
static amqp_bytes_t pooled(amqp_pool_t *pool, const uint8_t *p, size_t n)
{
	amqp_bytes_t copy = {0};

	if (n > 0) {
		amqp_pool_alloc_bytes(pool, n, &copy);
		if (copy.bytes != NULL)
			memcpy(copy.bytes, p, n);
	}
	return copy;
}

static int take_method(struct codec *c, const struct frame *f)
{
	struct assembly *a = &c->channels[f->channel];
	amqp_method_t method = {.id = be32(f->p)};

	if (a->method.id != 0)
		return fail(c, "a method inside a content on channel %u", f->channel);
	if (!method_sound(f, method.id))
		return fail(c, "method 0x%08x is not one to expect, or is malformed", method.id);
	bool content = carries_content(method.id);
	amqp_bytes_t args = amqp_from((struct bytes){(const char *)f->p + 4, f->n - 4});
	if (content)
		args = pooled(&a->pool, f->p + 4, f->n - 4);
	int rc = args.bytes == NULL ? AMQP_STATUS_NO_MEMORY
				    : amqp_decode_method(method.id, &a->pool, args, &method.decoded);
	if (rc < 0)
		return fail(c, "method 0x%08x: %s", method.id, amqp_error_string2(rc));
	if (content) {
		a->method = method;
		return 0;
	}
	c->handler->method(c->arg, f->channel, &method);
	recycle_amqp_pool(&a->pool);
	return 0;
}

static void content_done(struct codec *c, uint16_t channel, struct bytes body)
{
	struct assembly *a = &c->channels[channel];
	struct codec_content content = {&a->method, a->properties, body};

	c->handler->content(c->arg, channel, &content);
	a->method.id = 0;
	a->properties = NULL;
	recycle_amqp_pool(&a->pool);
	if (a->body.cap > CODEC_FRAME_DEFAULT)
		buf_release(&a->body);
	buf_clear(&a->body);
}

static int take_header(struct codec *c, const struct frame *f)
{
	struct assembly *a = &c->channels[f->channel];
	void *properties;

	if (a->method.id == 0 || a->properties != NULL)
		return fail(c, "a content header out of place on channel %u", f->channel);
	a->size = be64(f->p + 4);
	if (be16(f->p) != CLASS_BASIC || a->size > BODY_MAX || !properties_sound(f->p + 12, f->n - 12))
		return fail(c, "malformed content header on channel %u", f->channel);
	amqp_bytes_t encoded = pooled(&a->pool, f->p + 12, f->n - 12);
	int rc = encoded.bytes == NULL ? AMQP_STATUS_NO_MEMORY
				       : amqp_decode_properties(CLASS_BASIC, &a->pool, encoded, &properties);
	if (rc < 0)
		return fail(c, "content header: %s", amqp_error_string2(rc));
	a->properties = properties;
	if (a->size == 0)
		content_done(c, f->channel, (struct bytes){"", 0});
	return 0;
}

static int take_body(struct codec *c, const struct frame *f)
{
	struct assembly *a = &c->channels[f->channel];
	struct bytes part = {(const char *)f->p, f->n};

	if (a->properties == NULL || f->n == 0 || f->n > a->size - a->body.len)
		return fail(c, "a content body out of place on channel %u", f->channel);
	if (f->n == a->size) {
		content_done(c, f->channel, part);
		return 0;
	}
	buf_add_bytes(&a->body, part);
	if (buf_failed(&a->body))
		return fail(c, "no memory for a message of %llu bytes", (unsigned long long)a->size);
	if (a->body.len == a->size)
		content_done(c, f->channel, buf_bytes(&a->body));
	return 0;
}

static int take_frame(struct codec *c, const struct frame *f)
{
	if (f->type == AMQP_FRAME_METHOD)
		return take_method(c, f);
	if (f->type == AMQP_FRAME_HEADER)
		return take_header(c, f);
	if (f->type == AMQP_FRAME_BODY)
		return take_body(c, f);
	return 0;
}

static int check_head(struct codec *c, const uint8_t *head)
{
	uint32_t size = be32(head + 3);

	if (memcmp(head, "AMQP", 4) == 0)
		return fail(c, "the server speaks AMQP %u-%u-%u only", head[4], head[5], head[6]);
	bool known = head[0] == AMQP_FRAME_METHOD || head[0] == AMQP_FRAME_HEADER ||
		     head[0] == AMQP_FRAME_BODY || head[0] == AMQP_FRAME_HEARTBEAT;
	if (!known || be16(head + 1) >= CODEC_CHANNELS)
		return fail(c, "not an AMQP frame: type %u channel %u", head[0], be16(head + 1));
	if (size > c->frame_max - FRAME_HEAD - 1)
		return fail(c, "a frame of %u bytes, %u were agreed on", size, c->frame_max);
	if ((head[0] == AMQP_FRAME_METHOD && size < 4) ||
		(head[0] == AMQP_FRAME_HEADER && size < HEADER_MIN) ||
		(head[0] == AMQP_FRAME_HEARTBEAT && (size != 0 || be16(head + 1) != 0)))
		return fail(c, "a frame of type %u with %u bytes", head[0], size);
	return 0;
}

/* 1: took a frame, 0: needs more, -1: failed. */
static int take_one(struct codec *c, struct evbuffer *in)
{
	if (evbuffer_get_length(in) < FRAME_HEAD + 1)
		return 0;
	const uint8_t *head = evbuffer_pullup(in, FRAME_HEAD);
	if (head == NULL)
		return fail(c, "no memory");
	if (check_head(c, head) != 0)
		return -1;
	struct frame f = {.type = head[0], .channel = (uint16_t)be16(head + 1), .n = be32(head + 3)};
	size_t whole = FRAME_HEAD + f.n + 1;
	if (evbuffer_get_length(in) < whole)
		return 0;
	const uint8_t *p = evbuffer_pullup(in, (ev_ssize_t)whole);
	if (p == NULL)
		return fail(c, "no memory for a frame of %zu bytes", f.n);
	if (p[whole - 1] != FRAME_END)
		return fail(c, "a frame without its end");
	f.p = p + FRAME_HEAD;
	if (take_frame(c, &f) != 0)
		return -1;
	evbuffer_drain(in, whole);
	return 1;
}

int codec_input(struct codec *c, struct evbuffer *in)
{
	int rc = 1;

	while (rc == 1 && !c->stopped)
		rc = take_one(c, in);
	return rc < 0 ? -1 : 0;
}
