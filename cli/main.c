/* SPDX-License-Identifier: MIT */
/* `muster`, the command line client of musterd: the table of subcommands and dispatch. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/text.h"

static const char help_import[] =
	"The first line names the columns, in any order: kind, id, parent, name, manager, state.\n"
	"  department  parent is the department above (empty: none); state is empty or retired\n"
	"  employee    parent is the home department (empty: none yet)\n"
	"  member      parent is a team that the employee has joined besides\n"
	"Parents may come after their children. `-` reads stdin.\n"
	"  --dry-run        check the file, send nothing\n"
	"  --whole          leave out a whole tree of the file when a department in it is wrong\n"
	"  --window N       commands under way at once, 1 to 1000 (512)\n"
	"  --retry SECONDS  give up after so long without progress (60)\n"
	"A department that fails fails with all below it. Running it again does no harm. Exit code 1\n"
	"when a line failed; each is on stderr with its number.\n";

static const char help_watch[] = "Straight from RabbitMQ, by a queue that is gone with this command.\n"
				 "  --what LIST  as for subscribe\n"
				 "  --only-here  without the departments below\n"
				 "  --limit N    end after so many notices\n";

static const char help_subscribe[] =
	"Makes the queue muster.sub.NAME and binds it to the notices of DEPT and all below. What its\n"
	"consumer rejects comes again later, and is parked after the last try.\n"
	"  --what LIST    of in, out, late, absent, withdrawn, closed, digest (all of these), and team\n"
	"                 (changes of the tree), such as late,absent\n"
	"  --only-here    without the departments below\n"
	"  --unsubscribe  remove the queue with what is in it\n"
	"Once more with others adds to what it gets.\n";

static const char help_team[] =
	"  get ID                     what it is and where it stands\n"
	"  add ID|* PARENT|-          a new one, `*` with an id made for it [--name NAME] [--manager ID]\n"
	"  rename ID NAME\n"
	"  manager ID EMPLOYEE|-      who heads it, `-` for no one\n"
	"  move ID PARENT|-           with all below it\n"
	"  remove ID                  refused while something is in it, but with one of\n"
	"                               --cascade  all below goes too\n"
	"                               --lift     those below come to its parent\n"
	"                               --retire   it stays, out of use\n"
	"  restore ID                 a retired one is in use again\n"
	"  children ID|- [--all]      those directly below (`-`: at the top), with --all retired ones too\n"
	"  path ID                    the ids from the top to it\n"
	"  ancestors ID               those above it, the top first\n"
	"  count ID                   how many teams and people are below\n"
	"  members ID [--subtree]     its people\n"
	"  join ID EMPLOYEE, leave ID EMPLOYEE\n"
	"  of EMPLOYEE                his teams, each with its line\n"
	"  supervisors EMPLOYEE       the managers above him, nearest first\n"
	"Changes of a team but join and leave take\n"
	"  --if-version N             only when that is its version\n"
	"  --dry-run                  say whether it may be, and how much it would touch\n";

static const char help_task[] =
	"  submit QUEUE [PAYLOAD|-]   prints its id; `-`, or --file FILE, for a payload from there\n"
	"      --priority N  1 (first) to 10; 5\n"
	"      --delay D     not before\n"
	"      --key K       not while another with this key is open, or for --window D from now on\n"
	"      --retries N   runs at most so often once more\n"
	"      --lease D     a worker that is not heard of for so long loses it\n"
	"  claim QUEUE                to do them: [--worker W] [--count N] [--wait D] [--lease D]\n"
	"  beat ID TOKEN              still at it: [--worker W] [--lease D]; exit code 1 when it is to stop\n"
	"  done ID TOKEN              [--result TEXT | --file FILE]\n"
	"  fail ID TOKEN              [--error TEXT], is tried again later, or after --delay D\n"
	"  release ID TOKEN           gives it back, as if it had not been claimed\n"
	"  list QUEUE                 [--status S] [--priority N|A-B] [--since TIME] [--until TIME]\n"
	"                             [--worker W]; S: pending, ready, delayed, running, success,\n"
	"                             failed, timeout, cancelled\n"
	"  show ID                    --payload: just that, as it is; --output: its result, as it is\n"
	"  stats [QUEUE]              numbers of all queues, or all numbers of one\n"
	"  retry ID…, cancel ID…      or --all --queue QUEUE --status S\n"
	"  pause QUEUE, resume QUEUE  a paused one gives no tasks out\n"
	"  config QUEUE [NAME VALUE…] what holds for it, and changes that; VALUE `default`\n"
	"  check [--repair]           looks for damage; exit code 1 when something is not repaired\n"
	"D is a duration such as 250ms, 30s, 5m, 12h or 7d; a bare number is seconds.\n";

static const char help_work[] =
	"Claims tasks and runs COMMAND for each, with the payload on standard input and MUSTER_TASK_ID,\n"
	"MUSTER_TASK_TOKEN, MUSTER_TASK_QUEUE and MUSTER_TASK_ATTEMPT in its environment. Exit code 0: the\n"
	"task is done, and what was written to standard output is its result; any other end: it has\n"
	"failed, with the end of what was written to standard error.\n"
	"  --jobs N         so many commands at once, 1 to 256 (1)\n"
	"  --worker W       its name (this machine and the process)\n"
	"  --lease D        how soon its tasks go to others when it is gone (as the task or queue says)\n"
	"  --max-time D     a command that runs longer is stopped, and the task has failed\n"
	"  --grace D        from SIGTERM to SIGKILL (10s)\n"
	"  --release-on N   this exit code gives the task back instead\n"
	"  --max-result N   bytes of the result that are kept (65536)\n"
	"  --limit N        end after so many tasks\n"
	"  --once           end when nothing is ready\n"
	"SIGTERM, SIGINT: it claims no more and ends with the commands that run; the second one stops\n"
	"those and gives their tasks back.\n";

const struct cli_command cli_commands[] = {
	{"import", "load departments, employees and members from a CSV file",
		"FILE|- [--dry-run] [--whole] [--window N] [--retry SECONDS]", help_import, cmd_import, 0},
	{"export", "write all of it, or what is below a team, as such a file", "[FILE|-] [ID]",
		"The same organisation gives the same bytes. FILE takes its name when it is complete.\n",
		cmd_export, 0},
	{"status", "an employee's day", "ID [--day DATE]", NULL, cmd_status, 0},
	{"roll", "the people of a department and their day",
		"DEPT [--day DATE] [--state STATE] [--subtree] [--count]",
		"  --day DATE     work date (today)\n"
		"  --state STATE  only these: not_yet, present, late, early, late_early, missing_in,\n"
		"                 missing_out, absent\n"
		"  --subtree      with all departments below\n"
		"  --count        numbers per state instead of people\n",
		cmd_roll, 0},
	{"checkin", "report that an employee came or left",
		"ID [in|out] [--at TIME] [--id EVENT] [--source TEXT]",
		"  --at TIME      when; local HH:MM[:SS] or 'YYYY-MM-DD HH:MM[:SS]', RFC 3339, unix seconds "
		"or\n"
		"                 milliseconds (now)\n"
		"  --id EVENT     the event's own id: sending it twice counts once\n"
		"  --source TEXT  where it comes from\n",
		cmd_checkin, 0},
	{"day", "how far a work date has got", "DATE", NULL, cmd_day, 0},
	{"init", "prepare the maps of a work date", "DATE", NULL, cmd_init, 0},
	{"close", "close a work date", "DATE [--dept DEPT] [--wait] [--limit SECONDS]",
		"  --dept DEPT      only this department\n"
		"  --wait           until it is closed, with progress\n"
		"  --limit SECONDS  longest wait (3600)\n"
		"With --wait the exit code is 1 when rows could not be written (see `muster failures`).\n",
		cmd_close, 0},
	{"failures", "rows and events that could not be stored",
		"[list|retry ID|discard ID] [--day DATE] [--dept DEPT]",
		"  list        show them (what is done without a word)\n"
		"  retry ID    try one again; `retry ALL` all of them\n"
		"  discard ID  give one up\n",
		cmd_failures, 0},
	{"parked", "notices that no consumer could handle", "[--limit N] [--body]",
		"  --limit N  at most so many (100)\n"
		"  --body     with their text\n",
		cmd_parked, 0},
	{"replay", "send parked notices again", "[MESSAGE-ID] [--limit N]", NULL, cmd_replay, 0},
	{"watch", "notices of a department as they come", "DEPT [--what LIST] [--only-here] [--limit N]",
		help_watch, cmd_watch, 0},
	{"subscribe", "a lasting queue of notices for a program of yours",
		"NAME DEPT [--what LIST] [--only-here] [--unsubscribe]", help_subscribe, cmd_subscribe, 0},
	{"employee", "one employee", "get ID | set ID [--dept DEPT] [--name NAME] | move ID DEPT | remove ID",
		NULL, cmd_employee, 0},
	{"team", "one team: the change or the question that VERB names", "VERB ARGUMENT… [OPTION…]",
		help_team, cmd_team, 0},
	{"tree", "draw the tree, or what is below a team", "[ID] [--depth N] [--all]",
		"  --depth N  so many levels\n"
		"  --all      retired teams too\n",
		cmd_tree, 0},
	{"jobs", "big changes of the tree that are under way", "[list|cancel JOB]",
		"A job can be cancelled as long as its phase is prepare.\n", cmd_jobs, 0},
	{"check", "look for damage in the tree, and repair it", "[--repair [--truth]]",
		"  --repair  what is derived is made right again\n"
		"  --truth   orphans and circles go to a team lost-found\n"
		"Exit code 1 when something found is not repaired.\n",
		cmd_check, 0},
	{"task", "tasks: the change or the question that VERB names", "VERB ARGUMENT… [OPTION…]", help_task,
		cmd_task, 0},
	{"work", "a worker: runs a command for each task of a queue",
		"QUEUE [--jobs N] [--worker W] [--lease D] [--max-time D] [--grace D] [--release-on N]\n"
		"                   [--max-result N] [--limit N] [--once] -- COMMAND [ARGUMENT…]",
		help_work, cmd_work, 0},
	{"info", "what the daemon says of itself", "[SECTION]", NULL, cmd_info, 0},
	{"call", "send any command and print its reply", "COMMAND [ARGUMENT…]",
		"Common options stand before COMMAND; all behind it is sent as it is.\n", cmd_call,
		CLI_RAW_ARGS},
	{"help", "this text, or one command's", "[COMMAND]", NULL, cmd_help, 0},
	{0},
};

static int run(int argc, char **argv, const struct options_given *given)
{
	const struct cli_command *command = cli_find(argv[1]);
	struct cli_options options;

	if (command == NULL || given->help)
		return cli_print_help(argv[1]);
	int result = options_load(&options, given);
	if (result == 0) {
		optind = 0;
		result = command->fn(argc - 1, argv + 1, &options);
	}
	options_release(&options);
	return result;
}

/* What was written must have arrived; a reader that went away is no fault of ours to report. */
static int finish(int result)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return result;
	if (errno != EPIPE)
		cli_error("can't write the output: %s", strerror(errno));
	return result != CLI_OK ? result : CLI_FAILED;
}

int main(int argc, char **argv)
{
	struct options_given given;

	signal(SIGPIPE, SIG_IGN);
	text_init();
	if (options_take(&argc, argv, &given) != 0)
		return CLI_USAGE;
	if (given.version) {
		puts("muster " MUSTER_VERSION);
		return finish(CLI_OK);
	}
	if (argc < 2) {
		cli_print_overview(given.help ? stdout : stderr);
		return given.help ? finish(CLI_OK) : CLI_USAGE;
	}
	return finish(run(argc, argv, &given));
}
