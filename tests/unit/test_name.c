/* SPDX-License-Identifier: MIT */
/* Names as people compare them: normal form, case, length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/mem.h"
#include "rules/name.h"

static char *folded(const char *name)
{
	struct buf b = BUF_INIT;

	name_fold(&b, bytes_of(name));
	return buf_take(&b);
}

static void assert_folds(const char *name, const char *expected)
{
	char *fold = folded(name);

	assert_string_equal(fold, expected);
	free(fold);
}

static void two_spellings_are_one_name(void **state)
{
	struct buf b = BUF_INIT;

	(void)state;
	assert_true(name_normalise(&b, bytes_of("Cafe\xcc\x81"))); /* e and a combining acute */
	assert_string_equal(b.data, "Caf\xc3\xa9");
	buf_clear(&b);
	assert_true(name_normalise(&b, bytes_of("Caf\xc3\xa9")));
	assert_string_equal(b.data, "Caf\xc3\xa9");
	buf_release(&b);
}

static void case_does_not_matter(void **state)
{
	(void)state;
	assert_folds("Sales & R2D2", "sales & r2d2");
	assert_folds("M\xc3\x9cNCHEN", "m\xc3\xbcnchen");
	assert_folds("STRASSE", "strasse");
	assert_folds("Stra\xc3\x9f\x65", "strasse"); /* sharp s */
	assert_folds("\xce\xa3\xce\x8a\xce\xa3\xce\xa5\xce\xa6\xce\x9f\xce\xa3",
		"\xcf\x83\xce\xaf\xcf\x83\xcf\x85\xcf\x86\xce\xbf\xcf\x83");  /* a final sigma is a sigma */
	assert_folds("\xe9\x94\x80\xe5\x94\xae", "\xe9\x94\x80\xe5\x94\xae"); /* no case at all */
	assert_folds("", "");
}

/* Every ASCII name folds to its lower case: the scripts in Redis count on it. */
static void ascii_folds_to_lower_case(void **state)
{
	char name[2] = "", expected[2] = "";

	(void)state;
	for (int c = 0x20; c < 0x7f; c++) {
		name[0] = (char)c;
		expected[0] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
		assert_folds(name, expected);
	}
}

static void what_does_not_fit_is_refused(void **state)
{
	struct buf b = BUF_INIT;
	char name[NAME_MAX_BYTES + 2];

	(void)state;
	/* U+FB2C is three bytes and has six in normal form C. */
	for (size_t i = 0; i < NAME_MAX_BYTES; i++)
		name[i] = "\xef\xac\xac"[i % 3];
	name[NAME_MAX_BYTES] = '\0';
	assert_false(name_normalise(&b, bytes_of(name)));
	assert_int_equal(b.len, 0);
	assert_true(name_normalise(&b, (struct bytes){name, 120}));
	assert_int_equal(b.len, 240);
	/* The longest fold: U+0390, two bytes, becomes six, and back in normal form two. */
	buf_clear(&b);
	for (size_t i = 0; i < NAME_MAX_BYTES - 1; i++)
		name[i] = "\xce\x90"[i % 2];
	name_fold(&b, (struct bytes){name, NAME_MAX_BYTES - 1});
	assert_true(b.len > 0);
	buf_release(&b);
}

static void invalid_text_has_no_form(void **state)
{
	struct buf b = BUF_INIT;

	(void)state;
	assert_false(name_normalise(&b, bytes_of("\xff\xfe")));
	assert_int_equal(b.len, 0);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_spellings_are_one_name),
		cmocka_unit_test(case_does_not_matter),
		cmocka_unit_test(ascii_folds_to_lower_case),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(invalid_text_has_no_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
