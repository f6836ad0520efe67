/* SPDX-License-Identifier: MIT */
/* The daemon as a whole: what main.c builds, and what the server commands look at. One of it. */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct app;
struct buf;
struct clients;
struct config;
struct event;
struct event_base;
struct listener;
struct notify;
struct users;

struct server {
	struct event_base *base;
	struct config *config;   /* in force; owned by main */
	const char *config_path; /* NULL: the defaults, and nothing to reload */
	struct app *app;
	struct users *users;
	struct clients *clients;
	struct listener *listener;
	struct notify *notify;
	struct event *janitor, *drain_deadline, *signals[3];
	size_t files_allow; /* clients that the limit of open files has room for */
	int64_t janitor_us; /* monotonic, of its last run */
	bool announced;     /* READY=1 was sent */
	bool draining;      /* no more connections and writes */
	bool app_draining, app_drained;
	int exit_code;
};

/* Starts everything in order; the base and the configuration are there. 0, or -1 after a log line. Call
 * server_stop() in either case. */
int server_start(struct server *s) __attribute__((warn_unused_result));
/* Runs the loop until it is told to end. Returns the exit code. */
int server_run(struct server *s);
/* Releases everything in reverse. */
void server_stop(struct server *s);

/* Reads the configuration and the users again. 0, or -1 with the faults as lines in `errors`; then nothing
 * has changed. */
int server_reload(struct server *s, struct buf *errors) __attribute__((warn_unused_result));
/* Connections at once: max_clients, or what the limit of open files allows. */
size_t server_max_clients(const struct server *s);
/* Stops accepting, refuses writes, and ends the loop when all that runs is done, or after drain_timeout. */
void server_drain(struct server *s);

#endif
