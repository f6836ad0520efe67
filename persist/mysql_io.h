/* SPDX-License-Identifier: MIT */
/* One handle of the client library, driven by its non-blocking calls on the event loop: at most one operation
 * at a time, each under its own deadline. Only this file and mysql_login.c see <mysql.h>.
 *
 * The library suspends an operation on a stack of its own. One that is past its deadline is never resumed:
 * its socket is shut down first, so that nothing the library still writes can block, and the handle is
 * closed. After a failure of the connection the handle is gone, and mysql_io_connect() makes a new one. */
#ifndef PERSIST_MYSQL_IO_H
#define PERSIST_MYSQL_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct event_base;
struct mysql_io;
struct mysql_result;

enum mysql_io_event {
	MYSQL_IO_DONE,   /* the operation succeeded */
	MYSQL_IO_FAILED, /* it did not: see mysql_io_code(); past its deadline the handle is closed already */
	MYSQL_IO_HANGUP, /* no operation was running and the server closed the connection */
};

/* Called from the loop, never inside a call of this module. It may start the next operation or close. */
typedef void (*mysql_io_cb)(enum mysql_io_event event, void *arg);

struct mysql_target {
	const char *host; /* numeric; with TLS the name as it stands in the certificate */
	unsigned port;
	const char *socket; /* a Unix socket, which goes before the host, or "" */
	const char *user, *password, *database;
	const char
		*tls_ca; /* "" = no TLS; otherwise the certificate must be signed by it and name the host */
};

struct mysql_io *mysql_io_new(struct event_base *base, mysql_io_cb cb, void *arg);
/* Not from inside the callback: see mysql_io_close(). */
void mysql_io_free(struct mysql_io *io);

/* The strings of the target must live until the operation is over. */
void mysql_io_connect(struct mysql_io *io, const struct mysql_target *target, int64_t timeout_ms);
/* Runs one statement and fetches its whole result; `sql` must live until the operation is over. */
void mysql_io_query(struct mysql_io *io, struct bytes sql, int64_t timeout_ms);
/* Drops the connection and whatever runs on it, without a call of the callback. Never blocks. The result of
 * the last statement stays until mysql_io_drop_result(). */
void mysql_io_close(struct mysql_io *io);

/* Of the last operation. The result's cells are valid until mysql_io_drop_result() or the next operation. */
void mysql_io_result(const struct mysql_io *io, struct mysql_result *ret);
void mysql_io_drop_result(struct mysql_io *io);
uint64_t mysql_io_affected(const struct mysql_io *io);
unsigned mysql_io_code(const struct mysql_io *io);
const char *mysql_io_message(const struct mysql_io *io);

#endif
