/* SPDX-License-Identifier: MIT */
#include "bench/reply.h"

#define DEPTH_MAX 8

struct head {
	char type;
	size_t size;       /* of the line, with its end */
	struct bytes text; /* the line without type and end */
	int64_t count;     /* bytes of a bulk, elements of an aggregate; -1 = null */
};

/* The first line; its size is 0 when it is not whole. False when it is malformed. */
static bool read_head(struct bytes in, struct head *ret)
{
	const char *end = in.n > 0 ? memchr(in.p, '\n', in.n) : NULL;

	*ret = (struct head){0};
	if (end == NULL)
		return true;
	ret->type = in.p[0];
	ret->size = (size_t)(end - in.p) + 1;
	if (ret->size < 3 || end[-1] != '\r')
		return false;
	ret->text = (struct bytes){in.p + 1, ret->size - 3};
	if (strchr("$=!*~>%", ret->type) == NULL)
		return strchr("+-:_#,(", ret->type) != NULL;
	return bytes_to_i64(ret->text, &ret->count) && ret->count >= -1;
}

static bool is_bulk(const struct head *h)
{
	return h->type == '$' || h->type == '=' || h->type == '!';
}

static size_t length_of(struct bytes in, int depth)
{
	struct head h;

	if (depth == DEPTH_MAX || !read_head(in, &h))
		return REPLY_MALFORMED;
	if (h.size == 0)
		return 0;
	if (is_bulk(&h)) {
		size_t whole = h.size + (h.count < 0 ? 0 : (size_t)h.count + 2);
		return whole <= in.n ? whole : 0;
	}
	size_t at = h.size;
	for (int64_t left = h.type == '%' ? h.count * 2 : h.count; left > 0; left--) {
		size_t n = length_of((struct bytes){in.p + at, in.n - at}, depth + 1);
		if (n == 0 || n == REPLY_MALFORMED)
			return n;
		at += n;
	}
	return at;
}

size_t reply_length(struct bytes in)
{
	return length_of(in, 0);
}

/* The text of a whole reply that is a scalar. */
static struct bytes scalar(struct bytes reply)
{
	struct head h;

	if (!read_head(reply, &h))
		return (struct bytes){"", 0};
	if (!is_bulk(&h))
		return h.text;
	return h.count < 0 ? (struct bytes){"null", 4} : (struct bytes){reply.p + h.size, (size_t)h.count};
}

bool reply_field(struct bytes reply, struct bytes field, struct bytes *ret)
{
	struct head h;

	if (!read_head(reply, &h) || (h.type != '*' && h.type != '%') || h.count <= 0)
		return false;
	int64_t pairs = h.type == '%' ? h.count : h.count / 2;
	struct bytes rest = {reply.p + h.size, reply.n - h.size};
	for (int64_t i = 0; i < pairs; i++) {
		size_t n = reply_length(rest);
		struct bytes name = {rest.p, n}, value = {rest.p + n, rest.n - n};
		value.n = reply_length(value);
		if (bytes_eq(scalar(name), field)) {
			*ret = scalar(value);
			return true;
		}
		rest = (struct bytes){value.p + value.n, rest.n - n - value.n};
	}
	return false;
}
