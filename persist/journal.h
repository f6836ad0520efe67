/* SPDX-License-Identifier: MIT */
/* Reading the journals of the partitions that are ours. There are two readers, relay and ledger, each with a
 * cursor of its own in every partition. A reader takes a window of entries, hands its records to `process`,
 * and moves the cursor when told that the window is done with. Until then the window is read again after any
 * failure: `process` sees every record at least once, in order within its partition.
 *
 * A reader that plans writes down where a window ends before it is processed, so that after a crash the same
 * window comes again: what is grouped by window is grouped the same. */
#ifndef PERSIST_JOURNAL_H
#define PERSIST_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

struct event_base;
struct journal;
struct lease;
struct redis;

struct journal_record {
	struct bytes text;
	/* "<tag>-<entry id>-<index in the entry>": the same in every repeat. */
	struct bytes ref;
};

struct journal_window {
	int partition;
	struct bytes last; /* id of its last entry */
	int count;
	struct journal_record *records;
	/* Records to append to this partition's journal together with the move of the cursor; NUL after each.
	 */
	struct buf append;
};

struct journal_spec {
	const char *cursor; /* field of the cursor hash: "relay" or "ledger" */
	bool planned;
	int entries; /* most entries of a window */
	int records; /* most records, but for those of its last entry: what one step of the loop may take */
	int64_t poll_ms;  /* looks for entries of other daemons so often */
	int64_t gap_ms;   /* the longest pause between two windows of a partition */
	int busy_records; /* a window of so many records is followed by it, smaller ones by less */
	void (*process)(struct journal_window *window, void *arg);
	void *arg;
};

struct journal *journal_new(
	struct event_base *base, struct redis *redis, struct lease *lease, const struct journal_spec *spec);
void journal_free(struct journal *j);

/* The window is done with (the cursor moves), or it is not and comes again after a pause. Once for each
 * window, also from within `process`; the window is gone afterwards. */
void journal_done(struct journal *j, struct journal_window *window, bool ok);

/* There may be something new in this partition. */
void journal_doorbell(struct journal *j, int partition);
/* Everything that was there when it was last looked at has been processed, in all partitions that are ours.
 */
bool journal_idle(const struct journal *j);
/* Reads no further window; those under way go on. */
void journal_stop(struct journal *j);
/* Windows handed out and not done with. */
int journal_busy(const struct journal *j);
/* Age of the oldest entry not yet done with, as far as it is known; 0 when idle. */
int64_t journal_lag_ms(const struct journal *j);

#endif
