/* SPDX-License-Identifier: MIT */
/* persist/ledger_task.c: which rows a record of a task becomes, and what they say. */
#include "persist/ledger_task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "persist/keys.h"
#include "rules/workday.h"

#define ID  "0000003q280c"
#define REF BYTES_LIT("p12x-1796000002000-3-4")

/* The row that a record becomes in a table, without head and tail; "" when it becomes none. */
static void expect_row(enum task_table table, const char *record, const char *row)
{
	struct buf got = BUF_INIT, want = BUF_INIT;

	assert_true(ledger_task_insert(&got, table, bytes_of(record), REF));
	if (row[0] != '\0')
		buf_addf(&want, "%s%s%s", task_inserts[table].head, row, task_inserts[table].tail);
	assert_string_equal(got.data != NULL ? got.data : "", want.data != NULL ? want.data : "");
	buf_release(&got);
	buf_release(&want);
}

static void a_first_success_is_one_row(void **state)
{
	const char *record = "K|success|" ID "|mail|5|0|0|7|w1|k|1796000001000|1796000002000|-|4|0|0|it's";

	(void)state;
	expect_row(TASK_TABLE_TASK, record,
		"('" ID "','mail','success',5,'2026-01-01 00:00:01.000','2026-11-30 00:53:21.000',"
		"'2026-11-30 00:53:22.000','2026-11-29','w1',7,0,0,'k','it''s',NULL,NULL,"
		"'2026-11-30 00:53:22.000','1796000002000-000000003-00004')");
	expect_row(TASK_TABLE_EVENT, record, "");
}

static void a_later_success_is_an_event_too(void **state)
{
	(void)state;
	expect_row(TASK_TABLE_EVENT,
		"K|success|" ID "|mail|5|0|1|7|w1|-|1796000001000|1796000002000|-|0|0|0|",
		"('" ID "','1796000002000-000000003-00004','success','mail','2026-11-30 00:53:22.000',"
		"'2026-11-29',0,1,'w1',7,'2026-11-30 00:53:21.000',NULL,NULL)");
	expect_row(TASK_TABLE_EVENT,
		"K|success|" ID "|mail|5|1|0|7|w1|-|1796000001000|1796000002000|-|0|0|0|",
		"('" ID "','1796000002000-000000003-00004','success','mail','2026-11-30 00:53:22.000',"
		"'2026-11-29',1,0,'w1',7,'2026-11-30 00:53:21.000',NULL,NULL)");
}

/* What is not the end of a task leaves its row alone. */
static void attempts_are_events(void **state)
{
	const char *record =
		"K|retry|" ID "|mail|5|1|0|7|w1|-|1796000001000|1796000002000|1796000007000|0|4|0|boom";

	(void)state;
	expect_row(TASK_TABLE_TASK, record, "");
	expect_row(TASK_TABLE_EVENT, record,
		"('" ID "','1796000002000-000000003-00004','retry','mail','2026-11-30 00:53:22.000',"
		"'2026-11-29',1,0,'w1',7,'2026-11-30 00:53:21.000','2026-11-30 00:53:27.000','boom')");
	expect_row(TASK_TABLE_TASK, "K|expired|" ID "|q|5|1|1|7|w1|-|1|2|-|0|0|0|", "");
	expect_row(TASK_TABLE_TASK, "K|released|" ID "|q|5|0|0|7|w1|-|1|2|-|0|0|0|", "");
}

static void one_that_is_brought_back_is_pending(void **state)
{
	(void)state;
	expect_row(TASK_TABLE_TASK, "K|retried|" ID "|mail|5|0|0|-|-|-|-|1796000002000|-|0|0|0|",
		"('" ID
		"','mail','pending',5,'2026-01-01 00:00:01.000',NULL,NULL,'2026-11-29','',NULL,0,0,'',NULL,"
		"NULL,NULL,'2026-11-30 00:53:22.000','1796000002000-000000003-00004')");
}

static void what_is_no_record(void **state)
{
	struct buf out = BUF_INIT;

	(void)state;
	assert_false(ledger_task_insert(&out, TASK_TABLE_TASK, BYTES_LIT("K|success"), REF));
	assert_int_equal(out.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_success_is_one_row),
		cmocka_unit_test(a_later_success_is_an_event_too),
		cmocka_unit_test(attempts_are_events),
		cmocka_unit_test(one_that_is_brought_back_is_pending),
		cmocka_unit_test(what_is_no_record),
	};

	keys_init("test:", 48);
	if (!workday_set_zone("UTC"))
		return 1;
	workday_set_start(4 * 3600000);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
