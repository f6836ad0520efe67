/* SPDX-License-Identifier: MIT */
#include "mq/notice.h"

#include <stdlib.h>

#include "base/mem.h"
#include "mq/notice_message.h"
#include "persist/journal.h"
#include "persist/record.h"
#include "rules/punch.h"
#include "rules/workday.h"

static void notice_release(struct notice *n)
{
	buf_release(&n->key);
	buf_release(&n->keys);
	buf_release(&n->type);
	buf_release(&n->id);
	buf_release(&n->body);
	buf_release(&n->group);
}

void notices_release(struct notices *n)
{
	for (size_t i = 0; i < n->count; i++)
		notice_release(&n->list[i]);
	free(n->list);
	n->list = NULL;
	n->count = n->cap = 0;
}

static void add_text(struct buf *out, const char *field, struct bytes value)
{
	if (value.n == 0)
		return;
	buf_addf(out, ",\"%s\":", field);
	buf_add_json(out, value);
}

static void add_instant(struct buf *out, const char *field, int64_t ms)
{
	if (ms >= 0)
		buf_addf(out, ",\"%s\":%lld", field, (long long)ms);
}

/* The set without this punch: what it was before. */
static void set_before(struct buf *out, const struct punch_record *p)
{
	struct bytes rest = p->set;

	while (rest.n > 0) {
		struct bytes f[2];
		int parts = bytes_split(rest, ' ', f, 2);
		struct bytes token = f[0];
		const char *mark = memchr(token.p, '#', token.n);
		struct bytes digits = {token.p + 1, (mark != NULL ? (size_t)(mark - token.p) : token.n) - 1};
		int64_t at = -1;
		bool same = token.p[0] == p->direction && bytes_to_i64(digits, &at) && at == p->at;
		if (!same) {
			if (out->len > 0)
				buf_add_char(out, ' ');
			buf_add_bytes(out, token);
		}
		rest = parts == 2 ? f[1] : (struct bytes){"", 0};
	}
}

static void add_punch(struct notice *n, struct bytes ref, const struct punch_record *p,
	const struct judgement *j, const char *of)
{
	struct buf *out = &n->body;

	buf_addf(out, "{\"id\":\"%.*s:%d\",\"employee\":", (int)ref.n, ref.p, n->what);
	buf_add_json(out, p->employee);
	add_text(out, "name", p->name);
	add_text(out, "of", bytes_of(of));
	buf_addf(out, ",\"at\":%lld,\"received\":%lld,\"state\":\"%s\"", (long long)p->at,
		(long long)p->received, attendance_name(j->status));
	add_instant(out, "in", j->in);
	add_instant(out, "out", j->out);
	if (j->late_ms > 0)
		buf_addf(out, ",\"late_ms\":%lld", (long long)j->late_ms);
	add_text(out, "source", p->source);
	add_text(out, "marks", p->marks);
	buf_add_char(out, '}');
}

static bool make_punch(struct notices *all, const struct journal_record *record, const struct tree *tree)
{
	struct punch_record p;
	struct judgement before, after;
	struct buf set = BUF_INIT;

	/* A punch of a closed day: the ledger revises the row, and tells when that changes something. */
	if (!record_parse_punch(record->text, &p) || p.late)
		return true;
	struct shift shift = workday_shift(p.day);
	set_before(&set, &p);
	bool sound = punch_judge(buf_bytes(&set), &shift, false, &before) == 0 &&
		     punch_judge(p.set, &shift, false, &after) == 0;
	buf_release(&set);
	if (!sound)
		return true;
	bool late_changed = (before.late_ms > 0) != (after.late_ms > 0);
	if (after.punches == before.punches && !late_changed)
		return true; /* within the debounce window of another: kept, not told */
	bool is_in = p.direction == 'I' || (p.direction == 'U' && after.in == p.at);
	struct address to = {is_in ? WHAT_IN : WHAT_OUT, p.dept, p.home, p.date, {"", 0}};
	if (!message_dept_known(all, tree, p.dept) || !message_dept_known(all, tree, p.home))
		return false;
	struct notice *n;
	if (after.punches != before.punches) {
		n = message_for(all, &to, record->ref, tree);
		add_punch(n, record->ref, &p, &after, "");
	}
	if (late_changed) {
		to.what = after.late_ms > 0 ? WHAT_LATE : WHAT_WITHDRAWN;
		n = message_for(all, &to, record->ref, tree);
		add_punch(n, record->ref, &p, &after, after.late_ms > 0 ? "" : "late");
	}
	return true;
}

/* A|date|dept|employee|revision|name. Its id says what it is, not where it stood: told once per person and
 * day. */
static bool make_absent(struct notices *all, const struct journal_record *record, const struct tree *tree)
{
	struct bytes f[6];

	if (bytes_split(record->text, '|', f, 6) != 6)
		return true;
	struct address to = {WHAT_ABSENT, f[2], f[2], f[1], {"", 0}};
	struct notice *n = message_for(all, &to, record->ref, tree);
	if (n == NULL)
		return false;
	buf_addf(&n->body, "{\"id\":\"absent:%.*s:%.*s:%.*s\",\"employee\":", (int)f[1].n, f[1].p,
		(int)f[3].n, f[3].p, (int)f[4].n, f[4].p);
	buf_add_json(&n->body, f[3]);
	add_text(&n->body, "name", f[5]);
	buf_add_char(&n->body, '}');
	return true;
}

/* W|date|dept|employee|revision|old status|new status|at */
static bool make_withdrawn(struct notices *all, const struct journal_record *record, const struct tree *tree)
{
	struct bytes f[8];

	if (bytes_split(record->text, '|', f, 8) != 8)
		return true;
	struct address to = {WHAT_WITHDRAWN, f[2], f[2], f[1], {"", 0}};
	struct notice *n = message_for(all, &to, record->ref, tree);
	if (n == NULL)
		return false;
	buf_addf(&n->body, "{\"id\":\"withdrawn:%.*s:%.*s:%.*s\",\"employee\":", (int)f[1].n, f[1].p,
		(int)f[3].n, f[3].p, (int)f[4].n, f[4].p);
	buf_add_json(&n->body, f[3]);
	add_text(&n->body, "of", f[5]);
	add_text(&n->body, "state", f[6]);
	buf_addf(&n->body, ",\"at\":%.*s}", (int)f[7].n, f[7].p);
	return true;
}

/* C|date|dept|expected|written|failed|absent|late|received */
static bool make_closed(struct notices *all, const struct journal_record *record, const struct tree *tree)
{
	struct bytes f[9];

	if (bytes_split(record->text, '|', f, 9) != 9)
		return true;
	struct address to = {WHAT_CLOSED, f[2], f[2], f[1], {"", 0}};
	struct notice *n = message_for(all, &to, record->ref, tree);
	if (n == NULL)
		return false;
	buf_addf(&n->body, "{\"id\":\"closed:%.*s:%.*s\",\"expected\":%.*s,\"written\":%.*s,\"failed\":%.*s",
		(int)f[1].n, f[1].p, (int)f[2].n, f[2].p, (int)f[3].n, f[3].p, (int)f[4].n, f[4].p,
		(int)f[5].n, f[5].p);
	buf_addf(&n->body, ",\"absent\":%.*s,\"late\":%.*s}", (int)f[6].n, f[6].p, (int)f[7].n, f[7].p);
	return true;
}

/* T|change|id|parent or -|manager or -|version|state|path|old path or -|name. The record says itself where
 * the team stands, and stood: told to those who were above it then, whatever has changed since. */
static bool make_team(struct notices *all, const struct journal_record *record, const struct tree *tree)
{
	struct bytes f[10];
	int64_t version;

	(void)tree;
	if (bytes_split(record->text, '|', f, 10) != 10 || !bytes_to_i64(f[5], &version))
		return true;
	struct address to = {WHAT_TEAM, f[2], f[2], {"", 0}, f[1]};
	struct notice *n = message_for_team(all, &to, record->ref, f[7], record_optional(f[8]), f[9]);
	buf_addf(&n->body, "{\"id\":\"%.*s\",\"team\":", (int)record->ref.n, record->ref.p);
	buf_add_json(&n->body, f[2]);
	add_text(&n->body, "name", f[9]);
	add_text(&n->body, "parent", record_optional(f[3]));
	add_text(&n->body, "manager", record_optional(f[4]));
	add_text(&n->body, "state", f[6]);
	buf_add_str(&n->body, ",\"path\":");
	message_add_path(&n->body, f[7]);
	if (record_optional(f[8]).n > 0) {
		buf_add_str(&n->body, ",\"old_path\":");
		message_add_path(&n->body, f[8]);
	}
	buf_addf(&n->body, ",\"version\":%lld}", (long long)version);
	return true;
}

/* J|join or leave|team|employee|unix ms */
static bool make_member(struct notices *all, const struct journal_record *record, const struct tree *tree)
{
	struct bytes f[5];
	int64_t at;

	if (bytes_split(record->text, '|', f, 5) != 5 || !bytes_to_i64(f[4], &at))
		return true;
	struct address to = {WHAT_TEAM, f[2], f[2], {"", 0}, f[1]};
	struct notice *n = message_for(all, &to, record->ref, tree);
	if (n == NULL)
		return false;
	buf_addf(&n->body, "{\"id\":\"%.*s\",\"team\":", (int)record->ref.n, record->ref.p);
	buf_add_json(&n->body, f[2]);
	add_text(&n->body, "employee", f[3]);
	add_instant(&n->body, "at", at);
	buf_add_char(&n->body, '}');
	return true;
}

/* A K record, see persist/record.h. A queue stands in no tree. */
static bool make_task(struct notices *all, const struct journal_record *record, const struct tree *tree)
{
	struct task_record t;

	(void)tree;
	if (!record_parse_task(record->text, &t) || (all->task_ends & 1 << t.change) == 0)
		return true;
	struct address to = {
		.what = WHAT_TASK, .change = bytes_of(task_change_name(t.change)), .queue = t.queue};
	struct notice *n = message_for_queue(all, &to, record->ref);
	buf_addf(&n->body, "{\"id\":\"%.*s\",\"task\":", (int)record->ref.n, record->ref.p);
	buf_add_json(&n->body, t.id);
	buf_addf(&n->body, ",\"at\":%lld,\"submitted\":%lld,\"priority\":%lld", (long long)t.at,
		(long long)t.submitted, (long long)t.priority);
	buf_addf(&n->body, ",\"retries\":%lld,\"crashes\":%lld", (long long)t.retries, (long long)t.crashes);
	add_text(&n->body, "worker", t.worker);
	add_text(&n->body, "key", t.key);
	add_text(&n->body, "error", t.error);
	buf_add_char(&n->body, '}');
	return true;
}

static const struct {
	char letter;
	bool (*make)(struct notices *all, const struct journal_record *record, const struct tree *tree);
} makers[] = {{'P', make_punch}, {'K', make_task}, {'A', make_absent}, {'W', make_withdrawn},
	{'C', make_closed}, {'T', make_team}, {'J', make_member}};

static bool make(struct notices *all, const struct journal_record *record, const struct tree *tree)
{
	for (size_t i = 0; i < ARRAY_LEN(makers); i++) {
		if (record->text.n > 0 && record->text.p[0] == makers[i].letter)
			return makers[i].make(all, record, tree);
	}
	return true;
}

bool notices_make(struct notices *all, const struct journal_window *window, const struct tree *tree)
{
	for (int i = 0; i < window->count; i++) {
		if (!make(all, &window->records[i], tree)) {
			notices_release(all);
			return false;
		}
	}
	for (size_t i = 0; i < all->count; i++)
		buf_add_str(&all->list[i].body, "]}");
	return true;
}
