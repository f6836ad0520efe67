/* SPDX-License-Identifier: MIT */
/* TASK.PAUSE, TASK.RESUME and TASK.CONFIG; and what INFO says of tasks. */
#include "handlers/task.h"

#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/mem.h"
#include "handlers/app.h"
#include "persist/memory.h"
#include "persist/task.h"

#define VALUE_MAX 64

/* Keys of [task] that a queue may have its own of. */
static const char *const settings[] = {"lease", "retries", "crashes", "backoff", "backoff_max", "max_tasks",
	"max_bytes", "keep", "keep_for", "age_after"};

/* ---- PAUSE, RESUME ---- */

/* Whether the script has done it; else the error is in the reply. */
static bool is_done(struct call *call, struct bytes line, const char *error)
{
	if (error != NULL)
		(void)call_fail(call, "%s", error);
	else if (line.n == 0 || line.p[0] != 'O')
		(void)task_refuse(call, (struct bytes){"", 0}, line);
	else
		return true;
	return false;
}

static void on_switched(struct bytes line, const char *error, void *arg)
{
	struct call *call = arg;

	if (is_done(call, line, error))
		reply_status(&call->reply, "OK");
	call_finish(call);
}

static enum verdict switch_queue(struct call *call, const char *word)
{
	if (!check_queue(call, call->argv[1]))
		return CALL_DONE;
	task_queue_send(call->app->tasks, call->argv[1], word, NULL, NULL, 0, on_switched, call);
	return CALL_WAIT;
}

enum verdict task_pause_exec(struct call *call)
{
	return switch_queue(call, "PAUSE");
}

enum verdict task_resume_exec(struct call *call)
{
	return switch_queue(call, "RESUME");
}

/* ---- CONFIG ---- */

static const struct config_key *setting_of(struct bytes name)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		if (bytes_is_word(name, settings[i]))
			return config_find("task", settings[i]);
	}
	return NULL;
}

/* One line of the answer, <name>|<value>|<own>. A setting is written as the configuration would say it; what
 * is none, whether the queue is paused, as it comes. Returns whether it is a setting of the queue's own. */
static bool reply_line(struct reply *r, struct bytes line)
{
	struct bytes name = bytes_cut(&line, '|'), value = bytes_cut(&line, '|');
	const struct config_key *key = setting_of(name);
	struct buf text = BUF_INIT;
	int64_t n = 0;

	(void)!bytes_to_i64(value, &n);
	reply_bulk(r, name);
	if (key == NULL) {
		reply_int(r, n);
		return false;
	}
	config_number_write(key, n, &text);
	reply_bulk(r, buf_bytes(&text));
	buf_release(&text);
	return bytes_eq(line, BYTES_LIT("1"));
}

static void reply_config(struct reply *r, struct bytes lines)
{
	struct reply own;
	size_t fields = 0, count = 0;

	for (size_t i = 0; i < lines.n; i++)
		fields += lines.p[i] == ';';
	reply_init(&own, r->protocol);
	reply_map(r, fields + 2);
	while (lines.n > 0) {
		struct bytes line = bytes_cut(&lines, ';'), rest = line;
		if (reply_line(r, line)) {
			reply_bulk(&own, bytes_cut(&rest, '|'));
			count++;
		}
	}
	reply_str(r, "own");
	reply_array(r, count);
	buf_add_bytes(&r->buf, buf_bytes(&own.buf));
	reply_release(&own);
}

static void on_config(struct bytes line, const char *error, void *arg)
{
	struct call *call = arg;

	if (is_done(call, line, error))
		reply_config(&call->reply, (struct bytes){line.p + 1, line.n - 1});
	call_finish(call);
}

static void refuse_name(struct call *call, struct bytes name)
{
	struct buf expected = BUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		buf_addf(&expected, "%s%s", i > 0 ? ", " : "", settings[i]);
	(void)call_fail(call, "ERR a queue has no setting '%.*s', expected %s",
		(int)(name.n < VALUE_MAX ? name.n : VALUE_MAX), name.p, expected.data);
	buf_release(&expected);
}

/* Values as Redis gets them: numbers, or nothing for `default`. */
struct changes {
	size_t count;
	struct bytes names[ARRAY_LEN(settings)], values[ARRAY_LEN(settings)];
	char texts[ARRAY_LEN(settings)][24];
};

/* False with the error in the reply. */
static bool read_value(struct call *call, const struct config_key *key, struct bytes value, char text[24])
{
	char given[VALUE_MAX];
	struct buf fault = BUF_INIT;
	int64_t n;

	text[0] = '\0';
	if (bytes_is_word(value, "default"))
		return true;
	/* What has a NUL in it, or is longer than any value, means nothing. */
	bool plain = value.n < sizeof(given) && memchr(value.p, '\0', value.n) == NULL;
	bytes_copy(given, sizeof(given), plain ? value : BYTES_LIT("?"));
	if (config_number_read(key, given, &n, &fault) == 0) {
		snprintf(text, 24, "%lld", (long long)n);
		return true;
	}
	(void)call_fail(call, "ERR %s, or default", fault.data);
	buf_release(&fault);
	return false;
}

static bool read_changes(struct call *call, struct changes *changes)
{
	for (int i = 2; i + 1 < call->argc; i += 2) {
		const struct config_key *key = setting_of(call->argv[i]);
		size_t at = changes->count++;
		if (key == NULL) {
			refuse_name(call, call->argv[i]);
			return false;
		}
		if (!read_value(call, key, call->argv[i + 1], changes->texts[at]))
			return false;
		changes->names[at] = bytes_of(key->name);
		changes->values[at] = bytes_of(changes->texts[at]);
	}
	return true;
}

enum verdict task_config_exec(struct call *call)
{
	struct changes changes = {0};

	if (!check_queue(call, call->argv[1]))
		return CALL_DONE;
	if (call->argc % 2 != 0)
		return call_fail(call, "ERR syntax error, expected a value behind every name");
	if ((size_t)(call->argc - 2) / 2 > ARRAY_LEN(settings))
		return call_fail(call, "ERR syntax error, expected every name once");
	if (!read_changes(call, &changes))
		return CALL_DONE;
	task_queue_send(call->app->tasks, call->argv[1], changes.count > 0 ? "SET" : "GET", changes.names,
		changes.values, changes.count, on_config, call);
	return CALL_WAIT;
}

/* ---- INFO ---- */

void task_info_write(struct buf *out, void *arg)
{
	const struct app *app = arg;
	const struct task_totals *t = &app->task_totals;
	const struct {
		const char *name;
		uint64_t n;
	} lines[] = {{"submitted", t->submitted}, {"duplicates", t->duplicates}, {"refused", t->refused},
		{"claimed", t->claimed}, {"done", t->done}, {"failed", t->failed}, {"released", t->released},
		{"cancelled", t->cancelled}, {"stale", t->stale}};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		buf_addf(out, "tasks_%s:%llu\r\n", lines[i].name, (unsigned long long)lines[i].n);
	memory_info(app->memory, out);
}
