/* SPDX-License-Identifier: MIT */
/* The end of departments' days in Redis, after their rows are committed: the notices of absentees and of the
 * close go into the journal, the map is deleted and the day is marked closed. */
#ifndef PERSIST_CLOSE_END_H
#define PERSIST_CLOSE_END_H

#include <stddef.h>

struct close_item;
struct closer_deps;

/* Each item becomes CLOSE_DONE, or CLOSE_ABANDONED when the partition or the link went. done() once, later;
 * also when there are no items. */
void close_end_start(const struct closer_deps *deps, struct close_item **items, size_t count,
	void (*done)(void *arg), void *arg);

#endif
