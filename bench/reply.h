/* SPDX-License-Identifier: MIT */
/* Replies as a client gets them, RESP2 and RESP3: where one ends, and one field of a flat map. Nothing is
 * copied. */
#ifndef BENCH_REPLY_H
#define BENCH_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

#define REPLY_MALFORMED ((size_t)-1)

/* Bytes of the first whole reply in `in`; 0 when more bytes are needed; REPLY_MALFORMED when it is none. */
size_t reply_length(struct bytes in) __attribute__((warn_unused_result));

/* The text of a field of a whole reply that is a map or an array of field, value; false when it has none
 * such. */
bool reply_field(struct bytes reply, struct bytes field, struct bytes *ret)
	__attribute__((warn_unused_result));

#endif
