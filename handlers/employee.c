/* SPDX-License-Identifier: MIT */
#include "handlers/employee.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "persist/directory.h"
#include "persist/employee_set.h"
#include "persist/keys.h"
#include "persist/record.h"
#include "persist/redis.h"

#define TRIES_MAX 5

/* The department of those who have none. */
#define UNASSIGNED BYTES_LIT("0")

static void on_prepared(struct bytes dept, const char *error, void *arg)
{
	struct call *call = arg;

	(void)dept; /* the directory has it now */
	/* The handlers' own pointer serves as the note why the look-up failed, until the call starts. */
	call->op = (void *)(uintptr_t)error;
	call_prepared(call);
}

bool employee_prepare(struct call *call)
{
	struct app *app = call->app;

	if (!person_id_valid(call->argv[1]) || directory_touch(app->directory, call->argv[1]))
		return true;
	directory_lookup(app->directory, call->argv[1], on_prepared, call);
	return false;
}

bool employee_home(struct call *call, struct bytes *ret_dept)
{
	const char *failed = call->op;

	call->op = NULL;
	if (!check_employee(call, call->argv[1]))
		return false;
	*ret_dept = directory_peek(call->app->directory, call->argv[1]);
	if (ret_dept->n > 0)
		return true;
	if (failed != NULL)
		(void)call_fail(call, "%s", failed);
	else
		(void)call_fail(
			call, "UNKNOWN no such employee '%.*s'", (int)call->argv[1].n, call->argv[1].p);
	return false;
}

static void end(struct call *call, const char *error)
{
	if (error != NULL)
		(void)call_fail(call, "%s", error);
	else
		reply_status(&call->reply, "OK");
	call_finish(call);
}

/* ---- SET and MOVE ---- */

struct set_op {
	struct call *call;
	struct bytes id, name, dept; /* dept.n == 0: where he is, or unassigned */
	bool named, must_exist;
	int tries;
	char believed[ID_MAX + 1];
	char new_dept[ID_MAX + 1];
};

static void set_step(struct set_op *op);

static void set_end(struct set_op *op, const char *error)
{
	end(op->call, error);
	free(op);
}

static void on_set(struct bytes line, const char *error, void *arg)
{
	struct set_op *op = arg;
	struct app *app = op->call->app;
	struct bytes rest = {line.p + 1, line.n > 0 ? line.n - 1 : 0};

	if (error != NULL) {
		set_end(op, error);
		return;
	}
	switch (line.n > 0 ? line.p[0] : '?') {
	case 'O':
		directory_put(app->directory, op->id, bytes_of(op->new_dept));
		app_journalled(app, keys_partition_of(bytes_of(op->new_dept)));
		set_end(op, NULL);
		return;
	case 'R':
		if (rest.n > 0)
			directory_put(app->directory, op->id, rest);
		else
			directory_forget(app->directory, op->id);
		if (++op->tries < TRIES_MAX)
			set_step(op);
		else
			set_end(op,
				"BUSY the employee is being moved by others, nothing was done; try again");
		return;
	case 'T':
		set_end(op, "UNKNOWN no such department");
		return;
	case 'S':
		set_end(op, "CONFLICT the department is retired, it takes nobody");
		return;
	case 'C':
		set_end(op, "CORRUPT the tree above the department is damaged: TEAM.CHECK");
		return;
	case 'U':
		set_end(op, "UNKNOWN no such employee");
		return;
	default:
		set_end(op, redis_error_text(rest));
	}
}

static void set_step(struct set_op *op)
{
	struct app *app = op->call->app;
	struct bytes old = directory_peek(app->directory, op->id);
	struct bytes home = old.n > 0 ? old : UNASSIGNED;

	bytes_copy(op->believed, sizeof(op->believed), old);
	bytes_copy(op->new_dept, sizeof(op->new_dept), op->dept.n > 0 ? op->dept : home);
	const struct employee_change change = {.id = op->id,
		.name = op->name,
		.named = op->named,
		.believed = bytes_of(op->believed),
		.dept = bytes_of(op->new_dept),
		.must_exist = op->must_exist};
	employee_set_add(app->employees, &change, app_today(), on_set, op);
}

static enum verdict set_start(struct call *call, struct bytes dept, struct bytes name, bool must_exist)
{
	const char *failed = call->op;

	call->op = NULL;
	if (!check_employee(call, call->argv[1]) || (dept.n > 0 && !check_dept(call, dept)) ||
		(name.p != NULL && !check_name(call, name)))
		return CALL_DONE;
	if (failed != NULL)
		return call_fail(call, "%s", failed);
	struct set_op *op = xcalloc(1, sizeof(*op));
	*op = (struct set_op){
		.call = call, .id = call->argv[1], .dept = dept, .name = name, .must_exist = must_exist};
	op->named = name.p != NULL;
	set_step(op);
	return CALL_WAIT;
}

enum verdict employee_set_exec(struct call *call)
{
	struct bytes dept = {0}, name = {0};
	const struct option options[] = {{"DEPT", &dept, NULL}, {"NAME", &name, NULL}, {0}};

	if (options_read(call, 2, options) != 0)
		return CALL_DONE;
	if (dept.p != NULL && !check_dept(call, dept))
		return CALL_DONE;
	return set_start(call, dept, name, false);
}

enum verdict employee_move_exec(struct call *call)
{
	if (!check_dept(call, call->argv[2]))
		return CALL_DONE;
	return set_start(call, call->argv[2], (struct bytes){0}, true);
}

/* ---- GET ---- */

struct get_op {
	struct call *call;
	int tries;
	char home[ID_MAX + 1];
};

static enum redis_sent get_step(struct get_op *op, struct bytes home);

static void get_end(struct get_op *op, const char *error)
{
	struct call *call = op->call;

	if (error != NULL)
		(void)call_fail(call, "%s", error);
	free(op);
	call_finish(call);
}

static void get_unknown(struct get_op *op)
{
	const struct bytes *id = &op->call->argv[1];

	(void)call_fail(op->call, "UNKNOWN no such employee '%.*s'", (int)id->n, id->p);
	get_end(op, NULL);
}

static void on_found(struct bytes dept, const char *error, void *arg)
{
	struct get_op *op = arg;

	if (error != NULL) {
		get_end(op, error);
	} else if (dept.n == 0) {
		get_unknown(op);
	} else {
		enum redis_sent sent = get_step(op, dept);
		if (sent != REDIS_SENT)
			get_end(op, redis_sent_error(sent));
	}
}

static void on_got(const struct redisReply *reply, void *arg)
{
	struct get_op *op = arg;
	struct reply *r = &op->call->reply;
	struct employee_record record;

	if (redis_reply_error(reply) != NULL) {
		get_end(op, redis_reply_error(reply));
	} else if (redis_is_null(reply) && op->tries++ < TRIES_MAX) {
		/* Moved or removed since the look-up. */
		directory_lookup(op->call->app->directory, op->call->argv[1], on_found, op);
	} else if (redis_is_null(reply) || !record_parse_employee(redis_text(reply), &record)) {
		get_unknown(op);
	} else {
		reply_map(r, 3);
		reply_field_bulk(r, "id", op->call->argv[1]);
		reply_field_bulk(r, "name", record.name);
		reply_field_str(r, "dept", op->home);
		get_end(op, NULL);
	}
}

static enum redis_sent get_step(struct get_op *op, struct bytes home)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	bytes_copy(op->home, sizeof(op->home), home);
	redis_args_init(&a);
	redis_arg_str(&a, "HGET");
	key_emps(&key, home);
	redis_arg_key(&a, &key);
	redis_arg(&a, op->call->argv[1]);
	buf_release(&key);
	return redis_query(op->call->app->redis, &a, on_got, op);
}

enum verdict employee_get_exec(struct call *call)
{
	struct bytes home;

	if (!employee_home(call, &home))
		return CALL_DONE;
	struct get_op *op = xcalloc(1, sizeof(*op));
	op->call = call;
	enum redis_sent sent = get_step(op, home);
	if (sent == REDIS_SENT)
		return CALL_WAIT;
	free(op);
	return call_fail(call, "%s", redis_sent_error(sent));
}

/* ---- REMOVE ---- */

struct remove_op {
	struct call *call;
	int tries;
};

static enum redis_sent remove_step(struct remove_op *op, struct bytes home);

static void remove_end(struct remove_op *op, const char *error)
{
	end(op->call, error);
	free(op);
}

static void on_removed(const struct redisReply *reply, void *arg)
{
	struct remove_op *op = arg;
	struct directory *directory = op->call->app->directory;
	struct bytes line = redis_text(reply);
	const char *error = redis_reply_error(reply);

	if (error == NULL && line.n > 1 && line.p[0] == 'R' && ++op->tries < TRIES_MAX) {
		struct bytes now = {line.p + 1, line.n - 1};
		directory_put(directory, op->call->argv[1], now);
		enum redis_sent sent = remove_step(op, now);
		if (sent != REDIS_SENT)
			remove_end(op, redis_sent_error(sent));
		return;
	}
	if (error == NULL && (line.n != 1 || line.p[0] != 'O'))
		error = "UNKNOWN no such employee";
	if (error == NULL) {
		app_journalled(
			op->call->app, keys_partition_of(directory_peek(directory, op->call->argv[1])));
		directory_forget(directory, op->call->argv[1]);
	}
	remove_end(op, error);
}

static enum redis_sent remove_step(struct remove_op *op, struct bytes home)
{
	struct app *app = op->call->app;
	struct bytes id = op->call->argv[1];
	struct redis_args a;
	struct buf scratch = BUF_INIT;

	redis_args_init(&a);
	key_dir(&scratch, id);
	redis_arg_key(&a, &scratch);
	key_emps(&scratch, home);
	redis_arg_key(&a, &scratch);
	for (int32_t day = app_today(); day <= app_today() + 1; day++) {
		key_day(&scratch, home, day);
		redis_arg_key(&a, &scratch);
	}
	key_journal(&scratch, keys_partition_of(home));
	redis_arg_key(&a, &scratch);
	key_org_of(&scratch, "user_teams", id);
	redis_arg_key(&a, &scratch);
	redis_arg(&a, id);
	redis_arg(&a, home);
	record_removed(&scratch, id, home, clock_wall_ms());
	redis_arg_key(&a, &scratch);
	key_org(&scratch, "");
	redis_arg_key(&a, &scratch);
	buf_release(&scratch);
	return redis_eval(app->redis, SCRIPT_EMPLOYEE_REMOVE, 6, &a, on_removed, op);
}

enum verdict employee_remove_exec(struct call *call)
{
	struct bytes home;

	if (!employee_home(call, &home))
		return CALL_DONE;
	struct remove_op *op = xcalloc(1, sizeof(*op));
	op->call = call;
	enum redis_sent sent = remove_step(op, home);
	if (sent == REDIS_SENT)
		return CALL_WAIT;
	free(op);
	return call_fail(call, "%s", redis_sent_error(sent));
}
