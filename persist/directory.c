/* SPDX-License-Identifier: MIT */
#include "persist/directory.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/info.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/keys.h"
#include "persist/partition.h"
#include "persist/redis.h"

#define LOOKUPS_MAX 500 /* of one MGET */
/* A hash table that grows moves all its entries in one step: with a million people in one table that would
 * hold the loop up for 60 ms. */
#define SHARDS 256

/* The employee's id and then the department's, in one piece of memory. */
struct entry {
	UT_hash_handle hh;
	unsigned char employee_len, dept_len;
	char text[];
};

struct lookup {
	directory_cb cb;
	void *arg;
	struct lookup *next;
	unsigned char len;
	char employee[ID_MAX];
};

/* The look-ups of one MGET. */
struct ask {
	struct directory *directory;
	struct lookup *first, **last;
	int count;
	const char *error;
	struct turn_task failure;
};

struct directory {
	struct redis *redis;
	const int64_t *max_entries;
	struct entry *shards[SHARDS];
	int64_t count;
	struct ask *open;
	struct turn_task flush;
	uint64_t hits, lookups;
};

static void flush(void *arg);

static void write_info(struct buf *out, void *arg)
{
	const struct directory *d = arg;

	buf_addf(out, "directory_entries:%lld\r\ndirectory_lookups:%llu\r\n", (long long)directory_count(d),
		(unsigned long long)d->lookups);
}

struct directory *directory_new(struct redis *redis, const int64_t *max_entries)
{
	struct directory *d = xcalloc(1, sizeof(*d));

	d->redis = redis;
	d->max_entries = max_entries;
	turn_task_init(&d->flush, flush, d);
	info_register("Directory", write_info, d);
	return d;
}

static void answer(struct ask *ask, const struct redisReply *reply, const char *error)
{
	size_t i = 0;

	for (struct lookup *l = ask->first, *next; l != NULL; l = next, i++) {
		struct bytes employee = {l->employee, l->len};
		struct bytes dept = error == NULL ? redis_text(redis_at(reply, i)) : (struct bytes){"", 0};
		if (dept.n > 0)
			directory_put(ask->directory, employee, dept);
		else if (error == NULL)
			directory_forget(ask->directory, employee);
		next = l->next;
		l->cb(dept, error, l->arg);
		free(l);
	}
	free(ask);
}

static void drop(struct directory *d, struct entry **shard, struct entry *e)
{
	HASH_DEL(*shard, e);
	free(e);
	d->count--;
}

void directory_free(struct directory *d)
{
	if (d == NULL)
		return;
	turn_cancel(&d->flush);
	if (d->open != NULL)
		answer(d->open, NULL, "NOTREADY shutting down, nothing was done");
	for (int i = 0; i < SHARDS; i++) {
		while (d->shards[i] != NULL)
			drop(d, &d->shards[i], d->shards[i]);
	}
	free(d);
}

static struct entry **shard_of(struct directory *d, struct bytes employee)
{
	return &d->shards[partition_crc16(employee) % SHARDS];
}

static struct entry *find(struct directory *d, struct bytes employee)
{
	struct entry *e, *shard = *shard_of(d, employee);

	HASH_FIND(hh, shard, employee.p, employee.n, e);
	return e;
}

struct bytes directory_peek(struct directory *d, struct bytes employee)
{
	const struct entry *e = find(d, employee);

	return e != NULL ? (struct bytes){e->text + e->employee_len, e->dept_len} : (struct bytes){"", 0};
}

bool directory_touch(struct directory *d, struct bytes employee)
{
	struct entry **shard = shard_of(d, employee), *e = find(d, employee);

	if (e == NULL)
		return false;
	if (d->count > *d->max_entries / 2) { /* before that nobody gives way */
		HASH_DEL(*shard, e);
		HASH_ADD(hh, *shard, text[0], e->employee_len, e);
	}
	return true;
}

void directory_forget(struct directory *d, struct bytes employee)
{
	struct entry *e = find(d, employee);

	if (e != NULL)
		drop(d, shard_of(d, employee), e);
}

void directory_put(struct directory *d, struct bytes employee, struct bytes dept)
{
	struct entry **shard = shard_of(d, employee);
	struct entry *e = find(d, employee);

	if (e != NULL && bytes_eq((struct bytes){e->text + e->employee_len, e->dept_len}, dept))
		return;
	if (e != NULL)
		drop(d, shard, e);
	else if (d->count >= *d->max_entries && *shard != NULL)
		drop(d, shard, *shard); /* the oldest of the shard */
	e = xmalloc(sizeof(*e) + employee.n + dept.n);
	e->employee_len = (unsigned char)employee.n;
	e->dept_len = (unsigned char)dept.n;
	memcpy(e->text, employee.p, employee.n);
	memcpy(e->text + employee.n, dept.p, dept.n);
	HASH_ADD(hh, *shard, text[0], e->employee_len, e);
	d->count++;
}

int64_t directory_count(const struct directory *d)
{
	return d->count;
}

void directory_lookup(struct directory *d, struct bytes employee, directory_cb cb, void *arg)
{
	struct lookup *l = xcalloc(1, sizeof(*l));

	if (d->open == NULL) {
		d->open = xcalloc(1, sizeof(*d->open));
		d->open->directory = d;
		d->open->last = &d->open->first;
		turn_schedule(&d->flush);
	}
	l->cb = cb;
	l->arg = arg;
	l->len = (unsigned char)employee.n;
	memcpy(l->employee, employee.p, employee.n);
	*d->open->last = l;
	d->open->last = &l->next;
	d->lookups++;
	if (++d->open->count == LOOKUPS_MAX) {
		turn_cancel(&d->flush);
		flush(d);
	}
}

static void on_reply(const struct redisReply *reply, void *arg)
{
	answer(arg, reply, redis_reply_error(reply));
}

static void fail(void *arg)
{
	struct ask *ask = arg;

	answer(ask, NULL, ask->error);
}

static void flush(void *arg)
{
	struct directory *d = arg;
	struct ask *ask = d->open;
	struct redis_args a;
	struct buf key = BUF_INIT;

	d->open = NULL;
	redis_args_init(&a);
	redis_arg_str(&a, "MGET");
	for (struct lookup *l = ask->first; l != NULL; l = l->next) {
		key_dir(&key, (struct bytes){l->employee, l->len});
		redis_arg_key(&a, &key);
	}
	buf_release(&key);
	enum redis_sent sent = redis_query(d->redis, &a, on_reply, ask);
	if (sent == REDIS_SENT)
		return;
	ask->error = redis_sent_error(sent);
	turn_task_init(&ask->failure, fail, ask);
	turn_schedule(&ask->failure);
}
