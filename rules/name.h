/* SPDX-License-Identifier: MIT */
/* Names as people compare them: two spellings of one Unicode text are one name, and case does not matter. */
#ifndef RULES_NAME_H
#define RULES_NAME_H

#include <stdbool.h>

#include "base/buf.h"

/* Appends the name in normal form C, which is how it is kept. False when it has no such form or it is longer
 * than NAME_MAX_BYTES; `out` is as before then. */
bool name_normalise(struct buf *out, struct bytes name) __attribute__((warn_unused_result));
/* Appends what names are compared by: case-folded, in normal form C. A name of ASCII folds to its lower case.
 * Never fails for a name that name_normalise() made. */
void name_fold(struct buf *out, struct bytes name);

#endif
