/* SPDX-License-Identifier: MIT */
/* The command table says one thing everywhere, and the checks in front of the handlers hold. */
#include "daemon/commands.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/users.h"

static int setup(void **state)
{
	(void)state;
	commands_init();
	return 0;
}

/* ---- the table ---- */

struct span {
	int min, max; /* words; max -1 = no end */
};

static struct span span_of_list(const struct command_arg *args);

static struct span span_of(const struct command_arg *a)
{
	struct span s = {a->token != NULL, a->token != NULL};

	if (a->type == ARG_ONEOF) {
		struct span choice = {1000, 0};
		for (const struct command_arg *c = a->args; c->name != NULL; c++) {
			struct span one = span_of(c);
			choice.min = one.min < choice.min ? one.min : choice.min;
			choice.max = one.max > choice.max ? one.max : choice.max;
		}
		s.min += choice.min;
		s.max += choice.max;
	} else if (a->type == ARG_BLOCK) {
		struct span inner = span_of_list(a->args);
		s.min += inner.min;
		s.max += inner.max;
	} else if (a->type != ARG_TOKEN) {
		s.min++;
		s.max++;
	}
	if ((a->flags & ARG_MULTIPLE) != 0)
		s.max = -1;
	if ((a->flags & ARG_OPTIONAL) != 0)
		s.min = 0;
	return s;
}

static struct span span_of_list(const struct command_arg *args)
{
	struct span s = {0, 0};

	for (const struct command_arg *a = args; a != NULL && a->name != NULL; a++) {
		struct span one = span_of(a);
		s.min += one.min;
		s.max = s.max < 0 || one.max < 0 ? -1 : s.max + one.max;
	}
	return s;
}

static void test_args_say_what_the_arity_says(void **state)
{
	size_t count;
	const struct command *table = commands_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct command *c = &table[i];
		int words = strchr(c->name, '|') != NULL ? 2 : 1;
		struct span s = span_of_list(c->args);
		/* Containers, and commands that take whatever comes, have no arguments to document. */
		if (c->args == NULL && c->max_argc < 0)
			continue;
		/* CLIENT KILL: the filters are each optional, but one of them has to be there. */
		int min = s.min + words > c->min_argc ? s.min + words : c->min_argc;
		if (min != s.min + words)
			assert_string_equal(c->name, "CLIENT|KILL");
		assert_int_equal(c->min_argc, min);
		assert_int_equal(c->max_argc, s.max < 0 ? -1 : s.max + words);
	}
}

static void test_every_entry_is_complete(void **state)
{
	size_t count;
	const struct command *table = commands_table(&count);

	(void)state;
	assert_true(count > 40);
	for (size_t i = 0; i < count; i++) {
		const struct command *c = &table[i];
		assert_true(strlen(c->name) < COMMAND_NAME);
		for (const char *p = c->name; *p != '\0'; p++)
			assert_true(isupper((unsigned char)*p) || strchr(".|-", *p) != NULL);
		assert_true(strlen(c->group) > 0);
		assert_true(strlen(c->summary) > 10 && c->summary[strlen(c->summary) - 1] == '.');
		assert_true((c->exec == NULL) == (c->reply == NULL));
		assert_true(c->min_argc >= 1 && (c->max_argc < 0 || c->max_argc >= c->min_argc));
		assert_false((c->flags & CMD_WRITE) != 0 && (c->flags & CMD_READONLY) != 0);
		/* Whose argv[1] is an employee has one; only those look him up before their turn. */
		assert_true((c->flags & CMD_SELF) == 0 || c->min_argc >= 2);
		assert_true(c->prepare == NULL || (c->flags & CMD_SELF) != 0);
		/* What touches a store needs a right. */
		assert_true(c->lane == LANE_LOCAL || c->privilege != PRIV_NONE);
	}
}

static void test_subcommands_stand_behind_their_container(void **state)
{
	size_t count;
	const struct command *table = commands_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		if (strchr(table[i].name, '|') == NULL)
			continue;
		size_t at = i;
		while (at > 0 && strchr(table[at].name, '|') != NULL)
			at--;
		assert_true(commands_is_sub(&table[i], &table[at]));
	}
}

static void test_find(void **state)
{
	size_t count;
	const struct command *table = commands_table(&count);
	char name[COMMAND_NAME];

	(void)state;
	for (size_t i = 0; i < count; i++) {
		commands_lower(&table[i], name);
		if (commands_exists(&table[i]))
			assert_ptr_equal(commands_find(bytes_of(name)), &table[i]);
		assert_int_equal(commands_index(&table[i]), i);
	}
	assert_null(commands_find(BYTES_LIT("CHECKI")));
	assert_null(commands_find(BYTES_LIT("CHECKINN")));
	assert_null(commands_find(BYTES_LIT("")));
}

/* ---- checks ---- */

struct attempt {
	struct call call;
	struct bytes argv[16];
	bool ok;
};

/* Splits at blanks. */
static void prepare_call(struct attempt *a, const char *line)
{
	*a = (struct attempt){0};
	reply_init(&a->call.reply, 2);
	a->call.argv = a->argv;
	while (*line != '\0') {
		size_t n = strcspn(line, " ");
		a->argv[a->call.argc++] = (struct bytes){line, n};
		line += n + (line[n] == ' ');
	}
}

static void expect_reply(struct attempt *a, const char *expected)
{
	assert_int_equal(a->ok, expected == NULL);
	if (expected != NULL)
		assert_string_equal(a->call.reply.buf.data, expected);
	reply_release(&a->call.reply);
}

static void expect_resolve(const char *line, const char *expected)
{
	struct attempt a;

	prepare_call(&a, line);
	a.ok = commands_resolve(&a.call);
	assert_true((a.call.command != NULL) == a.ok);
	expect_reply(&a, expected);
}

/* The texts are what client libraries compare with. */
static void test_resolve(void **state)
{
	char name[300], expected[300];

	(void)state;
	expect_resolve("ping", NULL);
	expect_resolve("cHeCkIn e1", NULL);
	expect_resolve("NoPe x", "-ERR unknown command 'NoPe'\r\n");
	expect_resolve("CHECKIN", "-ERR wrong number of arguments for 'checkin' command\r\n");
	expect_resolve("TEAM.GET a b", "-ERR wrong number of arguments for 'team.get' command\r\n");
	expect_resolve("client", "-ERR wrong number of arguments for 'client' command\r\n");
	expect_resolve("client id", NULL);
	expect_resolve("client setname", "-ERR wrong number of arguments for 'client|setname' command\r\n");
	expect_resolve("client maint_notifications on",
		"-ERR unknown subcommand 'maint_notifications'. Try CLIENT HELP.\r\n");
	expect_resolve("command", NULL);
	expect_resolve("command docs ping", NULL);
	expect_resolve("command getkeys x", "-ERR unknown subcommand 'getkeys'. Try COMMAND HELP.\r\n");
	expect_resolve("client|id", "-ERR unknown command 'client|id'\r\n");
	memset(name, 'x', 200);
	name[200] = '\0';
	snprintf(expected, sizeof(expected), "-ERR unknown command '%.128s'\r\n", name);
	expect_resolve(name, expected);
}

static void expect_allow(const char *line, const struct access *access, const char *expected)
{
	struct attempt a;

	prepare_call(&a, line);
	assert_true(commands_resolve(&a.call));
	a.ok = commands_allow(&a.call, access);
	/* What the user may not do is not prepared either, and what may start must have been. */
	if (a.ok)
		assert_true(commands_permitted(a.call.command, access->user));
	expect_reply(&a, expected);
}

static void test_rights(void **state)
{
	struct user reader = {.name = "gate", .rights = 1u << PRIV_PUNCH};
	struct user ann = {.name = "ann", .employee = "e.1", .rights = 1u << PRIV_PUNCH | 1u << PRIV_READ};
	struct access access = {.ready = true, .redis_up = true};

	(void)state;
	expect_allow("PING", &access, NULL);
	expect_allow("CHECKIN e.1", &access, "-NOAUTH Authentication required.\r\n");
	access.user = &reader;
	expect_allow("CHECKIN e.1", &access, NULL);
	expect_allow("ROLL d", &access, "-NOPERM this user has no permissions to run the 'roll' command\r\n");
	access.user = &ann;
	expect_allow("CHECKIN e.1", &access, NULL);
	expect_allow("STATUS e.1", &access, NULL);
	expect_allow("STATUS e.2", &access, "-NOPERM this user may ask for employee e.1 only\r\n");
	expect_allow("STATUS E.1", &access, "-NOPERM this user may ask for employee e.1 only\r\n");
	expect_allow("ROLL d", &access, "-NOPERM this user has no permissions to run the 'roll' command\r\n");
	access.user = &user_anyone;
	expect_allow("DAY.CLOSE 2026-01-01", &access, NULL);
}

static void test_state_of_the_daemon(void **state)
{
	struct access access = {.user = &user_anyone, .trouble = "waiting for Redis"};

	(void)state;
	expect_allow("PING", &access, NULL);
	expect_allow("CHECKIN e1", &access, "-NOTREADY starting: waiting for Redis\r\n");
	access.ready = true;
	expect_allow("CHECKIN e1", &access,
		"-UNAVAILABLE no connection to Redis; nothing was done, send it again\r\n");
	access.redis_up = true;
	expect_allow("CHECKIN e1", &access, NULL);
	access.draining = true;
	expect_allow("CHECKIN e1", &access, "-NOTREADY shutting down\r\n");
	expect_allow("STATUS e1", &access, NULL);
}

static void test_usage(void **state)
{
	struct buf out = BUF_INIT;

	(void)state;
	commands_usage(&out, commands_find(BYTES_LIT("checkin")));
	assert_string_equal(out.data, "CHECKIN employee [IN|OUT] [AT time] [ID event-id] [SOURCE source]");
	buf_clear(&out);
	commands_usage(&out, commands_find(BYTES_LIT("team.add")));
	assert_string_equal(out.data, "TEAM.ADD id|* parent|- [NAME name] [MANAGER employee] [DRYRUN]");
	buf_clear(&out);
	commands_usage(&out, commands_find(BYTES_LIT("config|get")));
	assert_string_equal(out.data, "CONFIG GET pattern [pattern …]");
	buf_release(&out);
}

/* Last, for a held clock can't be let go. */
static void test_held_clock(void **state)
{
	(void)state;
	expect_resolve("CLOCK.SET 0", "-ERR unknown command 'CLOCK.SET'\r\n");
	clock_hold();
	expect_resolve("CLOCK.SET 0", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_entry_is_complete),
		cmocka_unit_test(test_args_say_what_the_arity_says),
		cmocka_unit_test(test_subcommands_stand_behind_their_container),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_state_of_the_daemon),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_held_clock),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
