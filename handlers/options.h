/* SPDX-License-Identifier: MIT */
/* The words behind a command's fixed arguments: `WORD value` pairs, some with a second value, and flags, in
 * any order, each at most once. */
#ifndef HANDLERS_OPTIONS_H
#define HANDLERS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "handlers/command.h"

struct option {
	const char *word;
	struct bytes *value;  /* of a pair; .p stays NULL when it was not given */
	bool *flag;           /* of a flag */
	struct bytes *second; /* of a word with two values; both or none are given */
};

/* Reads argv[from…] by the list, which ends with a word of NULL. 0, or -1 with the error in the reply. */
int options_read(struct call *call, int from, const struct option *options)
	__attribute__((warn_unused_result));

/* Checks of single arguments; each replies an error that says what was expected, and is false. */
bool check_dept(struct call *call, struct bytes id);
bool check_employee(struct call *call, struct bytes id);
bool check_name(struct call *call, struct bytes name);
/* An option's date, or today when it was not given. */
bool check_day(struct call *call, struct bytes text, int32_t *ret_day);
/* COUNT: 1 to 1000, 100 when it was not given. */
bool check_count(struct call *call, struct bytes text, int64_t *ret_count);

#endif
