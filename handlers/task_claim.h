/* SPDX-License-Identifier: MIT */
/* Handing tasks out: TASK.CLAIM, and the claim that TASK.DONE … NEXT ends with. */
#ifndef HANDLERS_TASK_CLAIM_H
#define HANDLERS_TASK_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "handlers/command.h"

struct task_claim;

/* COUNT (1 when it was not given) and WAIT (0) of a call that has not been started yet; false with the error
 * in the reply. */
bool task_claim_check(
	struct call *call, struct bytes count, struct bytes wait, int64_t *ret_count, int64_t *ret_wait_ms);

/* Claims, waits when it has to, replies and finishes the call, later and exactly once. Takes call->op. What
 * `claim` points to need not stay. */
void task_claim_begin(struct call *call, const struct task_claim *claim, int64_t wait_ms);

#endif
