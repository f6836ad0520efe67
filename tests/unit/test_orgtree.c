/* SPDX-License-Identifier: MIT */
/* Departments of a file: parents before children in any order of lines, duplicates, cycles, names of
 * siblings, whole trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "cli/orgtree.h"

static struct row row_of(const char *id, const char *parent, const char *name, uint64_t line)
{
	return (struct row){.line = line,
		.kind = ROW_DEPARTMENT,
		.id = bytes_of(id),
		.parent = bytes_of(parent),
		.name = bytes_of(name),
		.manager = BYTES_LIT("")};
}

static void add_named(struct orgtree *t, const char *id, const char *parent, const char *name, uint64_t line)
{
	struct row row = row_of(id, parent, name, line);
	struct org *earlier;

	assert_non_null(orgtree_add(t, &row, &earlier));
}

static void add(struct orgtree *t, const char *id, const char *parent, uint64_t line)
{
	add_named(t, id, parent, "", line);
}

static void note(const struct org *org, void *arg)
{
	buf_addf(arg, "%s ", org_id(org));
}

/* The order as `id/depth id/depth `, those on a cycle left out. */
static void expect_order(struct orgtree *t, const char *order, const char *cycle)
{
	struct buf found = BUF_INIT, on_cycle = BUF_INIT;

	buf_add_str(&on_cycle, "");
	buf_add_str(&found, "");
	orgtree_order(t, note, &on_cycle);
	for (size_t i = 0; i < orgtree_count(t); i++) {
		const struct org *org = orgtree_at(t, i);
		if (org->state != ORG_FAILED)
			buf_addf(&found, "%s/%u ", org_id(org), org->depth);
	}
	assert_string_equal(found.data, order);
	assert_string_equal(on_cycle.data, cycle);
	buf_release(&found);
	buf_release(&on_cycle);
}

static void children_before_parents(void **state)
{
	struct orgtree *t = orgtree_new();

	(void)state;
	add(t, "D", "C", 2);
	add(t, "C", "B", 3);
	add(t, "X", "elsewhere", 4);
	add(t, "B", "A", 5);
	add(t, "A", "", 6);
	add(t, "E", "A", 7);
	expect_order(t, "X/0 A/0 B/1 E/1 C/2 D/3 ", "");
	assert_null(orgtree_above(t, orgtree_find(t, BYTES_LIT("X"))));
	assert_ptr_equal(orgtree_above(t, orgtree_find(t, BYTES_LIT("E"))), orgtree_find(t, BYTES_LIT("A")));
	assert_null(orgtree_find(t, BYTES_LIT("elsewhere")));
	orgtree_free(t);
}

static void nothing(void **state)
{
	struct orgtree *t = orgtree_new();

	(void)state;
	expect_order(t, "", "");
	orgtree_free(t);
}

static void duplicate_is_refused(void **state)
{
	struct orgtree *t = orgtree_new();
	struct org *earlier = NULL;
	struct row same = row_of("A", "P", "Name", 9), other = row_of("A", "Q", "Name", 10);

	(void)state;
	add_named(t, "A", "P", "Name", 2);
	assert_null(orgtree_add(t, &same, &earlier));
	assert_int_equal(earlier->line, 2);
	assert_true(org_is_as(earlier, &same));
	assert_null(orgtree_add(t, &other, &earlier));
	assert_false(org_is_as(earlier, &other));
	same.retired = true;
	assert_false(org_is_as(earlier, &same));
	assert_int_equal(orgtree_count(t), 1);
	orgtree_free(t);
}

static void texts_are_kept(void **state)
{
	struct orgtree *t = orgtree_new();
	struct org *earlier;
	char id[ID_MAX + 1], name[NAME_MAX_BYTES + 1];
	memset(id, 'i', ID_MAX);
	memset(name, 'n', NAME_MAX_BYTES);
	id[ID_MAX] = name[NAME_MAX_BYTES] = '\0';
	struct row row = row_of(id, id, name, 2);

	(void)state;
	row.manager = bytes_of(id);
	row.retired = true;
	const struct org *org = orgtree_add(t, &row, &earlier);
	assert_string_equal(org_id(org), id);
	assert_string_equal(org_parent(org), id);
	assert_string_equal(org_manager(org), id);
	assert_string_equal(org_name(org), name);
	assert_true(org->retired);
	orgtree_free(t);
}

static void note_taken(const struct org *org, const struct org *earlier, void *arg)
{
	buf_addf(arg, "%s=%s ", org_id(org), org_id(earlier));
}

static void siblings_of_one_name(void **state)
{
	struct orgtree *t = orgtree_new();
	struct buf taken = BUF_INIT;

	(void)state;
	add_named(t, "a", "top",
		"Stra\xc3\x9f"
		"e",
		2);
	add_named(t, "b", "top", "STRASSE", 3); /* folds to the same */
	add_named(t, "c", "elsewhere", "STRASSE", 4);
	add_named(t, "d", "top", "Caf\xc3\xa9", 5);
	add_named(t, "e", "top", "cafe\xcc\x81", 6); /* the accent apart */
	add_named(t, "f", "", "D", 7);
	add_named(t, "D", "", "", 8); /* without a name the id is the name */
	add_named(t, "g", "top", "e", 9);
	orgtree_order(t, note, &taken);
	orgtree_check_names(t, note_taken, &taken);
	assert_string_equal(taken.data, "b=a e=d D=f ");
	assert_int_equal(orgtree_find(t, BYTES_LIT("b"))->state, ORG_FAILED);
	assert_int_equal(orgtree_find(t, BYTES_LIT("a"))->state, ORG_WAITING);
	buf_release(&taken);
	orgtree_free(t);
}

/* Two trees and a lone one; what fails in one spares the others. */
static void whole_trees(void **state)
{
	struct orgtree *t = orgtree_new();
	struct buf spoilt = BUF_INIT;

	(void)state;
	add(t, "A", "", 2);
	add(t, "A1", "A", 3);
	add(t, "A11", "A1", 4);
	add(t, "A2", "A", 5);
	add(t, "B", "", 6);
	add(t, "B1", "B", 7);
	add(t, "C", "outside", 8);
	add(t, "C1", "C", 9);
	orgtree_order(t, note, &spoilt);
	orgtree_find(t, BYTES_LIT("A11"))->state = ORG_FAILED;
	orgtree_add_flaw(t, BYTES_LIT("C1"));
	orgtree_add_flaw(t, BYTES_LIT("nowhere"));
	orgtree_add_flaw(t, BYTES_LIT(""));
	orgtree_spoil(t, note, &spoilt);
	assert_string_equal(spoilt.data, "A C A1 A2 C1 ");
	assert_int_equal(orgtree_find(t, BYTES_LIT("B1"))->state, ORG_WAITING);
	buf_release(&spoilt);
	orgtree_free(t);
}

static void cycle_fails_alone(void **state)
{
	struct orgtree *t = orgtree_new();

	(void)state;
	add(t, "tail", "B", 2); /* hangs on the cycle without being on it */
	add(t, "A", "B", 3);
	add(t, "B", "C", 4);
	add(t, "C", "A", 5);
	add(t, "fine", "", 6);
	add(t, "self", "self", 7);
	expect_order(t, "fine/0 tail/4 ", "B C A self ");
	assert_int_equal(orgtree_above(t, orgtree_find(t, BYTES_LIT("tail")))->state, ORG_FAILED);
	orgtree_free(t);
}

/* Ten thousand levels, deepest first: no recursion, and each parent before its child. */
static void deep_chain(void **state)
{
	enum { LEVELS = 10000 };
	struct orgtree *t = orgtree_new();
	char id[16], parent[16];

	(void)state;
	for (int i = LEVELS; i > 0; i--) {
		snprintf(id, sizeof(id), "d%d", i);
		snprintf(parent, sizeof(parent), "d%d", i - 1);
		add(t, id, parent, (uint64_t)(LEVELS - i + 2));
	}
	orgtree_order(t, note, NULL);
	for (size_t i = 0; i < LEVELS; i++) {
		assert_int_equal(orgtree_at(t, i)->depth, i);
		assert_ptr_equal(orgtree_above(t, orgtree_at(t, i)), i > 0 ? orgtree_at(t, i - 1) : NULL);
	}
	orgtree_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_before_parents),
		cmocka_unit_test(nothing),
		cmocka_unit_test(duplicate_is_refused),
		cmocka_unit_test(texts_are_kept),
		cmocka_unit_test(siblings_of_one_name),
		cmocka_unit_test(whole_trees),
		cmocka_unit_test(cycle_fails_alone),
		cmocka_unit_test(deep_chain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
