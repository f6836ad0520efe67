/* SPDX-License-Identifier: MIT */
/* persist/mysql_link.c and persist/migrate.c against a real server: outcomes, losses, a server that stands
 * still, and that the loop never does. Works in a database of its own, MYSQL_DATABASE with "_test_mysql"
 * behind it. */
#include "persist/mysql_link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <glob.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/migrate.h"
#include "persist/mysql_text.h"

#define WAIT_US    (INT64_C(20) * 1000000)
#define MAX_GAP_US 100000

static struct event_base *base;
static struct config config;
static struct mysql_link *link_a, *link_b;
static char database[128];
static pid_t server;

/* How one statement or batch went. */
struct outcome {
	int calls;
	enum sql_outcome outcome;
	unsigned code;
	size_t failed, rows, columns;
	uint64_t affected[4];
	size_t count;    /* statements whose affected rows are wanted */
	char text[1024]; /* the cells, each ended by '|', NULL as "~"; or the message */
};

static void keep(const struct mysql_result *r, void *arg)
{
	struct outcome *o = arg;
	size_t len = 0;

	o->calls++;
	o->outcome = r->outcome;
	o->code = r->code;
	o->failed = r->failed;
	o->rows = r->rows;
	o->columns = r->columns;
	for (size_t i = 0; i < o->count; i++)
		o->affected[i] = r->affected[i];
	snprintf(o->text, sizeof(o->text), "%s", r->message);
	for (size_t i = 0; i < r->rows * r->columns && len < sizeof(o->text) - 1; i++) {
		struct bytes c = r->cells[i];
		len += (size_t)snprintf(o->text + len, sizeof(o->text) - len, "%.*s|",
			c.p != NULL ? (int)c.n : 1, c.p != NULL ? c.p : "~");
	}
}

static const char *need(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL || value[0] == '\0') {
		print_error("%s is not set\n", name);
		exit(1);
	}
	return value;
}

static void set(const char *key, const char *value)
{
	struct buf errors = BUF_INIT;

	if (config_set(&config, "mysql", key, value, &errors) != 0) {
		print_error("%s\n", errors.data);
		exit(1);
	}
	buf_release(&errors);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

/* Turns the loop until *done is at least `wanted`; fails after WAIT_US. */
static void wait_int(const int *done, int wanted)
{
	int64_t until = clock_mono_us() + WAIT_US;

	while (*done < wanted && clock_mono_us() < until)
		event_base_loop(base, EVLOOP_ONCE);
	assert_true(*done >= wanted);
}

static void wait_ready(struct mysql_link *link, bool ready)
{
	int64_t until = clock_mono_us() + WAIT_US;

	while (mysql_link_ready(link) != ready && clock_mono_us() < until)
		event_base_loop(base, EVLOOP_ONCE);
	if (mysql_link_ready(link) != ready)
		print_error("last error: %s\n", mysql_link_last_error(link));
	assert_int_equal(mysql_link_ready(link), ready);
}

static void send_text(struct mysql_link *link, const char *text, struct outcome *o)
{
	struct buf sql = BUF_INIT;

	buf_add_str(&sql, text);
	mysql_link_query(link, &sql, keep, o);
	assert_null(sql.data);
}

static struct outcome query(struct mysql_link *link, const char *text)
{
	struct outcome o = {.count = 1};

	send_text(link, text, &o);
	assert_int_equal(o.calls, 0);
	wait_int(&o.calls, 1);
	return o;
}

static struct outcome query_ok(struct mysql_link *link, const char *text)
{
	struct outcome o = query(link, text);

	if (o.outcome != SQL_OK)
		print_error("%s: %u %s\n", text, o.code, o.text);
	assert_int_equal(o.outcome, SQL_OK);
	return o;
}

static void expect_row(struct mysql_link *link, const char *sql, const char *text)
{
	struct outcome o = query_ok(link, sql);

	if (strcmp(o.text, text) != 0)
		print_error("%s\n", sql);
	assert_string_equal(o.text, text);
}

/* Asks until the answer is `text`. */
static void wait_row(struct mysql_link *link, const char *sql, const char *text)
{
	int64_t until = clock_mono_us() + WAIT_US;
	struct outcome o;

	do
		o = query_ok(link, sql);
	while (strcmp(o.text, text) != 0 && clock_mono_us() < until);
	assert_string_equal(o.text, text);
}

/* The largest pause between two beats of a 10 ms timer. */
static struct event *beat;
static int64_t last_beat, max_gap;

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
	int64_t now = clock_mono_us();

	(void)fd;
	(void)what;
	(void)arg;
	if (now - last_beat > max_gap)
		max_gap = now - last_beat;
	last_beat = now;
}

static void gap_start(void)
{
	last_beat = clock_mono_us();
	max_gap = 0;
	event_add(beat, &(struct timeval){0, 10000});
}

static void gap_check(const char *what)
{
	on_beat(-1, 0, NULL);
	event_del(beat);
	print_message("%s: largest gap of the loop %lld ms\n", what, (long long)(max_gap / 1000));
	assert_true(max_gap < MAX_GAP_US);
}

/* A process id from @@pid_file, so that the server can be made to stand still. */
static pid_t find_server(void)
{
	struct outcome o = query_ok(link_a, "SELECT IF(LEFT(@@pid_file, 1) = '/', @@pid_file, "
					    "CONCAT(@@datadir, @@pid_file))");
	char *end = strchr(o.text, '|');
	int pid = 0;

	*end = '\0';
	FILE *f = fopen(o.text, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	assert_true(pid > 1);
	return (pid_t)pid;
}

/* Whether a thread is stopped, by the third field of its stat line. */
static bool thread_stopped(const char *path)
{
	char state = 'T'; /* one that has ended meanwhile runs no more */
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return true;
	(void)!fscanf(f, "%*d (%*[^)]) %c", &state);
	fclose(f);
	return state == 'T';
}

static bool server_stopped(void)
{
	char pattern[64];
	glob_t threads;
	bool stopped = true;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/stat", (int)server);
	assert_int_equal(glob(pattern, 0, NULL, &threads), 0);
	for (size_t i = 0; i < threads.gl_pathc; i++)
		stopped = stopped && thread_stopped(threads.gl_pathv[i]);
	globfree(&threads);
	return stopped;
}

/* The signal takes a thread at a time: one that still runs would answer. */
static void stop_server(void)
{
	int64_t until = clock_mono_us() + WAIT_US;

	kill(server, SIGSTOP);
	while (!server_stopped() && clock_mono_us() < until)
		event_base_loop(base, EVLOOP_ONCE);
	assert_true(server_stopped());
}

static struct mysql_link *connected(const char *name)
{
	struct mysql_link *link = mysql_link_new(base, &config, name);

	mysql_link_start(link);
	wait_ready(link, true);
	return link;
}

/* Frees a link and lets the turn end. */
static void drop(struct mysql_link *link)
{
	mysql_link_free(link);
	event_base_loop(base, EVLOOP_ONCE);
}

static int setup_all(void **state)
{
	char sql[300];
	static struct event *tick;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	base = event_base_new();
	turn_init(base);
	tick = event_new(base, -1, EV_PERSIST, on_tick, NULL); /* so that a wait can end */
	event_add(tick, &(struct timeval){0, 20000});
	beat = event_new(base, -1, EV_PERSIST, on_beat, NULL);
	config_init(&config);
	set("host", "127.0.0.1");
	set("port", need("MYSQL_PORT"));
	set("user", need("MYSQL_USER"));
	set("password", need("MYSQL_PASSWORD"));
	set("database", need("MYSQL_DATABASE"));
	set("timeout", "20s");
	if (getenv("MYSQL_TLS_CA") != NULL) /* the same tests over TLS, for a server that offers it */
		set("tls_ca", getenv("MYSQL_TLS_CA"));
	snprintf(database, sizeof(database), "%s_test_mysql", config.mysql_database);
	struct mysql_link *first = connected("first");
	snprintf(sql, sizeof(sql), "DROP DATABASE IF EXISTS %s", database);
	query_ok(first, sql);
	snprintf(sql, sizeof(sql), "CREATE DATABASE %s CHARACTER SET utf8mb4", database);
	query_ok(first, sql);
	drop(first);
	set("database", database);
	link_a = connected("a");
	link_b = connected("b");
	server = find_server();
	return 0;
}

static int teardown_all(void **state)
{
	char sql[300];

	(void)state;
	snprintf(sql, sizeof(sql), "DROP DATABASE %s", database);
	query_ok(link_a, sql);
	drop(link_a);
	drop(link_b);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	wait_ready(link_a, true);
	wait_ready(link_b, true);
	query_ok(link_a, "DROP TABLE IF EXISTS t");
	query_ok(link_a,
		"CREATE TABLE t (id VARBINARY(300) NOT NULL PRIMARY KEY, n INT NULL, "
		"name VARCHAR(255) NOT NULL DEFAULT '') ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kill(server, SIGCONT);
	set("timeout", "20s");
	return 0;
}

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

static void a_wrong_password_is_reported(void **state)
{
	struct config wrong = config;
	struct outcome o = {0};
	char password[] = "not-the-password";

	(void)state;
	wrong.mysql_password = password;
	struct mysql_link *link = mysql_link_new(base, &wrong, "wrong");
	mysql_link_start(link);
	send_text(link, "SELECT 1", &o);
	assert_int_equal(o.calls, 0);
	wait_int(&o.calls, 1);
	assert_int_equal(o.outcome, SQL_LOST);
	int64_t until = clock_mono_us() + WAIT_US;
	while (strncmp(mysql_link_last_error(link), "1045 ", 5) != 0 && clock_mono_us() < until)
		event_base_loop(base, EVLOOP_ONCE);
	assert_memory_equal(mysql_link_last_error(link), "1045 ", 5);
	assert_null(strstr(mysql_link_last_error(link), password));
	drop(link);
}

static void a_refused_port_is_reported(void **state)
{
	struct config wrong = config;
	struct outcome o = {0};

	(void)state;
	wrong.mysql_port = 1;
	struct mysql_link *link = mysql_link_new(base, &wrong, "refused");
	mysql_link_start(link);
	int64_t until = clock_mono_us() + WAIT_US;
	while (mysql_link_last_error(link)[0] == '\0' && clock_mono_us() < until)
		event_base_loop(base, EVLOOP_ONCE);
	assert_memory_equal(mysql_link_last_error(link), "200", 3);
	send_text(link, "SELECT 1", &o);
	wait_int(&o.calls, 1);
	assert_int_equal(o.outcome, SQL_LOST);
	drop(link);
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
	buf_add_str(&sql, "SELECT LENGTH('");
	assert_true(buf_reserve(&sql, limit));
	memset(sql.data + sql.len, 'x', limit - sql.len);
	sql.len = limit;
	buf_add_str(&sql, "')");
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
	buf_add_str(&sql, "SELECT LENGTH('");
	assert_true(buf_reserve(&sql, limit));
	memset(sql.data + sql.len, 'x', limit - sql.len);
	sql.len = limit - 16 - 2;
	buf_add_str(&sql, "')");
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

static int changes;
static bool last_change;

static void on_change(bool ready, void *arg)
{
	(void)arg;
	changes++;
	last_change = ready;
}

static void kill_session(const char *where)
{
	char sql[300];
	struct outcome o;
	int64_t until = clock_mono_us() + WAIT_US;

	snprintf(sql, sizeof(sql),
		"SELECT ID FROM information_schema.PROCESSLIST WHERE %s AND ID <> CONNECTION_ID()", where);
	do
		o = query_ok(link_b, sql);
	while (o.rows == 0 && clock_mono_us() < until);
	assert_int_equal(o.rows, 1);
	snprintf(sql, sizeof(sql), "KILL %ld", strtol(o.text, NULL, 10));
	query_ok(link_b, sql);
}

static void a_kill_in_a_query_is_a_loss_and_heals(void **state)
{
	struct mysql_link *link = connected("victim");
	struct outcome running = {0}, behind = {0}, batch = {0};
	const struct bytes one = BYTES_LIT("INSERT INTO t (id) VALUES ('behind')");
	struct buf info = BUF_INIT;

	(void)state;
	changes = 0;
	mysql_link_watch(link, on_change, NULL);
	send_text(link, "SELECT SLEEP(60), 'victim'", &running);
	send_text(link, "INSERT INTO t (id) VALUES ('behind')", &behind);
	mysql_link_batch(link, &one, 1, keep, &batch);
	kill_session("INFO LIKE 'SELECT SLEEP(60), \\'victim%'");
	wait_int(&batch.calls, 1);
	assert_int_equal(running.calls, 1);
	assert_int_equal(running.outcome, SQL_LOST);
	assert_int_equal(behind.calls, 1);
	assert_int_equal(behind.outcome, SQL_LOST);
	assert_int_equal(batch.outcome, SQL_LOST);
	assert_int_equal(changes, 1);
	assert_false(last_change);
	wait_ready(link, true);
	assert_int_equal(changes, 2);
	assert_true(last_change);
	expect_row(link, "SELECT COUNT(*) FROM t", "0|");
	info_write(&info, "mysql");
	assert_non_null(strstr(info.data, "mysql_victim_state:ready\r\n"));
	assert_non_null(strstr(info.data, "mysql_victim_reconnects:1\r\n"));
	assert_non_null(strstr(info.data, "mysql_victim_queue:0\r\n"));
	assert_non_null(strstr(info.data, "mysql_victim_errors:3\r\n"));
	buf_release(&info);
	drop(link);
	info_write(&info, "mysql");
	assert_null(strstr(info.data, "victim"));
	buf_release(&info);
}

static void a_kill_while_idle_is_seen_without_a_query(void **state)
{
	struct mysql_link *link = connected("idle");
	char where[64];
	struct outcome o = query_ok(link, "SELECT CONNECTION_ID()");

	(void)state;
	changes = 0;
	mysql_link_watch(link, on_change, NULL);
	snprintf(where, sizeof(where), "ID = %ld", strtol(o.text, NULL, 10));
	kill_session(where);
	wait_int(&changes, 2);
	assert_true(last_change);
	expect_row(link, "SELECT 1", "1|");
	drop(link);
}

static void a_server_that_stands_still_never_stops_the_loop(void **state)
{
	struct outcome o = {0}, big = {0};
	struct buf sql = BUF_INIT;

	(void)state;
	struct mysql_link *busy = connected("busy"), *idle = connected("still"),
			  *writing = connected("writing");
	size_t limit = mysql_link_max_packet(writing);
	set("timeout", "300ms");
	stop_server();
	gap_start();
	int64_t start = clock_mono_us();
	send_text(busy, "SELECT 1", &o);
	buf_add_str(&sql,
		"SELECT LENGTH('"); /* more than the sockets' buffers hold, so that the write is suspended */
	assert_true(buf_reserve(&sql, limit));
	memset(sql.data + sql.len, 'x', limit - sql.len);
	sql.len = limit - 100;
	buf_add_str(&sql, "')");
	mysql_link_query(writing, &sql, keep, &big);
	wait_int(&o.calls, 1);
	wait_int(&big.calls, 1);
	assert_int_equal(o.outcome, SQL_LOST);
	assert_int_equal(big.outcome, SQL_LOST);
	assert_non_null(strstr(o.text, "no answer within 300 ms"));
	assert_true(clock_mono_us() - start >= 290000);
	/* The log-ins that follow find a socket that accepts and says nothing. */
	changes = 0;
	struct mysql_link *fresh = mysql_link_new(base, &config, "fresh");
	mysql_link_start(fresh);
	int64_t until = clock_mono_us() + WAIT_US;
	while (mysql_link_last_error(fresh)[0] == '\0' && clock_mono_us() < until)
		event_base_loop(base, EVLOOP_ONCE);
	assert_non_null(strstr(mysql_link_last_error(fresh), "no answer within 300 ms"));
	/* Free one in each state: idle, with a query out, in the middle of a log-in or waiting for the next.
	 */
	struct outcome out = {0};
	send_text(link_b, "SELECT 1", &out);
	event_base_loop(base, EVLOOP_ONCE);
	event_base_loop(base, EVLOOP_ONCE);
	drop(idle);
	drop(busy);
	drop(fresh);
	drop(writing);
	drop(link_b);
	assert_int_equal(out.calls, 1);
	assert_int_equal(out.outcome, SQL_LOST);
	gap_check("server stopped");
	kill(server, SIGCONT);
	set("timeout", "20s");
	link_b = connected("b");
}

/* A greeting as a MariaDB server sends it, offering TLS; what comes next it never reads. */
static void greet(
	struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer, int len, void *arg)
{
	static const char greeting[] = "\x59\0\0\0\x0a"
				       "5.5.5-10.11.6-MariaDB\0\7\0\0\0abcdefgh\0\xff\xff\x2d\2\0\x28\0\x15"
				       "\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password";
	int *accepted = arg;

	(void)listener;
	(void)peer;
	(void)len;
	_Static_assert(sizeof(greeting) - 4 == 0x59, "the length in front");
	if (send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL) == sizeof(greeting))
		++*accepted; /* the descriptor stays open until the process ends */
}

/* Some CA, so that the library gets as far as the handshake. */
static void write_ca(const char *path)
{
	EVP_PKEY *key = EVP_RSA_gen(2048);
	X509 *cert = X509_new();
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(
		X509_get_subject_name(cert), "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	assert_int_equal(PEM_write_X509(f, cert), 1);
	fclose(f);
	X509_free(cert);
	EVP_PKEY_free(key);
}

/* The client library waits by poll() in the TLS handshake: a server that stops there must not stop the loop.
 */
static void a_tls_handshake_that_stands_still_never_stops_the_loop(void **state)
{
	struct config stalled = config;
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(any);
	char path[] = "/tmp/muster-test-ca-XXXXXX", socket_path[] = "";
	int accepted = 0, file = mkstemp(path);

	(void)state;
	assert_true(file >= 0);
	close(file);
	write_ca(path);
	struct evconnlistener *listener = evconnlistener_new_bind(
		base, greet, &accepted, LEV_OPT_CLOSE_ON_FREE, 8, (struct sockaddr *)&any, sizeof(any));
	assert_non_null(listener);
	assert_int_equal(getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&any, &len), 0);
	stalled.mysql_port = ntohs(any.sin_port);
	stalled.mysql_tls_ca = path;
	stalled.mysql_socket = socket_path;
	stalled.mysql_timeout = 300;
	struct mysql_link *link = mysql_link_new(base, &stalled, "stalled");
	gap_start();
	mysql_link_start(link);
	wait_int(&accepted, 2); /* the second attempt: the first met its deadline */
	assert_non_null(strstr(mysql_link_last_error(link), "no answer within 300 ms"));
	drop(link); /* with a log-in out */
	gap_check("stalled handshake");
	evconnlistener_free(listener);
	unlink(path);
}

static struct mysql_link *own;

static void free_own(const struct mysql_result *result, void *arg)
{
	if (own != NULL)
		mysql_link_free(own);
	own = NULL;
	keep(result, arg);
}

static void a_link_may_be_freed_in_its_callback(void **state)
{
	struct outcome first = {0}, second = {0};
	struct buf sql = BUF_INIT;

	(void)state;
	own = connected("own");
	buf_add_str(&sql, "SELECT 'kept'");
	mysql_link_query(own, &sql, free_own, &first);
	send_text(own, "SELECT 2", &second);
	wait_int(&first.calls, 1);
	assert_string_equal(first.text, "kept|");
	assert_int_equal(second.calls, 1);
	assert_int_equal(second.outcome, SQL_LOST);
	event_base_loop(base, EVLOOP_ONCE);
	/* The same out of a loss, with jobs behind. */
	first = second = (struct outcome){0};
	own = connected("own");
	buf_add_str(&sql, "SELECT SLEEP(60), 'own'");
	mysql_link_query(own, &sql, free_own, &first);
	send_text(own, "SELECT 2", &second);
	kill_session("INFO LIKE 'SELECT SLEEP(60), \\'own%'");
	wait_int(&second.calls, 1);
	assert_int_equal(first.calls, 1);
	assert_int_equal(second.outcome, SQL_LOST);
	event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(second.calls, 1);
}

static int again_calls;

static void again(const struct mysql_result *result, void *arg)
{
	struct buf sql = BUF_INIT;

	assert_int_equal(result->outcome, SQL_LOST);
	if (++again_calls == 1000)
		return;
	buf_add_str(&sql, "SELECT 1");
	mysql_link_query(arg, &sql, again, arg);
}

/* A caller that sends again at once must not starve the loop. */
static void retrying_at_once_leaves_the_loop_turning(void **state)
{
	struct config wrong = config;
	struct buf sql = BUF_INIT;

	(void)state;
	wrong.mysql_port = 1;
	struct mysql_link *link = mysql_link_new(base, &wrong, "again");
	again_calls = 0;
	buf_add_str(&sql, "SELECT 1");
	mysql_link_query(link, &sql, again, link);
	event_base_loop(base, EVLOOP_ONCE);
	event_base_loop(base, EVLOOP_ONCE);
	assert_true(again_calls < 10);
	wait_int(&again_calls, 1000);
	drop(link);
}

/* Migrations. */

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
	char sql[300];

	(void)state;
	wait_ready(link_a, true);
	snprintf(sql, sizeof(sql), "DROP DATABASE %s", database);
	query_ok(link_a, sql);
	snprintf(sql, sizeof(sql), "CREATE DATABASE %s CHARACTER SET utf8mb4", database);
	query_ok(link_a, sql);
	snprintf(sql, sizeof(sql), "USE %s", database);
	query_ok(link_a, sql);
	query_ok(link_b, sql);
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

/* Views. */

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

#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)
#define FRESH(name) cmocka_unit_test_setup_teardown(name, empty_database, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_session_is_as_promised),
		TEST(a_wrong_password_is_reported),
		TEST(a_refused_port_is_reported),
		TEST(every_byte_comes_back),
		TEST(datetimes_are_what_the_server_reads),
		TEST(hundred_batches_of_thousand_rows),
		TEST(a_bad_row_is_data_and_undoes_its_batch),
		TEST(outcomes_of_other_mistakes),
		TEST(a_statement_above_the_limit_costs_nothing),
		TEST(a_deadlock_is_to_be_retried),
		TEST(a_kill_in_a_query_is_a_loss_and_heals),
		TEST(a_kill_while_idle_is_seen_without_a_query),
		TEST(a_server_that_stands_still_never_stops_the_loop),
		TEST(a_tls_handshake_that_stands_still_never_stops_the_loop),
		TEST(a_link_may_be_freed_in_its_callback),
		TEST(retrying_at_once_leaves_the_loop_turning),
		FRESH(migrations_apply_once),
		FRESH(migrations_run_again),
		FRESH(two_daemons_migrate_at_once),
		FRESH(a_changed_file_is_refused),
		FRESH(a_newer_database_is_refused),
		FRESH(a_half_applied_file_runs_again),
		FRESH(a_lost_connection_ends_a_migration),
		FRESH(the_views_tell_what_is_there),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
