/* SPDX-License-Identifier: MIT */
/* First the tree is walked from its roots, since siblings and cousins are looked at in one go. Then all keys
 * come from SCAN, so that what hangs nowhere is found too; what the walk has seen is not looked at again.
 * Each place and key becomes an item that a script looks at, and a script may name further items. Counts that
 * don't add up wait until all links have been looked at: then it can be told which of the numbers is wrong.
 */
#include "persist/team_check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/check_queue.h"
#include "persist/check_run.h"
#include "persist/findings.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/seen.h"

#define ITEM_MAX 128

enum check_state {
	CHECK_WALKING,  /* down from the roots */
	CHECK_SCANNING, /* through the keyspace; what a page gave is looked at before the next */
	CHECK_VERIFYING /* every key has been looked at; nodes whose counts don't add up are */
};

/* A node whose counts do not add up. */
struct suspect {
	UT_hash_handle hh;
	int64_t missing; /* nodes that its set lacks, known by now */
	char id[];
};

struct team_check {
	struct check_run *run;
	struct redis *redis;
	void (*changed)(void *arg);
	void *changed_arg;
	enum check_state state;
	char base[KEYS_PREFIX_MAX + 16];  /* the prefix of the organisation's keys */
	struct check_queue *nodes, *keys; /* of lua/team_check.lua, of lua/team_check_keys.lua */
	struct seen *seen;                /* what the walk has looked at: dept:<id>, direct_children:<id> */
	struct suspect *suspects;
	bool singles; /* the keys of which there is one have been pushed */
};

static void set_state(struct team_check *c, enum check_state state)
{
	static const char *const names[] = {"walking", "scanning", "verifying"};

	if (c->state != state)
		log_info("persist check event=state from=%s to=%s round=%d", names[c->state], names[state],
			check_run_round(c->run));
	c->state = state;
}

/* ---- items and suspects ---- */

static void push(struct check_queue *q, struct bytes item)
{
	check_queue_push(q, item, BYTES_LIT(""));
}

static struct suspect *suspect(struct team_check *c, struct bytes id)
{
	struct suspect *s;

	HASH_FIND(hh, c->suspects, id.p, id.n, s);
	if (s == NULL) {
		s = xcalloc(1, sizeof(*s) + id.n + 1);
		bytes_copy(s->id, id.n + 1, id);
		HASH_ADD_KEYPTR(hh, c->suspects, s->id, id.n, s);
	}
	return s;
}

/* Turns suspects into items: a portion, since there may be very many. */
static void verify_next(struct team_check *c)
{
	struct buf item = BUF_INIT, from = BUF_INIT;

	for (int i = 0; i < CHECK_ITEMS && c->suspects != NULL; i++) {
		struct suspect *s = c->suspects;
		buf_addf(&item, "verify:%s", s->id);
		buf_addf(&from, "0:%lld:0", -(long long)s->missing);
		check_queue_push(c->keys, buf_bytes(&item), buf_bytes(&from));
		buf_clear(&item);
		buf_clear(&from);
		HASH_DEL(c->suspects, s);
		free(s);
	}
	buf_release(&item);
	buf_release(&from);
}

static void drop(void *arg)
{
	struct team_check *c = arg;
	struct suspect *s, *tmp;

	check_queue_clear(c->nodes);
	check_queue_clear(c->keys);
	HASH_ITER (hh, c->suspects, s, tmp) {
		HASH_DEL(c->suspects, s);
		free(s);
	}
	seen_free(c->seen);
	c->seen = NULL;
}

/* ---- rounds ---- */

static void begin_round(void *arg)
{
	struct team_check *c = arg;

	seen_free(c->seen);
	c->seen = seen_new();
	c->singles = false;
	set_state(c, CHECK_WALKING);
	push(c->nodes, BYTES_LIT("roots"));
}

/* The first round of a repair of the truth only puts back what some parent still lists; what is lost after
 * that is for the second. */
static bool again(int64_t left, void *arg)
{
	const struct team_check *c = arg;

	return check_run_mode(c->run) == TEAM_CHECK_TRUTH && check_run_round(c->run) == 1 && left > 0;
}

static void repaired(void *arg)
{
	struct team_check *c = arg;

	c->changed(c->changed_arg);
}

/* ---- what the scripts answer ---- */

static void found(const struct finding *finding, bool fresh, void *arg)
{
	if (fresh && bytes_eq(finding->code, BYTES_LIT("DSMISS")))
		suspect(arg, finding->detail)->missing++;
}

/* The rest of a line behind `head`; false when it begins otherwise. */
static bool cut(struct bytes line, const char *head, struct bytes *ret_rest)
{
	size_t n = strlen(head);

	if (line.n < n || memcmp(line.p, head, n) != 0)
		return false;
	*ret_rest = (struct bytes){line.p + n, line.n - n};
	return true;
}

/* A script's word that there is more to look at. What hangs below comes first, so that the walk goes down. */
static void take_item(struct team_check *c, struct bytes item)
{
	struct bytes id;

	if (cut(item, "verify:", &id))
		(void)suspect(c, id);
	else if (cut(item, "dept:", &id))
		push(c->nodes, item);
	else if (!cut(item, "direct_children:", &id))
		push(c->keys, item);
	else if (seen_add(c->seen, item))
		check_queue_push_first(c->nodes, item);
}

static void take(char sign, struct bytes rest, void *arg)
{
	struct team_check *c = arg;

	if (sign == '+')
		take_item(c, rest);
	else if (sign == '=')
		(void)seen_add(c->seen, rest);
}

static void on_nodes(const struct redisReply *reply, void *arg)
{
	struct team_check *c = arg;

	if (check_run_answered(c->run, reply))
		check_run_take(c->run, reply, check_queue_take(c->nodes, reply));
}

static void on_keys(const struct redisReply *reply, void *arg)
{
	struct team_check *c = arg;

	if (check_run_answered(c->run, reply))
		check_run_take(c->run, reply, check_queue_take(c->keys, reply));
}

/* ---- walking ---- */

/* Whether a key of this kind, with this behind the kind, needs a look. Derived keys are looked at with their
 * node; they are of interest where there is none. */
static bool needs_look(const struct team_check *c, struct bytes kind, struct bytes id)
{
	char text[ITEM_MAX];

	if (bytes_eq(kind, BYTES_LIT("user_teams")))
		return person_id_valid(id);
	if (!id_valid(id))
		return bytes_eq(kind, BYTES_LIT("names")) && bytes_eq(id, BYTES_LIT("-"));
	if (bytes_eq(kind, BYTES_LIT("members")) || bytes_eq(kind, BYTES_LIT("job")))
		return true;
	bool names = bytes_eq(kind, BYTES_LIT("names"));
	int n = snprintf(text, sizeof(text), "%s:%.*s", names ? "direct_children" : "dept", (int)id.n, id.p);
	return (names || bytes_eq(kind, BYTES_LIT("children"))) &&
	       !seen_has(c->seen, (struct bytes){text, (size_t)n});
}

static void take_key(struct bytes key, void *arg)
{
	struct team_check *c = arg;
	struct bytes f[2], name;

	if (!cut(key, c->base, &name))
		return;
	check_run_count(c->run, 1, 0, 0);
	if (bytes_split(name, ':', f, 2) != 2)
		return;
	if (bytes_eq(f[0], BYTES_LIT("dept")) && id_valid(f[1])) {
		check_run_count(c->run, 0, 1, 0);
		if (!seen_has(c->seen, name))
			push(c->nodes, name);
	} else if (bytes_eq(f[0], BYTES_LIT("direct_children")) && id_valid(f[1])) {
		if (seen_add(c->seen, name))
			push(c->nodes, name);
	} else if (needs_look(c, f[0], f[1])) {
		push(c->keys, name);
	}
}

/* Those of which there is one are looked at whether they are there or not. */
static void push_singles(struct team_check *c)
{
	static const char *const names[] = {"jobs", "gone", "journal", "last", "next_id", "next_job"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		push(c->keys, bytes_of(names[i]));
}

/* ---- steps ---- */

static enum redis_sent ask_about(struct team_check *c, struct check_queue *q, redis_cb cb)
{
	struct redis_args head;

	redis_args_init(&head);
	redis_arg_str(&head, c->base);
	if (check_run_mode(c->run) == TEAM_CHECK_TRUTH)
		redis_arg_i64(&head, check_run_round(c->run) == 1 ? 2 : 3);
	else
		redis_arg_i64(&head, check_run_mode(c->run) == TEAM_CHECK_REPAIR);
	redis_arg_i64(&head, clock_wall_ms());
	return check_queue_send(q, c->redis, &head, cb, c);
}

static bool has_work(const struct team_check *c)
{
	return check_queue_count(c->nodes) + check_queue_count(c->keys) > 0;
}

static enum redis_sent ask(void *arg)
{
	struct team_check *c = arg;
	size_t nodes = check_queue_count(c->nodes), keys = check_queue_count(c->keys);

	/* Full portions: that is fewer steps. */
	if (c->state == CHECK_SCANNING && !check_run_scanned(c->run) && nodes < CHECK_ITEMS &&
		keys < CHECK_ITEMS)
		return check_run_scan(c->run, c->base, take_key);
	return nodes >= keys ? ask_about(c, c->nodes, on_nodes) : ask_about(c, c->keys, on_keys);
}

/* Goes on to the next state when there is nothing left to do in this one. */
static bool find_work(void *arg)
{
	struct team_check *c = arg;

	if (has_work(c))
		return true;
	if (c->state == CHECK_WALKING)
		set_state(c, CHECK_SCANNING);
	if (!check_run_scanned(c->run))
		return true;
	if (!c->singles) {
		push_singles(c);
		c->singles = true;
		return true;
	}
	set_state(c, CHECK_VERIFYING);
	verify_next(c);
	return has_work(c);
}

/* ---- life ---- */

/* Where an item's employee is at home is a key of another slot, which a script must be given; every other
 * item has the anchor. */
static void item_key(struct buf *out, const char *item, void *arg)
{
	struct bytes f[3];
	int n = bytes_split(bytes_of(item), ':', f, 3);

	(void)arg;
	if (n == 3 && bytes_eq(f[0], BYTES_LIT("member")))
		key_dir(out, f[2]);
	else if (n == 2 && bytes_eq(f[0], BYTES_LIT("user_teams")))
		key_dir(out, f[1]);
	else
		key_org(out, "roots");
}

static const char *const modes[] = {"check", "repair", "truth"};
static const struct check_ops ops = {.section = "Tree check",
	.name = "check",
	.items = "nodes",
	.modes = modes,
	.begin_round = begin_round,
	.find_work = find_work,
	.ask = ask,
	.take = take,
	.found = found,
	.again = again,
	.repaired = repaired,
	.drop = drop};

struct team_check *team_check_new(
	struct event_base *base, struct redis *redis, void (*changed)(void *arg), void *arg)
{
	struct team_check *c = xcalloc(1, sizeof(*c));
	struct buf prefix = BUF_INIT;

	c->redis = redis;
	c->changed = changed;
	c->changed_arg = arg;
	key_org(&prefix, "");
	bytes_copy(c->base, sizeof(c->base), buf_bytes(&prefix));
	buf_release(&prefix);
	c->nodes = check_queue_new(SCRIPT_TEAM_CHECK, item_key, NULL);
	c->keys = check_queue_new(SCRIPT_TEAM_CHECK_KEYS, item_key, NULL);
	c->run = check_run_new(base, redis, &ops, c);
	return c;
}

void team_check_free(struct team_check *c)
{
	if (c == NULL)
		return;
	drop(c);
	check_queue_free(c->nodes);
	check_queue_free(c->keys);
	check_run_free(c->run);
	free(c);
}

struct check_run *team_check_run(struct team_check *c)
{
	return c->run;
}
