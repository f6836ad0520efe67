/* SPDX-License-Identifier: MIT */
/* What the values in Redis look like, for those who write and those who read them: an employee's record, and
 * the records in the journal. Fields are cut by '|', which no id contains; the last field, a name, may hold
 * anything.
 *
 * An employee's record: <date of the last punches>|<department of that day map>|<punch set>|<name>
 * Journal records, by their first letter:
 *   P|date|dept|home|employee|direction|at|received|event id or -|source or -|marks or -|flag|set|name   a
 * punch; flag N: counted, `set` is the day's punches now; L: its day is closed, the ledger revises the row
 *   E|employee|dept|received|old dept or -|name        hired, renamed or moved
 *   X|employee|dept|received                           removed, with a J for each team that he had joined
 *   T|change|id|parent or -|manager or -|version|state|path|old path or -|name   the tree. change: add,
 * rename, manager, move, retire, restore, lift, remove; state: active, retired or, after lift and remove,
 * removed; path: the ids from the root to it, after the change (lift, remove: before); old path: of a move
 *   J|join or leave|team|employee|unix ms              a membership; home is none: what becomes it, ends
 *   Z|repaired          a check has put something of the tree back: read it anew
 *   R|dept|employee|at|received|reason|event id or -|source or -   a punch whose time was refused
 *   A|date|dept|employee|revision|name                 absent, found by the close
 *   C|date|dept|expected|written|failed|absent|late|received   a department's day is closed
 *   W|date|dept|employee|revision|old status|new status|at     an absence withdrawn by a late punch
 *   K|change|id|queue|priority|retries|crashes|token|worker|key|claimed|at|until|result bytes|error
 * bytes|payload bytes|result, error and payload behind one another        a task; instants in unix ms, '-'
 * for a field that is none. change: how it ended (success, failed, timeout, cancelled), or retry (an attempt
 * failed, the next is not before `until`), expired (its lease ran out, it is ready again), released, retried
 * (it had ended and was brought back). retries and crashes: after the change; token, worker, claimed: of the
 * last claim; payload: of an end that is no success. The last three are cut by their lengths and may hold
 * anything */
#ifndef PERSIST_RECORD_H
#define PERSIST_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

/* All fields point into the text that was parsed. */
struct employee_record {
	struct bytes day, dept, set, name;
};

bool record_parse_employee(struct bytes text, struct employee_record *ret)
	__attribute__((warn_unused_result));

struct punch_record {
	int32_t day;
	struct bytes date, dept, home, employee;
	char direction;
	int64_t at, received;
	struct bytes event_id, source, marks; /* empty when there was none */
	bool late;                            /* its day was closed */
	struct bytes set, name;
};

/* The head of a P record: what the daemon knows; the script adds flag, set and name. */
void record_punch_head(struct buf *out, const struct punch_record *punch);
bool record_parse_punch(struct bytes text, struct punch_record *ret) __attribute__((warn_unused_result));

void record_employee_head(struct buf *out, struct bytes employee, struct bytes dept, int64_t received);
void record_removed(struct buf *out, struct bytes employee, struct bytes dept, int64_t received);

/* Its ends first, in the order of the bits of CONFIG_ENDS. */
enum task_change {
	TASK_CHANGE_SUCCESS,
	TASK_CHANGE_FAILED,
	TASK_CHANGE_TIMEOUT,
	TASK_CHANGE_CANCELLED,
	TASK_CHANGE_RETRY,
	TASK_CHANGE_EXPIRED,
	TASK_CHANGE_RELEASED,
	TASK_CHANGE_RETRIED,
	TASK_CHANGES
};

const char *task_change_name(enum task_change change);
/* Success, failed, timeout, cancelled. */
static inline bool task_change_is_end(enum task_change change)
{
	return change <= TASK_CHANGE_CANCELLED;
}

struct task_record {
	enum task_change change;
	struct bytes id, queue;
	int64_t priority, retries, crashes;
	int64_t token;                                    /* -1: was never claimed */
	int64_t submitted, claimed, at, until;            /* unix ms; claimed, until: -1 when there is none */
	struct bytes worker, key, result, error, payload; /* empty when there is none */
};

/* `submitted` is what the id says. */
bool record_parse_task(struct bytes text, struct task_record *ret) __attribute__((warn_unused_result));

/* A field that is "-" when it is empty. */
void record_add_optional(struct buf *out, struct bytes value);
struct bytes record_optional(struct bytes field);

#endif
