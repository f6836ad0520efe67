/* SPDX-License-Identifier: MIT */
/* What replies of Redis mean, and how those read them who do not include its library's header. */
#include "persist/redis.h"

#include <hiredis/hiredis.h>

#include "base/log.h"
#include "base/mem.h"

/* What an error of Redis means to our client. Nothing was applied in any of these cases. */
static const struct {
	const char *prefix, *text;
} translations[] = {
	{"OOM", "BUSY Redis is out of memory, nothing was done; try again later"},
	{"LOADING", "NOTREADY Redis is loading its data; try again"},
	{"BUSY", "BUSY Redis is busy with a script, nothing was done; try again"},
	{"READONLY", "UNAVAILABLE Redis is no longer the master, nothing was done; send it again"},
	{"MASTERDOWN", "UNAVAILABLE Redis is no longer the master, nothing was done; send it again"},
	{"MISCONF", "BUSY Redis can't write to its disk, nothing was done; try again later"},
	{"NOREPLICAS", "BUSY Redis has too few replicas, nothing was done; try again later"},
	{"NOAUTH", "UNAVAILABLE Redis does not accept our credentials"},
	{"NOPERM", "UNAVAILABLE Redis does not permit us this command"},
	{"WRONGTYPE", "ERR a key of Muster holds another type in Redis; nothing was done"},
};

const char *redis_error_text(struct bytes error)
{
	for (size_t i = 0; i < ARRAY_LEN(translations); i++) {
		struct bytes prefix = bytes_of(translations[i].prefix);
		if (error.n >= prefix.n && memcmp(error.p, prefix.p, prefix.n) == 0)
			return translations[i].text;
	}
	log_error("redis link event=error text=\"%.*s\"", (int)error.n, error.p);
	return "ERR Redis refused the request, the outcome is unknown; the log says why";
}

const char *redis_reply_error(const struct redisReply *reply)
{
	if (reply == NULL)
		return "UNAVAILABLE Redis was lost under the request, the outcome is unknown; send it again";
	return reply->type == REDIS_REPLY_ERROR ? redis_error_text(redis_text(reply)) : NULL;
}

bool redis_wrong_type(const struct redisReply *reply)
{
	return reply != NULL && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "WRONGTYPE", 9) == 0;
}

const char *redis_sent_error(enum redis_sent sent)
{
	if (sent == REDIS_FULL)
		return "BUSY too much is under way, nothing was done; try again";
	return "UNAVAILABLE Redis is away, nothing was done; send it again";
}

bool redis_is_array(const struct redisReply *reply)
{
	return reply != NULL && reply->type == REDIS_REPLY_ARRAY;
}

size_t redis_count(const struct redisReply *reply)
{
	return redis_is_array(reply) ? reply->elements : 0;
}

const struct redisReply *redis_at(const struct redisReply *reply, size_t i)
{
	return i < redis_count(reply) ? reply->element[i] : NULL;
}

bool redis_is_null(const struct redisReply *reply)
{
	return reply == NULL || reply->type == REDIS_REPLY_NIL;
}

struct bytes redis_text(const struct redisReply *reply)
{
	bool text =
		reply != NULL && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS ||
					 reply->type == REDIS_REPLY_ERROR);
	return text ? (struct bytes){reply->str, (size_t)reply->len} : (struct bytes){"", 0};
}

int64_t redis_int(const struct redisReply *reply)
{
	int64_t n = 0;

	if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
		return reply->integer;
	return bytes_to_i64(redis_text(reply), &n) ? n : 0;
}
