/* SPDX-License-Identifier: MIT */
/* Judging a day. Shift 09:00 to 18:00 UTC on 2026-11-30, debounce 30 s. */
#include "rules/punch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "rules/when.h"

static struct shift shift;

/* "I 08:55:00" … as a set. */
static const char *set_of(size_t count, const char *const *punches)
{
	static char set[2048];
	size_t len = 0;

	set[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		char text[64];
		int64_t ms = -1;
		snprintf(text, sizeof(text), "2026-11-30T%sZ", punches[i] + 2);
		assert_true(when_parse(bytes_of(text), &ms));
		len += (size_t)snprintf(set + len, sizeof(set) - len, "%s%c%lld", len > 0 ? " " : "",
			punches[i][0], (long long)ms);
	}
	return set;
}

#define SET(...) set_of(ARRAY_LEN(((const char *const[]){__VA_ARGS__})), (const char *const[]){__VA_ARGS__})

static struct judgement judge(const char *set, bool closed)
{
	struct judgement j = {0};

	assert_int_equal(punch_judge(bytes_of(set), &shift, closed, &j), 0);
	return j;
}

static void is(const char *set, bool closed, const char *status)
{
	struct judgement j = judge(set, closed);

	assert_string_equal(attendance_name(j.status), status);
}

static void test_statuses(void **state)
{
	(void)state;
	is("", true, "absent");
	is("", false, "not_yet");
	is(SET("I 08:55:00", "O 18:01:00"), true, "present");
	is(SET("I 09:30:00", "O 18:01:00"), true, "late");
	is(SET("I 08:55:00", "O 17:00:00"), true, "early");
	is(SET("I 09:30:00", "O 17:00:00"), true, "late_early");
	is(SET("O 18:05:00"), true, "missing_in");
	is(SET("I 08:55:00"), true, "missing_out");
}

/* While the day is open, what is still to come is held against nobody. */
static void test_open(void **state)
{
	(void)state;
	is(SET("I 08:55:00"), false, "present");
	is(SET("I 09:30:00"), false, "late");
	is(SET("I 08:55:00", "O 12:00:00"), false, "early");
	is(SET("I 08:55:00", "O 12:00:00", "I 13:00:00"), false, "present");
}

static void test_boundaries(void **state)
{
	(void)state;
	is(SET("I 09:00:00.000", "O 18:00:00.000"), true, "present");
	is(SET("I 09:00:00.001", "O 18:00:00.000"), true, "late");
	is(SET("I 09:00:00.000", "O 17:59:59.999"), true, "early");
	assert_int_equal(judge(SET("I 09:00:00.001", "O 18:00:00"), true).late_ms, 1);
	assert_int_equal(judge(SET("I 09:00:00", "O 17:59:59.999"), true).early_ms, 1);
	assert_int_equal(judge(SET("I 12:00:00", "O 18:00:00"), true).late_ms, 10800000);
}

static void test_first_in_last_out(void **state)
{
	(void)state;
	struct judgement j = judge(SET("O 12:00:00", "I 13:00:00", "O 18:10:00"), true);
	assert_int_equal(j.early_ms, 0);
	assert_int_equal(j.out, judge(SET("I 08:00:00", "O 18:10:00"), true).out);
	/* A later in changes nothing. */
	is(SET("I 08:50:00", "I 09:30:00", "O 18:00:00"), true, "present");
	/* An out before the first in is no end. */
	is(SET("O 08:00:00", "I 09:00:00"), true, "missing_out");
}

static void test_unspecified(void **state)
{
	(void)state;
	struct judgement j = judge(SET("U 08:50:00", "U 12:10:00", "U 18:05:00"), true);
	struct judgement k = judge(SET("I 08:50:00", "O 12:10:00", "O 18:05:00"), true);
	assert_int_equal(j.in, k.in);
	assert_int_equal(j.out, k.out);
	assert_string_equal(attendance_name(j.status), "present");
	is(SET("U 08:50:00"), true, "missing_out");
	is(SET("I 08:50:00", "U 18:05:00"), true, "present");
}

static void test_guess(void **state)
{
	(void)state;
	struct judgement j = judge(SET("O 08:52:00", "O 18:03:00"), true);
	assert_string_equal(attendance_name(j.status), "present");
	assert_string_equal(j.reason, "direction_guess");
	/* Two in the evening are no morning. */
	is(SET("O 17:30:00", "O 18:03:00"), true, "missing_in");
}

static void test_debounce(void **state)
{
	(void)state;
	struct judgement j = judge(SET("I 09:00:00.100", "I 09:00:00.900", "O 18:00:00"), true);
	assert_int_equal(j.punches, 2);
	/* A minute apart they are two. */
	assert_int_equal(judge(SET("I 08:00:00", "I 08:01:00", "O 18:00:00"), true).punches, 3);
	/* In, out and in within a second: still in, and can still go out in the evening. */
	is(SET("I 08:59:00.0", "O 08:59:00.3", "I 08:59:00.6", "O 18:00:00"), true, "present");
}

/* Any order of the same punches is the same day. */
static void test_order_free(void **state)
{
	static const char *const punches[] = {"I 08:58:00", "O 12:00:00", "U 12:40:00", "I 12:40:10",
		"O 18:01:00", "O 18:01:20", "I 08:58:20"};
	const char *shuffled[ARRAY_LEN(punches)];
	char first[2048];

	(void)state;
	memcpy(shuffled, punches, sizeof(punches));
	snprintf(first, sizeof(first), "%s", set_of(ARRAY_LEN(punches), punches));
	struct judgement expected = judge(first, true);
	srand(7);
	for (int round = 0; round < 1000; round++) {
		for (size_t i = ARRAY_LEN(punches) - 1; i > 0; i--) {
			size_t k = (size_t)rand() % (i + 1);
			const char *t = shuffled[i];
			shuffled[i] = shuffled[k];
			shuffled[k] = t;
		}
		struct judgement j = judge(set_of(ARRAY_LEN(punches), shuffled), true);
		assert_int_equal(j.status, expected.status);
		assert_int_equal(j.in, expected.in);
		assert_int_equal(j.out, expected.out);
		assert_int_equal(j.punches, expected.punches);
	}
}

static void test_damaged(void **state)
{
	static const char *const bad[] = {
		"x", "I", "I12a", "Q123", "I1 ", " I1", "I1  O2", "I-5", "garbage", "#"};
	struct judgement j = {.punches = 42};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (punch_judge(bytes_of(bad[i]), &shift, true, &j) == 0)
			fail_msg("'%s' was taken for a set", bad[i]);
	}
	assert_int_equal(j.punches, 42);
	assert_int_equal(punch_judge(BYTES_LIT("I1#gate-7"), &shift, true, &j), 0);
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < ATTENDANCE_COUNT; i++) {
		enum attendance a = ATTENDANCE_COUNT;
		assert_true(attendance_from_name(bytes_of(attendance_name((enum attendance)i)), &a));
		assert_int_equal(a, i);
	}
	enum attendance a;
	assert_false(attendance_from_name(BYTES_LIT("asleep"), &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_boundaries),
		cmocka_unit_test(test_first_in_last_out),
		cmocka_unit_test(test_unspecified),
		cmocka_unit_test(test_guess),
		cmocka_unit_test(test_debounce),
		cmocka_unit_test(test_order_free),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_names),
	};
	assert_true(when_parse(BYTES_LIT("2026-11-30T09:00:00Z"), &shift.start));
	assert_true(when_parse(BYTES_LIT("2026-11-30T18:00:00Z"), &shift.end));
	shift.debounce = 30000;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
