/* SPDX-License-Identifier: MIT */
/* All keys come from SCAN; those of tasks become items of their partition, which a script looks at some at a
 * time. Whatever names a queue has the queue looked at, once a round. Last come the sums of the queues: by
 * then it is known which tasks are in no place, so that they are not taken for a wrong sum. */
#include "persist/task_check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "persist/check_queue.h"
#include "persist/check_run.h"
#include "persist/findings.h"
#include "persist/keys.h"
#include "persist/partition.h"
#include "persist/redis.h"
#include "persist/task.h"

#define MISSING_MAX 100 /* tasks in no place that a sum takes into account */

/* One that has been met in this round. */
struct queue {
	UT_hash_handle hh;
	struct buf missing; /* ids of its tasks in no place, joined by ',' */
	int missing_count;
	char name[ID_MAX + 1];
};

struct part {
	struct task_check *check;
	int number;
	char base[KEYS_PREFIX_MAX + 16]; /* what its keys begin with */
	struct check_queue *items;
};

struct task_check {
	struct check_run *run;
	struct redis *redis;
	const struct config *config;
	char prefix[KEYS_PREFIX_MAX + 16]; /* of all keys that carry a partition's tag */
	struct part parts[PARTITIONS_MAX];
	struct part *asked; /* the last one */
	struct queue *queues;
};

/* ---- queues ---- */

static struct queue *queue_of(struct task_check *c, struct bytes name)
{
	struct queue *q;

	HASH_FIND(hh, c->queues, name.p, name.n, q);
	return q;
}

static void add_queue(struct part *part, struct bytes name)
{
	struct task_check *c = part->check;
	struct buf item = BUF_INIT;
	struct queue *q = xcalloc(1, sizeof(*q));

	bytes_copy(q->name, sizeof(q->name), name);
	HASH_ADD_KEYPTR(hh, c->queues, q->name, name.n, q);
	buf_addf(&item, "about:%s", q->name);
	check_queue_push(part->items, buf_bytes(&item), BYTES_LIT(""));
	buf_release(&item);
}

/* Nobody looks for it there, so nothing of it is of use. */
static void add_foreign(struct part *part, struct bytes name)
{
	char detail[64];
	int n = snprintf(
		detail, sizeof(detail), "of partition %d, in %d", keys_partition_of(name), part->number);
	const struct finding f = {.code = BYTES_LIT("QUEUE"),
		.id = BYTES_LIT(""),
		.queue = name,
		.detail = {detail, (size_t)n}};

	check_run_add(part->check->run, &f);
}

static void meet_queue(struct part *part, struct bytes name)
{
	struct task_check *c = part->check;

	if (!id_valid(name))
		return;
	if (keys_partition_of(name) != part->number)
		add_foreign(part, name);
	else if (queue_of(c, name) == NULL)
		add_queue(part, name);
}

static void forget_queue(struct task_check *c, struct queue *q)
{
	HASH_DEL(c->queues, q);
	buf_release(&q->missing);
	free(q);
}

/* Where its sum is to begin: lua/task_check.lua. */
static struct bytes missing_of(const struct queue *q)
{
	if (q->missing_count > MISSING_MAX)
		return BYTES_LIT("?");
	return q->missing.len > 0 ? buf_bytes(&q->missing) : BYTES_LIT("");
}

/* Turns queues into items, a portion, since there may be many. False when there are none. */
static bool sum_up_next(struct task_check *c)
{
	struct buf item = BUF_INIT;
	struct queue *q;

	if (c->queues == NULL)
		return false;
	for (int i = 0; i < CHECK_ITEMS && (q = c->queues) != NULL; i++) {
		struct part *part = &c->parts[keys_partition_of(bytes_of(q->name))];
		buf_addf(&item, "bytes:%s", q->name);
		check_queue_push(part->items, buf_bytes(&item), missing_of(q));
		buf_clear(&item);
		forget_queue(c, q);
	}
	buf_release(&item);
	return true;
}

/* ---- what is found ---- */

static void found(const struct finding *finding, bool fresh, void *arg)
{
	struct queue *q;

	(void)fresh; /* of an earlier round or of this one, it is in no place */
	if (!bytes_eq(finding->code, BYTES_LIT("MISSING")) || (q = queue_of(arg, finding->queue)) == NULL ||
		++q->missing_count > MISSING_MAX)
		return;
	if (q->missing.len > 0)
		buf_add_char(&q->missing, ',');
	buf_add_bytes(&q->missing, finding->id);
}

static void on_items(const struct redisReply *reply, void *arg)
{
	struct part *part = arg;
	struct check_run *run = part->check->run;

	if (!check_run_answered(run, reply))
		return;
	size_t lines = check_queue_take(part->items, reply);
	check_run_take(run, reply, lines);
}

/* ---- keys ---- */

struct kind {
	const char *name;
	bool single;   /* the whole name */
	bool of_queue; /* what follows begins with a queue */
};

static const struct kind kinds[] = {{"task", false, false}, {"payload", false, false},
	{"dedupe", false, true}, {"queue", false, true}, {"delayed", false, true}, {"lease", false, true},
	{"status", false, true}, {"worker", false, false}, {"queue_info", false, true},
	{"waiting", false, false}, {"woken", false, false}, {"waits", false, false}, {"wake", false, false},
	{"queues", true, false}, {"due", true, false}, {"task_seq", true, false}, {"task_fence", true, false},
	{"quarantine", true, false}};

static bool ends_with(struct bytes text, struct bytes end)
{
	return text.n >= end.n && memcmp(text.p + text.n - end.n, end.p, end.n) == 0;
}

static void take_name(struct part *part, struct bytes name)
{
	struct bytes rest = name, word = bytes_cut(&rest, ':');
	bool single = word.n == name.n;

	check_run_count(part->check->run, 1, bytes_eq(word, BYTES_LIT("task")), 0);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i].single != single || !bytes_eq(word, bytes_of(kinds[i].name)))
			continue;
		check_queue_push(part->items, name, BYTES_LIT(""));
		if (kinds[i].of_queue)
			meet_queue(part, bytes_cut(&rest, ':'));
		return;
	}
}

static void take_key(struct bytes key, void *arg)
{
	struct task_check *c = arg;

	/* What has been put aside is done with; nobody writes names with a NUL. */
	if (ends_with(key, BYTES_LIT(":damaged")) || memchr(key.p, '\0', key.n) != NULL)
		return;
	for (int p = 0; p < keys_partitions(); p++) {
		size_t n = strlen(c->parts[p].base);
		if (key.n > n && memcmp(key.p, c->parts[p].base, n) == 0) {
			take_name(&c->parts[p], (struct bytes){key.p + n, key.n - n});
			return;
		}
	}
}

/* ---- steps ---- */

static enum redis_sent ask_about(struct part *part)
{
	struct task_check *c = part->check;
	struct redis_args head;
	struct buf text = BUF_INIT;

	redis_args_init(&head);
	task_defaults(&text, c->config);
	redis_arg_key(&head, &text);
	buf_release(&text);
	redis_arg_i64(&head, check_run_mode(c->run));
	redis_arg_i64(&head, part->number);
	c->asked = part;
	return check_queue_send(part->items, c->redis, &head, on_items, part);
}

/* The one that has most. */
static struct part *fullest(struct task_check *c)
{
	struct part *most = &c->parts[0];

	for (int p = 1; p < keys_partitions(); p++) {
		if (check_queue_count(c->parts[p].items) > check_queue_count(most->items))
			most = &c->parts[p];
	}
	return most;
}

static enum redis_sent ask(void *arg)
{
	struct task_check *c = arg;
	struct part *part = fullest(c);

	/* Full portions: that is fewer steps. */
	if (!check_run_scanned(c->run) && check_queue_count(part->items) < CHECK_ITEMS)
		return check_run_scan(c->run, c->prefix, take_key);
	return ask_about(part);
}

static bool find_work(void *arg)
{
	struct task_check *c = arg;

	return !check_run_scanned(c->run) || check_queue_count(fullest(c)->items) > 0 || sum_up_next(c);
}

static void drop(void *arg)
{
	struct task_check *c = arg;
	struct queue *q, *tmp;

	for (int p = 0; p < keys_partitions(); p++)
		check_queue_clear(c->parts[p].items);
	HASH_ITER (hh, c->queues, q, tmp)
		forget_queue(c, q);
}

/* ---- life ---- */

static void take(char sign, struct bytes rest, void *arg)
{
	struct task_check *c = arg;
	struct bytes word = bytes_cut(&rest, ':');

	if (sign == '-')
		check_run_count(c->run, 0, 0, 1);
	else if (sign == '+' && bytes_eq(word, BYTES_LIT("about")))
		meet_queue(c->asked, rest);
}

static const char *const modes[] = {"check", "repair"};
static const struct check_ops ops = {.section = "Task check",
	.name = "task_check",
	.items = "tasks",
	.queued = true,
	.modes = modes,
	.find_work = find_work,
	.ask = ask,
	.take = take,
	.found = found,
	.drop = drop};

static void anchor(struct buf *out, const char *item, void *arg)
{
	const struct part *part = arg;

	(void)item;
	key_part(out, part->number, "queues");
}

struct task_check *task_check_new(struct event_base *base, struct redis *redis, const struct config *config)
{
	struct task_check *c = xcalloc(1, sizeof(*c));
	struct buf text = BUF_INIT;

	c->redis = redis;
	c->config = config;
	for (int p = 0; p < keys_partitions(); p++) {
		struct part *part = &c->parts[p];
		part->check = c;
		part->number = p;
		part->items = check_queue_new(SCRIPT_TASK_CHECK, anchor, part);
		key_part(&text, p, "");
		bytes_copy(part->base, sizeof(part->base), buf_bytes(&text));
		buf_clear(&text);
	}
	buf_release(&text);
	bytes_copy(c->prefix, sizeof(c->prefix), bytes_of(c->parts[0].base));
	*(strchr(c->prefix, '{') + 1) = '\0'; /* no prefix of keys has a brace */
	c->run = check_run_new(base, redis, &ops, c);
	return c;
}

void task_check_free(struct task_check *c)
{
	if (c == NULL)
		return;
	drop(c);
	for (int p = 0; p < keys_partitions(); p++)
		check_queue_free(c->parts[p].items);
	check_run_free(c->run);
	free(c);
}

struct check_run *task_check_run(struct task_check *c)
{
	return c->run;
}
