/* SPDX-License-Identifier: MIT */
#include "handlers/team.h"

#include <stdlib.h>

#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/team_add.h"
#include "persist/tree.h"

/* ---- TEAM.ADD ---- */

static void on_added(const struct redisReply *reply, void *arg)
{
	struct call *call = arg;
	struct bytes line = redis_text(reply);
	const char *error = redis_reply_error(reply);

	if (error != NULL) {
		(void)call_fail(call, "%s", error);
	} else {
		switch (line.n > 0 ? line.p[0] : '?') {
		case 'O':
			reply_status(&call->reply, "OK");
			tree_doorbell(call->app->tree);
			app_journalled(call->app, keys_org());
			break;
		case 'P':
			(void)call_fail(
				call, "UNKNOWN no such parent '%.*s'", (int)call->argv[2].n, call->argv[2].p);
			break;
		case 'D':
			(void)call_fail(call, "ERR too deep, expected at most %d levels", TEAM_DEPTH_MAX);
			break;
		case 'X':
			(void)call_fail(call, "EXISTS the id is taken by a department with another parent, "
					      "name or manager");
			break;
		default:
			(void)call_fail(call, "ERR the tree above '%.*s' is damaged, nothing was done",
				(int)call->argv[2].n, call->argv[2].p);
		}
	}
	call_finish(call);
}

enum verdict team_add_exec(struct call *call)
{
	struct bytes name = {0}, manager = {0}, parent = call->argv[2];
	const struct option options[] = {{"NAME", &name, NULL}, {"MANAGER", &manager, NULL}, {0}};

	if (!check_dept(call, call->argv[1]) || options_read(call, 3, options) != 0)
		return CALL_DONE;
	if (bytes_eq(parent, BYTES_LIT("-")))
		parent = (struct bytes){"", 0};
	else if (!check_dept(call, parent))
		return CALL_DONE;
	if ((name.p != NULL && !check_name(call, name)) ||
		(manager.p != NULL && manager.n > 0 && !check_employee(call, manager)))
		return CALL_DONE;
	if (name.p == NULL)
		name = call->argv[1];
	if (manager.p == NULL)
		manager = (struct bytes){"", 0};
	enum redis_sent sent = team_add_send(
		call->app->redis, call->argv[1], parent, name, manager, app_today(), on_added, call);
	return sent == REDIS_SENT ? CALL_WAIT : call_fail(call, "%s", redis_sent_error(sent));
}

/* ---- TEAM.GET ---- */

struct get_op {
	struct call *call;
	int64_t employees;
};

static void get_end(struct get_op *op, const char *error)
{
	struct call *call = op->call;

	if (error != NULL)
		(void)call_fail(call, "%s", error);
	free(op);
	call_finish(call);
}

static void on_node(const struct redisReply *reply, void *arg)
{
	static const char *const names[] = {"name", "parent", "path", "manager", "state"};
	struct get_op *op = arg;
	struct reply *r = &op->call->reply;

	if (redis_reply_error(reply) != NULL) {
		get_end(op, redis_reply_error(reply));
		return;
	}
	if (redis_is_null(redis_at(reply, 0))) {
		get_end(op, "UNKNOWN no such department");
		return;
	}
	reply_map(r, 9);
	reply_field_bulk(r, "id", op->call->argv[1]);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		reply_field_bulk(r, names[i], redis_text(redis_at(reply, i)));
	reply_field_int(r, "descendants", redis_int(redis_at(reply, 5)));
	reply_field_int(r, "members", op->employees);
	reply_field_int(r, "version", redis_int(redis_at(reply, 6)));
	get_end(op, NULL);
}

static void on_employees(const struct redisReply *reply, void *arg)
{
	static const char *const fields[] = {
		"name", "parent_id", "path", "manager", "state", "sub", "version"};
	struct get_op *op = arg;
	struct redis_args a;
	struct buf key = BUF_INIT;

	if (redis_reply_error(reply) != NULL) {
		get_end(op, redis_reply_error(reply));
		return;
	}
	op->employees = redis_int(reply);
	redis_args_init(&a);
	redis_arg_str(&a, "HMGET");
	key_org_of(&key, "dept", op->call->argv[1]);
	redis_arg_key(&a, &key);
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		redis_arg_str(&a, fields[i]);
	buf_release(&key);
	enum redis_sent sent = redis_query(op->call->app->redis, &a, on_node, op);
	if (sent != REDIS_SENT)
		get_end(op, redis_sent_error(sent));
}

enum verdict team_get_exec(struct call *call)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	if (!check_dept(call, call->argv[1]))
		return CALL_DONE;
	struct get_op *op = xcalloc(1, sizeof(*op));
	op->call = call;
	redis_args_init(&a);
	redis_arg_str(&a, "HLEN");
	key_emps(&key, call->argv[1]);
	redis_arg_key(&a, &key);
	buf_release(&key);
	enum redis_sent sent = redis_query(call->app->redis, &a, on_employees, op);
	if (sent == REDIS_SENT)
		return CALL_WAIT;
	free(op);
	return call_fail(call, "%s", redis_sent_error(sent));
}
