/* SPDX-License-Identifier: MIT */
/* Texts that are kept: cut between characters, and valid UTF-8 whatever they were. */
#include "rules/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"

#define BAD "\xef\xbf\xbd"

static void keeps(struct bytes text, size_t most, struct bytes expected)
{
	struct buf out = BUF_INIT;

	text_keep(&out, text, most);
	assert_int_equal(out.len, expected.n);
	if (expected.n > 0)
		assert_memory_equal(out.data, expected.p, expected.n);
	buf_release(&out);
}

static void test_cut(void **state)
{
	static const struct {
		const char *text;
		size_t most;
		const char *expected;
	} cases[] = {{"", 10, ""}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""},
		{"a\xc3\xa4z", 4, "a\xc3\xa4z"}, {"a\xc3\xa4z", 3, "a\xc3\xa4"}, {"a\xc3\xa4z", 2, "a"},
		{"\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80"}, {"\xf0\x9f\x98\x80", 3, ""},
		{"line\r\n\tline", 99, "line\r\n\tline"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		keeps(bytes_of(cases[i].text), cases[i].most, bytes_of(cases[i].expected));
	keeps((struct bytes){"a\0b", 3}, 3, (struct bytes){"a\0b", 3});
	keeps((struct bytes){NULL, 0}, 3, (struct bytes){"", 0});
}

static void test_mended(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {{"\xff", BAD}, {"a\x80z", "a" BAD "z"}, {"\xc3", BAD}, {"\xc3z", BAD "z"},
		{"\xc0\xaf", BAD BAD}, {"\xed\xa0\x80", BAD BAD BAD}, {"\xf4\x90\x80\x80", BAD BAD BAD BAD},
		{"ok \xe2\x82", "ok " BAD BAD}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		keeps(bytes_of(cases[i].text), 99, bytes_of(cases[i].expected));
	keeps(bytes_of("\xff\xff"), 5, bytes_of(BAD)); /* the limit is on what is kept */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_mended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
