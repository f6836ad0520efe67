/* SPDX-License-Identifier: MIT */
#include "handlers/team_people.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/walk.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/team_read.h"
#include "persist/tree.h"

#define PAGE      200 /* people asked for at once */
#define STEPS_MAX 100 /* after which a page is given, however few are in it */
#define TRIES_MAX 5   /* counts that were overtaken by a move */

/* A team that the walk comes to. */
struct team {
	char id[ID_MAX + 1];
	int64_t employees, joined;
};

/* Somebody of the present team. */
struct seen {
	UT_hash_handle hh;
	char id[ID_MAX + 1];
};

/* What is done next in the present team. */
enum part {
	PART_HOME = 'h',
	PART_JOINED = 'j',
	PART_NEXT = 'n' /* nothing: the walk goes on behind it */
};

struct people_op {
	struct app *app;
	team_people_cb fn;
	void *arg;
	char top[ID_MAX + 1];
	bool subtree, counting;
	int64_t wanted, count;
	int steps;
	/* Where it is: the teams that were looked at together, and in the present one what is done next. */
	struct team teams[TEAM_READ_MAX];
	size_t team_at, team_count;
	bool more; /* teams behind these */
	struct buf path;
	enum part part;
	struct buf scan; /* cursor of Redis within the part; empty = from the start */
	/* People of the present page who have joined, until it is known where else they are. */
	struct buf joined;
	struct seen *seen;
	struct buf ids;
	/* When it counts. */
	team_visit_cb visit; /* may be NULL */
	void *visit_arg;
	uint64_t shape;
	int tries;
};

static void go_on(struct people_op *op);
static void start(struct people_op *op);

/* ---- ends ---- */

static void forget_seen(struct people_op *op)
{
	struct seen *s, *next;

	HASH_ITER (hh, op->seen, s, next) {
		HASH_DEL(op->seen, s);
		free(s);
	}
}

static void end(struct people_op *op, const struct people_page *page, const char *error)
{
	op->fn(page, error, op->arg);
	forget_seen(op);
	buf_release(&op->path);
	buf_release(&op->scan);
	buf_release(&op->joined);
	buf_release(&op->ids);
	free(op);
}

static void fail(struct people_op *op, const char *error)
{
	const struct people_page none = {.ids = {"", 0}, .cursor = {"", 0}};

	end(op, &none, error);
}

static void refuse(struct people_op *op, char letter, struct bytes team)
{
	const struct people_page refusal = {
		.refused = letter, .about = team, .ids = {"", 0}, .cursor = {"", 0}};

	end(op, &refusal, NULL);
}

/* The cursor is <path>/<part><cursor of Redis>. */
static void give_page(struct people_op *op, bool over)
{
	struct people_page page = {.count = op->count, .ids = buf_bytes(&op->ids), .cursor = {"", 0}};
	struct buf cursor = BUF_INIT;

	if (!over) {
		buf_add_bytes(&cursor, buf_bytes(&op->path));
		buf_addf(&cursor, "/%c", (char)op->part);
		buf_add_bytes(&cursor, buf_bytes(&op->scan));
		page.cursor = buf_bytes(&cursor);
	}
	end(op, &page, NULL);
	buf_release(&cursor);
}

/* ---- people ---- */

/* Counts somebody, unless a scan has already given him: it may while its key shrinks. */
static void take(struct people_op *op, struct bytes id)
{
	struct seen *s;

	HASH_FIND(hh, op->seen, id.p, id.n, s);
	if (s != NULL || id.n > ID_MAX)
		return;
	s = xmalloc(sizeof(*s));
	bytes_copy(s->id, sizeof(s->id), id);
	HASH_ADD(hh, op->seen, id, id.n, s);
	op->count++;
	if (op->counting)
		return;
	buf_add_bytes(&op->ids, id);
	buf_add_char(&op->ids, '\n');
}

/* A scan has come to `next`; at its end the part is done. */
static void scanned(struct people_op *op, struct bytes next)
{
	buf_clear(&op->scan);
	if (!bytes_eq(next, BYTES_LIT("0")))
		buf_add_bytes(&op->scan, next);
	else
		op->part = op->part == PART_HOME ? PART_JOINED : PART_NEXT;
}

/* Whether he is not found elsewhere in the subtree: at home, or in a joined team that comes before. */
static bool found_here(const struct people_op *op, struct bytes home, struct bytes joined)
{
	const struct tree *tree = op->app->tree;
	const struct dept *top = tree_find(tree, bytes_of(op->top));

	if (walk_within(top, tree_find(tree, home)))
		return false;
	while (joined.n > 0) {
		struct bytes team = bytes_cut(&joined, ':');
		char id[ID_MAX + 1];
		if (strcmp(bytes_copy(id, sizeof(id), team), op->teams[op->team_at].id) < 0 &&
			walk_within(top, tree_find(tree, team)))
			return false;
	}
	return true;
}

static void ask_places(struct people_op *op);

static void on_places(const struct redisReply *reply, void *arg)
{
	struct people_op *op = arg;
	struct bytes lines = redis_text(reply), ids = buf_bytes(&op->joined);

	if (redis_reply_error(reply) != NULL) {
		fail(op, redis_reply_error(reply));
		return;
	}
	while (lines.n > 0 && ids.n > 0) {
		struct bytes id = bytes_cut(&ids, '\n'), teams = bytes_cut(&lines, '\n');
		struct bytes home = bytes_cut(&teams, '|');
		if (home.n > 0 && found_here(op, home, teams))
			take(op, id);
	}
	buf_consume(&op->joined, op->joined.len - ids.n);
	if (op->joined.len > 0)
		ask_places(op);
	else
		go_on(op);
}

static void ask_places(struct people_op *op)
{
	struct redis_args keys, args;
	struct buf key = BUF_INIT;
	int count = 1;

	redis_args_init(&keys);
	redis_args_init(&args);
	key_org(&key, "last");
	redis_arg_key(&keys, &key);
	key_org(&key, "");
	redis_arg_key(&args, &key);
	for (struct bytes ids = buf_bytes(&op->joined); ids.n > 0; count++) {
		struct bytes id = bytes_cut(&ids, '\n');
		key_dir(&key, id);
		redis_arg_key(&keys, &key);
		redis_arg(&args, id);
	}
	buf_release(&key);
	redis_args_append(&keys, &args);
	enum redis_sent sent = redis_eval(op->app->redis, SCRIPT_TEAM_MEMBERS, count, &keys, on_places, op);
	if (sent != REDIS_SENT)
		fail(op, redis_sent_error(sent));
}

static void on_joined(const struct redisReply *reply, void *arg)
{
	struct people_op *op = arg;
	const struct redisReply *ids = redis_at(reply, 1);

	if (redis_reply_error(reply) != NULL) {
		fail(op, redis_reply_error(reply));
		return;
	}
	scanned(op, redis_text(redis_at(reply, 0)));
	for (size_t i = 0; i < redis_count(ids); i++) {
		if (!op->subtree) {
			take(op, redis_text(redis_at(ids, i)));
			continue;
		}
		buf_add_bytes(&op->joined, redis_text(redis_at(ids, i)));
		buf_add_char(&op->joined, '\n');
	}
	if (op->joined.len > 0)
		ask_places(op);
	else
		go_on(op);
}

static void on_home(const struct redisReply *reply, void *arg)
{
	struct people_op *op = arg;
	const struct redisReply *fields = redis_at(reply, 1);

	if (redis_reply_error(reply) != NULL) {
		fail(op, redis_reply_error(reply));
		return;
	}
	scanned(op, redis_text(redis_at(reply, 0)));
	for (size_t i = 0; i + 1 < redis_count(fields); i += 2)
		take(op, redis_text(redis_at(fields, i)));
	go_on(op);
}

static void scan(struct people_op *op)
{
	struct bytes team = bytes_of(op->teams[op->team_at].id);
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, op->part == PART_HOME ? "HSCAN" : "SSCAN");
	if (op->part == PART_HOME)
		key_emps(&key, team);
	else
		key_org_of(&key, "members", team);
	redis_arg_key(&a, &key);
	redis_arg(&a, op->scan.len > 0 ? buf_bytes(&op->scan) : BYTES_LIT("0"));
	redis_arg_str(&a, "COUNT");
	redis_arg_i64(&a, op->counting || op->wanted - op->count > PAGE ? PAGE : op->wanted - op->count);
	buf_release(&key);
	enum redis_sent sent =
		redis_query(op->app->redis, &a, op->part == PART_HOME ? on_home : on_joined, op);
	if (sent != REDIS_SENT)
		fail(op, redis_sent_error(sent));
}

/* ---- teams ---- */

/* Adds a team; one that the walk should not have come to has nobody. */
static void add_team(struct people_op *op, const struct team_node *node)
{
	bool within = !op->subtree || bytes_eq(node->id, bytes_of(op->top));

	for (size_t i = 0; i < node->ancestor_count && !within; i++)
		within = bytes_eq(node->ancestors[i].id, bytes_of(op->top));
	if (!within)
		op->shape = UINT64_MAX; /* the picture is behind, and who is elsewhere by it may be nowhere */
	struct team *team = &op->teams[op->team_count++];
	*team = (struct team){.employees = within ? node->employees : 0, .joined = within ? node->joined : 0};
	bytes_copy(team->id, sizeof(team->id), node->id);
}

static void on_looked(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	struct people_op *op = arg;

	(void)last;
	if (error != NULL) {
		fail(op, error);
		return;
	}
	op->team_at = op->team_count = 0;
	for (size_t i = 0; i < count && op->team_count < TEAM_READ_MAX; i++) {
		bool gone = nodes[i].refused == 'P' && bytes_eq(nodes[i].id, bytes_of(op->top));
		if (nodes[i].refused == 'C' || gone) {
			refuse(op, nodes[i].refused, nodes[i].id);
			return;
		}
		add_team(op, &nodes[i]);
	}
	go_on(op);
}

/* Where the walk goes on: at the path, or behind it. */
static const struct dept *next_team(struct people_op *op)
{
	const struct dept *top = tree_find(op->app->tree, bytes_of(op->top)), *at;
	bool exact;

	if (top == NULL)
		return NULL;
	at = walk_find(op->app->tree, top, buf_bytes(&op->path), &exact);
	if (exact && op->part != PART_NEXT)
		return at;
	op->part = PART_HOME;
	buf_clear(&op->scan);
	return exact ? tree_next(top, at) : at;
}

static void visited(const struct people_op *op, const struct dept *d)
{
	if (op->visit != NULL)
		op->visit(d, op->visit_arg);
}

/* A move may take people from what is counted to what is not, and back. */
static bool count_again(struct people_op *op)
{
	if (!op->counting || op->shape == tree_shape(op->app->tree) || ++op->tries == TRIES_MAX)
		return false;
	op->count = 0;
	visited(op, NULL);
	op->team_at = op->team_count = 0;
	op->part = PART_HOME;
	buf_clear(&op->path);
	start(op);
	return true;
}

static void look(struct people_op *op)
{
	const struct dept *at = next_team(op), *top = tree_find(op->app->tree, bytes_of(op->top));
	struct bytes ids[TEAM_READ_MAX];
	size_t count = 0;

	if (top == NULL && op->top[0] != '\0') {
		refuse(op, 'P', bytes_of(op->top)); /* removed since it was looked at */
		return;
	}
	for (; at != NULL && count < TEAM_READ_MAX; at = tree_next(top, at)) {
		ids[count++] = bytes_of(at->id);
		visited(op, at);
	}
	op->more = at != NULL;
	if (count == 0) {
		if (!count_again(op))
			give_page(op, true);
		return;
	}
	team_read_people(op->app->team_reads, ids, count, on_looked, op);
}

/* Notes where the present team stands; false when it has left the subtree. */
static bool enter_team(struct people_op *op)
{
	const struct tree *tree = op->app->tree;
	const struct dept *top = tree_find(tree, bytes_of(op->top));
	const struct dept *at = tree_find(tree, bytes_of(op->teams[op->team_at].id));

	if (!op->subtree)
		return true;
	if (!walk_within(top, at))
		return false;
	walk_path(&op->path, top, at);
	return true;
}

static void leave_team(struct people_op *op)
{
	forget_seen(op);
	op->part = PART_NEXT;
	if (++op->team_at < op->team_count)
		op->part = PART_HOME;
}

/* Goes over all that needs no question. */
static void skip(struct people_op *op)
{
	while (op->team_at < op->team_count) {
		const struct team *team = &op->teams[op->team_at];
		if (op->part == PART_HOME && op->scan.len == 0 && !enter_team(op))
			leave_team(op);
		else if (op->part == PART_HOME && team->employees > 0 && !op->counting)
			return;
		else if (op->part == PART_JOINED && team->joined > 0)
			return;
		else if (op->part == PART_NEXT)
			leave_team(op);
		else {
			op->count += op->counting && op->part == PART_HOME ? team->employees : 0;
			scanned(op, BYTES_LIT("0"));
		}
	}
}

static void go_on(struct people_op *op)
{
	skip(op);
	bool teams_left = op->team_at < op->team_count;
	bool full = !op->counting && (op->count >= op->wanted || op->steps >= STEPS_MAX);
	if ((!teams_left && !op->more) || full) {
		if (!count_again(op))
			give_page(op, !teams_left && !op->more);
		return;
	}
	op->steps++;
	if (teams_left)
		scan(op);
	else
		look(op);
}

/* ---- starts ---- */

static void on_synced(bool ok, void *arg)
{
	struct people_op *op = arg;

	op->shape = tree_shape(op->app->tree);
	if (ok)
		look(op);
	else
		fail(op, WALK_BEHIND);
}

static void on_top(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	struct people_op *op = arg;

	if (error != NULL)
		fail(op, error);
	else if (count > 0 && !nodes[0].known)
		refuse(op, nodes[0].refused, nodes[0].id);
	else if (op->subtree)
		tree_sync(op->app->tree, last, on_synced, op);
	else
		on_looked(nodes, count, last, NULL, op);
}

static void start(struct people_op *op)
{
	struct bytes top = bytes_of(op->top);

	team_read_people(op->app->team_reads, &top, top.n > 0, on_top, op);
}

static struct people_op *op_new(
	struct app *app, struct bytes team, bool subtree, team_people_cb fn, void *arg)
{
	struct people_op *op = xcalloc(1, sizeof(*op));

	op->app = app;
	op->fn = fn;
	op->arg = arg;
	op->subtree = subtree;
	op->part = PART_HOME;
	bytes_copy(op->top, sizeof(op->top), team);
	return op;
}

/* ---- lists ---- */

static bool split_cursor(
	struct bytes cursor, struct bytes *ret_path, enum part *ret_part, struct bytes *ret_scan)
{
	struct bytes f[2] = {{"", 0}, {"", 0}};
	int64_t scan;

	if (bytes_split(cursor, '/', f, 2) != 2 || f[1].n == 0)
		return false;
	*ret_path = f[0];
	*ret_part = (enum part)f[1].p[0];
	*ret_scan = (struct bytes){f[1].p + 1, f[1].n - 1};
	return walk_path_valid(f[0]) &&
	       (*ret_part == PART_HOME || *ret_part == PART_JOINED || *ret_part == PART_NEXT) &&
	       (ret_scan->n == 0 || (bytes_to_i64(*ret_scan, &scan) && scan >= 0));
}

bool team_people_cursor_valid(struct bytes cursor)
{
	struct bytes path, scan;
	enum part part;

	return cursor.n == 0 || bytes_eq(cursor, BYTES_LIT("0")) || split_cursor(cursor, &path, &part, &scan);
}

void team_people_list(struct app *app, const struct people_ask *ask, team_people_cb fn, void *arg)
{
	struct people_op *op = op_new(app, ask->team, ask->subtree, fn, arg);
	struct bytes path, scan;
	enum part part;

	op->wanted = ask->count;
	if (split_cursor(ask->cursor, &path, &part, &scan)) {
		op->part = part;
		buf_add_bytes(&op->path, path);
		buf_add_bytes(&op->scan, scan);
	}
	start(op);
}

/* ---- counts ---- */

struct count_op {
	void (*fn)(int64_t people, const char *error, void *arg);
	void *arg;
};

static void on_counted(const struct people_page *page, const char *error, void *arg)
{
	struct count_op *op = arg;

	if (page->refused == 'C')
		error = "CORRUPT the tree is damaged there: TEAM.CHECK";
	else if (page->refused == 'P')
		error = "UNKNOWN the department has been removed meanwhile";
	op->fn(page->count, error, op->arg);
	free(op);
}

void team_people_count(struct app *app, struct bytes team, team_visit_cb visit,
	void (*fn)(int64_t people, const char *error, void *arg), void *arg)
{
	struct count_op *op = xcalloc(1, sizeof(*op));

	*op = (struct count_op){.fn = fn, .arg = arg};
	struct people_op *people = op_new(app, team, true, on_counted, op);
	people->counting = true;
	people->visit = visit;
	people->visit_arg = arg;
	start(people);
}
