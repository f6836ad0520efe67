/* SPDX-License-Identifier: MIT */
/* TEAM.CHECK: starts a check of the tree, waits for it, shows what it has found. */
#include "persist/team_check.h"

#include "handlers/app.h"
#include "handlers/check_ask.h"
#include "handlers/options.h"
#include "handlers/team.h"

enum verdict team_check_exec(struct call *call)
{
	bool status = false, repair = false, truth = false, nowait = false;
	const struct option options[] = {{"STATUS", NULL, &status}, {"REPAIR", NULL, &repair},
		{"TRUTH", NULL, &truth}, {"NOWAIT", NULL, &nowait}, {0}};
	struct check_run *run = team_check_run(call->app->team_check);

	if (options_read(call, 1, options) != 0)
		return CALL_DONE;
	if (status && call->argc > 2)
		return call_fail(call, "ERR syntax error, expected STATUS alone");
	if (truth && !repair)
		return call_fail(call, "ERR syntax error, expected TRUTH behind REPAIR only");
	if (status)
		return check_show(call, run);
	enum team_check_mode mode = truth ? TEAM_CHECK_TRUTH : repair ? TEAM_CHECK_REPAIR : TEAM_CHECK_LOOK;
	return check_ask(call, run, (int)mode, nowait);
}
