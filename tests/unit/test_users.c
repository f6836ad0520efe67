/* SPDX-License-Identifier: MIT */
/* The users file: what it says, what is refused, who a token is, and what is left of a user after a reload.
 */
#include "daemon/users.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"

/* SHA-256 of "abc", of FIPS 180-2, and of "other". */
#define ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define OTHER "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"

static struct users *load(const char *text, struct buf *errors)
{
	char path[] = "/tmp/test_users.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	struct users *u = users_load(path, errors);
	unlink(path);
	return u;
}

static struct users *load_good(const char *text)
{
	struct buf errors = BUF_INIT;
	struct users *u = load(text, &errors);

	assert_non_null(u);
	assert_int_equal(errors.len, 0);
	return u;
}

static void test_hash(void **state)
{
	char text[TOKEN_HASH_TEXT];

	(void)state;
	token_hash(BYTES_LIT("abc"), text);
	assert_string_equal(text, ABC);
	token_hash(BYTES_LIT("other"), text);
	assert_string_equal(text, OTHER);
}

static void test_no_file_no_question(void **state)
{
	struct buf errors = BUF_INIT;
	struct users *u = users_load("", &errors);

	(void)state;
	assert_false(users_required(u));
	assert_true(user_may(&user_anyone, PRIV_ADMIN));
	users_free(u);
}

static void test_missing_file_is_a_fault(void **state)
{
	struct buf errors = BUF_INIT;

	(void)state;
	assert_null(users_load("/nonexistent/users", &errors));
	assert_non_null(strstr(errors.data, "/nonexistent/users"));
	buf_release(&errors);
}

static void test_who_is_it(void **state)
{
	struct users *u = load_good("# readers\n\n"
				    "reader " ABC " punch,read\n"
				    "ann\t" OTHER " read employee=e.1 # her phone\n");
	struct bytes ann = BYTES_LIT("ann");

	(void)state;
	assert_true(users_required(u));
	const struct user *user = users_check(u, NULL, BYTES_LIT("abc"));
	assert_string_equal(user->name, "reader");
	assert_true(user_may(user, PRIV_PUNCH) && user_may(user, PRIV_READ) && user_may(user, PRIV_NONE));
	assert_false(user_may(user, PRIV_WRITE) || user_may(user, PRIV_ADMIN));
	assert_false(user_may(user, PRIV_TASK));
	user = users_check(u, &ann, BYTES_LIT("other"));
	assert_string_equal(user->employee, "e.1");
	assert_null(users_check(u, &ann, BYTES_LIT("abc")));
	assert_null(users_check(u, NULL, BYTES_LIT("abcd")));
	assert_null(users_check(u, NULL, BYTES_LIT("")));
	assert_false(user_may(NULL, PRIV_READ));
	assert_true(user_may(NULL, PRIV_NONE));
	users_free(u);
}

static void test_worker(void **state)
{
	struct users *u = load_good("mill " ABC " task\n");
	const struct user *user = users_check(u, NULL, BYTES_LIT("abc"));

	(void)state;
	assert_true(user_may(user, PRIV_TASK));
	assert_false(user_may(user, PRIV_READ) || user_may(user, PRIV_WRITE) || user_may(user, PRIV_ADMIN));
	assert_true(user_may(&user_anyone, PRIV_TASK));
	users_free(u);
}

static void test_faults_name_their_line(void **state)
{
	static const char *const bad[] = {
		"a b\n",
		"reader\n",
		"reader " ABC "\n",
		"reader " ABC " fly\n",
		"reader " ABC " read employee=\n",
		"rea/der " ABC " read\n",
		"x " ABC " read\nx " OTHER " read\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct buf errors = BUF_INIT;
		assert_null(load(bad[i], &errors));
		assert_non_null(strstr(errors.data, i == 6 ? ": line 2: expected" : ": line 1: expected"));
		assert_null(strstr(errors.data, ABC));
		buf_release(&errors);
	}
}

static void test_reload(void **state)
{
	struct users *before = load_good("a " ABC " read\nb " OTHER " read\n");
	struct users *after = load_good("a " ABC " admin\nb " ABC " read\n");
	struct bytes b = BYTES_LIT("b");

	(void)state;
	const struct user *user = users_same(after, users_check(before, NULL, BYTES_LIT("abc")));
	assert_true(user_may(user, PRIV_ADMIN) && !user_may(user, PRIV_READ));
	assert_null(
		users_same(after, users_check(before, &b, BYTES_LIT("other")))); /* his token was changed */
	users_free(before);
	users_free(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_no_file_no_question),
		cmocka_unit_test(test_missing_file_is_a_fault),
		cmocka_unit_test(test_who_is_it),
		cmocka_unit_test(test_worker),
		cmocka_unit_test(test_faults_name_their_line),
		cmocka_unit_test(test_reload),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
