/* SPDX-License-Identifier: MIT */
/* DAY.INIT, DAY.CLOSE, DAY.STATE. */
#ifndef HANDLERS_DAY_H
#define HANDLERS_DAY_H

#include "handlers/command.h"

enum verdict day_init_exec(struct call *call);
enum verdict day_close_exec(struct call *call);
enum verdict day_state_exec(struct call *call);

#endif
