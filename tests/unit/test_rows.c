/* SPDX-License-Identifier: MIT */
/* Rows of an import file: the head line in any order, and what is wrong with a row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/rows.h"

/* `LINE:kind id parent name manager;` for a row, `LINE!kind first word;` for an error. */
static int on_row(const struct row *row, void *arg)
{
	struct buf *out = arg;
	const struct bytes texts[] = {row->id, row->parent, row->name, row->manager};

	buf_addf(out, "%u:%c%s", (unsigned)row->line, "DEM?"[row->kind], row -> retired ? "-" : "");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		buf_add_char(out, ' ');
		buf_add_bytes(out, texts[i]);
	}
	buf_add_char(out, ';');
	return 0;
}

static int on_error(const struct row *row, const char *message, void *arg)
{
	buf_addf(arg, "%u!%c %.*s;", (unsigned)row->line, "DEM?"[row->kind],
		(int)strcspn(message, ":0123456789"), message);
	return 0;
}

static const struct rows_events events = {on_row, on_error};

static void expect_from(const char *text, off_t start, int result, const char *expected)
{
	struct buf out = BUF_INIT;
	FILE *f = tmpfile();

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fflush(f), 0);
	buf_add_str(&out, "");
	assert_int_equal(rows_read(fileno(f), start, &events, &out), result);
	assert_string_equal(out.data, expected);
	fclose(f);
	buf_release(&out);
}

static void expect(const char *text, int result, const char *expected)
{
	expect_from(text, 0, result, expected);
}

static void columns_in_any_order(void **state)
{
	(void)state;
	expect("kind,id,parent,name,manager\ndepartment,D1,,Sales,E1\nemployee,E1,D1,\"Ada, L\",\n", ROWS_OK,
		"2:D D1  Sales E1;3:E E1 D1 Ada, L ;");
	expect("NAME,Id,kind\nAda,E.1@x,Employee\n", ROWS_OK, "2:E E.1@x  Ada ;");
	expect_from("junkkind,id\nemployee,E1\n", 4, ROWS_OK, "2:E E1   ;");
}

static void bad_heads(void **state)
{
	(void)state;
	expect("", ROWS_NO_HEAD, "1!? no head line;");
	expect("\n\n", ROWS_NO_HEAD, "1!? no head line;");
	expect("employee,E1,D1\n", ROWS_NO_HEAD, "1!? column ;");
	expect("kind,id,id\n", ROWS_NO_HEAD, "1!? column ;");
	expect("kind,name\n", ROWS_NO_HEAD, "1!? the head line lacks the column kind or id;");
	expect("kind,\"id\n", ROWS_NO_HEAD, "1!? the quote that opens here is never closed;");
}

static void bad_rows(void **state)
{
	(void)state;
	expect("kind,id,parent,name,manager\n"
	       "team,D1,,,\n"
	       "department,D.1,,,\n"
	       "employee,E 1,,,\n"
	       "employee,,,,\n"
	       "employee,E1,D/1,,\n"
	       "employee,E1,,\xff,\n"
	       "employee,E1,,a\tb,\n"
	       "employee,E1,,,E2\n"
	       "department,D1,,,E 2\n"
	       "employee,E1\n"
	       "employee,E1,,,,\n"
	       "employee,\"E1\"x,,,\n"
	       "employee,E1,,,\n",
		ROWS_OK,
		"2!? kind;3!D id;4!E id;5!E id;6!E parent;7!E name;8!E name;9!E manager;10!D manager;"
		"11!? expected ;12!? expected ;13!? text behind the closing quote;14:E E1   ;");
}

static void members_and_states(void **state)
{
	(void)state;
	expect("kind,id,parent,name,manager,state\n"
	       "department,D1,,,,retired\n"
	       "department,D2,,,,Active\n"
	       "member,a.b@c,D1,,,\n"
	       "department,D3,,,,gone\n"
	       "employee,E1,D1,,,retired\n"
	       "member,E1,,,,\n"
	       "member,E1,D1,Name,,\n"
	       "member,E1,D1,,E2,\n"
	       "member,E 1,D1,,,\n",
		ROWS_OK,
		"2:D- D1   ;3:D D2   ;4:M a.b@c D1  ;5!D state;6!E state;7!M parent;8!M name;9!M "
		"manager;10!M "
		"id;");
}

static void id_length(void **state)
{
	char text[256];
	static const char digits[] = "1234567890123456789012345678901234567890123456789012345678901234";

	(void)state;
	snprintf(text, sizeof(text), "kind,id\nemployee,%s\nemployee,%s5\n", digits, digits);
	char expected[256];
	snprintf(expected, sizeof(expected), "2:E %s   ;3!E id;", digits);
	expect(text, ROWS_OK, expected);
}

static void unreadable(void **state)
{
	struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(rows_read(-1, 0, &events, &out), ROWS_UNREADABLE);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_in_any_order),
		cmocka_unit_test(bad_heads),
		cmocka_unit_test(bad_rows),
		cmocka_unit_test(members_and_states),
		cmocka_unit_test(id_length),
		cmocka_unit_test(unreadable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
