/* SPDX-License-Identifier: MIT */
/* Who is in which team: the home department, which EMPLOYEE.SET and MOVE say, and the teams joined besides.
 */
#include "handlers/team.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "handlers/team_people.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/team_read.h"
#include "persist/tree.h"

#define JOINED_MAX 500 /* teams that one employee may have joined */

static enum verdict unknown_employee(struct call *call, struct bytes id)
{
	return call_fail(call, "UNKNOWN no such employee '%.*s'", (int)id.n, id.p);
}

static enum verdict sent_verdict(struct call *call, enum redis_sent sent)
{
	return sent == REDIS_SENT ? CALL_WAIT : call_fail(call, "%s", redis_sent_error(sent));
}

/* ---- TEAM.JOIN and TEAM.LEAVE ---- */

static void on_changed(const struct redisReply *reply, void *arg)
{
	struct call *call = arg;
	struct bytes line = redis_text(reply);

	if (redis_reply_error(reply) != NULL) {
		(void)call_fail(call, "%s", redis_reply_error(reply));
		call_finish(call);
		return;
	}
	switch (line.n > 0 ? line.p[0] : '?') {
	case 'O':
		tree_doorbell(call->app->tree);
		app_journalled(call->app, keys_org());
		reply_status(&call->reply, "OK");
		break;
	case 'U':
		(void)unknown_employee(call, call->argv[2]);
		break;
	case 'H':
		(void)call_fail(call, "CONFLICT the team is the employee's home department: EMPLOYEE.MOVE");
		break;
	case 'F':
		(void)call_fail(
			call, "CONFLICT the employee has joined %d teams, which is the most", JOINED_MAX);
		break;
	default:
		(void)team_refuse(call, call->argv[1], line);
	}
	call_finish(call);
}

static enum verdict change(struct call *call, const char *what)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	if (!check_dept(call, call->argv[1]) || !check_employee(call, call->argv[2]))
		return CALL_DONE;
	redis_args_init(&a);
	key_org_of(&key, "members", call->argv[1]);
	redis_arg_key(&a, &key);
	key_dir(&key, call->argv[2]);
	redis_arg_key(&a, &key);
	key_org(&key, "");
	redis_arg_key(&a, &key);
	redis_arg_str(&a, what);
	redis_arg(&a, call->argv[1]);
	redis_arg(&a, call->argv[2]);
	redis_arg_i64(&a, clock_wall_ms());
	redis_arg_i64(&a, JOINED_MAX);
	buf_release(&key);
	return sent_verdict(call, redis_eval(call->app->redis, SCRIPT_TEAM_MEMBER, 2, &a, on_changed, call));
}

enum verdict team_join_exec(struct call *call)
{
	return change(call, "join");
}

enum verdict team_leave_exec(struct call *call)
{
	return change(call, "leave");
}

/* ---- TEAM.MEMBERS ---- */

static void on_members(const struct people_page *page, const char *error, void *arg)
{
	struct call *call = arg;
	struct reply *r = &call->reply;

	if (error != NULL) {
		(void)call_fail(call, "%s", error);
	} else if (page->refused != 0) {
		(void)team_refuse(call, page->about, (struct bytes){&page->refused, 1});
	} else {
		reply_array(r, 2);
		reply_bulk(r, page->cursor);
		reply_array(r, (size_t)page->count);
		for (struct bytes ids = page->ids; ids.n > 0;)
			reply_bulk(r, bytes_cut(&ids, '\n'));
	}
	call_finish(call);
}

enum verdict team_members_exec(struct call *call)
{
	struct people_ask ask = {.team = call->argv[1]};
	struct bytes count = {0}, cursor = {0};
	const struct option options[] = {
		{"SUBTREE", NULL, &ask.subtree}, {"CURSOR", &cursor, NULL}, {"COUNT", &count, NULL}, {0}};

	if (!check_dept(call, ask.team) || options_read(call, 2, options) != 0 ||
		!check_count(call, count, &ask.count))
		return CALL_DONE;
	if (cursor.p != NULL && !team_people_cursor_valid(cursor))
		return call_fail(
			call, "ERR invalid CURSOR, expected one that TEAM.MEMBERS gave for this team");
	ask.cursor = cursor;
	team_people_list(call->app, &ask, on_members, call);
	return CALL_WAIT;
}

/* ---- what one employee's teams say: the home comes first ---- */

/* The first team above which the tree is damaged, or NULL. */
static const struct team_node *damaged(const struct team_node *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (nodes[i].refused == 'C')
			return &nodes[i];
	}
	return NULL;
}

/* The end of a call whose argument is the employee. */
static void finish(struct call *call, const struct team_node *nodes, size_t count, const char *error,
	void (*write)(struct call *call, const struct team_node *nodes, size_t count))
{
	const struct team_node *wrong = damaged(nodes, count);

	if (error != NULL)
		(void)call_fail(call, "%s", error);
	else if (count == 0)
		(void)unknown_employee(call, call->argv[1]);
	else if (wrong != NULL)
		(void)team_refuse(call, wrong->id, BYTES_LIT("C"));
	else
		write(call, nodes, count);
	call_finish(call);
}

static int compare_bytes(struct bytes a, struct bytes b)
{
	int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

/* ---- TEAM.OF ---- */

static int by_id(const void *a, const void *b)
{
	const struct team_node *const *x = a, *const *y = b;

	return compare_bytes((*x)->id, (*y)->id);
}

static void reply_line_entry(struct reply *r, struct bytes id, struct bytes name, struct bytes manager)
{
	reply_map(r, 3);
	reply_field_bulk(r, "id", id);
	reply_field_bulk(r, "name", name);
	reply_field_bulk(r, "manager", manager);
}

static void reply_team(struct reply *r, const struct team_node *team, bool home)
{
	struct buf path = BUF_INIT;

	team_node_path(&path, team);
	reply_map(r, 5);
	reply_field_bulk(r, "team", team->id);
	reply_field_bulk(r, "name", team->name);
	reply_field_int(r, "home", home);
	reply_field_bulk(r, "path", buf_bytes(&path));
	reply_str(r, "line");
	reply_array(r, team->ancestor_count + 1);
	reply_line_entry(r, team->id, team->name, team->manager);
	for (size_t i = 0; i < team->ancestor_count; i++) {
		const struct team_ancestor *a = &team->ancestors[i];
		reply_line_entry(r, a->id, a->name, a->manager);
	}
	buf_release(&path);
}

/* The home, then the others by their ids; without those that are being removed. */
static void write_of(struct call *call, const struct team_node *nodes, size_t count)
{
	const struct team_node **teams = xcalloc(count, sizeof(*teams));
	size_t known = 0;

	for (size_t i = 0; i < count; i++) {
		if (nodes[i].known)
			teams[known++] = &nodes[i];
	}
	size_t homes = nodes[0].known;
	qsort(teams + homes, known - homes, sizeof(*teams), by_id);
	reply_array(&call->reply, known);
	for (size_t i = 0; i < known; i++)
		reply_team(&call->reply, teams[i], i < homes);
	free(teams);
}

static void on_of(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	(void)last;
	finish(arg, nodes, count, error, write_of);
}

enum verdict team_of_exec(struct call *call)
{
	if (!check_employee(call, call->argv[1]))
		return CALL_DONE;
	team_read_of(call->app->team_reads, call->argv[1], NULL, 0, on_of, call);
	return CALL_WAIT;
}

/* ---- TEAM.SUPERVISORS ---- */

struct supervisor {
	struct bytes employee, team;
	size_t distance;
};

static int by_nearness(const void *a, const void *b)
{
	const struct supervisor *x = a, *y = b;

	if (x->distance != y->distance)
		return x->distance < y->distance ? -1 : 1;
	int order = compare_bytes(x->employee, y->employee);
	return order != 0 ? order : compare_bytes(x->team, y->team);
}

static int by_employee(const void *a, const void *b)
{
	const struct supervisor *x = a, *y = b;
	int order = compare_bytes(x->employee, y->employee);

	return order != 0 ? order : by_nearness(a, b);
}

/* All managers from the teams up to the root, the employee himself left out; returns how many. */
static size_t list_managers(
	struct supervisor *list, struct bytes employee, const struct team_node *nodes, size_t count)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		if (!nodes[i].known)
			continue;
		list[found] = (struct supervisor){nodes[i].manager, nodes[i].id, 0};
		found += nodes[i].manager.n > 0 && !bytes_eq(nodes[i].manager, employee);
		for (size_t up = 0; up < nodes[i].ancestor_count; up++) {
			const struct team_ancestor *a = &nodes[i].ancestors[up];
			list[found] = (struct supervisor){a->manager, a->id, up + 1};
			found += a->manager.n > 0 && !bytes_eq(a->manager, employee);
		}
	}
	return found;
}

/* Keeps of each manager what is nearest. */
static size_t keep_nearest(struct supervisor *list, size_t count)
{
	size_t kept = 0;

	if (count == 0)
		return 0;
	qsort(list, count, sizeof(*list), by_employee);
	for (size_t i = 1; i < count; i++) {
		if (!bytes_eq(list[i].employee, list[kept].employee))
			list[++kept] = list[i];
	}
	qsort(list, kept + 1, sizeof(*list), by_nearness);
	return kept + 1;
}

static void write_supervisors(struct call *call, const struct team_node *nodes, size_t count)
{
	struct reply *r = &call->reply;
	size_t most = 1;

	for (size_t i = 0; i < count; i++)
		most += nodes[i].ancestor_count + 1;
	struct supervisor *list = xcalloc(most, sizeof(*list));
	size_t found = keep_nearest(list, list_managers(list, call->argv[1], nodes, count));
	reply_array(r, found);
	for (size_t i = 0; i < found; i++) {
		reply_map(r, 3);
		reply_field_bulk(r, "employee", list[i].employee);
		reply_field_bulk(r, "team", list[i].team);
		reply_field_int(r, "distance", (int64_t)list[i].distance);
	}
	free(list);
}

static void on_supervisors(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	(void)last;
	finish(arg, nodes, count, error, write_supervisors);
}

enum verdict team_supervisors_exec(struct call *call)
{
	if (!check_employee(call, call->argv[1]))
		return CALL_DONE;
	team_read_of(call->app->team_reads, call->argv[1], NULL, 0, on_supervisors, call);
	return CALL_WAIT;
}

/* ---- TEAM.ISMEMBER ---- */

static bool is_in(const struct team_node *node, struct bytes team, bool subtree)
{
	bool in = node->known && bytes_eq(node->id, team);

	for (size_t i = 0; subtree && i < node->ancestor_count && !in; i++)
		in = bytes_eq(node->ancestors[i].id, team);
	return in;
}

/* The first node is the team's, the others are the employee's. */
static void on_ismember(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	struct call *call = arg;
	bool subtree = call->argc == 4, member = false;
	const struct team_node *wrong = subtree ? damaged(nodes, count) : NULL;

	(void)last;
	for (size_t i = 1; i < count && !member; i++)
		member = is_in(&nodes[i], call->argv[1], subtree);
	if (error != NULL)
		(void)call_fail(call, "%s", error);
	else if (count == 0)
		(void)unknown_employee(call, call->argv[2]);
	else if (!nodes[0].known)
		(void)team_refuse(call, call->argv[1], (struct bytes){&nodes[0].refused, 1});
	else if (!member && wrong != NULL)
		(void)team_refuse(call, wrong->id, BYTES_LIT("C"));
	else
		reply_int(&call->reply, member);
	call_finish(call);
}

enum verdict team_ismember_exec(struct call *call)
{
	bool subtree = false;
	const struct option options[] = {{"SUBTREE", NULL, &subtree}, {0}};

	if (!check_dept(call, call->argv[1]) || !check_employee(call, call->argv[2]) ||
		options_read(call, 3, options) != 0)
		return CALL_DONE;
	team_read_of(call->app->team_reads, call->argv[2], &call->argv[1], 1, on_ismember, call);
	return CALL_WAIT;
}
