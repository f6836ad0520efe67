/* SPDX-License-Identifier: MIT */
/* mq/notice.c: whom a notice reaches, by its keys, and what it says of changes of the tree. The picture of
 * the organisation is the test's own: hq - east - lab, hq - west, and `old`, removed, that was below east. */
#include "mq/notice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/buf.h"
#include "persist/journal.h"
#include "persist/keys.h"
#include "persist/tree.h"

static struct dept hq = {.id = (char[]){"hq"}, .name = (char[]){"Head office"}};
static struct dept east = {.id = (char[]){"east"}, .name = (char[]){"East"}, .parent = &hq};
static struct dept lab = {.id = (char[]){"lab"}, .name = (char[]){"Lab"}, .parent = &east};
static struct dept west = {.id = (char[]){"west"}, .name = (char[]){"West"}, .parent = &hq};

struct dept *tree_find(const struct tree *t, struct bytes id)
{
	struct dept *all[] = {&hq, &east, &lab, &west};

	(void)t;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (bytes_eq(id, bytes_of(all[i]->id)))
			return all[i];
	}
	return NULL;
}

bool tree_gone(const struct tree *t, struct bytes id, struct bytes *ret_path, struct bytes *ret_name)
{
	(void)t;
	*ret_path = BYTES_LIT("hq:east:old");
	*ret_name = BYTES_LIT("Old");
	return bytes_eq(id, BYTES_LIT("old"));
}

#define RECORDS_MAX 8

/* Makes the notices of some records, each a C string; NULL at the end. */
static bool make(struct notices *n, const char *const *texts)
{
	struct journal_record records[RECORDS_MAX];
	struct journal_window window = {.records = records};

	for (; texts[window.count] != NULL; window.count++)
		records[window.count] =
			(struct journal_record){bytes_of(texts[window.count]), BYTES_LIT("org-1-0-0")};
	return notices_make(n, &window, NULL);
}

/* The same with task ends that are to be told. */
static size_t make_tasks(struct notices *n, int64_t ends, const char *const *texts)
{
	notices_release(n);
	n->task_ends = ends;
	assert_true(make(n, texts));
	return n->count;
}

/* All keys of a message, the first one's and the others', with blanks between. */
static void expect_keys(const struct notice *n, const char *keys)
{
	struct buf got = BUF_INIT;
	size_t count = 0;

	buf_add_bytes(&got, buf_bytes(&n->key));
	for (size_t at = 0; at < n->keys.len; at += strlen(n->keys.data + at) + 1, count++)
		buf_addf(&got, " %s", n->keys.data + at);
	assert_string_equal(got.data, keys);
	assert_int_equal(count, n->key_count);
	buf_release(&got);
}

static void one_message(const char *record, const char *keys, const char *body)
{
	struct notices n = {0};

	assert_true(make(&n, (const char *const[]){record, NULL}));
	assert_int_equal(n.count, 1);
	expect_keys(&n.list[0], keys);
	assert_string_equal(n.list[0].body.data, body);
	notices_release(&n);
}

static void a_move_is_told_at_both_places(void **state)
{
	(void)state;
	one_message("T|move|lab|west|-|3|active|hq:west:lab|hq:east:lab|Lab",
		"team.move.lab team.move.west.sub team.move.hq.sub team.move.east.sub",
		"{\"schema\":1,\"type\":\"team.move\",\"dept\":\"lab\",\"dept_name\":\"Lab\",\"path\":["
		"\"hq\","
		"\"west\",\"lab\"],\"events\":[{\"id\":\"org-1-0-0\",\"team\":\"lab\",\"name\":\"Lab\","
		"\"parent\":"
		"\"west\",\"state\":\"active\",\"path\":[\"hq\",\"west\",\"lab\"],\"old_path\":[\"hq\","
		"\"east\","
		"\"lab\"],\"version\":3}]}");
	/* From the root to the root's child and back; ids of which one begins like the other. */
	one_message("T|move|x|-|boss|2|active|x|a:b:x|X", "team.move.x team.move.b.sub team.move.a.sub",
		"{\"schema\":1,\"type\":\"team.move\",\"dept\":\"x\",\"dept_name\":\"X\",\"path\":[\"x\"],"
		"\"events\":[{\"id\":\"org-1-0-0\",\"team\":\"x\",\"name\":\"X\",\"manager\":\"boss\","
		"\"state\":"
		"\"active\",\"path\":[\"x\"],\"old_path\":[\"a\",\"b\",\"x\"],\"version\":2}]}");
}

static void keys_of_a_move(const char *path, const char *old, const char *keys)
{
	struct notices n = {0};
	struct buf record = BUF_INIT;

	buf_addf(&record, "T|move|x|-|-|2|active|%s|%s|X", path, old);
	assert_true(make(&n, (const char *const[]){record.data, NULL}));
	expect_keys(&n.list[0], keys);
	notices_release(&n);
	buf_release(&record);
}

static void each_key_once(void **state)
{
	(void)state;
	keys_of_a_move("a:x", "x", "team.move.x team.move.a.sub");
	keys_of_a_move("a:b:c:x", "a:b:x", "team.move.x team.move.c.sub team.move.b.sub team.move.a.sub");
	keys_of_a_move("a:b:x", "a:b:c:x", "team.move.x team.move.b.sub team.move.a.sub team.move.c.sub");
	keys_of_a_move("a:b2:x", "a:b:x", "team.move.x team.move.b2.sub team.move.a.sub team.move.b.sub");
	keys_of_a_move("a:b:x", "a:b2:x", "team.move.x team.move.b.sub team.move.a.sub team.move.b2.sub");
}

static void other_changes(void **state)
{
	(void)state;
	one_message("T|remove|gone|p|m|4|removed|p:gone|-|A|B", "team.remove.gone team.remove.p.sub",
		"{\"schema\":1,\"type\":\"team.remove\",\"dept\":\"gone\",\"dept_name\":\"A|B\",\"path\":["
		"\"p\","
		"\"gone\"],\"events\":[{\"id\":\"org-1-0-0\",\"team\":\"gone\",\"name\":\"A|B\",\"parent\":"
		"\"p\","
		"\"manager\":\"m\",\"state\":\"removed\",\"path\":[\"p\",\"gone\"],\"version\":4}]}");
	one_message("J|join|lab|ada|1700", "team.join.lab team.join.east.sub team.join.hq.sub",
		"{\"schema\":1,\"type\":\"team.join\",\"dept\":\"lab\",\"dept_name\":\"Lab\",\"path\":["
		"\"hq\","
		"\"east\",\"lab\"],\"events\":[{\"id\":\"org-1-0-0\",\"team\":\"lab\",\"employee\":\"ada\","
		"\"at\":1700}]}");
}

/* Two moves of one team reach four places: never one message. Joins of a team are one. */
static void grouping(void **state)
{
	struct notices n = {0};

	(void)state;
	assert_true(make(
		&n, (const char *const[]){"T|move|x|b|-|2|active|b:x|a:x|X",
			    "T|move|x|c|-|3|active|c:x|b:x|X", "J|join|lab|ada|1", "J|join|lab|bo|2", NULL}));
	assert_int_equal(n.count, 3);
	expect_keys(&n.list[0], "team.move.x team.move.b.sub team.move.a.sub");
	expect_keys(&n.list[1], "team.move.x team.move.c.sub team.move.b.sub");
	assert_int_equal(n.list[2].events, 2);
	notices_release(&n);
}

static void records_that_are_none(void **state)
{
	struct notices n = {0};

	(void)state;
	assert_true(make(&n, (const char *const[]){"T|add|x|-|-|x|Name", "T|add|x|-|-|one|active|x|-|X",
				     "J|join|lab|ada", NULL}));
	assert_int_equal(n.count, 0);
	notices_release(&n);
}

#define CLOSED(dept) "C|2031-03-03|" dept "|1|1|0|1|0|1700"

static void a_department_that_is_gone(void **state)
{
	(void)state;
	one_message(CLOSED("old"),
		"attendance.closed.old attendance.closed.east.sub attendance.closed.hq.sub",
		"{\"schema\":1,\"type\":\"attendance.closed\",\"dept\":\"old\",\"dept_name\":\"Old\","
		"\"path\":"
		"[\"hq\",\"east\",\"old\"],\"day\":\"2031-03-03\",\"events\":[{\"id\":\"closed:2031-03-03:"
		"old\","
		"\"expected\":1,\"written\":1,\"failed\":0,\"absent\":1,\"late\":0}]}");
}

static void a_department_that_nobody_knows(void **state)
{
	struct notices n = {0}, alone = {.alone = true};
	const char *const records[] = {CLOSED("lab"), CLOSED("strange"), NULL};

	(void)state;
	assert_false(make(&n, records));
	assert_int_equal(n.count, 0);
	assert_string_equal(n.unknown, "strange");
	assert_true(make(&alone, records));
	assert_int_equal(alone.count, 2);
	assert_string_equal(alone.unknown, "strange");
	expect_keys(
		&alone.list[0], "attendance.closed.lab attendance.closed.east.sub attendance.closed.hq.sub");
	expect_keys(&alone.list[1], "attendance.closed.strange");
	notices_release(&alone);
}

/* Who was moved after his first punch: the punch is for those of both departments. */
static void a_person_who_was_moved(void **state)
{
	struct notices n = {0};

	(void)state;
	assert_true(make(
		&n, (const char *const[]){
			    "P|2031-03-03|lab|west|ada|O|1930327200000|1930327200000|-|-|-|N|I1930294800000 "
			    "O1930327200000|Ada",
			    NULL}));
	assert_int_equal(n.count, 1);
	expect_keys(&n.list[0], "attendance.out.lab attendance.out.east.sub attendance.out.hq.sub "
				"attendance.out.west");
	notices_release(&n);
}

/* 1,000 levels of the longest ids fit; a move between two such places names the nearest of both. */
static void deep_trees(void **state)
{
	struct notices n = {0};
	struct buf path = BUF_INIT, record = BUF_INIT;

	(void)state;
	for (int i = 0; i < 999; i++)
		buf_addf(&path, "%064d:", i);
	buf_addf(&record, "T|remove|x|-|-|2|removed|%sx|-|X", path.data);
	assert_true(make(&n, (const char *const[]){record.data, NULL}));
	assert_int_equal(n.list[0].key_count, 999);
	assert_int_equal(n.list[0].left_out, 0);
	notices_release(&n);
	buf_clear(&record);
	buf_addf(&record, "T|move|x|-|-|2|active|a:%sx|b:%sx|X", path.data, path.data);
	assert_true(make(&n, (const char *const[]){record.data, NULL}));
	assert_true(n.list[0].left_out > 0);
	assert_int_equal(n.list[0].key_count + n.list[0].left_out, 2000);
	assert_true(n.list[0].keys.len < NOTICE_KEYS_MAX);
	notices_release(&n);
	buf_release(&record);
	buf_release(&path);
}

#define TASK    "0000003q280c"
#define SUCCESS "K|success|" TASK "|mail|5|0|0|7|w1|-|1|1700|-|0|0|0|"
#define FAILED  "K|failed|" TASK "|mail|5|0|0|7|w1|-|1|1700|-|0|0|0|"
#define TIMEOUT "K|timeout|" TASK "|mail|5|0|0|7|w1|-|1|1700|-|0|0|0|"

static void what_is_told_of_a_task(void **state)
{
	struct notices n = {0};

	(void)state;
	assert_int_equal(make_tasks(&n, 2,
				 (const char *const[]){"K|failed|" TASK "|mail|9|3|1|7|w.1@h|order:7|1|1700|-"
						       "|2|8|3|okbad \"\xff|\nPPP",
					 NULL}),
		1);
	expect_keys(&n.list[0], "task.failed.mail");
	assert_string_equal(n.list[0].type.data, "task.failed");
	assert_string_equal(n.list[0].id.data, "org-1-0-0:7");
	assert_string_equal(n.list[0].body.data,
		"{\"schema\":1,\"type\":\"task.failed\",\"queue\":\"mail\",\"events\":[{\"id\":\"org-1-0-0\","
		"\"task\":"
		"\"" TASK
		"\",\"at\":1700,\"submitted\":1767225601000,\"priority\":9,\"retries\":3,\"crashes\":1,"
		"\"worker\":\"w.1@h\",\"key\":\"order:7\",\"error\":\"bad \\\"\\ufffd|\\u000a\"}]}");
	/* Cancelled before anybody had it. */
	make_tasks(
		&n, 8, (const char *const[]){"K|cancelled|" TASK "|mail|5|0|0|-|-|-|-|1700|-|0|0|0|", NULL});
	assert_string_equal(n.list[0].body.data,
		"{\"schema\":1,\"type\":\"task.cancelled\",\"queue\":\"mail\",\"events\":[{\"id\":\"org-1-0-"
		"0\",\"task\":"
		"\"" TASK
		"\",\"at\":1700,\"submitted\":1767225601000,\"priority\":5,\"retries\":0,\"crashes\":0}]}");
	notices_release(&n);
}

static void which_ends_are_told(void **state)
{
	const char *const records[] = {SUCCESS, FAILED, TIMEOUT,
		"K|retry|" TASK "|mail|5|1|0|7|w1|-|1|2|3|0|0|0|",
		"K|expired|" TASK "|mail|5|1|1|7|w1|-|1|2|-|0|0|0|",
		"K|retried|" TASK "|mail|5|0|0|7|w1|-|1|2|-|0|0|0|",
		"K|failed|" TASK "|mail|5|0|0|7|w1|-|1|1700|-|0|0|9|", NULL};
	struct notices n = {0};

	(void)state;
	assert_int_equal(make_tasks(&n, 0, records), 0);
	assert_int_equal(make_tasks(&n, 1, records), 1);
	expect_keys(&n.list[0], "task.success.mail");
	assert_int_equal(make_tasks(&n, 15, records), 3);
	notices_release(&n);
}

/* One message for each queue and end, in order, until it is full. */
static void grouping_of_tasks(void **state)
{
	struct notices n = {0};

	(void)state;
	assert_int_equal(
		make_tasks(&n, 15,
			(const char *const[]){FAILED, TIMEOUT, FAILED,
				"K|failed|" TASK "|post|5|0|0|7|w1|-|1|1700|-|0|0|0|", FAILED, NULL}),
		3);
	assert_int_equal(n.list[0].events, 3);
	assert_int_equal(n.list[1].events, 1);
	expect_keys(&n.list[2], "task.failed.post");
	notices_release(&n);
}

static void full_messages_of_tasks(void **state)
{
	struct journal_record records[NOTICE_EVENTS_MAX * 2 + 1];
	struct journal_window window = {.records = records, .count = NOTICE_EVENTS_MAX * 2 + 1};
	struct notices n = {.task_ends = 15};
	struct buf big = BUF_INIT;

	(void)state;
	for (int i = 0; i < window.count; i++)
		records[i] = (struct journal_record){BYTES_LIT(FAILED), BYTES_LIT("p1-1-0-0")};
	assert_true(notices_make(&n, &window, NULL));
	assert_int_equal(n.count, 3);
	assert_int_equal(n.list[1].events, NOTICE_EVENTS_MAX);
	assert_int_equal(n.list[2].events, 1);
	notices_release(&n);

	buf_addf(&big, "K|failed|" TASK "|mail|5|0|0|7|w1|-|1|1700|-|0|%d|0|", NOTICE_BODY_MAX);
	for (int i = 0; i < NOTICE_BODY_MAX; i++)
		buf_add_char(&big, 'e');
	window.count = 2;
	records[0].text = records[1].text = buf_bytes(&big);
	assert_true(notices_make(&n, &window, NULL));
	assert_int_equal(n.count, 2);
	notices_release(&n);
	buf_release(&big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_move_is_told_at_both_places),
		cmocka_unit_test(each_key_once),
		cmocka_unit_test(other_changes),
		cmocka_unit_test(grouping),
		cmocka_unit_test(records_that_are_none),
		cmocka_unit_test(a_department_that_is_gone),
		cmocka_unit_test(a_department_that_nobody_knows),
		cmocka_unit_test(a_person_who_was_moved),
		cmocka_unit_test(deep_trees),
		cmocka_unit_test(what_is_told_of_a_task),
		cmocka_unit_test(which_ends_are_told),
		cmocka_unit_test(grouping_of_tasks),
		cmocka_unit_test(full_messages_of_tasks),
	};
	keys_init("test:", 48);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
