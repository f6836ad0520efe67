/* SPDX-License-Identifier: MIT */
#include "persist/close_end.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/close_batch.h"
#include "persist/keys.h"
#include "persist/lease.h"
#include "persist/record.h"
#include "persist/redis.h"
#include "rules/when.h"

#define NOTICES_MAX 300 /* absentees of one script call */

struct ending;

/* One department. */
struct one {
	struct ending *ending;
	struct close_item *item;
	size_t at;    /* in item->absentees: those before have had their notice */
	size_t until; /* end of the page that is under way */
};

struct ending {
	const struct closer_deps *deps;
	void (*done)(void *arg);
	void *arg;
	size_t left;
	struct turn_task nothing;
	struct one ones[];
};

static void next_page(struct one *o);

static void settle(struct one *o, bool ok)
{
	struct ending *e = o->ending;

	o->item->phase = ok ? CLOSE_DONE : CLOSE_ABANDONED;
	o->item->finished_ms = clock_wall_ms();
	if (ok)
		e->deps->journalled(o->item->partition, e->deps->arg);
	if (--e->left == 0) {
		e->done(e->arg);
		free(e);
	}
}

static void on_finished(const struct redisReply *reply, void *arg)
{
	struct one *o = arg;

	if (reply == NULL || redis_reply_error(reply) != NULL || redis_int(reply) != 1) {
		settle(o, false);
		return;
	}
	o->at = o->until;
	if (o->at < o->item->absentees.len)
		next_page(o);
	else
		settle(o, true);
}

static void add_closed(
	struct redis_args *a, const struct close_item *item, struct buf *text, const char *date)
{
	buf_addf(text, "C|%s|%s|%lld|%lld|%lld|%lld|%lld|%lld", date, item->dept, (long long)item->expected,
		(long long)item->written, (long long)item->failed, (long long)item->absent,
		(long long)item->late, (long long)clock_wall_ms());
	redis_arg_key(a, text);
}

/* Sends one page of notices; with the last the day is closed. */
static void send_page(struct one *o, const struct redisReply *records)
{
	struct close_item *item = o->item;
	const struct closer_deps *deps = o->ending->deps;
	struct redis_args a;
	struct buf text = BUF_INIT;
	char date[DATE_TEXT];

	date_format(item->day, date);
	redis_args_init(&a);
	key_closing(&text, bytes_of(item->dept), item->day);
	redis_arg_key(&a, &text);
	key_days(&text, item->partition);
	redis_arg_key(&a, &text);
	key_journal(&text, item->partition);
	redis_arg_key(&a, &text);
	key_owner(&text, item->partition);
	redis_arg_key(&a, &text);
	close_field(&text, item);
	redis_arg_key(&a, &text);
	redis_arg_str(&a, lease_name(deps->lease));
	bool last = o->until == item->absentees.len;
	redis_arg_str(&a, last ? "1" : "0");
	size_t i = 0;
	for (size_t at = o->at; at < o->until; at += strlen(item->absentees.data + at) + 1, i++) {
		struct employee_record record = {.name = {"", 0}};
		if (!record_parse_employee(redis_text(redis_at(records, i)), &record))
			record.name = (struct bytes){"", 0};
		buf_addf(&text, "A|%s|%s|%s|1|%.*s", date, item->dept, item->absentees.data + at,
			(int)record.name.n, record.name.p);
		redis_arg_key(&a, &text);
	}
	if (last)
		add_closed(&a, item, &text, date);
	buf_release(&text);
	if (redis_eval(deps->redis, SCRIPT_CLOSE_FINISH, 4, &a, on_finished, o) != REDIS_SENT)
		settle(o, false);
}

static void on_names(const struct redisReply *reply, void *arg)
{
	/* Damaged records cost the names, not the notices. */
	if (redis_reply_error(reply) != NULL && !redis_wrong_type(reply))
		settle(arg, false);
	else
		send_page(arg, reply);
}

static void next_page(struct one *o)
{
	const struct close_item *item = o->item;
	struct redis_args a;
	struct buf key = BUF_INIT;

	o->until = o->at;
	if (item->absentees.len == 0) {
		send_page(o, NULL);
		return;
	}
	redis_args_init(&a);
	redis_arg_str(&a, "HMGET");
	key_emps(&key, bytes_of(item->dept));
	redis_arg_key(&a, &key);
	buf_release(&key);
	for (int n = 0; n < NOTICES_MAX && o->until < item->absentees.len; n++) {
		const char *employee = item->absentees.data + o->until;
		redis_arg_str(&a, employee);
		o->until += strlen(employee) + 1;
	}
	if (redis_query(o->ending->deps->redis, &a, on_names, o) != REDIS_SENT)
		settle(o, false);
}

/* Starts at the end of the turn, so that done() is never called by the starter. */
static void start(void *arg)
{
	struct ending *e = arg;
	size_t count = e->left;

	if (count == 0) {
		e->done(e->arg);
		free(e);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		bool last = i + 1 == count;
		next_page(&e->ones[i]);
		if (last)
			return; /* e may be gone */
	}
}

void close_end_start(const struct closer_deps *deps, struct close_item **items, size_t count,
	void (*done)(void *arg), void *arg)
{
	struct ending *e = xcalloc(1, sizeof(*e) + count * sizeof(e->ones[0]));

	e->deps = deps;
	e->done = done;
	e->arg = arg;
	e->left = count;
	for (size_t i = 0; i < count; i++)
		e->ones[i] = (struct one){.ending = e, .item = items[i]};
	turn_task_init(&e->nothing, start, e);
	turn_schedule(&e->nothing);
}
