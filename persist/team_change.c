/* SPDX-License-Identifier: MIT */
#include "persist/team_change.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/keys.h"

#define ADDS_MAX                                                                                             \
	100 /* of one call: about 4 ms of Redis when each is ten levels deep in a branch of its own */

static const char *const set_words[] = {[TEAM_RENAME] = "rename",
	[TEAM_MANAGER] = "manager",
	[TEAM_RETIRE] = "retire",
	[TEAM_RESTORE] = "restore"};

struct team_changes {
	struct redis *redis;
	const struct config *config;
	struct batch *adds;
};

int team_day_keys(struct redis_args *a, struct bytes id, int32_t today)
{
	struct buf text = BUF_INIT;

	key_emps(&text, id);
	redis_arg_key(a, &text);
	for (int32_t day = today; day <= today + 1; day++) {
		key_day(&text, id, day);
		redis_arg_key(a, &text);
	}
	key_days(&text, keys_partition_of(id));
	redis_arg_key(a, &text);
	buf_release(&text);
	return 4;
}

/* ---- adding ---- */

static void add_head(struct redis_args *args, void *arg)
{
	const struct team_changes *t = arg;
	struct buf text = BUF_INIT;

	key_org(&text, "");
	redis_arg_key(args, &text);
	redis_arg_i64(args, t->config->max_depth);
	buf_release(&text);
}

static void add(struct team_changes *t, const struct team_change *c, batch_cb fn, void *arg)
{
	struct redis_args *keys, *args;
	struct buf text = BUF_INIT;

	batch_add_begin(t->adds, &keys, &args);
	key_org(&text, "roots");
	redis_arg_key(keys, &text);
	buf_release(&text);
	redis_arg(args, c->id);
	redis_arg(args, c->parent);
	redis_arg(args, c->name);
	redis_arg(args, c->fold);
	redis_arg(args, c->manager);
	redis_arg_str(args, c->dry ? "1" : "");
	batch_add_end(t->adds, fn, arg);
}

/* ---- all else ---- */

struct single {
	batch_cb fn;
	void *arg;
	const char *error;
	struct turn_task failure;
};

static void on_answer(const struct redisReply *reply, void *arg)
{
	struct single *s = arg;
	const char *error = redis_reply_error(reply);

	s->fn(error == NULL ? redis_text(reply) : (struct bytes){"", 0}, error, s->arg);
	free(s);
}

static void fail(void *arg)
{
	struct single *s = arg;

	s->fn((struct bytes){"", 0}, s->error, s->arg);
	free(s);
}

/* The anchor, the keys of a removed department's attendance, the prefix. */
static int add_keys(struct redis_args *a, const struct team_change *c, int32_t today)
{
	struct buf text = BUF_INIT;
	int keys = 1;

	redis_args_init(a);
	key_org(&text, "roots");
	redis_arg_key(a, &text);
	if (c->verb == TEAM_REMOVE)
		keys += team_day_keys(a, c->id, today);
	key_org(&text, "");
	redis_arg_key(a, &text);
	buf_release(&text);
	return keys;
}

static enum script add_arguments(
	struct redis_args *a, const struct team_change *c, const struct config *config)
{
	redis_arg(a, c->id);
	switch (c->verb) {
	case TEAM_MOVE:
		redis_arg(a, c->parent);
		redis_arg(a, c->version);
		redis_arg_str(a, c->dry ? "1" : "");
		redis_arg_i64(a, config->max_depth);
		redis_arg_i64(a, config->inline_max);
		redis_arg_i64(a, clock_wall_ms());
		redis_arg(a, c->height);
		redis_arg(a, c->seen);
		return SCRIPT_TEAM_MOVE;
	case TEAM_REMOVE:
		redis_arg(a, c->mode);
		redis_arg(a, c->version);
		redis_arg_str(a, c->dry ? "1" : "");
		redis_arg_i64(a, clock_wall_ms());
		return SCRIPT_TEAM_REMOVE;
	default:
		redis_arg_str(a, set_words[c->verb]);
		redis_arg(a, c->verb == TEAM_RENAME ? c->name : c->manager);
		redis_arg(a, c->fold);
		redis_arg(a, c->version);
		redis_arg_str(a, c->dry ? "1" : "");
		return SCRIPT_TEAM_SET;
	}
}

void team_change_send(
	struct team_changes *t, const struct team_change *change, int32_t today, batch_cb fn, void *arg)
{
	struct redis_args a;

	if (change->verb == TEAM_ADD) {
		add(t, change, fn, arg);
		return;
	}
	struct single *s = xcalloc(1, sizeof(*s));
	s->fn = fn;
	s->arg = arg;
	int keys = add_keys(&a, change, today);
	enum script script = add_arguments(&a, change, t->config);
	enum redis_sent sent = redis_eval(t->redis, script, keys, &a, on_answer, s);
	if (sent == REDIS_SENT)
		return;
	s->error = redis_sent_error(sent);
	turn_task_init(&s->failure, fail, s);
	turn_schedule(&s->failure);
}

struct team_changes *team_changes_new(struct redis *redis, const struct config *config)
{
	struct team_changes *t = xcalloc(1, sizeof(*t));

	t->redis = redis;
	t->config = config;
	t->adds = batch_new(redis, SCRIPT_TEAM_ADD, 1, ADDS_MAX, add_head, t);
	return t;
}

void team_changes_free(struct team_changes *t)
{
	if (t == NULL)
		return;
	batch_free(t->adds);
	free(t);
}
