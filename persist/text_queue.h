/* SPDX-License-Identifier: MIT */
/* A queue of texts without NUL bytes, first in, first out. All 0 is an empty one. */
#ifndef PERSIST_TEXT_QUEUE_H
#define PERSIST_TEXT_QUEUE_H

#include "base/buf.h"

struct text_queue {
	struct buf text; /* a NUL after each */
	size_t at;       /* where the first is that has not been taken */
};

void text_push(struct text_queue *q, struct bytes text);
/* False when it is empty. The text is good until the next push, or the pop that finds nothing. */
bool text_pop(struct text_queue *q, struct bytes *ret);
void text_release(struct text_queue *q);

#endif
