/* SPDX-License-Identifier: MIT */
/* What TEAM.CHECK and TASK.CHECK share: a check is started, waited for, shown. */
#ifndef HANDLERS_CHECK_ASK_H
#define HANDLERS_CHECK_ASK_H

#include "handlers/command.h"

struct check_run;

/* Starts the check of `run` in a mode and answers when it has ended: what it has found. */
enum verdict check_ask(struct call *call, struct check_run *run, int mode, bool nowait);
/* Answers with the check that runs, or the last one. */
enum verdict check_show(struct call *call, struct check_run *run);

#endif
