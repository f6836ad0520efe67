/* SPDX-License-Identifier: MIT */
/* The sample configuration in the tree is the one that the table gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/config.h"

static void read_file(const char *path, struct buf *out)
{
	char chunk[4096];
	size_t n;

	FILE *f = fopen(path, "re");
	assert_non_null(f);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(out, chunk, n);
	fclose(f);
}

static void sample_equals_table(void **state)
{
	struct buf file = BUF_INIT, table = BUF_INIT;

	(void)state;
	read_file(SAMPLE_FILE, &file);
	config_sample(&table);
	assert_string_equal(file.data, table.data);
	buf_release(&file);
	buf_release(&table);
}

static void sample_can_be_loaded(void **state)
{
	struct config config;
	struct buf errors = BUF_INIT;

	(void)state;
	config_init(&config);
	assert_int_equal(config_load(&config, SAMPLE_FILE, &errors), 0);
	config_release(&config);
	buf_release(&errors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sample_equals_table),
		cmocka_unit_test(sample_can_be_loaded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
