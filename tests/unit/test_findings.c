/* SPDX-License-Identifier: MIT */
#include "persist/findings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static bool add(struct findings *f, const char *code, const char *id, const char *detail, bool repaired)
{
	struct finding finding = {bytes_of(code), bytes_of(id), BYTES_LIT(""), bytes_of(detail), repaired};

	return findings_add(f, &finding);
}

static void assert_count(const struct findings *f, int64_t count, int64_t left)
{
	assert_int_equal(findings_count(f), count);
	assert_int_equal(findings_left(f), left);
}

static void test_each_counts_once(void **state)
{
	struct findings *f = findings_new();
	struct finding list[4];
	size_t codes;

	(void)state;
	assert_true(add(f, "SUB", "2", "7 5", false));
	assert_false(add(f, "SUB", "2", "7 5", false));
	assert_true(add(f, "SUB", "2", "7 6", true));
	assert_true(add(f, "DSMISS", "2", "a|b", false));
	assert_count(f, 3, 2);
	const struct finding_code *code = findings_codes(f, &codes);
	assert_int_equal(codes, 2);
	assert_string_equal(code[0].name, "SUB");
	assert_int_equal(code[0].count, 2);
	assert_int_equal(findings_list(f, list, 4), 3);
	assert_int_equal(findings_list(f, list, 2), 2);
	assert_true(list[1].repaired && !list[0].repaired);
	assert_int_equal(findings_list(f, list, 4), 3);
	assert_true(bytes_eq(list[2].code, BYTES_LIT("DSMISS")) && bytes_eq(list[2].id, BYTES_LIT("2")) &&
		    bytes_eq(list[2].detail, BYTES_LIT("a|b")));
	findings_free(f);
}

static void test_what_a_round_does_not_see_is_repaired(void **state)
{
	struct findings *f = findings_new();

	(void)state;
	add(f, "CYCLE", "2", "4", false);
	add(f, "CYCLE", "3", "2", false);
	add(f, "SUB", "1", "2 3", true);
	findings_end_round(f);
	assert_count(f, 3, 2);
	add(f, "CYCLE", "2", "4", true);
	add(f, "NAMEDUP", "5", "6", false);
	assert_count(f, 4, 2);
	findings_end_round(f);
	assert_count(f, 4, 1);
	add(f, "SUB", "1", "2 3", false);
	assert_count(f, 4, 2);
	findings_end_round(f);
	assert_count(f, 4, 1);
	findings_free(f);
}

/* More than are remembered: the numbers are right all the same. */
static void test_very_many(void **state)
{
	struct findings *f = findings_new();
	char id[16];

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 30000; i++) {
			snprintf(id, sizeof(id), "%d", i);
			add(f, "NAMEDUP", id, "1", false);
		}
		assert_count(f, 30000, 30000);
		findings_end_round(f);
		assert_count(f, 30000, 30000);
	}
	for (int i = 0; i < 30000; i++) {
		snprintf(id, sizeof(id), "%d", i);
		add(f, "SUB", id, "1", true);
	}
	findings_end_round(f);
	assert_count(f, 60000, 0);
	findings_free(f);
}

static void test_more_codes_than_there_are(void **state)
{
	struct findings *f = findings_new();
	char code[32];
	size_t codes;

	(void)state;
	for (int i = 0; i < FINDING_CODES_MAX * 2; i++) {
		snprintf(code, sizeof(code), "CODE%d", i);
		add(f, code, "1", "", false);
	}
	findings_codes(f, &codes);
	assert_int_equal(codes, FINDING_CODES_MAX);
	assert_count(f, FINDING_CODES_MAX * 2, FINDING_CODES_MAX * 2);
	findings_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_counts_once),
		cmocka_unit_test(test_what_a_round_does_not_see_is_repaired),
		cmocka_unit_test(test_very_many),
		cmocka_unit_test(test_more_codes_than_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
