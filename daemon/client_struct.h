/* SPDX-License-Identifier: MIT */
/* The inside of a client, for client.c (life, time, replies), intake.c (what comes in) and roster.c (who is
 * there) only. */
#ifndef DAEMON_CLIENT_STRUCT_H
#define DAEMON_CLIENT_STRUCT_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/turn.h"
#include "daemon/client.h"
#include "daemon/pipeline.h"
#include "daemon/resp.h"

/* A place in one of the lists that the janitor walks: the oldest stands first. */
struct watch {
	struct client *client;
	bool listed;
	int64_t since_us;
	TAILQ_ENTRY(watch) link;
};
TAILQ_HEAD(watch_list, watch);

TAILQ_HEAD(client_list, client);

struct clients {
	struct server *server;
	struct client_list list;
	size_t count;
	uint64_t last_id;
	struct client_list backlog; /* bytes to parse and no turn for it yet */
	struct event *backlog_event;
	unsigned budget;             /* commands that may still be parsed in this turn */
	unsigned reads;              /* sockets that may still be read in this turn */
	struct turn_task new_budget; /* sets both at the end of the turn */
	struct watch_list idle, partial, stalled, paused;
};

enum client_state {
	CLIENT_OPEN,
	CLIENT_ENDING, /* the peer has sent its last byte; what it sent is answered */
	CLIENT_QUIT,   /* nothing more is parsed; what is under way is answered */
	CLIENT_GONE,   /* closed; the memory goes at the end of the turn */
};

struct client {
	struct clients *all;
	uint64_t id;
	int fd;
	enum client_state state;
	int protocol;
	bool reading, writing; /* the events are added */
	bool hungry;           /* the parser can do nothing with the bytes that are there */
	bool in_backlog;
	struct event read_event, write_event;
	struct resp parser;
	struct buf in; /* bytes of commands that are not complete, or not parsed yet */
	struct evbuffer *out;
	struct pipeline calls;
	struct turn_task task;
	struct watch idle, partial, stalled;
	struct watch paused;     /* has calls under way and is not read meanwhile */
	const struct user *user; /* NULL: has not said who he is */
	char *texts[CLIENT_TEXTS];
	int64_t connected_us;
	const struct command *last;
	TAILQ_ENTRY(client) link, backlog_link;
};

static inline void watch_stop(struct watch_list *list, struct watch *w)
{
	if (w->listed)
		TAILQ_REMOVE(list, w, link);
	w->listed = false;
}

static inline void watch_start(struct watch_list *list, struct watch *w, int64_t now_us)
{
	watch_stop(list, w);
	w->since_us = now_us;
	w->listed = true;
	TAILQ_INSERT_TAIL(list, w, link);
}

/* client.c */

/* States only go forward. */
void client_set_state(struct client *c, enum client_state state);
/* Closes the connection at once. */
void client_drop(struct client *c, const char *reason);
/* Nothing more is parsed; what was, is answered. */
void client_stop_reading(struct client *c);

/* intake.c */

void client_on_read(evutil_socket_t fd, short what, void *arg);
/* Bytes of replies with which a client is not yet behind. */
size_t client_room(const struct client *c);
/* Its limits allow for more commands. */
bool client_may_parse(const struct client *c);
/* There are bytes that may hold a whole command. */
bool client_unparsed(const struct client *c);
/* To be parsed, or its calls to be started, in the next turn. */
void clients_backlog_join(struct client *c);
void clients_backlog_leave(struct client *c);
void clients_on_backlog(evutil_socket_t fd, short what, void *arg);
/* At the end of a turn: the next one may do as much again. */
void clients_renew_budget(void *arg);

#endif
