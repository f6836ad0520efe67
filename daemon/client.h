/* SPDX-License-Identifier: MIT */
/* The connections: reading, limits, time-outs, writing. What happens to the commands is pipeline.h.
 *
 * A client costs about a kilobyte while idle: bytes are read into one shared buffer and kept per client only
 * when a command is not complete. No client has a timer; the janitor walks lists, each in order of
 * time. Work per client and per turn is bounded; what is left over waits in line for the next turn. */
#ifndef DAEMON_CLIENT_H
#define DAEMON_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct buf;
struct client;
struct clients;
struct server;
struct user;
struct users;

struct clients *clients_new(struct server *server);
/* Drops all clients; their running calls go on without them. */
void clients_free(struct clients *all);
/* Takes over a connected, non-blocking socket. */
void clients_accept(struct clients *all, int fd);
size_t clients_count(const struct clients *all);
/* True when no client has a call or an unsent reply. */
bool clients_quiet(const struct clients *all);
/* Closes who has been silent, half-way through a command or deaf for too long, and looks who has hung up
 * while he was not read. From the janitor. */
void clients_expire(struct clients *all, int64_t now_us);
/* The users were read again: everyone becomes who he is in the new set, or nobody. */
void clients_rebind(struct clients *all, const struct users *now);

/* One line a client, as CLIENT LIST. */
void clients_list(const struct clients *all, struct buf *out);

/* Whom CLIENT KILL means; fields that are zero or empty don't matter. */
struct client_filter {
	uint64_t id;
	struct bytes addr, laddr, user;
	const struct client *except;
};
/* Closes all that match, now, except that a client which kills itself gets its reply first. Returns how many.
 */
size_t clients_kill(struct clients *all, const struct client_filter *filter, struct client *by);

/* For the calls of a client, while it is there. */
struct server *client_server(const struct client *c);
uint64_t client_id(const struct client *c);
const struct user *client_user(const struct client *c);
void client_set_user(struct client *c, const struct user *user);
int client_protocol(const struct client *c);
void client_set_protocol(struct client *c, int protocol);
struct bytes client_name(const struct client *c);
enum client_text { CLIENT_NAME, CLIENT_LIB_NAME, CLIENT_LIB_VERSION, CLIENT_TEXTS };
/* False, nothing changed, for a text with blanks or control bytes, or longer than 64 bytes. */
bool client_set_text(struct client *c, enum client_text which, struct bytes text)
	__attribute__((warn_unused_result));
void client_describe(const struct client *c, struct buf *out);
/* Nothing more is read; the connection closes when all is answered. */
void client_quit(struct client *c);

#endif
