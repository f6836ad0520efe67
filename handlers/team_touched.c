/* SPDX-License-Identifier: MIT */
#include "handlers/team_touched.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/command.h"
#include "handlers/team_people.h"
#include "persist/team_change.h"
#include "persist/tree.h"

struct manager {
	const char *id;
	UT_hash_handle hh;
};

struct touched_op {
	struct call *call;
	struct team_touched touched;
	char id[ID_MAX + 1], parent[ID_MAX + 1];
	void (*fn)(const struct team_touched *touched, const char *error, void *arg);
	void *arg;
};

static void end(struct touched_op *op, const char *error)
{
	op->fn(&op->touched, error, op->arg);
	free(op);
}

static void add_manager(struct manager **all, const struct dept *d)
{
	struct manager *m;

	if (d->manager[0] == '\0')
		return;
	HASH_FIND_STR(*all, d->manager, m);
	if (m != NULL)
		return;
	m = xcalloc(1, sizeof(*m));
	m->id = d->manager;
	HASH_ADD_KEYPTR(hh, *all, m->id, strlen(m->id), m);
}

static int64_t count_managers(const struct tree *tree, const struct touched_op *op)
{
	const struct dept *top = tree_find(tree, bytes_of(op->id));
	struct manager *all = NULL, *m, *next;

	for (const struct dept *d = top; d != NULL; d = tree_next(top, d))
		add_manager(&all, d);
	for (const struct dept *d = top; d != NULL; d = d->parent)
		add_manager(&all, d);
	for (const struct dept *d = tree_find(tree, bytes_of(op->parent)); d != NULL; d = d->parent)
		add_manager(&all, d);
	int64_t count = (int64_t)HASH_COUNT(all);
	HASH_ITER (hh, all, m, next) {
		HASH_DEL(all, m);
		free(m);
	}
	return count;
}

/* The picture is up to date now: the people were counted by it. */
static void on_people(int64_t people, const char *error, void *arg)
{
	struct touched_op *op = arg;

	op->touched.employees = people;
	op->touched.supervisors = count_managers(op->call->app->tree, op);
	end(op, error);
}

void team_touched_count(struct call *call, const struct team_change *change,
	const struct team_touched *touched,
	void (*fn)(const struct team_touched *touched, const char *error, void *arg), void *arg)
{
	struct touched_op *op = xcalloc(1, sizeof(*op));

	*op = (struct touched_op){.call = call, .touched = *touched, .fn = fn, .arg = arg};
	bytes_copy(op->id, sizeof(op->id), change->verb == TEAM_ADD ? (struct bytes){"", 0} : change->id);
	bytes_copy(op->parent, sizeof(op->parent), change->parent);
	team_people_count(call->app, bytes_of(op->id), on_people, op);
}
