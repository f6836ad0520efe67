/* SPDX-License-Identifier: MIT */
/* Every command there is. Groups stand together, subcommands right behind their container. */
#include "daemon/commands.h"

#include "base/mem.h"
#include "daemon/server_commands.h"
#include "handlers/attendance.h"
#include "handlers/day.h"
#include "handlers/employee.h"
#include "handlers/failure.h"
#include "handlers/notice.h"
#include "handlers/team.h"

#define END                                                                                                  \
	{                                                                                                    \
		.name = NULL                                                                                 \
	}
/* clang-format off */
#define ARG(n)               {.name = n, .type = ARG_STRING}
#define OPTIONAL(n)          {.name = n, .type = ARG_STRING, .flags = ARG_OPTIONAL}
#define MANY(n)              {.name = n, .type = ARG_STRING, .flags = ARG_OPTIONAL | ARG_MULTIPLE}
#define WORD(n, word)        {.name = n, .type = ARG_TOKEN, .token = word}
#define FLAG(n, word)        {.name = n, .type = ARG_TOKEN, .token = word, .flags = ARG_OPTIONAL}
#define OPTION(n, word)      {.name = n, .type = ARG_STRING, .token = word, .flags = ARG_OPTIONAL}
#define OPTION_INT(n, word)  {.name = n, .type = ARG_INTEGER, .token = word, .flags = ARG_OPTIONAL}
#define OPTION_TIME(n, word) {.name = n, .type = ARG_TIME, .token = word, .flags = ARG_OPTIONAL}

static const struct command_arg employee[] = {ARG("employee"), END};
static const struct command_arg employee_set[] = {
	ARG("employee"), OPTION("department", "DEPT"), OPTION("name", "NAME"), END};
static const struct command_arg employee_move[] = {ARG("employee"), ARG("department"), END};

static const struct command_arg direction[] = {WORD("in", "IN"), WORD("out", "OUT"), END};
static const struct command_arg checkin[] = {
	ARG("employee"),
	{.name = "direction", .type = ARG_ONEOF, .flags = ARG_OPTIONAL, .args = direction},
	OPTION_TIME("time", "AT"), OPTION("event-id", "ID"), OPTION("source", "SOURCE"), END};
static const struct command_arg status[] = {ARG("employee"), OPTION("date", "DAY"), END};
static const struct command_arg roll[] = {
	ARG("department"), OPTION("date", "DAY"), OPTION("state", "STATE"), FLAG("subtree", "SUBTREE"),
	OPTION("cursor", "CURSOR"), OPTION_INT("count", "COUNT"), END};
static const struct command_arg roll_count[] = {
	ARG("department"), OPTION("date", "DAY"), FLAG("subtree", "SUBTREE"), END};

static const struct command_arg team[] = {ARG("team"), END};
static const struct command_arg no_parent[] = {ARG("parent"), WORD("none", "-"), END};
static const struct command_arg team_add[] = {
	ARG("team"), {.name = "above", .type = ARG_ONEOF, .args = no_parent},
	OPTION("name", "NAME"), OPTION("employee", "MANAGER"), END};

static const struct command_arg date[] = {ARG("date"), END};
static const struct command_arg day_close[] = {ARG("date"), OPTION("department", "DEPT"), END};

static const struct command_arg failure_list[] = {
	OPTION("date", "DAY"), OPTION("department", "DEPT"), OPTION("cursor", "CURSOR"), OPTION_INT("count", "COUNT"),
	END};
static const struct command_arg one_or_all[] = {ARG("failure-id"), WORD("all", "ALL"), END};
static const struct command_arg failure_retry[] = {{.name = "which", .type = ARG_ONEOF, .args = one_or_all}, END};
static const struct command_arg failure_discard[] = {ARG("failure-id"), END};

static const struct command_arg count[] = {OPTION_INT("count", "COUNT"), END};
static const struct command_arg which_notices[] = {
	{.name = "count", .type = ARG_INTEGER, .token = "COUNT"},
	{.name = "message-id", .type = ARG_STRING, .token = "ID"}, END};
static const struct command_arg notice_replay[] = {
	{.name = "which", .type = ARG_ONEOF, .flags = ARG_OPTIONAL, .args = which_notices}, END};

static const struct command_arg auth[] = {OPTIONAL("user"), ARG("token"), END};
static const struct command_arg hello_auth[] = {ARG("user"), ARG("token"), END};
static const struct command_arg hello_options[] = {
	{.name = "protocol", .type = ARG_INTEGER},
	{.name = "auth", .type = ARG_BLOCK, .token = "AUTH", .flags = ARG_OPTIONAL, .args = hello_auth},
	OPTION("client-name", "SETNAME"), END};
static const struct command_arg hello[] = {
	{.name = "arguments", .type = ARG_BLOCK, .flags = ARG_OPTIONAL, .args = hello_options}, END};
static const struct command_arg message[] = {ARG("message"), END};
static const struct command_arg optional_message[] = {OPTIONAL("message"), END};
static const struct command_arg database[] = {{.name = "index", .type = ARG_INTEGER}, END};

static const struct command_arg on[] = {WORD("on", "ON"), WORD("off", "OFF"), END};
static const struct command_arg on_off[] = {{.name = "enabled", .type = ARG_ONEOF, .args = on}, END};
static const struct command_arg client_name[] = {ARG("name"), END};
static const struct command_arg lib[] = {WORD("lib-name", "LIB-NAME"), WORD("lib-ver", "LIB-VER"), END};
static const struct command_arg client_setinfo[] = {{.name = "attr", .type = ARG_ONEOF, .args = lib}, ARG("value"), END};
static const struct command_arg skip[] = {WORD("yes", "YES"), WORD("no", "NO"), END};
static const struct command_arg kill_filter[] = {
	OPTION_INT("client-id", "ID"), OPTION("ip:port", "ADDR"), OPTION("ip:port", "LADDR"), OPTION("user", "USER"),
	{.name = "skipme", .type = ARG_ONEOF, .token = "SKIPME", .flags = ARG_OPTIONAL, .args = skip}, END};
static const struct command_arg kill_forms[] = {
	ARG("ip:port"), {.name = "filter", .type = ARG_BLOCK, .args = kill_filter}, END};
static const struct command_arg client_kill[] = {{.name = "who", .type = ARG_ONEOF, .args = kill_forms}, END};

static const struct command_arg command_names[] = {MANY("command-name"), END};
static const struct command_arg sections[] = {MANY("section"), END};
static const struct command_arg patterns[] = {{.name = "pattern", .type = ARG_STRING, .flags = ARG_MULTIPLE}, END};
static const struct command_arg help_words[] = {OPTIONAL("command"), OPTIONAL("subcommand"), END};
static const struct command_arg instant[] = {{.name = "time", .type = ARG_TIME}, END};

#define STATES "not_yet, present, late, early, late_early, missing_in, missing_out or absent"

static const struct command table[] = {
	/* ---- check-in ---- */
	{"CHECKIN", "attendance", "Records that an employee came, went, or was seen.",
	 "map id, day, state, in, out, punches, duplicate, dept; state is " STATES,
	 2, 9, PRIV_PUNCH, LANE_STREAM, CMD_WRITE | CMD_SELF | CMD_NEEDS_REDIS,
	 checkin, employee_prepare, checkin_exec},
	{"STATUS", "attendance", "Says how an employee stands on a work date, today by default.",
	 "map id, name, dept, path, day, state, in, out, punches, late, early; late and early in milliseconds",
	 2, 4, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_SELF | CMD_NEEDS_REDIS,
	 status, employee_prepare, status_exec},
	{"ROLL", "attendance", "Lists the employees of a department and how they stand.",
	 "array of the next cursor (\"\" at the end) and an array of maps id, name, dept, state, in, out, punches, late, early",
	 2, 11, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, roll, NULL, roll_exec},
	{"ROLL.COUNT", "attendance", "Counts the employees of a department by state.",
	 "map dept, day, departments, total, not_yet, present, late, early, late_early, missing_in, missing_out, absent",
	 2, 5, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, roll_count, NULL, roll_count_exec},

	/* ---- employees ---- */
	{"EMPLOYEE.SET", "employee", "Makes an employee, or changes the name or the department.", "OK",
	 2, 6, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_SELF | CMD_NEEDS_REDIS,
	 employee_set, employee_prepare, employee_set_exec},
	{"EMPLOYEE.GET", "employee", "Says who an employee is.", "map id, name, dept",
	 2, 2, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_SELF | CMD_NEEDS_REDIS,
	 employee, employee_prepare, employee_get_exec},
	{"EMPLOYEE.REMOVE", "employee", "Removes an employee from today on; the history stays.", "OK",
	 2, 2, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_SELF | CMD_NEEDS_REDIS,
	 employee, employee_prepare, employee_remove_exec},
	{"EMPLOYEE.MOVE", "employee", "Moves an employee to another department.", "OK",
	 3, 3, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_SELF | CMD_NEEDS_REDIS,
	 employee_move, employee_prepare, employee_move_exec},

	/* ---- teams ---- */
	{"TEAM.ADD", "team", "Makes a team or department below another, or at the top.", "OK",
	 3, 7, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, team_add, NULL, team_add_exec},
	{"TEAM.GET", "team", "Says what a team is and where it stands.",
	 "map id, name, parent, path, manager, state, descendants, members, version",
	 2, 2, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, team, NULL, team_get_exec},

	/* ---- the day ---- */
	{"DAY.INIT", "day", "Makes the day maps of a work date, if they are not there.",
	 "map day, state, departments, expected, written, failed, absent; state is none, open, closing or closed",
	 2, 2, PRIV_ADMIN, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, date, NULL, day_init_exec},
	{"DAY.CLOSE", "day", "Closes a work date, of one department or of all: writes it to MySQL and marks the absent.",
	 "map day, state, departments, expected, written, failed, absent",
	 2, 4, PRIV_ADMIN, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, day_close, NULL, day_close_exec},
	{"DAY.STATE", "day", "Says how far a work date is.",
	 "map day, state, departments, expected, written, failed, absent",
	 2, 2, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, date, NULL, day_state_exec},

	/* ---- failures ---- */
	{"FAILURE.LIST", "failure", "Lists rows that could not be written, each with its reason.",
	 "array of the next cursor (\"\" at the end) and an array of maps id, kind, day, dept, employee, reason, detail, attempts, created",
	 1, 9, PRIV_ADMIN, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, failure_list, NULL, failure_list_exec},
	{"FAILURE.RETRY", "failure", "Writes failed rows again.", "integer: how many are written now",
	 2, 2, PRIV_ADMIN, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, failure_retry, NULL, failure_retry_exec},
	{"FAILURE.DISCARD", "failure", "Gives a failed row up.", "integer: how many are given up",
	 2, 2, PRIV_ADMIN, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, failure_discard, NULL, failure_discard_exec},

	/* ---- notices ---- */
	{"NOTICE.PARKED", "notice", "Shows notices that no consumer would take.",
	 "array of maps id, type, queue, attempts, reason, time, body",
	 1, 3, PRIV_ADMIN, LANE_BARRIER, CMD_READONLY, count, NULL, notice_parked_exec},
	{"NOTICE.REPLAY", "notice", "Sends parked notices again.", "integer: how many are sent",
	 1, 3, PRIV_ADMIN, LANE_BARRIER, CMD_WRITE, notice_replay, NULL, notice_replay_exec},

	/* ---- connection ---- */
	{"AUTH", "connection", "Says who the client is, by a token and perhaps a name.", "OK",
	 2, 3, PRIV_NONE, LANE_LOCAL, 0, auth, NULL, auth_exec},
	{"ECHO", "connection", "Answers its argument.", "the message",
	 2, 2, PRIV_NONE, LANE_LOCAL, CMD_READONLY, message, NULL, echo_exec},
	{"HELLO", "connection", "Chooses RESP2 or RESP3, and may say who the client is.",
	 "map server, version, proto, id, mode, role, modules",
	 1, 7, PRIV_NONE, LANE_LOCAL, 0, hello, NULL, hello_exec},
	{"PING", "connection", "Answers PONG, or its argument.", "PONG, or the message",
	 1, 2, PRIV_NONE, LANE_LOCAL, CMD_READONLY, optional_message, NULL, ping_exec},
	{"QUIT", "connection", "Ends the connection when all before it is answered.", "OK",
	 1, -1, PRIV_NONE, LANE_LOCAL, 0, NULL, NULL, quit_exec},
	{"READONLY", "connection", "For clients of a Redis Cluster; changes nothing.", "OK",
	 1, 1, PRIV_NONE, LANE_LOCAL, 0, NULL, NULL, readonly_exec},
	{"RESET", "connection", "Makes the connection as it was when it was new.", "RESET",
	 1, 1, PRIV_NONE, LANE_LOCAL, 0, NULL, NULL, reset_exec},
	{"SELECT", "connection", "For clients of Redis; there is database 0 only.", "OK",
	 2, 2, PRIV_NONE, LANE_LOCAL, 0, database, NULL, select_exec},

	{"CLIENT", "connection", "Container of the commands about connections.", NULL,
	 2, -1, PRIV_NONE, LANE_LOCAL, 0, NULL, NULL, NULL},
	{"CLIENT|GETNAME", "connection", "Says the name of this connection.", "the name, or null",
	 2, 2, PRIV_NONE, LANE_LOCAL, CMD_READONLY, NULL, NULL, client_getname_exec},
	{"CLIENT|HELP", "connection", "Lists the subcommands.", "array of lines",
	 2, 2, PRIV_NONE, LANE_LOCAL, CMD_READONLY, NULL, NULL, client_help_exec},
	{"CLIENT|ID", "connection", "Says the number of this connection.", "integer",
	 2, 2, PRIV_NONE, LANE_LOCAL, CMD_READONLY, NULL, NULL, client_id_exec},
	{"CLIENT|INFO", "connection", "Describes this connection.", "one line of field=value",
	 2, 2, PRIV_NONE, LANE_LOCAL, CMD_READONLY, NULL, NULL, client_info_exec},
	{"CLIENT|KILL", "connection", "Closes connections.", "OK for an address, otherwise integer: how many",
	 3, 12, PRIV_ADMIN, LANE_LOCAL, 0, client_kill, NULL, client_kill_exec},
	{"CLIENT|LIST", "connection", "Describes all connections.", "one line of field=value each",
	 2, 2, PRIV_ADMIN, LANE_LOCAL, CMD_READONLY, NULL, NULL, client_list_exec},
	{"CLIENT|NO-EVICT", "connection", "For clients of Redis; changes nothing.", "OK",
	 3, 3, PRIV_NONE, LANE_LOCAL, 0, on_off, NULL, client_no_evict_exec},
	{"CLIENT|NO-TOUCH", "connection", "For clients of Redis; changes nothing.", "OK",
	 3, 3, PRIV_NONE, LANE_LOCAL, 0, on_off, NULL, client_no_evict_exec},
	{"CLIENT|SETINFO", "connection", "Says which library the client uses.", "OK",
	 4, 4, PRIV_NONE, LANE_LOCAL, 0, client_setinfo, NULL, client_setinfo_exec},
	{"CLIENT|SETNAME", "connection", "Names this connection.", "OK",
	 3, 3, PRIV_NONE, LANE_LOCAL, 0, client_name, NULL, client_setname_exec},

	/* ---- server ---- */
	{"CLOCK.SET", "server", "Moves the held clock.", "OK",
	 2, 2, PRIV_ADMIN, LANE_BARRIER, CMD_HELD_CLOCK, instant, NULL, clock_set_exec},
	{"COMMAND", "server", "Describes all commands, as Redis does.", "array of arrays",
	 1, -1, PRIV_NONE, LANE_LOCAL, CMD_READONLY, NULL, NULL, command_exec},
	{"COMMAND|COUNT", "server", "Counts the commands.", "integer",
	 2, 2, PRIV_NONE, LANE_LOCAL, CMD_READONLY, NULL, NULL, command_count_exec},
	{"COMMAND|DOCS", "server", "Documents commands, as Redis does.", "map of maps",
	 2, -1, PRIV_NONE, LANE_LOCAL, CMD_READONLY, command_names, NULL, command_docs_exec},
	{"COMMAND|HELP", "server", "Lists the subcommands.", "array of lines",
	 2, 2, PRIV_NONE, LANE_LOCAL, CMD_READONLY, NULL, NULL, command_help_exec},
	{"COMMAND|INFO", "server", "Describes some commands, as Redis does.", "array of arrays",
	 2, -1, PRIV_NONE, LANE_LOCAL, CMD_READONLY, command_names, NULL, command_info_exec},
	{"COMMAND|LIST", "server", "Lists the names of all commands.", "array",
	 2, 2, PRIV_NONE, LANE_LOCAL, CMD_READONLY, NULL, NULL, command_list_exec},
	{"CONFIG", "server", "Container of the commands about the configuration.", NULL,
	 2, -1, PRIV_NONE, LANE_LOCAL, 0, NULL, NULL, NULL},
	{"CONFIG|GET", "server", "Says what is configured, by patterns such as server.*.", "map",
	 3, -1, PRIV_ADMIN, LANE_LOCAL, CMD_READONLY, patterns, NULL, config_get_exec},
	{"CONFIG|HELP", "server", "Lists the subcommands.", "array of lines",
	 2, 2, PRIV_NONE, LANE_LOCAL, CMD_READONLY, NULL, NULL, config_help_exec},
	{"HELP", "server", "Lists the commands, or says more about one.", "array of lines",
	 1, 3, PRIV_NONE, LANE_LOCAL, CMD_READONLY, help_words, NULL, help_exec},
	{"INFO", "server", "Says how the daemon and its links are.", "lines of field:value under heads",
	 1, -1, PRIV_READ, LANE_LOCAL, CMD_READONLY, sections, NULL, info_exec},
	{"RELOAD", "server", "Reads the configuration and the users again.", "OK",
	 1, 1, PRIV_ADMIN, LANE_LOCAL, 0, NULL, NULL, reload_exec},
};
/* clang-format on */

const struct command *commands_table(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(table);
	return table;
}
