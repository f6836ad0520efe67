/* SPDX-License-Identifier: MIT */
/* Instants (unix milliseconds) and durations as people read and type them, in the local time of this machine.
 */
#ifndef CLI_WHEN_H
#define CLI_WHEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHEN_MAX 40 /* bytes that any text from here fits in, with its NUL */

/* `09:00:12`, with the date before it when the local date is not `day` (YYYY-MM-DD; NULL = always the date).
 * With `exact`, milliseconds follow. Returns dst. */
char *when_format(char dst[WHEN_MAX], int64_t unix_ms, const char *day, bool exact);
/* The local date, YYYY-MM-DD. Returns dst. */
char *when_date(char dst[WHEN_MAX], int64_t unix_ms);
/* `1h05m`, `3m12s`, `12s`, `250ms`; the two largest units. Returns dst. */
char *when_duration(char dst[WHEN_MAX], int64_t ms);

/* What a user may type for an instant: local `HH:MM[:SS]` of the date of `now_ms`, or local `YYYY-MM-DD
 * HH:MM[:SS]`, becomes RFC 3339 with the local offset; anything else is copied for the server to judge. False
 * when it does not fit, or names a local time that does not exist. */
bool when_parse(char dst[WHEN_MAX], const char *text, int64_t now_ms) __attribute__((warn_unused_result));
/* A real calendar date, YYYY-MM-DD. */
bool when_is_date(const char *text);

#endif
