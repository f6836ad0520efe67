/* SPDX-License-Identifier: MIT */
/* Encodes one reply in RESP2 or RESP3. No caller asks which: a map is a map in RESP3 and a flat array of
 * field, value in RESP2; null is `_` or `$-1`. Aggregates are written as head and then that many elements. */
#ifndef BASE_REPLY_H
#define BASE_REPLY_H

#include <stdint.h>

#include "base/buf.h"

struct reply {
	struct buf buf;
	int protocol; /* 2 or 3 */
};

void reply_init(struct reply *r, int protocol);
void reply_release(struct reply *r);
/* Forgets what was written, so that an error can take its place. */
void reply_reset(struct reply *r);

void reply_status(struct reply *r, const char *text); /* +text */
/* -CODE text; `format` begins with the code. Control bytes in the text are replaced by blanks. */
void reply_error(struct reply *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void reply_int(struct reply *r, int64_t n);
void reply_bulk(struct reply *r, struct bytes b);
void reply_str(struct reply *r, const char *s); /* a bulk string of a C string */
void reply_null(struct reply *r);
void reply_array(struct reply *r, size_t elements);
void reply_map(struct reply *r, size_t pairs);

/* Field and value of a map at once. */
void reply_field_str(struct reply *r, const char *field, const char *value);
void reply_field_bulk(struct reply *r, const char *field, struct bytes value);
void reply_field_int(struct reply *r, const char *field, int64_t value);
/* The value null when it is negative: instants that may be missing. */
void reply_field_instant(struct reply *r, const char *field, int64_t unix_ms);

#endif
