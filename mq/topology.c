/* SPDX-License-Identifier: MIT */
#include "mq/topology.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "mq/link.h"

#define NAME_MAX_LEN   64
#define FIXED_ITEMS    7
#define ITEMS_MAX      (FIXED_ITEMS + 3 * DELAYS_MAX)
#define ARGS_MAX       4
#define DELIVERY_LIMIT 1000000000 /* 4.x drops a message after 20 returns unless told otherwise */

enum item_kind { ITEM_EXCHANGE, ITEM_QUEUE, ITEM_BINDING };

struct item {
	enum item_kind kind;
	unsigned part;
	char name[NAME_MAX_LEN]; /* of a binding: the queue */
	char exchange[NAME_MAX_LEN];
	const char *detail; /* the type of an exchange, the key of a binding */
	enum { QUEUE_SUBSCRIBER, QUEUE_KEEPER, QUEUE_DELAY } queue;
	int64_t ttl_ms;
	bool failed;
};

enum topology_state {
	TOPOLOGY_IDLE,    /* not running */
	TOPOLOGY_LOOKING, /* items[at] was asked for passively */
	TOPOLOGY_MAKING,  /* it was missing and is being declared */
	TOPOLOGY_PROVING, /* it exists and is declared to compare */
	TOPOLOGY_BINDING,
};

struct topology {
	struct channel *channel;
	void (*done)(void *arg, unsigned parts);
	void *arg;
	enum topology_state state; /* written by enter() only */
	int at;
	int count;
	struct item items[ITEMS_MAX];
	char problem[256];
};

static struct item *add(struct topology *t, enum item_kind kind, unsigned part, const char *name)
{
	struct item *item = &t->items[t->count++];

	*item = (struct item){.kind = kind, .part = part};
	snprintf(item->name, sizeof(item->name), "%s", name);
	return item;
}

static void add_binding(
	struct topology *t, unsigned part, const char *queue, const char *exchange, const char *key)
{
	struct item *item = add(t, ITEM_BINDING, part, queue);

	snprintf(item->exchange, sizeof(item->exchange), "%s", exchange);
	item->detail = key;
}

static void list_items(struct topology *t, const struct delays *delays)
{
	unsigned supervisors = TOPOLOGY_PART_SUPERVISORS;

	add(t, ITEM_EXCHANGE, TOPOLOGY_PART_NOTICES, TOPOLOGY_NOTICES)->detail = "topic";
	add(t, ITEM_QUEUE, TOPOLOGY_PART_RETRY, TOPOLOGY_PARKED)->queue = QUEUE_KEEPER;
	add(t, ITEM_QUEUE, TOPOLOGY_PART_RETRY, TOPOLOGY_DEAD)->queue = QUEUE_KEEPER;
	for (int i = 0; i < delays->count; i++) {
		char name[NAME_MAX_LEN];
		snprintf(name, sizeof(name), TOPOLOGY_DELAY_PREFIX "%s", delays->item[i].text);
		add(t, ITEM_EXCHANGE, TOPOLOGY_PART_RETRY, name)->detail = "fanout";
		struct item *queue = add(t, ITEM_QUEUE, TOPOLOGY_PART_RETRY, name);
		queue->queue = QUEUE_DELAY;
		queue->ttl_ms = delays->item[i].ms;
		add_binding(t, TOPOLOGY_PART_RETRY, name, name, "");
	}
	add(t, ITEM_QUEUE, supervisors, TOPOLOGY_SUPERVISORS)->queue = QUEUE_SUBSCRIBER;
	add_binding(t, supervisors, TOPOLOGY_SUPERVISORS, TOPOLOGY_NOTICES, "attendance.#");
	add_binding(t, supervisors, TOPOLOGY_SUPERVISORS, TOPOLOGY_NOTICES, "team.#");
	add_binding(t, supervisors, TOPOLOGY_SUPERVISORS, TOPOLOGY_NOTICES, "task.#");
}

static amqp_table_entry_t text_arg(const char *key, const char *value)
{
	amqp_table_entry_t e = {.key = amqp_text(key), .value = {.kind = AMQP_FIELD_KIND_UTF8}};

	e.value.value.bytes = amqp_text(value);
	return e;
}

static amqp_table_entry_t number_arg(const char *key, int64_t value)
{
	amqp_table_entry_t e = {.key = amqp_text(key), .value = {.kind = AMQP_FIELD_KIND_I64}};

	e.value.value.i64 = value;
	return e;
}

amqp_table_t topology_queue_args(amqp_table_entry_t *entries)
{
	entries[0] = text_arg("x-queue-type", "quorum");
	entries[1] = text_arg("x-dead-letter-exchange", "");
	entries[2] = text_arg("x-dead-letter-routing-key", TOPOLOGY_DEAD);
	return (amqp_table_t){.num_entries = TOPOLOGY_QUEUE_ARGS, .entries = entries};
}

/* A delay queue has no x-dead-letter-routing-key: the waiting message's own key says where it goes. */
static amqp_table_t item_args(const struct item *item, amqp_table_entry_t *entries)
{
	if (item->queue == QUEUE_SUBSCRIBER)
		return topology_queue_args(entries);
	entries[0] = text_arg("x-queue-type", "quorum");
	if (item->queue == QUEUE_KEEPER) {
		entries[1] = number_arg("x-delivery-limit", DELIVERY_LIMIT);
		return (amqp_table_t){.num_entries = 2, .entries = entries};
	}
	entries[1] = text_arg("x-dead-letter-exchange", "");
	entries[2] = number_arg("x-message-ttl", item->ttl_ms);
	return (amqp_table_t){.num_entries = 3, .entries = entries};
}

static void enter(struct topology *t, enum topology_state state)
{
	static const char *const names[] = {"idle", "looking", "making", "proving", "binding"};

	log_debug("rabbitmq topology event=state item=%s %s -> %s",
		t->at < t->count ? t->items[t->at].name : "-", names[t->state], names[state]);
	t->state = state;
}

static void declare(struct topology *t, const struct item *item, bool passive)
{
	amqp_table_entry_t args[ARGS_MAX];

	if (item->kind == ITEM_EXCHANGE) {
		amqp_exchange_declare_t d = {.exchange = amqp_text(item->name),
			.type = amqp_text(item->detail),
			.passive = passive,
			.durable = 1};
		channel_call(t->channel, AMQP_EXCHANGE_DECLARE_METHOD, &d);
		return;
	}
	amqp_queue_declare_t d = {.queue = amqp_text(item->name), .passive = passive, .durable = 1};
	if (!passive)
		d.arguments = item_args(item, args);
	channel_call(t->channel, AMQP_QUEUE_DECLARE_METHOD, &d);
}

static void bind(struct topology *t, const struct item *item)
{
	amqp_queue_bind_t b = {.queue = amqp_text(item->name),
		.exchange = amqp_text(item->exchange),
		.routing_key = amqp_text(item->detail)};

	channel_call(t->channel, AMQP_QUEUE_BIND_METHOD, &b);
}

static bool name_failed(const struct topology *t, const char *name)
{
	for (int i = 0; i < t->count; i++) {
		const struct item *item = &t->items[i];
		if (item->failed && item->kind != ITEM_BINDING && strcmp(item->name, name) == 0)
			return true;
	}
	return false;
}

static void finish(struct topology *t)
{
	unsigned parts = TOPOLOGY_PART_NOTICES | TOPOLOGY_PART_RETRY | TOPOLOGY_PART_SUPERVISORS;

	enter(t, TOPOLOGY_IDLE);
	for (int i = 0; i < t->count; i++) {
		if (t->items[i].failed)
			parts &= ~t->items[i].part;
	}
	t->done(t->arg, parts);
}

/* Goes on with items[at], past bindings of what could not be had. */
static void step(struct topology *t)
{
	while (t->at < t->count) {
		struct item *item = &t->items[t->at];
		if (item->kind != ITEM_BINDING) {
			enter(t, TOPOLOGY_LOOKING);
			declare(t, item, true);
			return;
		}
		if (!name_failed(t, item->name) && !name_failed(t, item->exchange)) {
			enter(t, TOPOLOGY_BINDING);
			bind(t, item);
			return;
		}
		item->failed = true;
		t->at++;
	}
	finish(t);
}

static void next(struct topology *t)
{
	t->at++;
	step(t);
}

void topology_run(struct topology *t)
{
	if (t->state != TOPOLOGY_IDLE || !channel_is_open(t->channel))
		return;
	for (int i = 0; i < t->count; i++)
		t->items[i].failed = false;
	t->problem[0] = '\0';
	t->at = 0;
	step(t);
}

const char *topology_problem(const struct topology *t)
{
	return t->problem;
}

static void on_method(void *arg, const amqp_method_t *method)
{
	struct topology *t = arg;

	(void)method;
	if (t->state == TOPOLOGY_LOOKING) {
		enter(t, TOPOLOGY_PROVING);
		declare(t, &t->items[t->at], false);
	} else if (t->state != TOPOLOGY_IDLE) {
		if (t->state == TOPOLOGY_MAKING)
			log_notice("rabbitmq topology event=declared name=%s", t->items[t->at].name);
		next(t);
	}
}

static void on_content(void *arg, const struct codec_content *content)
{
	(void)arg;
	(void)content;
}

/* After a channel error: the channel is open again, and the error belongs to items[at]. */
static void on_opened(void *arg)
{
	struct topology *t = arg;

	if (t->state == TOPOLOGY_IDLE)
		topology_run(t);
	else if (t->state == TOPOLOGY_MAKING)
		declare(t, &t->items[t->at], false);
	else
		next(t);
}

static void on_closed(void *arg, int code, const char *text)
{
	struct topology *t = arg;

	if (code == 0 || t->state == TOPOLOGY_IDLE) {
		enter(t, TOPOLOGY_IDLE);
		return;
	}
	struct item *item = &t->items[t->at];
	if (t->state == TOPOLOGY_LOOKING && code == AMQP_NOT_FOUND) {
		enter(t, TOPOLOGY_MAKING);
		return;
	}
	if (t->state == TOPOLOGY_PROVING && code == AMQP_ACCESS_REFUSED) {
		log_info("rabbitmq topology event=taken_as_is name=%s", item->name);
		return;
	}
	item->failed = true;
	snprintf(t->problem, sizeof(t->problem), "%s: %d %s", item->name, code, text);
	log_error("rabbitmq topology event=mismatch name=%s code=%d error=\"%s\"", item->name, code, text);
	if (t->state == TOPOLOGY_MAKING)
		enter(t, TOPOLOGY_PROVING);
}

static const struct channel_ops channel_ops = {on_opened, on_method, on_content, on_closed, NULL, NULL};

struct topology *topology_new(
	struct link *link, const struct delays *delays, void (*done)(void *arg, unsigned parts), void *arg)
{
	struct topology *t = xcalloc(1, sizeof(*t));

	t->done = done;
	t->arg = arg;
	list_items(t, delays);
	t->channel = channel_new(link, &channel_ops, t, 0);
	return t;
}

void topology_free(struct topology *t)
{
	if (t == NULL)
		return;
	channel_free(t->channel);
	free(t);
}
