/* SPDX-License-Identifier: MIT */
/* The close of a day, for the departments of the partitions that are ours: the map is set aside, read in
 * pages, judged, written in transactions of about 1,000 rows together with the reconciling day_close rows,
 * and only then deleted, in one step with the notices. Every step bears repetition, so a crash anywhere is
 * healed by doing the department again: rows that are there stay as they are, and what a map has beyond them
 * is merged in.
 *
 * Days are closed in date order. A day is due close_delay after its window's end, or when DAY.CLOSE asked. */
#ifndef PERSIST_CLOSER_H
#define PERSIST_CLOSER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct closer;
struct config;
struct event_base;
struct lease;
struct mysql_link;
struct redis;
struct tree;

struct closer_deps {
	struct event_base *base;
	const struct config *config;
	struct redis *redis;
	struct mysql_link *sql;
	const struct tree *tree;
	struct lease *lease;
	/* A partition's journal has new entries. */
	void (*journalled)(int partition, void *arg);
	void *arg;
};

struct closer *closer_new(const struct closer_deps *deps);
/* After both links have been freed. */
void closer_free(struct closer *c);

/* Closes what is due of this date and earlier ones without waiting for close_delay; an empty dept means all.
 * The caller has checked that the window is over. fn(ok, arg) is called once: with true when nothing of ours
 * is left to close up to that date, with false after timeout_ms. */
void closer_request(struct closer *c, int32_t day, struct bytes dept, int64_t timeout_ms,
	void (*fn)(bool ok, void *arg), void *arg);
/* Nothing that is due is left unclosed in our partitions, as far as we know. */
bool closer_caught_up(const struct closer *c);
/* Looks at once instead of at its next tick. */
void closer_wake(struct closer *c);
bool closer_running(const struct closer *c);
/* Begins nothing new. */
void closer_stop(struct closer *c);

#endif
