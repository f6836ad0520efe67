/* SPDX-License-Identifier: MIT */
#include "mq/notice_message.h"

#include "base/mem.h"
#include "persist/tree.h"

/* What a key takes in the header besides its bytes and a NUL. */
#define KEY_OVERHEAD 8

static const char *const what_names[] = {"attendance.in", "attendance.out", "attendance.late",
	"attendance.absent", "attendance.withdrawn", "attendance.closed", "team", "task"};

/* Where a department stands: the ids from the root to it, joined by ':'. */
struct place {
	struct bytes name;
	struct buf path;
};

/* ---- places ---- */

static void add_path(struct buf *out, const struct dept *dept)
{
	if (dept->parent != NULL) {
		add_path(out, dept->parent);
		buf_add_char(out, ':');
	}
	buf_add_str(out, dept->id);
}

bool message_dept_known(struct notices *all, const struct tree *tree, struct bytes dept)
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

void message_add_path(struct buf *out, struct bytes path)
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
	if (to->change.n > 0) {
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
	message_add_path(&n->body, path);
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
			n->body.len < NOTICE_BODY_MAX && bytes_eq(buf_bytes(&n->group), buf_bytes(group)))
			return n;
	}
	return NULL;
}

/* The message that one more event goes into. One without a key is new, and needs its head. */
static struct notice *group_message(struct notices *all, const struct address *to, struct bytes ref)
{
	const struct bytes parts[] = {to->dept, to->home, to->date, to->change, to->queue};
	struct buf group = BUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		buf_add_bytes(&group, parts[i]);
		buf_add_char(&group, '|');
	}
	struct notice *n = find_message(all, to, &group);
	if (n != NULL) {
		buf_release(&group);
		buf_add_char(&n->body, ',');
		n->events++;
		return n;
	}
	n = message_new(all, to, ref);
	n->group = group;
	return n;
}

struct notice *message_for(
	struct notices *all, const struct address *to, struct bytes ref, const struct tree *tree)
{
	struct place at, home = {.name = {"", 0}};

	if (!message_dept_known(all, tree, to->dept) || !message_dept_known(all, tree, to->home))
		return NULL;
	struct notice *n = group_message(all, to, ref);
	if (n->key.len > 0)
		return n;
	find_place(tree, to->dept, &at);
	if (!bytes_eq(to->home, to->dept))
		find_place(tree, to->home, &home);
	add_keys(n, buf_bytes(&at.path), buf_bytes(&home.path));
	open_message(n, to, buf_bytes(&at.path), at.name);
	buf_release(&at.path);
	buf_release(&home.path);
	return n;
}

struct notice *message_for_team(struct notices *all, const struct address *to, struct bytes ref,
	struct bytes path, struct bytes old_path, struct bytes name)
{
	struct notice *n = message_new(all, to, ref);

	add_keys(n, path, old_path);
	open_message(n, to, path, name);
	return n;
}

struct notice *message_for_queue(struct notices *all, const struct address *to, struct bytes ref)
{
	struct notice *n = group_message(all, to, ref);

	if (n->key.len > 0)
		return n;
	buf_addf(&n->key, "%s.%.*s", n->type.data, (int)to->queue.n, to->queue.p);
	buf_addf(&n->body, "{\"schema\":1,\"type\":\"%s\",\"queue\":", n->type.data);
	buf_add_json(&n->body, to->queue);
	buf_add_str(&n->body, ",\"events\":[");
	return n;
}
