/* SPDX-License-Identifier: MIT */
/* A connection over which Redis says which nodes of the tree somebody writes, whoever it is: a client that
 * tracks the prefix of their keys. And words that a script says on our channel, in one order with the news:
 * when a word comes, the news of all that anybody was told to be written before it was said has come.
 *
 * It connects again by itself. While it is down, or when Redis does not allow it, nothing is known. */
#ifndef PERSIST_TREE_WATCH_H
#define PERSIST_TREE_WATCH_H

#include "base/bytes.h"

struct config;
struct event_base;
struct tree_watch;

struct tree_watch_events {
	void (*tried)(
		void *arg);    /* the first time that it is up or could not be; not when it is freed before */
	void (*up)(void *arg); /* everything is told from now on */
	void (*down)(void *arg);
	void (*written)(struct bytes id, void *arg); /* id "": all nodes */
	void (*word)(struct bytes word, void *arg);
};

struct tree_watch *tree_watch_new(struct event_base *base, const struct config *config,
	const struct tree_watch_events *events, void *arg);
void tree_watch_free(struct tree_watch *w);
void tree_watch_start(struct tree_watch *w);
const char *tree_watch_channel(const struct tree_watch *w);
/* It does not say what it should: connects anew. */
void tree_watch_doubt(struct tree_watch *w);

#endif
