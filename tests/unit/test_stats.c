/* SPDX-License-Identifier: MIT */
/* Percentiles that are near enough, and errors counted by their code. */
#include "daemon/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void expect_near(int64_t got, int64_t wanted)
{
	assert_true(got >= wanted - wanted / 15 - 1 && got <= wanted + wanted / 15 + 1);
}

static void test_percentiles(void **state)
{
	struct histogram *h = calloc(1, sizeof(*h));

	(void)state;
	assert_int_equal(histogram_percentile(h, 0.5), 0);
	for (int64_t us = 1; us <= 100000; us++)
		histogram_add(h, us);
	expect_near(histogram_percentile(h, 0.5), 50000);
	expect_near(histogram_percentile(h, 0.99), 99000);
	expect_near(histogram_percentile(h, 0.999), 99900);
	assert_true(histogram_percentile(h, 1) <= 100000);
	assert_int_equal(h->max, 100000);
	free(h);
}

/* Every duration falls in a bucket whose middle is at most 7 % away. */
static void test_one_value(void **state)
{
	(void)state;
	for (int64_t us = 0; us < (int64_t)1 << 31; us += us / 3 + 1) {
		struct histogram h = {0};
		histogram_add(&h, us);
		histogram_add(&h, us);
		expect_near(histogram_percentile(&h, 0.5), us);
	}
}

static void test_odd_values(void **state)
{
	struct histogram h = {0};

	(void)state;
	histogram_add(&h, -5); /* a clock that stepped */
	histogram_add(&h, INT64_MAX);
	assert_int_equal(h.count, 2);
	assert_true(histogram_percentile(&h, 1) > 0);
}

static void test_errors_by_code(void **state)
{
	struct buf out = BUF_INIT;

	(void)state;
	stats_init(2);
	stats_error(BYTES_LIT("-ERR wrong"));
	stats_error(BYTES_LIT("-ERR other"));
	stats_call(1, 10, BYTES_LIT("-NOTREADY starting"));
	stats_call(1, 10, BYTES_LIT(""));
	stats_write_errors(&out, NULL);
	assert_string_equal(out.data, "errorstat_ERR:count=2\r\nerrorstat_NOTREADY:count=1\r\n");
	assert_int_equal(stats.commands, 2);
	buf_release(&out);
	stats_release();
}

/* Codes come from handlers, but a list without a bound is a list without a bound. */
static void test_many_codes(void **state)
{
	struct buf out = BUF_INIT;
	char code[] = "-AAX";

	(void)state;
	stats_init(1);
	for (int i = 0; i < 600; i++) {
		code[1] = (char)('A' + i / 26);
		code[2] = (char)('A' + i % 26);
		stats_error(bytes_of(code));
	}
	stats_write_errors(&out, NULL);
	assert_non_null(strstr(out.data, "errorstat_OTHER:count=577\r\n"));
	buf_release(&out);
	stats_release();
}

static void test_rate(void **state)
{
	(void)state;
	stats_init(1);
	stats_tick(1000000);
	stats.commands = 3000;
	stats_tick(2000000);
	assert_int_equal(stats_rate(), 3000);
	stats_tick(2100000); /* a short tick does not make a wild rate */
	assert_int_equal(stats_rate(), 3000 * 1000000LL / 1100000);
	stats_release();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_one_value),
		cmocka_unit_test(test_odd_values),
		cmocka_unit_test(test_errors_by_code),
		cmocka_unit_test(test_many_codes),
		cmocka_unit_test(test_rate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
