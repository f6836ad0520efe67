/* SPDX-License-Identifier: MIT */
/* A punch set is all that is kept of an employee's day: `I1764493200000 O1764525600000#gate-7`, tokens of
 * direction (I, O, or U for unspecified) and unix milliseconds, each with the device's event id where it gave
 * one. The set is order-free: judging sorts it, so any order and repetition of the same punches gives one
 * result.
 *
 * First in, last out. A punch of no direction is an in when it is the first of all, else an out. Punches of
 * one direction closer together than the debounce window count as one; the first is the one that counts. Two
 * or more OUT and nothing else, the first before the middle of the shift: that one is taken for the in that
 * it must have been, and the judgement says direction_guess. */
#ifndef RULES_PUNCH_H
#define RULES_PUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define PUNCH_SET_MAX 1000

enum attendance {
	ATTENDANCE_NOT_YET, /* open day, no punch; never in a closed day */
	ATTENDANCE_PRESENT,
	ATTENDANCE_LATE,
	ATTENDANCE_EARLY,
	ATTENDANCE_LATE_EARLY,
	ATTENDANCE_MISSING_IN,
	ATTENDANCE_MISSING_OUT,
	ATTENDANCE_ABSENT,
	ATTENDANCE_COUNT
};

/* The name in protocol and tables. */
const char *attendance_name(enum attendance a);
/* False when there is no such status. */
bool attendance_from_name(struct bytes name, enum attendance *ret) __attribute__((warn_unused_result));

struct punch {
	int64_t at; /* unix ms */
	char direction;
	struct bytes event_id; /* points into the set's text */
};

/* The shift of one work date, as instants. Both boundaries are inclusive: in at `start` is not late. */
struct shift {
	int64_t start, end;
	int64_t debounce; /* ms */
};

struct judgement {
	enum attendance status;
	int64_t in, out; /* unix ms, -1 = none */
	int64_t late_ms, early_ms, worked_ms;
	int punches;        /* those that count */
	const char *reason; /* "" or a word such as direction_guess */
};

/* Reads a set; -1 when the text is not one, else the number of punches (at most PUNCH_SET_MAX) in punches[].
 */
int punch_set_parse(struct bytes set, struct punch punches[PUNCH_SET_MAX])
	__attribute__((warn_unused_result));

/* Judges a set. While the day is open nothing that is still to come is held against anyone: an in without an
 * out is present or late. -1, and *ret untouched, when the text is not a set. */
int punch_judge(struct bytes set, const struct shift *shift, bool closed, struct judgement *ret)
	__attribute__((warn_unused_result));

#endif
