/* SPDX-License-Identifier: MIT */
/* Reading the tree while it changes, step by step: what a change between two reads does, which random changes
 * hit too seldom. */
#include "tests/component/tree_fixture.h"

#include "persist/forest_build.h"
#include "persist/tree_load.h"

static struct forest *forest;
static struct tree_load *load;
static bool idle;

static void on_idle(void *arg)
{
	(void)arg;
	idle = true;
}

static void begin(void)
{
	idle = false;
	forest = forest_new();
	load = tree_load_new(admin, forest, on_idle, NULL);
	wait_for(idle);
	assert_false(tree_load_failed(load));
}

static enum load_answer apply(const char *text)
{
	struct tree_record record;

	assert_true(tree_record_parse(bytes_of(text), &record));
	return tree_load_apply(load, &record);
}

static enum load_rest rest(void)
{
	idle = false;
	enum load_rest answer_ = tree_load_rest(load);
	if (answer_ == LOAD_ASKED)
		wait_for(idle);
	return answer_;
}

static size_t end(void)
{
	const char *example;
	int budget;

	tree_load_end(load);
	struct build *build = build_new(forest);
	do
		budget = 3;
	while (!build_step(build, &budget));
	size_t stray = build_stray(build, &example);
	build_free(build);
	return stray;
}

static const char *parent_of(const char *id)
{
	const struct dept *d = forest_find(forest, bytes_of(id));

	return d == NULL ? "none" : d->parent != NULL ? d->parent->id : "";
}

static int clean(void **state)
{
	(void)state;
	forget_all();
	return 0;
}

static int drop(void **state)
{
	(void)state;
	tree_load_free(load);
	forest_free(forest);
	return 0;
}

/* A department is being lifted whose keys are gone when they are asked for, and whose children are read
 * before and after they have got their new parent. */
static void test_lifted_between_two_reads(void **state)
{
	(void)state;
	put("1", "top");
	put("1:2", "lifted");
	put("1:2:3", "child");
	put("1:2:4", "child");
	ask("DEL @dept:2");
	ask("SREM @children:1 2");
	begin();
	ask("HSET @dept:3 parent_id 1");
	ask("HSET @dept:4 parent_id 1");
	while (rest() == LOAD_ASKED) {
	}
	assert_int_equal(end(), 0);
	assert_string_equal(parent_of("3"), "1");
	assert_string_equal(parent_of("4"), "1");
	assert_string_equal(parent_of("2"), "none");
}

/* It is not there, then it is: the id was another's first. */
static void test_absent_then_lifted(void **state)
{
	(void)state;
	put("1", "top");
	put("1:2:3", "child");
	ask("SADD @children:1 3");
	begin();
	assert_int_equal(rest(), LOAD_ASKED);
	ask("HSET @dept:2 name two parent_id 1 state lifted");
	while (rest() == LOAD_ASKED) {
	}
	assert_int_equal(end(), 0);
	assert_string_equal(parent_of("3"), "1");
}

/* What was read is of the department that came later; the lift is that of the earlier one. */
static void test_lifted_id_comes_again(void **state)
{
	(void)state;
	put("1", "top");
	put("1:2", "again");
	put("1:2:3", "child");
	begin();
	assert_int_equal(apply("T|rename|2|1|-|2|active|1:2|-|old"), LOAD_APPLIED);
	assert_int_equal(apply("T|lift|2|1|-|3|removed|1:2|-|old"), LOAD_APPLIED);
	assert_int_equal(apply("T|add|2|1|-|1|active|1:2|-|again"), LOAD_RESTART);
}

/* Without children there is nothing to be torn away. */
static void test_lifted_leaf_comes_again(void **state)
{
	(void)state;
	put("1", "top");
	put("1:2", "again");
	begin();
	assert_int_equal(apply("T|lift|2|1|-|3|removed|1:2|-|old"), LOAD_APPLIED);
	assert_int_equal(apply("T|add|2|1|-|1|active|1:2|-|again"), LOAD_APPLIED);
	assert_int_equal(rest(), LOAD_COMPLETE);
	assert_int_equal(end(), 0);
	assert_string_equal(parent_of("2"), "1");
}

/* A move from one root to another is read again, and so is whatever is moved after that. */
static void test_moved_past_the_scan(void **state)
{
	(void)state;
	put("1", "top");
	put("R", "top");
	put("R:2", "moved");
	put("R:2:3", "below");
	ask("SREM @children:R 2 3"); /* as if it had been moved there behind our back */
	begin();
	assert_null(build_find(forest, BYTES_LIT("3")));
	idle = false;
	assert_int_equal(apply("T|move|2|R|-|2|active|R:2|1:2|moved"), LOAD_READ);
	wait_for(idle);
	idle = false;
	assert_int_equal(apply("T|move|3|2|-|2|active|R:2:3|R:3|below"), LOAD_READ);
	wait_for(idle);
	assert_int_equal(rest(), LOAD_COMPLETE);
	assert_int_equal(end(), 0);
	assert_string_equal(parent_of("3"), "2");
	assert_string_equal(parent_of("2"), "R");
}

static void test_restarts(void **state)
{
	(void)state;
	put("1", "top");
	begin();
	assert_int_equal(apply("T|lift|1|-|-|2|removed|1|-|top"), LOAD_RESTART);
	assert_int_equal(apply("Z|repaired"), LOAD_RESTART);
}

#define HERE(name) cmocka_unit_test_setup_teardown(name, clean, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HERE(test_lifted_between_two_reads),
		HERE(test_absent_then_lifted),
		HERE(test_lifted_id_comes_again),
		HERE(test_lifted_leaf_comes_again),
		HERE(test_moved_past_the_scan),
		HERE(test_restarts),
	};
	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
