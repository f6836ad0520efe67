/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define DEFAULT_LIMIT ((size_t)1 << 30)
#define FIRST_SIZE    128

bool buf_reserve(struct buf *b, size_t n)
{
	size_t limit = b->limit != 0 ? b->limit : DEFAULT_LIMIT;

	if (n > limit || b->len > limit - n) {
		b->failed = true;
		return false;
	}
	size_t need = b->len + n + 1;
	if (need <= b->cap)
		return true;
	size_t cap = b->cap != 0 ? b->cap : FIRST_SIZE;
	while (cap < need)
		cap *= 2;
	char *data = realloc(b->data, cap);
	if (data == NULL) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

void buf_add(struct buf *b, const void *data, size_t n)
{
	if (!buf_reserve(b, n))
		return;
	if (n > 0)
		memcpy(b->data + b->len, data, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_add_bytes(struct buf *b, struct bytes s)
{
	buf_add(b, s.p, s.n);
}

void buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_add_i64(struct buf *b, int64_t n)
{
	char digits[24];
	size_t at = sizeof(digits);
	uint64_t value = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	if (n < 0)
		digits[--at] = '-';
	buf_add(b, digits + at, sizeof(digits) - at);
}

void buf_addf(struct buf *b, const char *format, ...)
{
	va_list ap, again;

	va_start(ap, format);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	if (n >= 0 && buf_reserve(b, (size_t)n)) {
		vsnprintf(b->data + b->len, (size_t)n + 1, format, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void buf_add_json(struct buf *b, struct bytes s)
{
	const unsigned char *p = (const unsigned char *)s.p;

	buf_add_char(b, '"');
	for (size_t i = 0, len; i < s.n; i += len + (len == 0)) {
		len = utf8_sequence(p + i, s.n - i);
		if (len == 0)
			buf_add_str(b, "\\ufffd");
		else if (p[i] == '"' || p[i] == '\\')
			buf_addf(b, "\\%c", p[i]);
		else if (p[i] < 0x20)
			buf_addf(b, "\\u%04x", p[i]);
		else
			buf_add(b, p + i, len);
	}
	buf_add_char(b, '"');
}

struct bytes buf_bytes(const struct buf *b)
{
	return (struct bytes){b->data, b->len};
}

bool buf_failed(const struct buf *b)
{
	return b->failed;
}

void buf_consume(struct buf *b, size_t n)
{
	b->len -= n;
	if (b->len > 0)
		memmove(b->data, b->data + n, b->len);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf){.limit = b->limit};
}

char *buf_take(struct buf *b)
{
	char *data = b->data != NULL ? b->data : xstrdup("");
	*b = (struct buf){.limit = b->limit};
	return data;
}
