/* SPDX-License-Identifier: MIT */
/* persist/migrate.c: what needs no server, and the files of sql/ themselves. */
#include "persist/migrate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static void expect_next(struct bytes *text, const char *statement)
{
	struct bytes got;

	assert_true(migrate_next_statement(text, &got));
	assert_int_equal(got.n, strlen(statement));
	assert_memory_equal(got.p, statement, got.n);
}

static void expect_end(struct bytes text)
{
	struct bytes got;

	assert_false(migrate_next_statement(&text, &got));
}

static void cuts_statements(void **state)
{
	struct bytes text = BYTES_LIT(" -- first; not\nSELECT 1;\n/* and; here */ SELECT ';', \"a\\\";\", "
				      "`x;y` -- tail;\n;SELECT 'it''s;';\n-- end");

	(void)state;
	expect_next(&text, "SELECT 1");
	expect_next(&text, "SELECT ';', \"a\\\";\", `x;y` -- tail;\n");
	expect_next(&text, "SELECT 'it''s;'");
	expect_end(text);
}

static void survives_unfinished_text(void **state)
{
	static const char *const texts[] = {
		"SELECT 'open", "SELECT /* open", "SELECT -- open", "SELECT 'a\\"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct bytes text = bytes_of(texts[i]);
		expect_next(&text, texts[i]);
		expect_end(text);
	}
	expect_end(BYTES_LIT(""));
	expect_end(BYTES_LIT(" \n-- only a comment"));
	expect_end(BYTES_LIT("/* open"));
}

static void a_minus_or_slash_alone_is_no_comment(void **state)
{
	struct bytes text = BYTES_LIT("SELECT 1 - 2 / 3; - 1");

	(void)state;
	expect_next(&text, "SELECT 1 - 2 / 3");
	expect_next(&text, "- 1");
	expect_end(text);
}

static void checksums_are_sha256(void **state)
{
	struct embed_file file = {"0001_x", "abc", 3};
	char hex[65];

	(void)state;
	migrate_checksum(&file, hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(migrate_version(&file), 1);
	file.name = "tables";
	assert_int_equal(migrate_version(&file), 0);
}

static void the_files_are_numbered_in_order(void **state)
{
	(void)state;
	assert_true(migrate_files_count > 0);
	for (size_t i = 0; i < migrate_files_count; i++) {
		assert_int_equal(migrate_version(&migrate_files[i]), i + 1);
		assert_int_equal(strlen(migrate_files[i].data), migrate_files[i].size);
	}
}

/* After a crash in its middle a file runs again from its start, and must bear it. */
static void the_files_may_run_twice(void **state)
{
	static const char *const safe[] = {"CREATE TABLE IF NOT EXISTS ", "CREATE OR REPLACE VIEW ",
		"SET @ddl = IF((SELECT COUNT(*) FROM information_schema.", "PREPARE ddl FROM @ddl",
		"EXECUTE ddl", "DEALLOCATE PREPARE ddl"};
	size_t statements = 0;

	(void)state;
	for (size_t i = 0; i < migrate_files_count; i++) {
		struct bytes text = {migrate_files[i].data, migrate_files[i].size}, statement;
		for (; migrate_next_statement(&text, &statement); statements++) {
			bool ok = false;
			for (size_t k = 0; k < sizeof(safe) / sizeof(safe[0]); k++)
				ok = ok || (statement.n >= strlen(safe[k]) &&
						   memcmp(statement.p, safe[k], strlen(safe[k])) == 0);
			assert_true(ok);
		}
	}
	assert_true(statements >= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_statements),
		cmocka_unit_test(survives_unfinished_text),
		cmocka_unit_test(a_minus_or_slash_alone_is_no_comment),
		cmocka_unit_test(checksums_are_sha256),
		cmocka_unit_test(the_files_are_numbered_in_order),
		cmocka_unit_test(the_files_may_run_twice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
