/* SPDX-License-Identifier: MIT */
/* What the tests of persist/'s half of MySQL share: a loop that waits for conditions, two links to a database
 * of the tests' own (MYSQL_DATABASE with "_test_mysql" behind it), how a statement went, and a beat that
 * tells when the loop stood still. */
#ifndef TESTS_COMPONENT_MYSQL_FIXTURE_H
#define TESTS_COMPONENT_MYSQL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/mysql_link.h"

#define WAIT_US    (INT64_C(20) * 1000000)
#define MAX_GAP_US 100000

static struct event_base *loop;
static struct event *tick; /* so that a wait can end */
static struct config config;
static struct mysql_link *link_a, *link_b;
static char database[128];

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

static inline void keep(const struct mysql_result *r, void *arg)
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

static inline const char *need(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL || value[0] == '\0') {
		print_error("%s is not set\n", name);
		exit(1);
	}
	return value;
}

static inline void set(const char *key, const char *value)
{
	struct buf errors = BUF_INIT;

	if (config_set(&config, "mysql", key, value, &errors) != 0) {
		print_error("%s\n", errors.data);
		exit(1);
	}
	buf_release(&errors);
}

static inline void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

/* Turns the loop until *done is at least `wanted`; fails after WAIT_US. */
static inline void wait_int(const int *done, int wanted)
{
	int64_t until = clock_mono_us() + WAIT_US;

	while (*done < wanted && clock_mono_us() < until)
		event_base_loop(loop, EVLOOP_ONCE);
	assert_true(*done >= wanted);
}

static inline void wait_ready(struct mysql_link *link, bool ready)
{
	int64_t until = clock_mono_us() + WAIT_US;

	while (mysql_link_ready(link) != ready && clock_mono_us() < until)
		event_base_loop(loop, EVLOOP_ONCE);
	if (mysql_link_ready(link) != ready)
		print_error("last error: %s\n", mysql_link_last_error(link));
	assert_int_equal(mysql_link_ready(link), ready);
}

static inline void send_text(struct mysql_link *link, const char *text, struct outcome *o)
{
	struct buf sql = BUF_INIT;

	buf_add_str(&sql, text);
	mysql_link_query(link, &sql, keep, o);
	assert_null(sql.data);
}

static inline struct outcome query(struct mysql_link *link, const char *text)
{
	struct outcome o = {.count = 1};

	send_text(link, text, &o);
	assert_int_equal(o.calls, 0);
	wait_int(&o.calls, 1);
	return o;
}

static inline struct outcome query_ok(struct mysql_link *link, const char *text)
{
	struct outcome o = query(link, text);

	if (o.outcome != SQL_OK)
		print_error("%s: %u %s\n", text, o.code, o.text);
	assert_int_equal(o.outcome, SQL_OK);
	return o;
}

static inline void expect_row(struct mysql_link *link, const char *sql, const char *text)
{
	struct outcome o = query_ok(link, sql);

	if (strcmp(o.text, text) != 0)
		print_error("%s\n", sql);
	assert_string_equal(o.text, text);
}

/* Asks until the answer is `text`. */
static inline void wait_row(struct mysql_link *link, const char *sql, const char *text)
{
	int64_t until = clock_mono_us() + WAIT_US;
	struct outcome o;

	do
		o = query_ok(link, sql);
	while (strcmp(o.text, text) != 0 && clock_mono_us() < until);
	assert_string_equal(o.text, text);
}

/* A statement of `size` bytes. */
static inline void add_long_select(struct buf *sql, size_t size)
{
	buf_add_str(sql, "SELECT LENGTH('");
	assert_true(buf_reserve(sql, size));
	memset(sql->data + sql->len, 'x', size - sql->len);
	sql->len = size - 2;
	buf_add_str(sql, "')");
}

/* The largest pause between two beats of a 10 ms timer. */
static struct event *beat;
static int64_t last_beat, max_gap;

static inline void on_beat(evutil_socket_t fd, short what, void *arg)
{
	int64_t now = clock_mono_us();

	(void)fd;
	(void)what;
	(void)arg;
	if (now - last_beat > max_gap)
		max_gap = now - last_beat;
	last_beat = now;
}

static inline void gap_start(void)
{
	last_beat = clock_mono_us();
	max_gap = 0;
	beat = event_new(loop, -1, EV_PERSIST, on_beat, NULL);
	event_add(beat, &(struct timeval){0, 10000});
}

static inline void gap_check(const char *what)
{
	on_beat(-1, 0, NULL);
	event_free(beat);
	print_message("%s: largest gap of the loop %lld ms\n", what, (long long)(max_gap / 1000));
	assert_true(max_gap < MAX_GAP_US);
}

static inline struct mysql_link *connected(const char *name)
{
	struct mysql_link *link = mysql_link_new(loop, &config, name);

	mysql_link_start(link);
	wait_ready(link, true);
	return link;
}

/* Frees a link and lets the turn end. */
static inline void drop(struct mysql_link *link)
{
	mysql_link_free(link);
	event_base_loop(loop, EVLOOP_ONCE);
}

/* Ends the one session that `where` picks, once it is there. */
static inline void kill_session(const char *where)
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

/* A statement on the tests' database: its name stands between the two. */
static inline void query_database(struct mysql_link *link, const char *before, const char *after)
{
	char sql[300];

	snprintf(sql, sizeof(sql), "%s %s%s", before, database, after);
	query_ok(link, sql);
}

/* An empty one, whatever was there. */
static inline void make_database(struct mysql_link *link)
{
	query_database(link, "DROP DATABASE IF EXISTS", "");
	query_database(link, "CREATE DATABASE", " CHARACTER SET utf8mb4");
}

static inline int setup_links(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	loop = event_base_new();
	turn_init(loop);
	tick = event_new(loop, -1, EV_PERSIST, on_tick, NULL);
	event_add(tick, &(struct timeval){0, 20000});
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
	make_database(first);
	drop(first);
	set("database", database);
	link_a = connected("a");
	link_b = connected("b");
	return 0;
}

static inline int teardown_links(void **state)
{
	(void)state;
	query_database(link_a, "DROP DATABASE", "");
	drop(link_a);
	drop(link_b);
	config_release(&config);
	event_free(tick);
	turn_release();
	event_base_free(loop);
	return 0;
}

/* Before each test: both links are up, and the table t is empty. */
static inline int setup_table(void **state)
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

#endif
