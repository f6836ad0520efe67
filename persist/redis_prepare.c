/* SPDX-License-Identifier: MIT */
#include "persist/redis_prepare.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "persist/redis_pipe.h"

static const struct safe {
	const char *key, *value, *otherwise;
} safe[] = {
	{"maxmemory-policy", "noeviction", "Redis may throw away accepted events"},
	{"appendonly", "yes", "accepted events are lost when Redis stops"},
};

/* Freed with the last answer; all come, if only as NULL. */
struct prepare {
	int pending;
	char error[160]; /* the first, or "" */
	void (*done)(const char *error, void *arg);
	void *arg;
};

static void answered(struct prepare *p)
{
	if (--p->pending > 0)
		return;
	p->done(p->error[0] != '\0' ? p->error : NULL, p->arg);
	free(p);
}

/* CONFIG may be forbidden to our user: then the operator has decided. */
static void on_config(const struct redisReply *reply, void *arg)
{
	struct bytes key = redis_text(redis_at(reply, 0)), value = redis_text(redis_at(reply, 1));

	for (size_t i = 0; i < ARRAY_LEN(safe); i++) {
		if (bytes_eq(key, bytes_of(safe[i].key)) && !bytes_eq(value, bytes_of(safe[i].value)))
			log_warning("redis link event=unsafe %s=%.*s expected=%s: %s", safe[i].key,
				(int)value.n, value.p, safe[i].value, safe[i].otherwise);
	}
	answered(arg);
}

static void on_loaded(const struct redisReply *reply, void *arg)
{
	struct prepare *p = arg;
	bool ok = reply != NULL && reply->type != REDIS_REPLY_ERROR;

	if (!ok && p->error[0] == '\0')
		snprintf(p->error, sizeof(p->error), "%s", reply != NULL ? reply->str : "connection closed");
	answered(p);
}

static void say(struct prepare *p, struct redis_pipe *pipe, redis_cb cb, const char *const words[3])
{
	struct redis_args a;

	redis_args_init(&a);
	for (int i = 0; i < 3; i++)
		redis_arg_str(&a, words[i]);
	p->pending++;
	redis_pipe_send(pipe, &a, cb, p);
}

void redis_prepare(struct redis_pipe *pipe, void (*done)(const char *error, void *arg), void *arg)
{
	struct prepare *p = xcalloc(1, sizeof(*p));

	p->done = done;
	p->arg = arg;
	for (size_t i = 0; i < ARRAY_LEN(safe); i++)
		say(p, pipe, on_config, (const char *const[]){"CONFIG", "GET", safe[i].key});
	for (int i = 0; i < SCRIPT_COUNT; i++)
		say(p, pipe, on_loaded,
			(const char *const[]){"SCRIPT", "LOAD", script_text((enum script)i).p});
}
