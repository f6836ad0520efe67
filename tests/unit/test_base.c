/* SPDX-License-Identifier: MIT */
/* Bytes, buffers, the held clock and the configuration table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/mem.h"

static void test_ids(void **state)
{
	char longest[66];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	assert_true(id_valid((struct bytes){longest, 64}));
	assert_false(id_valid((struct bytes){longest, 65}));
	assert_true(id_valid(BYTES_LIT("9007199254740993")));
	assert_true(id_valid(BYTES_LIT("a_B-9")));
	static const char *const bad[] = {
		"", "-", "a b", "a.b", "a:b", "#", "*", "{x}", "a|b", "\x01", "caf\xc3\xa9"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(id_valid(bytes_of(bad[i])));
	assert_false(id_valid(BYTES_LIT("a\0b")));
	assert_true(person_id_valid(BYTES_LIT("ana.lopez@example")));
	assert_false(person_id_valid(BYTES_LIT("ana lopez")));
}

static void test_names(void **state)
{
	static const char *const bad[] = {
		"a\nb", "\x7f", "\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"};

	(void)state;
	assert_true(name_valid(BYTES_LIT("")));
	assert_true(name_valid(BYTES_LIT("Zo\xc3\xab \xe6\x9d\x8e \xf0\x9f\x98\x80")));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(name_valid(bytes_of(bad[i])));
	char longest[256];
	memset(longest, 'x', sizeof(longest));
	assert_true(name_valid((struct bytes){longest, 255}));
	assert_false(name_valid((struct bytes){longest, 256}));
}

static void test_numbers(void **state)
{
	int64_t n = 7;

	(void)state;
	assert_true(bytes_to_i64(BYTES_LIT("9223372036854775807"), &n));
	assert_int_equal(n, INT64_MAX);
	assert_true(bytes_to_i64(BYTES_LIT("-5"), &n));
	assert_int_equal(n, -5);
	n = 7;
	assert_false(bytes_to_i64(BYTES_LIT("9223372036854775808"), &n));
	assert_false(bytes_to_i64(BYTES_LIT("18446744073709551617"), &n));
	assert_false(bytes_to_i64(BYTES_LIT("1.5"), &n));
	assert_false(bytes_to_i64(BYTES_LIT(""), &n));
	assert_false(bytes_to_i64(BYTES_LIT("-"), &n));
	assert_int_equal(n, 7);
}

static void test_split(void **state)
{
	struct bytes f[3];

	(void)state;
	assert_int_equal(bytes_split(BYTES_LIT("a|b|c|d"), '|', f, 3), 3);
	assert_true(bytes_eq(f[2], BYTES_LIT("c|d")));
	assert_int_equal(bytes_split(BYTES_LIT("a"), '|', f, 3), 1);
	assert_int_equal(bytes_split(BYTES_LIT("|"), '|', f, 3), 2);
	assert_int_equal(f[0].n + f[1].n, 0);
}

static void test_cut(void **state)
{
	struct bytes rest = BYTES_LIT("a::b"), none = {"", 0};

	(void)state;
	assert_true(bytes_eq(bytes_cut(&rest, ':'), BYTES_LIT("a")));
	assert_int_equal(bytes_cut(&rest, ':').n, 0);
	assert_true(bytes_eq(rest, BYTES_LIT("b")));
	assert_true(bytes_eq(bytes_cut(&rest, ':'), BYTES_LIT("b")));
	assert_int_equal(rest.n + bytes_cut(&rest, ':').n + bytes_cut(&none, ':').n, 0);
}

static void test_buf_cap(void **state)
{
	struct buf b = {.limit = 10};

	(void)state;
	buf_add_str(&b, "12345");
	assert_false(buf_failed(&b));
	buf_add_str(&b, "678901");
	assert_true(buf_failed(&b));
	assert_int_equal(b.len, 5);
	buf_clear(&b);
	buf_add_i64(&b, INT64_MIN + 1);
	assert_true(buf_failed(&b));
	buf_release(&b);
	buf_add_i64(&b, -42);
	assert_string_equal(b.data, "-42");
	buf_release(&b);
	struct buf json = BUF_INIT;
	buf_add_json(&json, BYTES_LIT("a\"\\\n"));
	assert_string_equal(json.data, "\"a\\\"\\\\\\u000a\"");
	buf_clear(&json);
	buf_add_json(&json, BYTES_LIT("\xc3\xa9\xf0\x9f\x98\x80 \xff\xc3(\xed\xa0\x80\xf0\x9f\x98"));
	assert_string_equal(json.data,
		"\"\xc3\xa9\xf0\x9f\x98\x80 \\ufffd\\ufffd(\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
	buf_release(&json);
}

static void count_calls(void *arg)
{
	++*(int *)arg;
}

static void test_clock(void **state)
{
	int calls = 0;

	(void)state;
	int64_t before = clock_wall_ms();
	clock_set(5);
	assert_true(clock_wall_ms() >= before);
	clock_on_set(count_calls, &calls);
	clock_hold();
	clock_set(1000);
	assert_int_equal(clock_wall_ms(), 1000);
	assert_int_equal(calls, 1);
}

/* Every default is in its range, every key has its help, and what CONFIG GET says can be read back. */
static void test_config_table(void **state)
{
	struct config c;
	struct buf text = BUF_INIT, errors = BUF_INIT;
	size_t count;
	const struct config_key *keys = config_keys(&count);

	(void)state;
	config_init(&c);
	for (size_t i = 0; i < count; i++) {
		assert_true(strlen(keys[i].help) > 10);
		buf_clear(&text);
		config_value(&c, &keys[i], &text);
		if (keys[i].type == CONFIG_SECRET)
			continue;
		if (config_set(&c, keys[i].section, keys[i].name, text.data != NULL ? text.data : "",
			    &errors) != 0)
			fail_msg("%s", errors.data);
	}
	buf_release(&text);
	buf_release(&errors);
	config_release(&c);
}

static void refuses(const char *section, const char *name, const char *value, const char *expected)
{
	struct config c;
	struct buf errors = BUF_INIT;

	config_init(&c);
	assert_int_equal(config_set(&c, section, name, value, &errors), -1);
	if (strstr(errors.data, expected) == NULL)
		fail_msg("'%s' does not say '%s'", errors.data, expected);
	buf_release(&errors);
	config_release(&c);
}

static void test_config_refusals(void **state)
{
	(void)state;
	refuses("server", "port", "70000", "0 to 65535");
	refuses("server", "port", "http", "a whole number");
	refuses("server", "port", "7411x", "a whole number");
	refuses("day", "day_start", "25:00", "a time of day");
	refuses("day", "debounce", "5 parsecs", "a duration");
	refuses("day", "close_auto", "maybe", "yes or no");
	refuses("server", "prot", "1", "no such key");
	refuses("server", "max_line", "999999999999999999999", "a size");
	refuses("task", "notices", "failed, retried", "any of success, failed, timeout, cancelled");
	refuses("task", "notices", "fail", "any of success");
}

static void test_config_ends(void **state)
{
	static const struct {
		const char *text;
		int64_t bits;
		const char *back;
	} cases[] = {{"", 0, ""}, {" , ", 0, ""}, {"success", 1, "success"},
		{"cancelled FAILED", 10, "failed, cancelled"},
		{",timeout,timeout success failed\tcancelled", 15, "success, failed, timeout, cancelled"}};
	struct config c;
	struct buf text = BUF_INIT;
	size_t count;
	const struct config_key *key = config_keys(&count);

	(void)state;
	while (strcmp(key->name, "notices") != 0)
		key++;
	config_init(&c);
	assert_int_equal(c.task_notices, 14);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_clear(&text);
		assert_int_equal(config_set(&c, "task", "notices", cases[i].text, &text), 0);
		assert_int_equal(c.task_notices, cases[i].bits);
		config_value(&c, key, &text);
		assert_int_equal(text.len, strlen(cases[i].back));
		assert_memory_equal(text.len > 0 ? text.data : "", cases[i].back, text.len);
	}
	buf_release(&text);
	config_release(&c);
}

static void test_config_file(void **state)
{
	char path[] = "/tmp/muster-config-XXXXXX";
	static const char text[] = "[server]\nport = 7500\nidle_timeout = 90s\n[day]\nday_start = "
				   "03:30\nbogus = 1\nshift_end = 02:00\n";
	struct config c;
	struct buf errors = BUF_INIT;

	(void)state;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	config_init(&c);
	assert_int_equal(config_load(&c, path, &errors), -1);
	assert_non_null(strstr(errors.data, "bogus: no such key"));
	assert_non_null(strstr(errors.data, "shift_start: expected a time before shift_end"));
	assert_int_equal(c.port, 7411);
	unlink(path);
	buf_release(&errors);
	config_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_buf_cap),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_config_table),
		cmocka_unit_test(test_config_refusals),
		cmocka_unit_test(test_config_ends),
		cmocka_unit_test(test_config_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
