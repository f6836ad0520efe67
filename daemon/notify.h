/* SPDX-License-Identifier: MIT */
/* Tells systemd how the daemon is, by the datagrams of sd_notify(3), and feeds its watchdog. Without
 * NOTIFY_SOCKET everything here does nothing. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdbool.h>

struct event_base;
struct notify;

/* `healthy` is asked before each watchdog message: false lets systemd restart the daemon. */
struct notify *notify_new(struct event_base *base, bool (*healthy)(void *arg), void *arg);
void notify_free(struct notify *n);

/* STATUS= and one line of text goes with each. */
void notify_ready(struct notify *n, const char *status);
void notify_reloading(struct notify *n);
void notify_stopping(struct notify *n, const char *status);
void notify_status(struct notify *n, const char *status);

#endif
