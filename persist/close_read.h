/* SPDX-License-Identifier: MIT */
/* Reading one department's map into a batch: sets the map aside, finishes its roster where a daemon died over
 * it, and reads it page by page. One department at a time. */
#ifndef PERSIST_CLOSE_READ_H
#define PERSIST_CLOSE_READ_H

#include "persist/close_batch.h"

struct close_reader;

enum close_read_state {
	CLOSE_READ_IDLE,
	CLOSE_READ_WAITING, /* an answer of Redis is to come; the batch must stay */
	CLOSE_READ_BETWEEN, /* the next page may be asked for, into the same batch or another */
	CLOSE_READ_DONE,    /* the item is complete in the batch; close_read_next() takes note */
	CLOSE_READ_FAILED   /* Redis did not answer, or not well */
};

/* moved(arg) is called, never from inside a call of these, when the state has changed. */
struct close_reader *close_reader_new(const struct closer_deps *deps, void (*moved)(void *arg), void *arg);
/* After the link has been freed. */
void close_reader_free(struct close_reader *r);
enum close_read_state close_reader_state(const struct close_reader *r);

/* Begins with an item, when idle. */
void close_read_begin(struct close_reader *r, struct close_item *item, struct close_batch *batch);
/* Asks for the next page, when between. */
void close_read_page(struct close_reader *r, struct close_batch *batch);
/* Idle again, after it is done, has failed, or is given up between two pages. */
void close_read_reset(struct close_reader *r);

#endif
