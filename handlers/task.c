/* SPDX-License-Identifier: MIT */
/* Giving tasks in and keeping them alive; and what the task commands have in common. */
#include "handlers/task.h"

#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/duration.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "handlers/options.h"
#include "persist/memory.h"
#include "persist/redis.h"
#include "persist/task.h"

#define PRIORITY_DEFAULT 5
#define LEASE_MIN_MS     100
#define RETRIES_MAX      1000000
#define KEY_MAX          200
#define FAR_MS           (INT64_C(3650) * 86400000) /* DELAY and WINDOW reach at most so far */

/* ---- answers that refuse ---- */

#define QUOTED(b) (int)(b).n, (b).p

enum verdict task_refuse(struct call *call, struct bytes id, struct bytes line)
{
	struct bytes rest = {line.p + 1, line.n > 0 ? line.n - 1 : 0};

	switch (line.n > 0 ? line.p[0] : '?') {
	case 'X':
		return call_fail(
			call, "CORRUPT what is stored of the task '%.*s' is damaged: TASK.CHECK", QUOTED(id));
	case 'U':
		return call_fail(call, "UNKNOWN no such task '%.*s'", QUOTED(id));
	case 'S':
		return call_fail(call,
			"STALE this claim of the task '%.*s' has ended, or is not that of the token; nothing "
			"was changed",
			QUOTED(id));
	case 'F':
		return call_fail(call, "CONFLICT the task is %.*s", QUOTED(rest));
	case 'D':
		return call_fail(call, "CONFLICT its key is held by the task '%.*s'", QUOTED(rest));
	case 'B':
		return call_fail(call, "BUSY %.*s, nothing was done; try again later", QUOTED(rest));
	default:
		return call_fail(call, "%s", redis_error_text(rest));
	}
}

/* ---- single arguments ---- */

bool check_queue(struct call *call, struct bytes queue)
{
	if (id_valid(queue))
		return true;
	(void)call_fail(call, "ERR invalid queue, expected 1 to 64 letters, digits, '_' or '-'");
	return false;
}

bool check_worker(struct call *call, struct bytes worker)
{
	if (person_id_valid(worker))
		return true;
	(void)call_fail(call, "ERR invalid worker, expected 1 to 64 letters, digits, '_', '-', '.' or '@'");
	return false;
}

bool check_task(struct call *call, struct bytes id)
{
	if (task_id_parse(id, NULL, NULL))
		return true;
	(void)call_fail(call, "UNKNOWN no such task, expected an id as TASK.SUBMIT answers it");
	return false;
}

bool check_token(struct call *call, struct bytes token)
{
	int64_t n;

	if (bytes_to_i64(token, &n) && n >= 1)
		return true;
	(void)call_fail(call, "ERR invalid token, expected the number that TASK.CLAIM gave with the task");
	return false;
}

bool check_number(
	struct call *call, const char *what, struct bytes text, int64_t min, int64_t max, int64_t *ret)
{
	int64_t n;

	if (text.p == NULL)
		return true;
	if (bytes_to_i64(text, &n) && n >= min && n <= max) {
		*ret = n;
		return true;
	}
	(void)call_fail(call, "ERR invalid %s, expected a whole number from %lld to %lld", what,
		(long long)min, (long long)max);
	return false;
}

bool check_duration(struct call *call, const char *what, struct bytes text, int64_t min_ms, int64_t max_ms,
	int64_t *ret_ms)
{
	struct buf range = BUF_INIT;
	int64_t ms;

	if (text.p == NULL)
		return true;
	if (duration_parse(text, &ms) && ms >= min_ms && ms <= max_ms) {
		*ret_ms = ms;
		return true;
	}
	duration_format(&range, min_ms);
	buf_add_str(&range, " to ");
	duration_format(&range, max_ms);
	(void)call_fail(call, "ERR invalid %s, expected " DURATION_EXPECTED ", from %s", what, range.data);
	buf_release(&range);
	return false;
}

bool check_lease(struct call *call, struct bytes text, int64_t *ret_ms)
{
	return check_duration(call, "LEASE", text, LEASE_MIN_MS, call->app->config->task_lease_max, ret_ms);
}

bool check_delay(struct call *call, struct bytes text, int64_t *ret_ms)
{
	return check_duration(call, "DELAY", text, 0, FAR_MS, ret_ms);
}

static bool check_key(struct call *call, struct bytes key)
{
	/* The journal writes '-' for no key. */
	bool valid = key.p == NULL || (key.n >= 1 && key.n <= KEY_MAX && !bytes_eq(key, BYTES_LIT("-")));

	for (size_t i = 0; valid && i < key.n; i++)
		valid = key.p[i] > ' ' && key.p[i] <= '~' && key.p[i] != '|';
	if (valid)
		return true;
	(void)call_fail(call,
		"ERR invalid KEY, expected 1 to %d printable ASCII characters without blanks and '|', and "
		"not "
		"'-' alone",
		KEY_MAX);
	return false;
}

/* ---- SUBMIT ---- */

static void reply_submitted(struct call *call, struct bytes id, struct bytes status, bool duplicate)
{
	struct reply *r = &call->reply;

	reply_map(r, 3);
	reply_field_bulk(r, "id", id);
	reply_field_bulk(r, "status", status);
	reply_field_int(r, "duplicate", duplicate);
}

static void on_submitted(struct bytes line, const char *error, void *arg)
{
	struct call *call = arg;
	struct task_totals *totals = &call->app->task_totals;
	struct bytes rest = {line.p + 1, line.n > 0 ? line.n - 1 : 0};
	char letter = line.n > 0 ? line.p[0] : '?';

	if (error != NULL) {
		(void)call_fail(call, "%s", error);
	} else if (letter == 'N') {
		totals->submitted++;
		reply_submitted(call, rest, BYTES_LIT("pending"), false);
	} else if (letter == 'D') {
		struct bytes id = bytes_cut(&rest, '|');
		totals->duplicates++;
		reply_submitted(call, id, rest, true);
	} else {
		totals->refused += letter == 'B';
		(void)task_refuse(call, (struct bytes){"", 0}, line);
	}
	call_finish(call);
}

enum verdict task_submit_exec(struct call *call)
{
	struct bytes priority = {0}, delay = {0}, window = {0}, retries = {0}, lease = {0};
	struct task_submit s = {.queue = call->argv[1],
		.payload = call->argv[2],
		.max_retries = -1,
		.full = memory_full(call->app->memory)};
	const struct option options[] = {{"PRIORITY", &priority, NULL}, {"DELAY", &delay, NULL},
		{"KEY", &s.key, NULL}, {"WINDOW", &window, NULL}, {"RETRIES", &retries, NULL},
		{"LEASE", &lease, NULL}, {0}};
	int64_t level = PRIORITY_DEFAULT;

	if (!check_queue(call, s.queue) || options_read(call, 3, options) != 0 ||
		!check_number(call, "PRIORITY", priority, 1, 10, &level) ||
		!check_delay(call, delay, &s.delay_ms) || !check_key(call, s.key) ||
		!check_duration(call, "WINDOW", window, 1, FAR_MS, &s.window_ms) ||
		!check_number(call, "RETRIES", retries, 0, RETRIES_MAX, &s.max_retries) ||
		!check_lease(call, lease, &s.lease_ms))
		return CALL_DONE;
	if (window.p != NULL && s.key.p == NULL)
		return call_fail(call, "ERR syntax error, expected WINDOW with KEY only");
	s.priority = (int)level;
	task_submit_send(call->app->tasks, &s, on_submitted, call);
	return CALL_WAIT;
}

/* ---- BEAT ---- */

/* One task of a BEAT. */
struct beat {
	struct beat_op *op;
	struct bytes id; /* points into the call */
	char verdict;    /* O, C, S; U, X: nobody can hold it */
};

struct beat_op {
	struct call *call;
	const char *error;
	size_t left, count;
	struct beat beats[];
};

static void reply_those(const struct beat_op *op, const char *field, const char *verdicts)
{
	struct reply *r = &op->call->reply;
	size_t n = 0;

	for (size_t i = 0; i < op->count; i++)
		n += strchr(verdicts, op->beats[i].verdict) != NULL;
	reply_str(r, field);
	reply_array(r, n);
	for (size_t i = 0; i < op->count; i++) {
		if (strchr(verdicts, op->beats[i].verdict) != NULL)
			reply_bulk(r, op->beats[i].id);
	}
}

static void reply_beats(struct beat_op *op)
{
	if (op->error != NULL) {
		(void)call_fail(op->call, "%s", op->error);
		return;
	}
	reply_map(&op->call->reply, 3);
	reply_those(op, "extended", "O");
	reply_those(op, "stale", "SUX");
	reply_those(op, "cancel", "C");
}

static void on_beat(struct bytes line, const char *error, void *arg)
{
	struct beat *beat = arg;
	struct beat_op *op = beat->op;
	struct call *call = op->call;
	struct bytes rest = {line.p + 1, line.n > 0 ? line.n - 1 : 0};

	beat->verdict = line.n > 0 ? line.p[0] : 'E';
	if (error != NULL)
		op->error = error;
	else if (strchr("OCSUX", beat->verdict) == NULL)
		op->error = redis_error_text(rest);
	if (--op->left > 0)
		return;
	reply_beats(op);
	free(op);
	call_finish(call);
}

/* The pairs of id and token begin at argv[2]; returns where they end, or -1 with the error in the reply. */
static int check_beats(struct call *call)
{
	int at = 2;

	for (; at < call->argc && !bytes_is_word(call->argv[at], "LEASE"); at += 2) {
		if (at + 1 == call->argc) {
			(void)call_fail(call, "ERR syntax error, expected a token behind every id");
			return -1;
		}
		if (!check_token(call, call->argv[at + 1]))
			return -1;
	}
	if (at > 2)
		return at;
	(void)call_fail(call, "ERR syntax error, expected an id and its token");
	return -1;
}

/* What can't be an id is no task that anybody holds, and is not asked about. */
static void send_beats(struct beat_op *op, int64_t lease_ms)
{
	const struct bytes *pairs = op->call->argv + 2;

	for (size_t i = 0; i < op->count; i++) {
		struct beat *beat = &op->beats[i];
		*beat = (struct beat){.op = op, .id = pairs[2 * i], .verdict = 'U'};
		if (!task_id_parse(beat->id, NULL, NULL))
			continue;
		op->left++;
		task_beat_send(op->call->app->tasks, beat->id, pairs[2 * i + 1], lease_ms, on_beat, beat);
	}
}

enum verdict task_beat_exec(struct call *call)
{
	struct bytes lease = {0};
	const struct option options[] = {{"LEASE", &lease, NULL}, {0}};
	int64_t lease_ms = 0;
	int end = check_worker(call, call->argv[1]) ? check_beats(call) : -1;

	if (end < 0 || options_read(call, end, options) != 0 || !check_lease(call, lease, &lease_ms))
		return CALL_DONE;
	size_t count = (size_t)(end - 2) / 2;
	struct beat_op *op = xcalloc(1, sizeof(*op) + count * sizeof(op->beats[0]));
	op->call = call;
	op->count = count;
	send_beats(op, lease_ms);
	if (op->left > 0)
		return CALL_WAIT;
	reply_beats(op);
	free(op);
	return CALL_DONE;
}
