/* SPDX-License-Identifier: MIT */
/* The listening sockets: own ones, or those that systemd hands over (LISTEN_FDS). Accepts up to max_clients,
 * tells those beyond that it is BUSY, and survives running out of file descriptors: it pauses instead of
 * spinning, and sheds waiting connections by means of a descriptor held in reserve. */
#ifndef DAEMON_LISTENER_H
#define DAEMON_LISTENER_H

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct listener;

struct listener_ops {
	void (*accepted)(void *arg, int fd); /* takes over a non-blocking socket */
	size_t (*clients)(void *arg);        /* connections there are */
	size_t (*most)(void *arg);           /* connections there may be */
	void (*rejected)(void *arg);
};

/* Raises the limit of open files as far as it goes; returns the number of clients it leaves room for. */
size_t listener_raise_limit(size_t wanted_clients);

/* `addresses` has blanks between them; port 0 takes a free one for all. NULL after a log line. */
struct listener *listener_new(
	struct event_base *base, const char *addresses, int port, const struct listener_ops *ops, void *arg);
void listener_free(struct listener *l);
/* No more connections: closes the sockets, unless systemd owns them. */
void listener_close(struct listener *l);
int listener_port(const struct listener *l);

#endif
