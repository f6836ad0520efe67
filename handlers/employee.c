/* SPDX-License-Identifier: MIT */
#include "handlers/employee.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "persist/batch.h"
#include "persist/directory.h"
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
	case 'U':
		set_end(op, "UNKNOWN no such employee");
		return;
	default:
		set_end(op, redis_error_text(rest));
	}
}

static void add_maps(struct redis_args *keys, struct buf *scratch, struct bytes dept, int32_t today)
{
	key_emps(scratch, dept);
	redis_arg_key(keys, scratch);
	for (int32_t day = today; day <= today + 1; day++) {
		key_day(scratch, dept, day);
		redis_arg_key(keys, scratch);
	}
}

static void set_step(struct set_op *op)
{
	struct app *app = op->call->app;
	struct redis_args *keys, *args;
	struct buf scratch = BUF_INIT;
	struct bytes old = directory_peek(app->directory, op->id);
	struct bytes new = op->dept.n > 0 ? op->dept : old.n > 0 ? old : UNASSIGNED;
	int32_t today = app_today();

	bytes_copy(op->believed, sizeof(op->believed), old);
	bytes_copy(op->new_dept, sizeof(op->new_dept), new);
	new = bytes_of(op->new_dept);
	old = bytes_of(op->believed);
	batch_add_begin(app->employees, &keys, &args);
	key_dir(&scratch, op->id);
	redis_arg_key(keys, &scratch);
	key_org_of(&scratch, "dept", new);
	redis_arg_key(keys, &scratch);
	add_maps(keys, &scratch, new, today);
	add_maps(keys, &scratch, old.n > 0 ? old : new, today);
	key_journal(&scratch, keys_partition_of(new));
	redis_arg_key(keys, &scratch);

	redis_arg(args, op->id);
	redis_arg(args, op->name);
	redis_arg_str(args, op->named ? "1" : "0");
	redis_arg(args, old);
	redis_arg(args, new);
	record_employee_head(&scratch, op->id, new, clock_wall_ms());
	redis_arg_key(args, &scratch);
	redis_arg_str(args, op->must_exist ? "1" : "0");
	buf_release(&scratch);
	batch_add_end(app->employees, on_set, op);
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
	if (name.p == NULL)
		op->name = (struct bytes){"", 0};
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

static void on_got(const struct redisReply *reply, void *arg)
{
	struct call *call = arg;
	struct bytes home = {0};
	struct employee_record record;

	if (redis_reply_error(reply) != NULL) {
		(void)call_fail(call, "%s", redis_reply_error(reply));
	} else if (redis_is_null(reply) || !record_parse_employee(redis_text(reply), &record)) {
		/* Moved or removed since the look-up; the next one sees where to. */
		directory_forget(call->app->directory, call->argv[1]);
		(void)call_fail(
			call, "UNKNOWN no such employee '%.*s'", (int)call->argv[1].n, call->argv[1].p);
	} else if (employee_home(call, &home)) {
		reply_map(&call->reply, 3);
		reply_field_bulk(&call->reply, "id", call->argv[1]);
		reply_field_bulk(&call->reply, "name", record.name);
		reply_field_bulk(&call->reply, "dept", home);
	}
	call_finish(call);
}

enum verdict employee_get_exec(struct call *call)
{
	struct redis_args a;
	struct buf key = BUF_INIT;
	struct bytes home;

	if (!employee_home(call, &home))
		return CALL_DONE;
	redis_args_init(&a);
	redis_arg_str(&a, "HGET");
	key_emps(&key, home);
	redis_arg_key(&a, &key);
	redis_arg(&a, call->argv[1]);
	buf_release(&key);
	enum redis_sent sent = redis_query(call->app->redis, &a, on_got, call);
	return sent == REDIS_SENT ? CALL_WAIT : call_fail(call, "%s", redis_sent_error(sent));
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
	add_maps(&a, &scratch, home, app_today());
	key_journal(&scratch, keys_partition_of(home));
	redis_arg_key(&a, &scratch);
	redis_arg(&a, id);
	redis_arg(&a, home);
	record_removed(&scratch, id, home, clock_wall_ms());
	redis_arg_key(&a, &scratch);
	buf_release(&scratch);
	return redis_eval(app->redis, SCRIPT_EMPLOYEE_REMOVE, 5, &a, on_removed, op);
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
