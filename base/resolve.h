/* SPDX-License-Identifier: MIT */
/* Names to addresses without blocking the loop: hiredis and the MySQL library resolve by blocking, so they
 * are only ever handed the numeric text that comes from here. */
#ifndef BASE_RESOLVE_H
#define BASE_RESOLVE_H

#include <stdint.h>

struct event_base;
struct resolve;

/* `address` is numeric IPv4 or IPv6 text, or NULL with a reason in `error`. Called once, never before
 * resolve_start() has returned, and not at all after resolve_cancel(). The resolve is gone when it returns.
 */
typedef void (*resolve_cb)(const char *address, const char *error, void *arg);

/* Never NULL. Ends within about `timeout_ms`. */
struct resolve *resolve_start(
	struct event_base *base, const char *host, int64_t timeout_ms, resolve_cb cb, void *arg);
void resolve_cancel(struct resolve *r);

#endif
