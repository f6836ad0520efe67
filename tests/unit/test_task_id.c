/* SPDX-License-Identifier: MIT */
/* Ids of tasks: what may be one, and when it was submitted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/mem.h"
#include "persist/keys.h"
#include "persist/task_id.h"

#define EPOCH     INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */
#define SEQ_LIMIT (INT64_C(1) << 49)

static int with_partitions(void **state)
{
	(void)state;
	keys_init("t:", 48);
	return 0;
}

static void good_ones(void **state)
{
	static const struct {
		const char *id;
		int64_t seq;
		int partition;
		int64_t submitted;
	} cases[] = {
		{"000000000000", 0, 0, EPOCH},
		{"000000000101", 1, 1, EPOCH},
		{"000000003s01", 124, 1, EPOCH},
		{"000000003t01", 125, 1, EPOCH + 1},
		{"00000000100v", 32, 31, EPOCH},
		{"00000000101f", 32, 47, EPOCH},
		{"00vvvvvvvv00", (INT64_C(1) << 40) - 1, 0, EPOCH + INT64_C(8796093022)},
		{"fvvvvvvvvv00", SEQ_LIMIT - 1, 0, EPOCH + (SEQ_LIMIT - 1) / 125},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int partition = -1;
		int64_t submitted = -1;
		struct bytes id = bytes_of(cases[i].id);
		assert_true(task_id_parse(id, &partition, &submitted));
		assert_int_equal(partition, cases[i].partition);
		assert_int_equal(submitted, cases[i].submitted);
		assert_int_equal(task_id_seq(id), cases[i].seq);
		assert_true(task_id_parse(id, NULL, NULL));
	}
}

static void bad_ones(void **state)
{
	static const char *const cases[] = {"", "0", "00000000000", "0000000000000", "00000000000A",
		"A00000000000", "00000000000w", "w00000000000", "00000000001g", "0000000000vv",
		"g00000000000", "vvvvvvvvvv00", " 00000000000", "-00000000000", "+00000000000",
		"0x0000000000", "00000000 000", "00000000000|", "\303\2510000000000"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int partition = 7;
		int64_t submitted = 7;
		assert_false(task_id_parse(bytes_of(cases[i]), &partition, &submitted));
		assert_int_equal(partition, 7);
		assert_int_equal(submitted, 7);
	}
	assert_false(task_id_parse((struct bytes){"00000\0000000", TASK_ID_LEN}, NULL, NULL));
	assert_int_equal(task_id_seq(BYTES_LIT("00000000A000")), -1);
}

/* An id of another number of partitions is none of ours. */
static void partitions(void **state)
{
	(void)state;
	keys_init("t:", 4);
	assert_true(task_id_parse(BYTES_LIT("000000000003"), NULL, NULL));
	assert_false(task_id_parse(BYTES_LIT("000000000004"), NULL, NULL));
	keys_init("t:", 48);
}

/* The first sequence number of an instant is of that instant, and the one before it is not. */
static void instants(void **state)
{
	static const int64_t times[] = {EPOCH + 1, EPOCH + 2, EPOCH + 999, EPOCH + 86400000,
		INT64_C(1796036400123), INT64_C(4102444800000)};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		int64_t seq = task_seq_of(times[i]);
		assert_int_equal(EPOCH + seq * 8 / 1000, times[i]);
		assert_int_equal(EPOCH + (seq - 1) * 8 / 1000, times[i] - 1);
	}
	assert_int_equal(task_seq_of(EPOCH), 0);
	assert_int_equal(task_seq_of(EPOCH - 1), 0);
	assert_int_equal(task_seq_of(0), 0);
	assert_int_equal(task_seq_of(INT64_MIN), 0);
	/* Beyond the last one there is none. */
	assert_int_equal(task_seq_of(INT64_MAX), SEQ_LIMIT);
	assert_true(task_seq_of(EPOCH + SEQ_LIMIT / 125 - 1) < SEQ_LIMIT);
	assert_true(task_seq_of(EPOCH + SEQ_LIMIT / 125 + 1) <= SEQ_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_ones),
		cmocka_unit_test(bad_ones),
		cmocka_unit_test(partitions),
		cmocka_unit_test(instants),
	};

	return cmocka_run_group_tests(tests, with_partitions, NULL);
}
