/* SPDX-License-Identifier: MIT */
/* Connecting to Redis, for all who do: the host is looked up, the connection made, user, database and the
 * connection's name are set, and Redis must be a master. Each of these steps has the deadline of the
 * configuration ([redis] timeout). Who needs the data waits, for as long as it takes, while Redis loads it.
 * It tries once: when to try again is its caller's business. */
#ifndef PERSIST_REDIS_LOGIN_H
#define PERSIST_REDIS_LOGIN_H

struct config;
struct event_base;
struct redisAsyncContext;
struct redis_login;

/* Who connects. */
struct redis_login_for {
	const char *id;     /* in the log */
	const char *client; /* the connection's name in Redis */
	/* Called once, never inside redis_login_start(), and not after redis_login_cancel(); the login is
	 * gone. The connection is the caller's, who sets its data and disconnect callback at once and has all
	 * of it to free; or it is NULL, and error says why. This can run inside a callback of hiredis: what
	 * follows a failure belongs on a timer. */
	void (*done)(struct redisAsyncContext *ac, const char *error, void *arg);
	/* Called once when it waits for the data, with that as why. NULL: without the data will do. */
	void (*waits)(const char *why, void *arg);
};

/* Never NULL; `who` must outlive it. */
struct redis_login *redis_login_start(
	struct event_base *base, const struct config *config, const struct redis_login_for *who, void *arg);
/* Takes NULL. Only from outside of done() and waits(). */
void redis_login_cancel(struct redis_login *login);
/* How far it is: a word for people. */
const char *redis_login_step(const struct redis_login *login);

/* Why hiredis has given a connection up. */
const char *redis_login_lost(const struct redisAsyncContext *ac);
/* The error when a deadline has passed: this very pointer. */
extern const char redis_login_late[];

#endif
