/* SPDX-License-Identifier: MIT */
/* NOTICE.PARKED and NOTICE.REPLAY. */
#ifndef HANDLERS_NOTICE_H
#define HANDLERS_NOTICE_H

#include "handlers/command.h"

enum verdict notice_parked_exec(struct call *call);
enum verdict notice_replay_exec(struct call *call);

#endif
