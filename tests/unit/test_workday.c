/* SPDX-License-Identifier: MIT */
/* Work dates in zones with and without daylight saving, at their boundaries to the millisecond. */
#include "rules/workday.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rules/when.h"

#define HOUR INT64_C(3600000)

static int64_t at(const char *text)
{
	int64_t ms = -1;

	assert_true(when_parse(bytes_of(text), &ms));
	return ms;
}

static const char *day_of(const char *text)
{
	static char date[DATE_TEXT];

	return date_format(workday_of(at(text)), date);
}

static int32_t day(const char *text)
{
	int32_t d = 0;

	assert_true(date_parse(bytes_of(text), &d));
	return d;
}

static int setup(void **state)
{
	(void)state;
	workday_set_start(4 * HOUR);
	workday_set_shift(9 * HOUR, 18 * HOUR, 30000);
	return 0;
}

static void test_boundary(void **state)
{
	(void)state;
	assert_true(workday_set_zone("Asia/Shanghai"));
	assert_string_equal(day_of("2026-11-30T03:59:59.999+08:00"), "2026-11-29");
	assert_string_equal(day_of("2026-11-30T04:00:00.000+08:00"), "2026-11-30");
	assert_string_equal(day_of("2026-12-01T03:59:59.999+08:00"), "2026-11-30");
	assert_string_equal(day_of("2026-12-01T00:05:00+08:00"), "2026-11-30");
}

/* 23 and 25 hours, and a change of the clock within the day. */
static void test_daylight_saving(void **state)
{
	(void)state;
	assert_true(workday_set_zone("Europe/Berlin"));
	int32_t spring = day("2026-03-28"), autumn = day("2026-10-24");
	assert_int_equal(workday_end(spring) - workday_begin(spring), 23 * HOUR);
	assert_int_equal(workday_end(autumn) - workday_begin(autumn), 25 * HOUR);
	assert_int_equal(workday_end(spring), workday_begin(spring + 1));
	assert_int_equal(workday_at(spring + 1, 9 * HOUR), at("2026-03-29T09:00:00+02:00"));
	assert_string_equal(day_of("2026-03-29T03:15:00+02:00"), "2026-03-28");
	assert_int_equal(workday_utc_offset(at("2026-03-29T01:49:00+01:00")), 60);
	assert_int_equal(workday_utc_offset(at("2026-03-29T03:15:00+02:00")), 120);
	/* The instants subtract, whatever the clock on the wall did. */
	assert_int_equal(at("2026-03-29T03:15:00+02:00") - at("2026-03-29T01:49:00+01:00"), 26 * 60000);
}

/* A zone whose clock skipped midnight. */
static void test_midnight_skipped(void **state)
{
	(void)state;
	assert_true(workday_set_zone("America/Asuncion"));
	assert_string_equal(day_of("2024-04-07T23:30:00-04:00"), "2024-04-07");
	assert_string_equal(day_of("2024-10-06T12:00:00-03:00"), "2024-10-06");
}

/* A local time that comes twice, when clocks are put back, is its first instant, whatever was asked. */
static void test_comes_twice(void **state)
{
	static const struct {
		const char *zone, *day, *first;
		int64_t start;
	} twice[] = {
		{"Europe/Berlin", "2026-10-25", "2026-10-25T02:30:00+02:00", 5 * HOUR / 2},
		{"America/Havana", "2026-11-01", "2026-11-01T00:30:00-04:00", HOUR / 2},
		{"America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++) {
		assert_true(workday_set_zone(twice[i].zone));
		workday_set_start(twice[i].start);
		int32_t d = day(twice[i].day);
		int64_t first = at(twice[i].first);
		workday_begin(day("2026-07-01"));
		assert_int_equal(workday_begin(d), first);
		workday_begin(day("2026-01-01"));
		assert_int_equal(workday_begin(d), first);
		assert_int_equal(workday_end(d - 1), first);
		assert_int_equal(workday_of(first - 1), d - 1);
		assert_int_equal(workday_of(first), d);
		assert_int_equal(workday_of(first + HOUR), d);
	}
}

static void test_shift(void **state)
{
	(void)state;
	assert_true(workday_set_zone("UTC"));
	struct shift shift = workday_shift(day("2026-11-30"));
	assert_int_equal(shift.start, at("2026-11-30T09:00:00Z"));
	assert_int_equal(shift.end, at("2026-11-30T18:00:00Z"));
	/* A time before day_start lies on the next calendar day. */
	assert_int_equal(workday_at(day("2026-11-30"), 1 * HOUR), at("2026-12-01T01:00:00Z"));
	workday_set_shift(8 * HOUR, 17 * HOUR, 0);
	assert_int_equal(workday_shift(day("2026-11-30")).start, at("2026-11-30T08:00:00Z"));
}

static void test_unknown_zone(void **state)
{
	(void)state;
	assert_false(workday_set_zone("Europe/Atlantis"));
	assert_false(workday_set_zone("../../../etc/passwd"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_boundary, setup),
		cmocka_unit_test_setup(test_daylight_saving, setup),
		cmocka_unit_test_setup(test_midnight_skipped, setup),
		cmocka_unit_test_setup(test_comes_twice, setup),
		cmocka_unit_test_setup(test_shift, setup),
		cmocka_unit_test_setup(test_unknown_zone, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
