/* SPDX-License-Identifier: MIT */
#include "mq/retry.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "mq/letter.h"
#include "mq/link.h"
#include "mq/publisher.h"
#include "mq/topology.h"

#define PREFETCH      100
#define REOPEN_MS     1000
#define AGAIN_S       1 /* a copy that was refused waits so long */
#define WARN_EVERY_US INT64_C(1000000)
#define CONSUMER_TAG  "muster.retry"

/* One dead message. Freed when its copy is confirmed, or when its channel went before the copy was sent. */
struct dead {
	struct retry *retry;
	uint64_t tag;
	unsigned channel_life; /* the life of the channel that the tag belongs to */
	bool sent;             /* its copy is with the publisher */
	bool parks;
	struct mq_message *copy; /* owned */
	TAILQ_ENTRY(dead) link;
};

struct retry {
	struct channel *channel;
	struct publisher *publisher;
	const struct delays *delays;
	void (*lost)(void *arg);
	void *arg;
	bool wanted;
	bool consuming;
	unsigned channel_life; /* counts openings */
	struct event *again;
	TAILQ_HEAD(, dead) all;
	size_t held;
	uint64_t retried, parked;
	int64_t warned_us;
};

bool retry_route(
	const struct mq_message *dead, const struct delays *delays, char *exchange, struct mq_message *ret)
{
	bool again = dead->queue.n > 0 && dead->attempt < delays->count;

	*ret = *dead;
	ret->attempt = dead->attempt + 1;
	ret->exchange = (struct bytes){"", 0};
	ret->routing_key = BYTES_LIT(TOPOLOGY_PARKED);
	if (dead->queue.n == 0)
		ret->reason = BYTES_LIT("no x-death: it is not known where it came from");
	if (!again)
		return true;
	snprintf(exchange, RETRY_EXCHANGE_MAX, TOPOLOGY_DELAY_PREFIX "%s", delays->item[dead->attempt].text);
	ret->exchange = bytes_of(exchange);
	ret->routing_key = dead->queue;
	return false;
}

static void forget(struct dead *d)
{
	TAILQ_REMOVE(&d->retry->all, d, link);
	d->retry->held--;
	free(d->copy);
	free(d);
}

/* Each on level info; a warning once a second at most, since a broken consumer can park very many. */
static void count(struct dead *d)
{
	struct retry *r = d->retry;
	int64_t now = clock_mono_us();

	if (!d->parks) {
		r->retried++;
		return;
	}
	r->parked++;
	log_info("rabbitmq retry event=parked message=%.*s queue=%.*s attempts=%d reason=\"%.*s\"",
		(int)d->copy->message_id.n, d->copy->message_id.p, (int)d->copy->queue.n, d->copy->queue.p,
		d->copy->attempt, (int)d->copy->reason.n, d->copy->reason.p);
	if (r->warned_us != 0 && now - r->warned_us < WARN_EVERY_US)
		return;
	r->warned_us = now;
	log_warning("rabbitmq retry event=parked total=%llu last_queue=%.*s", (unsigned long long)r->parked,
		(int)d->copy->queue.n, d->copy->queue.p);
}

static void on_outcome(enum mq_outcome outcome, void *arg)
{
	struct dead *d = arg;
	struct retry *r = d->retry;
	bool stale = d->channel_life != r->channel_life || !channel_is_open(r->channel);

	d->sent = false;
	if (outcome == MQ_CONFIRMED) {
		amqp_basic_ack_t ack = {.delivery_tag = d->tag};
		count(d);
		if (!stale)
			channel_send(r->channel, AMQP_BASIC_ACK_METHOD, &ack);
		forget(d);
		return;
	}
	if (stale) {
		/* The broker gives it to us, or to another daemon, again. */
		forget(d);
		return;
	}
	struct timeval wait = {AGAIN_S, 0};
	if (outcome != MQ_LOST)
		log_error("rabbitmq retry event=%s message=%.*s to=%.*s", mq_outcome_name(outcome),
			(int)d->copy->message_id.n, d->copy->message_id.p, (int)d->copy->routing_key.n,
			d->copy->routing_key.p);
	event_add(r->again, &wait);
}

/* False when the publisher has no room. */
static bool send_copy(struct dead *d)
{
	int rc = publisher_send(d->retry->publisher, d->copy, on_outcome, d);

	d->sent = rc == 0;
	if (rc == -EINVAL)
		log_error("rabbitmq retry event=unsendable message=%.*s", (int)d->copy->message_id.n,
			d->copy->message_id.p);
	return rc != -EAGAIN;
}

static void send_waiting(struct retry *r)
{
	struct dead *d;

	if (!r->wanted)
		return;
	TAILQ_FOREACH (d, &r->all, link) {
		if (!d->sent && !send_copy(d))
			return;
	}
}

void retry_room(struct retry *r)
{
	send_waiting(r);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	send_waiting(arg);
}

static void on_content(void *arg, const struct codec_content *content)
{
	struct retry *r = arg;
	const amqp_basic_deliver_t *deliver = content->method->decoded;
	char exchange[RETRY_EXCHANGE_MAX];
	struct mq_message dead, fresh;

	letter_read(content, &dead);
	bool parks = retry_route(&dead, r->delays, exchange, &fresh);
	struct mq_message *copy = mq_message_copy(&fresh);
	if (copy == NULL) {
		link_drop(channel_link(r->channel), "no memory for a message of %zu bytes", fresh.body.n);
		return;
	}
	struct dead *d = xcalloc(1, sizeof(*d));
	*d = (struct dead){.retry = r,
		.tag = deliver->delivery_tag,
		.channel_life = r->channel_life,
		.parks = parks,
		.copy = copy};
	TAILQ_INSERT_TAIL(&r->all, d, link);
	r->held++;
	if (r->wanted)
		send_copy(d);
}

static void consume(struct retry *r)
{
	amqp_basic_qos_t qos = {.prefetch_count = PREFETCH};
	amqp_basic_consume_t c = {.queue = amqp_text(TOPOLOGY_DEAD), .consumer_tag = amqp_text(CONSUMER_TAG)};

	if (!r->wanted || r->consuming || !channel_is_open(r->channel))
		return;
	r->consuming = true;
	channel_call(r->channel, AMQP_BASIC_QOS_METHOD, &qos);
	channel_call(r->channel, AMQP_BASIC_CONSUME_METHOD, &c);
}

void retry_start(struct retry *r)
{
	r->wanted = true;
	consume(r);
	send_waiting(r);
}

/* The consumer stays: a cancel right behind its consume crashes the channel of a 3.10 broker. What still
 * comes is held, at most the prefetch. */
void retry_stop(struct retry *r)
{
	r->wanted = false;
}

static void on_opened(void *arg)
{
	struct retry *r = arg;

	r->channel_life++;
	consume(r);
}

static void on_method(void *arg, const amqp_method_t *method)
{
	struct retry *r = arg;

	if (method->id != AMQP_BASIC_CANCEL_METHOD)
		return;
	log_error("rabbitmq retry event=cancelled queue=" TOPOLOGY_DEAD);
	r->consuming = false;
	r->lost(r->arg);
}

/* What is not with the publisher comes again by itself; the rest is forgotten when its outcome is known. */
static void on_closed(void *arg, int code, const char *text)
{
	struct retry *r = arg;
	struct dead *d = TAILQ_FIRST(&r->all);

	r->consuming = false;
	while (d != NULL) {
		struct dead *after = TAILQ_NEXT(d, link);
		if (!d->sent)
			forget(d);
		d = after;
	}
	if (code == 0)
		return;
	log_error("rabbitmq retry event=channel_closed code=%d error=\"%s\"", code, text);
	r->lost(r->arg);
}

static const struct channel_ops channel_ops = {on_opened, on_method, on_content, on_closed, NULL, NULL};

struct retry *retry_new(struct event_base *base, struct link *link, struct publisher *publisher,
	const struct delays *delays, void (*lost)(void *arg), void *arg)
{
	struct retry *r = xcalloc(1, sizeof(*r));

	r->publisher = publisher;
	r->delays = delays;
	r->lost = lost;
	r->arg = arg;
	TAILQ_INIT(&r->all);
	r->again = event_new(base, -1, 0, on_again, r);
	r->channel = channel_new(link, &channel_ops, r, REOPEN_MS);
	return r;
}

void retry_free(struct retry *r)
{
	struct dead *d;

	if (r == NULL)
		return;
	while ((d = TAILQ_FIRST(&r->all)) != NULL)
		forget(d);
	channel_free(r->channel);
	event_free(r->again);
	free(r);
}

void retry_counts(const struct retry *r, struct retry_counts *ret)
{
	*ret = (struct retry_counts){.retried = r->retried, .parked = r->parked, .held = r->held};
}
