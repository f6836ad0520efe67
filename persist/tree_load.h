/* SPDX-License-Identifier: MIT */
/* Reads the organisation from Redis into a raw forest (forest_build.h) while others change it.
 *
 * The nodes are those of the closure: the roots and what the sets children:<root> hold. A walk along
 * direct_children would lose what is moved from a branch it has not seen to one that it has; these sets
 * change only when a node is moved from one root to another. What may be missed, because it was moved past
 * the scan, was moved by a record behind the place in the journal where the reading began. So the owner then
 * hands these records to tree_load_apply(), which tells when something must be read before the next one can
 * be applied, until it has come to `last`, the newest entry at the time of the last read; then the forest is
 * the tree as of that entry. */
#ifndef PERSIST_TREE_LOAD_H
#define PERSIST_TREE_LOAD_H

#include "persist/stream_id.h"
#include "persist/tree_record.h"

struct redis;
struct tree_load;

enum load_answer {
	LOAD_APPLIED,
	LOAD_DROP,   /* applied; what has been taken out of the forest must be dropped before the next */
	LOAD_READ,   /* something is being read: idle() will be called before the next can be applied */
	LOAD_RESTART /* what was read is worth nothing: begin again */
};

enum load_rest {
	LOAD_COMPLETE,
	LOAD_ASKED,   /* idle() will be called */
	LOAD_REMOVED, /* what has been taken out of the forest must be dropped; then call again */
	LOAD_BUSY     /* call again: so much is enough for once */
};

/* Begins to read everything. idle(arg) comes, never before this returns, when nothing is being read any more.
 */
struct tree_load *tree_load_new(
	struct redis *redis, struct forest *forest, void (*idle)(void *arg), void *arg);
/* Whatever is under way. The forest is not touched any more. */
void tree_load_free(struct tree_load *l);

/* After idle(): Redis was lost, or something could not be read. */
bool tree_load_failed(const struct tree_load *l);
/* tree_load_first() is known. */
bool tree_load_begun(const struct tree_load *l);
/* The newest entry of the journal before the first read, and at the last one. */
struct stream_id tree_load_first(const struct tree_load *l);
struct stream_id tree_load_last(const struct tree_load *l);

/* All only after idle(). */
enum load_answer tree_load_apply(struct tree_load *l, const struct tree_record *r)
	__attribute__((warn_unused_result));
/* Reads what is known by name only, and takes out what is being removed. */
enum load_rest tree_load_rest(struct tree_load *l) __attribute__((warn_unused_result));
/* The very end: nodes that are being lifted give way to their children. */
void tree_load_end(struct tree_load *l);

#endif
