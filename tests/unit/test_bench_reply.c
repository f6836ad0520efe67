/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "bench/reply.h"

static const char *const whole[] = {"+OK\r\n", "-ERR no\r\n", ":42\r\n", "_\r\n", "#t\r\n", "$-1\r\n",
	"$0\r\n\r\n", "$4\r\na\r\nb\r\n", "*-1\r\n", "*0\r\n", "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n",
	"%1\r\n+a\r\n%1\r\n+b\r\n:1\r\n"};

static void test_length_of_whole_replies(void **state)
{
	char text[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
		int n = snprintf(text, sizeof(text), "%s+next\r\n", whole[i]);
		assert_int_equal(reply_length((struct bytes){text, (size_t)n}), strlen(whole[i]));
	}
}

static void test_every_cut_needs_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
		for (size_t n = 0; n < strlen(whole[i]); n++)
			assert_int_equal(reply_length((struct bytes){whole[i], n}), 0);
	}
}

static void test_malformed(void **state)
{
	static const char *const wrong[] = {
		"hello\r\n", "\r\n", "$x\r\n", "*-2\r\n", "+no return\n", "*1\r\n?\r\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_true(reply_length(bytes_of(wrong[i])) == REPLY_MALFORMED);
}

static void check_field(const char *reply, const char *field, const char *expected)
{
	struct bytes value;

	assert_true(reply_field(bytes_of(reply), bytes_of(field), &value));
	assert_true(bytes_eq(value, bytes_of(expected)));
}

static void test_fields(void **state)
{
	const char *flat = "*6\r\n$2\r\nid\r\n$2\r\ne1\r\n$2\r\nin\r\n$-1\r\n$9\r\nduplicate\r\n:0\r\n";
	const char *map = "%2\r\n+a\r\n*2\r\n:1\r\n:2\r\n+b\r\n#t\r\n";
	struct bytes value;

	(void)state;
	check_field(flat, "id", "e1");
	check_field(flat, "in", "null");
	check_field(flat, "duplicate", "0");
	check_field(map, "b", "t");
	assert_false(reply_field(bytes_of(flat), BYTES_LIT("e1"), &value));
	assert_false(reply_field(BYTES_LIT("+OK\r\n"), BYTES_LIT("id"), &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_length_of_whole_replies),
		cmocka_unit_test(test_every_cut_needs_more),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
