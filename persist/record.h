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
 *   W|date|dept|employee|revision|old status|new status|at     an absence withdrawn by a late punch */
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

/* A field that is "-" when it is empty. */
void record_add_optional(struct buf *out, struct bytes value);
struct bytes record_optional(struct bytes field);

#endif
