/* SPDX-License-Identifier: MIT */
/* What a single team is, where it stands and how much is below it: all of one instant. */
#include "handlers/team.h"

#include <stdlib.h>

#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "handlers/team_people.h"
#include "persist/team_read.h"
#include "persist/tree.h"

/* The end of a call whose answer is the nodes of its arguments. */
static void finish(struct call *call, const struct team_node *nodes, size_t count, const char *error,
	void (*write)(struct reply *r, const struct team_node *nodes))
{
	const struct team_node *wrong = NULL;

	for (size_t i = 0; i < count && wrong == NULL; i++)
		wrong = nodes[i].known ? NULL : &nodes[i];
	if (error != NULL)
		(void)call_fail(call, "%s", error);
	else if (wrong != NULL)
		(void)team_refuse(call, wrong->id, (struct bytes){&wrong->refused, 1});
	else
		write(&call->reply, nodes);
	call_finish(call);
}

static void reply_path(struct reply *r, const struct team_node *node)
{
	struct buf path = BUF_INIT;

	team_node_path(&path, node);
	reply_bulk(r, buf_bytes(&path));
	buf_release(&path);
}

/* ---- TEAM.GET ---- */

static void write_get(struct reply *r, const struct team_node *node)
{
	reply_map(r, 9);
	reply_field_bulk(r, "id", node->id);
	reply_field_bulk(r, "name", node->name);
	reply_field_bulk(r, "parent", node->parent);
	reply_str(r, "path");
	reply_path(r, node);
	reply_field_bulk(r, "manager", node->manager);
	reply_field_bulk(r, "state", node->state);
	reply_field_int(r, "descendants", node->sub);
	reply_field_int(r, "members", node->employees + node->joined);
	reply_field_int(r, "version", node->version);
}

static void on_get(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	(void)last;
	finish(arg, nodes, count, error, write_get);
}

enum verdict team_get_exec(struct call *call)
{
	if (!check_dept(call, call->argv[1]))
		return CALL_DONE;
	team_read_people(call->app->team_reads, &call->argv[1], 1, on_get, call);
	return CALL_WAIT;
}

/* ---- TEAM.PATH and TEAM.ANCESTORS ---- */

static void on_path(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	(void)last;
	finish(arg, nodes, count, error, reply_path);
}

enum verdict team_path_exec(struct call *call)
{
	if (!check_dept(call, call->argv[1]))
		return CALL_DONE;
	team_read_send(call->app->team_reads, &call->argv[1], 1, on_path, call);
	return CALL_WAIT;
}

static void write_ancestors(struct reply *r, const struct team_node *node)
{
	reply_array(r, node->ancestor_count);
	for (size_t i = node->ancestor_count; i > 0; i--) {
		const struct team_ancestor *a = &node->ancestors[i - 1];
		reply_map(r, 4);
		reply_field_bulk(r, "id", a->id);
		reply_field_bulk(r, "name", a->name);
		reply_field_bulk(r, "manager", a->manager);
		reply_field_bulk(r, "state", a->state);
	}
}

static void on_ancestors(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	(void)last;
	finish(arg, nodes, count, error, write_ancestors);
}

enum verdict team_ancestors_exec(struct call *call)
{
	if (!check_dept(call, call->argv[1]))
		return CALL_DONE;
	team_read_send(call->app->team_reads, &call->argv[1], 1, on_ancestors, call);
	return CALL_WAIT;
}

/* ---- TEAM.ISBELOW ---- */

static void write_isbelow(struct reply *r, const struct team_node *nodes)
{
	int64_t below = 0;

	for (size_t i = 0; i < nodes[0].ancestor_count; i++)
		below |= bytes_eq(nodes[0].ancestors[i].id, nodes[1].id);
	reply_int(r, below);
}

static void on_isbelow(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	(void)last;
	finish(arg, nodes, count, error, write_isbelow);
}

enum verdict team_isbelow_exec(struct call *call)
{
	if (!check_dept(call, call->argv[1]) || !check_dept(call, call->argv[2]))
		return CALL_DONE;
	team_read_send(call->app->team_reads, &call->argv[1], 2, on_isbelow, call);
	return CALL_WAIT;
}

/* ---- TEAM.COUNT ---- */

struct count_op {
	struct call *call;
	int64_t employees; /* at home in the team itself, and joined */
};

static void reply_counts(
	struct call *call, int64_t descendants, int64_t listed, int64_t employees, int64_t people)
{
	struct reply *r = &call->reply;

	reply_map(r, 4);
	reply_field_int(r, "descendants", descendants);
	reply_field_int(r, "listed", listed);
	reply_field_int(r, "employees", employees);
	reply_field_int(r, "employees_subtree", people);
	call_finish(call);
}

/* The picture is up to date now; both counts of teams are of one instant. */
static void on_people(int64_t people, const char *error, void *arg)
{
	struct count_op op = *(struct count_op *)arg;
	const struct dept *d = tree_find(op.call->app->tree, op.call->argv[1]);

	free(arg);
	if (error == NULL && d != NULL) {
		reply_counts(op.call, d->below, d->listed, op.employees, people);
		return;
	}
	if (error != NULL)
		(void)call_fail(op.call, "%s", error);
	else
		(void)team_refuse(op.call, op.call->argv[1], BYTES_LIT("P"));
	call_finish(op.call);
}

static void on_count(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	struct call *call = arg;

	(void)last;
	if (error != NULL || !nodes[0].known) {
		finish(call, nodes, count, error, NULL);
		return;
	}
	int64_t employees = nodes[0].employees + nodes[0].joined;
	if (nodes[0].sub == 0) {
		reply_counts(call, 0, 0, employees, employees);
		return;
	}
	struct count_op *op = xmalloc(sizeof(*op));
	*op = (struct count_op){.call = call, .employees = employees};
	team_people_count(call->app, call->argv[1], NULL, on_people, op);
}

enum verdict team_count_exec(struct call *call)
{
	if (!check_dept(call, call->argv[1]))
		return CALL_DONE;
	team_read_people(call->app->team_reads, &call->argv[1], 1, on_count, call);
	return CALL_WAIT;
}
