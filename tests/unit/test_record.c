/* SPDX-License-Identifier: MIT */
/* persist/record.c: records of tasks, whose last fields may hold anything; persist/journal_position.c. */
#include "persist/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "persist/journal_position.h"
#include "persist/keys.h"

/* 1,000 ms after the begin of 2026, in partition 12. */
#define ID "0000003q280c"

static bool parses(const char *text, struct task_record *t)
{
	return record_parse_task(bytes_of(text), t);
}

static void expect(struct bytes got, const char *text)
{
	assert_int_equal(got.n, strlen(text));
	assert_memory_equal(got.p, text, got.n);
}

static void all_fields(void **state)
{
	struct task_record t;

	(void)state;
	assert_true(parses("K|retry|" ID "|mail|9|2|1|77|w.1@host|order:7|1796000001000|1796000002000|"
			   "1796000007000|2|5|3|okE|r|rP|P",
		&t));
	assert_int_equal(t.change, TASK_CHANGE_RETRY);
	expect(t.id, ID);
	expect(t.queue, "mail");
	expect(t.worker, "w.1@host");
	expect(t.key, "order:7");
	expect(t.result, "ok");
	expect(t.error, "E|r|r");
	expect(t.payload, "P|P");
	assert_int_equal(t.priority, 9);
	assert_int_equal(t.retries, 2);
	assert_int_equal(t.crashes, 1);
	assert_int_equal(t.token, 77);
	assert_int_equal(t.submitted, 1767225601000);
	assert_int_equal(t.claimed, 1796000001000);
	assert_int_equal(t.at, 1796000002000);
	assert_int_equal(t.until, 1796000007000);
}

static void fields_that_are_none(void **state)
{
	struct task_record t;

	(void)state;
	assert_true(parses("K|cancelled|" ID "|q|5|0|0|-|-|-|-|7|-|0|0|0|", &t));
	assert_int_equal(t.worker.n + t.key.n + t.result.n + t.error.n + t.payload.n, 0);
	assert_int_equal(t.token, -1);
	assert_int_equal(t.claimed, -1);
	assert_int_equal(t.until, -1);
}

static void any_bytes(void **state)
{
	struct buf text = BUF_INIT;
	struct task_record t;

	(void)state;
	buf_add_str(&text, "K|failed|" ID "|q|5|0|0|1|w|-|6|7|-|256|0|256|");
	for (int i = 0; i < 512; i++)
		buf_add_char(&text, (char)i);
	assert_true(record_parse_task(buf_bytes(&text), &t));
	assert_int_equal(t.result.n, 256);
	assert_int_equal(t.payload.n, 256);
	assert_memory_equal(t.result.p, t.payload.p, 256);
	buf_release(&text);
}

static void records_that_are_none(void **state)
{
	static const char *const texts[] = {"", "K", "K|", "K|success|" ID "|q|5|0|0|1|w|-|6|7|-|0|0|0",
		"P|success|" ID "|q|5|0|0|1|w|-|6|7|-|0|0|0|", "K|succes|" ID "|q|5|0|0|1|w|-|6|7|-|0|0|0|",
		"K||" ID "|q|5|0|0|1|w|-|6|7|-|0|0|0|", "K|success|short|q|5|0|0|1|w|-|6|7|-|0|0|0|",
		/* an id of a partition that is not ours */
		"K|success|0000003q281g|q|5|0|0|1|w|-|6|7|-|0|0|0|",
		"K|success|" ID "|q|x|0|0|1|w|-|6|7|-|0|0|0|", "K|success|" ID "|q|5|-|0|1|w|-|6|7|-|0|0|0|",
		"K|success|" ID "|q|5|0|0|1x|w|-|6|7|-|0|0|0|",
		"K|success|" ID "|q|5|0|0|-1|w|-|6|7|-|0|0|0|", "K|success|" ID "|q|5|0|0|1|w|-|6|-|-|0|0|0|",
		/* lengths that are not those of the tail */
		"K|success|" ID "|q|5|0|0|1|w|-|6|7|-|0|0|0|x",
		"K|success|" ID "|q|5|0|0|1|w|-|6|7|-|1|1|1|xx",
		"K|success|" ID "|q|5|0|0|1|w|-|6|7|-|-1|1|1|x",
		"K|success|" ID "|q|5|0|0|1|w|-|6|7|-|-|1|1|xx",
		"K|success|" ID "|q|5|0|0|1|w|-|6|7|-|9223372036854775807|1|1|xx",
		"K|success|" ID "|q|5|0|0|1|w|-|6|7|-|18446744073709551617|1|1|xxx"};
	struct task_record t;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (parses(texts[i], &t))
			fail_msg("'%s' is taken for a record", texts[i]);
	}
}

/* What [task] notices may name are the ends, bit by bit. */
static void the_ends_are_those_of_the_configuration(void **state)
{
	struct config config;
	struct buf errors = BUF_INIT;

	(void)state;
	config_init(&config);
	for (int i = 0; i < TASK_CHANGES; i++) {
		bool known = config_set(&config, "task", "notices", task_change_name((enum task_change)i),
				     &errors) == 0;
		assert_int_equal(known, task_change_is_end((enum task_change)i));
		if (known)
			assert_int_equal(config.task_notices, 1 << i);
	}
	config_release(&config);
	buf_release(&errors);
}

static void positions_sort(void **state)
{
	static const char *const refs[] = {"nonsense", "p1-1796000000000-0-0", "p1-1796000000000-0-2",
		"p1-1796000000000-0-10", "p1-1796000000000-9-0", "p1-1796000000000-10-0",
		"p1-1796000000001-0-0"};
	struct buf before = BUF_INIT, text = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(refs) / sizeof(refs[0]); i++) {
		buf_clear(&text);
		journal_position_add(&text, bytes_of(refs[i]));
		if (i > 0) {
			assert_true(strcmp(before.data, text.data) < 0);
			assert_true(journal_position_after(bytes_of(refs[i]), bytes_of(refs[i - 1])));
			assert_false(journal_position_after(bytes_of(refs[i - 1]), bytes_of(refs[i])));
		}
		assert_false(journal_position_after(bytes_of(refs[i]), bytes_of(refs[i])));
		buf_clear(&before);
		buf_add_bytes(&before, buf_bytes(&text));
	}
	assert_string_equal(text.data, "1796000000001-000000000-00000");
	buf_release(&before);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_fields),
		cmocka_unit_test(fields_that_are_none),
		cmocka_unit_test(any_bytes),
		cmocka_unit_test(records_that_are_none),
		cmocka_unit_test(the_ends_are_those_of_the_configuration),
		cmocka_unit_test(positions_sort),
	};

	keys_init("test:", 48);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
