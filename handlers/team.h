/* SPDX-License-Identifier: MIT */
/* TEAM.ADD and TEAM.GET: as much of the tree as departments need. */
#ifndef HANDLERS_TEAM_H
#define HANDLERS_TEAM_H

#include "handlers/command.h"

enum verdict team_add_exec(struct call *call);
enum verdict team_get_exec(struct call *call);

#endif
