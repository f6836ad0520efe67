/* SPDX-License-Identifier: MIT */
/* persist/mysql_error.c: from error numbers to outcomes. */
#include "persist/mysql_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static void the_table_is_sorted_and_found(void **state)
{
	size_t count;
	const struct sql_code *codes = sql_codes(&count);

	(void)state;
	assert_true(count > 50);
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			assert_true(codes[i - 1].code < codes[i].code);
		assert_int_equal(sql_classify(codes[i].code), codes[i].outcome);
		assert_int_not_equal(codes[i].outcome, SQL_OK);
		assert_int_not_equal(codes[i].outcome, SQL_OTHER);
	}
}

static void the_ones_that_decide(void **state)
{
	static const struct sql_code expected[] = {
		{0, SQL_OK},
		{2006, SQL_LOST},
		{2013, SQL_LOST},
		{2055, SQL_LOST},
		{1927, SQL_LOST},
		{1053, SQL_LOST},
		{4031, SQL_LOST},
		{1213, SQL_RETRY},
		{1205, SQL_RETRY},
		{1020, SQL_RETRY},
		{1406, SQL_DATA},
		{1264, SQL_DATA},
		{1366, SQL_DATA},
		{1292, SQL_DATA},
		{1048, SQL_DATA},
		{1040, SQL_BUSY},
		{1203, SQL_BUSY},
		{1226, SQL_BUSY},
		{1290, SQL_READONLY},
		{1836, SQL_READONLY},
		{1146, SQL_SCHEMA},
		{1054, SQL_SCHEMA},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(sql_classify(expected[i].code), expected[i].outcome);
}

static void unknown_numbers(void **state)
{
	(void)state;
	assert_int_equal(sql_classify(2999), SQL_LOST);
	assert_int_equal(sql_classify(2026), SQL_LOST);
	assert_int_equal(sql_classify(5012), SQL_LOST);
	assert_int_equal(sql_classify(1), SQL_OTHER);
	assert_int_equal(sql_classify(1105), SQL_OTHER);
	assert_int_equal(sql_classify(3000), SQL_OTHER);
	assert_int_equal(sql_classify(UINT32_MAX), SQL_OTHER);
}

static void every_outcome_has_a_name(void **state)
{
	(void)state;
	for (int a = SQL_OK; a <= SQL_OTHER; a++) {
		assert_non_null(sql_outcome_name((enum sql_outcome)a));
		for (int b = SQL_OK; b < a; b++)
			assert_string_not_equal(
				sql_outcome_name((enum sql_outcome)a), sql_outcome_name((enum sql_outcome)b));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_sorted_and_found),
		cmocka_unit_test(the_ones_that_decide),
		cmocka_unit_test(unknown_numbers),
		cmocka_unit_test(every_outcome_has_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
