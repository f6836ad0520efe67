/* SPDX-License-Identifier: MIT */
/* Durations as people write them: 250ms, 30s, 5m, 12h, 7d, or 0.2 (seconds). */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* A number, with decimals or without, and a unit: ms, s, m, h, d; without one it is seconds. What is finer
 * than a millisecond is cut. False, *ret_ms untouched, for anything else, a sign or a number that is too long
 * included. */
bool duration_parse(struct bytes text, int64_t *ret_ms) __attribute__((warn_unused_result));
#define DURATION_EXPECTED "a duration such as 250ms, 30s, 5m, 12h or 7d"

/* Appends it with the greatest unit that leaves a whole number; `ms` from 0 on. */
void duration_format(struct buf *out, int64_t ms);

#endif
