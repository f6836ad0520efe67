/* SPDX-License-Identifier: MIT */
#include "cli/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"

static bool is_string(const redisReply *r)
{
	return r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS || r->type == REDIS_REPLY_ERROR;
}

const redisReply *answer_field(const redisReply *map, const char *name)
{
	if (map->type != REDIS_REPLY_ARRAY)
		return NULL;
	for (size_t i = 0; i + 1 < map->elements; i += 2) {
		const redisReply *key = map->element[i], *value = map->element[i + 1];
		if (is_string(key) && strcmp(key->str, name) == 0)
			return value->type == REDIS_REPLY_NIL ? NULL : value;
	}
	return NULL;
}

struct bytes answer_bytes(const redisReply *map, const char *name)
{
	const redisReply *value = answer_field(map, name);

	if (value == NULL || !is_string(value))
		return BYTES_LIT("");
	return (struct bytes){value->str, (size_t)value->len};
}

const char *answer_str(const redisReply *map, const char *name)
{
	return answer_bytes(map, name).p;
}

int64_t answer_int(const redisReply *map, const char *name, int64_t fallback)
{
	const redisReply *value = answer_field(map, name);
	int64_t n;

	if (value == NULL)
		return fallback;
	if (value->type == REDIS_REPLY_INTEGER)
		return value->integer;
	return is_string(value) && bytes_to_i64(answer_bytes(map, name), &n) ? n : fallback;
}

const redisReply *answer_page(const redisReply *reply, const char **ret_cursor)
{
	bool fits = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
		    is_string(reply->element[0]) && reply->element[1]->type == REDIS_REPLY_ARRAY;

	if (!fits) {
		cli_error("the server's reply is not a cursor and a list");
		return NULL;
	}
	*ret_cursor = reply->element[0]->str;
	return reply->element[1];
}

/* Replaces what is not UTF-8, byte by byte. */
static json_t *repaired_string(const char *s, size_t n)
{
	struct buf out = BUF_INIT;
	json_t *value = NULL;

	for (size_t i = 0; i < n;) {
		size_t len = n - i < 4 ? n - i : 4;
		json_t *piece = NULL;
		for (; len > 0 && piece == NULL; len--)
			piece = json_stringn(s + i, len);
		if (piece == NULL) {
			buf_add_str(&out, "\xef\xbf\xbd");
			i++;
			continue;
		}
		buf_add(&out, s + i, json_string_length(piece));
		i += json_string_length(piece);
		json_decref(piece);
	}
	if (!buf_failed(&out) && out.data != NULL)
		value = json_stringn(out.data, out.len);
	buf_release(&out);
	return value != NULL ? value : json_string("");
}

static json_t *string_json(const redisReply *r)
{
	json_t *value = json_stringn(r->str, (size_t)r->len);
	return value != NULL ? value : repaired_string(r->str, (size_t)r->len);
}

json_t *answer_json(const redisReply *reply)
{
	json_t *list;

	switch (reply->type) {
	case REDIS_REPLY_INTEGER:
		return json_integer(reply->integer);
	case REDIS_REPLY_NIL:
		return json_null();
	case REDIS_REPLY_ARRAY:
		list = json_array();
		for (size_t i = 0; i < reply->elements; i++)
			json_array_append_new(list, answer_json(reply->element[i]));
		return list;
	default:
		return string_json(reply);
	}
}

json_t *answer_map_json(const redisReply *map)
{
	json_t *object = json_object();

	if (map->type != REDIS_REPLY_ARRAY)
		return object;
	for (size_t i = 0; i + 1 < map->elements; i += 2) {
		const redisReply *key = map->element[i];
		if (is_string(key))
			json_object_set_new(object, key->str, answer_json(map->element[i + 1]));
	}
	return object;
}

void answer_print(json_t *value)
{
	json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
	putchar('\n');
	json_decref(value);
}
