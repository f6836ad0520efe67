/* SPDX-License-Identifier: MIT */
/* What the scripts that look at tasks answer: read to the byte, and refused when it is not whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/mem.h"
#include "persist/keys.h"
#include "persist/task_read.h"

#define ID      "000000003t01"
#define NOTHING "||||||||||0|0|0|" /* behind the priority */

static int with_partitions(void **state)
{
	(void)state;
	keys_init("t:", 48);
	return 0;
}

static void assert_text(struct bytes text, const char *expected)
{
	assert_true(expected == NULL ? text.p == NULL : bytes_eq(text, bytes_of(expected)));
}

static void a_full_row(void **state)
{
	static const char text[] = ID "|running|1796036400000|mail|running|2|4|1|2|3|key|1|w@1|77|"
				      "1796036300000|3|2|4|e|\nr\0|\xff\r\n";
	struct task_row r;

	(void)state;
	assert_true(task_row_read((struct bytes){text, sizeof(text) - 1}, &r));
	assert_text(r.id, ID);
	assert_text(r.queue, "mail");
	assert_text(r.status, "running");
	assert_text(r.key, "key");
	assert_text(r.worker, "w@1");
	assert_text(r.token, "77");
	assert_text(r.error, "e|\n");
	assert_true(bytes_eq(r.result, (struct bytes){"r\0", 2}));
	assert_text(r.payload, "|\xff\r\n");
	assert_int_equal(r.priority, 2);
	assert_int_equal(r.size, 4);
	assert_int_equal(r.retries, 1);
	assert_int_equal(r.crashes, 2);
	assert_int_equal(r.max_retries, 3);
	assert_int_equal(r.cancel, 1);
	assert_int_equal(r.submitted, INT64_C(1767225600001));
	assert_int_equal(r.claimed, INT64_C(1796036300000));
	assert_int_equal(r.deadline, INT64_C(1796036400000));
	assert_int_equal(r.not_before, -1);
	assert_int_equal(r.finished, -1);
}

static void an_empty_row(void **state)
{
	struct task_row r;

	(void)state;
	assert_true(task_row_read(BYTES_LIT(ID "|ready||mail|pending|5" NOTHING), &r));
	assert_text(r.key, NULL);
	assert_text(r.worker, NULL);
	assert_text(r.token, NULL);
	assert_text(r.error, NULL);
	assert_text(r.result, NULL);
	assert_text(r.payload, "");
	assert_int_equal(r.size + r.retries + r.crashes + r.cancel, 0);
	assert_int_equal(r.max_retries, -1);
	assert_int_equal(r.claimed, -1);
	assert_int_equal(r.deadline, -1);
	assert_int_equal(r.finished, -1);
}

/* The instant of the entry is that of its place. */
static void instants(void **state)
{
	struct task_row r;

	(void)state;
	assert_true(task_row_read(BYTES_LIT(ID "|delayed|5|q|pending|5" NOTHING), &r));
	assert_true(r.not_before == 5 && r.deadline == -1 && r.finished == -1);
	assert_true(task_row_read(BYTES_LIT(ID "|timeout|5|q|timeout|5" NOTHING), &r));
	assert_true(r.not_before == -1 && r.deadline == -1 && r.finished == 5);
}

static void damaged_rows(void **state)
{
	static const char *const cases[] = {
		"", ID, "x|ready||q|pending|5" NOTHING, "vvvvvvvvvvvv|ready||q|pending|5" NOTHING,
		ID "|ready||q|pending" NOTHING, /* a field is missing */
		ID "|ready||q|pending|" NOTHING, ID "|ready||q|pending|0" NOTHING,
		ID "|ready||q|pending|11" NOTHING, ID "|ready||q|pending|5.0" NOTHING,
		ID "|ready|inf|q|pending|5" NOTHING, ID "|ready|-5|q|pending|5" NOTHING,
		ID "|ready||q|pending|5|x|||||||||0|0|0|", ID "|ready||q|pending|5|1|-1||||||||0|0|0|",
		ID "|ready||q|pending|5||||||yes||||0|0|0|",
		ID "|ready||q|pending|5||||||||||1|0|0|", /* a text that is not there */
		ID "|ready||q|pending|5||||||||||0|0|99999999999999999999|",
		ID "|ready||q|pending|5||||||||||-1|0|1|",
		ID "|ready||q|pending|5" NOTHING "x",          /* one that has no length */
		ID "|ready||q|pending|5|||||a|b||w|1||0|0|0|", /* a separator in a field */
	};
	struct task_row r = {.priority = 77};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_false(task_row_read(bytes_of(cases[i]), &r));
	assert_int_equal(r.priority, 77);
}

static void stats(void **state)
{
	int64_t s[TASK_STATS];

	(void)state;
	task_stats_read(BYTES_LIT("1|2|3|4|5|6|7|8|1|10|11|12|13|14|15|16|17|18|19|20|21|" ID), s);
	assert_int_equal(s[STAT_READY], 1);
	assert_int_equal(s[STAT_WAITING], 8);
	assert_int_equal(s[STAT_PAUSED], 1);
	assert_int_equal(s[STAT_TOTAL_DROPPED], 21);
	assert_int_equal(s[STAT_OLDEST], INT64_C(1767225600001));
	task_stats_read(BYTES_LIT("|2|x|-4|5|6|7|8|0|10|11|12|13|14|15|16|17|18|19|20|21|a|b"), s);
	assert_int_equal(s[STAT_READY], -1);
	assert_int_equal(s[STAT_DELAYED], 2);
	assert_int_equal(s[STAT_RUNNING], -1);
	assert_int_equal(s[STAT_SUCCESS], -1);
	assert_int_equal(s[STAT_FAILED], 5);
	assert_int_equal(s[STAT_OLDEST], -1);
	task_stats_read(BYTES_LIT(""), s);
	for (int i = 0; i < TASK_STATS; i++)
		assert_int_equal(s[i], -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_row),
		cmocka_unit_test(an_empty_row),
		cmocka_unit_test(instants),
		cmocka_unit_test(damaged_rows),
		cmocka_unit_test(stats),
	};

	return cmocka_run_group_tests(tests, with_partitions, NULL);
}
