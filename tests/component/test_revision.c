/* SPDX-License-Identifier: MIT */
/* Revisions against a real server: a row is revised, and one that another has changed meanwhile fails the
 * whole transaction and stays as it is. */
#include "persist/revision.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/turn.h"
#include "persist/day_row.h"
#include "persist/migrate.h"
#include "persist/mysql_link.h"
#include "rules/workday.h"

#define DEADLINE_US INT64_C(20000000)
#define DAY         11000 /* 2000-02-13: no other test writes it */

static struct event_base *base;
static struct config config;
static struct mysql_link *link;
static char answer[256];
static int done;

static void wait_for(bool (*reached)(void))
{
	int64_t deadline = clock_mono_us() + DEADLINE_US;
	struct timeval slice = {0, 10000};

	while (!reached()) {
		assert_true(clock_mono_us() < deadline);
		event_base_loopexit(base, &slice);
		event_base_dispatch(base);
	}
}

static bool link_is_ready(void)
{
	return mysql_link_ready(link);
}

static bool is_done(void)
{
	return done != 0;
}

static void on_migrated(const char *error, size_t applied, void *arg)
{
	(void)applied;
	(void)arg;
	assert_null(error);
	done = 1;
}

static void on_result(const struct mysql_result *result, void *arg)
{
	(void)arg;
	assert_int_equal(result->outcome, SQL_OK);
	answer[0] = '\0';
	if (result->rows > 0)
		bytes_copy(answer, sizeof(answer), mysql_cell(result, 0, 0));
	done = 1;
}

static const char *ask(const char *sql)
{
	struct buf text = BUF_INIT;

	buf_add_str(&text, sql);
	done = 0;
	mysql_link_query(link, &text, on_result, NULL);
	wait_for(is_done);
	return answer;
}

static void on_written(bool ok, void *arg)
{
	(void)arg;
	done = ok ? 1 : -1;
}

/* Writes one revision of E1; whether it was taken. */
static bool revise(const char *old_set, const char *new_set, int64_t revision)
{
	struct revision_rows rows = {0};
	struct shift shift = workday_shift(DAY);
	struct revision_row row = {.day = DAY,
		.employee = BYTES_LIT("E1"),
		.dept = BYTES_LIT("D1"),
		.old_status = BYTES_LIT("absent"),
		.old_set = bytes_of(old_set),
		.new_set = bytes_of(new_set),
		.cause = "late_punch",
		.revision = revision};

	assert_int_equal(punch_judge(row.old_set, &shift, true, &row.old), 0);
	assert_int_equal(punch_judge(row.new_set, &shift, true, &row.new), 0);
	revision_rows_init(&rows);
	revision_row_add(&rows, &row, clock_wall_ms());
	done = 0;
	revision_rows_write(&rows, link, on_written, NULL);
	wait_for(is_done);
	revision_rows_release(&rows);
	return done == 1;
}

static const char *punches_of_e1(void)
{
	return ask("SELECT CONCAT(revision,' ',punch_set) FROM attendance_day WHERE employee='E1' AND "
		   "work_date='2000-02-13'");
}

static const char *revisions_of_e1(void)
{
	return ask("SELECT COUNT(*) FROM attendance_revision WHERE employee='E1' AND work_date='2000-02-13'");
}

static int clean(void **state)
{
	(void)state;
	ask("DELETE FROM attendance_day WHERE work_date='2000-02-13'");
	ask("DELETE FROM attendance_revision WHERE work_date='2000-02-13'");
	return 0;
}

static void test_revises(void **state)
{
	(void)state;
	assert_true(revise("", "I950432400000", 1));
	assert_string_equal(punches_of_e1(), "1 I950432400000");
	assert_true(revise("I950432400000", "I950432400000 O950464800000", 2));
	assert_string_equal(punches_of_e1(), "2 I950432400000 O950464800000");
	assert_string_equal(revisions_of_e1(), "2");
	/* Again is nothing new, and no failure. */
	assert_true(revise("I950432400000", "I950432400000 O950464800000", 2));
	assert_string_equal(revisions_of_e1(), "2");
}

/* Between our reading and our writing a close has written the row. */
static void test_loses_the_race(void **state)
{
	(void)state;
	ask("INSERT INTO attendance_day (work_date,employee,dept,status,utc_offset,created,updated) VALUES "
	    "('2000-02-13','E1','D1','absent',0,NOW(3),NOW(3))");
	assert_false(revise("", "I950432400000", 1));
	assert_string_equal(punches_of_e1(), "1 ");
	assert_string_equal(revisions_of_e1(), "0");
	assert_true(revise("", "I950432400000", 2));
	assert_string_equal(punches_of_e1(), "2 I950432400000");
}

static const char *must(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL)
		fail_msg("%s is not set", name);
	return value;
}

static void set(const char *name, const char *value)
{
	struct buf errors = BUF_INIT;

	assert_int_equal(config_set(&config, "mysql", name, value, &errors), 0);
	buf_release(&errors);
}

static int setup(void **state)
{
	(void)state;
	config_init(&config);
	set("port", must("MYSQL_PORT"));
	set("user", must("MYSQL_USER"));
	set("password", must("MYSQL_PASSWORD"));
	set("database", must("MYSQL_DATABASE"));
	base = event_base_new();
	turn_init(base);
	link = mysql_link_new(base, &config, "test");
	mysql_link_start(link);
	wait_for(link_is_ready);
	done = 0;
	migrate_start(link, migrate_files, migrate_files_count, on_migrated, NULL);
	wait_for(is_done);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mysql_link_free(link);
	turn_release();
	event_base_free(base);
	config_release(&config);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_revises, clean),
		cmocka_unit_test_setup(test_loses_the_race, clean),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
