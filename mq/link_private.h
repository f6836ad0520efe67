/* SPDX-License-Identifier: MIT */
/* What link.c (the life of a connection), handshake.c (from the first byte to open) and channel.c share. No
 * one else includes this. */
#ifndef MQ_LINK_PRIVATE_H
#define MQ_LINK_PRIVATE_H

#include "mq/link.h"

struct bufferevent;
struct event;
struct resolve;

#define LINK_ERROR_MAX 256

struct channel {
	struct link *link;
	uint16_t number;
	const struct channel_ops *ops;
	void *arg;
	int64_t reopen_ms;
	int64_t reopen_us; /* monotonic; when to open again after a channel error, 0 = not waiting for that */
	enum { CHANNEL_CLOSED, CHANNEL_OPENING, CHANNEL_OPEN } state;
	int calls;      /* sent and not answered */
	int64_t due_us; /* when the next answer must be here; meaningless while calls is 0 */
};

struct link {
	struct event_base *base;
	const struct link_ops *ops;
	void *arg;
	const char *name;
	char *host, *user, *password, *vhost; /* owned */
	int port;
	int64_t heartbeat_ms, timeout_ms, retry_config_ms;

	enum link_state state; /* written by link_enter() only */
	int64_t due_us;        /* monotonic; when this state must have ended, 0 = never */
	struct event *tick;    /* runs in all states but STOPPED */
	struct event *reaper;  /* made active by link_drop() */
	bool doomed;           /* link_drop() was called; nothing more is read or sent */
	bool closing;          /* link_close() was called */

	struct resolve *resolve;
	struct bufferevent *bev;
	struct codec *codec;
	uint32_t frame_max;
	int64_t beat_us; /* agreed heartbeat, 0 = none */
	int64_t sent_us, heard_us, opened_us;
	bool blocked;

	int64_t backoff_ms;
	int refusal; /* 403 or 530 when that ended the last try */
	uint64_t failures;
	char error[LINK_ERROR_MAX];
	char told[LINK_ERROR_MAX]; /* the last error warned of: the same again is not, until it was open */
	struct channel *channels[CODEC_CHANNELS]; /* by number; 0 is the connection's own and never set */
};

void link_enter(struct link *l, enum link_state state);
/* link_drop() with the reply code of the broker. */
void link_drop_code(struct link *l, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void link_send(struct link *l, uint16_t channel, amqp_method_number_t id, void *decoded);
struct evbuffer *link_output(struct link *l);

/* Handles a method of channel 0. */
void handshake_method(struct link *l, const amqp_method_t *method);

void channels_open_all(struct link *l);
void channels_closed_all(struct link *l);
void channels_writable_all(struct link *l);
/* Deadlines and reopening; false when it dropped the link. */
bool channels_tick(struct link *l, int64_t now_us);
void channels_restart_clocks(struct link *l);
void channel_take_method(struct channel *ch, const amqp_method_t *method);
void channel_take_content(struct channel *ch, const struct codec_content *content);

#endif
