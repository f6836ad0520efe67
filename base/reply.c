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

static void head(struct reply *r, char type, int64_t n)
{
	buf_add_char(&r->buf, type);
	buf_add_i64(&r->buf, n);
	buf_add(&r->buf, "\r\n", 2);
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
	head(r, '$', (int64_t)b.n);
	buf_add_bytes(&r->buf, b);
	buf_add(&r->buf, "\r\n", 2);
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
