/* SPDX-License-Identifier: MIT */
/* persist/mysql_job.c: what a job sends next, whatever fails. */
#include "persist/mysql_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define LIMIT 1000

static struct mysql_result got;
static uint64_t got_affected[2];
static char got_message[100];
static int calls;

static void keep(const struct mysql_result *result, void *arg)
{
	size_t *count = arg;

	calls++;
	got = *result;
	memcpy(got_affected, result->affected, *count * sizeof(got_affected[0]));
	bytes_copy(got_message, sizeof(got_message), bytes_of(result->message));
}

static const struct bytes two[] = {{"INSERT 1", 8}, {"INSERT 2", 8}};
static size_t two_count = 2, one_count = 1;

static struct mysql_job *batch(void)
{
	calls = 0;
	return mysql_job_batch(two, 2, keep, &two_count);
}

static void expect_sent(bool more, struct bytes sql, const char *text)
{
	assert_true(more);
	assert_true(bytes_eq(sql, bytes_of(text)));
}

static void a_batch_that_goes_well(void **state)
{
	struct mysql_job *job = batch();
	struct bytes sql;

	(void)state;
	expect_sent(mysql_job_start(job, LIMIT, &sql), sql, "BEGIN");
	expect_sent(mysql_job_step(job, LIMIT, 0, &sql), sql, "INSERT 1");
	expect_sent(mysql_job_step(job, LIMIT, 7, &sql), sql, "INSERT 2");
	expect_sent(mysql_job_step(job, LIMIT, 9, &sql), sql, "COMMIT");
	assert_false(mysql_job_step(job, LIMIT, 0, &sql));
	assert_int_equal(calls, 0);
	mysql_job_complete(job);
	assert_int_equal(calls, 1);
	assert_int_equal(got.outcome, SQL_OK);
	assert_true(got.failed == MYSQL_NO_STATEMENT);
	assert_int_equal(got_affected[0], 7);
	assert_int_equal(got_affected[1], 9);
	assert_string_equal(got_message, "");
}

/* Fails at the n-th thing that is sent, for every n. */
static void a_batch_rolls_back_wherever_it_fails(void **state)
{
	static const size_t failed[] = {MYSQL_NO_STATEMENT, 0, 1, MYSQL_NO_STATEMENT};

	(void)state;
	for (int n = 0; n < 4; n++) {
		struct mysql_job *job = batch();
		struct bytes sql;
		assert_true(mysql_job_start(job, LIMIT, &sql));
		for (int i = 0; i < n; i++)
			assert_true(mysql_job_step(job, LIMIT, 1, &sql));
		expect_sent(mysql_job_fail(job, 1213, "Deadlock found", &sql), sql, "ROLLBACK");
		assert_false(mysql_job_step(job, LIMIT, 0, &sql));
		mysql_job_complete(job);
		assert_int_equal(got.outcome, SQL_RETRY);
		assert_int_equal(got.code, 1213);
		assert_true(got.failed == failed[n]);
		assert_string_equal(got_message, "Deadlock found");
	}
}

static void the_first_fault_stands(void **state)
{
	struct mysql_job *job = batch();
	struct bytes sql;

	(void)state;
	mysql_job_start(job, LIMIT, &sql);
	mysql_job_step(job, LIMIT, 0, &sql);
	assert_true(mysql_job_fail(job, 1406, "Data too long", &sql));
	assert_false(mysql_job_fail(job, 1064, "in the ROLLBACK", &sql));
	mysql_job_lose(job, 2013, "Lost");
	mysql_job_complete(job);
	assert_int_equal(got.outcome, SQL_DATA);
	assert_int_equal(got.failed, 0);
	assert_string_equal(got_message, "Data too long");
}

static void a_loss_in_each_state(void **state)
{
	(void)state;
	for (int n = 0; n <= 4; n++) {
		struct mysql_job *job = batch();
		struct bytes sql;
		if (n > 0)
			mysql_job_start(job, LIMIT, &sql);
		for (int i = 1; i < n; i++)
			mysql_job_step(job, LIMIT, 1, &sql);
		mysql_job_lose(job, 2013, "Lost");
		mysql_job_complete(job);
		assert_int_equal(calls, 1);
		assert_int_equal(got.outcome, SQL_LOST);
		assert_true(got.failed == (n == 2 ? 0 : n == 3 ? 1 : MYSQL_NO_STATEMENT));
	}
}

static void a_query_takes_its_text(void **state)
{
	struct buf text = BUF_INIT;
	struct bytes sql;

	(void)state;
	calls = 0;
	buf_add_str(&text, "SELECT 1");
	struct mysql_job *job = mysql_job_query(&text, keep, &one_count);
	assert_null(text.data);
	expect_sent(mysql_job_start(job, LIMIT, &sql), sql, "SELECT 1");
	assert_false(mysql_job_step(job, LIMIT, 1, &sql));
	mysql_job_complete(job);
	assert_int_equal(got.outcome, SQL_OK);
	assert_int_equal(got_affected[0], 1);
}

static void a_statement_above_the_limit_is_not_sent(void **state)
{
	struct buf text = BUF_INIT;
	struct bytes sql;

	(void)state;
	buf_add_str(&text, "SELECT 123");
	struct mysql_job *job = mysql_job_query(&text, keep, &one_count);
	assert_false(mysql_job_start(job, 25, &sql));
	mysql_job_complete(job);
	assert_int_equal(got.outcome, SQL_DATA);
	assert_int_equal(got.failed, 0);
	job = batch();
	assert_true(mysql_job_start(job, 23, &sql));
	expect_sent(mysql_job_step(job, 23, 0, &sql), sql, "ROLLBACK");
	mysql_job_complete(job);
	assert_int_equal(got.outcome, SQL_DATA);
	assert_int_equal(got.code, 1153);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_that_goes_well),
		cmocka_unit_test(a_batch_rolls_back_wherever_it_fails),
		cmocka_unit_test(the_first_fault_stands),
		cmocka_unit_test(a_loss_in_each_state),
		cmocka_unit_test(a_query_takes_its_text),
		cmocka_unit_test(a_statement_above_the_limit_is_not_sent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
