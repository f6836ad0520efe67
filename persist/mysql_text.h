/* SPDX-License-Identifier: MIT */
/* Values as SQL text, without a connection: pure functions, since a close writes 100,000 rows of them. They
 * rely on what every session of persist/mysql_link.c has set: utf8mb4, no NO_BACKSLASH_ESCAPES, time zone
 * +00:00.
 */
#ifndef PERSIST_MYSQL_TEXT_H
#define PERSIST_MYSQL_TEXT_H

#include <stdint.h>

#include "base/buf.h"

/* Adds s as a literal that keeps every byte, for binary columns and for utf8mb4 ones: 'text', or x'hex' when
 * the bytes are no printable name or ASCII. In a comparison the hex form compares as binary. */
void mysql_add_quoted(struct buf *out, struct bytes s);
/* Adds 'YYYY-MM-DD HH:MM:SS.mmm' in UTC, or NULL for a negative time. */
void mysql_add_datetime(struct buf *out, int64_t unix_ms);

#endif
