/* SPDX-License-Identifier: MIT */
#include "persist/close_look.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/keys.h"
#include "persist/mysql_link.h"
#include "persist/mysql_text.h"
#include "persist/partition.h"
#include "persist/redis.h"
#include "persist/tree.h"
#include "rules/when.h"
#include "rules/workday.h"

/* A department that was silent for longer was not in use, and the days between are nobody's. */
#define GAP_MAX   31
#define KEEP_DAYS 70 /* longer than accept_past can be */

struct look;

/* One field of `days`; the department points into the reply. */
struct entry {
	struct bytes dept;
	int32_t day;
	enum {
		SINCE, /* from this day on the department has employees, and had none before */
		DAY_OPEN,
		DAY_CLOSED
	} what;
};

struct part {
	struct look *look;
	int number;
	bool fresh;
};

struct look {
	struct close_look_spec spec;
	int left;
	bool ok;
	struct turn_task end;
	struct part parts[PARTITIONS_MAX];
};

static void settle(struct look *l);

static void on_healed(const struct mysql_result *result, void *arg)
{
	struct look *l = arg;

	if (result->outcome != SQL_OK) {
		log_warning("persist close event=heal-failed outcome=%s", sql_outcome_name(result->outcome));
		l->ok = false;
	}
	settle(l);
}

/* A daemon may have died between the end of a day in Redis and its record in day_close. */
static void heal_ledger(struct look *l, const struct redisReply *days)
{
	struct buf sql = BUF_INIT;
	bool any = false;

	buf_add_str(&sql, "UPDATE day_close SET phase='closed',finished=");
	mysql_add_datetime(&sql, clock_wall_ms());
	buf_add_str(&sql, " WHERE phase='written' AND (work_date,dept) IN (");
	for (size_t i = 0; i + 1 < redis_count(days); i += 2) {
		struct bytes f[2];
		int32_t day;
		if (bytes_split(redis_text(redis_at(days, i)), ':', f, 2) != 2 || !date_parse(f[1], &day) ||
			!bytes_eq(redis_text(redis_at(days, i + 1)), BYTES_LIT("closed")))
			continue;
		buf_add_str(&sql, any ? ",(" : "(");
		mysql_add_quoted(&sql, f[1]);
		buf_add_char(&sql, ',');
		mysql_add_quoted(&sql, f[0]);
		buf_add_char(&sql, ')');
		any = true;
	}
	buf_add_char(&sql, ')');
	if (any) {
		l->left++;
		mysql_link_query(l->spec.deps->sql, &sql, on_healed, l);
	}
	buf_release(&sql);
}

static void end(void *arg)
{
	struct look *l = arg;

	l->spec.done(l->ok, l->spec.arg);
	free(l);
}

static void settle(struct look *l)
{
	if (--l->left == 0)
		turn_schedule(&l->end);
}

/* A `since` comes before the day it names. */
static int by_dept_and_date(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = memcmp(x->dept.p, y->dept.p, x->dept.n < y->dept.n ? x->dept.n : y->dept.n);

	if (order == 0)
		order = (x->dept.n > y->dept.n) - (x->dept.n < y->dept.n);
	if (order == 0)
		order = (x->day > y->day) - (x->day < y->day);
	return order != 0 ? order : (int)x->what - (int)y->what;
}

static bool take_entry(struct entry *e, struct bytes field, struct bytes value)
{
	struct bytes f[2];

	if (bytes_split(field, ':', f, 2) != 2 || !id_valid(f[0]))
		return false;
	e->dept = f[0];
	if (bytes_eq(f[1], BYTES_LIT("since"))) {
		e->what = SINCE;
		return date_parse(value, &e->day);
	}
	e->what = bytes_eq(value, BYTES_LIT("closed")) ? DAY_CLOSED : DAY_OPEN;
	return date_parse(f[1], &e->day);
}

static size_t take_entries(struct entry *entries, const struct redisReply *days)
{
	size_t n = 0;

	for (size_t i = 0; i + 1 < redis_count(days); i += 2)
		n += take_entry(
			&entries[n], redis_text(redis_at(days, i)), redis_text(redis_at(days, i + 1)));
	qsort(entries, n, sizeof(entries[0]), by_dept_and_date);
	return n;
}

/* Of its department. */
static bool is_last(const struct entry *entries, size_t count, size_t i)
{
	return i + 1 == count || !bytes_eq(entries[i + 1].dept, entries[i].dept);
}

/* The dates after this entry, up to before `to`, that nobody was up to make a map for: they are closed, too,
 * as days without a map. */
static void find_gap(const struct part *p, const struct entry *e, int32_t to)
{
	const struct look *l = p->look;

	if (to - e->day - 1 > GAP_MAX || tree_find(l->spec.deps->tree, e->dept) == NULL)
		return;
	for (int32_t day = e->day + 1; day < to; day++)
		l->spec.found(p->number, e->dept, day, l->spec.arg);
}

static void on_forgotten(const struct redisReply *reply, void *arg)
{
	(void)arg;
	if (redis_reply_error(reply) != NULL)
		log_warning("persist close event=prune-failed");
}

/* Whether the entry has had its time: a day that is closed and that no punch can reach any more. A
 * department's last one stays as long as the department: gaps are found from it, and that it may have
 * employees. */
static bool is_spent(const struct look *l, const struct entry *e, bool last, int32_t oldest)
{
	if (e->what == DAY_OPEN || e->day >= oldest)
		return false;
	return (!last && e->what == DAY_CLOSED) ||
	       (tree_loaded(l->spec.deps->tree) && tree_find(l->spec.deps->tree, e->dept) == NULL);
}

static void prune(const struct part *p, const struct entry *entries, size_t count)
{
	struct redis_args a;
	struct buf text = BUF_INIT;
	int32_t oldest = workday_of(clock_wall_ms()) - KEEP_DAYS;
	char date[DATE_TEXT];

	redis_args_init(&a);
	redis_arg_str(&a, "HDEL");
	key_days(&text, p->number);
	redis_arg_key(&a, &text);
	for (size_t i = 0; i < count; i++) {
		const struct entry *e = &entries[i];
		if (!is_spent(p->look, e, is_last(entries, count, i), oldest))
			continue;
		buf_addf(&text, "%.*s:%s", (int)e->dept.n, e->dept.p,
			e->what == SINCE ? "since" : date_format(e->day, date));
		redis_arg_key(&a, &text);
	}
	buf_release(&text);
	/* Not sent is not bad: the next look does it. */
	if (a.argc <= 2 || redis_send(p->look->spec.deps->redis, &a, on_forgotten, NULL) != REDIS_SENT)
		redis_args_release(&a);
}

static void find_open(const struct part *p, const struct redisReply *days)
{
	const struct look *l = p->look;
	struct entry *entries = xcalloc(redis_count(days) / 2 + 1, sizeof(entries[0]));
	size_t n = take_entries(entries, days);

	for (size_t i = 0; i < n; i++) {
		const struct entry *e = &entries[i];
		if (e->what == DAY_OPEN)
			l->spec.found(p->number, e->dept, e->day, l->spec.arg);
		if (is_last(entries, n, i))
			find_gap(p, e, workday_of(clock_wall_ms()));
		else if (e[1].what != SINCE)
			find_gap(p, e, e[1].day);
	}
	prune(p, entries, n);
	free(entries);
}

static void on_days(const struct redisReply *reply, void *arg)
{
	const struct part *p = arg;
	struct look *l = p->look;

	if (redis_wrong_type(reply))
		log_error("persist close event=skipped partition=%d reason=\"its hash 'days' is of another "
			  "type\"",
			p->number);
	else if (!redis_is_array(reply))
		l->ok = false;
	find_open(p, reply);
	if (p->fresh)
		heal_ledger(l, reply);
	settle(l);
}

static void read_partition(struct look *l, int number, bool fresh)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	l->parts[number] = (struct part){l, number, fresh};
	redis_args_init(&a);
	redis_arg_str(&a, "HGETALL");
	key_days(&key, number);
	redis_arg_key(&a, &key);
	buf_release(&key);
	l->left++;
	if (redis_query(l->spec.deps->redis, &a, on_days, &l->parts[number]) != REDIS_SENT) {
		l->ok = false;
		l->left--;
	}
}

void close_look_start(const struct close_look_spec *spec, const bool *wanted, const bool *fresh)
{
	struct look *l = xcalloc(1, sizeof(*l));

	l->spec = *spec;
	l->ok = true;
	l->left = 1; /* ourselves, until all are sent */
	turn_task_init(&l->end, end, l);
	for (int p = 0; p < keys_partitions(); p++) {
		if (wanted[p])
			read_partition(l, p, fresh[p]);
	}
	settle(l);
}
