/* SPDX-License-Identifier: MIT */
/* Dates and instants as text. A date is a day number: days since 1970-01-01. An instant is unix milliseconds.
 */
#ifndef RULES_WHEN_H
#define RULES_WHEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define DATE_TEXT 11 /* "2026-11-30" and its NUL */

/* Unix seconds, unix milliseconds (1e11 and above) or RFC 3339 with its offset. False, and *ret untouched,
 * for anything else: a date that is not in the calendar, a negative number, text behind it. */
bool when_parse(struct bytes text, int64_t *ret_ms) __attribute__((warn_unused_result));
#define WHEN_EXPECTED "unix seconds, unix milliseconds or RFC 3339 such as 2026-11-30T08:55:00+01:00"

/* YYYY-MM-DD of the years 1970 to 9999. */
bool date_parse(struct bytes text, int32_t *ret_day) __attribute__((warn_unused_result));
#define DATE_EXPECTED "a date as YYYY-MM-DD"
const char *date_format(int32_t day, char text[DATE_TEXT]);

int32_t date_from_civil(int year, int month, int mday);
void date_to_civil(int32_t day, int *ret_year, int *ret_month, int *ret_mday);

#endif
