/* SPDX-License-Identifier: MIT */
/* Removed departments of which there may still be news: where they stood and what they were called. Redis
 * keeps them in the hash {org}:gone from the time on that their keys are deleted; until then those stand in
 * for it that this daemon has seen go. */
#ifndef PERSIST_TREE_GONE_H
#define PERSIST_TREE_GONE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct dept;
struct redis;
struct tree_gone;

struct tree_gone *tree_gone_new(struct redis *redis);
/* After the link to Redis. */
void tree_gone_free(struct tree_gone *g);

/* The path is that before the removal, ids from the root to the department joined by ':'. */
void tree_gone_add(struct tree_gone *g, struct bytes path, struct bytes name);
/* A subtree is taken out that stood below `path` ("" = its top was a root); then the path of one of its
 * departments, valid until the next call. */
void tree_gone_begin(struct tree_gone *g, struct bytes path);
struct bytes tree_gone_path(struct tree_gone *g, const struct dept *d);
/* As last_words of forest_drop(): adds one of them; arg is the struct tree_gone. */
void tree_gone_last_words(const struct dept *d, void *arg);
/* Both valid until the loop turns. Asks Redis again when there is nothing. */
bool tree_gone_find(struct tree_gone *g, struct bytes id, struct bytes *ret_path, struct bytes *ret_name);
/* Reads the hash as soon as the link is there. */
void tree_gone_read(struct tree_gone *g);
/* To be called every half second or so. */
void tree_gone_tick(struct tree_gone *g);
size_t tree_gone_count(const struct tree_gone *g);

#endif
