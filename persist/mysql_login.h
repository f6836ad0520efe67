/* SPDX-License-Identifier: MIT */
/* Logs in over TLS in a helper thread. The client library does the TLS handshake with poll() even in its
 * non-blocking calls (3.3.20: a server that stops in the middle of it holds the caller for ever), so this one
 * step cannot run on the loop. It may block here in peace, which has a second use: the library resolves the
 * host itself and so checks the certificate against the name.
 *
 * The thread touches nothing but the handle and copies of the target's strings, and the handle has one user
 * at a time: the thread until the callback, the loop from then on. A cancelled log-in keeps its thread until
 * the library returns, at most about three times the time-out, and the thread closes the handle. */
#ifndef PERSIST_MYSQL_LOGIN_H
#define PERSIST_MYSQL_LOGIN_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct mysql_login;
struct mysql_target;
struct st_mysql;

/* Called once from the loop, never inside mysql_login_start(), and not after mysql_login_cancel(); the handle
 * is the caller's again and the login is gone. */
typedef void (*mysql_login_cb)(bool ok, void *arg);

/* The handle has its options set and is not connected. NULL when there is no thread or descriptor for it:
 * then the callback is not called. */
struct mysql_login *mysql_login_start(struct event_base *base, struct st_mysql *handle,
	const struct mysql_target *target, int64_t timeout_ms, mysql_login_cb cb, void *arg);
/* Leaves the handle to the thread. Never blocks. */
void mysql_login_cancel(struct mysql_login *login);

#endif
