/* SPDX-License-Identifier: MIT */
#include "rules/when.h"

#include <stddef.h>

#define SECONDS_BELOW INT64_C(100000000000)

/* Days of the proleptic Gregorian calendar, counted in eras of 400 years that begin in March. */
int32_t date_from_civil(int year, int month, int mday)
{
	int y = year - (month <= 2);
	int era = (y >= 0 ? y : y - 399) / 400;
	int of_era = y - era * 400;
	int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + mday - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void date_to_civil(int32_t day, int *ret_year, int *ret_month, int *ret_mday)
{
	int z = day + 719468;
	int era = (z >= 0 ? z : z - 146096) / 146097;
	int of_era = z - era * 146097;
	int year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int of_year = of_era - (365 * year + year / 4 - year / 100);
	int m = (5 * of_year + 2) / 153;

	*ret_mday = of_year - (153 * m + 2) / 5 + 1;
	*ret_month = m < 10 ? m + 3 : m - 9;
	*ret_year = year + era * 400 + (*ret_month <= 2);
}

const char *date_format(int32_t day, char text[DATE_TEXT])
{
	int year, month, mday;

	/* By hand: it is part of every key of a day, and printf would be half the cost of making one. */
	date_to_civil(day, &year, &month, &mday);
	int parts[8] = {year / 1000 % 10, year / 100 % 10, year / 10 % 10, year % 10, month / 10, month % 10,
		mday / 10, mday % 10};
	for (int i = 0, at = 0; i < 8; i++) {
		if (i == 4 || i == 6)
			text[at++] = '-';
		text[at++] = (char)('0' + parts[i]);
	}
	text[DATE_TEXT - 1] = '\0';
	return text;
}

/* A cursor over text; `ok` turns false at the first thing that is not as expected and stays so. */
struct scan {
	struct bytes rest;
	bool ok;
};

static void expect(struct scan *s, char c)
{
	if (!s->ok || s->rest.n == 0 || s->rest.p[0] != c) {
		s->ok = false;
		return;
	}
	s->rest.p++;
	s->rest.n--;
}

static int digits(struct scan *s, size_t count, int min, int max)
{
	int value = 0;

	if (!s->ok || s->rest.n < count) {
		s->ok = false;
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		char c = s->rest.p[i];
		if (c < '0' || c > '9')
			s->ok = false;
		value = value * 10 + (c - '0');
	}
	s->rest.p += count;
	s->rest.n -= count;
	if (value < min || value > max)
		s->ok = false;
	return value;
}

static int32_t scan_date(struct scan *s)
{
	int year = digits(s, 4, 1970, 9999);
	expect(s, '-');
	int month = digits(s, 2, 1, 12);
	expect(s, '-');
	int mday = digits(s, 2, 1, 31);
	if (!s->ok)
		return 0;

	int32_t day = date_from_civil(year, month, mday);
	int y, m, d;
	date_to_civil(day, &y, &m, &d);
	if (d != mday)
		s->ok = false;
	return day;
}

bool date_parse(struct bytes text, int32_t *ret_day)
{
	struct scan s = {text, true};
	int32_t day = scan_date(&s);

	if (!s.ok || s.rest.n != 0)
		return false;
	*ret_day = day;
	return true;
}

/* The digits behind the point; milliseconds count, finer ones are cut. */
static int scan_fraction(struct scan *s)
{
	int ms = 0, seen = 0;

	if (s->rest.n == 0 || s->rest.p[0] != '.')
		return 0;
	expect(s, '.');
	while (s->ok && s->rest.n > 0 && s->rest.p[0] >= '0' && s->rest.p[0] <= '9') {
		int digit = digits(s, 1, 0, 9);
		if (seen++ < 3)
			ms = ms * 10 + digit;
	}
	if (seen == 0)
		s->ok = false;
	for (; seen < 3; seen++)
		ms *= 10;
	return ms;
}

static int scan_offset_minutes(struct scan *s)
{
	if (s->rest.n > 0 && (s->rest.p[0] == 'Z' || s->rest.p[0] == 'z')) {
		expect(s, s->rest.p[0]);
		return 0;
	}
	int sign = s->rest.n > 0 && s->rest.p[0] == '-' ? -1 : 1;
	expect(s, sign < 0 ? '-' : '+');
	int hours = digits(s, 2, 0, 23);
	expect(s, ':');
	return sign * (hours * 60 + digits(s, 2, 0, 59));
}

static bool parse_rfc3339(struct bytes text, int64_t *ret_ms)
{
	struct scan s = {text, true};

	int32_t day = scan_date(&s);
	if (s.rest.n > 0 && (s.rest.p[0] == 't' || s.rest.p[0] == ' '))
		expect(&s, s.rest.p[0]);
	else
		expect(&s, 'T');
	int hour = digits(&s, 2, 0, 23);
	expect(&s, ':');
	int minute = digits(&s, 2, 0, 59);
	expect(&s, ':');
	int second = digits(&s, 2, 0, 59);
	int ms = scan_fraction(&s);
	int offset = scan_offset_minutes(&s);
	if (!s.ok || s.rest.n != 0)
		return false;
	*ret_ms = (((int64_t)day * 24 + hour) * 60 + minute - offset) * 60000 + second * 1000 + ms;
	return *ret_ms >= 0;
}

bool when_parse(struct bytes text, int64_t *ret_ms)
{
	int64_t n;

	if (bytes_to_i64(text, &n)) {
		if (n < 0 || text.p[0] == '-')
			return false;
		*ret_ms = n < SECONDS_BELOW ? n * 1000 : n;
		return true;
	}
	return parse_rfc3339(text, ret_ms);
}
