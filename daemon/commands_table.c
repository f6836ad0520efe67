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
#include "handlers/task.h"
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
#define ABOVE   {.name = "above", .type = ARG_ONEOF, .args = no_parent}
#define IF      OPTION_INT("version", "IF")
#define DRYRUN  FLAG("dry-run", "DRYRUN")
static const struct command_arg made_id[] = {ARG("id"), WORD("made", "*"), END};
static const struct command_arg team_add[] = {
	{.name = "team", .type = ARG_ONEOF, .args = made_id}, ABOVE, OPTION("name", "NAME"), OPTION("employee", "MANAGER"),
	DRYRUN, END};
static const struct command_arg team_rename[] = {ARG("team"), ARG("name"), IF, DRYRUN, END};
static const struct command_arg no_manager[] = {ARG("employee"), WORD("none", "-"), END};
static const struct command_arg team_manager[] = {
	ARG("team"), {.name = "manager", .type = ARG_ONEOF, .args = no_manager}, IF, DRYRUN, END};
static const struct command_arg team_move[] = {ARG("team"), ABOVE, IF, DRYRUN, END};
static const struct command_arg remove_modes[] = {
	WORD("cascade", "CASCADE"), WORD("lift", "LIFT"), WORD("retire", "RETIRE"), END};
static const struct command_arg team_remove[] = {
	ARG("team"), {.name = "mode", .type = ARG_ONEOF, .flags = ARG_OPTIONAL, .args = remove_modes}, IF, DRYRUN, END};
static const struct command_arg team_restore[] = {ARG("team"), IF, DRYRUN, END};
static const struct command_arg team_isbelow[] = {ARG("team"), ARG("ancestor"), END};
static const struct command_arg team_employee[] = {ARG("team"), ARG("employee"), END};
static const struct command_arg team_ismember[] = {ARG("team"), ARG("employee"), FLAG("subtree", "SUBTREE"), END};
static const struct command_arg team_members[] = {
	ARG("team"), FLAG("subtree", "SUBTREE"), OPTION("cursor", "CURSOR"), OPTION_INT("count", "COUNT"), END};
#define PAGED FLAG("retired-too", "ALL"), FLAG("detail", "DETAIL"), OPTION("cursor", "CURSOR"), OPTION_INT("count", "COUNT")
static const struct command_arg roots[] = {ARG("team"), WORD("roots", "-"), END};
static const struct command_arg team_children[] = {{.name = "top", .type = ARG_ONEOF, .args = roots}, PAGED, END};
static const struct command_arg team_descendants[] = {
	{.name = "top", .type = ARG_ONEOF, .args = roots}, OPTION_INT("levels", "DEPTH"), PAGED, END};
static const struct command_arg optional_job[] = {{.name = "job", .type = ARG_INTEGER, .flags = ARG_OPTIONAL}, END};
static const struct command_arg job[] = {{.name = "job", .type = ARG_INTEGER}, END};
static const struct command_arg team_check[] = {
	FLAG("repair", "REPAIR"), FLAG("truth", "TRUTH"), FLAG("nowait", "NOWAIT"), FLAG("status", "STATUS"), END};

static const struct command_arg queue[] = {ARG("queue"), END};
static const struct command_arg task[] = {ARG("task"), END};
static const struct command_arg claimed_task[] = {ARG("task"), ARG("token"), END};
static const struct command_arg key_window[] = {
	{.name = "key", .type = ARG_STRING, .token = "KEY"}, OPTION("duration", "WINDOW"), END};
#define LEASE OPTION("duration", "LEASE")
static const struct command_arg task_submit[] = {
	ARG("queue"), ARG("payload"), OPTION_INT("priority", "PRIORITY"), OPTION("duration", "DELAY"),
	{.name = "dedupe", .type = ARG_BLOCK, .flags = ARG_OPTIONAL, .args = key_window}, OPTION_INT("retries", "RETRIES"),
	LEASE, END};
#define COUNT OPTION_INT("count", "COUNT")
#define WAIT  OPTION_INT("milliseconds", "WAIT")
static const struct command_arg task_claim[] = {ARG("queue"), ARG("worker"), COUNT, WAIT, LEASE, END};
static const struct command_arg task_beat[] = {
	ARG("worker"), {.name = "claims", .type = ARG_BLOCK, .flags = ARG_MULTIPLE, .args = claimed_task}, LEASE, END};
static const struct command_arg next_claim[] = {WORD("next", "NEXT"), COUNT, WAIT, END};
static const struct command_arg task_done[] = {
	ARG("task"), ARG("token"), OPTION("result", "RESULT"),
	{.name = "claim", .type = ARG_BLOCK, .flags = ARG_OPTIONAL, .args = next_claim}, END};
static const struct command_arg task_fail[] = {
	ARG("task"), ARG("token"), OPTION("text", "ERROR"), OPTION("duration", "DELAY"), END};
static const struct command_arg priorities[] = {
	{.name = "low", .type = ARG_INTEGER}, {.name = "high", .type = ARG_INTEGER}, END};
static const struct command_arg times[] = {{.name = "from", .type = ARG_TIME}, {.name = "to", .type = ARG_TIME}, END};
static const struct command_arg task_list[] = {
	ARG("queue"), OPTION("status", "STATUS"),
	{.name = "priorities", .type = ARG_BLOCK, .token = "PRIORITY", .flags = ARG_OPTIONAL, .args = priorities},
	{.name = "times", .type = ARG_BLOCK, .token = "SUBMITTED", .flags = ARG_OPTIONAL, .args = times},
	OPTION("worker", "WORKER"), OPTION("cursor", "CURSOR"), COUNT, END};
static const struct command_arg queues_page[] = {OPTION("cursor", "CURSOR"), COUNT, END};
static const struct command_arg queue_or_all[] = {
	ARG("queue"), {.name = "all", .type = ARG_BLOCK, .args = queues_page}, END};
static const struct command_arg task_stats[] = {
	{.name = "which", .type = ARG_ONEOF, .flags = ARG_OPTIONAL, .args = queue_or_all}, END};
static const struct command_arg setting[] = {ARG("name"), ARG("value"), END};
static const struct command_arg task_check[] = {
	FLAG("repair", "REPAIR"), FLAG("nowait", "NOWAIT"), FLAG("status", "STATUS"), END};
static const struct command_arg task_config[] = {
	ARG("queue"),
	{.name = "settings", .type = ARG_BLOCK, .flags = ARG_OPTIONAL | ARG_MULTIPLE, .args = setting}, END};

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

#define LISTED_TEAMS                                                                                         \
	"array of the next cursor (\"\" at the end) and an array of ids; with DETAIL of maps id, name, parent, depth, "   \
	"manager, state, descendants, listed (of them without ALL), version"
#define OK_OR_DRY "OK; with DRYRUN map legal, nodes, employees, supervisors, job"
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
	{"TEAM.ADD", "team", "Makes a team or department below another, or at the top; `*` makes its id.",
	 "OK, or the id that was made; with DRYRUN map legal, nodes, employees, supervisors, job",
	 3, 8, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, team_add, NULL, team_add_exec},
	{"TEAM.RENAME", "team", "Gives a team another name.", OK_OR_DRY,
	 3, 6, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, team_rename, NULL, team_rename_exec},
	{"TEAM.MANAGER", "team", "Says who manages a team.", OK_OR_DRY,
	 3, 6, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, team_manager, NULL, team_manager_exec},
	{"TEAM.MOVE", "team", "Moves a team with all below it to another parent, or to the top.", OK_OR_DRY,
	 3, 6, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, team_move, NULL, team_move_exec},
	{"TEAM.REMOVE", "team",
	 "Removes a team: with all below it, so that its children take its place, or only out of sight.", OK_OR_DRY,
	 2, 6, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, team_remove, NULL, team_remove_exec},
	{"TEAM.RESTORE", "team", "Brings a retired team back.", OK_OR_DRY,
	 2, 5, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, team_restore, NULL, team_restore_exec},
	{"TEAM.JOBS", "team", "Shows the big changes that are under way, or one of the last hour.",
	 "array of maps job, op, team, parent, phase, done, total, started, error",
	 1, 2, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, optional_job, NULL, team_jobs_exec},
	{"TEAM.CANCEL", "team", "Cancels a big change that has not taken place yet.", "OK",
	 2, 2, PRIV_ADMIN, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, job, NULL, team_cancel_exec},
	{"TEAM.CHECK", "team",
	 "Checks that all that is derived from the tree agrees with it; repairs that, or with TRUTH where teams hang, too.",
	 "map state (none, running, done, failed), mode, rounds, keys, nodes, milliseconds, findings, repaired, codes, items",
	 1, 5, PRIV_ADMIN, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, team_check, NULL, team_check_exec},
	{"TEAM.GET", "team", "Says what a team is and where it stands.",
	 "map id, name, parent, path, manager, state, descendants, members, version",
	 2, 2, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, team, NULL, team_get_exec},
	{"TEAM.PATH", "team", "Says the ids from the root to a team.", "the ids, joined by ':'",
	 2, 2, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, team, NULL, team_path_exec},
	{"TEAM.ANCESTORS", "team", "Lists what is above a team, the root first.", "array of maps id, name, manager, state",
	 2, 2, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, team, NULL, team_ancestors_exec},
	{"TEAM.ISBELOW", "team", "Says whether a team is somewhere below another; it is not below itself.", "integer: 1 or 0",
	 3, 3, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, team_isbelow, NULL, team_isbelow_exec},
	{"TEAM.COUNT", "team", "Counts what is below a team, and the people in it and in its whole subtree, each once.",
	 "map descendants, listed, employees, employees_subtree; listed is what DESCENDANTS lists",
	 2, 2, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, team, NULL, team_count_exec},
	{"TEAM.CHILDREN", "team", "Lists the teams directly below a team, or the roots, ordered by id.", LISTED_TEAMS,
	 2, 8, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, team_children, NULL, team_children_exec},
	{"TEAM.DESCENDANTS", "team", "Lists all below a team, or everything, depth first, children ordered by id.",
	 LISTED_TEAMS,
	 2, 10, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, team_descendants, NULL, team_descendants_exec},
	{"TEAM.JOIN", "team", "Makes an employee a member of a team, besides the home department.", "OK",
	 3, 3, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, team_employee, NULL, team_join_exec},
	{"TEAM.LEAVE", "team", "Ends an employee's membership of a team that was joined.", "OK",
	 3, 3, PRIV_WRITE, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, team_employee, NULL, team_leave_exec},
	{"TEAM.MEMBERS", "team", "Lists the people of a team, or of a team and all below it: at home there or joined, each once.",
	 "array of the next cursor (\"\" at the end) and an array of employees; a few more or fewer than COUNT",
	 2, 7, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, team_members, NULL, team_members_exec},
	{"TEAM.ISMEMBER", "team", "Says whether an employee is in a team, or with SUBTREE in it or below it.",
	 "integer: 1 or 0",
	 3, 4, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, team_ismember, NULL, team_ismember_exec},
	{"TEAM.OF", "team", "Lists all teams of an employee, the home first, each with the line up to the root.",
	 "array of maps team, name, home, path, line; home is 1 or 0, line an array of maps id, name, manager from the team up",
	 2, 2, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_SELF | CMD_NEEDS_REDIS, employee, NULL, team_of_exec},
	{"TEAM.SUPERVISORS", "team", "Lists the managers above an employee in all of his teams, the nearest first.",
	 "array of maps employee, team, distance; distance 0 is a team of his",
	 2, 2, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_SELF | CMD_NEEDS_REDIS, employee, NULL, team_supervisors_exec},

	/* ---- tasks ---- */
	{"TASK.SUBMIT", "task", "Gives a task into a queue; or, when its key is held, says which one holds it.",
	 "map id, status, duplicate",
	 3, 15, PRIV_TASK, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, task_submit, NULL, task_submit_exec},
	{"TASK.CLAIM", "task", "Takes the next tasks of a queue, or waits for one; each comes with a token and a lease.",
	 "array of maps id, token, queue, priority, attempt, lease, deadline, submitted, payload; empty when there is nothing",
	 3, 9, PRIV_TASK, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, task_claim, NULL, task_claim_exec},
	{"TASK.BEAT", "task", "Says that tasks are being worked on, which gives each its whole lease again.",
	 "map extended, stale, cancel: arrays of ids; stale is another's by now, cancel is to be given up",
	 4, -1, PRIV_TASK, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, task_beat, NULL, task_beat_exec},
	{"TASK.DONE", "task", "Ends a task that was claimed with success; with NEXT claims more of its queue.",
	 "OK; with NEXT what TASK.CLAIM answers",
	 3, 10, PRIV_TASK, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, task_done, NULL, task_done_exec},
	{"TASK.FAIL", "task", "Says that a try has failed: the task runs again later, or has failed for good.",
	 "map id, status (pending, failed, cancelled), retries, not_before",
	 3, 7, PRIV_TASK, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, task_fail, NULL, task_fail_exec},
	{"TASK.RELEASE", "task", "Gives a task back as if it had not been claimed.", "OK",
	 3, 3, PRIV_TASK, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, claimed_task, NULL, task_release_exec},
	{"TASK.CANCEL", "task", "Cancels a task, or asks the worker that runs it to give it up.",
	 "map id, status (cancelled, or running: its worker is told)",
	 2, 2, PRIV_TASK, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, task, NULL, task_cancel_exec},
	{"TASK.RETRY", "task", "Brings a task back that has failed, timed out or been cancelled, or that waits for its time.",
	 "OK",
	 2, 2, PRIV_TASK, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, task, NULL, task_retry_exec},
	{"TASK.GET", "task", "Says all that is known of a task.",
	 "map id, queue, status, priority, submitted, not_before, worker, claimed, deadline, token, attempt, retries, crashes, "
	 "max_retries, key, cancel, finished, error, size, result, payload; null where there is none",
	 2, 2, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, task, NULL, task_get_exec},
	{"TASK.LIST", "task", "Lists the tasks of a queue, place by place: ready, delayed, running, then those that have ended.",
	 "array of the next cursor (\"\" at the end) and an array of maps as of TASK.GET, without result and payload",
	 2, 16, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, task_list, NULL, task_list_exec},
	{"TASK.STATS", "task", "Counts what a queue has; or what each of all queues has.",
	 "map queue, ready, delayed, running, success, failed, timeout, cancelled, waiting, paused, bytes, "
	 "total_submitted, total_success, total_failed, total_timeout, total_cancelled, total_retried, total_brought_back, "
	 "total_expired, total_released, total_aged, total_dropped, oldest; of all queues an array of the next cursor (\"\" at the "
	 "end) and an array of such maps",
	 1, 5, PRIV_READ, LANE_BARRIER, CMD_READONLY | CMD_NEEDS_REDIS, task_stats, NULL, task_stats_exec},
	{"TASK.PAUSE", "task", "Hands out nothing more of a queue; tasks are still taken in.", "OK",
	 2, 2, PRIV_ADMIN, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, queue, NULL, task_pause_exec},
	{"TASK.RESUME", "task", "Ends the pause of a queue.", "OK",
	 2, 2, PRIV_ADMIN, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, queue, NULL, task_resume_exec},
	{"TASK.CONFIG", "task",
	 "Says what holds for a queue; gives it settings of its own, or takes them away by the value `default`.",
	 "map paused, lease, retries, crashes, backoff, backoff_max, max_tasks, max_bytes, keep, keep_for, age_after, own (an "
	 "array: those that are the queue's own)",
	 2, -1, PRIV_ADMIN, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, task_config, NULL, task_config_exec},
	{"TASK.CHECK", "task",
	 "Checks that every task stands where its status says and nothing else stands anywhere; with REPAIR puts it right.",
	 "map state (none, running, done, failed), mode, rounds, keys, tasks, skipped (queues that are too big for their bytes "
	 "to be added up), milliseconds, findings, repaired, codes, items",
	 1, 4, PRIV_ADMIN, LANE_BARRIER, CMD_WRITE | CMD_NEEDS_REDIS, task_check, NULL, task_check_exec},

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
