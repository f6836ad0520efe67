/* SPDX-License-Identifier: MIT */
#include "handlers/close_ask.h"

#include "base/clock.h"
#include "handlers/app.h"
#include "persist/closer.h"
#include "persist/keys.h"
#include "persist/lease.h"
#include "rules/when.h"
#include "rules/workday.h"

static void on_ignored(const struct redisReply *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

void meta_send(struct app *app, redis_cb cb, const char *command, const char *const *words)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, command);
	key_meta(&key);
	redis_arg_key(&a, &key);
	buf_release(&key);
	for (; *words != NULL; words++)
		redis_arg_str(&a, *words);
	(void)!redis_send(app->redis, &a, cb != NULL ? cb : on_ignored, app);
}

/* Fields of `meta`: "close_asked" = a date that every daemon closes its partitions through;
 * "close_asked:<dept>" = a date for one department, until its partition's owner takes it up. */
#define ASKED "close_asked"

void close_ask_others(struct app *app, int32_t day, struct bytes dept)
{
	struct buf field = BUF_INIT;
	char date[DATE_TEXT];

	if (dept.n > 0 && lease_holds(app->lease, keys_partition_of(dept)))
		return;
	buf_addf(&field, ASKED "%s%.*s", dept.n > 0 ? ":" : "", (int)dept.n, dept.p);
	const char *const words[] = {field.data, date_format(day, date), NULL};
	if (dept.n == 0)
		app->close_asked = day > app->close_asked ? day : app->close_asked;
	meta_send(app, NULL, "HSET", words);
	buf_release(&field);
}

static void on_request_done(bool ok, void *arg)
{
	struct app *app = arg;

	if (!ok)
		app->close_asked = 0; /* not done in time: the next look takes it up again */
}

static void close_for_others(struct app *app, struct bytes dept, int32_t day)
{
	closer_request(app->closer, day, dept, INT64_C(3600000), on_request_done, app);
}

static void close_dept_for_others(struct app *app, struct bytes field, struct bytes dept, int32_t day)
{
	struct buf name = BUF_INIT;

	if (!id_valid(dept) || !lease_holds(app->lease, keys_partition_of(dept)))
		return;
	close_for_others(app, dept, day);
	buf_add_bytes(&name, field);
	const char *const words[] = {name.data, NULL};
	meta_send(app, NULL, "HDEL", words);
	buf_release(&name);
}

static void on_meta(const struct redisReply *reply, void *arg)
{
	struct app *app = arg;
	int32_t day;

	for (size_t i = 0; i + 1 < redis_count(reply); i += 2) {
		struct bytes f[2], field = redis_text(redis_at(reply, i));
		int parts = bytes_split(field, ':', f, 2);
		if (!bytes_eq(f[0], BYTES_LIT(ASKED)) ||
			!date_parse(redis_text(redis_at(reply, i + 1)), &day) ||
			clock_wall_ms() < workday_end(day))
			continue;
		if (parts == 2) {
			close_dept_for_others(app, field, f[1], day);
		} else if (day > app->close_asked) {
			app->close_asked = day;
			close_for_others(app, (struct bytes){"", 0}, day);
		}
	}
}

void close_ask_look(struct app *app)
{
	static const char *const none[] = {NULL};

	meta_send(app, on_meta, "HGETALL", none);
}
