/* SPDX-License-Identifier: MIT */
#include "persist/tree_journal.h"

#include <stdio.h>

#include "persist/keys.h"

static bool read_range(struct redis *redis, const char *from, int count, redis_cb cb, void *arg)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "XRANGE");
	key_journal(&key, keys_org());
	redis_arg_key(&a, &key);
	redis_arg_str(&a, from);
	redis_arg_str(&a, "+");
	redis_arg_str(&a, "COUNT");
	redis_arg_i64(&a, count);
	buf_release(&key);
	return redis_query(redis, &a, cb, arg) == REDIS_SENT;
}

bool tree_journal_after(struct redis *redis, struct stream_id after, int count, redis_cb cb, void *arg)
{
	char text[STREAM_ID_TEXT], from[STREAM_ID_TEXT + 1];

	snprintf(from, sizeof(from), "(%s", stream_id_format(after, text));
	return read_range(redis, from, count, cb, arg);
}

bool tree_journal_from(struct redis *redis, struct stream_id from, int count, redis_cb cb, void *arg)
{
	char text[STREAM_ID_TEXT];

	return read_range(redis, stream_id_format(from, text), count, cb, arg);
}

bool tree_journal_entry(const struct redisReply *reply, size_t i, struct stream_id *ret_id,
	void (*fn)(struct bytes text, void *arg), void *arg)
{
	const struct redisReply *entry = redis_at(reply, i), *values = redis_at(entry, 1);

	if (!stream_id_parse(redis_text(redis_at(entry, 0)), ret_id))
		return false;
	for (size_t v = 1; v < redis_count(values); v += 2)
		fn(redis_text(redis_at(values, v)), arg);
	return true;
}
