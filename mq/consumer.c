/* SPDX-License-Identifier: MIT */
#include "mq/consumer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "mq/letter.h"
#include "mq/link.h"
#include "mq/topology.h"

#define PREFETCH       100
#define REOPEN_MS      1000
#define QUEUE_NAME_MAX 256
#define LIFE_SHIFT     40 /* a tag of ours: the life of the channel above the broker's tag */

enum consumer_state {
	CONSUMER_IDLE,      /* no open channel, or all done */
	CONSUMER_DECLARING, /* queue.declare is out */
	CONSUMER_BINDING,   /* keys[at] is being bound */
	CONSUMER_STARTING,  /* basic.qos and basic.consume are out */
	CONSUMER_READING,
	CONSUMER_REMOVING, /* queue.delete is out */
};

struct consumer {
	struct link *link;
	struct channel *channel;
	enum consumer_task task;
	enum consumer_state state; /* written by enter() only */
	const struct consumer_ops *ops;
	void *arg;
	void (*closed)(void *arg);
	bool own_queue, existing;
	char queue[QUEUE_NAME_MAX];
	char **keys; /* owned, each */
	size_t key_count;
	size_t at;
	uint16_t prefetch;
	uint64_t channel_life;
};

static void enter(struct consumer *c, enum consumer_state state)
{
	static const char *const names[] = {
		"idle", "declaring", "binding", "starting", "reading", "removing"};

	log_debug("rabbitmq consumer event=state %s -> %s", names[c->state], names[state]);
	c->state = state;
}

static void declare(struct consumer *c)
{
	amqp_table_entry_t args[TOPOLOGY_QUEUE_ARGS];
	amqp_queue_declare_t d = {.queue = amqp_text(c->own_queue ? "" : c->queue)};

	d.durable = !c->own_queue;
	d.exclusive = d.auto_delete = c->own_queue;
	if (!c->own_queue)
		d.arguments = topology_queue_args(args);
	enter(c, CONSUMER_DECLARING);
	channel_call(c->channel, AMQP_QUEUE_DECLARE_METHOD, &d);
}

static void start(struct consumer *c)
{
	amqp_basic_qos_t qos = {.prefetch_count = c->prefetch};
	amqp_basic_consume_t consume = {.queue = amqp_text(c->queue)};

	enter(c, CONSUMER_STARTING);
	channel_call(c->channel, AMQP_BASIC_QOS_METHOD, &qos);
	channel_call(c->channel, AMQP_BASIC_CONSUME_METHOD, &consume);
}

static void ready(struct consumer *c, enum consumer_state state)
{
	enter(c, state);
	if (c->ops->ready != NULL)
		c->ops->ready(c->arg, c->queue);
}

static void bind_next(struct consumer *c)
{
	if (c->at == c->key_count) {
		if (c->task == CONSUMER_READ)
			start(c);
		else
			ready(c, CONSUMER_IDLE);
		return;
	}
	amqp_queue_bind_t b = {.queue = amqp_text(c->queue),
		.exchange = amqp_text(TOPOLOGY_NOTICES),
		.routing_key = amqp_text(c->keys[c->at])};
	enter(c, CONSUMER_BINDING);
	channel_call(c->channel, AMQP_QUEUE_BIND_METHOD, &b);
}

static void remove_queue(struct consumer *c)
{
	amqp_queue_delete_t d = {.queue = amqp_text(c->queue)};

	enter(c, CONSUMER_REMOVING);
	channel_call(c->channel, AMQP_QUEUE_DELETE_METHOD, &d);
}

static void on_opened(void *arg)
{
	struct consumer *c = arg;

	c->channel_life++;
	c->at = 0;
	if (c->task == CONSUMER_REMOVE)
		remove_queue(c);
	else if (c->existing)
		start(c);
	else
		declare(c);
}

static void on_cancelled(struct consumer *c)
{
	char error[QUEUE_NAME_MAX + 32];

	snprintf(error, sizeof(error), "queue %s was deleted", c->queue);
	enter(c, CONSUMER_IDLE);
	c->ops->failed(c->arg, error, true);
}

static void on_method(void *arg, const amqp_method_t *method)
{
	struct consumer *c = arg;

	if (method->id == AMQP_QUEUE_DECLARE_OK_METHOD) {
		const amqp_queue_declare_ok_t *ok = method->decoded;
		bytes_copy(c->queue, sizeof(c->queue), amqp_to(ok->queue));
		bind_next(c);
	} else if (method->id == AMQP_QUEUE_BIND_OK_METHOD) {
		c->at++;
		bind_next(c);
	} else if (method->id == AMQP_BASIC_CONSUME_OK_METHOD) {
		ready(c, CONSUMER_READING);
	} else if (method->id == AMQP_QUEUE_DELETE_OK_METHOD) {
		ready(c, CONSUMER_IDLE);
	} else if (method->id == AMQP_BASIC_CANCEL_METHOD) {
		on_cancelled(c);
	}
}

static void on_content(void *arg, const struct codec_content *content)
{
	struct consumer *c = arg;
	struct consumer_notice notice = {0};

	if (content->method->id != AMQP_BASIC_DELIVER_METHOD)
		return;
	const amqp_basic_deliver_t *deliver = content->method->decoded;
	letter_read(content, &notice.message);
	notice.message.exchange = amqp_to(deliver->exchange);
	notice.message.routing_key =
		notice.message.key.n > 0 ? notice.message.key : amqp_to(deliver->routing_key);
	notice.redelivered = deliver->redelivered;
	notice.tag = c->channel_life << LIFE_SHIFT | deliver->delivery_tag;
	c->ops->notice(c->arg, &notice);
}

static void on_closed(void *arg, int code, const char *text)
{
	struct consumer *c = arg;

	enter(c, CONSUMER_IDLE);
	if (code != 0)
		c->ops->failed(c->arg, text, true);
}

static const struct channel_ops channel_ops = {on_opened, on_method, on_content, on_closed, NULL, NULL};

static void on_link_closed(void *arg)
{
	struct consumer *c = arg;

	if (link_state(c->link) != LINK_STOPPED)
		c->ops->failed(c->arg, link_error(c->link), link_misconfigured(c->link));
	else if (c->closed != NULL)
		c->closed(c->arg);
}

static const struct link_ops link_ops = {.closed = on_link_closed};

static void copy_params(struct consumer *c, const struct consumer_params *params)
{
	c->task = params->task;
	c->existing = params->existing;
	c->own_queue = params->queue == NULL;
	c->prefetch = (uint16_t)(params->prefetch != 0 ? params->prefetch : PREFETCH);
	bytes_copy(c->queue, sizeof(c->queue), bytes_of(params->queue != NULL ? params->queue : ""));
	c->key_count = params->key_count;
	c->keys = xcalloc(params->key_count + 1, sizeof(char *));
	for (size_t i = 0; i < params->key_count; i++)
		c->keys[i] = xstrdup(params->keys[i]);
}

struct consumer *consumer_new(struct event_base *base, const struct consumer_params *params,
	const struct consumer_ops *ops, void *arg)
{
	struct consumer *c = xcalloc(1, sizeof(*c));
	struct link_params link = {.name = "consumer",
		.host = params->host,
		.port = params->port,
		.user = params->user,
		.password = params->password,
		.vhost = params->vhost,
		.heartbeat_ms = params->heartbeat_ms};

	c->ops = ops;
	c->arg = arg;
	copy_params(c, params);
	c->link = link_new(base, &link, &link_ops, c);
	c->channel = channel_new(c->link, &channel_ops, c, REOPEN_MS);
	link_start(c->link);
	return c;
}

void consumer_free(struct consumer *c)
{
	if (c == NULL)
		return;
	channel_free(c->channel);
	link_free(c->link);
	for (size_t i = 0; i < c->key_count; i++)
		free(c->keys[i]);
	free(c->keys);
	free(c);
}

void consumer_close(struct consumer *c, void (*closed)(void *arg))
{
	c->closed = closed;
	link_close(c->link);
}

/* The broker's tag, or 0 when it is of an earlier channel. */
static uint64_t live_tag(const struct consumer *c, uint64_t tag)
{
	return tag >> LIFE_SHIFT == c->channel_life ? tag & ((UINT64_C(1) << LIFE_SHIFT) - 1) : 0;
}

void consumer_ack(struct consumer *c, uint64_t tag)
{
	amqp_basic_ack_t ack = {.delivery_tag = live_tag(c, tag)};

	if (ack.delivery_tag != 0)
		channel_send(c->channel, AMQP_BASIC_ACK_METHOD, &ack);
}

void consumer_reject(struct consumer *c, uint64_t tag)
{
	amqp_basic_reject_t reject = {.delivery_tag = live_tag(c, tag), .requeue = 0};

	if (reject.delivery_tag != 0)
		channel_send(c->channel, AMQP_BASIC_REJECT_METHOD, &reject);
}
