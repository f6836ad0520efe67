/* SPDX-License-Identifier: MIT */
/* The changes of the tree. Each is one script, or begins a job and answers at its end. */
#include "handlers/team.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "handlers/team_touched.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/team_change.h"
#include "persist/team_jobs.h"
#include "persist/tree.h"
#include "rules/name.h"

#define TRIES_MAX   20
#define JOB_WAIT_MS 60000

struct change_op {
	struct call *call;
	struct team_change change;
	struct buf name, fold;
	int tries;
	char height[24], seen[48];
};

static void send(struct change_op *op);

static void op_free(struct change_op *op)
{
	buf_release(&op->name);
	buf_release(&op->fold);
	free(op);
}

static void finish(struct change_op *op)
{
	struct call *call = op->call;

	op_free(op);
	call_finish(call);
}

static void finish_with(struct change_op *op, const char *error)
{
	(void)call_fail(op->call, "%s", error);
	finish(op);
}

/* ---- answers ---- */

#define QUOTED(b) (int)(b).n, (b).p

void team_write_refusal(struct buf *out, const struct config *config, struct bytes id, struct bytes line)
{
	struct bytes rest = {line.p + 1, line.n > 0 ? line.n - 1 : 0};

	switch (line.n > 0 ? line.p[0] : '?') {
	case 'P':
		buf_addf(out, "UNKNOWN no such department '%.*s'", QUOTED(id));
		break;
	case 'C':
		buf_addf(out, "CORRUPT the tree above '%.*s' is damaged: TEAM.CHECK", QUOTED(id));
		break;
	case 'U':
		buf_addf(out, "UNKNOWN no such parent '%.*s'", QUOTED(id));
		break;
	case 'R':
		buf_addf(out, "CONFLICT the department '%.*s' is retired", QUOTED(id));
		break;
	case 'D':
		buf_addf(out, "ERR too deep, expected at most %lld levels", (long long)config->max_depth);
		break;
	case 'X':
		buf_addf(out, "EXISTS the id is taken by a department with another parent, name or manager");
		break;
	case 'N':
		buf_addf(out, "CONFLICT the name is taken by '%.*s' under the same parent", QUOTED(rest));
		break;
	case 'V':
		buf_addf(out, "CONFLICT the version is %.*s now", QUOTED(rest));
		break;
	case 'Y':
		buf_addf(out, "CONFLICT a cycle: the new parent is the department itself or below it");
		break;
	case 'E':
		buf_addf(out, "CONFLICT it has children, expected CASCADE, LIFT or RETIRE");
		break;
	case 'M':
		buf_addf(out, "CONFLICT it has employees, expected CASCADE, LIFT or RETIRE");
		break;
	case 'S':
		buf_addf(out, "CONFLICT department 0 takes those who have none and stays");
		break;
	case 'B':
		buf_addf(out,
			"BUSY another change of this part of the tree is under way%s%.*s, nothing was "
			"done; try again",
			rest.n > 0 ? ", job " : "", QUOTED(rest));
		break;
	default:
		buf_add_str(out, redis_error_text(rest));
	}
}

enum verdict team_refuse(struct call *call, struct bytes id, struct bytes line)
{
	struct buf text = BUF_INIT;

	team_write_refusal(&text, call->app->config, id, line);
	(void)call_fail(call, "%.*s", (int)text.len, text.data);
	buf_release(&text);
	return CALL_DONE;
}

/* Whose fault the letter tells of. */
static struct bytes blamed(const struct change_op *op, struct bytes line)
{
	char letter = line.n > 0 ? line.p[0] : '?';
	bool of_parent = letter == 'U' || letter == 'R' || (letter == 'C' && op->change.verb == TEAM_ADD);

	return of_parent ? op->change.parent : op->change.id;
}

static void refuse(struct change_op *op, struct bytes line)
{
	(void)team_refuse(op->call, blamed(op, line), line);
	finish(op);
}

static void done(struct change_op *op, struct bytes id)
{
	struct app *app = op->call->app;

	tree_doorbell(app->tree);
	app_journalled(app, keys_org());
	if (op->change.verb == TEAM_ADD && bytes_eq(op->change.id, BYTES_LIT("*")))
		reply_bulk(&op->call->reply, id);
	else
		reply_status(&op->call->reply, "OK");
	finish(op);
}

/* ---- a job was begun ---- */

static void on_job(const char *phase, struct bytes wrong, void *arg)
{
	struct change_op *op = arg;

	if (phase == NULL)
		finish_with(op, "UNAVAILABLE the change goes on as a job, but its end is not known here: see "
				"TEAM.JOBS, or send it again");
	else if (strcmp(phase, "done") == 0)
		done(op, op->change.id);
	else if (strcmp(phase, "cancelled") == 0)
		finish_with(op, "CONFLICT the change was cancelled");
	else
		refuse(op, wrong);
}

static void wait_for_job(struct change_op *op, struct bytes job)
{
	team_jobs_wait(op->call->app->team_jobs, job, JOB_WAIT_MS, on_job, op);
	team_jobs_wake(op->call->app->team_jobs);
}

/* ---- how deep a subtree is ---- */

static int64_t height_below(const struct dept *top, int64_t most)
{
	int64_t level = 0, deepest = 0;
	const struct dept *at = top;

	while (at != NULL && deepest < most) {
		const struct dept *next = tree_next(top, at);
		/* Down by one, or to a sibling of this one or of one above it. */
		if (next != NULL && next->parent == at)
			level++;
		else
			for (const struct dept *up = at; next != NULL && up->parent != next->parent;
				up = up->parent)
				level--;
		deepest = level > deepest ? level : deepest;
		at = next;
	}
	return deepest;
}

static void on_synced(bool ok, void *arg)
{
	struct change_op *op = arg;
	struct app *app = op->call->app;
	const struct dept *d = tree_find(app->tree, op->change.id);

	if (!ok || ++op->tries > TRIES_MAX) {
		finish_with(op,
			"BUSY the tree changes too fast to see how deep this subtree is, nothing was done; "
			"try again");
		return;
	}
	snprintf(op->height, sizeof(op->height), "%lld",
		(long long)(d != NULL ? height_below(d, app->config->max_depth) : 0));
	op->change.height = bytes_of(op->height);
	op->change.seen = bytes_of(op->seen);
	send(op);
}

static void measure(struct change_op *op, struct bytes last)
{
	bytes_copy(op->seen, sizeof(op->seen), last);
	tree_sync(op->call->app->tree, bytes_of(op->seen), on_synced, op);
}

/* ---- DRYRUN ---- */

static void on_touched(const struct team_touched *touched, const char *error, void *arg)
{
	struct change_op *op = arg;
	struct reply *r = &op->call->reply;

	if (error != NULL) {
		finish_with(op, error);
		return;
	}
	reply_map(r, 5);
	reply_field_int(r, "legal", 1);
	reply_field_int(r, "nodes", touched->nodes);
	reply_field_int(r, "employees", touched->employees);
	reply_field_int(r, "supervisors", touched->supervisors);
	reply_field_int(r, "job", touched->job);
	finish(op);
}

/* `rest` is <nodes>|<1 when it would be a job>, or empty for a change of one node where it stands. */
static void may_be(struct change_op *op, struct bytes rest)
{
	struct team_touched touched = {.nodes = 1};
	struct bytes f[2];
	int64_t job = 0;

	if (bytes_split(rest, '|', f, 2) == 2 && bytes_to_i64(f[0], &touched.nodes) &&
		bytes_to_i64(f[1], &job))
		touched.job = job != 0;
	team_touched_count(op->call, &op->change, &touched, on_touched, op);
}

/* ---- the script ---- */

static void on_answer(struct bytes line, const char *error, void *arg)
{
	struct change_op *op = arg;
	struct bytes rest = {line.p + 1, line.n > 0 ? line.n - 1 : 0};

	if (error != NULL) {
		finish_with(op, error);
		return;
	}
	switch (line.n > 0 ? line.p[0] : '?') {
	case 'O':
		if (op->change.dry)
			may_be(op, BYTES_LIT("0|0"));
		else
			done(op, rest);
		return;
	case 'J':
		wait_for_job(op, rest);
		return;
	case 'K':
		may_be(op, rest);
		return;
	case 'H':
		measure(op, rest);
		return;
	default:
		refuse(op, line);
	}
}

static void send(struct change_op *op)
{
	team_change_send(op->call->app->team_changes, &op->change, app_today(), on_answer, op);
}

/* ---- arguments ---- */

/* Words that changes have in common. */
struct words {
	struct bytes version;
	bool dry;
};

static bool check_version(struct call *call, struct bytes version)
{
	int64_t n;

	if (version.p == NULL || (bytes_to_i64(version, &n) && n >= 1))
		return true;
	(void)call_fail(call, "ERR invalid IF, expected a version: a number from 1");
	return false;
}

/* "-" stands for none. */
static bool check_parent(struct call *call, struct bytes *parent)
{
	if (!bytes_eq(*parent, BYTES_LIT("-")))
		return check_dept(call, *parent);
	*parent = (struct bytes){"", 0};
	return true;
}

static bool check_manager(struct call *call, struct bytes *manager)
{
	if (manager->n > 0 && !bytes_eq(*manager, BYTES_LIT("-")))
		return check_employee(call, *manager);
	*manager = (struct bytes){"", 0};
	return true;
}

/* Takes the change, with its name in the form in which names are kept. */
static enum verdict start(struct call *call, const struct team_change *change, const struct words *words)
{
	struct change_op *op = xcalloc(1, sizeof(*op));

	op->call = call;
	op->change = *change;
	op->change.dry = words->dry;
	op->change.version = words->version;
	if (change->name.n > 0) {
		if (!check_name(call, change->name)) {
			op_free(op);
			return CALL_DONE;
		}
		if (!name_normalise(&op->name, change->name)) {
			op_free(op);
			return call_fail(call, "ERR invalid name, expected at most %d bytes in normal form C",
				NAME_MAX_BYTES);
		}
		op->change.name = buf_bytes(&op->name);
		name_fold(&op->fold, op->change.name);
		op->change.fold = buf_bytes(&op->fold);
	}
	send(op);
	return CALL_WAIT;
}

enum verdict team_add_exec(struct call *call)
{
	struct team_change c = {.verb = TEAM_ADD, .id = call->argv[1], .parent = call->argv[2]};
	struct words words = {0};
	const struct option options[] = {
		{"NAME", &c.name, NULL}, {"MANAGER", &c.manager, NULL}, {"DRYRUN", NULL, &words.dry}, {0}};

	if ((!bytes_eq(c.id, BYTES_LIT("*")) && !check_dept(call, c.id)) ||
		options_read(call, 3, options) != 0 || !check_parent(call, &c.parent) ||
		!check_manager(call, &c.manager))
		return CALL_DONE;
	return start(call, &c, &words);
}

/* Changes of one node, with IF and DRYRUN behind `from` fixed arguments. */
static enum verdict start_set(struct call *call, struct team_change *c, int from)
{
	struct words words = {0};
	const struct option options[] = {{"IF", &words.version, NULL}, {"DRYRUN", NULL, &words.dry}, {0}};

	c->id = call->argv[1];
	if (!check_dept(call, c->id) || options_read(call, from, options) != 0 ||
		!check_version(call, words.version))
		return CALL_DONE;
	return start(call, c, &words);
}

enum verdict team_rename_exec(struct call *call)
{
	struct team_change c = {.verb = TEAM_RENAME, .name = call->argv[2]};

	if (c.name.n == 0)
		return call_fail(call, "ERR invalid name, expected UTF-8 of 1 to %d bytes", NAME_MAX_BYTES);
	return start_set(call, &c, 3);
}

enum verdict team_manager_exec(struct call *call)
{
	struct team_change c = {.verb = TEAM_MANAGER, .manager = call->argv[2]};

	return check_manager(call, &c.manager) ? start_set(call, &c, 3) : CALL_DONE;
}

enum verdict team_move_exec(struct call *call)
{
	struct team_change c = {.verb = TEAM_MOVE, .parent = call->argv[2]};

	return check_parent(call, &c.parent) ? start_set(call, &c, 3) : CALL_DONE;
}

enum verdict team_restore_exec(struct call *call)
{
	struct team_change c = {.verb = TEAM_RESTORE};

	return start_set(call, &c, 2);
}

enum verdict team_remove_exec(struct call *call)
{
	struct team_change c = {.verb = TEAM_REMOVE, .id = call->argv[1]};
	struct words words = {0};
	bool cascade = false, lift = false, retire = false;
	const struct option options[] = {{"CASCADE", NULL, &cascade}, {"LIFT", NULL, &lift},
		{"RETIRE", NULL, &retire}, {"IF", &words.version, NULL}, {"DRYRUN", NULL, &words.dry}, {0}};

	if (!check_dept(call, c.id) || options_read(call, 2, options) != 0 ||
		!check_version(call, words.version))
		return CALL_DONE;
	if (cascade + lift + retire > 1)
		return call_fail(call, "ERR syntax error, expected one of CASCADE, LIFT and RETIRE");
	if (retire)
		c.verb = TEAM_RETIRE;
	else if (cascade || lift)
		c.mode = cascade ? BYTES_LIT("cascade") : BYTES_LIT("lift");
	return start(call, &c, &words);
}
