/* SPDX-License-Identifier: MIT */
/* What a check has found. It goes over what it checks in rounds until one repairs nothing more, so a finding
 * may come again: it counts once, and it is repaired when the last round does not see it any more.
 * The first KEEP are remembered; of what is beyond them only the numbers are known. */
#ifndef PERSIST_FINDINGS_H
#define PERSIST_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define FINDING_CODES_MAX 32

struct findings;

struct finding {
	struct bytes code, id, queue, detail; /* `queue` is empty where there is none */
	bool repaired;
};

struct finding_code {
	char name[16];
	int64_t count;
};

struct findings *findings_new(void);
void findings_free(struct findings *f);

/* Whether it is one that was not known. */
bool findings_add(struct findings *f, const struct finding *finding);
/* The round is over: what it has not seen is repaired. */
void findings_end_round(struct findings *f);

int64_t findings_count(const struct findings *f);
int64_t findings_left(const struct findings *f); /* of them not repaired */
/* By code, *ret_count of them. */
const struct finding_code *findings_codes(const struct findings *f, size_t *ret_count);
/* The first ones, at most `max`; returns how many. They point into `f`. */
size_t findings_list(const struct findings *f, struct finding *list, size_t max);

#endif
