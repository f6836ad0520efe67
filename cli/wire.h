/* SPDX-License-Identifier: MIT */
/* A connection to musterd that stays, for a program that must never wait: requests are answered by callbacks
 * on the event loop, and a connection that is lost comes back by itself, with a growing pause between tries.
 *
 * Every request that wire_send() took is answered exactly once, later: by its reply, an error reply too, or
 * by NULL when the connection was lost or too slow, and nobody knows what became of it. No callback may free
 * the wire. */
#ifndef CLI_WIRE_H
#define CLI_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "cli/conn.h"

struct event_base;
struct wire;

typedef void (*wire_cb)(const redisReply *reply, void *arg);

struct wire_events {
	/* Connected and logged in: the first time, and each time again. */
	void (*up)(void *arg);
	/* A try failed; `final`: the login was refused, there will be no other try. */
	void (*failed)(void *arg, const char *error, bool final);
};

struct wire *wire_new(struct event_base *base, const struct cli_options *options,
	const struct wire_events *events, void *arg);
/* What is under way is answered by NULL. Takes NULL. */
void wire_free(struct wire *w);

/* False, and no answer will come: there is no connection now. One that does not answer within `limit_ms` is
 * lost. */
bool wire_send(struct wire *w, const struct request *r, int64_t limit_ms, wire_cb cb, void *arg)
	__attribute__((warn_unused_result));

/* Closes our side for good: what is under way is still answered, soon. */
void wire_hang_up(struct wire *w);

#endif
