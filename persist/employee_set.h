/* SPDX-License-Identifier: MIT */
/* Setting an employee: hiring, renaming, moving. One event of lua/employee_set.lua, whose head says what the
 * answer's letters mean. */
#ifndef PERSIST_EMPLOYEE_SET_H
#define PERSIST_EMPLOYEE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "persist/batch.h"

/* Keys of an event. */
#define EMPLOYEE_SET_KEYS 10

struct employee_change {
	struct bytes id;
	struct bytes name; /* when `named`; else his name stays */
	bool named;
	struct bytes believed; /* the department that he is thought to be in; empty = none */
	struct bytes dept;     /* where he is to be */
	bool must_exist;
};

/* The head of the batch, for batch_new(). */
void employee_set_head(struct redis_args *args, void *arg);

/* `c` is read before this returns. */
void employee_set_add(
	struct batch *b, const struct employee_change *c, int32_t today, batch_cb cb, void *arg);

#endif
