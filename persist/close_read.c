/* SPDX-License-Identifier: MIT */
#include "persist/close_read.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/day_init.h"
#include "persist/keys.h"
#include "persist/redis.h"

#define PAGE 1000

struct close_reader {
	const struct closer_deps *deps;
	enum close_read_state state;
	struct close_item *item;
	struct close_batch *batch;
	struct buf cursor; /* of HSCAN */
	int64_t left;      /* employees of the map that have not been read */
	void (*moved)(void *arg);
	void *arg;
	struct turn_task tell;
};

static void begin(struct close_reader *r);

static void set_state(struct close_reader *r, enum close_read_state state)
{
	static const char *const names[] = {"idle", "waiting", "between", "done", "failed"};

	log_debug("persist close event=read dept=%s from=%s to=%s", r->item != NULL ? r->item->dept : "",
		names[r->state], names[state]);
	r->state = state;
	if (state != CLOSE_READ_IDLE && state != CLOSE_READ_WAITING)
		turn_schedule(&r->tell);
}

static void complete(struct close_reader *r)
{
	close_batch_complete(r->batch, r->item);
	set_state(r, CLOSE_READ_DONE);
}

static void on_page(const struct redisReply *reply, void *arg)
{
	struct close_reader *r = arg;
	const struct redisReply *fields = redis_at(reply, 1);
	struct close_item *item = r->item;

	if (!redis_is_array(reply)) {
		set_state(r, CLOSE_READ_FAILED);
		return;
	}
	for (size_t i = 0; i + 1 < redis_count(fields); i += 2) {
		struct bytes employee = redis_text(redis_at(fields, i));
		if (bytes_eq(employee, BYTES_LIT("#")))
			continue;
		int64_t failed = item->failed;
		r->left--;
		close_batch_add(r->batch, item, employee, redis_text(redis_at(fields, i + 1)));
		item->expected++;
		item->written += 1 - (item->failed - failed);
	}
	buf_clear(&r->cursor);
	buf_add_bytes(&r->cursor, redis_text(redis_at(reply, 0)));
	if (!bytes_eq(buf_bytes(&r->cursor), BYTES_LIT("0")))
		set_state(r, CLOSE_READ_BETWEEN);
	else if (r->left > 0)
		set_state(r, CLOSE_READ_FAILED); /* it went while we read: another daemon has closed it */
	else
		complete(r);
}

void close_read_page(struct close_reader *r, struct close_batch *batch)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	assert(r->state == CLOSE_READ_BETWEEN);
	r->batch = batch;
	redis_args_init(&a);
	redis_arg_str(&a, "HSCAN");
	key_closing(&key, bytes_of(r->item->dept), r->item->day);
	redis_arg_key(&a, &key);
	redis_arg(&a, buf_bytes(&r->cursor));
	redis_arg_str(&a, "COUNT");
	redis_arg_i64(&a, PAGE);
	buf_release(&key);
	set_state(r, CLOSE_READ_WAITING);
	if (redis_query(r->deps->redis, &a, on_page, r) != REDIS_SENT)
		set_state(r, CLOSE_READ_FAILED);
}

static void on_roster(bool ok, void *arg)
{
	struct close_reader *r = arg;

	if (ok)
		begin(r);
	else
		set_state(r, CLOSE_READ_FAILED);
}

/* The marker that close_begin.lua answers says what there is to read. */
static void on_begun(const struct redisReply *reply, void *arg)
{
	struct close_reader *r = arg;
	struct close_item *item = r->item;
	struct bytes marker = redis_text(redis_at(reply, 0));

	if (!redis_is_array(reply)) {
		set_state(r, CLOSE_READ_FAILED);
	} else if (bytes_eq(marker, BYTES_LIT("c")) || bytes_eq(marker, BYTES_LIT("n"))) {
		/* By another daemon that had this partition before, or there is nothing to it. */
		item->phase = CLOSE_DONE;
		item->recorded = true;
		set_state(r, CLOSE_READ_DONE);
	} else if (bytes_eq(marker, BYTES_LIT("i"))) {
		/* A daemon died while it made the roster: finish that first. */
		day_init_start(r->deps->redis, bytes_of(item->dept), item->day, on_roster, r);
	} else if (bytes_eq(marker, BYTES_LIT("-")) || bytes_eq(marker, BYTES_LIT("w"))) {
		close_batch_no_map(r->batch, item, marker.p[0] == 'w');
		complete(r);
	} else {
		r->left = redis_int(redis_at(reply, 1));
		item->marked = bytes_eq(marker, BYTES_LIT("1"));
		buf_add_char(&r->cursor, '0');
		set_state(r, CLOSE_READ_BETWEEN);
	}
}

static void begin(struct close_reader *r)
{
	struct close_item *item = r->item;
	struct redis_args a;
	struct buf text = BUF_INIT;

	redis_args_init(&a);
	key_day(&text, bytes_of(item->dept), item->day);
	redis_arg_key(&a, &text);
	key_closing(&text, bytes_of(item->dept), item->day);
	redis_arg_key(&a, &text);
	key_days(&text, item->partition);
	redis_arg_key(&a, &text);
	key_emps(&text, bytes_of(item->dept));
	redis_arg_key(&a, &text);
	close_field(&text, item);
	redis_arg_key(&a, &text);
	buf_release(&text);
	if (redis_eval(r->deps->redis, SCRIPT_CLOSE_BEGIN, 4, &a, on_begun, r) != REDIS_SENT)
		set_state(r, CLOSE_READ_FAILED);
}

void close_read_begin(struct close_reader *r, struct close_item *item, struct close_batch *batch)
{
	assert(r->state == CLOSE_READ_IDLE);
	r->item = item;
	r->batch = batch;
	buf_clear(&r->cursor);
	item->phase = CLOSE_READING;
	item->started_ms = clock_wall_ms();
	set_state(r, CLOSE_READ_WAITING);
	begin(r);
}

void close_read_reset(struct close_reader *r)
{
	assert(r->state != CLOSE_READ_WAITING);
	set_state(r, CLOSE_READ_IDLE);
	r->item = NULL;
	r->batch = NULL;
}

enum close_read_state close_reader_state(const struct close_reader *r)
{
	return r->state;
}

static void tell(void *arg)
{
	struct close_reader *r = arg;

	r->moved(r->arg);
}

struct close_reader *close_reader_new(const struct closer_deps *deps, void (*moved)(void *arg), void *arg)
{
	struct close_reader *r = xcalloc(1, sizeof(*r));

	r->deps = deps;
	r->moved = moved;
	r->arg = arg;
	turn_task_init(&r->tell, tell, r);
	return r;
}

void close_reader_free(struct close_reader *r)
{
	if (r == NULL)
		return;
	turn_cancel(&r->tell);
	buf_release(&r->cursor);
	free(r);
}
