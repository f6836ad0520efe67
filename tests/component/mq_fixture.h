/* SPDX-License-Identifier: MIT */
/* What the tests of mq/ share: a loop that waits for conditions, the broker's address from the environment, a
 * connection of the test's own to look at queues with, and a proxy that cuts, holds and injects. */
#ifndef TESTS_COMPONENT_MQ_FIXTURE_H
#define TESTS_COMPONENT_MQ_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "mq/link.h"
#include "mq/mq.h"

#define WAIT_MS 20000

static struct event_base *loop;

static inline const char *from_env(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL)
		fail_msg("%s is not set", name);
	return value;
}

static inline void set(struct config *c, const char *name, const char *value)
{
	struct buf errors = BUF_INIT;

	if (config_set(c, "amqp", name, value, &errors) != 0)
		fail_msg("%s", errors.data);
	buf_release(&errors);
}

static inline void config_of_broker(struct config *c)
{
	config_init(c);
	set(c, "port", from_env("AMQP_PORT"));
	set(c, "user", from_env("AMQP_USER"));
	set(c, "password", from_env("AMQP_PASSWORD"));
	set(c, "delays", "200ms 400ms");
}

static inline void loop_start(void)
{
	signal(SIGPIPE, SIG_IGN);
	if (getenv("MUSTER_TEST_LOG") != NULL)
		log_set_level_name(getenv("MUSTER_TEST_LOG"));
	loop = event_base_new();
	turn_init(loop);
}

static inline void loop_stop(void)
{
	turn_release();
	event_base_free(loop);
}

static inline void nothing(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

/* Runs the loop until cond(arg) holds; false when it does not within the time. */
static inline bool wait_ms(bool (*cond)(void *arg), void *arg, int64_t ms)
{
	struct timeval often = {0, 5000};
	struct event *wake = event_new(loop, -1, EV_PERSIST, nothing, NULL);
	int64_t end = clock_mono_us() + ms * 1000;

	event_add(wake, &often);
	while (!cond(arg) && clock_mono_us() < end)
		event_base_loop(loop, EVLOOP_ONCE);
	event_free(wake);
	return cond(arg);
}

#define wait_for(cond, arg) assert_true(wait_ms(cond, arg, WAIT_MS))

/* On a free port of the loopback address. */
static inline struct evconnlistener *listen_here(evconnlistener_cb on_accept, void *arg, int *ret_port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	struct evconnlistener *listener = evconnlistener_new_bind(loop, on_accept, arg,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 16, (struct sockaddr *)&at, sizeof(at));

	assert_non_null(listener);
	assert_int_equal(getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&at, &len), 0);
	*ret_port = ntohs(at.sin_port);
	return listener;
}

static inline bool mq_is_ready(void *arg)
{
	return mq_state(arg) == MQ_READY && mq_room(arg) > 0;
}

static inline bool flag_is_set(void *arg)
{
	return *(bool *)arg;
}

static inline void set_flag(void *arg)
{
	*(bool *)arg = true;
}

static inline void drain_and_free(struct mq *mq)
{
	bool done = false;

	mq_drain(mq, WAIT_MS, set_flag, &done);
	wait_for(flag_is_set, &done);
	mq_free(mq);
}

/* ---- the test's own connection: one call at a time --------------------------------------------------------
 */

struct probe {
	struct link *link;
	struct channel *channel;
	bool open, answered;
	int error;               /* of the last call: 0 or the code of channel.close */
	amqp_method_number_t id; /* of the answer */
	uint32_t messages;       /* of queue.declare-ok */
	struct mq_message *got;  /* of basic.get-ok; owned */
};

static inline void probe_opened(void *arg)
{
	((struct probe *)arg)->open = true;
}

static inline void probe_method(void *arg, const amqp_method_t *method)
{
	struct probe *p = arg;

	p->id = method->id;
	p->answered = true;
	if (method->id == AMQP_QUEUE_DECLARE_OK_METHOD)
		p->messages = ((const amqp_queue_declare_ok_t *)method->decoded)->message_count;
}

void letter_read(const struct codec_content *content, struct mq_message *ret);

static inline void probe_content(void *arg, const struct codec_content *content)
{
	struct probe *p = arg;
	struct mq_message m;

	letter_read(content, &m);
	free(p->got);
	p->got = mq_message_copy(&m);
	p->id = content->method->id;
	p->answered = true;
}

static inline void probe_closed(void *arg, int code, const char *text)
{
	struct probe *p = arg;

	(void)text;
	p->open = false;
	p->error = code != 0 ? code : -1;
	p->answered = true;
}

static const struct channel_ops probe_ops = {
	probe_opened, probe_method, probe_content, probe_closed, NULL, NULL};
static const struct link_ops probe_link_ops = {0};

static inline bool probe_is_open(void *arg)
{
	return ((struct probe *)arg)->open;
}

static inline bool probe_is_answered(void *arg)
{
	return ((struct probe *)arg)->answered;
}

static inline void probe_start(struct probe *p, const struct config *c)
{
	struct link_params params = {.name = "probe",
		.host = c->amqp_host,
		.port = (int)c->amqp_port,
		.user = c->amqp_user,
		.password = c->amqp_password,
		.vhost = c->amqp_vhost};

	*p = (struct probe){0};
	p->link = link_new(loop, &params, &probe_link_ops, NULL);
	p->channel = channel_new(p->link, &probe_ops, p, 0);
	link_start(p->link);
	wait_for(probe_is_open, p);
}

static inline void probe_stop(struct probe *p)
{
	channel_free(p->channel);
	link_free(p->link);
	free(p->got);
}

/* The code of the error, or 0. */
static inline int probe_call(struct probe *p, amqp_method_number_t id, void *decoded)
{
	wait_for(probe_is_open, p);
	p->answered = false;
	p->error = 0;
	channel_call(p->channel, id, decoded);
	wait_for(probe_is_answered, p);
	return p->error;
}

static inline void probe_delete_queue(struct probe *p, const char *queue)
{
	amqp_queue_delete_t d = {.queue = amqp_text(queue)};

	assert_int_equal(probe_call(p, AMQP_QUEUE_DELETE_METHOD, &d), 0);
}

static inline void probe_delete_exchange(struct probe *p, const char *exchange)
{
	amqp_exchange_delete_t d = {.exchange = amqp_text(exchange)};

	probe_call(p, AMQP_EXCHANGE_DELETE_METHOD, &d);
}

/* Messages ready in a queue, or -1 when it does not exist. */
static inline int probe_count(struct probe *p, const char *queue)
{
	amqp_queue_declare_t d = {.queue = amqp_text(queue), .passive = 1};

	return probe_call(p, AMQP_QUEUE_DECLARE_METHOD, &d) == 0 ? (int)p->messages : -1;
}

static inline void probe_bind(struct probe *p, const char *queue, const char *key)
{
	amqp_queue_bind_t b = {.queue = amqp_text(queue),
		.exchange = amqp_text("muster.notices"),
		.routing_key = amqp_text(key)};

	assert_int_equal(probe_call(p, AMQP_QUEUE_BIND_METHOD, &b), 0);
}

static inline void probe_make_queue(struct probe *p, const char *queue)
{
	amqp_queue_declare_t d = {.queue = amqp_text(queue), .durable = 1};

	assert_int_equal(probe_call(p, AMQP_QUEUE_DECLARE_METHOD, &d), 0);
}

/* Takes one message for good; NULL when the queue is empty. It lives until the next call. */
static inline const struct mq_message *probe_get(struct probe *p, const char *queue)
{
	amqp_basic_get_t g = {.queue = amqp_text(queue), .no_ack = 1};

	assert_int_equal(probe_call(p, AMQP_BASIC_GET_METHOD, &g), 0);
	return p->id == AMQP_BASIC_GET_OK_METHOD ? p->got : NULL;
}

static inline void probe_clean(struct probe *p)
{
	static const char *const names[] = {"muster.notices", "muster.supervisors", "muster.dead",
		"muster.parked", "muster.delay.200ms", "muster.delay.400ms", "muster.sub.test",
		"muster.test"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		probe_delete_queue(p, names[i]);
		probe_delete_exchange(p, names[i]);
	}
}

struct count_wait {
	struct probe *probe;
	const char *queue;
	int count;
};

static inline bool probe_count_is(void *arg)
{
	struct count_wait *w = arg;

	return probe_count(w->probe, w->queue) == w->count;
}

/* A quorum queue's count runs a little behind. */
#define wait_for_count(p, name, n) wait_for(probe_count_is, (&(struct count_wait){(p), (name), (n)}))

/* ---- the proxy -------------------------------------------------------------------------------------------
 */

struct proxy_pair {
	struct proxy *proxy;
	struct bufferevent *client, *server;
	struct proxy_pair *next;
};

struct proxy {
	struct evconnlistener *listener;
	int to;    /* port */
	int port;  /* ours */
	bool held; /* nothing of the server is passed on */
	int connections;
	struct proxy_pair *pairs;
};

static inline void proxy_pass(struct bufferevent *from, void *arg)
{
	struct proxy_pair *pair = arg;
	struct bufferevent *to = from == pair->client ? pair->server : pair->client;

	if (!pair->proxy->held || from == pair->client)
		bufferevent_write_buffer(to, bufferevent_get_input(from));
}

static inline void proxy_drop(struct proxy_pair *pair)
{
	struct proxy_pair **at = &pair->proxy->pairs;

	while (*at != pair)
		at = &(*at)->next;
	*at = pair->next;
	bufferevent_free(pair->client);
	bufferevent_free(pair->server);
	free(pair);
}

static inline void proxy_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	if ((what & BEV_EVENT_CONNECTED) == 0)
		proxy_drop(arg);
}

static inline void proxy_accept(
	struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int len, void *arg)
{
	struct proxy *p = arg;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)p->to)};
	struct proxy_pair *pair = xcalloc(1, sizeof(*pair));

	(void)l;
	(void)from;
	(void)len;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*pair = (struct proxy_pair){.proxy = p, .next = p->pairs};
	pair->client = bufferevent_socket_new(loop, fd, BEV_OPT_CLOSE_ON_FREE);
	pair->server = bufferevent_socket_new(loop, -1, BEV_OPT_CLOSE_ON_FREE);
	p->pairs = pair;
	p->connections++;
	bufferevent_setcb(pair->client, proxy_pass, NULL, proxy_event, pair);
	bufferevent_setcb(pair->server, proxy_pass, NULL, proxy_event, pair);
	bufferevent_socket_connect(pair->server, (struct sockaddr *)&to, sizeof(to));
	bufferevent_enable(pair->client, EV_READ | EV_WRITE);
	bufferevent_enable(pair->server, EV_READ | EV_WRITE);
}

/* Points the config at itself. */
static inline void proxy_start(struct proxy *p, struct config *c)
{
	*p = (struct proxy){.to = (int)c->amqp_port};
	p->listener = listen_here(proxy_accept, p, &p->port);
	c->amqp_port = p->port;
}

static inline void proxy_cut(struct proxy *p)
{
	while (p->pairs != NULL)
		proxy_drop(p->pairs);
}

static inline bool proxy_sees_both(void *arg)
{
	struct proxy *p = arg;

	return p->pairs != NULL && p->pairs->next != NULL;
}

/* Cuts both connections of an mq and waits until it has noticed and is back. */
static inline void proxy_cut_and_wait(struct proxy *p, struct mq *mq)
{
	proxy_cut(p);
	wait_for(proxy_sees_both, p);
	wait_for(mq_is_ready, mq);
}

static inline void proxy_hold(struct proxy *p, bool held)
{
	p->held = held;
	for (struct proxy_pair *pair = p->pairs; !held && pair != NULL; pair = pair->next) {
		proxy_pass(pair->server, pair);
	}
}

static inline void proxy_stop(struct proxy *p)
{
	proxy_cut(p);
	evconnlistener_free(p->listener);
}

#endif
