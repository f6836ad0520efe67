/* SPDX-License-Identifier: MIT */
/* Times as people read and type them, in a zone with a winter and a summer time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "base/mem.h"
#include "cli/when.h"

#define NOON INT64_C(1796036400000) /* 2026-11-30 12:00:00 +01:00 */

static int in_berlin(void **state)
{
	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	return 0;
}

static void formats(void **state)
{
	char text[WHEN_MAX];

	(void)state;
	assert_string_equal(when_format(text, NOON, "2026-11-30", false), "12:00:00");
	assert_string_equal(when_format(text, NOON + 1, "2026-11-30", true), "12:00:00.001");
	assert_string_equal(when_format(text, NOON - 1, "2026-11-30", true), "11:59:59.999");
	assert_string_equal(
		when_format(text, NOON + 12 * 3600000, "2026-11-30", false), "2026-12-01 00:00:00");
	assert_string_equal(when_format(text, NOON + 999, NULL, false), "2026-11-30 12:00:00");
	assert_string_equal(when_format(text, -1, NULL, true), "1970-01-01 00:59:59.999");
	assert_string_equal(when_date(text, NOON + 12 * 3600000), "2026-12-01");
}

static void durations(void **state)
{
	static const struct {
		int64_t ms;
		const char *expected;
	} samples[] = {{0, "0ms"}, {1, "1ms"}, {999, "999ms"}, {1000, "1s"}, {59999, "59s"}, {60000, "1m00s"},
		{192000, "3m12s"}, {3599999, "59m59s"}, {3600000, "1h00m"}, {32700000, "9h05m"},
		{86400000, "1d00h"}, {180000000, "2d02h"}};
	char text[WHEN_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++)
		assert_string_equal(when_duration(text, samples[i].ms), samples[i].expected);
}

static void parses(void **state)
{
	static const struct {
		const char *text, *expected; /* NULL = no such time */
	} samples[] = {{"08:55", "2026-11-30T08:55:00+01:00"}, {"08:55:07", "2026-11-30T08:55:07+01:00"},
		{"2026-07-01 09:00", "2026-07-01T09:00:00+02:00"},
		{"2026-07-01 09:00:01", "2026-07-01T09:00:01+02:00"}, {"24:00", NULL}, {"08:60", NULL},
		{"2026-04-31 09:00", NULL}, {"2026-02-29 09:00", NULL},
		{"2028-02-29 09:00", "2028-02-29T09:00:00+01:00"},
		{"2026-03-29 02:30", NULL}, /* skipped in spring */
		{"1796036400", "1796036400"}, {"2026-11-30T09:00:00Z", "2026-11-30T09:00:00Z"},
		{"8:55", "8:55"}, {"a text that is longer than any time can be", NULL}};
	char text[WHEN_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		bool parsed = when_parse(text, samples[i].text, NOON);
		assert_int_equal(parsed, samples[i].expected != NULL);
		if (parsed)
			assert_string_equal(text, samples[i].expected);
	}
}

static void dates(void **state)
{
	static const char *const good[] = {"2026-11-30", "2028-02-29"};
	static const char *const bad[] = {"", "2026-11-31", "2026-13-01", "2026-00-10", "2026-1-1",
		"2026-11-30 ", "20261130", "today", "2027-02-29"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(when_is_date(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(when_is_date(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats),
		cmocka_unit_test(durations),
		cmocka_unit_test(parses),
		cmocka_unit_test(dates),
	};
	return cmocka_run_group_tests(tests, in_berlin, NULL);
}
