/* SPDX-License-Identifier: MIT */
/* Durations: what is one, what is none, and that a written one reads as what it was. */
#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"

static void test_read(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {{"0", 0}, {"1", 1000}, {"007", 7000}, {"250ms", 250}, {"30s", 30000}, {"5m", 300000},
		{"5M", 300000}, {"12h", 43200000}, {"7d", 604800000}, {"0.2", 200}, {"0.25s", 250},
		{"1.5m", 90000}, {"1.5ms", 1}, {"0.0009", 0}, {"0.001", 1}, {"0.000000001d", 0},
		{"0.00000002d", 1}, {"1.99999999999999999999", 1999}, {"9223372036854775807ms", INT64_MAX},
		{"9223372036854775.807", INT64_MAX}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t ms = -1;
		assert_true(duration_parse(bytes_of(cases[i].text), &ms));
		assert_int_equal(ms, cases[i].ms);
	}
}

static void test_refused(void **state)
{
	static const char *const bad[] = {"", "s", "ms", ".", ".5", "5.", "5.s", "-1", "+1", " 1", "1 ",
		"1 s", "1x", "1ss", "1sm", "1,5", "1e3", "0x10", "1.2.3", "1m30s", "9223372036854775807",
		"9223372036854775.808", "106751991168d", "99999999999999999999", "\xc2\xb2"};
	const struct bytes cut = {"5s", 1};
	int64_t ms = 42;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(duration_parse(bytes_of(bad[i]), &ms));
	assert_false(duration_parse((struct bytes){"5\0s", 3}, &ms));
	assert_false(duration_parse((struct bytes){NULL, 0}, &ms));
	assert_int_equal(ms, 42);
	assert_true(duration_parse(cut, &ms)); /* what is behind the text is not looked at */
	assert_int_equal(ms, 5000);
}

static void test_written(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {{0, "0s"}, {1, "1ms"}, {999, "999ms"}, {1000, "1s"}, {1001, "1001ms"}, {59000, "59s"},
		{60000, "1m"}, {90000, "90s"}, {3600000, "1h"}, {86400000, "1d"}, {90000000, "25h"},
		{INT64_MAX, "9223372036854775807ms"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf text = BUF_INIT;
		int64_t back = -1;
		duration_format(&text, cases[i].ms);
		assert_string_equal(text.data, cases[i].text);
		assert_true(duration_parse(buf_bytes(&text), &back));
		assert_int_equal(back, cases[i].ms);
		buf_release(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
