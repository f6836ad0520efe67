/* SPDX-License-Identifier: MIT */
/* persist/migrate.c against a real server: what is applied, refused or run again; and what the views tell
 * over the tables that the migrations make. */
#include "tests/component/mysql_fixture.h"

#include "persist/migrate.h"

struct migrated {
	int calls;
	bool ok;
	size_t applied;
	char error[300];
};

static void on_migrated(const char *error, size_t applied, void *arg)
{
	struct migrated *m = arg;

	m->calls++;
	m->ok = error == NULL;
	m->applied = applied;
	snprintf(m->error, sizeof(m->error), "%s", error != NULL ? error : "");
}

static struct migrated migrate(struct mysql_link *link, const struct embed_file *files, size_t count)
{
	struct migrated m = {0};

	migrate_start(link, files, count, on_migrated, &m);
	assert_int_equal(m.calls, 0);
	wait_int(&m.calls, 1);
	if (!m.ok)
		print_message("%s\n", m.error);
	return m;
}

static int empty_database(void **state)
{
	(void)state;
	wait_ready(link_a, true);
	make_database(link_a);
	query_database(link_a, "USE", "");
	query_database(link_b, "USE", "");
	return 0;
}

static void migrations_apply_once(void **state)
{
	(void)state;
	struct migrated first = migrate(link_a, migrate_files, migrate_files_count);
	assert_true(first.ok);
	assert_int_equal(first.applied, migrate_files_count);
	struct migrated again_ = migrate(link_a, migrate_files, migrate_files_count);
	assert_true(again_.ok);
	assert_int_equal(again_.applied, 0);
	char expected[16];
	snprintf(expected, sizeof(expected), "%zu|1|", migrate_files_count);
	expect_row(link_a, "SELECT COUNT(*), MIN(checksum REGEXP '^[0-9a-f]{64}$') FROM schema_migration",
		expected);
	expect_row(link_a,
		"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() "
		"AND TABLE_TYPE = 'BASE TABLE'",
		"12|");
	expect_row(link_a, "SELECT IS_FREE_LOCK(CONCAT('muster.migrate.', SHA1(DATABASE())))", "1|");
}

/* As after a crash just before each was recorded. */
static void migrations_run_again(void **state)
{
	(void)state;
	assert_true(migrate(link_a, migrate_files, migrate_files_count).ok);
	query_ok(link_a, "DELETE FROM schema_migration");
	struct migrated again_ = migrate(link_a, migrate_files, migrate_files_count);
	assert_true(again_.ok);
	assert_int_equal(again_.applied, migrate_files_count);
}

static void two_daemons_migrate_at_once(void **state)
{
	struct migrated a = {0}, b = {0};

	(void)state;
	migrate_start(link_a, migrate_files, migrate_files_count, on_migrated, &a);
	migrate_start(link_b, migrate_files, migrate_files_count, on_migrated, &b);
	wait_int(&a.calls, 1);
	wait_int(&b.calls, 1);
	assert_true(a.ok && b.ok);
	assert_int_equal(a.applied + b.applied, migrate_files_count);
	assert_true(a.applied == 0 || b.applied == 0);
}

static void a_changed_file_is_refused(void **state)
{
	struct embed_file files[2] = {{"0001_a", "CREATE TABLE IF NOT EXISTS a (x INT);", 37},
		{"0002_b", "CREATE TABLE IF NOT EXISTS b (x INT);", 37}};

	(void)state;
	assert_true(migrate(link_a, files, 1).ok);
	files[0].data = "CREATE TABLE IF NOT EXISTS a (y INT);";
	struct migrated m = migrate(link_a, files, 2);
	assert_false(m.ok);
	assert_int_equal(m.applied, 0);
	assert_non_null(strstr(m.error, "0001_a"));
	expect_row(link_a,
		"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() "
		"AND TABLE_NAME = 'b'",
		"0|");
	expect_row(link_a, "SELECT IS_FREE_LOCK(CONCAT('muster.migrate.', SHA1(DATABASE())))", "1|");
}

static void a_newer_database_is_refused(void **state)
{
	const struct embed_file files[2] = {{"0001_a", "CREATE TABLE IF NOT EXISTS a (x INT);", 37},
		{"0002_b", "CREATE TABLE IF NOT EXISTS b (x INT);", 37}};

	(void)state;
	assert_true(migrate(link_a, files, 2).ok);
	struct migrated m = migrate(link_a, files, 1);
	assert_false(m.ok);
	assert_non_null(strstr(m.error, "migration 2"));
	assert_non_null(strstr(m.error, "older than the database"));
}

/* The second statement fails at first: what came before it stays, unrecorded, and the file runs again whole.
 */
static void a_half_applied_file_runs_again(void **state)
{
	static const char text[] = "CREATE TABLE IF NOT EXISTS a (x INT); INSERT INTO later VALUES (1);";
	const struct embed_file file = {"0001_a", text, sizeof(text) - 1};

	(void)state;
	struct migrated m = migrate(link_a, &file, 1);
	assert_false(m.ok);
	assert_non_null(strstr(m.error, "0001_a failed: 1146"));
	expect_row(link_a, "SELECT COUNT(*) FROM schema_migration", "0|");
	expect_row(link_a, "SELECT IS_FREE_LOCK(CONCAT('muster.migrate.', SHA1(DATABASE())))", "1|");
	query_ok(link_a, "CREATE TABLE later (x INT)");
	assert_true(migrate(link_a, &file, 1).ok);
}

static void a_lost_connection_ends_a_migration(void **state)
{
	static const char text[] = "SELECT SLEEP(60), 'migrating';";
	const struct embed_file file = {"0001_a", text, sizeof(text) - 1};
	struct migrated m = {0};

	(void)state;
	migrate_start(link_a, &file, 1, on_migrated, &m);
	kill_session("INFO LIKE 'SELECT SLEEP(60), \\'migrating%'");
	wait_int(&m.calls, 1);
	assert_false(m.ok);
	wait_ready(link_a, true);
	wait_row(link_a, "SELECT IS_FREE_LOCK(CONCAT('muster.migrate.', SHA1(DATABASE())))", "1|");
}

static void insert_days(void)
{
	query_ok(link_a, "INSERT INTO department (id, name, parent, path, updated) VALUES "
			 "('1', 'Works', '', '1', '2026-01-01'), ('2', 'Press', '1', '1:2', '2026-01-01')");
	query_ok(link_a,
		"INSERT INTO employee (id, name, dept, state, updated) VALUES "
		"('e1', 'Ann', '2', 'active', '2026-01-01'), ('e2', 'Bo', '1', 'active', '2026-01-01'), "
		"('e3', 'Cy', '1', 'removed', '2026-01-01'), ('e4', 'Di', '1', 'active', '2026-01-01')");
	/* e1 moved from 1 to 2 between the days; e3 has left; e4 has no row at all. */
	query_ok(link_a,
		"INSERT INTO attendance_day (work_date, employee, dept, status, first_in, last_out, "
		"utc_offset, "
		"late_ms, worked_ms, punches, created, updated) VALUES "
		"('2026-03-31', 'e1', '1', 'present', '2026-03-31 06:50:00', '2026-03-31 16:01:00', 120, 0, "
		"33060000, "
		"2, '2026-04-01', '2026-04-01'), "
		"('2026-04-01', 'e1', '2', 'late', '2026-04-01 07:12:30', '2026-04-01 16:01:00', 120, "
		"750000, "
		"31710000, 2, '2026-04-02', '2026-04-02'), "
		"('2026-04-01', 'e2', '1', 'absent', NULL, NULL, 120, 0, 0, 0, '2026-04-02', '2026-04-02'), "
		"('2026-04-01', 'e3', '1', 'present', '2026-04-01 06:12:30', '2026-04-01 16:01:00', 120, 0, "
		"35310000, "
		"2, '2026-04-02', '2026-04-02')");
	query_ok(link_a, "INSERT INTO day_close (work_date, dept, phase, expected, written, failed, absent, "
			 "started, finished) "
			 "VALUES ('2026-01-05', '1', 'done', 0, 0, 0, 0, '2026-01-06', '2026-01-06'), "
			 "('2026-03-31', '1', 'done', 1, 1, 0, 0, '2026-04-01', '2026-04-01'), "
			 "('2026-04-01', '1', 'done', 3, 2, 1, 1, '2026-04-02', '2026-04-02'), "
			 "('2026-04-01', '2', 'done', 2, 1, 0, 0, '2026-04-02', '2026-04-02'), "
			 "('2026-04-02', '1', 'rows', 3, 0, 0, 0, '2026-04-03', NULL)");
	query_ok(link_a, "INSERT INTO persist_failure (kind, ref, work_date, dept, employee, reason, "
			 "created, updated) "
			 "VALUES ('day', '2026-04-01/e9', '2026-04-01', '1', 'e9', 'data', '2026-04-02', "
			 "'2026-04-02')");
}

static void the_views_tell_what_is_there(void **state)
{
	(void)state;
	assert_true(migrate(link_a, migrate_files, migrate_files_count).ok);
	insert_days();
	query_ok(link_a, "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ONLY_FULL_GROUP_BY')");
	expect_row(link_a,
		"SELECT dept, dept_name, employees, present, late, absent, late_ms FROM daily_department "
		"WHERE work_date = '2026-04-01' ORDER BY dept",
		"1|Works|2|1|0|1|0|2|Press|1|0|1|0|750000|");
	expect_row(link_a, "SELECT month, first_day, next_month, recent FROM closed_month ORDER BY month",
		"2026-01|2026-01-01|2026-02-01|0|2026-03|2026-03-01|2026-04-01|1|2026-04|2026-04-01|2026-05-"
		"01|1|");
	expect_row(link_a,
		"SELECT employee, name, dept_now, depts, days, present, late, absent FROM monthly_employee "
		"WHERE month = '2026-04' ORDER BY employee",
		"e1|Ann|2|1|1|0|1|0|e2|Bo|1|1|1|0|0|1|e3|Cy|1|1|1|1|0|0|e4|Di|1|0|0|0|0|0|");
	/* March is recent too: those on the roster appear; e3 has left and has no row. */
	expect_row(link_a,
		"SELECT employee, days FROM monthly_employee WHERE month = '2026-03' ORDER BY employee",
		"e1|1|e2|0|e4|0|");
	expect_row(link_a, "SELECT COUNT(*) FROM monthly_employee WHERE month = '2026-01'", "0|");
	expect_row(link_a,
		"SELECT month, dept, employees, days, present, late FROM monthly_department ORDER BY month, "
		"dept",
		"2026-03|1|1|1|1|0|2026-04|1|2|2|1|0|2026-04|2|1|1|0|1|");
	expect_row(link_a,
		"SELECT work_date, dept, employee, name, status, local_in, late_minutes "
		"FROM exceptions_today ORDER BY dept, employee",
		"2026-04-01|1|e2|Bo|absent|~|0|2026-04-01|2|e1|Ann|late|2026-04-01 09:12:30.000|12|");
	expect_row(link_a,
		"SELECT local_in, local_out, worked_minutes FROM daily_sheet WHERE work_date = '2026-03-31'",
		"2026-03-31 08:50:00.000|2026-03-31 18:01:00.000|551|");
	expect_row(link_a, "SELECT employee, days, late, absent, late_ms FROM late_90_days ORDER BY employee",
		"e1|2|1|0|750000|e2|1|0|1|0|e3|1|0|0|0|");
	expect_row(link_a,
		"SELECT dept, expected, written, failed, rows_found, open_failures, balanced FROM "
		"close_check "
		"WHERE work_date >= '2026-04-01' ORDER BY work_date, dept",
		"1|3|2|1|2|1|1|2|2|1|0|1|0|0|1|3|0|0|0|0|0|");
	struct outcome o =
		query(link_a, "INSERT INTO persist_failure (kind, ref, reason, created, updated) "
			      "VALUES ('day', '2026-04-01/e9', 'data', '2026-04-02', '2026-04-02')");
	assert_int_equal(o.code, 1062);
}

#define TEST(name) cmocka_unit_test_setup(name, empty_database)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(migrations_apply_once),
		TEST(migrations_run_again),
		TEST(two_daemons_migrate_at_once),
		TEST(a_changed_file_is_refused),
		TEST(a_newer_database_is_refused),
		TEST(a_half_applied_file_runs_again),
		TEST(a_lost_connection_ends_a_migration),
		TEST(the_views_tell_what_is_there),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, setup_links, teardown_links);
}
