/* SPDX-License-Identifier: MIT */
#include "rules/workday.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rules/when.h"

static int64_t day_start = 4 * 3600 * 1000;
static int64_t shift_start = 9 * 3600 * 1000, shift_end = 18 * 3600 * 1000, debounce = 30000;

/* The work date asked for last: nearly every instant of a day falls into it. */
static struct {
	int64_t begin, end;
	int32_t day;
} recent;

static struct {
	bool known;
	int32_t day;
	struct shift shift;
} recent_shift;

static void forget(void)
{
	recent.begin = recent.end = 0;
	recent_shift.known = false;
}

bool workday_set_zone(const char *zone)
{
	char path[512];

	if (zone[0] != '\0') {
		snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", zone);
		if (strstr(zone, "..") != NULL || (strcmp(zone, "UTC") != 0 && access(path, R_OK) != 0))
			return false;
		setenv("TZ", zone, 1);
	}
	tzset();
	forget();
	return true;
}

void workday_set_start(int64_t day_start_ms)
{
	day_start = day_start_ms;
	forget();
}

void workday_set_shift(int64_t start, int64_t end, int64_t window)
{
	shift_start = start;
	shift_end = end;
	debounce = window;
	forget();
}

/* Where clocks are put back, a local time comes twice, and mktime() takes the one that is nearer to what it
 * was asked before: the first of the two, always. */
static time_t earlier(time_t t)
{
	static const int steps[] = {1800, 3600};
	struct tm now, before;

	localtime_r(&t, &now);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		time_t other = t - steps[i];
		localtime_r(&other, &before);
		if (before.tm_hour == now.tm_hour && before.tm_min == now.tm_min &&
			before.tm_mday == now.tm_mday)
			return other;
	}
	return t;
}

static int64_t local_instant(int32_t day, int64_t time_of_day_ms)
{
	struct tm tm = {0};
	int year, month, mday;

	date_to_civil(day, &year, &month, &mday);
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = mday;
	tm.tm_hour = (int)(time_of_day_ms / 3600000);
	tm.tm_min = (int)(time_of_day_ms / 60000 % 60);
	tm.tm_sec = (int)(time_of_day_ms / 1000 % 60);
	tm.tm_isdst = -1;
	return (int64_t)earlier(mktime(&tm)) * 1000 + time_of_day_ms % 1000;
}

int64_t workday_begin(int32_t day)
{
	return local_instant(day, day_start);
}

int64_t workday_end(int32_t day)
{
	return local_instant(day + 1, day_start);
}

int64_t workday_at(int32_t day, int64_t time_of_day_ms)
{
	return local_instant(time_of_day_ms < day_start ? day + 1 : day, time_of_day_ms);
}

int32_t workday_of(int64_t unix_ms)
{
	if (unix_ms >= recent.begin && unix_ms < recent.end)
		return recent.day;

	time_t seconds = unix_ms / 1000;
	struct tm tm;
	localtime_r(&seconds, &tm);
	int32_t day = date_from_civil(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
	if (unix_ms < workday_begin(day))
		day--;
	recent.day = day;
	recent.begin = workday_begin(day);
	recent.end = workday_end(day);
	return day;
}

struct shift workday_shift(int32_t day)
{
	if (!recent_shift.known || recent_shift.day != day) {
		recent_shift.shift = (struct shift){.start = workday_at(day, shift_start),
			.end = workday_at(day, shift_end),
			.debounce = debounce};
		recent_shift.day = day;
		recent_shift.known = true;
	}
	return recent_shift.shift;
}

int workday_utc_offset(int64_t unix_ms)
{
	time_t seconds = unix_ms / 1000;
	struct tm tm;

	localtime_r(&seconds, &tm);
	return (int)(tm.tm_gmtoff / 60);
}
