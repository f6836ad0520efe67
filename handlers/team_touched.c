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
	UT_hash_handle hh;
	char id[ID_MAX + 1];
};

struct touched_op {
	struct call *call;
	struct team_touched touched;
	char id[ID_MAX + 1], parent[ID_MAX + 1];
	struct manager *managers;
	void (*fn)(const struct team_touched *touched, const char *error, void *arg);
	void *arg;
};

static void forget_managers(struct touched_op *op)
{
	struct manager *m, *next;

	HASH_ITER (hh, op->managers, m, next) {
		HASH_DEL(op->managers, m);
		free(m);
	}
}

static void add_manager(struct touched_op *op, const struct dept *d)
{
	struct manager *m;

	HASH_FIND_STR(op->managers, d->manager, m);
	if (m != NULL || d->manager[0] == '\0')
		return;
	m = xcalloc(1, sizeof(*m));
	bytes_copy(m->id, sizeof(m->id), bytes_of(d->manager));
	HASH_ADD_STR(op->managers, id, m);
}

static void add_line(struct touched_op *op, const char *id)
{
	for (const struct dept *d = tree_find(op->call->app->tree, bytes_of(id)); d != NULL; d = d->parent)
		add_manager(op, d);
}

static void on_team(const struct dept *d, void *arg)
{
	if (d != NULL)
		add_manager(arg, d);
	else
		forget_managers(arg);
}

/* The picture is up to date now: the people were counted by it. */
static void on_people(int64_t people, const char *error, void *arg)
{
	struct touched_op *op = arg;

	add_line(op, op->id);
	add_line(op, op->parent);
	op->touched.employees = people;
	op->touched.supervisors = (int64_t)HASH_COUNT(op->managers);
	op->fn(&op->touched, error, op->arg);
	forget_managers(op);
	free(op);
}

void team_touched_count(struct call *call, const struct team_change *change,
	const struct team_touched *touched,
	void (*fn)(const struct team_touched *touched, const char *error, void *arg), void *arg)
{
	struct touched_op *op = xcalloc(1, sizeof(*op));

	*op = (struct touched_op){.call = call, .touched = *touched, .fn = fn, .arg = arg};
	bytes_copy(op->id, sizeof(op->id), change->verb == TEAM_ADD ? (struct bytes){"", 0} : change->id);
	bytes_copy(op->parent, sizeof(op->parent), change->parent);
	team_people_count(call->app, bytes_of(op->id), on_team, on_people, op);
}
