/* SPDX-License-Identifier: MIT */
#include "mq/notice.h"

#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "persist/journal.h"
#include "persist/record.h"
#include "persist/tree.h"
#include "rules/punch.h"
#include "rules/when.h"
#include "rules/workday.h"

/* What a key takes in the header besides its bytes and a NUL. */
#define KEY_OVERHEAD 8

enum what { WHAT_IN, WHAT_OUT, WHAT_LATE, WHAT_ABSENT, WHAT_WITHDRAWN, WHAT_CLOSED, WHAT_TEAM };

static const char *const what_names[] = {"attendance.in", "attendance.out", "attendance.late",
	"attendance.absent", "attendance.withdrawn", "attendance.closed", "team"};

/* Whom a message is for and about. `home` differs from `dept` for a person who was moved during the day: then
 * the supervisors of both hear of it. */
struct address {
	enum what what;
	struct bytes dept, home, date;
	struct bytes change; /* of a team */
};

/* Where a department stands: the ids from the root to it, joined by ':'. */
struct place {
	struct bytes name;
	struct buf path;
};

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

/* ---- places ---- */

static void add_path(struct buf *out, const struct dept *dept)
{
	if (dept->parent != NULL) {
		add_path(out, dept->parent);
		buf_add_char(out, ':');
	}
	buf_add_str(out, dept->id);
}

static bool is_known(struct notices *all, const struct tree *tree, struct bytes dept)
{
	struct bytes path, name;

	if (tree_find(tree, dept) != NULL || tree_gone(tree, dept, &path, &name))
		return true;
	bytes_copy(all->unknown, sizeof(all->unknown), dept);
	return all->alone;
}

/* Of a department that is known; one that is not has nobody above it. */
static void find_place(const struct tree *tree, struct bytes dept, struct place *ret)
{
	const struct dept *d = tree_find(tree, dept);
	struct bytes path;

	*ret = (struct place){.name = {"", 0}};
	if (d != NULL) {
		ret->name = bytes_of(d->name);
		add_path(&ret->path, d);
	} else if (tree_gone(tree, dept, &path, &ret->name)) {
		buf_add_bytes(&ret->path, path);
	} else {
		buf_add_bytes(&ret->path, dept);
	}
}

/* All but the last id of a path. */
static struct bytes above(struct bytes path)
{
	size_t n = path.n;

	while (n > 0 && path.p[n - 1] != ':')
		n--;
	return (struct bytes){path.p, n > 0 ? n - 1 : 0};
}

static struct bytes last_of(struct bytes path)
{
	size_t n = above(path).n;

	n += n > 0; /* the ':' */
	return (struct bytes){path.p + n, path.n - n};
}

/* Length of the part that two paths have in common, in whole ids. */
static size_t shared(struct bytes a, struct bytes b)
{
	size_t i = 0, whole = 0;

	for (; i < a.n && i < b.n && a.p[i] == b.p[i]; i++)
		whole = a.p[i] == ':' ? i : whole;
	return (i == a.n || a.p[i] == ':') && (i == b.n || b.p[i] == ':') ? i : whole;
}

static void add_path_json(struct buf *out, struct bytes path)
{
	struct bytes id[2];
	int parts;

	buf_add_char(out, '[');
	do {
		parts = bytes_split(path, ':', id, 2);
		buf_add_json(out, id[0]);
		buf_add_char(out, parts == 2 ? ',' : ']');
		path = id[1];
	} while (parts == 2);
}

/* ---- keys ---- */

static void add_cc(struct notice *n, struct bytes dept, bool subtree)
{
	buf_add_bytes(&n->keys, buf_bytes(&n->type));
	buf_add_char(&n->keys, '.');
	buf_add_bytes(&n->keys, dept);
	buf_add(&n->keys, subtree ? ".sub" : "", (subtree ? 4 : 0) + 1);
	n->key_count++;
}

/* A key for each department above, nearest first, down to those that have one already. What is over `most`
 * bytes of the header is left out. */
static void add_ancestors(struct notice *n, struct bytes path, size_t have, size_t most)
{
	for (struct bytes up = above(path); up.n > have; up = above(up)) {
		if (n->keys.len + n->key_count * KEY_OVERHEAD > most)
			n->left_out++;
		else
			add_cc(n, last_of(up), true);
	}
}

/* `other` is the path of the home, or where a team was before; empty when there is none. */
static void add_keys(struct notice *n, struct bytes path, struct bytes other)
{
	buf_addf(&n->key, "%s.%.*s", n->type.data, (int)last_of(path).n, last_of(path).p);
	add_ancestors(n, path, 0, other.n > 0 ? NOTICE_KEYS_MAX / 2 : NOTICE_KEYS_MAX);
	if (other.n == 0)
		return;
	if (!bytes_eq(last_of(path), last_of(other)))
		add_cc(n, last_of(other), false);
	add_ancestors(n, other, shared(above(path), above(other)), NOTICE_KEYS_MAX);
}

/* ---- messages ---- */

static struct notice *message_new(struct notices *all, const struct address *to, struct bytes ref)
{
	if (all->count == all->cap) {
		all->cap = all->cap == 0 ? 16 : all->cap * 2;
		all->list = xrealloc(all->list, all->cap * sizeof(all->list[0]));
	}
	struct notice *n = &all->list[all->count++];
	*n = (struct notice){.what = (int)to->what, .events = 1};
	buf_add_bytes(&n->id, ref);
	buf_addf(&n->id, ":%d", (int)to->what);
	buf_add_str(&n->type, what_names[to->what]);
	if (to->what == WHAT_TEAM) {
		buf_add_char(&n->type, '.');
		buf_add_bytes(&n->type, to->change);
	}
	return n;
}

static void open_message(struct notice *n, const struct address *to, struct bytes path, struct bytes name)
{
	buf_addf(&n->body, "{\"schema\":1,\"type\":\"%s\",\"dept\":", n->type.data);
	buf_add_json(&n->body, to->dept);
	buf_add_str(&n->body, ",\"dept_name\":");
	buf_add_json(&n->body, name);
	buf_add_str(&n->body, ",\"path\":");
	add_path_json(&n->body, path);
	if (to->date.n > 0) {
		buf_add_str(&n->body, ",\"day\":");
		buf_add_json(&n->body, to->date);
	}
	buf_add_str(&n->body, ",\"events\":[");
}

/* The message of this group that has room for one more event. */
static struct notice *find_message(struct notices *all, const struct address *to, const struct buf *group)
{
	/* From the end: consecutive events find theirs soon. */
	for (size_t i = all->count; i-- > 0;) {
		struct notice *n = &all->list[i];
		if (n->what == (int)to->what && n->events < NOTICE_EVENTS_MAX &&
			bytes_eq(buf_bytes(&n->group), buf_bytes(group)))
			return n;
	}
	return NULL;
}

/* The message that one more event of this kind goes into; a new one when there is none or it is full. NULL
 * when the department is not known. */
static struct notice *message_for(
	struct notices *all, const struct address *to, struct bytes ref, const struct tree *tree)
{
	struct buf group = BUF_INIT;
	struct place at, home = {.name = {"", 0}};

	if (!is_known(all, tree, to->dept) || !is_known(all, tree, to->home))
		return NULL;
	buf_addf(&group, "%.*s|%.*s|%.*s|%.*s", (int)to->dept.n, to->dept.p, (int)to->home.n, to->home.p,
		(int)to->date.n, to->date.p, (int)to->change.n, to->change.p);
	struct notice *n = find_message(all, to, &group);
	if (n != NULL) {
		buf_release(&group);
		buf_add_char(&n->body, ',');
		n->events++;
		return n;
	}
	n = message_new(all, to, ref);
	n->group = group;
	find_place(tree, to->dept, &at);
	if (!bytes_eq(to->home, to->dept))
		find_place(tree, to->home, &home);
	add_keys(n, buf_bytes(&at.path), buf_bytes(&home.path));
	open_message(n, to, buf_bytes(&at.path), at.name);
	buf_release(&at.path);
	buf_release(&home.path);
	return n;
}

/* ---- events ---- */

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
	if (!is_known(all, tree, p.dept) || !is_known(all, tree, p.home))
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
	struct notice *n = message_new(all, &to, record->ref);
	add_keys(n, f[7], record_optional(f[8]));
	open_message(n, &to, f[7], f[9]);
	buf_addf(&n->body, "{\"id\":\"%.*s\",\"team\":", (int)record->ref.n, record->ref.p);
	buf_add_json(&n->body, f[2]);
	add_text(&n->body, "name", f[9]);
	add_text(&n->body, "parent", record_optional(f[3]));
	add_text(&n->body, "manager", record_optional(f[4]));
	add_text(&n->body, "state", f[6]);
	buf_add_str(&n->body, ",\"path\":");
	add_path_json(&n->body, f[7]);
	if (record_optional(f[8]).n > 0) {
		buf_add_str(&n->body, ",\"old_path\":");
		add_path_json(&n->body, f[8]);
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

static const struct {
	char letter;
	bool (*make)(struct notices *all, const struct journal_record *record, const struct tree *tree);
} makers[] = {{'P', make_punch}, {'A', make_absent}, {'W', make_withdrawn}, {'C', make_closed},
	{'T', make_team}, {'J', make_member}};

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
