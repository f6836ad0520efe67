/* SPDX-License-Identifier: MIT */
/* The request parser: what is a command, what is too big, what is not RESP, and that pieces make no
 * difference. */
#include "daemon/resp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"

static const struct resp_limits limits = {.max_line = 64, .max_args = 8, .max_payload = 100};

/* Parses all of input, handing over at most `step` more bytes a time, and writes what came out as text:
 * `[arg|arg]` a command, `T` too big, `E<text>` an error (which ends it), `?` at the end of half a command.
 */
static void run(const char *input, size_t len, size_t step, struct buf *out)
{
	struct resp r;
	struct buf have = BUF_INIT;
	size_t given = 0;

	resp_init(&r);
	for (;;) {
		size_t used;
		char none[1];
		enum resp_status status =
			resp_parse(&r, &limits, have.len > 0 ? have.data : none, have.len, &used);
		assert_true(used <= have.len);
		if (status == RESP_COMMAND) {
			for (size_t i = 0; i < r.argc; i++) {
				assert_true(r.args[i].at + r.args[i].n <= used);
				buf_add_char(out, i == 0 ? '[' : '|');
				buf_add(out, have.data + r.args[i].at, r.args[i].n);
			}
			buf_add_char(out, ']');
		} else if (status == RESP_TOOBIG) {
			buf_add_char(out, 'T');
		} else if (status == RESP_ERROR) {
			buf_addf(out, "E<%s>", r.error);
			break;
		}
		buf_consume(&have, used);
		if (status != RESP_MORE)
			continue;
		assert_true(r.need > have.len);
		if (given == len) {
			if (resp_partial(&r))
				buf_add_char(out, '?');
			break;
		}
		size_t n = len - given < step ? len - given : step;
		/* Moves it, so that a pointer kept from the last call would be found by the sanitizer. */
		char *moved = xmalloc(have.len + n + 1);
		if (have.len > 0)
			memcpy(moved, have.data, have.len);
		memcpy(moved + have.len, input + given, n);
		size_t total = have.len + n;
		buf_release(&have);
		have = (struct buf){.data = moved, .len = total, .cap = total + 1};
		given += n;
	}
	buf_release(&have);
	resp_release(&r);
}

static void expect_bytes(const char *input, size_t len, const char *expected)
{
	for (size_t step = 1; step <= len; step = step < 40 ? step + 1 : len > step ? len : len + 1) {
		struct buf out = BUF_INIT;
		run(input, len, step, &out);
		assert_string_equal(out.data != NULL ? out.data : "", expected);
		buf_release(&out);
	}
}

static void expect(const char *input, const char *expected)
{
	expect_bytes(input, strlen(input), expected);
}

static void test_arrays(void **state)
{
	(void)state;
	expect("*1\r\n$4\r\nPING\r\n", "[PING]");
	expect("*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "[ECHO|]");
	expect("*2\r\n$4\r\nECHO\r\n$6\r\na\r\nb\r\n\r\n*1\r\n$4\r\nPING\r\n", "[ECHO|a\r\nb\r\n][PING]");
	expect("*0\r\n*1\r\n$4\r\nPING\r\n", "[PING]");
	expect("*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\n", "?");
	expect_bytes("*1\r\n$3\r\na\0b\r\nPING\n", 18, "[a");
}

static void test_inline(void **state)
{
	(void)state;
	expect("PING\r\n", "[PING]");
	expect("PING\n", "[PING]");
	expect("  echo \t a  \r\n\r\n \n PING\n", "[echo|a][PING]");
	expect("ECHO \"a b\" 'c d' e\n", "[ECHO|a b|c d|e]");
	expect("ECHO \"\\x41\\n\\\"\\q\\x4\" 'it\\'s' \"\"\n", "[ECHO|A\n\"qx4|it's|]");
	expect("ECHO a\"b c\"\n", "[ECHO|ab c]");
	expect("ECHO \"a\n", "E<ERR Protocol error: unbalanced quotes in request>");
	expect("ECHO 'a'b\n", "E<ERR Protocol error: unbalanced quotes in request>");
	expect("ECHO \"a\\\"\n", "E<ERR Protocol error: unbalanced quotes in request>");
	expect("PIN", "?");
}

static void test_lengths_that_are_none(void **state)
{
	static const char *const bad[] = {"-1", "-0", "2147483648", "18446744073709551616", "12abc", "", " 3",
		"+3", "3 ", "0x3", "9999999999999999999"};
	char input[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		snprintf(input, sizeof(input), "*%s\r\n", bad[i]);
		expect(input, "E<ERR Protocol error: invalid multibulk length>");
		snprintf(input, sizeof(input), "*1\r\n$%s\r\n", bad[i]);
		expect(input, "E<ERR Protocol error: invalid bulk length>");
		/* While a command is being skipped too. */
		snprintf(input, sizeof(input), "*9\r\n$%s\r\n", bad[i]);
		expect(input, "TE<ERR Protocol error: invalid bulk length>");
	}
	expect("*1\n$4\r\nPING\r\n", "E<ERR Protocol error: invalid multibulk length>");
	expect("*1\r\n+PING\r\n", "E<ERR Protocol error: expected '$', got '+'>");
	expect("*1\r\n$4\r\nPINGPING\r\n", "E<ERR Protocol error: expected CRLF after a bulk string>");
}

static void test_endless_heads(void **state)
{
	char digits[100], input[128];

	(void)state;
	memset(digits, '1', sizeof(digits));
	snprintf(input, sizeof(input), "*%.90s", digits);
	expect(input, "E<ERR Protocol error: too big mbulk count string>");
	snprintf(input, sizeof(input), "*1\r\n$%.90s", digits);
	expect(input, "E<ERR Protocol error: too big bulk count string>");
	snprintf(input, sizeof(input), "*%.90s\r\n", digits); /* the same when its end has come */
	expect(input, "E<ERR Protocol error: too big mbulk count string>");
}

/* Repeats a byte n times into a string on the heap. */
static char *repeat(char c, size_t n)
{
	char *s = xmalloc(n + 1);
	memset(s, c, n);
	s[n] = '\0';
	return s;
}

static void test_line_limit(void **state)
{
	char *just = repeat('a', 64), *over = repeat('a', 65), *far_over = repeat('b', 1000);
	char input[1200], expected[100];

	(void)state;
	snprintf(input, sizeof(input), "%s\nPING\n", just);
	snprintf(expected, sizeof(expected), "[%s][PING]", just);
	expect(input, expected);
	snprintf(input, sizeof(input), "%s\nPING\n", over);
	expect(input, "T[PING]");
	snprintf(input, sizeof(input), "%s\nPING\n", far_over);
	expect(input, "T[PING]");
	snprintf(input, sizeof(input), "%s", far_over);
	expect(input, "T?");
	free(just);
	free(over);
	free(far_over);
}

static void test_args_limit(void **state)
{
	(void)state;
	expect("a b c d e f g h\n", "[a|b|c|d|e|f|g|h]");
	expect("a b c d e f g h i\nPING\n", "T[PING]");
	expect("*8\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\nPING\n",
		"[|||||||][PING]");
	expect("*9\r\n$1\r\na\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$"
	       "3\r\n*1\r\r\nPING\n",
		"T[PING]");
	expect("*1048576\r\n$1\r\na\r\n", "T?");
	expect("*1048577\r\n", "E<ERR Protocol error: invalid multibulk length>");
}

static void test_payload_limit(void **state)
{
	char *sixty = repeat('p', 60), *long_one = repeat('p', 5000);
	char input[6000], expected[200];

	(void)state;
	snprintf(input, sizeof(input), "*2\r\n$60\r\n%s\r\n$40\r\n%.40s\r\nPING\n", sixty, sixty);
	snprintf(expected, sizeof(expected), "[%s|%.40s][PING]", sixty, sixty);
	expect(input, expected);
	snprintf(input, sizeof(input), "*3\r\n$60\r\n%s\r\n$41\r\n%.41s\r\n$1\r\na\r\nPING\n", sixty, sixty);
	expect(input, "T[PING]");
	snprintf(input, sizeof(input), "*1\r\n$5000\r\n%s\r\nPING\n", long_one);
	expect(input, "T[PING]");
	expect("*1\r\n$536870912\r\nabc", "T?");
	expect("*1\r\n$536870913\r\nabc", "E<ERR Protocol error: invalid bulk length>");
	free(sixty);
	free(long_one);
}

/* A body that is skipped is consumed as it comes, so that nobody has to hold it. */
static void test_skipped_bytes_are_not_kept(void **state)
{
	struct resp r;
	size_t used;
	char *body = repeat('x', 1000);
	char head[] = "*2\r\n$4\r\nECHO\r\n$100000\r\n";

	(void)state;
	resp_init(&r);
	assert_int_equal(resp_parse(&r, &limits, head, strlen(head), &used), RESP_TOOBIG);
	assert_int_equal(used, strlen(head));
	for (int i = 0; i < 100; i++) {
		assert_int_equal(resp_parse(&r, &limits, body, 1000, &used), RESP_MORE);
		assert_int_equal(used, 1000);
	}
	assert_int_equal(resp_parse(&r, &limits, (char[]){"\r\n"}, 2, &used), RESP_EMPTY);
	assert_false(resp_partial(&r));
	resp_release(&r);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_lengths_that_are_none),
		cmocka_unit_test(test_endless_heads),
		cmocka_unit_test(test_line_limit),
		cmocka_unit_test(test_args_limit),
		cmocka_unit_test(test_payload_limit),
		cmocka_unit_test(test_skipped_bytes_are_not_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
