/* SPDX-License-Identifier: MIT */
/* What tree_load.c, which reads, and tree_replay.c, which applies records to what was read, share. */
#ifndef PERSIST_TREE_LOAD_PRIVATE_H
#define PERSIST_TREE_LOAD_PRIVATE_H

#include "base/turn.h"
#include "persist/forest_build.h"
#include "persist/text_queue.h"
#include "persist/tree_load.h"

enum load_state {
	LOAD_BEGINNING, /* the place in the journal, and which roots are being lifted */
	LOAD_LIFTING,   /* what is below these: it will be roots, and is not yet */
	LOAD_ROOTS,     /* everything */
	LOAD_REST       /* what the owner asks for */
};

struct tree_load {
	struct redis *redis;
	struct forest *forest;
	void (*idle)(void *arg);
	void *arg;
	enum load_state state;
	struct text_queue sets;   /* whose descendants are to be scanned */
	struct text_queue unread; /* known by name only or absent, when they came here */
	struct text_queue again;  /* to be read again, since their parent has gone */
	struct text_queue lifted, removed;
	int inflight, scans;
	bool failed, freed;
	bool scanned; /* a set, and `last` has not been read since */
	bool wary;    /* a subtree was read again, later than the rest */
	struct stream_id first, last;
	struct turn_task done;
};

/* Takes over what was read, or is in a record; what it hangs on will be read where it is not known. */
void load_put(struct tree_load *l, const struct dept_fields *fields, enum node_mark mark);
/* Reads the children of d again before the end. */
void load_children_again(struct tree_load *l, const struct dept *d);
/* Reads a node and all below it; idle() will be called. */
void load_subtree(struct tree_load *l, struct bytes id);

#endif
