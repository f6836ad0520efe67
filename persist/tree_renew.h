/* SPDX-License-Identifier: MIT */
/* A new picture from nothing: the nodes are read (tree_load.h), brought to one instant by the journal's
 * records, and put in order (forest_build.h). All in short steps of the loop; the picture before serves
 * meanwhile. */
#ifndef PERSIST_TREE_RENEW_H
#define PERSIST_TREE_RENEW_H

#include "persist/forest.h"
#include "persist/stream_id.h"

struct event_base;
struct redis;
struct tree_renew;

/* done(ok, arg) comes once, never before this returns, unless it is ended before. */
struct tree_renew *tree_renew_new(
	struct event_base *base, struct redis *redis, void (*done)(bool ok, void *arg), void *arg);
/* The end, at any time. Returns the forest, which is the caller's now; when done() has said ok, it is the
 * picture as of *ret_at. */
struct forest *tree_renew_end(struct tree_renew *r, struct stream_id *ret_at);
/* How many departments have been read so far. */
size_t tree_renew_size(const struct tree_renew *r);
/* How many departments were found that no root is above. */
size_t tree_renew_stray(const struct tree_renew *r);

#endif
