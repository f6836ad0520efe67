/* SPDX-License-Identifier: MIT */
#include "persist/mysql_io.h"

#include <assert.h>
#include <errmsg.h>
#include <event2/event.h>
#include <mysql.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "persist/mysql_link.h"
#include "persist/mysql_login.h"

/* The library's own default, 60 KiB without a guard page, is near to what some plugins need. */
#define STACK_BYTES ((size_t)256 * 1024)

enum io_state {
	IO_CLOSED,  /* no handle */
	IO_CONNECT, /* a log-in is suspended */
	IO_QUERY,   /* a statement is suspended, before its result's head */
	IO_STORE,   /* the rows of a result are being read */
	IO_IDLE,    /* connected, nothing runs; the socket is watched for the server's farewell */
};

struct mysql_io {
	enum io_state state;
	mysql_io_cb cb;
	void *arg;
	MYSQL *handle; /* NULL in IO_CLOSED */
	struct event_base *base;
	struct event
		*wait; /* readiness of the socket; made anew for each wait, since the socket may change */
	struct event *deadline; /* of the operation */
	int64_t timeout_ms;
	MYSQL *connected;    /* what the log-in returned: the handle, or NULL */
	int failed;          /* what the statement returned: 0 or not */
	MYSQL_RES *result;   /* rows of the last statement, or NULL */
	struct bytes *cells; /* rows x columns, into the result's memory; p is NULL for an SQL NULL */
	size_t rows, columns;
	uint64_t affected;
	unsigned code;
	char message[256];
	bool tls;
	struct mysql_login *login; /* in IO_CONNECT with TLS: it has the handle */
};

static void enter(struct mysql_io *io, enum io_state to)
{
	bool starts =
		(io->state == IO_CLOSED && to == IO_CONNECT) || (io->state == IO_IDLE && to == IO_QUERY);
	bool proceeds =
		(io->state == IO_QUERY && to == IO_STORE) || (io->state != IO_CLOSED && to == IO_IDLE);

	assert(starts || proceeds || to == IO_CLOSED);
	io->state = to;
}

static void on_wait(evutil_socket_t fd, short what, void *arg);

static void arm(struct mysql_io *io, short what)
{
	event_del(io->wait);
	event_assign(io->wait, io->base, mysql_get_socket(io->handle), what, on_wait, io);
	event_add(io->wait, NULL);
}

static void set_error(struct mysql_io *io, unsigned code, const char *message)
{
	io->code = code;
	snprintf(io->message, sizeof(io->message), "%s", message);
}

/* Ends the operation that ran. Nothing of io may be used after the callback but by the caller's own calls. */
static void finish(struct mysql_io *io, enum mysql_io_event event)
{
	event_del(io->deadline);
	if (io->state != IO_CLOSED) {
		enter(io, IO_IDLE);
		arm(io, EV_READ);
	}
	io->cb(event, io->arg);
}

static void fail(struct mysql_io *io)
{
	set_error(io, mysql_errno(io->handle), mysql_error(io->handle));
	if (io->code == 0)
		set_error(io, CR_UNKNOWN_ERROR, "the client library failed without a reason");
	finish(io, MYSQL_IO_FAILED);
}

static void index_cells(struct mysql_io *io)
{
	MYSQL_ROW row;
	struct bytes *cell;

	io->columns = mysql_num_fields(io->result);
	io->rows = (size_t)mysql_num_rows(io->result);
	cell = io->cells = xcalloc(io->rows * io->columns + 1, sizeof(*io->cells));
	while ((row = mysql_fetch_row(io->result)) != NULL) {
		const unsigned long *lengths = mysql_fetch_lengths(io->result);
		for (size_t i = 0; i < io->columns; i++)
			*cell++ = (struct bytes){row[i], row[i] != NULL ? lengths[i] : 0};
	}
}

static void proceed(struct mysql_io *io, int status);

/* The library has come to an end of what was started. */
static void settle(struct mysql_io *io)
{
	switch (io->state) {
	case IO_CONNECT:
		if (io->connected == NULL)
			fail(io);
		else
			finish(io, MYSQL_IO_DONE);
		break;
	case IO_QUERY:
		if (io->failed != 0) {
			fail(io);
		} else if (mysql_field_count(io->handle) > 0) {
			enter(io, IO_STORE);
			proceed(io, mysql_store_result_start(&io->result, io->handle));
		} else {
			io->affected = mysql_affected_rows(io->handle);
			finish(io, MYSQL_IO_DONE);
		}
		break;
	case IO_STORE:
		if (io->result == NULL) {
			fail(io);
		} else {
			index_cells(io);
			io->affected = io->rows;
			finish(io, MYSQL_IO_DONE);
		}
		break;
	case IO_CLOSED:
	case IO_IDLE:
		break;
	}
}

static void proceed(struct mysql_io *io, int status)
{
	if (status == 0) {
		settle(io);
		return;
	}
	/* The library asks for a time-out only where its own options set one; ours is io->deadline. */
	arm(io, (short)((status & MYSQL_WAIT_READ ? EV_READ : 0) |
			(status & MYSQL_WAIT_WRITE ? EV_WRITE : 0)));
}

static void start_deadline(struct mysql_io *io)
{
	struct timeval deadline = {io->timeout_ms / 1000, io->timeout_ms % 1000 * 1000};

	event_add(io->deadline, &deadline);
}

/* As proceed(), inside the call that starts an operation: an end that came at once is told from the loop. */
static void begin(struct mysql_io *io, int status)
{
	start_deadline(io);
	if (status != 0) {
		proceed(io, status);
		return;
	}
	event_del(io->wait);
	event_assign(io->wait, io->base, -1, 0, on_wait, io);
	event_active(io->wait, EV_TIMEOUT, 1);
}

/* Readable while idle. The server speaks unasked only to say good-bye; under TLS a record may also be a
 * session ticket, so there only the end of the stream counts. */
static void on_idle(struct mysql_io *io, evutil_socket_t fd)
{
	char byte;

	if (io->tls && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		return;
	set_error(io, CR_SERVER_GONE_ERROR, "the server closed the connection");
	mysql_io_close(io);
	io->cb(MYSQL_IO_HANGUP, io->arg);
}

/* Before each call into the library. OpenSSL keeps one queue of errors a thread, and what a connection that
 * died left in it would be read as the fault of the next that merely has to wait. */
static void forget_tls_errors(const struct mysql_io *io)
{
	if (io->tls)
		ERR_clear_error();
}

static void on_wait(evutil_socket_t fd, short what, void *arg)
{
	struct mysql_io *io = arg;
	int ready = (what & EV_READ ? MYSQL_WAIT_READ : 0) | (what & EV_WRITE ? MYSQL_WAIT_WRITE : 0);

	if (what & EV_TIMEOUT) {
		settle(io);
		return;
	}
	forget_tls_errors(io);
	switch (io->state) {
	case IO_CONNECT:
		proceed(io, mysql_real_connect_cont(&io->connected, io->handle, ready));
		break;
	case IO_QUERY:
		proceed(io, mysql_real_query_cont(&io->failed, io->handle, ready));
		break;
	case IO_STORE:
		proceed(io, mysql_store_result_cont(&io->result, io->handle, ready));
		break;
	case IO_IDLE:
		on_idle(io, fd);
		break;
	case IO_CLOSED:
		break;
	}
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct mysql_io *io = arg;

	(void)fd;
	(void)what;
	io->code = CR_SERVER_LOST;
	snprintf(io->message, sizeof(io->message), "no answer within %lld ms", (long long)io->timeout_ms);
	mysql_io_close(io);
	finish(io, MYSQL_IO_FAILED);
}

static void set_options(MYSQL *handle, const struct mysql_target *target)
{
	unsigned protocol = target->socket[0] != '\0' ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
	unsigned int off = 0;
	my_bool tls = target->tls_ca[0] != '\0' && target->socket[0] == '\0';

	mysql_options(handle, MYSQL_OPT_NONBLOCK, &(size_t){STACK_BYTES});
	mysql_options(handle, MYSQL_OPT_PROTOCOL, &protocol);
	mysql_options(handle, MYSQL_OPT_LOCAL_INFILE, &off);
	mysql_options(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	mysql_options(handle, MYSQL_OPT_RECONNECT, &(my_bool){0});
	mysql_options(handle, MYSQL_OPT_SSL_ENFORCE, &tls);
	mysql_options(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &tls);
	if (tls)
		mysql_options(handle, MYSQL_OPT_SSL_CA, target->tls_ca);
}

static void on_login(bool ok, void *arg)
{
	struct mysql_io *io = arg;

	io->login = NULL;
	io->connected = ok ? io->handle : NULL;
	/* The library leaves the socket blocking, which its plain reads get round by a flag but SSL_read()
	 * does not: without this every statement over TLS holds the loop (3.3.20). */
	if (ok)
		evutil_make_socket_nonblocking(mysql_get_socket(io->handle));
	settle(io);
}

static void begin_login(struct mysql_io *io, const struct mysql_target *target)
{
	io->login = mysql_login_start(io->base, io->handle, target, io->timeout_ms, on_login, io);
	if (io->login != NULL)
		start_deadline(io);
	else
		begin(io, 0); /* ends as failed, from the loop */
}

void mysql_io_connect(struct mysql_io *io, const struct mysql_target *target, int64_t timeout_ms)
{
	bool local = target->socket[0] != '\0';

	enter(io, IO_CONNECT);
	io->timeout_ms = timeout_ms;
	io->connected = NULL;
	io->tls = target->tls_ca[0] != '\0' && !local;
	io->handle = mysql_init(NULL);
	if (io->handle == NULL)
		abort(); /* as xmalloc() */
	set_options(io->handle, target);
	if (io->tls)
		begin_login(io, target);
	else
		begin(io, mysql_real_connect_start(&io->connected, io->handle, local ? NULL : target->host,
				  target->user, target->password, target->database, target->port,
				  local ? target->socket : NULL, 0));
}

void mysql_io_query(struct mysql_io *io, struct bytes sql, int64_t timeout_ms)
{
	enter(io, IO_QUERY);
	mysql_io_drop_result(io);
	io->timeout_ms = timeout_ms;
	io->affected = 0;
	set_error(io, 0, "");
	event_del(io->wait);
	forget_tls_errors(io);
	begin(io, mysql_real_query_start(&io->failed, io->handle, sql.p, sql.n));
}

void mysql_io_close(struct mysql_io *io)
{
	event_del(io->wait);
	event_del(io->deadline);
	if (io->state == IO_CLOSED)
		return;
	if (io->login != NULL) {
		mysql_login_cancel(io->login);
		io->login = NULL;
		io->handle = NULL;
		enter(io, IO_CLOSED);
		return;
	}
	/* Idle, the server has read all that was sent, and the few bytes of a good-bye fit into the socket.
	 */
	if (io->state != IO_IDLE)
		shutdown(mysql_get_socket(io->handle), SHUT_RDWR);
	mysql_close(io->handle);
	io->handle = NULL;
	enter(io, IO_CLOSED);
}

struct mysql_io *mysql_io_new(struct event_base *base, mysql_io_cb cb, void *arg)
{
	struct mysql_io *io = xcalloc(1, sizeof(*io));

	io->base = base;
	io->cb = cb;
	io->arg = arg;
	io->wait = event_new(base, -1, 0, on_wait, io);
	io->deadline = event_new(base, -1, 0, on_deadline, io);
	return io;
}

void mysql_io_free(struct mysql_io *io)
{
	if (io == NULL)
		return;
	mysql_io_close(io);
	mysql_io_drop_result(io);
	event_free(io->wait);
	event_free(io->deadline);
	free(io);
}

void mysql_io_result(const struct mysql_io *io, struct mysql_result *ret)
{
	ret->cells = io->cells;
	ret->rows = io->rows;
	ret->columns = io->columns;
}

void mysql_io_drop_result(struct mysql_io *io)
{
	if (io->result != NULL)
		mysql_free_result(io->result);
	io->result = NULL;
	free(io->cells);
	io->cells = NULL;
	io->rows = io->columns = 0;
}

uint64_t mysql_io_affected(const struct mysql_io *io)
{
	return io->affected;
}

unsigned mysql_io_code(const struct mysql_io *io)
{
	return io->code;
}

const char *mysql_io_message(const struct mysql_io *io)
{
	return io->message;
}
