/* SPDX-License-Identifier: MIT */
#include "cli/sender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/conn.h"

#define WAIT_FIRST_MS 50
#define WAIT_MAX_MS   2000

struct item {
	char *command; /* formatted; from hiredis */
	size_t len;
	uint64_t line;
	void *tag;
};

struct sender {
	struct sender_config config;
	struct conn *conn;  /* NULL = lost */
	struct item *items; /* a ring of config.window */
	size_t head, count;
	size_t sent; /* of the first `count`, how many are under way */
	int64_t progress_us, wait_ms;
	char reason[160]; /* of the last setback */
	int setback_exit; /* what to exit with when that was the last */
};

struct sender *sender_new(const struct sender_config *config, int *ret_exit)
{
	struct conn *conn = conn_open(config->options, false, ret_exit);

	if (conn == NULL)
		return NULL;
	struct sender *s = xcalloc(1, sizeof(*s));
	s->config = *config;
	s->conn = conn;
	s->items = xcalloc(config->window, sizeof(*s->items));
	s->progress_us = clock_mono_us();
	s->wait_ms = WAIT_FIRST_MS;
	return s;
}

static struct item *item_at(struct sender *s, size_t index)
{
	return &s->items[(s->head + index) % s->config.window];
}

void sender_free(struct sender *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->count; i++)
		redisFreeCommand(item_at(s, i)->command);
	conn_close(s->conn);
	free(s->items);
	free(s);
}

static void set_back(struct sender *s, int exit_code, const char *reason)
{
	s->sent = 0;
	s->setback_exit = exit_code;
	snprintf(s->reason, sizeof(s->reason), "%s", reason);
}

static void lose(struct sender *s)
{
	set_back(s, CLI_UNREACHABLE, conn_fault(s->conn));
	conn_close(s->conn);
	s->conn = NULL;
}

/* The window is sent again after a while: what is under way is answered first, and those answers don't count.
 */
static void go_back(struct sender *s, const char *reason)
{
	size_t others = s->sent - 1;

	set_back(s, CLI_FAILED, reason);
	for (size_t i = 0; i < others && s->conn != NULL; i++) {
		redisReply *reply = conn_next(s->conn);
		if (reply == NULL)
			lose(s);
		freeReplyObject(reply);
	}
}

/* After a setback. CLI_OK, or the exit code once the patience is over. */
static int wait_a_while(struct sender *s)
{
	struct timespec ts = {s->wait_ms / 1000, s->wait_ms % 1000 * 1000000};

	if (clock_mono_us() - s->progress_us > s->config.patience_ms * 1000) {
		cli_error("gave up after %lld s without progress: %s",
			(long long)s->config.patience_ms / 1000, s->reason);
		return s->setback_exit;
	}
	nanosleep(&ts, NULL);
	s->wait_ms = s->wait_ms * 2 < WAIT_MAX_MS ? s->wait_ms * 2 : WAIT_MAX_MS;
	return CLI_OK;
}

static bool begins_with(const char *text, const char *words)
{
	return strncmp(text, words, strlen(words)) == 0;
}

/* Every other command would be refused for the same reason. */
static bool concerns_all(const char *error)
{
	return begins_with(error, "NOAUTH") || begins_with(error, "NOPERM") ||
	       begins_with(error, "ERR unknown command");
}

static void finish_head(struct sender *s, const redisReply *reply)
{
	struct item item = *item_at(s, 0);

	s->head = (s->head + 1) % s->config.window;
	s->count--;
	s->sent--;
	s->progress_us = clock_mono_us();
	s->wait_ms = WAIT_FIRST_MS;
	redisFreeCommand(item.command);
	s->config.done(item.tag, item.line, reply, s->config.arg);
}

static int take_reply(struct sender *s, const redisReply *reply)
{
	const char *error = reply->type == REDIS_REPLY_ERROR ? reply->str : NULL;

	if (error == NULL || !(conn_is_temporary(error) || concerns_all(error))) {
		finish_head(s, reply);
		return CLI_OK;
	}
	if (concerns_all(error)) {
		conn_print_refusal(reply);
		return CLI_FAILED;
	}
	go_back(s, error);
	return wait_a_while(s);
}

static int reconnect(struct sender *s)
{
	int exit_code;

	s->conn = conn_open(s->config.options, true, &exit_code);
	if (s->conn != NULL)
		return CLI_OK;
	return wait_a_while(s);
}

/* One step: connect, or send what is not under way and take one reply. */
static int step(struct sender *s)
{
	if (s->conn == NULL)
		return reconnect(s);
	for (; s->sent < s->count; s->sent++)
		conn_append(s->conn, item_at(s, s->sent)->command, item_at(s, s->sent)->len);
	redisReply *reply = conn_next(s->conn);
	if (reply == NULL) {
		lose(s);
		return wait_a_while(s);
	}
	int result = take_reply(s, reply);
	freeReplyObject(reply);
	return result;
}

static int drain_to(struct sender *s, size_t left)
{
	int result = CLI_OK;

	while (s->count > left && result == CLI_OK)
		result = step(s);
	return result;
}

int sender_put(
	struct sender *s, int argc, const char *const *argv, const size_t *len, uint64_t line, void *tag)
{
	const char *words[REQUEST_MAX];
	char *command;

	if (s->count == s->config.window) {
		int result = drain_to(s, s->config.window / 2);
		if (result != CLI_OK)
			return result;
	}
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	long long n = redisFormatCommandArgv(&command, argc, words, len);
	if (n < 0)
		abort();
	if (s->count == 0)
		s->progress_us = clock_mono_us();
	*item_at(s, s->count++) = (struct item){command, (size_t)n, line, tag};
	return CLI_OK;
}

int sender_flush(struct sender *s)
{
	return drain_to(s, 0);
}
