/* SPDX-License-Identifier: MIT */
/* persist/mysql_link.c against a real server that refuses, hangs up or stands still: what was out is told as
 * lost, the link heals by itself, and the loop never stops. */
#include "tests/component/mysql_fixture.h"

#include <event2/listener.h>
#include <glob.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/info.h"

static pid_t server;

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
		event_base_loop(loop, EVLOOP_ONCE);
	assert_true(server_stopped());
}

static int setup_all(void **state)
{
	setup_links(state);
	server = find_server();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kill(server, SIGCONT);
	set("timeout", "20s");
	return 0;
}

/* Until a link has something to complain of. */
static void wait_error(const struct mysql_link *link)
{
	int64_t until = clock_mono_us() + WAIT_US;

	while (mysql_link_last_error(link)[0] == '\0' && clock_mono_us() < until)
		event_base_loop(loop, EVLOOP_ONCE);
}

static void a_wrong_password_is_reported(void **state)
{
	struct config wrong = config;
	struct outcome o = {0};
	char password[] = "not-the-password";

	(void)state;
	wrong.mysql_password = password;
	struct mysql_link *link = mysql_link_new(loop, &wrong, "wrong");
	mysql_link_start(link);
	send_text(link, "SELECT 1", &o);
	assert_int_equal(o.calls, 0);
	wait_int(&o.calls, 1);
	assert_int_equal(o.outcome, SQL_LOST);
	int64_t until = clock_mono_us() + WAIT_US;
	while (strncmp(mysql_link_last_error(link), "1045 ", 5) != 0 && clock_mono_us() < until)
		event_base_loop(loop, EVLOOP_ONCE);
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
	struct mysql_link *link = mysql_link_new(loop, &wrong, "refused");
	mysql_link_start(link);
	wait_error(link);
	assert_memory_equal(mysql_link_last_error(link), "200", 3);
	send_text(link, "SELECT 1", &o);
	wait_int(&o.calls, 1);
	assert_int_equal(o.outcome, SQL_LOST);
	drop(link);
}

static int changes;
static bool last_change;

static void on_change(bool ready, void *arg)
{
	(void)arg;
	changes++;
	last_change = ready;
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
	set("timeout", "300ms");
	stop_server();
	gap_start();
	int64_t start = clock_mono_us();
	send_text(busy, "SELECT 1", &o);
	/* More than the sockets' buffers hold, so that the write is suspended. */
	add_long_select(&sql, mysql_link_max_packet(writing) - 98);
	mysql_link_query(writing, &sql, keep, &big);
	wait_int(&o.calls, 1);
	wait_int(&big.calls, 1);
	assert_int_equal(o.outcome, SQL_LOST);
	assert_int_equal(big.outcome, SQL_LOST);
	assert_non_null(strstr(o.text, "no answer within 300 ms"));
	assert_true(clock_mono_us() - start >= 290000);
	/* The log-ins that follow find a socket that accepts and says nothing. */
	changes = 0;
	struct mysql_link *fresh = mysql_link_new(loop, &config, "fresh");
	mysql_link_start(fresh);
	wait_error(fresh);
	assert_non_null(strstr(mysql_link_last_error(fresh), "no answer within 300 ms"));
	/* Free one in each state: idle, with a query out, in the middle of a log-in or waiting for the next.
	 */
	struct outcome out = {0};
	send_text(link_b, "SELECT 1", &out);
	event_base_loop(loop, EVLOOP_ONCE);
	event_base_loop(loop, EVLOOP_ONCE);
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
		loop, greet, &accepted, LEV_OPT_CLOSE_ON_FREE, 8, (struct sockaddr *)&any, sizeof(any));
	assert_non_null(listener);
	assert_int_equal(getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&any, &len), 0);
	stalled.mysql_port = ntohs(any.sin_port);
	stalled.mysql_tls_ca = path;
	stalled.mysql_socket = socket_path;
	stalled.mysql_timeout = 300;
	struct mysql_link *link = mysql_link_new(loop, &stalled, "stalled");
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
	event_base_loop(loop, EVLOOP_ONCE);
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
	event_base_loop(loop, EVLOOP_ONCE);
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
	struct mysql_link *link = mysql_link_new(loop, &wrong, "again");
	again_calls = 0;
	buf_add_str(&sql, "SELECT 1");
	mysql_link_query(link, &sql, again, link);
	event_base_loop(loop, EVLOOP_ONCE);
	event_base_loop(loop, EVLOOP_ONCE);
	assert_true(again_calls < 10);
	wait_int(&again_calls, 1000);
	drop(link);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_table, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wrong_password_is_reported),
		TEST(a_refused_port_is_reported),
		TEST(a_kill_in_a_query_is_a_loss_and_heals),
		TEST(a_kill_while_idle_is_seen_without_a_query),
		TEST(a_server_that_stands_still_never_stops_the_loop),
		TEST(a_tls_handshake_that_stands_still_never_stops_the_loop),
		TEST(a_link_may_be_freed_in_its_callback),
		TEST(retrying_at_once_leaves_the_loop_turning),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, setup_all, teardown_links);
}
