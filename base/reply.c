/* SPDX-License-Identifier: MIT */
#include "base/reply.h"

#include <stdarg.h>
#include <stdio.h>

void reply_init(struct reply *r, int protocol)
{
	*r = (struct reply){.protocol = protocol};
}

void reply_release(struct reply *r)
{
	buf_release(&r->buf);
}

void reply_reset(struct reply *r)
{
	buf_clear(&r->buf);
}

#define HEAD_MAX 24

/* Writes "<type><n>\r\n" at the end of text; returns where it begins. Most of a reply is these. */
static const char *head_text(char text[HEAD_MAX], char type, int64_t n)
{
	char *at = text + HEAD_MAX;
	uint64_t value = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;

	*--at = '\n';
	*--at = '\r';
	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	if (n < 0)
		*--at = '-';
	*--at = type;
	return at;
}

static void head(struct reply *r, char type, int64_t n)
{
	char text[HEAD_MAX];
	const char *at = head_text(text, type, n);

	buf_add(&r->buf, at, (size_t)(text + HEAD_MAX - at));
}

void reply_status(struct reply *r, const char *text)
{
	buf_add_char(&r->buf, '+');
	buf_add_str(&r->buf, text);
	buf_add(&r->buf, "\r\n", 2);
}

void reply_error(struct reply *r, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	for (char *p = text; *p != '\0'; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
	}
	buf_add_char(&r->buf, '-');
	buf_add_str(&r->buf, text);
	buf_add(&r->buf, "\r\n", 2);
}

void reply_int(struct reply *r, int64_t n)
{
	head(r, ':', n);
}

void reply_bulk(struct reply *r, struct bytes b)
{
	char text[HEAD_MAX];
	const char *at = head_text(text, '$', (int64_t)b.n);
	size_t n = (size_t)(text + HEAD_MAX - at);

	if (!buf_reserve(&r->buf, n + b.n + 2))
		return;
	char *to = r->buf.data + r->buf.len;
	memcpy(to, at, n);
	if (b.n > 0)
		memcpy(to + n, b.p, b.n);
	memcpy(to + n + b.n, "\r\n", 3);
	r->buf.len += n + b.n + 2;
}

void reply_str(struct reply *r, const char *s)
{
	reply_bulk(r, bytes_of(s));
}

void reply_null(struct reply *r)
{
	buf_add_str(&r->buf, r->protocol == 3 ? "_\r\n" : "$-1\r\n");
}

void reply_array(struct reply *r, size_t elements)
{
	head(r, '*', (int64_t)elements);
}

void reply_map(struct reply *r, size_t pairs)
{
	if (r->protocol == 3)
		head(r, '%', (int64_t)pairs);
	else
		head(r, '*', (int64_t)pairs * 2);
}

void reply_field_str(struct reply *r, const char *field, const char *value)
{
	reply_str(r, field);
	reply_str(r, value);
}

void reply_field_bulk(struct reply *r, const char *field, struct bytes value)
{
	reply_str(r, field);
	reply_bulk(r, value);
}

void reply_field_int(struct reply *r, const char *field, int64_t value)
{
	reply_str(r, field);
	reply_int(r, value);
}

void reply_field_instant(struct reply *r, const char *field, int64_t unix_ms)
{
	reply_str(r, field);
	if (unix_ms < 0)
		reply_null(r);
	else
		reply_int(r, unix_ms);
}
