/* SPDX-License-Identifier: MIT */
/* What becomes of a task's records in MySQL: a row of `task` when it has ended or was brought back, and a row
 * of `task_event` a record, but for the success of a first attempt: of that `task` says all there is.
 *
 * Records of one task are in order within its partition's journal, but windows may be written again, also by
 * a daemon that has lost the partition meanwhile: where a record stands decides, so an older one changes
 * nothing. */
#ifndef PERSIST_LEDGER_TASK_H
#define PERSIST_LEDGER_TASK_H

#include <stdbool.h>

#include "base/buf.h"
#include "persist/record.h"

enum task_table { TASK_TABLE_TASK, TASK_TABLE_EVENT, TASK_TABLES };

struct task_insert {
	const char *head, *tail; /* of an INSERT of many rows that bears repetition */
	bool (*wants)(const struct task_record *task);
	void (*add)(struct buf *row, const struct task_record *task, struct bytes ref);
};

extern const struct task_insert task_inserts[TASK_TABLES];

/* The INSERT of a record into one of the tables; empty when it does not go there. False when it is no record.
 */
bool ledger_task_insert(struct buf *out, enum task_table table, struct bytes record, struct bytes ref)
	__attribute__((warn_unused_result));

#endif
