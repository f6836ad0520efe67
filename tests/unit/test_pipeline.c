/* SPDX-License-Identifier: MIT */
/* The calls of one connection: start order by lanes, replies in order, preparation ahead, clients that go. */
#include "daemon/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>

#include "base/turn.h"

static struct event_base *base;
static struct pipeline pipeline;
static struct evbuffer *out;
static char started[128];      /* names of the calls that were started, in order */
static struct call *calls[64]; /* those that wait for their handler, by order of start */
static struct call *preparing[64];
static int waiting, prepares, woken, done_count, hangups, protocol_now;
static bool allowed, prepare_allowed, peer_gone;

static void note(const struct call *call)
{
	size_t n = strlen(started);
	snprintf(started + n, sizeof(started) - n, "%.*s ", (int)call->argv[0].n, call->argv[0].p);
}

static enum verdict exec_now(struct call *call)
{
	note(call);
	reply_bulk(&call->reply, call->argv[0]);
	return CALL_DONE;
}

static enum verdict exec_later(struct call *call)
{
	note(call);
	calls[waiting++] = call;
	return CALL_WAIT;
}

/* Waits alone, and gives up when its peer does. */
static void on_hangup(struct call *call)
{
	hangups++;
	reply_str(&call->reply, "given up");
	call_finish(call);
}

static enum verdict exec_alone(struct call *call)
{
	call->alone = true;
	call->on_hangup = on_hangup;
	return exec_later(call);
}

static enum verdict exec_quit(struct call *call)
{
	pipeline_cut(&pipeline);
	return exec_now(call);
}

static bool prepare_later(struct call *call)
{
	preparing[prepares++] = call;
	return false;
}

static const struct command commands[] = {
	{.name = "L", .lane = LANE_LOCAL, .exec = exec_now},
	{.name = "Q", .lane = LANE_LOCAL, .exec = exec_quit},
	{.name = "S", .lane = LANE_STREAM, .exec = exec_later},
	{.name = "P", .lane = LANE_STREAM, .exec = exec_later, .prepare = prepare_later},
	{.name = "B", .lane = LANE_BARRIER, .exec = exec_later},
	{.name = "C", .lane = LANE_BARRIER, .exec = exec_later},
	{.name = "A", .lane = LANE_BARRIER, .exec = exec_alone},
};

/* The first letter chooses the command. */
static bool resolve(struct call *call)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (call->argv[0].p[0] == commands[i].name[0]) {
			call->command = &commands[i];
			return true;
		}
	}
	reply_error(&call->reply, "ERR unknown");
	return false;
}

static bool allow(void *owner, struct call *call)
{
	(void)owner;
	if (!allowed)
		reply_error(&call->reply, "NOPERM no");
	return allowed;
}

static bool may_prepare(void *owner, const struct command *command)
{
	(void)owner;
	(void)command;
	return prepare_allowed;
}

static int protocol(void *owner)
{
	(void)owner;
	return protocol_now;
}

static void done(struct call *call)
{
	(void)call;
	done_count++;
}

static bool hung_up(void *owner)
{
	(void)owner;
	return peer_gone;
}

static void wake(void *owner)
{
	(void)owner;
	woken++;
}

static const struct pipeline_ops ops = {resolve, allow, may_prepare, protocol, done, hung_up, wake};

static int setup(void **state)
{
	(void)state;
	base = event_base_new();
	turn_init(base);
	out = evbuffer_new();
	memset(started, 0, sizeof(started));
	waiting = prepares = woken = done_count = hangups = 0;
	protocol_now = 2;
	allowed = prepare_allowed = true;
	peer_gone = false;
	pipeline_init(&pipeline, &ops, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pipeline_abandon(&pipeline);
	evbuffer_free(out);
	turn_release();
	event_base_free(base);
	return 0;
}

static void push(const char *name)
{
	struct resp_arg arg = {0, strlen(name)};
	pipeline_push(&pipeline, NULL, NULL, name, &arg, 1, 0);
}

static void run(void)
{
	pipeline_run(&pipeline, out, 1 << 20);
}

static void finish(int i)
{
	reply_bulk(&calls[i]->reply, calls[i]->argv[0]);
	call_finish(calls[i]);
	run();
}

static void expect_replies(const char *expected)
{
	size_t n = evbuffer_get_length(out);
	char *text = calloc(1, n + 1);

	evbuffer_remove(out, text, n);
	assert_string_equal(text, expected);
	free(text);
}

static void test_replies_in_order(void **state)
{
	(void)state;
	push("S1");
	push("S2");
	push("L3");
	run();
	assert_string_equal(started, "S1 S2 L3 ");
	finish(1);
	expect_replies("");
	finish(0);
	expect_replies("$2\r\nS1\r\n$2\r\nS2\r\n$2\r\nL3\r\n");
	assert_int_equal(pipeline.count, 0);
	assert_int_equal(pipeline.held, 0);
	assert_int_equal(woken, 2);
	assert_int_equal(done_count, 3);
}

static void test_barrier_waits_and_holds_back(void **state)
{
	(void)state;
	push("S1");
	push("B2");
	push("B3");
	push("C4");
	push("L5");
	run();
	assert_string_equal(started, "S1 ");
	finish(0);
	assert_string_equal(started, "S1 B2 B3 "); /* the same command in a row runs together */
	finish(2);
	assert_string_equal(started, "S1 B2 B3 ");
	finish(1);
	assert_string_equal(started, "S1 B2 B3 C4 ");
	finish(3);
	assert_string_equal(started, "S1 B2 B3 C4 L5 ");
}

static void test_prepare_ahead_start_in_order(void **state)
{
	(void)state;
	push("P1");
	push("P2");
	push("S3");
	assert_int_equal(prepares, 2);
	run();
	assert_string_equal(started, "");
	call_prepared(preparing[1]);
	run();
	assert_string_equal(started, "");
	call_prepared(preparing[0]);
	run();
	assert_string_equal(started, "P1 P2 S3 ");
	finish(0);
	finish(1);
	finish(2);
}

static void test_no_preparation_for_strangers(void **state)
{
	(void)state;
	allowed = prepare_allowed = false;
	push("P1");
	run();
	assert_int_equal(prepares, 0);
	expect_replies("-NOPERM no\r\n");
	push("P2");
	allowed = prepare_allowed = true; /* he has said who he is in between */
	run();
	assert_int_equal(prepares, 1);
	call_prepared(preparing[0]);
	run();
	assert_string_equal(started, "P2 ");
	finish(0);
}

static void test_errors_keep_their_place(void **state)
{
	(void)state;
	push("S1");
	push("X2");
	pipeline_push_error(&pipeline, "TOOBIG it is");
	run();
	expect_replies("");
	finish(0);
	expect_replies("$2\r\nS1\r\n-ERR unknown\r\n-TOOBIG it is\r\n");
	assert_int_equal(done_count, 3);
}

static void test_room_stops_starting(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		push("L");
	assert_false(pipeline_run(&pipeline, out, 15));
	assert_int_equal(pipeline.count, 7); /* three replies of 7 bytes passed 15 */
	expect_replies("$1\r\nL\r\n$1\r\nL\r\n$1\r\nL\r\n");
	assert_true(pipeline_run(&pipeline, out, 100));
	assert_int_equal(pipeline.count, 0);
}

/* QUIT: what stands behind it is not even started. */
static void test_cut(void **state)
{
	(void)state;
	push("S1");
	push("Q2");
	push("P3");
	push("X4");
	run();
	assert_string_equal(started, "S1 Q2 ");
	assert_int_equal(pipeline.count, 2);
	finish(0);
	expect_replies("$2\r\nS1\r\n$2\r\nQ2\r\n");
	assert_int_equal(pipeline.count, 0);
	call_prepared(preparing[0]);
	push("L5");
	run();
	expect_replies("$2\r\nL5\r\n");
}

static void test_held_replies_count_as_room(void **state)
{
	(void)state;
	push("S1");
	for (int i = 0; i < 10; i++)
		push("L");
	pipeline_run(&pipeline, out, 15);
	assert_int_equal(pipeline.held, 21);
	assert_int_equal(pipeline.count, 11);
	finish(0);
	assert_int_equal(pipeline.held, 0);
	assert_int_equal(pipeline.count, 0);
}

static void test_protocol_is_that_of_the_start(void **state)
{
	(void)state;
	push("S1");
	push("S2");
	protocol_now = 3;
	run();
	assert_int_equal(calls[0]->reply.protocol, 3);
	finish(0);
	finish(1);
}

/* What runs goes on without its client; what has not started is gone. */
static void test_abandon(void **state)
{
	(void)state;
	push("S1");
	push("P2");
	push("B3");
	run();
	push("L4");
	assert_int_equal(pipeline_running_total(), 1);
	pipeline_abandon(&pipeline);
	assert_null(calls[0]->client);
	assert_int_equal(pipeline_running_total(), 1);
	reply_str(&calls[0]->reply, "nobody reads this");
	call_finish(calls[0]);
	call_prepared(preparing[0]);
	assert_int_equal(pipeline_running_total(), 0);
	assert_int_equal(woken, 0);
	assert_string_equal(started, "S1 ");
	expect_replies("");
}

/* Not even another of the same command, whose reply would have to wait for it. */
static void test_alone(void **state)
{
	(void)state;
	push("B1");
	push("A2");
	push("A3");
	push("L4");
	run();
	assert_string_equal(started, "B1 ");
	finish(0);
	assert_string_equal(started, "B1 A2 ");
	finish(1);
	assert_string_equal(started, "B1 A2 A3 ");
	finish(2);
	assert_string_equal(started, "B1 A2 A3 L4 ");
}

static void test_hang_up_tells_who_runs(void **state)
{
	(void)state;
	push("A1");
	push("S2");
	run();
	assert_false(calls[0]->hung_up);
	pipeline_hang_up(&pipeline);
	assert_int_equal(hangups, 1);
	assert_int_equal(woken, 1);
	run();
	expect_replies("$8\r\ngiven up\r\n");
	/* What starts afterwards knows it from the first, wherever it came from. */
	assert_string_equal(started, "A1 S2 ");
	assert_true(calls[1]->hung_up);
	finish(1);
	push("A3");
	run();
	assert_true(calls[2]->hung_up);
	pipeline_hang_up(&pipeline);
	assert_int_equal(hangups, 1);
	finish(2);
	expect_replies("$2\r\nS2\r\n$2\r\nA3\r\n");
}

/* The connection knows before what it says has been read. */
static void test_hung_up_is_looked_for(void **state)
{
	(void)state;
	push("S1");
	run();
	assert_false(call_hung_up(calls[0]));
	peer_gone = true;
	assert_true(call_hung_up(calls[0]));
	assert_false(calls[0]->hung_up);
	peer_gone = false;
	pipeline_hang_up(&pipeline);
	assert_true(call_hung_up(calls[0]));
	finish(0);
}

/* Who goes has hung up, too, and is told once only. */
static void test_abandon_is_a_hangup(void **state)
{
	(void)state;
	push("A1");
	run();
	pipeline_abandon(&pipeline);
	assert_int_equal(hangups, 1);
	assert_int_equal(done_count, 1);
	assert_int_equal(pipeline_running_total(), 0);
	push("S1");
	run();
	assert_false(calls[1]->hung_up);
	pipeline_hang_up(&pipeline);
	calls[1]->on_hangup = on_hangup;
	pipeline_abandon(&pipeline);
	assert_int_equal(hangups, 1);
	assert_null(calls[1]->client);
	reply_str(&calls[1]->reply, "nobody reads this");
	call_finish(calls[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_replies_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_barrier_waits_and_holds_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prepare_ahead_start_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_preparation_for_strangers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors_keep_their_place, setup, teardown),
		cmocka_unit_test_setup_teardown(test_room_stops_starting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held_replies_count_as_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_protocol_is_that_of_the_start, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abandon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hang_up_tells_who_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hung_up_is_looked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abandon_is_a_hangup, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
