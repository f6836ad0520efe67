/* SPDX-License-Identifier: MIT */
/* CSV: each case is read whole, byte by byte, and cut at every place, with the same outcome. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/csv.h"

/* What came out, as text: `LINE:field|field;` for a record and `LINE!message;` for an error. */
static int on_record(const struct csv_record *record, void *arg)
{
	struct buf *out = arg;

	buf_addf(out, "%u:", (unsigned)record->line);
	for (size_t i = 0; i < record->count; i++) {
		buf_add_str(out, i > 0 ? "|" : "");
		buf_add_bytes(out, record->fields[i]);
	}
	buf_add_char(out, ';');
	return 0;
}

static int on_error(uint64_t line, const char *message, void *arg)
{
	buf_addf(arg, "%u!%s;", (unsigned)line, message);
	return 0;
}

static const struct csv_events events = {on_record, on_error};

static void read_in_two(const char *text, size_t n, size_t cut, struct buf *out)
{
	struct csv *csv = csv_new(&events, out);

	buf_add_str(out, "");
	assert_int_equal(csv_feed(csv, text, cut), 0);
	assert_int_equal(csv_feed(csv, text + cut, n - cut), 0);
	assert_int_equal(csv_end(csv), 0);
	csv_free(csv);
}

static void read_by_bytes(const char *text, size_t n, struct buf *out)
{
	struct csv *csv = csv_new(&events, out);

	buf_add_str(out, "");
	for (size_t i = 0; i < n; i++)
		assert_int_equal(csv_feed(csv, text + i, 1), 0);
	assert_int_equal(csv_end(csv), 0);
	csv_free(csv);
}

struct sample {
	const char *text, *expected;
};

static const struct sample samples[] = {
	{"", ""},
	{"\n\r\n\n", ""},
	{"a,b\nc,d\n", "1:a|b;2:c|d;"},
	{"a,b\r\nc,d\r\n", "1:a|b;2:c|d;"},
	{"a,b\nc,d", "1:a|b;2:c|d;"},
	{"a,b\r", "1:a|b;"},
	{"\xef\xbb\xbf"
	 "a\n",
		"1:a;"},
	{"\xef\xbb"
	 "a\n",
		"1:\xef\xbb"
		"a;"},
	{"\xef\xbb", "1:\xef\xbb;"},
	{"a\n\xef\xbb\xbf"
	 "b\n",
		"1:a;2:\xef\xbb\xbf"
		"b;"},
	{",\n", "1:|;"},
	{",,\n,x,", "1:||;2:|x|;"},
	{"\"\"\n", "1:;"},
	{"\"a,b\",c\n", "1:a,b|c;"},
	{"\"say \"\"hi\"\"\"\n", "1:say \"hi\";"},
	{"\"\"\"\"\n", "1:\";"},
	{"\"one\ntwo\r\n\",x\ny\n", "1:one\ntwo\r\n|x;4:y;"},
	{"\n\na\n", "3:a;"},
	{" a , b \n", "1: a | b ;"},
	{"a\"b\nc\n", "1!a quote inside an unquoted field;2:c;"},
	{"\"a\"b,\"c\nd\n", "1!text behind the closing quote;2:d;"},
	{"\"a\" ,b\nc\n", "1!text behind the closing quote;2:c;"},
	{"a\rb,c\nd\n", "1!a carriage return that does not end the line;2:d;"},
	{"a\r\rb\nc\n", "1!a carriage return that does not end the line;2:c;"},
	{"a\n\"b\nc", "1:a;2!the quote that opens here is never closed;"},
	{"\"x\ny\"z\nw\n", "2!text behind the closing quote;3:w;"},
};

static void samples_in_all_pieces(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		size_t n = strlen(samples[i].text);
		struct buf out = BUF_INIT;
		for (size_t cut = 0; cut <= n; cut++) {
			buf_clear(&out);
			read_in_two(samples[i].text, n, cut, &out);
			assert_string_equal(out.data, samples[i].expected);
		}
		buf_clear(&out);
		read_by_bytes(samples[i].text, n, &out);
		assert_string_equal(out.data, samples[i].expected);
		buf_release(&out);
	}
}

static void nul_bytes_are_data(void **state)
{
	struct buf out = BUF_INIT;

	(void)state;
	read_by_bytes("a\0b,c\n", 6, &out);
	assert_int_equal(out.len, 8);
	assert_memory_equal(out.data, "1:a\0b|c;", 8);
	buf_release(&out);
}

static void field_limit(void **state)
{
	struct buf text = BUF_INIT, out = BUF_INIT;

	(void)state;
	for (int i = 1; i < CSV_MAX_FIELDS; i++)
		buf_add_char(&text, ',');
	buf_add_str(&text, "\n");
	read_in_two(text.data, text.len, 0, &out);
	assert_int_equal(out.len, 2 + CSV_MAX_FIELDS - 1 + 1);
	buf_clear(&out);
	buf_clear(&text);
	for (int i = 0; i < CSV_MAX_FIELDS; i++)
		buf_add_char(&text, ',');
	buf_add_str(&text, "\nx\n");
	read_in_two(text.data, text.len, 0, &out);
	assert_string_equal(out.data, "1!more than 64 fields;2:x;");
	buf_release(&text);
	buf_release(&out);
}

static void add_many(struct buf *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_add_char(text, 'x');
}

static void record_limit(void **state)
{
	struct buf text = BUF_INIT, out = BUF_INIT;

	(void)state;
	add_many(&text, CSV_MAX_RECORD);
	read_in_two(text.data, text.len, 1000, &out);
	assert_int_equal(out.len, CSV_MAX_RECORD + 3);
	buf_clear(&out);
	buf_add_str(&text, "x\nnext\n");
	read_in_two(text.data, text.len, 1000, &out);
	assert_string_equal(out.data, "1!record longer than 65536 bytes;2:next;");
	buf_release(&text);
	buf_release(&out);
}

/* A quote that is never closed costs one record's memory, and the reading goes on behind it. */
static void runaway_quote(void **state)
{
	struct buf text = BUF_INIT, out = BUF_INIT;

	(void)state;
	buf_add_str(&text, "a\nb,\"\n");
	add_many(&text, CSV_MAX_RECORD);
	buf_add_str(&text, "\nnext\n");
	read_in_two(text.data, text.len, 3, &out);
	assert_string_equal(
		out.data, "1:a;2!record longer than 65536 bytes; is the quote of line 2 closed?;4:next;");
	buf_release(&text);
	buf_release(&out);
}

static int stop_on_record(const struct csv_record *record, void *arg)
{
	(void)record;
	++*(int *)arg;
	return 7;
}

static void callback_stops(void **state)
{
	static const struct csv_events stopping = {stop_on_record, on_error};
	int calls = 0;
	struct csv *csv = csv_new(&stopping, &calls);

	(void)state;
	assert_int_equal(csv_feed(csv, "a\nb\n", 4), 7);
	assert_int_equal(calls, 1);
	csv_free(csv);
}

/* What is written is read back, and is in quotes only where it has to be. */
static void written_fields(void **state)
{
	static const char *const texts[] = {"", "plain", " spaces ", "a,b", "say \"hi\"", "\"", "two\nlines",
		"cr\rhere", "\xf0\x9f\xa6\x86"};
	struct buf line = BUF_INIT, out = BUF_INIT, expected = BUF_INIT;

	(void)state;
	buf_add_str(&expected, "1:");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		buf_addf(&expected, i > 0 ? "|%s" : "%s", texts[i]);
		if (i > 0)
			buf_add_char(&line, ',');
		csv_put(&line, bytes_of(texts[i]));
	}
	buf_add_char(&expected, ';');
	assert_non_null(strstr(line.data, ",plain, spaces ,\"a,b\",\"say \"\"hi\"\"\",\"\"\"\","));
	read_in_two(line.data, line.len, 7, &out);
	assert_string_equal(out.data, expected.data);
	buf_release(&line);
	buf_release(&out);
	buf_release(&expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_in_all_pieces),
		cmocka_unit_test(nul_bytes_are_data),
		cmocka_unit_test(field_limit),
		cmocka_unit_test(record_limit),
		cmocka_unit_test(runaway_quote),
		cmocka_unit_test(callback_stops),
		cmocka_unit_test(written_fields),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
