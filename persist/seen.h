/* SPDX-License-Identifier: MIT */
/* A set of texts of which only a 64-bit hash is kept, 8 to 16 bytes each: enough to know what has been looked
 * at among millions. Two texts are taken for one with a chance of one in 10 million at a million texts. */
#ifndef PERSIST_SEEN_H
#define PERSIST_SEEN_H

#include <stdbool.h>

#include "base/bytes.h"

struct seen;

struct seen *seen_new(void);
void seen_free(struct seen *s);
/* True when it was not there. */
bool seen_add(struct seen *s, struct bytes text);
bool seen_has(const struct seen *s, struct bytes text);

#endif
