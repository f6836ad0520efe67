/* SPDX-License-Identifier: MIT */
#include "cli/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND ((int64_t)1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static void local_time(int64_t unix_ms, struct tm *ret)
{
	time_t seconds = (time_t)(unix_ms / 1000 - (unix_ms % 1000 < 0));
	localtime_r(&seconds, ret);
}

char *when_format(char dst[WHEN_MAX], int64_t unix_ms, const char *day, bool exact)
{
	struct tm tm;
	char date[WHEN_MAX];
	size_t n = 0;

	local_time(unix_ms, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	if (day == NULL || strcmp(date, day) != 0)
		n = strftime(dst, WHEN_MAX, "%Y-%m-%d ", &tm);
	n += strftime(dst + n, WHEN_MAX - n, "%H:%M:%S", &tm);
	if (exact)
		snprintf(dst + n, WHEN_MAX - n, ".%03u", (unsigned)((unix_ms % 1000 + 1000) % 1000));
	return dst;
}

char *when_date(char dst[WHEN_MAX], int64_t unix_ms)
{
	struct tm tm;

	local_time(unix_ms, &tm);
	strftime(dst, WHEN_MAX, "%Y-%m-%d", &tm);
	return dst;
}

char *when_duration(char dst[WHEN_MAX], int64_t ms)
{
	if (ms < SECOND)
		snprintf(dst, WHEN_MAX, "%" PRId64 "ms", ms);
	else if (ms < MINUTE)
		snprintf(dst, WHEN_MAX, "%" PRId64 "s", ms / SECOND);
	else if (ms < HOUR)
		snprintf(dst, WHEN_MAX, "%" PRId64 "m%02ds", ms / MINUTE, (int)(ms % MINUTE / SECOND));
	else if (ms < DAY)
		snprintf(dst, WHEN_MAX, "%" PRId64 "h%02dm", ms / HOUR, (int)(ms % HOUR / MINUTE));
	else
		snprintf(dst, WHEN_MAX, "%" PRId64 "d%02dh", ms / DAY, (int)(ms % DAY / HOUR));
	return dst;
}

/* Digits exactly as `shape` has them: '0' is a digit, another character itself. */
static bool has_shape(const char *text, const char *shape)
{
	for (; *shape != '\0'; text++, shape++) {
		bool fits = *shape == '0' ? *text >= '0' && *text <= '9' : *text == *shape;
		if (!fits)
			return false;
	}
	return *text == '\0';
}

static int number(const char *digits, int n)
{
	int value = 0;

	for (int i = 0; i < n; i++)
		value = value * 10 + (digits[i] - '0');
	return value;
}

static bool read_date(const char *text, struct tm *tm)
{
	tm->tm_year = number(text, 4) - 1900;
	tm->tm_mon = number(text + 5, 2) - 1;
	tm->tm_mday = number(text + 8, 2);
	struct tm check = {
		.tm_year = tm->tm_year, .tm_mon = tm->tm_mon, .tm_mday = tm->tm_mday, .tm_hour = 12};
	return timegm(&check) != -1 && check.tm_mon == tm->tm_mon && check.tm_mday == tm->tm_mday;
}

bool when_is_date(const char *text)
{
	struct tm tm = {0};
	return has_shape(text, "0000-00-00") && read_date(text, &tm);
}

/* Fills a broken-down local time; `ret_clock` is where the time of day begins, NULL when it is not ours. */
static bool split(const char *text, int64_t now_ms, struct tm *tm, const char **ret_clock)
{
	bool clock_only = has_shape(text, "00:00") || has_shape(text, "00:00:00");
	bool with_date = has_shape(text, "0000-00-00 00:00") || has_shape(text, "0000-00-00 00:00:00");

	*ret_clock = clock_only ? text : with_date ? text + 11 : NULL;
	if (clock_only)
		local_time(now_ms, tm);
	return !with_date || read_date(text, tm);
}

bool when_parse(char dst[WHEN_MAX], const char *text, int64_t now_ms)
{
	struct tm tm = {0};
	const char *clock;

	if (!split(text, now_ms, &tm, &clock))
		return false;
	if (clock == NULL)
		return snprintf(dst, WHEN_MAX, "%s", text) < WHEN_MAX;
	tm.tm_hour = number(clock, 2);
	tm.tm_min = number(clock + 3, 2);
	tm.tm_sec = clock[5] == ':' ? number(clock + 6, 2) : 0;
	tm.tm_isdst = -1;
	struct tm wanted = tm;
	if (mktime(&tm) == -1 || tm.tm_hour != wanted.tm_hour || tm.tm_min != wanted.tm_min ||
		tm.tm_sec != wanted.tm_sec)
		return false;
	char zone[8];
	strftime(zone, sizeof(zone), "%z", &tm);
	size_t n = strftime(dst, WHEN_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(dst + n, WHEN_MAX - n, "%.3s:%.2s", zone, zone + 3);
	return true;
}
