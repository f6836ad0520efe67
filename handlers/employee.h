/* SPDX-License-Identifier: MIT */
/* EMPLOYEE.SET, GET, REMOVE, MOVE. */
#ifndef HANDLERS_EMPLOYEE_H
#define HANDLERS_EMPLOYEE_H

#include "handlers/command.h"

/* Looks up the department of argv[1], for every command whose first argument is an employee. After it,
 * employee_home() knows it, or why not. */
bool employee_prepare(struct call *call);

/* The department that argv[1] is believed to be in; false with the error in the reply when there is none. */
bool employee_home(struct call *call, struct bytes *ret_dept) __attribute__((warn_unused_result));

enum verdict employee_set_exec(struct call *call);
enum verdict employee_get_exec(struct call *call);
enum verdict employee_remove_exec(struct call *call);
enum verdict employee_move_exec(struct call *call);

#endif
