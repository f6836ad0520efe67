/* SPDX-License-Identifier: MIT */
/* Connecting to Redis, against a server in this very loop that answers as the test says, or not at all. */
#include "persist/redis_login.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <hiredis/async.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"

#define WAIT_US (10 * INT64_C(1000000))

static struct event_base *loop;
static struct config config;

#define wait_for(condition)                                                                                  \
	do {                                                                                                 \
		int64_t deadline_us = clock_mono_us() + WAIT_US;                                             \
		while (!(condition)) {                                                                       \
			struct timeval most = {0, 10000};                                                    \
			if (clock_mono_us() > deadline_us)                                                   \
				fail_msg("waited in vain for %s", #condition);                               \
			event_base_loopexit(loop, &most);                                                    \
			event_base_loop(loop, EVLOOP_ONCE);                                                  \
		}                                                                                            \
	} while (0)

/* ---- the server ---- */

static struct server {
	struct evconnlistener *listener;
	struct bufferevent *client;
	const char *role, *auth, *exists; /* the answers to ROLE, AUTH and EXISTS */
	int answers;                      /* so many are given, then silence, or the end if `cuts` */
	bool cuts;
	int lines, greetings, commands; /* lines of the present command still to come; what has come */
	struct buf said;
} server;

static void hang_up(void)
{
	if (server.client != NULL)
		bufferevent_free(server.client);
	server.client = NULL;
}

static void answer(const char *word)
{
	const char *text = "+OK\r\n";

	server.commands++;
	if (server.answers == 0) {
		if (server.cuts)
			hang_up();
		return;
	}
	server.answers--;
	if (strcmp(word, "ROLE") == 0)
		text = server.role;
	else if (strcmp(word, "AUTH") == 0)
		text = server.auth;
	else if (strcmp(word, "EXISTS") == 0)
		text = server.exists;
	bufferevent_write(server.client, text, strlen(text));
	server.greetings += strcmp(word, "EXISTS") == 0;
}

/* A command comes as "*<words>", and for each word "$<length>" and the word itself, which has one line here.
 */
static void take_line(const char *line)
{
	static char first[64];

	if (server.lines == 0) {
		server.lines = 2 * (int)strtol(line + 1, NULL, 10);
		first[0] = '\0';
		return;
	}
	server.lines--;
	if (line[0] == '$')
		return;
	buf_add_str(&server.said, line);
	buf_add_char(&server.said, server.lines == 0 ? '|' : ' ');
	if (first[0] == '\0')
		bytes_copy(first, sizeof(first), bytes_of(line));
	if (server.lines == 0)
		answer(first);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	char *line;

	(void)arg;
	while (server.client == bev &&
		(line = evbuffer_readln(bufferevent_get_input(bev), NULL, EVBUFFER_EOL_CRLF)) != NULL) {
		take_line(line);
		free(line);
	}
}

static void on_end(struct bufferevent *bev, short what, void *arg)
{
	(void)what;
	(void)arg;
	if (server.client == bev)
		hang_up();
}

static void on_client(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *a, int n, void *arg)
{
	(void)l;
	(void)a;
	(void)n;
	(void)arg;
	hang_up(); /* on one that was cancelled before it was seen here */
	server.lines = 0;
	server.client = bufferevent_socket_new(loop, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(server.client, on_read, NULL, on_end, NULL);
	bufferevent_enable(server.client, EV_READ);
}

static void set(const char *key, const char *value)
{
	struct buf errors = BUF_INIT;

	assert_int_equal(config_set(&config, "redis", key, value, &errors), 0);
}

static void start_server(void)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(sin);
	struct buf port = BUF_INIT;

	server = (struct server){
		.role = "*1\r\n$6\r\nmaster\r\n", .auth = "+OK\r\n", .exists = ":0\r\n", .answers = 1000};
	server.listener = evconnlistener_new_bind(
		loop, on_client, NULL, LEV_OPT_CLOSE_ON_FREE, -1, (struct sockaddr *)&sin, sizeof(sin));
	assert_non_null(server.listener);
	assert_int_equal(getsockname(evconnlistener_get_fd(server.listener), (struct sockaddr *)&sin, &n), 0);
	buf_add_i64(&port, ntohs(sin.sin_port));
	set("port", port.data);
	buf_release(&port);
}

static void stop_server(void)
{
	hang_up();
	evconnlistener_free(server.listener);
	buf_release(&server.said);
}

/* ---- the caller ---- */

static struct {
	struct redis_login *login;
	int dones, waits, losses;
	redisAsyncContext *ac;
	char error[128];
} caller;

static void on_done(struct redisAsyncContext *ac, const char *error, void *arg)
{
	assert_ptr_equal(arg, &caller);
	caller.login = NULL;
	caller.dones++;
	caller.ac = ac;
	bytes_copy(caller.error, sizeof(caller.error), bytes_of(error != NULL ? error : ""));
}

static void on_wait(const char *why, void *arg)
{
	(void)arg;
	assert_string_equal(why, "Redis is loading its data");
	caller.waits++;
}

static void start_as(const struct redis_login_for *who)
{
	memset(&caller, 0, sizeof(caller));
	caller.login = redis_login_start(loop, &config, who, &caller);
	assert_int_equal(caller.dones, 0);
}

static void start(void)
{
	static const struct redis_login_for who = {"test", "tester", on_done, on_wait};

	start_as(&who);
}

/* Waits for the end, and for the server to see it: a login that has failed leaves no connection. */
static void expect_failure(const char *error)
{
	wait_for(caller.dones == 1);
	assert_null(caller.ac);
	assert_string_equal(caller.error, error);
	wait_for(server.client == NULL);
	assert_int_equal(caller.dones, 1);
}

static void on_lost(const redisAsyncContext *ac, int status)
{
	(void)status;
	assert_ptr_equal(ac, caller.ac);
	caller.losses++;
}

/* ---- tests ---- */

static void test_done(void **state)
{
	(void)state;
	set("db", "3");
	start();
	wait_for(caller.dones == 1);
	assert_non_null(caller.ac);
	assert_string_equal(server.said.data, "CLIENT SETNAME tester|ROLE|SELECT 3|EXISTS muster|");
	assert_null(caller.ac->data);
	/* It is the caller's, who is told when it goes. */
	assert_int_equal(redisAsyncSetDisconnectCallback(caller.ac, on_lost), REDIS_OK);
	hang_up();
	wait_for(caller.losses == 1);
	assert_int_equal(caller.dones, 1);
	set("db", "0");
}

static void test_user(void **state)
{
	(void)state;
	set("password", "secret");
	server.auth = "-WRONGPASS no\r\n";
	start();
	expect_failure("WRONGPASS no");
	assert_memory_equal(server.said.data, "AUTH secret|", 12);
	set("user", "ada");
	buf_clear(&server.said);
	start();
	expect_failure("WRONGPASS no");
	assert_memory_equal(server.said.data, "AUTH ada secret|", 16);
	set("user", "");
	set("password", "");
}

static void test_replica(void **state)
{
	(void)state;
	server.role = "*1\r\n$5\r\nslave\r\n";
	start();
	expect_failure("Redis is a replica, a master is needed");
}

static void test_nobody_there(void **state)
{
	(void)state;
	stop_server();
	start();
	expect_failure("Connection refused");
	start_server();
}

/* A server whose queue of connections is full takes no more of them, and does not say so. */
static void test_no_connection(void **state)
{
	evutil_socket_t listener = evconnlistener_get_fd(server.listener), others[3];
	struct sockaddr_in sin;
	socklen_t n = sizeof(sin);

	(void)state;
	evconnlistener_disable(server.listener);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&sin, &n), 0);
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		others[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(others[i], (struct sockaddr *)&sin, n);
	}
	start();
	wait_for(strcmp(redis_login_step(caller.login), "connecting") == 0);
	expect_failure(redis_login_late);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		close(others[i]);
}

static void test_silence(void **state)
{
	(void)state;
	for (int answers = 0; answers < 4; answers++) {
		server.answers = answers;
		start();
		expect_failure(redis_login_late);
	}
}

static void test_cut(void **state)
{
	(void)state;
	server.cuts = true;
	for (int answers = 0; answers < 4; answers++) {
		server.answers = answers;
		start();
		wait_for(caller.dones == 1);
		assert_null(caller.ac);
		assert_string_not_equal(caller.error, "");
	}
}

static void test_loading(void **state)
{
	(void)state;
	server.exists = "-LOADING wait\r\n";
	start();
	wait_for(server.greetings == 2);
	assert_int_equal(caller.waits, 1);
	assert_int_equal(caller.dones, 0);
	assert_string_equal(redis_login_step(caller.login), "loading");
	server.exists = ":1\r\n";
	wait_for(caller.dones == 1);
	assert_non_null(caller.ac);
	assert_int_equal(caller.waits, 1);
	redisAsyncFree(caller.ac);
}

static void test_without_data(void **state)
{
	static const struct redis_login_for who = {"test", "tester", on_done, NULL};

	(void)state;
	server.exists = "-LOADING wait\r\n";
	start_as(&who);
	wait_for(caller.dones == 1);
	assert_non_null(caller.ac);
	redisAsyncFree(caller.ac);
	server.role = server.exists;
	start_as(&who);
	expect_failure("LOADING wait");
}

/* Nothing is under way between two greetings that would tell. */
static void test_cut_while_loading(void **state)
{
	(void)state;
	server.exists = "-LOADING wait\r\n";
	start();
	wait_for(caller.waits == 1);
	hang_up();
	wait_for(caller.dones == 1);
	assert_null(caller.ac);
	assert_string_not_equal(caller.error, "");
}

static void test_silence_while_loading(void **state)
{
	(void)state;
	server.exists = "-LOADING wait\r\n";
	server.answers = 4;
	start();
	expect_failure(redis_login_late);
	assert_int_equal(caller.waits, 1);
}

static void cancel(void)
{
	redis_login_cancel(caller.login);
	wait_for(server.client == NULL);
	assert_int_equal(caller.dones, 0);
}

static void test_cancel(void **state)
{
	(void)state;
	redis_login_cancel(NULL);
	start();
	assert_string_equal(redis_login_step(caller.login), "resolving");
	cancel();
	start();
	wait_for(strcmp(redis_login_step(caller.login), "connecting") == 0);
	cancel();
	server.answers = 2;
	start();
	wait_for(server.commands == 4);
	cancel();
	server.answers = 1000;
	server.exists = "-LOADING wait\r\n";
	start();
	wait_for(caller.waits == 1);
	cancel();
}

static int setup(void **state)
{
	(void)state;
	config_init(&config);
	set("timeout", "200ms");
	log_set_level(LOG_LEVEL_WARNING);
	loop = event_base_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	event_base_loop(loop, EVLOOP_NONBLOCK); /* what bufferevents put off */
	event_base_free(loop);
	config_release(&config);
	return 0;
}

static int with_server(void **state)
{
	(void)state;
	start_server();
	return 0;
}

static int without_server(void **state)
{
	(void)state;
	stop_server();
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, with_server, without_server)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_done),
		TEST(test_user),
		TEST(test_replica),
		TEST(test_nobody_there),
		TEST(test_no_connection),
		TEST(test_silence),
		TEST(test_cut),
		TEST(test_loading),
		TEST(test_without_data),
		TEST(test_cut_while_loading),
		TEST(test_silence_while_loading),
		TEST(test_cancel),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
