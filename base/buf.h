/* SPDX-License-Identifier: MIT */
/* A growable byte buffer with a hard cap. A write past the cap (or past memory) sets `failed` and drops what
 * does not fit; callers check buf_failed() once, at the end. `data` is always NUL-terminated once written to.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct buf {
	char *data; /* owned; NULL while nothing was written */
	size_t len;
	size_t cap;   /* bytes allocated */
	size_t limit; /* bytes that may be held, 0 = 1 GiB */
	bool failed;
};

#define BUF_INIT ((struct buf){0})

void buf_add(struct buf *b, const void *data, size_t n);
void buf_add_bytes(struct buf *b, struct bytes s);
void buf_add_str(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_add_i64(struct buf *b, int64_t n);
void buf_addf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds s as a JSON string with its quotes; a byte that is not UTF-8 becomes U+FFFD. */
void buf_add_json(struct buf *b, struct bytes s);

struct bytes buf_bytes(const struct buf *b);
/* Makes room for n bytes more, so that b->data + b->len may be written and b->len advanced; false at the cap.
 */
bool buf_reserve(struct buf *b, size_t n) __attribute__((warn_unused_result));
bool buf_failed(const struct buf *b);
/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);
/* Empties it and keeps the memory. */
void buf_clear(struct buf *b);
/* Frees the memory; the buffer is as new. */
void buf_release(struct buf *b);
/* Moves the memory out; the caller frees it, the buffer is as new. Never NULL. */
char *buf_take(struct buf *b);

#endif
