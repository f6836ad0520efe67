/* SPDX-License-Identifier: MIT */
/* Wires links, topology, publishers, retry and parking lot together. Notices go through one publisher; copies
 * of dead messages and replays through another, so that neither takes the other's window. */
#include "mq/mq.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "mq/link.h"
#include "mq/publisher.h"
#include "mq/retry.h"
#include "mq/topology.h"

#define HOPS_WINDOW      256
#define RECHECK_SOON_MS  1000
#define RECHECK_LATER_MS 30000
#define DRAIN_LOOK_MS    10

struct mq {
	struct event_base *base;
	struct delays delays;
	struct link *publish;
	struct link *consume;
	struct topology *topology;
	struct publisher *notices;
	struct publisher *hops;
	struct retry *retry;
	struct parked *parked;
	bool looked;    /* the topology was run since the link opened */
	unsigned parts; /* of it that are as they should be */
	struct event *recheck;
	int64_t recheck_us; /* when it fires */
	void (*room)(void *arg);
	void *room_arg;
	struct event *drain; /* NULL unless draining */
	int64_t drain_until_us;
	void (*drained)(void *arg);
	void *drained_arg;
	bool stopped;
};

/* Looks at the topology again in so long, or sooner when that was planned. */
static void recheck_in(struct mq *mq, int64_t ms)
{
	struct timeval wait = {ms / 1000, ms % 1000 * 1000};
	int64_t due_us = clock_mono_us() + ms * 1000;

	if (mq->drain != NULL)
		return;
	if (event_pending(mq->recheck, EV_TIMEOUT, NULL) && mq->recheck_us <= due_us)
		return;
	mq->recheck_us = due_us;
	event_add(mq->recheck, &wait);
}

static void on_recheck(evutil_socket_t fd, short what, void *arg)
{
	struct mq *mq = arg;

	(void)fd;
	(void)what;
	topology_run(mq->topology);
}

static void on_topology(void *arg, unsigned parts)
{
	const unsigned all = TOPOLOGY_PART_NOTICES | TOPOLOGY_PART_RETRY | TOPOLOGY_PART_SUPERVISORS;
	struct mq *mq = arg;

	mq->looked = true;
	mq->parts = parts;
	if (mq->drain != NULL)
		return;
	publisher_hold(mq->notices, (parts & TOPOLOGY_PART_NOTICES) == 0);
	publisher_hold(mq->hops, (parts & TOPOLOGY_PART_RETRY) == 0);
	if ((parts & TOPOLOGY_PART_RETRY) != 0)
		retry_start(mq->retry);
	else
		retry_stop(mq->retry);
	if (parts != all)
		recheck_in(mq, RECHECK_LATER_MS);
}

static void on_publish_closed(void *arg)
{
	struct mq *mq = arg;

	mq->looked = false;
	mq->parts = 0;
	publisher_hold(mq->notices, true);
	publisher_hold(mq->hops, true);
}

static void on_broken(void *arg, int code, const char *text)
{
	log_error("rabbitmq publish event=channel_closed code=%d error=\"%s\"", code, text);
	recheck_in(arg, RECHECK_SOON_MS / 2);
}

static void on_retry_lost(void *arg)
{
	recheck_in(arg, RECHECK_SOON_MS);
}

static void on_notices_room(void *arg)
{
	struct mq *mq = arg;

	if (mq->room != NULL)
		mq->room(mq->room_arg);
}

static void on_hops_room(void *arg)
{
	struct mq *mq = arg;

	retry_room(mq->retry);
	parked_room(mq->parked);
}

static const struct link_ops publish_ops = {.closed = on_publish_closed};
static const struct link_ops consume_ops = {0};
static const struct publisher_ops notices_ops = {on_notices_room, on_broken};
static const struct publisher_ops hops_ops = {on_hops_room, on_broken};

static struct link *make_link(
	struct mq *mq, const struct config *c, const char *name, const struct link_ops *ops)
{
	struct link_params params = {.name = name,
		.host = c->amqp_host,
		.port = (int)c->amqp_port,
		.user = c->amqp_user,
		.password = c->amqp_password,
		.vhost = c->amqp_vhost,
		.heartbeat_ms = c->amqp_heartbeat};

	return link_new(mq->base, &params, ops, mq);
}

static void write_info(struct buf *out, void *arg)
{
	const struct mq *mq = arg;
	struct mq_counts n;

	mq_counts(mq, &n);
	buf_addf(out, "rabbitmq_state:%s\r\n", mq_state_name(mq_state(mq)));
	buf_addf(out, "publish_link:%s\r\nconsume_link:%s\r\n", link_state_name(link_state(mq->publish)),
		link_state_name(link_state(mq->consume)));
	buf_addf(out, "blocked:%d\r\n", link_blocked(mq->publish) || link_blocked(mq->consume));
	buf_addf(out, "published:%llu\r\nconfirmed:%llu\r\nreturned:%llu\r\nnacked:%llu\r\nlost:%llu\r\n",
		(unsigned long long)n.published, (unsigned long long)n.confirmed,
		(unsigned long long)n.returned, (unsigned long long)n.nacked, (unsigned long long)n.lost);
	buf_addf(out, "unconfirmed:%zu\r\nretried:%llu\r\nparked:%llu\r\nreconnects:%llu\r\n", n.unconfirmed,
		(unsigned long long)n.retried, (unsigned long long)n.parked,
		(unsigned long long)n.reconnects);
	buf_addf(out, "topology_problem:%s\r\nrabbitmq_last_error:%s\r\n", topology_problem(mq->topology),
		mq_error(mq));
}

static void build(struct mq *mq, const struct config *config)
{
	mq->publish = make_link(mq, config, "publish", &publish_ops);
	mq->consume = make_link(mq, config, "consume", &consume_ops);
	mq->topology = topology_new(mq->publish, &mq->delays, on_topology, mq);
	mq->notices = publisher_new(mq->publish, (size_t)config->amqp_confirm_window, &notices_ops, mq);
	mq->hops = publisher_new(mq->publish, HOPS_WINDOW, &hops_ops, mq);
	mq->retry = retry_new(mq->base, mq->consume, mq->hops, &mq->delays, on_retry_lost, mq);
	mq->parked = parked_new(mq->base, mq->consume, mq->hops);
	mq->recheck = event_new(mq->base, -1, 0, on_recheck, mq);
}

struct mq *mq_new(struct event_base *base, const struct config *config)
{
	struct mq *mq = xcalloc(1, sizeof(*mq));
	struct buf errors = BUF_INIT;

	mq->base = base;
	if (delays_parse(&mq->delays, config->amqp_delays, &errors) != 0) {
		log_error("rabbitmq config event=refused error=\"%s\"", errors.data);
		buf_release(&errors);
		free(mq);
		return NULL;
	}
	build(mq, config);
	info_register("rabbitmq", write_info, mq);
	link_start(mq->publish);
	link_start(mq->consume);
	return mq;
}

void mq_free(struct mq *mq)
{
	if (mq == NULL)
		return;
	topology_free(mq->topology);
	publisher_free(mq->notices);
	publisher_free(mq->hops);
	retry_free(mq->retry);
	parked_free(mq->parked);
	link_free(mq->publish);
	link_free(mq->consume);
	event_free(mq->recheck);
	if (mq->drain != NULL)
		event_free(mq->drain);
	free(mq);
}

static bool links_stopped(const struct mq *mq)
{
	return link_state(mq->publish) == LINK_STOPPED && link_state(mq->consume) == LINK_STOPPED;
}

static void on_drain(evutil_socket_t fd, short what, void *arg)
{
	struct mq *mq = arg;
	bool late = clock_mono_us() >= mq->drain_until_us;

	(void)fd;
	(void)what;
	if (late || publisher_pending(mq->notices) + publisher_pending(mq->hops) == 0) {
		link_close(mq->publish);
		link_close(mq->consume);
	}
	if (!late && !links_stopped(mq))
		return;
	event_del(mq->drain);
	mq->stopped = true;
	mq->drained(mq->drained_arg);
}

void mq_drain(struct mq *mq, int64_t timeout_ms, void (*done)(void *arg), void *arg)
{
	struct timeval look = {0, DRAIN_LOOK_MS * 1000};

	if (mq->drain != NULL)
		return;
	mq->drained = done;
	mq->drained_arg = arg;
	mq->drain_until_us = clock_mono_us() + timeout_ms * 1000;
	mq->drain = event_new(mq->base, -1, EV_PERSIST, on_drain, mq);
	event_add(mq->drain, &look);
	event_del(mq->recheck);
	publisher_hold(mq->notices, true);
	publisher_hold(mq->hops, true);
	retry_stop(mq->retry);
}

void mq_reload(struct mq *mq, const struct config *config)
{
	publisher_set_window(mq->notices, (size_t)config->amqp_confirm_window);
}

int mq_publish(struct mq *mq, const struct mq_message *m, mq_publish_cb cb, void *arg)
{
	return publisher_send(mq->notices, m, cb, arg);
}

size_t mq_room(const struct mq *mq)
{
	return publisher_room(mq->notices);
}

void mq_on_room(struct mq *mq, void (*fn)(void *arg), void *arg)
{
	mq->room = fn;
	mq->room_arg = arg;
}

int mq_parked_list(struct mq *mq, size_t count, mq_parked_cb cb, void *arg)
{
	return mq->drain != NULL ? -1 : parked_list(mq->parked, count, cb, arg);
}

int mq_parked_replay(struct mq *mq, size_t count, struct bytes message_id, mq_replay_cb cb, void *arg)
{
	return mq->drain != NULL ? -1 : parked_replay(mq->parked, count, message_id, cb, arg);
}

enum mq_state mq_state(const struct mq *mq)
{
	if (mq->stopped)
		return MQ_STOPPED;
	if (link_misconfigured(mq->publish))
		return MQ_MISCONFIGURED;
	if (link_state(mq->publish) != LINK_OPEN)
		return MQ_DOWN;
	if (!mq->looked)
		return MQ_STARTING;
	if ((mq->parts & TOPOLOGY_PART_NOTICES) == 0 || topology_problem(mq->topology)[0] != '\0')
		return MQ_MISCONFIGURED;
	return link_blocked(mq->publish) ? MQ_BLOCKED : MQ_READY;
}

const char *mq_state_name(enum mq_state state)
{
	static const char *const names[] = {
		[MQ_DOWN] = "down",
		[MQ_MISCONFIGURED] = "misconfigured",
		[MQ_STARTING] = "starting",
		[MQ_BLOCKED] = "blocked",
		[MQ_READY] = "ready",
		[MQ_STOPPED] = "stopped",
	};

	return names[state];
}

const char *mq_error(const struct mq *mq)
{
	if (topology_problem(mq->topology)[0] != '\0')
		return topology_problem(mq->topology);
	if (link_error(mq->publish)[0] != '\0')
		return link_error(mq->publish);
	return link_error(mq->consume);
}

void mq_counts(const struct mq *mq, struct mq_counts *ret)
{
	const struct publisher_counts *n = publisher_counts(mq->notices);
	struct retry_counts r;

	retry_counts(mq->retry, &r);
	*ret = (struct mq_counts){
		.published = n->published,
		.confirmed = n->outcome[MQ_CONFIRMED],
		.returned = n->outcome[MQ_RETURNED],
		.nacked = n->outcome[MQ_NACKED],
		.lost = n->outcome[MQ_LOST],
		.retried = r.retried,
		.parked = r.parked,
		.reconnects = link_failures(mq->publish) + link_failures(mq->consume),
		.unconfirmed = publisher_pending(mq->notices),
	};
}
