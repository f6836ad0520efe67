/* SPDX-License-Identifier: MIT */
/* TEAM.CHILDREN and TEAM.DESCENDANTS: a script climbs above the team, so that nothing damaged is listed, and
 * says how far the journal is; the list comes from memory once the picture has got that far.
 *
 * A cursor is a place, not a thing: the ids from below the team to the last item that was looked at. The walk
 * goes on behind it in depth-first order, whatever has become of these departments. */
#include "handlers/team.h"

#include <stdlib.h>

#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "handlers/walk.h"
#include "persist/team_read.h"
#include "persist/tree.h"

#define LOOKED_MAX                                                                                           \
	20000 /* departments of a call, listed or not; then it gives a cursor, however few it has */
#define DEPTH_MAX 1000

struct list_op {
	struct call *call;
	struct bytes top_id; /* "" = what is below the roots, they included */
	struct bytes cursor;
	bool all, detail;
	int64_t most_depth, count;
	const struct tree *tree;
	const struct dept *top; /* NULL = above the roots */
	/* The walk: the next department, NULL at the end, and how far it is below the top. */
	const struct dept *at;
	int64_t depth;
	struct reply items;
};

static void end(struct list_op *op, const char *error)
{
	struct call *call = op->call;

	if (error != NULL)
		(void)call_fail(call, "%s", error);
	reply_release(&op->items);
	free(op);
	call_finish(call);
}

/* ---- the walk ---- */

static bool is_left_out(const struct list_op *op, const struct dept *d)
{
	return d->retired && !op->all;
}

/* To the first child of `parent` behind `id`, or to what comes after all of them. */
static void go_behind(struct list_op *op, const struct dept *parent, struct bytes id)
{
	op->at = tree_child_after(op->tree, parent, id);
	while (op->at == NULL && parent != op->top) {
		id = bytes_of(parent->id);
		parent = parent->parent;
		op->depth--;
		op->at = tree_child_after(op->tree, parent, id);
	}
}

static void step(struct list_op *op)
{
	const struct dept *d = op->at;

	if (d->child_count > 0 && op->depth < op->most_depth && !is_left_out(op, d)) {
		op->at = d->children[0];
		op->depth++;
	} else {
		go_behind(op, d->parent, bytes_of(d->id));
	}
}

/* Behind the place that the cursor names: as far along it as there still is a way. */
static void go_to_cursor(struct list_op *op)
{
	const struct dept *parent = op->top;
	struct bytes part[2] = {{"", 0}, op->cursor};

	for (op->depth = 1; part[1].n > 0; op->depth++) {
		int parts = bytes_split(part[1], ':', part, 2);
		const struct dept *d = tree_find(op->tree, part[0]);
		bool deeper = parts == 2 && op->depth < op->most_depth;
		if (d == NULL || d->parent != parent || is_left_out(op, d))
			break;
		if (!deeper) {
			op->at = d;
			step(op);
			return;
		}
		parent = d;
	}
	go_behind(op, parent, part[0]);
}

/* ---- replies ---- */

static void add_item(struct list_op *op)
{
	const struct dept *d = op->at;
	struct reply *r = &op->items;

	if (!op->detail) {
		reply_str(r, d->id);
		return;
	}
	reply_map(r, 9);
	reply_field_str(r, "id", d->id);
	reply_field_str(r, "name", d->name);
	reply_field_str(r, "parent", d->parent != NULL ? d->parent->id : "");
	reply_field_int(r, "depth", op->depth);
	reply_field_str(r, "manager", d->manager);
	reply_field_str(r, "state", d->retired ? "retired" : "active");
	reply_field_int(r, "descendants", d->below);
	reply_field_int(r, "listed", d->listed); /* of them without ALL */
	reply_field_int(r, "version", d->version);
}

static void list(struct list_op *op)
{
	struct reply *r = &op->call->reply;
	struct buf cursor = BUF_INIT;
	const struct dept *last = NULL;
	int64_t listed = 0;

	go_to_cursor(op);
	/* What is left out does not end a page: the next one would be empty, when nothing else follows. */
	for (int looked = 0; op->at != NULL && looked < LOOKED_MAX; looked++) {
		bool wanted = !is_left_out(op, op->at);
		if (wanted && listed == op->count)
			break;
		if (wanted)
			add_item(op);
		listed += wanted;
		last = op->at;
		step(op);
	}
	if (op->at != NULL)
		walk_path(&cursor, op->top, last);
	reply_array(r, 2);
	reply_bulk(r, buf_bytes(&cursor));
	reply_array(r, (size_t)listed);
	buf_add_bytes(&r->buf, buf_bytes(&op->items.buf));
	buf_release(&cursor);
	end(op, NULL);
}

static void on_synced(bool ok, void *arg)
{
	struct list_op *op = arg;

	if (!ok) {
		end(op, WALK_BEHIND);
		return;
	}
	if (op->top_id.n > 0 && (op->top = tree_find(op->tree, op->top_id)) == NULL) {
		(void)team_refuse(op->call, op->top_id, BYTES_LIT("P"));
		end(op, NULL);
		return;
	}
	list(op);
}

static void on_read(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	struct list_op *op = arg;

	if (error != NULL) {
		end(op, error);
	} else if (count > 0 && !nodes[0].known) {
		(void)team_refuse(op->call, op->top_id, (struct bytes){&nodes[0].refused, 1});
		end(op, NULL);
	} else {
		tree_sync(op->call->app->tree, last, on_synced, op);
	}
}

/* ---- start ---- */

static bool check_depth(struct call *call, struct bytes text, int64_t *ret)
{
	*ret = DEPTH_MAX;
	if (text.p == NULL || (bytes_to_i64(text, ret) && *ret >= 1 && *ret <= DEPTH_MAX))
		return true;
	(void)call_fail(call, "ERR invalid DEPTH, expected a number from 1 to %d", DEPTH_MAX);
	return false;
}

static enum verdict start(struct call *call, bool children)
{
	struct bytes depth = {0}, cursor = {0}, count = {0};
	struct list_op o = {.call = call, .top_id = call->argv[1], .tree = call->app->tree};
	const struct option options[] = {{"ALL", NULL, &o.all}, {"DETAIL", NULL, &o.detail},
		{"CURSOR", &cursor, NULL}, {"COUNT", &count, NULL}, {children ? NULL : "DEPTH", &depth, NULL},
		{0}};

	if (bytes_eq(o.top_id, BYTES_LIT("-")))
		o.top_id.n = 0;
	else if (!check_dept(call, o.top_id))
		return CALL_DONE;
	if (options_read(call, 2, options) != 0 || !check_depth(call, depth, &o.most_depth) ||
		!check_count(call, count, &o.count))
		return CALL_DONE;
	if (!walk_path_valid(cursor))
		return call_fail(call, "ERR invalid CURSOR, expected one that this command gave");
	if (children)
		o.most_depth = 1;
	if (cursor.p != NULL)
		o.cursor = cursor;
	reply_init(&o.items, call->reply.protocol);
	struct list_op *op = xmalloc(sizeof(*op));
	*op = o;
	team_read_send(call->app->team_reads, &op->top_id, op->top_id.n > 0 ? 1 : 0, on_read, op);
	return CALL_WAIT;
}

enum verdict team_children_exec(struct call *call)
{
	return start(call, true);
}

enum verdict team_descendants_exec(struct call *call)
{
	return start(call, false);
}
