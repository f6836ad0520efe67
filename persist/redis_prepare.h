/* SPDX-License-Identifier: MIT */
/* What the main link does with a new connection before anybody may use it: it warns when Redis is configured
 * to lose what it has accepted, and loads the scripts. */
#ifndef PERSIST_REDIS_PREPARE_H
#define PERSIST_REDIS_PREPARE_H

struct redis_pipe;

/* done(error, arg) comes once, later, when all is answered; error is the first one, or NULL. */
void redis_prepare(struct redis_pipe *pipe, void (*done)(const char *error, void *arg), void *arg);

#endif
