/* SPDX-License-Identifier: MIT */
/* How near Redis is to its `maxmemory`. Tasks are refused while there is room left for those that are there
 * to be carried to their end. Looks once a second while there is a limit, and now and then whether there is
 * one. */
#ifndef PERSIST_MEMORY_H
#define PERSIST_MEMORY_H

#include <stdbool.h>

struct buf;
struct event_base;
struct memory;
struct redis;

struct memory *memory_new(struct event_base *base, struct redis *redis);
/* After the link has been freed. */
void memory_free(struct memory *m);

/* Redis uses more than nine tenths of what it may. False while it is not known. */
bool memory_full(const struct memory *m);
/* Lines for INFO. */
void memory_info(const struct memory *m, struct buf *out);

#endif
