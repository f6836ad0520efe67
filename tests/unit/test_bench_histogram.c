/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/histogram.h"

static void test_nothing(void **state)
{
	static const struct histogram h;

	(void)state;
	assert_int_equal(histogram_percentile(&h, 50), 0);
}

static void test_small_values_are_exact(void **state)
{
	static struct histogram h;

	(void)state;
	for (int i = 1; i <= 100; i++)
		histogram_add(&h, i);
	assert_int_equal(histogram_percentile(&h, 50), 50);
	assert_int_equal(histogram_percentile(&h, 99), 99);
	assert_int_equal(histogram_percentile(&h, 100), 100);
	assert_int_equal(h.max, 100);
	assert_int_equal(h.sum, 5050);
}

/* Of a million values, from microseconds to minutes, each percentile is at most 1.6 % too high and never too
 * low. */
static void test_large_values_are_near(void **state)
{
	static struct histogram h;

	(void)state;
	for (int64_t i = 1; i <= 1000000; i++)
		histogram_add(&h, i * 60);
	for (int percent = 1; percent <= 100; percent++) {
		int64_t exact = INT64_C(600000) * percent, found = histogram_percentile(&h, percent);
		assert_in_range(found, exact, exact + exact / 60);
	}
}

static void test_beyond_the_last_bucket(void **state)
{
	static struct histogram h;

	(void)state;
	histogram_add(&h, INT64_MAX / 2);
	histogram_add(&h, 1);
	assert_int_equal(histogram_percentile(&h, 50), 1);
	assert_true(histogram_percentile(&h, 100) > INT64_C(1000000000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_small_values_are_exact),
		cmocka_unit_test(test_large_values_are_near),
		cmocka_unit_test(test_beyond_the_last_bucket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
