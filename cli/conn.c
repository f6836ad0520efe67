/* SPDX-License-Identifier: MIT */
#include "cli/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/text.h"

struct conn {
	redisContext *context;
	char *where; /* host:port, for messages */
};

void request_init(struct request *r, const char *command)
{
	r->argc = 0;
	request_add(r, command);
}

void request_add_bytes(struct request *r, struct bytes word)
{
	if (r->argc == REQUEST_MAX)
		abort();
	r->argv[r->argc] = word.p;
	r->len[r->argc++] = word.n;
}

void request_add(struct request *r, const char *word)
{
	request_add_bytes(r, bytes_of(word));
}

void request_option(struct request *r, const char *word, const char *value)
{
	if (value == NULL)
		return;
	request_add(r, word);
	request_add(r, value);
}

static struct conn *new_conn(const struct cli_options *options)
{
	struct timeval tv = {options->timeout_ms / 1000, options->timeout_ms % 1000 * 1000};
	struct conn *c = xcalloc(1, sizeof(*c));
	struct buf where = BUF_INIT;

	buf_addf(&where, strchr(options->host, ':') != NULL ? "[%s]:%d" : "%s:%d", options->host,
		options->port);
	c->where = buf_take(&where);
	c->context = redisConnectWithTimeout(options->host, options->port, tv);
	if (c->context != NULL && c->context->err == 0)
		redisSetTimeout(c->context, tv);
	return c;
}

void conn_close(struct conn *c)
{
	if (c == NULL)
		return;
	if (c->context != NULL)
		redisFree(c->context);
	free(c->where);
	free(c);
}

const char *conn_fault(const struct conn *c)
{
	if (c->context == NULL)
		return "out of memory";
	if (c->context->err == 0)
		return "";
	bool timed_out = c->context->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK);
	return timed_out ? "no answer in time" : c->context->errstr;
}

void conn_print_refusal(const redisReply *reply)
{
	struct buf text = BUF_INIT;

	text_clean(&text, reply->str, (size_t)reply->len);
	cli_error("%s", text.data);
	buf_release(&text);
}

bool conn_login(const struct cli_options *options, struct request *r)
{
	request_init(r, "AUTH");
	if (options->user[0] != '\0')
		request_add(r, options->user);
	request_add(r, options->token);
	return options->token[0] != '\0';
}

static int log_in(struct conn *c, const struct cli_options *options, bool quiet)
{
	struct request r;

	if (!conn_login(options, &r))
		return CLI_OK;
	redisReply *reply = redisCommandArgv(c->context, r.argc, r.argv, r.len);
	if (reply == NULL)
		return CLI_UNREACHABLE;
	bool refused = reply->type == REDIS_REPLY_ERROR;
	if (refused && !quiet)
		conn_print_refusal(reply);
	freeReplyObject(reply);
	return refused ? CLI_FAILED : CLI_OK;
}

struct conn *conn_open(const struct cli_options *options, bool quiet, int *ret_exit)
{
	struct conn *c = new_conn(options);
	bool connected = c->context != NULL && c->context->err == 0;

	*ret_exit = connected ? log_in(c, options, quiet) : CLI_UNREACHABLE;
	if (*ret_exit == CLI_OK)
		return c;
	if (*ret_exit == CLI_UNREACHABLE && !quiet)
		cli_error("can't reach %s: %s", c->where, conn_fault(c));
	conn_close(c);
	return NULL;
}

bool conn_start(struct conn *c, const struct request *r)
{
	const char *words[REQUEST_MAX];
	int done = 0;

	memcpy(words, r->argv, (size_t)r->argc * sizeof(*words));
	redisAppendCommandArgv(c->context, r->argc, words, r->len);
	while (done == 0 && redisBufferWrite(c->context, &done) == REDIS_OK)
		;
	return done != 0;
}

bool conn_await(const struct conn *c, int wait_ms)
{
	struct pollfd fd = {.fd = c->context->fd, .events = POLLIN};
	return poll(&fd, 1, wait_ms) > 0;
}

bool conn_is_temporary(const char *error)
{
	static const char *const codes[] = {"BUSY ", "NOTREADY ", "UNAVAILABLE "};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		if (strncmp(error, codes[i], strlen(codes[i])) == 0)
			return true;
	}
	return false;
}

redisReply *conn_call(struct conn *c, int argc, const char *const *argv, const size_t *len)
{
	const char **words = xmalloc((size_t)argc * sizeof(*words));

	memcpy(words, argv,
		(size_t)argc * sizeof(*words)); /* hiredis asks for writable pointers, and leaves them */
	redisReply *reply = redisCommandArgv(c->context, argc, words, len);
	free(words);
	if (reply == NULL)
		cli_error("lost %s: %s", c->where, conn_fault(c));
	return reply;
}

void conn_append(struct conn *c, const char *command, size_t len)
{
	redisAppendFormattedCommand(c->context, command, len);
}

redisReply *conn_next(struct conn *c)
{
	void *reply = NULL;
	return redisGetReply(c->context, &reply) == REDIS_OK ? reply : NULL;
}

redisReply *conn_try(const struct cli_options *options, const struct request *r)
{
	int ignored;
	struct conn *c = conn_open(options, true, &ignored);
	redisReply *reply = NULL;

	if (c != NULL && conn_start(c, r))
		reply = conn_next(c);
	conn_close(c);
	return reply;
}

int conn_request(struct conn *c, const struct request *r, redisReply **ret)
{
	redisReply *reply = conn_call(c, r->argc, r->argv, r->len);

	if (reply == NULL)
		return CLI_UNREACHABLE;
	if (reply->type == REDIS_REPLY_ERROR) {
		conn_print_refusal(reply);
		freeReplyObject(reply);
		return CLI_FAILED;
	}
	*ret = reply;
	return CLI_OK;
}

int conn_ask(const struct cli_options *options, const struct request *r, redisReply **ret)
{
	int result;
	struct conn *c = conn_open(options, false, &result);

	if (c == NULL)
		return result;
	result = conn_request(c, r, ret);
	conn_close(c);
	return result;
}
