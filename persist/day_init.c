/* SPDX-License-Identifier: MIT */
#include "persist/day_init.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "rules/when.h"

#define PAGE 500

struct init {
	struct redis *redis;
	int32_t day;
	char dept[ID_MAX + 1];
	void (*done)(bool ok, void *arg);
	void *arg;
	struct turn_task failure;
};

static bool step(struct init *i, struct bytes cursor);

static void finish(struct init *i, bool ok)
{
	i->done(ok, i->arg);
	free(i);
}

static void fail(void *arg)
{
	finish(arg, false);
}

static void on_step(const struct redisReply *reply, void *arg)
{
	struct init *i = arg;
	struct bytes cursor = redis_text(reply);

	if (redis_wrong_type(reply)) {
		/* Asking again does not help, and must not keep the others waiting; the close reports it. */
		log_error("persist day event=no-map dept=%s reason=\"a key of its day is of another type\"",
			i->dept);
		finish(i, true);
	} else if (redis_reply_error(reply) != NULL)
		finish(i, false);
	else if (bytes_eq(cursor, BYTES_LIT("0")))
		finish(i, true);
	else if (!step(i, cursor))
		finish(i, false);
}

static bool step(struct init *i, struct bytes cursor)
{
	struct bytes dept = bytes_of(i->dept);
	struct redis_args a;
	struct buf text = BUF_INIT;
	char date[DATE_TEXT];

	redis_args_init(&a);
	key_day(&text, dept, i->day);
	redis_arg_key(&a, &text);
	key_emps(&text, dept);
	redis_arg_key(&a, &text);
	key_days(&text, keys_partition_of(dept));
	redis_arg_key(&a, &text);
	redis_arg(&a, cursor);
	redis_arg_i64(&a, PAGE);
	redis_arg_str(&a, date_format(i->day, date));
	redis_arg(&a, dept);
	buf_addf(&text, "%s:%s", i->dept, date);
	redis_arg_key(&a, &text);
	buf_release(&text);
	return redis_eval(i->redis, SCRIPT_DAY_INIT, 3, &a, on_step, i) == REDIS_SENT;
}

void day_init_start(
	struct redis *redis, struct bytes dept, int32_t day, void (*done)(bool ok, void *arg), void *arg)
{
	struct init *i = xcalloc(1, sizeof(*i));

	i->redis = redis;
	i->day = day;
	i->done = done;
	i->arg = arg;
	bytes_copy(i->dept, sizeof(i->dept), dept);
	if (step(i, BYTES_LIT("0")))
		return;
	turn_task_init(&i->failure, fail, i);
	turn_schedule(&i->failure);
}
