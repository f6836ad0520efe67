/* SPDX-License-Identifier: MIT */
/* Ids of tasks: 10 digits (0-9a-v, base 32) of the sequence number, which counts 8 microseconds since 2026,
 * and 2 of the partition. So they sort by the time of submission. Made by lua/task_submit.lua. */
#ifndef PERSIST_TASK_ID_H
#define PERSIST_TASK_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define TASK_ID_LEN 12

/* False when it can't be an id of this Redis. Either pointer may be NULL. */
bool task_id_parse(struct bytes id, int *ret_partition, int64_t *ret_submitted_ms)
	__attribute__((warn_unused_result));
/* The first sequence number of an instant: ids of tasks submitted then or later are not below it. */
int64_t task_seq_of(int64_t unix_ms);
int64_t task_id_seq(struct bytes id);

#endif
