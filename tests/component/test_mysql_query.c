/* SPDX-License-Identifier: MIT */
/* persist/mysql_link.c and persist/mysql_text.c against a real server: what statements and batches come to,
 * and that what was sent is what is stored. */
#include "tests/component/mysql_fixture.h"

#include "persist/mysql_text.h"

static void a_session_is_as_promised(void **state)
{
	(void)state;
	expect_row(link_a,
		"SELECT @@session.sql_mode LIKE 'STRICT_ALL_TABLES%', @@session.time_zone, "
		"@@session.innodb_lock_wait_timeout, @@character_set_client, NULL, ''",
		"1|+00:00|5|utf8mb4|~||");
	expect_row(link_a,
		"SELECT VARIABLE_VALUE FROM information_schema.SESSION_VARIABLES "
		"WHERE VARIABLE_NAME IN ('tx_isolation', 'transaction_isolation') LIMIT 1",
		"READ-COMMITTED|");
	assert_true(mysql_link_max_packet(link_a) >= 1024);
	struct outcome o = query(link_a, "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t (id)");
	assert_int_not_equal(o.outcome, SQL_OK);
	wait_ready(link_a, true);
	expect_row(link_a, "SELECT COUNT(*) FROM t", "0|");
}

static void every_byte_comes_back(void **state)
{
	struct buf sql = BUF_INIT;
	char all[256];

	(void)state;
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	for (int i = 0; i < 256; i++) {
		buf_add_str(&sql, "INSERT INTO t (id, n) VALUES (");
		mysql_add_quoted(&sql, (struct bytes){&all[i], 1});
		buf_addf(&sql, ", %d)", i);
		struct outcome o = {.count = 1};
		mysql_link_query(link_a, &sql, keep, &o);
		wait_int(&o.calls, 1);
		assert_int_equal(o.outcome, SQL_OK);
	}
	expect_row(link_a, "SELECT COUNT(*), SUM(ORD(id) = n AND LENGTH(id) = 1) FROM t", "256|256|");
	buf_add_str(&sql, "INSERT INTO t (id, name) VALUES (");
	mysql_add_quoted(&sql, (struct bytes){all, 256});
	buf_add_str(&sql, ", ");
	mysql_add_quoted(&sql, BYTES_LIT("王'\\Ming \xf0\x9f\x8c\xb2"));
	buf_add_str(&sql, "), (");
	mysql_add_quoted(&sql, (struct bytes){all, 128});
	buf_add_str(&sql, ", 'x')");
	struct outcome o = {.count = 1};
	mysql_link_query(link_a, &sql, keep, &o);
	wait_int(&o.calls, 1);
	assert_int_equal(o.outcome, SQL_OK);
	assert_int_equal(o.affected[0], 2);
	expect_row(link_a, "SELECT CHAR_LENGTH(name), HEX(name), SHA2(id, 256) FROM t WHERE LENGTH(id) = 256",
		"9|E78E8B275C4D696E6720F09F8CB2|"
		"40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880|");
	expect_row(link_a, "SELECT SHA2(id, 256) FROM t WHERE LENGTH(id) = 128",
		"471fb943aa23c511f6f72f8d1652d9c880cfa392ad80503120547703e56a2be5|");
	/* A name in a bad encoding is refused by the server, not bent. */
	buf_add_str(&sql, "INSERT INTO t (id, name) VALUES ('bad', ");
	mysql_add_quoted(&sql, BYTES_LIT("\xff\xfe"));
	buf_add_str(&sql, ")");
	o = (struct outcome){0};
	mysql_link_query(link_a, &sql, keep, &o);
	wait_int(&o.calls, 1);
	assert_int_equal(o.outcome, SQL_DATA);
}

static void datetimes_are_what_the_server_reads(void **state)
{
	static const int64_t times[] = {0, 951782399999, 1772355600001, 4107542400000, 253402300799999};
	struct buf sql = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		char expected[40];
		struct outcome o = {0};
		buf_add_str(&sql, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', CAST(");
		mysql_add_datetime(&sql, times[i]);
		buf_add_str(&sql, " AS DATETIME(3))) DIV 1000");
		mysql_link_query(link_a, &sql, keep, &o);
		wait_int(&o.calls, 1);
		snprintf(expected, sizeof(expected), "%lld|", (long long)times[i]);
		assert_string_equal(o.text, expected);
	}
}

#define BATCHES 100
#define ROWS    1000

static void hundred_batches_of_thousand_rows(void **state)
{
	static struct buf sql[BATCHES];
	static struct bytes text[BATCHES];
	struct outcome done[BATCHES] = {0};

	(void)state;
	for (int i = 0; i < BATCHES; i++) {
		buf_add_str(&sql[i], "INSERT INTO t (id, n, name) VALUES ");
		for (int k = 0; k < ROWS; k++)
			buf_addf(&sql[i], "%s('employee-%06d', %d, 'name of %d')", k > 0 ? "," : "",
				i * ROWS + k, k, k);
		buf_add_str(&sql[i], " ON DUPLICATE KEY UPDATE n = VALUES(n), name = VALUES(name)");
		text[i] = buf_bytes(&sql[i]);
	}
	for (int round = 0; round < 2; round++) {
		memset(done, 0, sizeof(done));
		gap_start();
		int64_t start = clock_mono_us();
		for (int i = 0; i < BATCHES; i++) {
			done[i].count = 1;
			mysql_link_batch(link_a, &text[i], 1, keep, &done[i]);
		}
		assert_int_equal(done[0].calls, 0);
		wait_int(&done[BATCHES - 1].calls, 1);
		print_message("100 batches of 1,000 upserts: %lld ms\n",
			(long long)((clock_mono_us() - start) / 1000));
		gap_check("batches");
		for (int i = 0; i < BATCHES; i++) {
			assert_int_equal(done[i].calls, 1);
			assert_int_equal(done[i].outcome, SQL_OK);
			assert_int_equal(done[i].affected[0], round == 0 ? ROWS : 0);
		}
	}
	expect_row(link_a, "SELECT COUNT(*), SUM(n) FROM t", "100000|49950000|");
	for (int i = 0; i < BATCHES; i++)
		buf_release(&sql[i]);
}

static void a_bad_row_is_data_and_undoes_its_batch(void **state)
{
	const struct bytes statements[] = {BYTES_LIT("INSERT INTO t (id) VALUES ('good')"),
		BYTES_LIT("INSERT INTO t (id, n) VALUES ('fine', 1), ('bad', 99999999999)"),
		BYTES_LIT("INSERT INTO t (id) VALUES ('never')")};
	struct outcome o = {.count = 3};

	(void)state;
	mysql_link_batch(link_a, statements, 3, keep, &o);
	wait_int(&o.calls, 1);
	assert_int_equal(o.outcome, SQL_DATA);
	assert_int_equal(o.code, 1264);
	assert_int_equal(o.failed, 1);
	assert_int_equal(o.affected[0], 1);
	assert_int_equal(o.affected[2], 0);
	assert_true(o.text[0] != '\0');
	expect_row(link_a, "SELECT COUNT(*) FROM t", "0|");
	o.count = 1;
	mysql_link_batch(link_a, statements, 1, keep, &o);
	wait_int(&o.calls, 2);
	assert_int_equal(o.outcome, SQL_OK);
	assert_true(o.failed == MYSQL_NO_STATEMENT);
	expect_row(link_b, "SELECT COUNT(*) FROM t", "1|");
}

static void outcomes_of_other_mistakes(void **state)
{
	static const struct {
		const char *sql;
		enum sql_outcome outcome;
	} cases[] = {
		{"INSERT INTO t (id) VALUES (REPEAT('x', 301))", SQL_DATA},
		{"INSERT INTO t (id) VALUES (NULL)", SQL_DATA},
		{"INSERT INTO t (id, n) VALUES ('a', 'seven')", SQL_DATA},
		{"INSERT INTO t (id) VALUES ('a'), ('a')", SQL_DATA},
		{"SELECT * FROM no_such_table", SQL_SCHEMA},
		{"SELECT no_such_column FROM t", SQL_SCHEMA},
		{"SELEC 1", SQL_SCHEMA},
		{"", SQL_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct outcome o = query(link_a, cases[i].sql);
		if (o.outcome != cases[i].outcome)
			print_error("%s: %u %s\n", cases[i].sql, o.code, o.text);
		assert_int_equal(o.outcome, cases[i].outcome);
		assert_int_equal(o.failed, 0);
		assert_true(mysql_link_ready(link_a));
	}
}

static void a_statement_above_the_limit_costs_nothing(void **state)
{
	size_t limit = mysql_link_max_packet(link_a);
	struct buf sql = BUF_INIT;
	struct outcome o = {.count = 2}, after = {0};

	(void)state;
	add_long_select(&sql, limit + 2);
	const struct bytes statements[] = {BYTES_LIT("INSERT INTO t (id) VALUES ('a')"), buf_bytes(&sql)};
	mysql_link_batch(link_a, statements, 2, keep, &o);
	wait_int(&o.calls, 1);
	assert_int_equal(o.outcome, SQL_DATA);
	assert_int_equal(o.failed, 1);
	mysql_link_query(link_a, &sql, keep, &after);
	wait_int(&after.calls, 1);
	assert_int_equal(after.outcome, SQL_DATA);
	assert_int_equal(after.code, 1153);
	assert_true(mysql_link_ready(link_a));
	expect_row(link_a, "SELECT COUNT(*) FROM t", "0|");
	/* The largest that fits does go through. */
	o = (struct outcome){0};
	add_long_select(&sql, limit - 16);
	assert_int_equal(sql.len, limit - 16);
	mysql_link_query(link_a, &sql, keep, &o);
	wait_int(&o.calls, 1);
	assert_int_equal(o.outcome, SQL_OK);
}

/* Two transactions take two rows crosswise; locks that a third session holds bring both to the crossing. */
static void a_deadlock_is_to_be_retried(void **state)
{
	const struct bytes one[] = {BYTES_LIT("UPDATE t SET n = 1 WHERE id = 'x'"),
		BYTES_LIT("SELECT GET_LOCK('muster_test_1', 20)"),
		BYTES_LIT("UPDATE t SET n = 1 WHERE id = 'y'")};
	const struct bytes two[] = {BYTES_LIT("UPDATE t SET n = 2 WHERE id = 'y'"),
		BYTES_LIT("SELECT GET_LOCK('muster_test_2', 20)"),
		BYTES_LIT("UPDATE t SET n = 2 WHERE id = 'x'")};
	struct mysql_link *third = connected("third");
	struct outcome a = {0}, b = {0};

	(void)state;
	query_ok(third, "INSERT INTO t (id, n) VALUES ('x', 0), ('y', 0)");
	query_ok(third, "SELECT GET_LOCK('muster_test_1', 5), GET_LOCK('muster_test_2', 5)");
	mysql_link_batch(link_a, one, 3, keep, &a);
	mysql_link_batch(link_b, two, 3, keep, &b);
	wait_row(third,
		"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT GET\\_LOCK(%'",
		"2|");
	query_ok(third, "SELECT RELEASE_LOCK('muster_test_1'), RELEASE_LOCK('muster_test_2')");
	wait_int(&a.calls, 1);
	wait_int(&b.calls, 1);
	struct outcome *lost = a.outcome == SQL_OK ? &b : &a, *won = a.outcome == SQL_OK ? &a : &b;
	assert_int_equal(won->outcome, SQL_OK);
	assert_int_equal(lost->outcome, SQL_RETRY);
	assert_int_equal(lost->code, 1213);
	assert_int_equal(lost->failed, 2);
	assert_true(mysql_link_ready(link_a) && mysql_link_ready(link_b));
	mysql_link_batch(lost == &a ? link_a : link_b, lost == &a ? one : two, 3, keep, lost);
	wait_int(&lost->calls, 2);
	assert_int_equal(lost->outcome, SQL_OK);
	query_ok(link_a, "SELECT RELEASE_ALL_LOCKS()");
	query_ok(link_b, "SELECT RELEASE_ALL_LOCKS()");
	drop(third);
}

#define TEST(name) cmocka_unit_test_setup(name, setup_table)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_session_is_as_promised),
		TEST(every_byte_comes_back),
		TEST(datetimes_are_what_the_server_reads),
		TEST(hundred_batches_of_thousand_rows),
		TEST(a_bad_row_is_data_and_undoes_its_batch),
		TEST(outcomes_of_other_mistakes),
		TEST(a_statement_above_the_limit_costs_nothing),
		TEST(a_deadlock_is_to_be_retried),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, setup_links, teardown_links);
}
