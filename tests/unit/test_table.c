/* SPDX-License-Identifier: MIT */
/* Tables line up by what a terminal shows, and nothing in a cell can drive it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/table.h"
#include "cli/text.h"

static int in_utf8(void **state)
{
	(void)state;
	setenv("LC_ALL", "C", 1);
	text_init();
	return 0;
}

struct paper {
	char *text;
	size_t len;
	FILE *out;
	struct table *table;
};

static void begin(struct paper *p, bool color)
{
	*p = (struct paper){0};
	p->out = open_memstream(&p->text, &p->len);
	assert_non_null(p->out);
	p->table = table_new(p->out, color);
	table_column(p->table, "ID", TABLE_LEFT);
	table_column(p->table, "N", TABLE_RIGHT);
	table_column(p->table, "NAME", TABLE_LEFT);
}

static void row(struct paper *p, const char *id, int64_t n, const char *name)
{
	table_str(p->table, STYLE_PLAIN, id);
	table_int(p->table, n);
	table_str(p->table, STYLE_WARN, name);
}

static void expect(struct paper *p, const char *text)
{
	table_free(p->table);
	fclose(p->out);
	assert_string_equal(p->text, text);
	free(p->text);
}

static void aligns(void **state)
{
	struct paper p;

	(void)state;
	begin(&p, false);
	row(&p, "E1", 7, "Ada");
	row(&p, "E100", 12345, "");
	table_flush(p.table);
	expect(&p, "ID        N  NAME\n"
		   "E1        7  Ada\n"
		   "E100  12345  -\n");
}

/* Two columns for Han, none for a combining accent, one for a byte that is no UTF-8. */
static void counts_columns(void **state)
{
	struct paper p;

	(void)state;
	assert_int_equal(text_width("王", 3), 2);
	assert_int_equal(text_width("é", 2), 1);
	assert_int_equal(text_width("e\xcc\x81", 3), 1);
	assert_int_equal(text_width("\xff", 1), 1);
	begin(&p, false);
	row(&p, "王", 1, "x");
	row(&p, "e\xcc\x81", 1, "y");
	row(&p, "\xff", 1, "z");
	table_flush(p.table);
	expect(&p, "ID  N  NAME\n"
		   "王  1  x\n"
		   "e\xcc\x81   1  y\n"
		   "?   1  z\n");
}

static void makes_harmless(void **state)
{
	struct paper p;

	(void)state;
	begin(&p, false);
	row(&p, "\033[2J", 1, "a\nb\tc\x7f");
	table_flush(p.table);
	expect(&p, "ID    N  NAME\n"
		   "?[2J  1  a?b?c?\n");
}

static void pages_share_the_head(void **state)
{
	struct paper p;

	(void)state;
	begin(&p, false);
	row(&p, "E1", 1, "a");
	table_flush(p.table);
	row(&p, "E1000", 1, "b");
	table_flush(p.table);
	row(&p, "E2", 1, "c");
	table_flush(p.table);
	expect(&p, "ID  N  NAME\n"
		   "E1  1  a\n"
		   "E1000  1  b\n"
		   "E2     1  c\n");
}

static void colors(void **state)
{
	struct paper p;

	(void)state;
	begin(&p, true);
	row(&p, "E1", 1, "a");
	table_flush(p.table);
	expect(&p, "\033[1mID\033[0m  \033[1mN\033[0m  \033[1mNAME\033[0m\n"
		   "E1  1  \033[33ma\033[0m\n");
}

static void states_have_styles(void **state)
{
	(void)state;
	assert_int_equal(table_state_style("present"), STYLE_GOOD);
	assert_int_equal(table_state_style("late_early"), STYLE_WARN);
	assert_int_equal(table_state_style("absent"), STYLE_BAD);
	assert_int_equal(table_state_style("holiday"), STYLE_PLAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aligns),
		cmocka_unit_test(counts_columns),
		cmocka_unit_test(makes_harmless),
		cmocka_unit_test(pages_share_the_head),
		cmocka_unit_test(colors),
		cmocka_unit_test(states_have_styles),
	};
	return cmocka_run_group_tests(tests, in_utf8, NULL);
}
