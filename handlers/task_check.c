/* SPDX-License-Identifier: MIT */
/* TASK.CHECK: starts a check of the tasks, waits for it, shows what it has found. */
#include "persist/task_check.h"

#include "handlers/app.h"
#include "handlers/check_ask.h"
#include "handlers/options.h"
#include "handlers/task.h"

enum verdict task_check_exec(struct call *call)
{
	bool status = false, repair = false, nowait = false;
	const struct option options[] = {
		{"STATUS", NULL, &status}, {"REPAIR", NULL, &repair}, {"NOWAIT", NULL, &nowait}, {0}};
	struct check_run *run = task_check_run(call->app->task_check);

	if (options_read(call, 1, options) != 0)
		return CALL_DONE;
	if (status && call->argc > 2)
		return call_fail(call, "ERR syntax error, expected STATUS alone");
	if (status)
		return check_show(call, run);
	return check_ask(call, run, repair ? TASK_CHECK_REPAIR : TASK_CHECK_LOOK, nowait);
}
