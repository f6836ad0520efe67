/* SPDX-License-Identifier: MIT */
/* Instants and dates as clients write them. */
#include "rules/when.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"

static void accepts(const char *text, int64_t expected)
{
	int64_t ms = -1;

	if (!when_parse(bytes_of(text), &ms) || ms != expected)
		fail_msg("%s: got %lld, expected %lld", text, (long long)ms, (long long)expected);
}

static void test_instants(void **state)
{
	(void)state;
	accepts("0", 0);
	accepts("1764493200", INT64_C(1764493200000));
	accepts("1764493200000", INT64_C(1764493200000));
	accepts("99999999999", INT64_C(99999999999000));
	accepts("100000000000", INT64_C(100000000000));
	accepts("2026-11-30T08:55:00Z", INT64_C(1796028900000));
	accepts("2026-11-30t08:55:00z", INT64_C(1796028900000));
	accepts("2026-11-30 09:55:00+01:00", INT64_C(1796028900000));
	accepts("2026-11-30T03:25:00.5-05:30", INT64_C(1796028900500));
	accepts("2026-11-30T08:55:00.1239Z", INT64_C(1796028900123));
	accepts("2024-02-29T00:00:00Z", INT64_C(1709164800000));
}

static void test_refusals(void **state)
{
	static const char *const bad[] = {"", "NaN", "-1", "-0", "1e9", "12abc", "0x10", " 1", "1 ", "+5",
		"1764493200.5", "2026-04-31T00:00:00Z", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
		"2026-00-10T00:00:00Z", "2026-11-30T24:00:00Z", "2026-11-30T08:60:00Z",
		"2026-11-30T08:55:60Z", "2026-11-30T08:55:00", "2026-11-30T08:55:00+1:00",
		"2026-11-30T08:55:00.Z", "2026-11-30T08:55Z", "2026-11-30", "2026-11-30T08:55:00Z ",
		"1969-12-31T23:59:59Z", "99999999999999999999"};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int64_t ms = 42;
		if (when_parse(bytes_of(bad[i]), &ms) || ms != 42)
			fail_msg("'%s' was taken for %lld", bad[i], (long long)ms);
	}
}

static void test_dates(void **state)
{
	int32_t day = 0;
	char text[DATE_TEXT];

	(void)state;
	assert_true(date_parse(BYTES_LIT("1970-01-01"), &day));
	assert_int_equal(day, 0);
	assert_true(date_parse(BYTES_LIT("2026-11-30"), &day));
	assert_int_equal(day, 20787);
	assert_string_equal(date_format(day, text), "2026-11-30");
	assert_false(date_parse(BYTES_LIT("2026-11-31"), &day));
	assert_false(date_parse(BYTES_LIT("2026-1-1"), &day));
	assert_false(date_parse(BYTES_LIT("2026-11-30 "), &day));
}

/* Every day of 400 years goes to text and back. */
static void test_every_day(void **state)
{
	char text[DATE_TEXT];

	(void)state;
	for (int32_t day = 0; day < 146097; day++) {
		int32_t back = -1;
		assert_true(date_parse(bytes_of(date_format(day, text)), &back));
		assert_int_equal(back, day);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_instants),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_dates),
		cmocka_unit_test(test_every_day),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
