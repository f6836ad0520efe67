/* SPDX-License-Identifier: MIT */
/* ROLL and ROLL.COUNT walk one department or a subtree, department by department, page by page: an open day
 * from its maps, a closed one from MySQL. No step asks for more than a page, no reply holds more than COUNT
 * people. A subtree is walked by the picture, and the walk's place is kept as a path: the tree may change
 * meanwhile. */
#include "handlers/attendance.h"

#include <stdlib.h>

#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/attendance_view.h"
#include "handlers/options.h"
#include "handlers/team.h"
#include "handlers/walk.h"
#include "persist/keys.h"
#include "persist/mysql_link.h"
#include "persist/mysql_text.h"
#include "persist/record.h"
#include "persist/redis.h"
#include "persist/team_read.h"
#include "persist/tree.h"
#include "rules/when.h"
#include "rules/workday.h"

#define PAGE 200
#define STEPS_MAX                                                                                            \
	200 /* departments and pages that one ROLL looks at; then it gives a cursor, however few it has */

struct person {
	struct bytes id;
	struct judgement judgement;
};

struct roll_op {
	struct call *call;
	struct bytes top;
	bool subtree, counting, filtered;
	enum attendance wanted;
	int32_t day;
	int64_t count;
	int steps;
	/* Where it is: a department, "" when all are done, and the path to it. */
	char at[ID_MAX + 1];
	struct buf path;
	struct buf cursor; /* within the department: HSCAN's, or "=" and the last employee of a page from
			      MySQL */
	/* A page that waits for its names. */
	struct buf text;
	struct person *people;
	size_t people_count;
	/* What goes into the reply. */
	struct reply items;
	int64_t item_count;
	int64_t departments, total, by_status[ATTENDANCE_COUNT];
};

static void next_page(struct roll_op *op);

static void release(struct roll_op *op)
{
	buf_release(&op->path);
	buf_release(&op->cursor);
	buf_release(&op->text);
	reply_release(&op->items);
	free(op->people);
	free(op);
}

static void end(struct roll_op *op, const char *error)
{
	struct call *call = op->call;

	if (error != NULL)
		(void)call_fail(call, "%s", error);
	release(op);
	call_finish(call);
}

/* ---- replies ---- */

static void reply_counts(struct roll_op *op)
{
	struct reply *r = &op->call->reply;
	char date[DATE_TEXT];

	reply_map(r, 4 + ATTENDANCE_COUNT);
	reply_field_bulk(r, "dept", op->top);
	reply_field_str(r, "day", date_format(op->day, date));
	reply_field_int(r, "departments", op->departments);
	reply_field_int(r, "total", op->total);
	for (int i = 0; i < ATTENDANCE_COUNT; i++)
		reply_field_int(r, attendance_name((enum attendance)i), op->by_status[i]);
	end(op, NULL);
}

/* The cursor is <path>/<cursor within the department>. */
static void reply_page(struct roll_op *op)
{
	struct reply *r = &op->call->reply;
	struct buf cursor = BUF_INIT;

	if (op->at[0] != '\0') {
		buf_add_bytes(&cursor, buf_bytes(&op->path));
		buf_addf(&cursor, "/%s", op->cursor.len > 0 ? op->cursor.data : "0");
	}
	reply_array(r, 2);
	reply_bulk(r, buf_bytes(&cursor));
	buf_release(&cursor);
	reply_array(r, (size_t)op->item_count);
	buf_add_bytes(&r->buf, buf_bytes(&op->items.buf));
	end(op, NULL);
}

/* Goes to the department at the path, or to the one after it: when `behind`, and when that one has gone. */
static void enter(struct roll_op *op, bool behind)
{
	const struct tree *tree = op->call->app->tree;
	const struct dept *top = tree_find(tree, op->top), *at = NULL;
	bool exact = false;

	if (top != NULL)
		at = walk_find(tree, top, buf_bytes(&op->path), &exact);
	if (exact && behind)
		at = tree_next(top, at);
	if (behind || !exact)
		buf_clear(&op->cursor);
	op->at[0] = '\0';
	if (at == NULL)
		return;
	bytes_copy(op->at, sizeof(op->at), bytes_of(at->id));
	walk_path(&op->path, top, at);
}

/* The department is done. */
static void next_department(struct roll_op *op)
{
	op->departments++;
	buf_clear(&op->cursor);
	if (op->subtree)
		enter(op, true);
	else
		op->at[0] = '\0';
}

static void go_on(struct roll_op *op)
{
	if (op->at[0] == '\0' || (!op->counting && (op->item_count >= op->count || op->steps >= STEPS_MAX))) {
		if (op->counting)
			reply_counts(op);
		else
			reply_page(op);
		return;
	}
	next_page(op);
}

/* ---- names, and from people to items ---- */

static void add_items(struct roll_op *op, const struct redisReply *records)
{
	struct reply *r = &op->items;

	for (size_t i = 0; i < op->people_count; i++) {
		struct employee_record record = {.name = {"", 0}};
		(void)!record_parse_employee(redis_text(redis_at(records, i)), &record);
		reply_map(r, 3 + VIEW_FIELDS);
		reply_field_bulk(r, "id", op->people[i].id);
		reply_field_bulk(r, "name", record.name.p != NULL ? record.name : (struct bytes){"", 0});
		reply_field_str(r, "dept", op->at);
		view_judgement(r, &op->people[i].judgement);
	}
	op->item_count += (int64_t)op->people_count;
}

/* A page of a department is through; more says whether the department has another. */
static void page_done(struct roll_op *op)
{
	op->people_count = 0;
	buf_clear(&op->text);
	if (op->cursor.len == 0)
		next_department(op);
	go_on(op);
}

static void on_names(const struct redisReply *reply, void *arg)
{
	struct roll_op *op = arg;

	if (redis_reply_error(reply) != NULL) {
		end(op, redis_reply_error(reply));
		return;
	}
	add_items(op, reply);
	page_done(op);
}

static void ask_names(struct roll_op *op)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	if (op->people_count == 0) {
		page_done(op);
		return;
	}
	redis_args_init(&a);
	redis_arg_str(&a, "HMGET");
	key_emps(&key, bytes_of(op->at));
	redis_arg_key(&a, &key);
	for (size_t i = 0; i < op->people_count; i++)
		redis_arg(&a, op->people[i].id);
	buf_release(&key);
	enum redis_sent sent = redis_query(op->call->app->redis, &a, on_names, op);
	if (sent != REDIS_SENT)
		end(op, redis_sent_error(sent));
}

/* Counts a person, and keeps him for the page when he is asked for. */
static void take(struct roll_op *op, struct bytes id, const struct judgement *j)
{
	op->total++;
	op->by_status[j->status]++;
	if (op->counting || (op->filtered && j->status != op->wanted))
		return;
	op->people[op->people_count++] = (struct person){id, *j};
}

/* ---- an open day ---- */

static void take_map_page(struct roll_op *op, const struct redisReply *fields)
{
	struct shift shift = workday_shift(op->day);
	struct judgement j;

	free(op->people);
	op->people = xcalloc(redis_count(fields) / 2 + 1, sizeof(op->people[0]));
	/* The ids outlive the reply. Room for all of them first, so that pointers to the text stay true. */
	if (!buf_reserve(&op->text, redis_count(fields) / 2 * ID_MAX))
		return;
	for (size_t i = 0; i + 1 < redis_count(fields); i += 2) {
		struct bytes id = redis_text(redis_at(fields, i)), set = redis_text(redis_at(fields, i + 1));
		if (bytes_eq(id, BYTES_LIT("#")) || id.n > ID_MAX || punch_judge(set, &shift, false, &j) != 0)
			continue;
		size_t at = op->text.len;
		buf_add_bytes(&op->text, id);
		take(op, (struct bytes){op->text.data + at, op->text.len - at}, &j);
	}
}

static void ask_mysql(struct roll_op *op);

static void on_there(const struct redisReply *reply, void *arg)
{
	struct roll_op *op = arg;

	if (redis_reply_error(reply) != NULL) {
		end(op, redis_reply_error(reply));
	} else if (redis_int(reply) != 1) {
		end(op, "BUSY the day was closed while it was read; ask again from the beginning");
	} else {
		buf_clear(&op->cursor);
		page_done(op);
	}
}

/* Nothing came, and nothing is to come: was that the end of the map, or has the close taken it meanwhile? */
static void ask_there(struct roll_op *op)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "EXISTS");
	key_day(&key, bytes_of(op->at), op->day);
	redis_arg_key(&a, &key);
	buf_release(&key);
	enum redis_sent sent = redis_query(op->call->app->redis, &a, on_there, op);
	if (sent != REDIS_SENT)
		end(op, redis_sent_error(sent));
}

static void on_scan(const struct redisReply *reply, void *arg)
{
	struct roll_op *op = arg;
	const struct redisReply *fields = redis_at(reply, 1);
	struct bytes next = redis_text(redis_at(reply, 0));

	if (redis_reply_error(reply) != NULL) {
		end(op, redis_reply_error(reply));
		return;
	}
	bool fresh = op->cursor.len == 0;
	bool last = bytes_eq(next, BYTES_LIT("0"));
	if (last && redis_count(fields) == 0 && op->day < app_today()) {
		if (fresh)
			ask_mysql(op);
		else
			ask_there(op);
		return;
	}
	take_map_page(op, fields);
	buf_clear(&op->cursor);
	if (!last)
		buf_add_bytes(&op->cursor, next);
	ask_names(op);
}

static void ask_map(struct roll_op *op)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "HSCAN");
	key_day(&key, bytes_of(op->at), op->day);
	redis_arg_key(&a, &key);
	redis_arg_str(&a, op->cursor.len > 0 ? op->cursor.data : "0");
	redis_arg_str(&a, "COUNT");
	redis_arg_i64(&a, op->counting || op->count > PAGE ? PAGE : op->count);
	buf_release(&key);
	enum redis_sent sent = redis_query(op->call->app->redis, &a, on_scan, op);
	if (sent != REDIS_SENT)
		end(op, redis_sent_error(sent));
}

/* ---- a closed day ---- */

static void on_rows(const struct mysql_result *result, void *arg)
{
	struct roll_op *op = arg;
	struct judgement j;

	if (result->outcome != SQL_OK) {
		end(op, "UNAVAILABLE the day is closed and MySQL, which has it, is away; send it again");
		return;
	}
	free(op->people);
	op->people = xcalloc(result->rows + 1, sizeof(op->people[0]));
	buf_clear(&op->cursor);
	if (!buf_reserve(&op->text, result->rows * (ID_MAX + 1))) {
		end(op, "BUSY out of memory, nothing was done");
		return;
	}
	for (size_t i = 0; i < result->rows; i++) {
		view_row(result, i, &j);
		size_t at = op->text.len;
		buf_add_bytes(&op->text, mysql_cell(result, i, 0));
		struct bytes id = {op->text.data + at, op->text.len - at};
		take(op, id, &j);
		if (i + 1 == PAGE)
			buf_addf(&op->cursor, "=%.*s", (int)id.n, id.p);
	}
	ask_names(op);
}

static void ask_mysql(struct roll_op *op)
{
	struct buf sql = BUF_INIT;
	char date[DATE_TEXT];

	buf_addf(&sql, "SELECT " VIEW_COLUMNS " FROM attendance_day WHERE work_date='%s' AND dept=",
		date_format(op->day, date));
	mysql_add_quoted(&sql, bytes_of(op->at));
	if (op->cursor.len > 1) {
		buf_add_str(&sql, " AND employee>");
		mysql_add_quoted(&sql, (struct bytes){op->cursor.data + 1, op->cursor.len - 1});
	}
	buf_addf(&sql, " ORDER BY employee LIMIT %d", PAGE);
	mysql_link_query(op->call->app->work_sql, &sql, on_rows, op);
}

static void next_page(struct roll_op *op)
{
	op->steps++;
	if (op->cursor.len > 0 && op->cursor.data[0] == '=')
		ask_mysql(op);
	else
		ask_map(op);
}

/* ---- start ---- */

static void on_synced(bool ok, void *arg)
{
	struct roll_op *op = arg;

	if (!ok) {
		end(op, WALK_BEHIND);
		return;
	}
	enter(op, false);
	go_on(op);
}

static void on_top(
	const struct team_node *nodes, size_t count, struct bytes last, const char *error, void *arg)
{
	struct roll_op *op = arg;
	struct call *call = op->call;

	(void)count;
	if (error != NULL) {
		end(op, error);
	} else if (!nodes[0].known) {
		(void)team_refuse(call, op->top, (struct bytes){&nodes[0].refused, 1});
		release(op);
		call_finish(call);
	} else if (op->subtree) {
		tree_sync(call->app->tree, last, on_synced, op);
	} else {
		bytes_copy(op->at, sizeof(op->at), op->top);
		go_on(op);
	}
}

/* <path>/<cursor within the department>, as reply_page() wrote it. */
static bool resume(struct roll_op *op, struct bytes cursor)
{
	struct bytes part[2];
	int64_t scan;

	if (cursor.n == 0 || bytes_eq(cursor, BYTES_LIT("0")))
		return true;
	if (bytes_split(cursor, '/', part, 2) != 2)
		return false;
	bool from_mysql = part[1].n > 1 && part[1].n <= ID_MAX + 1 && part[1].p[0] == '=';
	if (!walk_path_valid(part[0]) || (!from_mysql && (!bytes_to_i64(part[1], &scan) || scan < 0)))
		return false;
	buf_add_bytes(&op->path, part[0]);
	if (!bytes_eq(part[1], BYTES_LIT("0")))
		buf_add_bytes(&op->cursor, part[1]);
	return true;
}

static enum verdict start(struct call *call, bool counting)
{
	struct bytes day = {0}, state = {0}, cursor = {0}, count = {0};
	bool subtree = false;
	const struct option all[] = {{"DAY", &day, NULL}, {"SUBTREE", NULL, &subtree},
		{"STATE", &state, NULL}, {"CURSOR", &cursor, NULL}, {"COUNT", &count, NULL}, {0}};
	const struct option few[] = {{"DAY", &day, NULL}, {"SUBTREE", NULL, &subtree}, {0}};
	struct roll_op o = {.call = call, .counting = counting, .top = call->argv[1]};

	if (!check_dept(call, o.top) || options_read(call, 2, counting ? few : all) != 0 ||
		!check_day(call, day, &o.day) || !check_count(call, count, &o.count))
		return CALL_DONE;
	if (state.p != NULL && !attendance_from_name(state, &o.wanted))
		return call_fail(call,
			"ERR invalid STATE, expected not_yet, present, late, early, late_early, missing_in, "
			"missing_out or absent");
	o.filtered = state.p != NULL;
	o.subtree = subtree;
	struct roll_op *op = xmalloc(sizeof(*op));
	*op = o;
	reply_init(&op->items, call->reply.protocol);
	if (!resume(op, cursor)) {
		release(op);
		return call_fail(call, "ERR invalid CURSOR, expected one that ROLL gave for this department");
	}
	team_read_send(call->app->team_reads, &op->top, 1, on_top, op);
	return CALL_WAIT;
}

enum verdict roll_exec(struct call *call)
{
	return start(call, false);
}

enum verdict roll_count_exec(struct call *call)
{
	return start(call, true);
}
