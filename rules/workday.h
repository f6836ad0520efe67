/* SPDX-License-Identifier: MIT */
/* Which work date an instant belongs to, and when a work date begins, ends and has its shift. A work date
 * runs from day_start local time to the next day_start, so it may be 23 or 25 hours long; nothing here adds
 * 24 hours. */
#ifndef RULES_WORKDAY_H
#define RULES_WORKDAY_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/punch.h"

/* Zone as in the tz database, "" = the system's. False when there is no such zone. Changes the process's TZ.
 */
bool workday_set_zone(const char *zone) __attribute__((warn_unused_result));
/* Milliseconds after local midnight. */
void workday_set_start(int64_t day_start_ms);

/* The one shift of every day: local times of its ends, and the debounce window, all in milliseconds. */
void workday_set_shift(int64_t start, int64_t end, int64_t debounce);

int32_t workday_of(int64_t unix_ms);
int64_t workday_begin(int32_t day);
/* The first instant that no longer belongs to it. */
int64_t workday_end(int32_t day);
/* The instant of a local time of day on that work date; a time before day_start lies on the next calendar
 * day. */
int64_t workday_at(int32_t day, int64_t time_of_day_ms);
/* The shift of that work date, as instants. */
struct shift workday_shift(int32_t day);
/* Minutes east of Greenwich at that instant. */
int workday_utc_offset(int64_t unix_ms);

#endif
