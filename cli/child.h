/* SPDX-License-Identifier: MIT */
/* A command that runs beside the event loop: it is fed on standard input, and what it writes is gathered,
 * within bounds. It has a process group of its own, so that a signal for it reaches what it has started too,
 * and Ctrl-C on a terminal does not reach it; and it dies with us, however we end.
 *
 * It is over when the process itself has ended, also when something that it has left behind holds its
 * standard output open. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct event_base;
struct child;

struct child_limits {
	size_t output;       /* so much of the beginning of its standard output is kept */
	size_t error;        /* so much of the end of its standard error */
	int64_t max_time_ms; /* it is stopped after so long; 0 = never */
	int64_t grace_ms;    /* from SIGTERM to SIGKILL */
};

/* Starts argv[0], looked for in PATH, with the environment as it is; `input` is copied. NULL, with errno,
 * when it can't be started. */
struct child *child_start(
	struct event_base *base, char *const *argv, struct bytes input, const struct child_limits *limits);
/* Takes NULL. One that still runs is killed and waited for. */
void child_free(struct child *c);

/* SIGTERM, and SIGKILL after the grace. Once more does nothing. */
void child_stop(struct child *c);

/* After SIGCHLD: true once it is over; what follows is then final. */
bool child_reap(struct child *c);
int child_status(const struct child *c); /* as of waitpid() */
bool child_timed_out(const struct child *c);
struct bytes child_output(const struct child *c);
uint64_t child_output_total(const struct child *c); /* bytes that it wrote */
struct bytes child_error(const struct child *c);

#endif
