/* SPDX-License-Identifier: MIT */
/* Unions of punch sets, journal records, and the insert that leaves bad rows out. */
#include "persist/day_row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "persist/record.h"
#include "rules/punch.h"

static void unites(const char *a, const char *b, const char *expected)
{
	struct buf set = BUF_INIT;

	buf_add_str(&set, a);
	day_row_union(&set, bytes_of(b));
	assert_string_equal(set.data != NULL ? set.data : "", expected);
	buf_release(&set);
}

static void test_union(void **state)
{
	(void)state;
	unites("", "I1 O2", "I1 O2");
	unites("I1", "O2", "I1 O2");
	unites("I1 O2", "O2 I1", "I1 O2");
	unites("I1#a", "I1", "I1#a");
	/* The same event with another time is a repeat, not a second punch. */
	unites("I1#a", "I7#a", "I1#a");
	unites("I1#a", "I7#b", "I1#a I7#b");
	/* A prefix is not the same. */
	unites("I12", "I1", "I12 I1");
}

/* However many punches come, the set stays a set, and first and last of each direction stay in it. */
static void test_full_set(void **state)
{
	static struct punch punches[PUNCH_SET_MAX];
	struct buf set = BUF_INIT, token = BUF_INIT;
	bool first_in = false, last_in = false, first_out = false, last_out = false;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		buf_clear(&token);
		buf_addf(&token, "%c%lld", i % 2 == 0 ? 'I' : 'O', 1764493200000LL + (i * 7919) % 5000);
		day_row_union(&set, buf_bytes(&token));
	}
	int count = punch_set_parse(buf_bytes(&set), punches);
	assert_true(count > 100);
	for (int i = 0; i < count; i++) {
		bool in = punches[i].direction == 'I';
		first_in |= in && punches[i].at == 1764493200000LL;
		last_in |= in && punches[i].at == 1764493200000LL + 4998;
		first_out |= !in && punches[i].at == 1764493200000LL + 1;
		last_out |= !in && punches[i].at == 1764493200000LL + 4999;
	}
	assert_true(first_in && last_in && first_out && last_out);
	buf_release(&set);
	buf_release(&token);
}

static void test_punch_record(void **state)
{
	struct buf text = BUF_INIT;
	struct punch_record p = {.date = BYTES_LIT("2026-11-30"),
		.dept = BYTES_LIT("D1"),
		.home = BYTES_LIT("D2"),
		.employee = BYTES_LIT("E.1@x"),
		.direction = 'O',
		.at = 5,
		.received = 7,
		.source = BYTES_LIT("gate")};
	struct punch_record back;

	(void)state;
	record_punch_head(&text, &p);
	buf_add_str(&text, "N|I1 O5|Ana | Lopez");
	assert_true(record_parse_punch(buf_bytes(&text), &back));
	assert_int_equal(back.day, 20787);
	assert_true(bytes_eq(back.home, p.home));
	assert_true(bytes_eq(back.employee, p.employee));
	assert_int_equal(back.at, 5);
	assert_int_equal(back.received, 7);
	assert_int_equal(back.event_id.n, 0);
	assert_true(bytes_eq(back.source, p.source));
	assert_true(bytes_eq(back.set, BYTES_LIT("I1 O5")));
	assert_true(bytes_eq(back.name, BYTES_LIT("Ana | Lopez")));
	assert_false(back.late);
	assert_false(record_parse_punch(BYTES_LIT("P|2026-11-30|D1"), &back));
	assert_false(record_parse_punch(BYTES_LIT("P|2026-99-30|a|b|c|I|1|2|-|-|-|N|I1|n"), &back));
	buf_release(&text);
}

static void test_employee_record(void **state)
{
	struct employee_record r;

	(void)state;
	assert_true(record_parse_employee(BYTES_LIT("2026-11-30|D1|I1 O2|Ana|Lopez"), &r));
	assert_true(bytes_eq(r.set, BYTES_LIT("I1 O2")));
	assert_true(bytes_eq(r.name, BYTES_LIT("Ana|Lopez")));
	assert_true(record_parse_employee(BYTES_LIT("|||"), &r));
	assert_int_equal(r.name.n, 0);
	assert_false(record_parse_employee(BYTES_LIT("a|b"), &r));
}

static void test_failure_row(void **state)
{
	struct sql_rows rows = {0};
	char longer[400];
	memset(longer, 'x', sizeof(longer));
	struct failure_row f = {.kind = "day",
		.ref = {longer, sizeof(longer)},
		.day = -1,
		.employee = {longer, sizeof(longer)},
		.reason = "refused",
		.detail = "bad \xff\xfe\n value"};

	(void)state;
	failure_row_add(&rows, &f, 0);
	/* What is too long for its column is cut, and what is no text is made text: this row must not fail,
	 * too. */
	assert_non_null(strstr(rows.text.data, "'bad ??? value'"));
	assert_null(strstr(rows.text.data, "\xff"));
	assert_int_equal(rows.count, 1);
	assert_int_equal(sql_rows_good(&rows), 1);
	sql_rows_release(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_union),
		cmocka_unit_test(test_full_set),
		cmocka_unit_test(test_punch_record),
		cmocka_unit_test(test_employee_record),
		cmocka_unit_test(test_failure_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
