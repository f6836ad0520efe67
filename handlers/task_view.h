/* SPDX-License-Identifier: MIT */
/* A task as replies show it. */
#ifndef HANDLERS_TASK_VIEW_H
#define HANDLERS_TASK_VIEW_H

#include <stdbool.h>

struct reply;
struct task_row;

/* The map of TASK.GET; not `whole`: of TASK.LIST, without what may be long. */
void view_task(struct reply *r, const struct task_row *row, bool whole);

#endif
