/* SPDX-License-Identifier: MIT */
/* Who is in a number of teams, for `muster export`: the employees of each in the order of their ids, and of
 * each whether it is his home. A team is asked for at once with all the others, then each of its people. */
#ifndef CLI_PEOPLE_H
#define CLI_PEOPLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "cli/conn.h"

struct people_events {
	/* At home first, then those who have joined. `name` is empty for the latter. */
	void (*person)(const char *team, const char *employee, struct bytes name, bool home, void *arg);
	void *arg;
};

/* CLI_OK, or an exit code after a message. Memory is that of the ids of everybody in these teams. */
int people_of(struct conn *conn, const char *const *teams, size_t count, const struct people_events *events)
	__attribute__((warn_unused_result));

#endif
