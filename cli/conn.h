/* SPDX-License-Identifier: MIT */
/* The blocking connection of a client program to musterd: RESP2 by hiredis, AUTH when there is a token. Every
 * wait ends after the timeout of the options. */
#ifndef CLI_CONN_H
#define CLI_CONN_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#include "base/bytes.h"
#include "cli/cli.h"

#define REQUEST_MAX 24

/* The words of one command; they are borrowed. */
struct request {
	int argc;
	const char *argv[REQUEST_MAX];
	size_t len[REQUEST_MAX];
};

void request_init(struct request *r, const char *command);
void request_add(struct request *r, const char *word);
void request_add_bytes(struct request *r, struct bytes word);
/* Adds `word` and `value`, unless value is NULL. */
void request_option(struct request *r, const char *word, const char *value);

/* The AUTH of these options; false when there is no token, so that none is needed. */
bool conn_login(const struct cli_options *options, struct request *r);

struct conn;

/* Connects and logs in. NULL when it can't: *ret_exit is the exit code, and a message has been printed unless
 * `quiet`. */
struct conn *conn_open(const struct cli_options *options, bool quiet, int *ret_exit);
void conn_close(struct conn *c);

/* Sends one command and waits for its reply, which the caller frees by freeReplyObject(). NULL after a
 * message when the connection was lost or the time was up; the connection is then of no more use. */
redisReply *conn_call(struct conn *c, int argc, const char *const *argv, const size_t *len);

/* For pipelines. conn_append() takes a formatted command; conn_next() is the next reply, NULL when the
 * connection is lost, with the reason in conn_fault(). */
void conn_append(struct conn *c, const char *command, size_t len);
redisReply *conn_next(struct conn *c);
const char *conn_fault(const struct conn *c);

/* An error reply as a message. */
void conn_print_refusal(const redisReply *reply);

/* Sends one command without waiting for its reply; false when the connection is lost. conn_await() then waits
 * for at most so long, true when conn_next() will not block for long. */
bool conn_start(struct conn *c, const struct request *r) __attribute__((warn_unused_result));
bool conn_await(const struct conn *c, int wait_ms);

/* BUSY, NOTREADY or UNAVAILABLE: the same command may be answered well later. */
bool conn_is_temporary(const char *error);

/* One command on a connection of its own, without a message: the reply, an error reply too, or NULL. */
redisReply *conn_try(const struct cli_options *options, const struct request *r);
/* One command on an open connection: CLI_OK and the reply, or a printed error and its exit code, for an error
 * reply too. */
int conn_request(struct conn *c, const struct request *r, redisReply **ret)
	__attribute__((warn_unused_result));
/* The same with a connection of its own. */
int conn_ask(const struct cli_options *options, const struct request *r, redisReply **ret)
	__attribute__((warn_unused_result));

#endif
