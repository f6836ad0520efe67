/* SPDX-License-Identifier: MIT */
/* CHECKIN: one event of the check-in batch. The script checks what we believe of the employee: when he is in
 * another department, or his punches of the day are in another's map, it says so and we ask again with that.
 */
#include "handlers/attendance.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/employee.h"
#include "handlers/options.h"
#include "persist/batch.h"
#include "persist/directory.h"
#include "persist/keys.h"
#include "persist/record.h"
#include "persist/redis.h"
#include "rules/when.h"
#include "rules/workday.h"

#define TRIES_MAX 5

/* An event further ahead than accept_future comes from a wrong clock. Up to so far ahead the person was there
 * all the same: the daemon's time is taken and the punch marked. */
#define SKEW_MAX_MS INT64_C(3600000)

struct checkin_op {
	struct call *call;
	struct punch_record
		punch; /* date and departments point into the texts below, the rest into the call */
	char date[DATE_TEXT];
	char home[ID_MAX + 1], dept[ID_MAX + 1]; /* at home; whose day map has the punches */
	int tries;
};

static void step(struct checkin_op *op);

static void end(struct checkin_op *op, const char *error)
{
	struct call *call = op->call;

	if (error != NULL)
		(void)call_fail(call, "%s", error);
	free(op);
	call_finish(call);
}

static void reply_punch(struct checkin_op *op, struct bytes set, bool duplicate)
{
	struct reply *r = &op->call->reply;
	struct shift shift = workday_shift(op->punch.day);
	struct judgement j;

	if (punch_judge(set, &shift, false, &j) != 0) {
		(void)call_fail(op->call, "ERR the punches of this employee are damaged in Redis");
		return;
	}
	reply_map(r, 9);
	reply_field_bulk(r, "id", op->punch.employee);
	reply_field_str(r, "day", op->date);
	reply_field_str(r, "state", attendance_name(j.status));
	reply_field_instant(r, "in", j.in);
	reply_field_instant(r, "out", j.out);
	reply_field_int(r, "punches", j.punches);
	reply_field_int(r, "duplicate", duplicate);
	reply_field_str(r, "dept", op->dept);
	reply_field_bulk(r, "marks", op->punch.marks);
}

/* The day is closed: the ledger revises its row, so the state is not known here. */
static void reply_late(struct checkin_op *op)
{
	struct reply *r = &op->call->reply;

	reply_map(r, 9);
	reply_field_bulk(r, "id", op->punch.employee);
	reply_field_str(r, "day", op->date);
	reply_field_str(r, "state", "revising");
	reply_field_instant(r, "in", -1);
	reply_field_instant(r, "out", -1);
	reply_field_int(r, "punches", 1);
	reply_field_int(r, "duplicate", 0);
	reply_field_str(r, "dept", op->dept);
	reply_field_bulk(r, "marks", op->punch.marks);
}

static void on_home(struct bytes dept, const char *error, void *arg)
{
	struct checkin_op *op = arg;

	if (error != NULL || dept.n == 0) {
		end(op, error != NULL ? error : "UNKNOWN no such employee");
		return;
	}
	bytes_copy(op->home, sizeof(op->home), dept);
	bytes_copy(op->dept, sizeof(op->dept), dept);
	step(op);
}

static void on_line(struct bytes line, const char *error, void *arg)
{
	struct checkin_op *op = arg;
	struct app *app = op->call->app;
	struct bytes rest = {line.p + 1, line.n > 0 ? line.n - 1 : 0};
	char verdict = line.n > 0 ? line.p[0] : 'E';

	if (error != NULL) {
		end(op, error);
		return;
	}
	if (verdict == 'N' || verdict == 'D') {
		reply_punch(op, rest, verdict == 'D');
		if (verdict == 'N')
			app_journalled(app, keys_partition_of(bytes_of(op->dept)));
		end(op, NULL);
	} else if (verdict == 'L') {
		reply_late(op);
		app_journalled(app, keys_partition_of(bytes_of(op->dept)));
		end(op, NULL);
	} else if (verdict == 'E') {
		end(op, redis_error_text(rest));
	} else if (++op->tries >= TRIES_MAX) {
		end(op, "BUSY the employee is being moved by others, nothing was done; try again");
	} else if (verdict == 'M') {
		bytes_copy(op->dept, sizeof(op->dept), rest);
		step(op);
	} else {
		directory_forget(app->directory, op->punch.employee);
		directory_lookup(app->directory, op->punch.employee, on_home, op);
	}
}

static void step(struct checkin_op *op)
{
	struct punch_record *p = &op->punch;
	struct redis_args *keys, *args;
	struct buf scratch = BUF_INIT;

	p->home = bytes_of(op->home);
	p->dept = bytes_of(op->dept);
	int partition = keys_partition_of(p->dept);
	batch_add_begin(op->call->app->checkins, &keys, &args);
	key_emps(&scratch, p->home);
	redis_arg_key(keys, &scratch);
	key_day(&scratch, p->dept, p->day);
	redis_arg_key(keys, &scratch);
	key_days(&scratch, partition);
	redis_arg_key(keys, &scratch);
	key_journal(&scratch, partition);
	redis_arg_key(keys, &scratch);

	redis_arg(args, p->employee);
	buf_add_char(&scratch, p->direction);
	buf_add_i64(&scratch, p->at);
	redis_arg_key(args, &scratch);
	redis_arg(args, p->event_id);
	redis_arg(args, p->date);
	redis_arg(args, p->dept);
	record_punch_head(&scratch, p);
	redis_arg_key(args, &scratch);
	buf_release(&scratch);
	batch_add_end(op->call->app->checkins, on_line, op);
}

/* ---- times that are not accepted ---- */

static void on_rejected(const struct redisReply *reply, void *arg)
{
	struct checkin_op *op = arg;
	const char *error = redis_reply_error(reply);

	if (error == NULL) {
		app_journalled(op->call->app, keys_partition_of(bytes_of(op->home)));
		error = op->punch.at < op->punch.received ? "TIME the event lies too far back and is not "
							    "counted; it is kept for FAILURE.LIST"
							  : "TIME the event lies in the future and is not "
							    "counted; it is kept for FAILURE.LIST";
	}
	end(op, error);
}

/* Not counted, but kept where the people in charge see it. */
static enum verdict reject(struct checkin_op *op)
{
	struct call *call = op->call;
	struct punch_record *p = &op->punch;
	struct redis_args a;
	struct buf text = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "XADD");
	key_journal(&text, keys_partition_of(bytes_of(op->home)));
	redis_arg_key(&a, &text);
	redis_arg_str(&a, "*");
	redis_arg_str(&a, "e");
	buf_addf(&text, "R|%s|%.*s|%lld|%lld|%s|", op->home, (int)p->employee.n, p->employee.p,
		(long long)p->at, (long long)p->received, p->at < p->received ? "too_old" : "in_future");
	record_add_optional(&text, p->event_id);
	buf_add_char(&text, '|');
	record_add_optional(&text, p->source);
	redis_arg_key(&a, &text);
	buf_release(&text);
	enum redis_sent sent = redis_send(call->app->redis, &a, on_rejected, op);
	if (sent == REDIS_SENT)
		return CALL_WAIT;
	free(op);
	return call_fail(call, "%s", redis_sent_error(sent));
}

/* ---- arguments ---- */

static bool check_label(struct call *call, struct bytes label, const char *what)
{
	if (label.n == 0 || person_id_valid(label))
		return true;
	(void)call_fail(call, "ERR invalid %s, expected 1 to 64 letters, digits, '_', '-', '.' or '@'", what);
	return false;
}

static int read_direction(struct call *call, char *ret)
{
	*ret = 'U';
	if (call->argc > 2 && bytes_is_word(call->argv[2], "IN"))
		*ret = 'I';
	else if (call->argc > 2 && bytes_is_word(call->argv[2], "OUT"))
		*ret = 'O';
	return *ret == 'U' ? 2 : 3;
}

/* Whether the instant counts; a clock that is a little ahead is put right. */
static bool settle_time(struct punch_record *p, const struct config *config)
{
	if (p->at > p->received + config->accept_future) {
		if (p->at > p->received + SKEW_MAX_MS)
			return false;
		p->at = p->received;
		p->marks = BYTES_LIT("skew");
	}
	return p->at >= p->received - config->accept_past;
}

enum verdict checkin_exec(struct call *call)
{
	struct bytes at = {0}, id = {"", 0}, source = {"", 0}, home;
	struct bytes given_id = {0}, given_source = {0};
	const struct option options[] = {
		{"AT", &at, NULL}, {"ID", &given_id, NULL}, {"SOURCE", &given_source, NULL}, {0}};
	struct punch_record punch = {.received = clock_wall_ms()};

	if (!employee_home(call, &home))
		return CALL_DONE;
	if (options_read(call, read_direction(call, &punch.direction), options) != 0)
		return CALL_DONE;
	if (given_id.p != NULL)
		id = given_id;
	if (given_source.p != NULL)
		source = given_source;
	if (!check_label(call, given_id, "event ID") || !check_label(call, given_source, "SOURCE"))
		return CALL_DONE;
	punch.at = punch.received;
	if (at.p != NULL && !when_parse(at, &punch.at))
		return call_fail(call, "ERR invalid time in AT, expected " WHEN_EXPECTED);

	struct checkin_op *op = xcalloc(1, sizeof(*op));
	op->call = call;
	bytes_copy(op->home, sizeof(op->home), home);
	bytes_copy(op->dept, sizeof(op->dept), home);
	punch.employee = call->argv[1];
	punch.event_id = id;
	punch.source = source;
	punch.marks = (struct bytes){"", 0};
	bool counts = settle_time(&punch, call->app->config);
	op->punch = punch;
	if (!counts)
		return reject(op);
	op->punch.day = workday_of(op->punch.at);
	date_format(op->punch.day, op->date);
	op->punch.date = (struct bytes){op->date, DATE_TEXT - 1};
	step(op);
	return CALL_WAIT;
}
