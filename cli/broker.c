/* SPDX-License-Identifier: MIT */
#include "cli/broker.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "base/turn.h"

#define HEARTBEAT_MS 15000
#define GOODBYE_S    2

struct stay {
	const struct cli_options *options;
	const struct broker_visit *visit;
	struct event_base *base;
	struct consumer *consumer;
	struct event *patience; /* until the first success; then for the goodbye */
	bool ready;
	bool leaving;
	bool failed; /* since the last success, and told */
	int result;
	char error[256];
};

static void on_closed(void *arg)
{
	struct stay *s = arg;

	event_base_loopbreak(s->base);
}

static void leave(struct stay *s, int result)
{
	struct timeval goodbye = {GOODBYE_S, 0};

	if (s->leaving)
		return;
	s->leaving = true;
	s->result = result;
	event_add(s->patience, &goodbye);
	consumer_close(s->consumer, on_closed);
}

static void on_ready(void *arg, const char *queue)
{
	struct stay *s = arg;

	if (s->failed)
		cli_error("connected to RabbitMQ again");
	s->failed = false;
	if (!s->ready && s->visit->ready != NULL)
		s->visit->ready(s->visit->arg, queue);
	s->ready = true;
	if (s->visit->task == CONSUMER_READ)
		event_del(s->patience);
	else
		leave(s, CLI_OK);
}

static void on_notice(void *arg, const struct consumer_notice *notice)
{
	struct stay *s = arg;

	if (s->leaving)
		return;
	bool more = s->visit->notice(s->visit->arg, &notice->message);
	consumer_ack(s->consumer, notice->tag);
	if (!more)
		leave(s, CLI_OK);
}

static void on_failed(void *arg, const char *error, bool final)
{
	struct stay *s = arg;

	if (s->leaving)
		return;
	if (final) {
		cli_error("RabbitMQ at %s:%d: %s", s->options->amqp.host, s->options->amqp.port, error);
		leave(s, CLI_FAILED);
		return;
	}
	snprintf(s->error, sizeof(s->error), "%s", error);
	if (s->ready && !s->failed)
		cli_error("RabbitMQ: %s; trying again", error);
	s->failed = s->ready;
}

static const struct consumer_ops ops = {on_ready, on_notice, on_failed};

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
	struct stay *s = arg;

	(void)fd;
	(void)what;
	if (!s->leaving) {
		cli_error("no answer from RabbitMQ at %s:%d: %s", s->options->amqp.host,
			s->options->amqp.port, s->error[0] != '\0' ? s->error : "timeout");
		s->result = CLI_UNREACHABLE;
	}
	event_base_loopbreak(s->base);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	leave(arg, CLI_OK);
}

static void run(struct stay *s)
{
	const struct cli_amqp *amqp = &s->options->amqp;
	struct timeval patience = {s->options->timeout_ms / 1000, s->options->timeout_ms % 1000 * 1000};
	struct consumer_params params = {.host = amqp->host,
		.port = amqp->port,
		.user = amqp->user,
		.password = amqp->password,
		.vhost = amqp->vhost,
		.heartbeat_ms = HEARTBEAT_MS,
		.task = s->visit->task,
		.queue = s->visit->queue,
		.keys = s->visit->keys,
		.key_count = s->visit->key_count};
	struct event *interrupt = evsignal_new(s->base, SIGINT, on_signal, s);
	struct event *terminate = evsignal_new(s->base, SIGTERM, on_signal, s);

	s->patience = event_new(s->base, -1, 0, on_patience, s);
	event_add(s->patience, &patience);
	event_add(interrupt, NULL);
	event_add(terminate, NULL);
	s->consumer = consumer_new(s->base, &params, &ops, s);
	event_base_dispatch(s->base);
	consumer_free(s->consumer);
	event_free(s->patience);
	event_free(interrupt);
	event_free(terminate);
}

int broker_visit(const struct cli_options *options, const struct broker_visit *visit)
{
	struct stay s = {.options = options, .visit = visit, .base = event_base_new()};

	if (s.base == NULL) {
		cli_error("can't start an event loop");
		return CLI_FAILED;
	}
	log_set_level(LOG_LEVEL_ERROR); /* what matters here is told by cli_error() */
	turn_init(s.base);
	run(&s);
	turn_release();
	event_base_free(s.base);
	return s.result;
}
