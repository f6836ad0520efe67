/* SPDX-License-Identifier: MIT */
/* CHECKIN, STATUS, ROLL and ROLL.COUNT. */
#ifndef HANDLERS_ATTENDANCE_H
#define HANDLERS_ATTENDANCE_H

#include "handlers/command.h"

enum verdict checkin_exec(struct call *call);
enum verdict status_exec(struct call *call);
enum verdict roll_exec(struct call *call);
enum verdict roll_count_exec(struct call *call);

#endif
