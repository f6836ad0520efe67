/* SPDX-License-Identifier: MIT */
/* Applying the journal's records to a picture that is exact as of the record before. */
#ifndef PERSIST_TREE_FOLLOW_H
#define PERSIST_TREE_FOLLOW_H

#include "persist/tree_record.h"

struct tree_gone;

/* What the picture has already changes nothing. NULL, or why the record does not fit, so that the picture
 * must be made anew; as much of it as does is applied. A subtree that is removed is taken out of the forest.
 */
const char *tree_follow(struct forest *f, struct tree_gone *gone, const struct tree_record *r)
	__attribute__((warn_unused_result));

#endif
