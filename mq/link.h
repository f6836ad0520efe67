/* SPDX-License-Identifier: MIT */
/* One connection to RabbitMQ on the loop, kept up: it resolves, connects, logs in, sends and expects
 * heartbeats, and after any loss tries again, sooner or later according to what went wrong. Every phase has a
 * deadline.
 *
 * A channel belongs to a link. It opens whenever the link has, and again after a channel error; its owner
 * hears of it by channel_ops. Nothing a channel's owner does closes the connection under the call: a fault
 * only marks it, and the closed() callbacks come later from the loop. */
#ifndef MQ_LINK_H
#define MQ_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "mq/codec.h"

struct event_base;
struct evbuffer;
struct link;
struct channel;

enum link_state {
	LINK_STOPPED,    /* not asked to be up, or closed for good */
	LINK_WAITING,    /* lost; a timer runs */
	LINK_RESOLVING,  /* the name is looked up */
	LINK_CONNECTING, /* the socket connects */
	LINK_GREETING,   /* our greeting is out; connection.start is awaited */
	LINK_LOGIN,      /* start-ok is out; connection.tune is awaited */
	LINK_OPENING,    /* connection.open is out; open-ok is awaited */
	LINK_OPEN,       /* usable */
	LINK_CLOSING,    /* connection.close is out; close-ok is awaited */
};

struct link_params {
	const char *name; /* for logs; a literal */
	const char *host;
	int port;
	const char *user;
	const char *password;
	const char *vhost;
	int64_t heartbeat_ms;    /* asked for; the server may lower it */
	int64_t timeout_ms;      /* of each phase and of each reply; 0 = 10 s */
	int64_t retry_config_ms; /* wait after a refused login or virtual host; 0 = 30 s */
};

/* All optional. Called from the loop. */
struct link_ops {
	void (*opened)(void *arg);
	void (*closed)(
		void *arg); /* after the channels have heard it; a reconnect is under way unless STOPPED */
	void (*blocked)(void *arg); /* link_blocked() changed */
};

/* Copies the params (not ops, which must outlive it). Does nothing until link_start(). */
struct link *link_new(
	struct event_base *base, const struct link_params *params, const struct link_ops *ops, void *arg);
/* At once and without callbacks; never from inside one of the link's. Its channels must be freed first. */
void link_free(struct link *l);
void link_start(struct link *l);
/* Says goodbye and ends in LINK_STOPPED, within the timeout; ops->closed comes then. */
void link_close(struct link *l);

enum link_state link_state(const struct link *l);
const char *link_state_name(enum link_state state);
const char *link_name(const struct link *l);
bool link_blocked(const struct link *l);
/* Connections lost or not got so far. */
uint64_t link_failures(const struct link *l);
/* The last fault in words, "" at first. It stays after a reconnect. */
const char *link_error(const struct link *l);
/* The broker refused the login or the virtual host: not a matter of time. */
bool link_misconfigured(const struct link *l);
/* Bytes that the socket has not taken yet. */
size_t link_backlog(const struct link *l);

/* Drops the connection from the loop, soon: for faults of the peer that a channel's owner sees. */
void link_drop(struct link *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct channel_ops {
	void (*opened)(void *arg);
	/* Everything but channel.open-ok and channel.close. */
	void (*method)(void *arg, const amqp_method_t *method);
	void (*content)(void *arg, const struct codec_content *content);
	/* Was open or about to be, and is no more: `code` and text of the broker, or 0 when the connection
	 * went. */
	void (*closed)(void *arg, int code, const char *text);
	/* The link was unblocked, or its backlog has gone. May be NULL. */
	void (*writable)(void *arg);
	/* Every quarter of a second while open and not blocked, for deadlines. May be NULL. */
	void (*tick)(void *arg, int64_t now_us);
};

/* `reopen_ms`: from a channel error to the next open. NULL when the link's channels are used up. */
struct channel *channel_new(struct link *l, const struct channel_ops *ops, void *arg, int64_t reopen_ms);
/* Without a word to the broker: for when the link goes too. Takes NULL. Not from inside its own callbacks. */
void channel_free(struct channel *ch);
bool channel_is_open(const struct channel *ch);
struct link *channel_link(const struct channel *ch);
uint16_t channel_number(const struct channel *ch);

/* Sends a method that is answered by one; an answer that does not come in time drops the link. Does nothing
 * unless the channel is open. */
void channel_call(struct channel *ch, amqp_method_number_t id, void *decoded);
/* Sends a method that is not answered. */
void channel_send(struct channel *ch, amqp_method_number_t id, void *decoded);
/* Publishes; false, and nothing sent, when the message can't be encoded or the channel is not open. */
bool channel_publish(struct channel *ch, amqp_basic_publish_t *publish, amqp_basic_properties_t *properties,
	struct bytes body) __attribute__((warn_unused_result));

#endif
