/* SPDX-License-Identifier: MIT */
/* The life of a connection: states, deadlines, heartbeats, loss and return. link_drop() is the only way down,
 * and reap(), called from the loop, the only place where a connection is taken apart. */
#include "mq/link.h"
#include "mq/link_private.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/resolve.h"

#define TICK_MS          250
#define TIMEOUT_MS       10000
#define RETRY_CONFIG_MS  30000
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS   10000
#define SETTLED_US                                                                                           \
	(5 * INT64_C(1000000))          /* open for so long: the next loss starts from the first backoff     \
					 */
#define BACKLOG_LOW_BYTES  (512 * 1024) /* channels hear writable() below this */
#define READ_AT_ONCE_BYTES (256 * 1024)

static const char *const state_names[] = {
	[LINK_STOPPED] = "stopped",
	[LINK_WAITING] = "waiting",
	[LINK_RESOLVING] = "resolving",
	[LINK_CONNECTING] = "connecting",
	[LINK_GREETING] = "greeting",
	[LINK_LOGIN] = "login",
	[LINK_OPENING] = "opening",
	[LINK_OPEN] = "open",
	[LINK_CLOSING] = "closing",
};

const char *link_state_name(enum link_state state)
{
	return state_names[state];
}

enum link_state link_state(const struct link *l)
{
	return l->state;
}

const char *link_name(const struct link *l)
{
	return l->name;
}

bool link_blocked(const struct link *l)
{
	return l->blocked;
}

uint64_t link_failures(const struct link *l)
{
	return l->failures;
}

const char *link_error(const struct link *l)
{
	return l->error;
}

bool link_misconfigured(const struct link *l)
{
	return l->refusal != 0;
}

struct evbuffer *link_output(struct link *l)
{
	return bufferevent_get_output(l->bev);
}

size_t link_backlog(const struct link *l)
{
	return l->bev != NULL ? evbuffer_get_length(bufferevent_get_output(l->bev)) : 0;
}

void link_enter(struct link *l, enum link_state state)
{
	bool endless = state == LINK_STOPPED || state == LINK_OPEN || state == LINK_WAITING;

	log_debug("rabbitmq %s event=state %s -> %s", l->name, state_names[l->state], state_names[state]);
	l->state = state;
	l->due_us = endless ? 0 : clock_mono_us() + l->timeout_ms * 1000;
}

static void __attribute__((format(printf, 3, 0)))
drop(struct link *l, int code, const char *format, va_list ap)
{
	if (l->doomed || l->state == LINK_STOPPED)
		return;
	l->doomed = true;
	l->refusal = code == AMQP_ACCESS_REFUSED || code == AMQP_NOT_ALLOWED ? code : 0;
	if (!l->closing)
		vsnprintf(l->error, sizeof(l->error), format, ap);
	if (l->codec != NULL)
		codec_stop(l->codec);
	if (l->bev != NULL)
		bufferevent_disable(l->bev, EV_READ);
	event_active(l->reaper, EV_TIMEOUT, 1);
}

void link_drop(struct link *l, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	drop(l, 0, format, ap);
	va_end(ap);
}

void link_drop_code(struct link *l, int code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	drop(l, code, format, ap);
	va_end(ap);
}

void link_send(struct link *l, uint16_t channel, amqp_method_number_t id, void *decoded)
{
	if (l->bev == NULL || l->doomed)
		return;
	l->sent_us = clock_mono_us();
	if (codec_put_method(link_output(l), channel, id, decoded) != 0)
		link_drop(l, "%s does not fit a frame", amqp_method_name(id));
}

/* Frees what belongs to one connection. Nothing is called back. */
static void disconnect(struct link *l)
{
	resolve_cancel(l->resolve);
	l->resolve = NULL;
	if (l->bev != NULL)
		bufferevent_free(l->bev);
	l->bev = NULL;
	codec_free(l->codec);
	l->codec = NULL;
	l->blocked = false;
	l->doomed = false;
}

/* Doubles up to the cap, and gives between half of it and all of it, so that many daemons do not come at
 * once. */
static int64_t next_backoff(struct link *l)
{
	uint32_t noise;

	if (l->opened_us != 0 && clock_mono_us() - l->opened_us > SETTLED_US)
		l->backoff_ms = 0;
	l->backoff_ms = l->backoff_ms == 0 ? BACKOFF_FIRST_MS : l->backoff_ms * 2;
	if (l->backoff_ms > BACKOFF_MAX_MS)
		l->backoff_ms = BACKOFF_MAX_MS;
	evutil_secure_rng_get_bytes(&noise, sizeof(noise));
	return l->backoff_ms / 2 + noise % (l->backoff_ms / 2 + 1);
}

static void wait_or_stop(struct link *l)
{
	if (l->closing) {
		link_enter(l, LINK_STOPPED);
		event_del(l->tick);
		return;
	}
	int64_t wait_ms = l->refusal != 0 ? l->retry_config_ms : next_backoff(l);
	bool news = strcmp(l->told, l->error) != 0;
	l->failures++;
	log_line(news ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
		"rabbitmq %s event=down state=%s retry_ms=%lld error=\"%s\"", l->name, state_names[l->state],
		(long long)wait_ms, l->error);
	memcpy(l->told, l->error, sizeof(l->told));
	link_enter(l, LINK_WAITING);
	l->due_us = clock_mono_us() + wait_ms * 1000;
}

static void reap(evutil_socket_t fd, short what, void *arg)
{
	struct link *l = arg;

	(void)fd;
	(void)what;
	if (!l->doomed)
		return;
	wait_or_stop(l);
	disconnect(l);
	l->opened_us = 0;
	channels_closed_all(l);
	if (l->ops->closed != NULL)
		l->ops->closed(l->arg);
}

static void on_method(void *arg, uint16_t channel, const amqp_method_t *method)
{
	struct link *l = arg;

	if (channel == 0)
		handshake_method(l, method);
	else if (l->state == LINK_CLOSING)
		return;
	else if (l->channels[channel] == NULL || l->state != LINK_OPEN)
		link_drop(l, "%s on channel %u, which is not open", amqp_method_name(method->id), channel);
	else
		channel_take_method(l->channels[channel], method);
}

static void on_content(void *arg, uint16_t channel, const struct codec_content *content)
{
	struct link *l = arg;

	if (l->state == LINK_CLOSING)
		return;
	if (l->channels[channel] == NULL || l->state != LINK_OPEN)
		link_drop(l, "a message on channel %u, which is not open", channel);
	else
		channel_take_content(l->channels[channel], content);
}

static const struct codec_handler codec_handler = {on_method, on_content};

static void on_read(struct bufferevent *bev, void *arg)
{
	struct link *l = arg;

	if (l->doomed)
		return;
	l->heard_us = clock_mono_us();
	if (codec_input(l->codec, bufferevent_get_input(bev)) != 0)
		link_drop(l, "protocol error: %s", codec_error(l->codec));
}

static void on_write(struct bufferevent *bev, void *arg)
{
	struct link *l = arg;

	(void)bev;
	if (l->state == LINK_OPEN && !l->doomed)
		channels_writable_all(l);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct link *l = arg;
	int on = 1;

	if ((what & BEV_EVENT_CONNECTED) == 0) {
		const char *reason = (what & BEV_EVENT_EOF) != 0
					     ? "connection closed by the broker"
					     : evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR());
		link_drop(l, "%s: %s", state_names[l->state], reason);
		return;
	}
	setsockopt(bufferevent_getfd(bev), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	l->heard_us = l->sent_us = clock_mono_us();
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	link_enter(l, LINK_GREETING);
	if (codec_put_greeting(link_output(l)) != 0)
		link_drop(l, "no memory");
}

static socklen_t socket_address(const char *address, int port, struct sockaddr_storage *ss)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

	if (inet_pton(AF_INET, address, &sin.sin_addr) == 1) {
		memcpy(ss, &sin, sizeof(sin));
		return sizeof(sin);
	}
	inet_pton(AF_INET6, address, &sin6.sin6_addr);
	memcpy(ss, &sin6, sizeof(sin6));
	return sizeof(sin6);
}

static void on_resolved(const char *address, const char *error, void *arg)
{
	struct link *l = arg;
	struct sockaddr_storage ss = {0};

	l->resolve = NULL;
	if (address == NULL) {
		link_drop(l, "%s: %s", l->host, error);
		return;
	}
	socklen_t len = socket_address(address, l->port, &ss);
	l->codec = codec_new(&codec_handler, l);
	l->frame_max = CODEC_FRAME_MIN;
	l->beat_us = 0;
	l->bev = bufferevent_socket_new(l->base, -1, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(l->bev, on_read, on_write, on_event, l);
	bufferevent_setwatermark(l->bev, EV_WRITE, BACKLOG_LOW_BYTES, 0);
	bufferevent_set_max_single_read(l->bev, READ_AT_ONCE_BYTES);
	link_enter(l, LINK_CONNECTING);
	if (bufferevent_socket_connect(l->bev, (struct sockaddr *)&ss, (int)len) != 0)
		link_drop(l, "connect: %s", evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
}

static void try_now(struct link *l)
{
	link_enter(l, LINK_RESOLVING);
	l->resolve = resolve_start(l->base, l->host, l->timeout_ms, on_resolved, l);
}

/* A heartbeat when half an interval went by without a word of ours, the end after two without one of theirs.
 */
static void beat(struct link *l, int64_t now)
{
	if (l->beat_us == 0)
		return;
	if (now - l->heard_us > 2 * l->beat_us) {
		link_drop(l, "no byte from the broker for %lld ms", (long long)((now - l->heard_us) / 1000));
		return;
	}
	if (now - l->sent_us < l->beat_us / 2 || link_backlog(l) > 0)
		return;
	l->sent_us = now;
	if (codec_put_heartbeat(link_output(l)) != 0)
		link_drop(l, "no memory");
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct link *l = arg;
	int64_t now = clock_mono_us();

	(void)fd;
	(void)what;
	if (l->doomed)
		return;
	if (l->state == LINK_WAITING && now >= l->due_us)
		try_now(l);
	else if (l->due_us != 0 && now >= l->due_us && l->state != LINK_WAITING)
		link_drop(l, "%s: no answer in %lld ms", state_names[l->state], (long long)l->timeout_ms);
	else if (l->state == LINK_OPEN && (l->blocked || channels_tick(l, now)))
		beat(l, now);
}

struct link *link_new(
	struct event_base *base, const struct link_params *params, const struct link_ops *ops, void *arg)
{
	struct link *l = xcalloc(1, sizeof(*l));

	l->base = base;
	l->ops = ops;
	l->arg = arg;
	l->name = params->name;
	l->host = xstrdup(params->host);
	l->port = params->port;
	l->user = xstrdup(params->user);
	l->password = xstrdup(params->password);
	l->vhost = xstrdup(params->vhost);
	l->heartbeat_ms = params->heartbeat_ms;
	l->timeout_ms = params->timeout_ms != 0 ? params->timeout_ms : TIMEOUT_MS;
	l->retry_config_ms = params->retry_config_ms != 0 ? params->retry_config_ms : RETRY_CONFIG_MS;
	l->tick = event_new(base, -1, EV_PERSIST, on_tick, l);
	l->reaper = event_new(base, -1, 0, reap, l);
	return l;
}

void link_free(struct link *l)
{
	if (l == NULL)
		return;
	disconnect(l);
	event_free(l->tick);
	event_free(l->reaper);
	explicit_bzero(l->password, strlen(l->password));
	free(l->host);
	free(l->user);
	free(l->password);
	free(l->vhost);
	free(l);
}

void link_start(struct link *l)
{
	struct timeval tick = {0, TICK_MS * 1000};

	if (l->state != LINK_STOPPED)
		return;
	l->closing = false;
	event_add(l->tick, &tick);
	try_now(l);
}

void link_close(struct link *l)
{
	amqp_connection_close_t close = {.reply_code = AMQP_REPLY_SUCCESS, .reply_text = amqp_text("bye")};

	if (l->state == LINK_STOPPED || l->closing)
		return;
	l->closing = true;
	if (l->state != LINK_OPEN || l->blocked || l->doomed) {
		/* Nobody would answer: a blocked broker does not read. */
		link_drop(l, "closed");
		return;
	}
	link_send(l, 0, AMQP_CONNECTION_CLOSE_METHOD, &close);
	link_enter(l, LINK_CLOSING);
}
