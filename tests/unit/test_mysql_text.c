/* SPDX-License-Identifier: MIT */
/* persist/mysql_text.c: values as SQL text. */
#include "persist/mysql_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

static void expect_quoted(struct bytes in, const char *out)
{
	struct buf b = BUF_INIT;

	mysql_add_quoted(&b, in);
	assert_string_equal(b.data, out);
	assert_int_equal(b.len, strlen(out));
	buf_release(&b);
}

static void expect_datetime(int64_t ms, const char *out)
{
	struct buf b = BUF_INIT;

	mysql_add_datetime(&b, ms);
	assert_string_equal(b.data, out);
	buf_release(&b);
}

static void quotes_text(void **state)
{
	(void)state;
	expect_quoted(BYTES_LIT(""), "''");
	expect_quoted((struct bytes){NULL, 0}, "''");
	expect_quoted(BYTES_LIT("e-1.x@y"), "'e-1.x@y'");
	expect_quoted(BYTES_LIT("O'Brien"), "'O''Brien'");
	expect_quoted(BYTES_LIT("\\' OR 1=1 -- "), "'\\\\'' OR 1=1 -- '");
	expect_quoted(BYTES_LIT("a\0b"), "'a\\0b'");
	expect_quoted(BYTES_LIT("line\nend\t\x1a"), "'line\nend\t\x1a'");
	expect_quoted(BYTES_LIT("王小明 'Ming'"), "'王小明 ''Ming'''");
}

static void quotes_bytes_that_are_no_text_as_hex(void **state)
{
	(void)state;
	expect_quoted(BYTES_LIT("\xff"), "x'ff'");
	expect_quoted(BYTES_LIT("'\xc3\x28\\"), "x'27c3285c'");
	expect_quoted(BYTES_LIT("\xbf\x27 OR 1=1"), "x'bf27204f5220313d31'");
}

/* Reads a literal as the server would: the inverse of mysql_add_quoted(). */
static size_t unquote(const char *s, size_t n, unsigned char *out)
{
	size_t len = 0;

	assert_true(n >= 2 && s[n - 1] == '\'');
	if (s[0] == 'x') {
		for (size_t i = 2; i + 2 < n + 1 && s[i] != '\''; i += 2) {
			char pair[3] = {s[i], s[i + 1], '\0'};
			out[len++] = (unsigned char)strtol(pair, NULL, 16);
		}
		return len;
	}
	assert_int_equal(s[0], '\'');
	for (size_t i = 1; i < n - 1; i++) {
		if (s[i] == '\'')
			assert_int_equal(s[++i], '\'');
		else if (s[i] == '\\' && s[++i] == '0')
			out[len++] = '\0';
		if (s[i - 1] != '\\' || s[i] != '0')
			out[len++] = (unsigned char)s[i];
	}
	return len;
}

static void every_byte_comes_back(void **state)
{
	unsigned char back[600], all[256];
	struct buf b = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < 256; i++) {
		unsigned char c = (unsigned char)i;
		buf_clear(&b);
		mysql_add_quoted(&b, (struct bytes){(const char *)&c, 1});
		assert_int_equal(unquote(b.data, b.len, back), 1);
		assert_int_equal(back[0], c);
		all[i] = c;
	}
	buf_clear(&b);
	mysql_add_quoted(&b, (struct bytes){(const char *)all, sizeof(all)});
	assert_int_equal(unquote(b.data, b.len, back), 256);
	assert_memory_equal(back, all, 256);
	/* The half without high bytes takes the other form. */
	buf_clear(&b);
	mysql_add_quoted(&b, (struct bytes){(const char *)all, 128});
	assert_int_equal(b.data[0], '\'');
	assert_int_equal(b.len, 2 + 128 + 3);
	buf_release(&b);
}

static void writes_datetimes(void **state)
{
	(void)state;
	expect_datetime(-1, "NULL");
	expect_datetime(INT64_MIN, "NULL");
	expect_datetime(0, "'1970-01-01 00:00:00.000'");
	expect_datetime(951782399999, "'2000-02-28 23:59:59.999'");
	expect_datetime(951782400000, "'2000-02-29 00:00:00.000'");
	expect_datetime(4107542400000, "'2100-03-01 00:00:00.000'");
	expect_datetime(1772355600001, "'2026-03-01 09:00:00.001'");
	expect_datetime(253402300799999, "'9999-12-31 23:59:59.999'");
	expect_datetime(253402300800000, "'out of range'");
	expect_datetime(INT64_MAX, "'out of range'");
}

static void agrees_with_libc_on_every_day(void **state)
{
	char expected[40];

	(void)state;
	for (int64_t day = 0; day < 80000; day++) {
		time_t t = (time_t)(day * 86400 + day % 86400);
		struct tm tm;
		gmtime_r(&t, &tm);
		strftime(expected, sizeof(expected), "'%Y-%m-%d %H:%M:%S.007'", &tm);
		expect_datetime((int64_t)t * 1000 + 7, expected);
	}
}

/* A bound wide enough for a sanitizer build on a busy machine; the plain build takes about 20 ms. */
static void a_hundred_thousand_rows_are_quick(void **state)
{
	struct buf b = BUF_INIT;
	int64_t start = clock_mono_us();

	(void)state;
	for (int i = 0; i < 100000; i++) {
		if (i % 1000 == 0)
			buf_clear(&b);
		mysql_add_quoted(&b, BYTES_LIT("employee-012345"));
		mysql_add_quoted(&b, BYTES_LIT("dept-017"));
		mysql_add_datetime(&b, 1772355600000 + i);
		mysql_add_datetime(&b, 1772388000000 + i);
		mysql_add_quoted(&b, BYTES_LIT("I1772355600000,O1772388000000"));
	}
	int64_t took = clock_mono_us() - start;
	print_message("100,000 rows: %lld us\n", (long long)took);
	assert_true(took < 1000000);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quotes_text),
		cmocka_unit_test(quotes_bytes_that_are_no_text_as_hex),
		cmocka_unit_test(every_byte_comes_back),
		cmocka_unit_test(writes_datetimes),
		cmocka_unit_test(agrees_with_libc_on_every_day),
		cmocka_unit_test(a_hundred_thousand_rows_are_quick),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
