/* SPDX-License-Identifier: MIT */
/* What forest.c and forest_build.c share. */
#ifndef PERSIST_FOREST_PRIVATE_H
#define PERSIST_FOREST_PRIVATE_H

#include "persist/forest.h"
#include "persist/forest_build.h"
#include "persist/tree.h"

#define SEGMENT_BUCKETS 4096

struct node {
	struct dept dept; /* first, so that a pointer to it is one to the node */
	struct node *next_in_bucket;
	char *text; /* name and manager, when they are not behind the id */
	uint32_t hash;
	uint8_t mark;  /* enum node_mark */
	bool asked;    /* while building: somebody has been told that it has to be read */
	bool gave_way; /* while building: build_gave_way() */
	bool hung;     /* while building: it is among its parent's children */
	bool reached;  /* while building: a root is above it */
	char id[];     /* and behind it, as it was made, name and manager; each ends with a NUL */
};

/* The table grows by one bucket with each node (linear hashing), so that no insertion waits for a million
 * nodes to be hashed again. */
struct forest {
	struct dept top;         /* its children are the roots */
	struct node ***segments; /* of SEGMENT_BUCKETS each */
	size_t segment_count;
	uint32_t buckets;
	size_t size;
	struct dept *taken_out;
};

static inline struct node *node_of(struct dept *d)
{
	return (struct node *)d;
}

static inline struct dept *above(struct forest *f, const struct dept *d)
{
	return d->parent != NULL ? d->parent : &f->top;
}

static inline struct node **bucket_at(const struct forest *f, uint32_t bucket)
{
	return &f->segments[bucket / SEGMENT_BUCKETS][bucket % SEGMENT_BUCKETS];
}

/* Those taken out included. */
struct node *forest_node(const struct forest *f, struct bytes id);
/* In the table, below nobody. */
struct node *forest_new_node(struct forest *f, const struct dept_fields *fields);
void forest_set_text(struct node *n, struct bytes name, struct bytes manager);
void forest_free_node(struct forest *f, struct node *n);
/* Behind the other children, in no order; the counters stay. */
void forest_append_child(struct dept *parent, struct dept *d);
/* How many the department stands for in `listed` of those above it. */
int64_t forest_listed(const struct dept *d);

#endif
