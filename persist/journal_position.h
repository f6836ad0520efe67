/* SPDX-License-Identifier: MIT */
/* Where in its journal a record stands, from its ref "<tag>-<ms>-<number>-<index>": later records of one
 * partition are greater. */
#ifndef PERSIST_JOURNAL_POSITION_H
#define PERSIST_JOURNAL_POSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

struct journal_position {
	int64_t ms, number, index;
};

/* All zero, which is before any record, when it is no ref. */
struct journal_position journal_position_of(struct bytes ref);
bool journal_position_after(struct bytes ref, struct bytes other);
/* Adds it so that the order of the texts is that of the positions. */
void journal_position_add(struct buf *out, struct bytes ref);

#endif
