/* SPDX-License-Identifier: MIT */
/* Sends many commands, each safe to repeat, with a window of them under way, and keeps their order: when the
 * server answers BUSY, NOTREADY or UNAVAILABLE, or the connection is lost, it waits, connects again, and
 * sends everything from that command on once more (go back N). It gives up after a time without any progress.
 */
#ifndef CLI_SENDER_H
#define CLI_SENDER_H

#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "cli/cli.h"

#define SENDER_MAX_WINDOW 1000

struct sender;

/* One command is decided by its reply, which may be an error. */
typedef void (*sender_done)(void *tag, uint64_t line, const redisReply *reply, void *arg);

struct sender_config {
	const struct cli_options *options;
	size_t window; /* 1 to SENDER_MAX_WINDOW */
	int64_t patience_ms;
	sender_done done;
	void *arg;
};

/* Connects. NULL after a message when it can't: *ret_exit is the exit code. */
struct sender *sender_new(const struct sender_config *config, int *ret_exit);
void sender_free(struct sender *s);

/* Sends a command; may wait for earlier ones. CLI_OK, or an exit code after a message when it has given up or
 * the server would refuse everything; the rest is then undecided. */
int sender_put(struct sender *s, int argc, const char *const *argv, const size_t *len, uint64_t line,
	void *tag) __attribute__((warn_unused_result));
/* Waits until all are decided. Returns as sender_put() does. */
int sender_flush(struct sender *s) __attribute__((warn_unused_result));

#endif
