/* SPDX-License-Identifier: MIT */
/* Departments of a file: parents before children in any order of lines, duplicates, cycles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/orgtree.h"

static void add(struct orgtree *t, const char *id, const char *parent, uint64_t line)
{
	struct org *earlier, *org = orgtree_add(t, bytes_of(id), line, &earlier);

	assert_non_null(org);
	free(org->parent);
	org->parent = xstrdup(parent);
}

static void note_cycle(const struct org *org, void *arg)
{
	buf_addf(arg, "%s ", org->id);
}

/* The order as `id/depth id/depth `, those on a cycle left out. */
static void expect_order(struct orgtree *t, const char *order, const char *cycle)
{
	struct buf found = BUF_INIT, on_cycle = BUF_INIT;

	buf_add_str(&on_cycle, "");
	buf_add_str(&found, "");
	orgtree_order(t, note_cycle, &on_cycle);
	for (size_t i = 0; i < orgtree_count(t); i++) {
		const struct org *org = orgtree_at(t, i);
		if (org->state != ORG_FAILED)
			buf_addf(&found, "%s/%u ", org->id, org->depth);
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
	assert_null(orgtree_find(t, BYTES_LIT("X"))->parent_org);
	assert_ptr_equal(orgtree_find(t, BYTES_LIT("E"))->parent_org, orgtree_find(t, BYTES_LIT("A")));
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

	(void)state;
	add(t, "A", "", 2);
	assert_null(orgtree_add(t, BYTES_LIT("A"), 9, &earlier));
	assert_int_equal(earlier->line, 2);
	assert_int_equal(orgtree_count(t), 1);
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
	assert_int_equal(orgtree_find(t, BYTES_LIT("tail"))->parent_org->state, ORG_FAILED);
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
	orgtree_order(t, note_cycle, NULL);
	for (size_t i = 0; i < LEVELS; i++) {
		assert_int_equal(orgtree_at(t, i)->depth, i);
		assert_ptr_equal(orgtree_at(t, i)->parent_org, i > 0 ? orgtree_at(t, i - 1) : NULL);
	}
	orgtree_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_before_parents),
		cmocka_unit_test(nothing),
		cmocka_unit_test(duplicate_is_refused),
		cmocka_unit_test(cycle_fails_alone),
		cmocka_unit_test(deep_chain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
