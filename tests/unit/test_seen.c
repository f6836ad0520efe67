/* SPDX-License-Identifier: MIT */
#include "persist/seen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void test_a_text_is_new_once(void **state)
{
	struct seen *s = seen_new();

	(void)state;
	assert_false(seen_has(s, BYTES_LIT("dept:1")));
	assert_true(seen_add(s, BYTES_LIT("dept:1")));
	assert_false(seen_add(s, BYTES_LIT("dept:1")));
	assert_true(seen_has(s, BYTES_LIT("dept:1")));
	assert_false(seen_has(s, BYTES_LIT("dept:2")));
	assert_true(seen_add(s, BYTES_LIT("")));
	assert_true(seen_has(s, BYTES_LIT("")));
	seen_free(s);
	seen_free(NULL);
}

/* What is alike, many times over the first size of a table. */
static void test_very_many(void **state)
{
	struct seen *s = seen_new();
	char text[24];

	(void)state;
	for (int i = 0; i < 300000; i++) {
		int n = snprintf(text, sizeof(text), "dept:%d", i);
		assert_true(seen_add(s, (struct bytes){text, (size_t)n}));
	}
	for (int i = 0; i < 300000; i++) {
		int n = snprintf(text, sizeof(text), "dept:%d", i);
		assert_true(seen_has(s, (struct bytes){text, (size_t)n}));
		text[0] = 'D';
		assert_false(seen_has(s, (struct bytes){text, (size_t)n}));
	}
	seen_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_text_is_new_once),
		cmocka_unit_test(test_very_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
