/* SPDX-License-Identifier: MIT */
/* The picture of the tree against a real Redis, whose keys and journal the test writes itself: what it loads,
 * what it follows, what it waits for, what it forgets last. */
#include "tests/component/tree_fixture.h"

#include "base/info.h"

static struct redis *link_;
static struct tree *tree;
static struct model model;

/* ---- writing ---- */

/* Writes a record and returns the id of its entry. */
static const char *journal(const char *record)
{
	static char id[STREAM_ID_TEXT];
	snprintf(id, sizeof(id), "%s", ask("XADD @journal * e %s", record));
	ask("SET @last %s", id);
	return id;
}

/* The same for a record that says what is true. */
static const char *change(const char *record)
{
	model_apply(&model, record);
	return journal(record);
}

/* ---- the picture ---- */

static void on_change(void *arg)
{
	(void)arg;
}

static void cut_link(void)
{
	char id[32];

	snprintf(id, sizeof(id), "%s", ask_by(link_, "CLIENT ID"));
	ask("CLIENT KILL ID %s", id);
	wait_for(!redis_ready(link_));
}

/* A line of INFO. */
static long long info_now(const char *key)
{
	struct buf out = BUF_INIT;

	info_write(&out, "Organisation");
	const char *at = strstr(out.data, key);
	long long value = at != NULL ? strtoll(at + strlen(key) + 1, NULL, 10) : -1;
	buf_release(&out);
	return value;
}

/* The same since open_tree(). */
static long long loads_before;

static long long loads(void)
{
	return info_now("tree_loads") - loads_before;
}

/* One picture serves all tests: it is loaded anew since the place in the journal where it was is gone. */
static void open_tree(void)
{
	if (tree != NULL) {
		loads_before = info_now("tree_loads");
		cut_link();
	} else {
		link_ = redis_new(loop, &config, REDIS_MAIN);
		tree = tree_new(loop, link_, on_change, NULL);
		redis_start(link_);
	}
	wait_for(tree_loaded(tree));
	assert_int_equal(loads(), 1);
}

static int sync_answer; /* 1 = in time, -1 = too late, 0 = none yet */

static void on_sync(bool ok, void *arg)
{
	(void)arg;
	sync_answer = ok ? 1 : -1;
}

static void sync_to(const char *last)
{
	sync_answer = 0;
	tree_sync(tree, bytes_of(last), on_sync, NULL);
	assert_int_equal(sync_answer, 0);
	wait_for(sync_answer != 0);
}

static void expect_picture(void)
{
	uint32_t count;
	struct dept *const *roots = tree_roots(tree, &count);

	expect_model(&model, roots, count);
	assert_int_equal(tree_count(tree), model.count);
}

static struct dept *find(const char *id)
{
	return tree_find(tree, bytes_of(id));
}

/* 1 -> 2 -> 3 -> 4, 1 -> 5 -> 6, and a second root. */
static void put_usual(void)
{
	static const char *const paths[] = {"1", "1:2", "1:2:3", "1:2:3:4", "1:5", "1:5:6", "R"};
	char record[128];

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct bytes path = bytes_of(paths[i]), part[8];
		int parts = bytes_split(path, ':', part, 8);
		put(paths[i], "name");
		snprintf(record, sizeof(record), "T|add|%.*s|%.*s|-|1|active|%s|-|name", 1, part[parts - 1].p,
			1, parts > 1 ? part[parts - 2].p : "-", paths[i]);
		model_apply(&model, record);
	}
}

static int clean(void **state)
{
	(void)state;
	forget_all();
	model.count = 0;
	return 0;
}

/* ---- tests ---- */

static void test_loads(void **state)
{
	(void)state;
	put_usual();
	ask("HSET @dept:5 state retired version 3 manager boss@x");
	struct model_node *five = model_find(&model, "5");
	five->retired = true;
	five->version = 3;
	snprintf(five->manager, sizeof(five->manager), "boss@x");
	open_tree();
	expect_picture();
	assert_int_equal(find("1")->below, 5);
	assert_int_equal(find("1")->listed, 3);
	assert_int_equal(find("5")->listed, 1);
	assert_null(find("7"));
	assert_int_equal(info_now("departments"), 7);
	assert_int_equal(loads(), 1);
}

/* Ids are ordered by their bytes, and a walk goes on behind an id whether it is there or not. */
static void test_order(void **state)
{
	static const char *const ids[] = {"10", "9", "A", "a", "Z", "100", "_", "-a"};
	static const char *const ordered[] = {"-a", "10", "100", "9", "A", "Z", "_", "a"};
	size_t i = 0;

	(void)state;
	put("top", "top");
	for (size_t k = 0; k < ARRAY_LEN(ids); k++) {
		char path[32];
		snprintf(path, sizeof(path), "top:%s", ids[k]);
		put(path, "x");
	}
	open_tree();
	const struct dept *top = find("top");
	for (const struct dept *d = tree_next(top, top); d != NULL; d = tree_next(top, d))
		assert_string_equal(d->id, ordered[i++]);
	assert_int_equal(i, ARRAY_LEN(ordered));
	assert_string_equal(tree_child_after(tree, top, BYTES_LIT("10"))->id, "100");
	assert_string_equal(tree_child_after(tree, top, BYTES_LIT("11"))->id, "9");
	assert_string_equal(tree_child_after(tree, top, BYTES_LIT(""))->id, "-a");
	assert_null(tree_child_after(tree, top, BYTES_LIT("a")));
	assert_ptr_equal(tree_child_after(tree, NULL, BYTES_LIT("a")), top);
	assert_null(tree_child_after(tree, NULL, BYTES_LIT("top")));
}

static void test_follows(void **state)
{
	static const char *const records[] = {
		"T|add|7|6|-|1|active|1:5:6:7|-|seven",
		"T|add|S|-|boss|1|active|S|-|root",
		"J|join|7|somebody|1",
		"T|rename|2|1|-|2|active|1:2|-|a|name|with|bars",
		"T|manager|2|1|e.1@x|3|active|1:2|-|a|name|with|bars",
		"T|retire|5|1|-|2|retired|1:5|-|name",
		"T|move|3|5|-|2|active|1:5:3|1:2:3|name",
		"T|move|5|-|-|3|retired|5|1:5|name",
		"T|restore|5|-|-|4|active|5|-|name",
		"T|move|5|2|-|5|active|1:2:5|5|name",
		"T|lift|5|2|-|6|removed|1:2:5|-|name",
		"T|lift|1|-|-|2|removed|1|-|name",
		"T|remove|3|2|-|3|removed|2:3|-|name",
		"T|add|3|S|-|1|active|S:3|-|again",
		"T|remove|2|-|-|4|removed|2|-|name",
	};

	(void)state;
	put_usual();
	open_tree();
	for (size_t i = 0; i < ARRAY_LEN(records); i++) {
		sync_to(change(records[i]));
		expect_picture();
	}
	assert_int_equal(loads(), 1);
	assert_int_equal(info_now("tree_doubted"), 0);
	assert_int_equal(model.count, 3);
}

static void test_skips_what_it_has(void **state)
{
	(void)state;
	put_usual();
	ask("HSET @dept:3 version 4");
	model_find(&model, "3")->version = 4;
	open_tree();
	journal("T|rename|3|2|-|3|active|1:2:3|-|old");
	journal("T|move|3|-|-|4|active|3|1:2:3|old");
	journal("T|add|3|1|-|1|active|1:3|-|old");
	sync_to(journal("T|remove|3|2|-|2|removed|1:2:3|-|old"));
	expect_picture();
	assert_int_equal(info_now("tree_doubted"), 0);
}

/* A lift and a removal under way: what is in their subtrees is found, and is where it belongs. */
static void test_loads_amid_jobs(void **state)
{
	(void)state;
	put_usual();
	ask("HSET @dept:2 state lifted");
	ask("SREM @children:1 2");
	ask("SREM @direct_children:1 2");
	ask("SADD @jobs 7");
	ask("HSET @job:7 op lift id 2 phase finish parent 1");
	model_lift(&model, model_find(&model, "2"));
	ask("HSET @dept:5 state removed");
	ask("SREM @direct_children:1 5");
	ask("SREM @children:1 5");
	model_remove(&model, "5");
	open_tree();
	expect_picture();
	assert_string_equal(find("3")->parent->id, "1");
	assert_null(find("6"));
	assert_int_equal(info_now("departments_stray"), 0);
}

/* A root that is being lifted: its children are in no other set. */
static void test_loads_a_lifted_root(void **state)
{
	(void)state;
	put_usual();
	ask("HSET @dept:1 state lifted");
	ask("SREM @roots 1");
	ask("SADD @jobs 7");
	ask("HSET @job:7 op lift id 1 phase finish parent ");
	model_lift(&model, model_find(&model, "1"));
	/* What is added meanwhile comes into the sets of those that will be roots only. */
	ask("HSET @dept:7 name name parent_id 6");
	ask("SADD @children:6 7");
	ask("SADD @children:5 7");
	model_apply(&model, "T|add|7|6|-|1|active|5:6:7|-|name");
	open_tree();
	expect_picture();
}

/* Damage is not shown, and no walk meets it. */
static void test_drops_what_hangs_in_the_air(void **state)
{
	(void)state;
	put_usual();
	ask("HSET @dept:x name x parent_id y");
	ask("HSET @dept:y name y parent_id x");
	ask("HSET @dept:o name o parent_id nowhere");
	ask("HSET @dept:p name p parent_id o");
	ask("HSET @dept:s name s parent_id s");
	ask("SADD @children:1 x y o p s missing");
	ask("SET @dept:q hash");
	ask("SADD @children:R q");
	open_tree();
	expect_picture();
	assert_int_equal(info_now("departments_stray"), 5);
}

static void test_empty(void **state)
{
	(void)state;
	open_tree();
	expect_picture();
	sync_to("");
	sync_to(change("T|add|1|-|-|1|active|1|-|first"));
	expect_picture();
}

static void test_sync(void **state)
{
	char last[STREAM_ID_TEXT];

	(void)state;
	put_usual();
	open_tree();
	sync_to("");
	assert_int_equal(sync_answer, 1);
	snprintf(last, sizeof(last), "%s", journal("T|rename|2|1|-|2|active|1:2|-|new"));
	sync_to(last);
	assert_int_equal(sync_answer, 1);
	assert_string_equal(find("2")->name, "new");
	sync_to(last);
	assert_int_equal(sync_answer, 1);
	/* 10 comes after 9: the order of numbers, not of texts. */
	ask("DEL @journal");
	ask("XADD @journal 9999999999999-9 e T|rename|2|1|-|3|active|1:2|-|nine");
	ask("XADD @journal 9999999999999-10 e T|rename|2|1|-|4|active|1:2|-|ten");
	sync_to("9999999999999-10");
	assert_string_equal(find("2")->name, "ten");
}

static void test_sync_too_late(void **state)
{
	(void)state;
	put_usual();
	open_tree();
	long long late_before = info_now("tree_too_late");
	int64_t begun = clock_mono_us();
	sync_to("9999999999999-0");
	int64_t took = clock_mono_us() - begun;
	assert_int_equal(sync_answer, -1);
	assert_in_range(took, 1990000, 2900000);
	assert_int_equal(info_now("tree_too_late"), late_before + 1);
}

static const char *gone(const char *id)
{
	static char text[256];
	struct bytes path, name;

	if (!tree_gone(tree, bytes_of(id), &path, &name))
		return "";
	snprintf(text, sizeof(text), "%.*s %.*s", (int)path.n, path.p, (int)name.n, name.p);
	return text;
}

static void test_gone(void **state)
{
	static const char *const paths[] = {"G", "G:H", "G:H:I", "G:H:I:J", "G:K", "G:K:L"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		put(paths[i], "name");
	ask("HSET @gone past 123|1:2:past|the|past");
	open_tree();
	wait_for(gone("past")[0] != '\0');
	assert_string_equal(gone("past"), "1:2:past the|past");
	assert_string_equal(gone("H"), "");
	sync_to(journal("T|remove|H|G|-|2|removed|G:H|-|name"));
	assert_string_equal(gone("H"), "G:H name");
	assert_string_equal(gone("J"), "G:H:I:J name");
	sync_to(journal("T|lift|K|G|-|2|removed|G:K|-|name"));
	assert_string_equal(gone("K"), "G:K name");
	assert_string_equal(gone("L"), "");
	/* What somebody misses is looked for. */
	ask("HSET @gone other 5|1:other|o");
	assert_string_equal(gone("other"), "");
	wait_for(gone("other")[0] != '\0');
	assert_string_equal(gone("other"), "1:other o");
	/* What Redis has forgotten is forgotten, but not what it does not have yet. */
	ask("HDEL @gone other");
	wait_for(gone("other")[0] == '\0');
	assert_string_equal(gone("J"), "G:H:I:J name");
}

/* After a break the picture goes on where it was, when the journal still has that place. */
static void test_resumes(void **state)
{
	(void)state;
	put_usual();
	open_tree();
	sync_to(change("T|rename|2|1|-|2|active|1:2|-|before"));
	cut_link();
	assert_false(tree_loaded(tree));
	assert_string_equal(find("2")->name, "before");
	change("T|rename|2|1|-|3|active|1:2|-|meanwhile");
	wait_for(tree_loaded(tree));
	sync_to(change("T|rename|2|1|-|4|active|1:2|-|after"));
	expect_picture();
	assert_int_equal(loads(), 1);
}

/* Nothing has happened meanwhile, and the journal has been trimmed. */
static void test_resumes_in_silence(void **state)
{
	(void)state;
	put_usual();
	open_tree();
	sync_to(change("T|rename|2|1|-|2|active|1:2|-|before"));
	ask("XTRIM @journal MAXLEN 0");
	cut_link();
	wait_for(tree_loaded(tree));
	assert_int_equal(loads(), 1);
}

static void test_loads_after_a_gap(void **state)
{
	(void)state;
	put_usual();
	open_tree();
	sync_to(change("T|rename|2|1|-|2|active|1:2|-|before"));
	cut_link();
	change("T|rename|2|1|-|3|active|1:2|-|meanwhile");
	ask("HSET @dept:2 name meanwhile version 3");
	ask("XTRIM @journal MAXLEN 0");
	wait_for(tree_loaded(tree));
	expect_picture();
	assert_int_equal(loads(), 2);
}

/* A record that cannot be: the picture is made anew, and is right then. */
static void test_doubts(void **state)
{
	(void)state;
	put_usual();
	open_tree();
	put("1:5:6:7", "name");
	put("1:5:6:7:8", "name");
	model_apply(&model, "T|add|7|6|-|1|active|1:5:6:7|-|name");
	sync_to(change("T|add|8|7|-|1|active|1:5:6:7:8|-|name"));
	wait_for(loads() == 2 && tree_loaded(tree));
	expect_picture();
	assert_int_equal(info_now("tree_doubted"), 0);
}

/* What a repair has put back has no record of its own. The picture goes on meanwhile. */
static void test_repaired(void **state)
{
	(void)state;
	put_usual();
	open_tree();
	put("1:5:6:7", "name");
	model_apply(&model, "T|add|7|6|-|1|active|1:5:6:7|-|name");
	ask("HSET @dept:2 name meanwhile version 2");
	sync_to(journal("Z|repaired"));
	sync_to(change("T|rename|2|1|-|2|active|1:2|-|meanwhile"));
	assert_true(tree_loaded(tree));
	assert_string_equal(find("2")->name, "meanwhile");
	wait_for(loads() == 2 && find("7") != NULL);
	expect_picture();
}

/* No move makes a circle, whatever the journal says. */
static void test_refuses_a_circle(void **state)
{
	(void)state;
	put_usual();
	open_tree();
	sync_to(journal("T|move|2|4|-|2|active|1:2:3:4:2|1:2|name"));
	assert_string_equal(find("2")->parent->id, "1");
	wait_for(loads() == 2 && tree_loaded(tree));
	expect_picture();
}

/* Long lists of children, a large subtree taken out and its ids used again at once. */
static void test_many(void **state)
{
	const int many = 20000;

	(void)state;
	put("1", "name");
	put("1:2", "name");
	ask_lua("for i = 1, tonumber(ARGV[2]) do local id = 'n' .. i; "
		"redis.call('HSET', ARGV[1] .. 'dept:' .. id, 'name', id, 'parent_id', i % 3 == 0 and 'n' .. "
		"(i - 1) or '2'); "
		"redis.call('SADD', ARGV[1] .. 'children:1', id) end",
		"20000");
	open_tree();
	assert_int_equal(find("1")->below, many + 1);
	assert_int_equal(find("2")->child_count, many - many / 3);
	const struct dept *two = find("2");
	for (uint32_t i = 1; i < two->child_count; i++)
		assert_true(strcmp(two->children[i - 1]->id, two->children[i]->id) < 0);
	journal("T|remove|2|1|-|2|removed|1:2|-|name");
	sync_to(journal("T|add|2|1|-|1|active|1:2|-|new"));
	assert_null(find("n1"));
	assert_string_equal(find("2")->name, "new");
	assert_string_equal(gone("n3"), "1:2:n2:n3 n3");
	sync_to(journal("T|add|n3|2|-|1|active|1:2:n3|-|new"));
	assert_int_equal(tree_count(tree), 3);
}

#define HERE(name) cmocka_unit_test_setup(name, clean)

static int teardown(void **state)
{
	redis_free(link_);
	tree_free(tree);
	return fixture_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HERE(test_loads),
		HERE(test_order),
		HERE(test_follows),
		HERE(test_skips_what_it_has),
		HERE(test_loads_amid_jobs),
		HERE(test_loads_a_lifted_root),
		HERE(test_drops_what_hangs_in_the_air),
		HERE(test_empty),
		HERE(test_sync),
		HERE(test_sync_too_late),
		HERE(test_gone),
		HERE(test_resumes),
		HERE(test_resumes_in_silence),
		HERE(test_loads_after_a_gap),
		HERE(test_doubts),
		HERE(test_repaired),
		HERE(test_refuses_a_circle),
		HERE(test_many),
	};
	return cmocka_run_group_tests(tests, fixture_setup, teardown);
}
