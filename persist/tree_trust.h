/* SPDX-License-Identifier: MIT */
/* Which nodes of the picture need not be looked up. The picture follows the journal, and so does not know
 * what somebody has damaged behind our back. A node is trusted when it has been read from Redis and
 * no news of a write has come since (tree_watch.h): with the picture as of the newest journal entry, and a
 * word said after that was read, it is what Redis has.
 *
 * Trusted are all nodes of a picture that was loaded while the watch was up, but for those written meanwhile;
 * what has been written is trusted again once it was read and found as it is in the picture. */
#ifndef PERSIST_TREE_TRUST_H
#define PERSIST_TREE_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "persist/forest.h"

struct config;
struct event_base;
struct tree;
struct tree_trust;

struct tree_trust *tree_trust_new(struct event_base *base, const struct config *config, struct tree *tree);
/* After the link has been freed. */
void tree_trust_free(struct tree_trust *t);
/* tried(arg) once, when the watch is up or could not be for now: a tree that is loaded from then on is
 * trusted at once. */
void tree_trust_start(struct tree_trust *t, void (*tried)(void *arg), void *arg);
/* Nothing is trusted any more; for shutdown, before the link is freed. */
void tree_trust_stop(struct tree_trust *t);

/* How many are above the department, when it and they are trusted; otherwise -1. */
int tree_trust_line(const struct tree_trust *t, const struct dept *d);
/* How much news has come. What was read since, and found as the picture has it, may be trusted while it is
 * the same: tree_trust_found(). */
uint64_t tree_trust_news(const struct tree_trust *t);
void tree_trust_found(struct tree_trust *t, const struct dept_fields *read, int64_t below);

/* The channel for words, and the next word: "<number>|<text>". fn(&text, arg) when it comes, fn(NULL, arg)
 * when the watch goes down or it takes too long. Once, later. */
typedef void (*tree_trust_cb)(const struct bytes *text, void *arg);
const char *tree_trust_channel(const struct tree_trust *t);
uint64_t tree_trust_expect(struct tree_trust *t, tree_trust_cb fn, void *arg);
/* Nobody is told any more. */
void tree_trust_forget(struct tree_trust *t, uint64_t word);

#endif
