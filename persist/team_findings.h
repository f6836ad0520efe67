/* SPDX-License-Identifier: MIT */
/* What a check of the tree has found. It goes over the tree in rounds until one repairs nothing more, so a
 * finding may come again: it counts once, and it is repaired when the last round does not see it any more.
 * The first KEEP are remembered; of what is beyond them only the numbers are known. */
#ifndef PERSIST_TEAM_FINDINGS_H
#define PERSIST_TEAM_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define TEAM_CODES_MAX 32

struct team_findings;

struct team_finding {
	struct bytes code, id, detail;
	bool repaired;
};

struct team_code {
	char name[16];
	int64_t count;
};

struct team_findings *team_findings_new(void);
void team_findings_free(struct team_findings *f);

/* Whether it is one that was not known. */
bool team_findings_add(struct team_findings *f, const struct team_finding *finding);
/* The round is over: what it has not seen is repaired. */
void team_findings_end_round(struct team_findings *f);

int64_t team_findings_count(const struct team_findings *f);
int64_t team_findings_left(const struct team_findings *f); /* of them not repaired */
/* By code, *ret_count of them. */
const struct team_code *team_findings_codes(const struct team_findings *f, size_t *ret_count);
/* The first ones, at most `max`; returns how many. They point into `f`. */
size_t team_findings_list(const struct team_findings *f, struct team_finding *list, size_t max);

#endif
