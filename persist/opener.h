/* SPDX-License-Identifier: MIT */
/* Keeps the day maps of today and tomorrow ready, for the departments with employees of the partitions that
 * are ours. */
#ifndef PERSIST_OPENER_H
#define PERSIST_OPENER_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct lease;
struct opener;
struct redis;

struct opener *opener_new(struct event_base *base, struct redis *redis, struct lease *lease);
void opener_free(struct opener *o);
/* Today's and tomorrow's maps of our departments are ready, as far as we know. */
bool opener_caught_up(const struct opener *o);
/* Looks at once instead of at its next tick. */
void opener_wake(struct opener *o);
void opener_stop(struct opener *o);

#endif
