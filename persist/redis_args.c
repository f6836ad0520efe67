/* SPDX-License-Identifier: MIT */
/* Commands under construction. */
#include "persist/redis.h"

#include <stdio.h>
#include <string.h>

void redis_args_init(struct redis_args *a)
{
	*a = (struct redis_args){.buf = BUF_INIT};
	if (buf_reserve(&a->buf, 512)) {
		memset(a->buf.data, ' ', REDIS_HEAD_ROOM);
		a->buf.len = REDIS_HEAD_ROOM;
	}
}

void redis_args_release(struct redis_args *a)
{
	buf_release(&a->buf);
	a->argc = 0;
}

void redis_arg(struct redis_args *a, struct bytes value)
{
	buf_add_char(&a->buf, '$');
	buf_add_i64(&a->buf, (int64_t)value.n);
	buf_add(&a->buf, "\r\n", 2);
	buf_add_bytes(&a->buf, value);
	buf_add(&a->buf, "\r\n", 2);
	a->argc++;
}

void redis_arg_str(struct redis_args *a, const char *value)
{
	redis_arg(a, bytes_of(value));
}

void redis_arg_i64(struct redis_args *a, int64_t value)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%lld", (long long)value);
	redis_arg(a, (struct bytes){text, (size_t)n});
}

void redis_arg_key(struct redis_args *a, struct buf *scratch)
{
	redis_arg(a, buf_bytes(scratch));
	buf_clear(scratch);
}

void redis_args_append(struct redis_args *dst, struct redis_args *src)
{
	buf_add(&dst->buf, src->buf.data + REDIS_HEAD_ROOM, src->buf.len - REDIS_HEAD_ROOM);
	dst->argc += src->argc;
	redis_args_release(src);
}
