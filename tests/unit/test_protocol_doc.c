/* SPDX-License-Identifier: MIT */
/* The last chapter of doc/protocol.md is what the command table says: `musterd --help-commands` makes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "daemon/commands.h"

static void test_commands_chapter(void **state)
{
	static const char head[] = "\n## Commands\n\n";
	struct buf table = BUF_INIT, doc = BUF_INIT;
	char chunk[4096];
	size_t n;

	(void)state;
	FILE *f = fopen(PROTOCOL_FILE, "r");
	assert_non_null(f);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(&doc, chunk, n);
	fclose(f);
	const char *chapter = strstr(doc.data, head);
	assert_non_null(chapter);
	commands_markdown(&table);
	assert_string_equal(chapter + sizeof(head) - 1, table.data);
	buf_release(&table);
	buf_release(&doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_commands_chapter)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
