/* SPDX-License-Identifier: MIT */
/* Each kind of reply, in RESP2 and in RESP3. */
#include "base/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void write_all(struct reply *r)
{
	reply_map(r, 4);
	reply_field_str(r, "a", "b");
	reply_field_bulk(r, "n", (struct bytes){"x\0y", 3});
	reply_field_int(r, "i", -5);
	reply_field_instant(r, "t", -1);
	reply_array(r, 3);
	reply_status(r, "OK");
	reply_null(r);
	reply_int(r, INT64_MIN);
}

static void expect(struct reply *r, const char *expected, size_t n)
{
	assert_int_equal(r->buf.len, n);
	assert_memory_equal(r->buf.data, expected, n);
	reply_release(r);
}

static void test_resp2(void **state)
{
	static const char expected[] =
		"*8\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nn\r\n$3\r\nx\0y\r\n$1\r\ni\r\n:-5\r\n$1\r\nt\r\n$-1\r\n"
		"*3\r\n+OK\r\n$-1\r\n:-9223372036854775808\r\n";
	struct reply r;

	(void)state;
	reply_init(&r, 2);
	write_all(&r);
	expect(&r, expected, sizeof(expected) - 1);
}

static void test_resp3(void **state)
{
	static const char expected[] =
		"%4\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nn\r\n$3\r\nx\0y\r\n$1\r\ni\r\n:-5\r\n$1\r\nt\r\n_\r\n"
		"*3\r\n+OK\r\n_\r\n:-9223372036854775808\r\n";
	struct reply r;

	(void)state;
	reply_init(&r, 3);
	write_all(&r);
	expect(&r, expected, sizeof(expected) - 1);
}

/* A client's bytes in an error text can't end the line, and a long one is cut. */
static void test_errors(void **state)
{
	struct reply r;
	char long_text[2000];

	(void)state;
	reply_init(&r, 2);
	reply_error(&r, "ERR no '%s'", "a\r\n+OK\x7f");
	expect(&r, "-ERR no 'a  +OK '\r\n", 19);
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	reply_init(&r, 2);
	reply_error(&r, "%s", long_text);
	assert_true(r.buf.len < 600);
	assert_string_equal(r.buf.data + r.buf.len - 3, "x\r\n");
	reply_release(&r);
}

static void test_reset(void **state)
{
	struct reply r;

	(void)state;
	reply_init(&r, 3);
	write_all(&r);
	reply_reset(&r);
	reply_null(&r);
	expect(&r, "_\r\n", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resp2),
		cmocka_unit_test(test_resp3),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
