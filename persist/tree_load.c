/* SPDX-License-Identifier: MIT */
#include "persist/tree_load.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/tree.h"
#include "persist/tree_load_private.h"

#ifndef PAGE      /* tests set less */
#define PAGE 250  /* nodes of a script call */
#define SCAN 1000 /* members of a set that are asked for at once, whose pages then follow */
#endif
#define SCANS_MAX 2    /* sets that are scanned at the same time */
#define REST_MAX  4000 /* names that are looked at in one go */

struct scan {
	struct tree_load *load;
	const char *kind; /* of set: "roots", "direct_children" or "children" */
	char id[ID_MAX + 1];
};

struct page {
	struct redis_args args;
	int count;
};

static void set_state(struct tree_load *l, enum load_state state)
{
	static const char *const names[] = {"beginning", "lifting", "roots", "rest"};

	log_info("persist tree event=load from=%s to=%s nodes=%zu", names[l->state], names[state],
		forest_size(l->forest));
	l->state = state;
}

static void destroy(struct tree_load *l)
{
	text_release(&l->sets);
	text_release(&l->unread);
	text_release(&l->again);
	text_release(&l->lifted);
	text_release(&l->removed);
	turn_cancel(&l->done);
	free(l);
}

/* ---- pages of nodes ---- */

static void step(struct tree_load *l);

/* A reply has come; whether anybody still wants it. */
static bool received(struct tree_load *l, const struct redisReply *reply)
{
	l->inflight--;
	if (l->freed) {
		if (l->inflight == 0)
			destroy(l);
		return false;
	}
	/* A key that somebody has made something else is as good as empty: TEAM.CHECK finds it. */
	if (redis_reply_error(reply) != NULL && !redis_wrong_type(reply))
		l->failed = true;
	return true;
}

void load_put(struct tree_load *l, const struct dept_fields *fields, enum node_mark mark)
{
	if (build_put(l->forest, fields, mark))
		text_push(&l->unread, fields->parent);
}

/* What says that this is its parent may have got another meanwhile. From the end, where a list is taken
 * apart. */
void load_children_again(struct tree_load *l, const struct dept *d)
{
	for (uint32_t i = d->child_count; i-- > 0;)
		text_push(&l->again, bytes_of(d->children[i]->id));
}

static void take_absent(struct tree_load *l, struct bytes id)
{
	struct dept *d = build_find(l->forest, id);

	if (d == NULL || build_mark(d) == NODE_ABSENT)
		return;
	load_children_again(l, d);
	build_absent(d);
}

/* id|parent|manager|version|state|name */
static void take_node(struct tree_load *l, struct bytes line)
{
	struct bytes f[6];
	struct dept_fields fields = {.version = 1};

	if (bytes_split(line, '|', f, 6) != 6) {
		take_absent(l, f[0]);
		return;
	}
	fields.id = f[0];
	fields.parent = f[1];
	fields.manager = f[2];
	fields.retired = bytes_eq(f[4], BYTES_LIT("retired"));
	fields.name = f[5];
	if (!bytes_to_i64(f[3], &fields.version))
		log_warning("persist tree event=damaged id=%.*s version=%.*s", (int)f[0].n, f[0].p,
			(int)f[3].n, f[3].p);
	if (bytes_eq(f[4], BYTES_LIT("lifted"))) {
		load_put(l, &fields, NODE_LIFTED);
		text_push(&l->lifted, fields.id);
	} else if (bytes_eq(f[4], BYTES_LIT("removed"))) {
		load_put(l, &fields, NODE_ABSENT);
		text_push(&l->removed, fields.id);
	} else {
		load_put(l, &fields, NODE_READ);
	}
}

static void on_page(const struct redisReply *reply, void *arg)
{
	struct tree_load *l = arg;

	if (!received(l, reply))
		return;
	(void)!stream_id_parse(redis_text(redis_at(reply, 0)), &l->last);
	for (size_t i = 1; i < redis_count(reply); i++)
		take_node(l, redis_text(redis_at(reply, i)));
	step(l);
}

static void page_begin(struct page *p)
{
	struct buf scratch = BUF_INIT;

	redis_args_init(&p->args);
	key_org(&scratch, "roots");
	redis_arg_key(&p->args, &scratch);
	key_org(&scratch, "");
	redis_arg_key(&p->args, &scratch);
	buf_release(&scratch);
	p->count = 0;
}

static void page_send(struct tree_load *l, struct page *p, redis_cb cb)
{
	if (redis_eval(l->redis, SCRIPT_TEAM_PAGE, 1, &p->args, cb, l) == REDIS_SENT)
		l->inflight++;
	else
		l->failed = true;
}

static void page_add(struct tree_load *l, struct page *p, struct bytes id)
{
	if (p->count == PAGE) {
		page_send(l, p, on_page);
		page_begin(p);
	}
	redis_arg(&p->args, id);
	p->count++;
}

static void page_end(struct tree_load *l, struct page *p)
{
	if (p->count > 0)
		page_send(l, p, on_page);
	else
		redis_args_release(&p->args);
}

/* ---- sets ---- */

static void on_scan(const struct redisReply *reply, void *arg);

static void scan_send(struct tree_load *l, struct scan *s, struct bytes cursor)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "SSCAN");
	if (s->id[0] == '\0')
		key_org(&key, s->kind);
	else
		key_org_of(&key, s->kind, bytes_of(s->id));
	redis_arg_key(&a, &key);
	redis_arg(&a, cursor);
	redis_arg_str(&a, "COUNT");
	redis_arg_i64(&a, SCAN);
	buf_release(&key);
	l->scanned = true;
	if (redis_query(l->redis, &a, on_scan, s) == REDIS_SENT) {
		l->inflight++;
		return;
	}
	l->failed = true;
	l->scans--;
	free(s);
}

static void on_scan(const struct redisReply *reply, void *arg)
{
	struct scan *s = arg;
	struct tree_load *l = s->load;
	bool whole = strcmp(s->kind, "children") == 0;
	struct bytes cursor = redis_text(redis_at(reply, 0));
	const struct redisReply *ids = redis_at(reply, 1);
	struct page p;

	if (!received(l, reply)) {
		free(s);
		return;
	}
	page_begin(&p);
	for (size_t i = 0; i < redis_count(ids); i++) {
		struct bytes id = redis_text(redis_at(ids, i));
		page_add(l, &p, id);
		if (!whole)
			text_push(&l->sets, id);
	}
	page_end(l, &p);
	if (redis_is_array(reply) && !bytes_eq(cursor, BYTES_LIT("0"))) {
		scan_send(l, s, cursor);
	} else {
		l->scans--;
		free(s);
	}
	step(l);
}

static void scan_begin(struct tree_load *l, const char *kind, struct bytes id)
{
	struct scan *s = xcalloc(1, sizeof(*s));

	s->load = l;
	s->kind = kind;
	bytes_copy(s->id, sizeof(s->id), id);
	l->scans++;
	scan_send(l, s, BYTES_LIT("0"));
}

void load_subtree(struct tree_load *l, struct bytes id)
{
	struct page p;

	page_begin(&p);
	page_add(l, &p, id);
	page_end(l, &p);
	text_push(&l->sets, id);
	step(l);
}

static void on_last(const struct redisReply *reply, void *arg)
{
	struct tree_load *l = arg;

	if (!received(l, reply))
		return;
	(void)!stream_id_parse(redis_text(reply), &l->last);
	step(l);
}

/* What a set did not hold any more has gone by now. */
static void read_last(struct tree_load *l)
{
	struct redis_args a;
	struct buf key = BUF_INIT;

	l->scanned = false;
	redis_args_init(&a);
	redis_arg_str(&a, "GET");
	key_org(&key, "last");
	redis_arg_key(&a, &key);
	buf_release(&key);
	if (redis_query(l->redis, &a, on_last, l) == REDIS_SENT)
		l->inflight++;
	else
		l->failed = true;
}

/* ---- order ---- */

/* The roots come after those that are being lifted: when one of these is done with meanwhile, its children
 * are roots. */
static void step(struct tree_load *l)
{
	struct bytes id;

	while (!l->failed && l->scans < SCANS_MAX && text_pop(&l->sets, &id))
		scan_begin(l, "children", id);
	if (!l->failed && l->inflight == 0 && l->state == LOAD_LIFTING) {
		set_state(l, LOAD_ROOTS);
		scan_begin(l, "roots", (struct bytes){"", 0});
	}
	if (!l->failed && l->inflight == 0 && l->scanned)
		read_last(l);
	if (l->inflight == 0)
		turn_schedule(&l->done);
}

static void on_beginning(const struct redisReply *reply, void *arg)
{
	struct tree_load *l = arg;

	if (!received(l, reply))
		return;
	(void)!stream_id_parse(redis_text(redis_at(reply, 0)), &l->first);
	l->last = l->first;
	set_state(l, LOAD_LIFTING);
	for (size_t i = 1; i < redis_count(reply); i++)
		scan_begin(l, "direct_children", redis_text(redis_at(reply, i)));
	step(l);
}

static void on_done(void *arg)
{
	struct tree_load *l = arg;

	if (l->state == LOAD_ROOTS)
		set_state(l, LOAD_REST);
	l->idle(l->arg);
}

struct tree_load *tree_load_new(
	struct redis *redis, struct forest *forest, void (*idle)(void *arg), void *arg)
{
	struct tree_load *l = xcalloc(1, sizeof(*l));
	struct page p;

	l->redis = redis;
	l->forest = forest;
	l->idle = idle;
	l->arg = arg;
	turn_task_init(&l->done, on_done, l);
	page_begin(&p);
	page_send(l, &p, on_beginning);
	if (l->failed)
		turn_schedule(&l->done);
	return l;
}

void tree_load_free(struct tree_load *l)
{
	if (l == NULL)
		return;
	l->freed = true;
	turn_cancel(&l->done);
	if (l->inflight == 0)
		destroy(l);
}

bool tree_load_failed(const struct tree_load *l)
{
	return l->failed;
}

bool tree_load_begun(const struct tree_load *l)
{
	return l->state != LOAD_BEGINNING;
}

struct stream_id tree_load_first(const struct tree_load *l)
{
	return l->first;
}

struct stream_id tree_load_last(const struct tree_load *l)
{
	return l->last;
}

/* ---- what is left ---- */

static void read_rest(struct tree_load *l, int *left)
{
	struct bytes id;
	struct page p;

	page_begin(&p);
	for (; *left > 0 && text_pop(&l->again, &id); --*left)
		page_add(l, &p, id);
	for (; *left > 0 && text_pop(&l->unread, &id); --*left) {
		const struct dept *d = build_find(l->forest, id);
		if (d != NULL && build_mark(d) != NODE_READ && build_mark(d) != NODE_LIFTED)
			page_add(l, &p, id);
	}
	page_end(l, &p);
}

/* True when nothing is left that has been taken out. */
static bool take_out_removed(struct tree_load *l, int *left)
{
	struct bytes id;

	for (; *left > 0 && text_pop(&l->removed, &id); --*left) {
		struct dept *d = build_find(l->forest, id);
		if (d == NULL || build_mark(d) != NODE_ABSENT)
			continue;
		build_take_out(l->forest, d);
		if (!forest_drop(l->forest, left, NULL, NULL))
			return false;
	}
	return true;
}

enum load_rest tree_load_rest(struct tree_load *l)
{
	int left = REST_MAX;

	read_rest(l, &left);
	if (l->inflight > 0 || l->failed) {
		step(l);
		return LOAD_ASKED;
	}
	if (!take_out_removed(l, &left))
		return LOAD_REMOVED;
	return left > 0 ? LOAD_COMPLETE : LOAD_BUSY;
}

void tree_load_end(struct tree_load *l)
{
	struct bytes id;

	while (text_pop(&l->lifted, &id)) {
		struct dept *d = build_find(l->forest, id);
		struct bytes parent = {"", 0};
		if (d == NULL || build_mark(d) != NODE_LIFTED)
			continue;
		if (d->parent != NULL)
			parent = bytes_of(d->parent->id);
		(void)build_lift(l->forest, d, parent);
	}
}
