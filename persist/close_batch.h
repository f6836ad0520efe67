/* SPDX-License-Identifier: MIT */
/* The writing half of a close: rows of one work date, of one department or several, that go to MySQL in one
 * transaction; then, for the departments that are complete with it, the end in Redis. */
#ifndef PERSIST_CLOSE_BATCH_H
#define PERSIST_CLOSE_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "persist/closer.h"

#define CLOSE_BATCH_ROWS 1000

struct close_batch;

enum close_phase {
	CLOSE_QUEUED,
	CLOSE_READING,  /* the map is aside and being read */
	CLOSE_WRITTEN,  /* all its rows are committed */
	CLOSE_DONE,     /* the map is gone, the notices are in the journal */
	CLOSE_ABANDONED /* the partition or the link went: it is closed again from the start */
};

/* One department and date. */
struct close_item {
	char dept[ID_MAX + 1];
	int32_t day;
	int partition;
	enum close_phase phase;
	bool marked; /* its roster was whole */
	int64_t expected, written, failed, absent, late;
	int64_t started_ms, finished_ms;
	struct buf absentees; /* ids, each with its NUL */
	bool recorded;        /* day_close says that it is done */
};

struct close_batch *close_batch_new(const struct closer_deps *deps, int32_t day);
void close_batch_free(struct close_batch *b);
size_t close_batch_rows(const struct close_batch *b);
/* Adds one field of the map: judged, or a failure. */
void close_batch_add(struct close_batch *b, struct close_item *item, struct bytes employee, struct bytes set);
/* The map of this department is missing, or is no map: a failure for the people in charge, and nobody becomes
 * absent. */
void close_batch_no_map(struct close_batch *b, struct close_item *item, bool damaged);
/* All rows of the item are in this batch or in earlier ones. */
void close_batch_complete(struct close_batch *b, struct close_item *item);

/* Writes it, then ends its complete items in Redis. `also` are items that have ended since the last batch,
 * whose end is recorded in this transaction. done(ok) once, later; false: the batch can be written again. */
void close_batch_write(struct close_batch *b, struct close_item **also, size_t also_count,
	void (*done)(bool ok, void *arg), void *arg);

/* After it has been written: ends its complete items in Redis. done() once, later. */
void close_batch_end(struct close_batch *b, void (*done)(void *arg), void *arg);

/* The date and department as the field of the `days` hash. */
void close_field(struct buf *out, const struct close_item *item);

#endif
