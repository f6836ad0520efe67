/* SPDX-License-Identifier: MIT */
/* First the tree is walked from its roots, since siblings and cousins are looked at in one go. Then all keys
 * come from SCAN, so that what hangs nowhere is found too; what the walk has seen is not looked at again.
 * Each place and key becomes an item that a script looks at, and a script may name further items. Counts that
 * don't add up wait until all links have been looked at: then it can be told which of the numbers is wrong.
 *
 * A step that Redis refuses for now is done again; a check that loses Redis ends. */
#include "persist/team_check.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/seen.h"
#include "persist/team_check_queue.h"
#include "persist/team_findings.h"

#define SCAN_COUNT   "500"
#define WORK_MS      8
#define PAUSE_MS     2
#define RETRY_MS     500
#define FAILURES_MAX 60 /* in a row */
#define ITEM_MAX     128
#define ROUNDS_MAX   40
#define LOGGED_MAX   1000 /* repairs of a check, so that a million of them don't fill a disk */

enum check_state {
	CHECK_IDLE,
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

struct wait {
	int64_t deadline_us;
	void (*fn)(void *arg);
	void *arg;
	TAILQ_ENTRY(wait) link;
};

struct team_check {
	struct redis *redis;
	struct event *timer;
	void (*changed)(void *arg);
	void *changed_arg;
	enum check_state state;
	enum team_check_mode mode;
	bool asking;
	const char *error;
	char base[KEYS_PREFIX_MAX + 16]; /* the prefix of the organisation's keys */
	char cursor[24];                 /* of SCAN */
	bool scanned;
	struct team_check_queue *nodes, *keys; /* of lua/team_check.lua, of lua/team_check_keys.lua */
	struct seen *seen; /* what the walk has looked at: dept:<id>, direct_children:<id> */
	struct suspect *suspects;
	struct team_findings *findings;
	int round, failures;
	int64_t node_count, key_count, fixed; /* of this round */
	int64_t rested_us;                    /* end of the last pause */
	int64_t began_us, took_ms, ended_ms;
	TAILQ_HEAD(, wait) waits;
};

static const char *const mode_names[] = {"check", "repair", "truth"};

static void set_state(struct team_check *c, enum check_state state)
{
	static const char *const names[] = {"idle", "walking", "scanning", "verifying"};

	if (c->state != state)
		log_info("persist check event=state from=%s to=%s round=%d", names[c->state], names[state],
			c->round);
	c->state = state;
}

static void arm(struct team_check *c, int64_t ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	event_add(c->timer, &tv);
}

/* The next step: at once, with a pause now and then, so that Redis is others' at least a fifth of the time.
 */
static void go_on(struct team_check *c)
{
	int64_t now = clock_mono_us();
	bool tired = now - c->rested_us > WORK_MS * 1000;

	if (tired)
		c->rested_us = now + PAUSE_MS * 1000;
	arm(c, tired ? PAUSE_MS : 0);
}

/* ---- items and suspects ---- */

static void push(struct team_check_queue *q, struct bytes item)
{
	team_check_queue_push(q, item, BYTES_LIT(""));
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

	for (int i = 0; i < TEAM_CHECK_ITEMS && c->suspects != NULL; i++) {
		struct suspect *s = c->suspects;
		buf_addf(&item, "verify:%s", s->id);
		buf_addf(&from, "0:%lld:0", -(long long)s->missing);
		team_check_queue_push(c->keys, buf_bytes(&item), buf_bytes(&from));
		buf_clear(&item);
		buf_clear(&from);
		HASH_DEL(c->suspects, s);
		free(s);
	}
	buf_release(&item);
	buf_release(&from);
}

static void drop_work(struct team_check *c)
{
	struct suspect *s, *tmp;

	team_check_queue_clear(c->nodes);
	team_check_queue_clear(c->keys);
	HASH_ITER (hh, c->suspects, s, tmp) {
		HASH_DEL(c->suspects, s);
		free(s);
	}
	seen_free(c->seen);
	c->seen = NULL;
}

/* ---- rounds ---- */

static void begin_round(struct team_check *c)
{
	c->round++;
	c->node_count = c->key_count = c->fixed = 0;
	c->scanned = false;
	snprintf(c->cursor, sizeof(c->cursor), "0");
	seen_free(c->seen);
	c->seen = seen_new();
	set_state(c, CHECK_WALKING);
	push(c->nodes, BYTES_LIT("roots"));
	go_on(c);
}

static void answer(struct team_check *c, bool late_only)
{
	struct wait *w, *next;
	int64_t now = clock_mono_us();

	for (w = TAILQ_FIRST(&c->waits); w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		if (late_only && now < w->deadline_us)
			continue;
		TAILQ_REMOVE(&c->waits, w, link);
		w->fn(w->arg);
		free(w);
	}
}

static void end(struct team_check *c, const char *error)
{
	drop_work(c);
	event_del(c->timer);
	c->error = error;
	c->took_ms = (clock_mono_us() - c->began_us) / 1000;
	c->ended_ms = clock_wall_ms();
	set_state(c, CHECK_IDLE);
	log_notice("persist check event=%s mode=%s rounds=%d nodes=%lld findings=%lld left=%lld ms=%lld",
		error == NULL ? "done" : "failed", mode_names[c->mode], c->round, (long long)c->node_count,
		(long long)team_findings_count(c->findings), (long long)team_findings_left(c->findings),
		(long long)c->took_ms);
	answer(c, false);
}

/* Until a round repairs nothing more. The first one of a repair of the truth only puts back what some parent
 * still lists; what is lost after that is for the second. */
static void end_round(struct team_check *c)
{
	int64_t left = team_findings_left(c->findings);
	bool again = c->fixed > 0 || (c->mode == TEAM_CHECK_TRUTH && c->round == 1 && left > 0);

	team_findings_end_round(c->findings);
	if (c->fixed > 0)
		c->changed(c->changed_arg);
	if (again && c->round < ROUNDS_MAX)
		begin_round(c);
	else
		end(c, NULL);
}

/* ---- what the scripts answer ---- */

static void take_finding(struct team_check *c, struct bytes line)
{
	struct bytes f[4];

	if (bytes_split(line, '|', f, 4) != 4)
		return;
	struct team_finding finding = {f[0], f[1], f[3], bytes_eq(f[2], BYTES_LIT("1"))};
	bool fresh = team_findings_add(c->findings, &finding);
	c->fixed += finding.repaired;
	if (finding.repaired)
		log_line(team_findings_count(c->findings) <= LOGGED_MAX ? LOG_LEVEL_NOTICE : LOG_LEVEL_DEBUG,
			"persist check event=repaired code=%.*s id=%.*s detail=\"%.*s\"", (int)f[0].n, f[0].p,
			(int)f[1].n, f[1].p, (int)f[3].n, f[3].p);
	if (fresh && !finding.repaired && bytes_eq(finding.code, BYTES_LIT("DSMISS")))
		suspect(c, finding.detail)->missing++;
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
		team_check_queue_push_first(c->nodes, item);
}

static void take_lines(struct team_check *c, const struct redisReply *reply, size_t i)
{
	for (; i < redis_count(reply); i++) {
		struct bytes line = redis_text(redis_at(reply, i)), rest;
		if (cut(line, "+", &rest))
			take_item(c, rest);
		else if (cut(line, "=", &rest))
			(void)seen_add(c->seen, rest);
		else
			take_finding(c, line);
	}
}

static void retry(struct team_check *c, const char *error)
{
	if (++c->failures > FAILURES_MAX)
		end(c, error);
	else
		arm(c, RETRY_MS);
}

/* Whether the step has its answer. */
static bool answered(struct team_check *c, const struct redisReply *reply)
{
	const char *error = redis_reply_error(reply);

	c->asking = false;
	if (c->state == CHECK_IDLE)
		return false;
	if (reply == NULL) {
		end(c, error);
		return false;
	}
	if (error != NULL || !redis_is_array(reply)) {
		retry(c, error != NULL ? error : "ERR the check was given an answer that it can't use");
		return false;
	}
	c->failures = 0;
	go_on(c);
	return true;
}

static void on_nodes(const struct redisReply *reply, void *arg)
{
	struct team_check *c = arg;

	if (answered(c, reply))
		take_lines(c, reply, team_check_queue_take(c->nodes, reply));
}

static void on_keys(const struct redisReply *reply, void *arg)
{
	struct team_check *c = arg;

	if (answered(c, reply))
		take_lines(c, reply, team_check_queue_take(c->keys, reply));
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

static void take_key(struct team_check *c, struct bytes key)
{
	struct bytes f[2], name;

	if (!cut(key, c->base, &name))
		return;
	c->key_count++;
	if (bytes_split(name, ':', f, 2) != 2)
		return;
	if (bytes_eq(f[0], BYTES_LIT("dept")) && id_valid(f[1])) {
		c->node_count++;
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

static void on_page(const struct redisReply *reply, void *arg)
{
	struct team_check *c = arg;
	const struct redisReply *keys = redis_at(reply, 1);

	if (!answered(c, reply))
		return;
	bytes_copy(c->cursor, sizeof(c->cursor), redis_text(redis_at(reply, 0)));
	for (size_t i = 0; i < redis_count(keys); i++)
		take_key(c, redis_text(redis_at(keys, i)));
	c->scanned = strcmp(c->cursor, "0") == 0;
	if (c->scanned)
		push_singles(c);
}

/* The prefix is configured and may hold what is special in a pattern. */
static void add_pattern(struct redis_args *a, const char *base)
{
	struct buf pattern = BUF_INIT;

	for (; *base != '\0'; base++) {
		if (strchr("*?[]\\", *base) != NULL)
			buf_add_char(&pattern, '\\');
		buf_add_char(&pattern, *base);
	}
	buf_add_char(&pattern, '*');
	redis_arg_key(a, &pattern);
	buf_release(&pattern);
}

static enum redis_sent ask_page(struct team_check *c)
{
	struct redis_args a;

	redis_args_init(&a);
	redis_arg_str(&a, "SCAN");
	redis_arg_str(&a, c->cursor);
	redis_arg_str(&a, "MATCH");
	add_pattern(&a, c->base);
	redis_arg_str(&a, "COUNT");
	redis_arg_str(&a, SCAN_COUNT);
	return redis_query(c->redis, &a, on_page, c);
}

/* ---- steps ---- */

static enum redis_sent ask_about(struct team_check *c, struct team_check_queue *q, redis_cb cb)
{
	struct redis_args head;

	redis_args_init(&head);
	redis_arg_str(&head, c->base);
	if (c->mode == TEAM_CHECK_TRUTH)
		redis_arg_i64(&head, c->round == 1 ? 2 : 3);
	else
		redis_arg_i64(&head, c->mode == TEAM_CHECK_REPAIR);
	redis_arg_i64(&head, clock_wall_ms());
	return team_check_queue_send(q, c->redis, &head, cb, c);
}

static bool has_work(const struct team_check *c)
{
	return team_check_queue_count(c->nodes) + team_check_queue_count(c->keys) > 0;
}

static enum redis_sent ask(struct team_check *c)
{
	size_t nodes = team_check_queue_count(c->nodes), keys = team_check_queue_count(c->keys);

	/* Full portions: that is fewer steps. */
	if (c->state == CHECK_SCANNING && !c->scanned && nodes < TEAM_CHECK_ITEMS && keys < TEAM_CHECK_ITEMS)
		return ask_page(c);
	return nodes >= keys ? ask_about(c, c->nodes, on_nodes) : ask_about(c, c->keys, on_keys);
}

/* Goes on to the next state when there is nothing left to do in this one; false at the end of the round. */
static bool find_work(struct team_check *c)
{
	if (has_work(c))
		return true;
	if (c->state == CHECK_WALKING) {
		set_state(c, CHECK_SCANNING);
		return true;
	}
	if (!c->scanned)
		return true;
	set_state(c, CHECK_VERIFYING);
	verify_next(c);
	return has_work(c);
}

static void step(struct team_check *c)
{
	if (!find_work(c)) {
		end_round(c);
		return;
	}
	enum redis_sent sent = ask(c);
	c->asking = sent == REDIS_SENT;
	if (sent == REDIS_FULL)
		retry(c, redis_sent_error(sent));
	else if (sent == REDIS_NOT_READY)
		end(c, redis_sent_error(sent));
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct team_check *c = arg;

	(void)fd;
	(void)what;
	answer(c, true);
	if (c->state != CHECK_IDLE && !c->asking)
		step(c);
}

/* ---- outside ---- */

static int64_t per_second(const struct team_check *c, int64_t ms)
{
	return ms > 0 ? c->node_count * 1000 / ms : 0;
}

static void write_info(struct buf *out, void *arg)
{
	const struct team_check *c = arg;
	struct team_check_report r;

	team_check_report(c, &r);
	buf_addf(out,
		"check_state:%s\r\ncheck_mode:%s\r\ncheck_round:%lld\r\ncheck_keys:%lld\r\ncheck_nodes:%"
		"lld\r\n"
		"check_findings:%lld\r\ncheck_repaired:%lld\r\ncheck_ms:%lld\r\ncheck_nodes_per_second:%"
		"lld\r\n"
		"check_ended:%lld\r\n",
		r.status, r.mode, (long long)r.rounds, (long long)r.keys, (long long)r.nodes,
		(long long)team_findings_count(r.findings),
		(long long)(team_findings_count(r.findings) - team_findings_left(r.findings)),
		(long long)r.ms, (long long)per_second(c, r.ms), (long long)c->ended_ms);
}

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
	c->nodes = team_check_queue_new(SCRIPT_TEAM_CHECK);
	c->keys = team_check_queue_new(SCRIPT_TEAM_CHECK_KEYS);
	TAILQ_INIT(&c->waits);
	c->findings = team_findings_new();
	c->timer = event_new(base, -1, 0, on_timer, c);
	info_register("Tree check", write_info, c);
	return c;
}

void team_check_free(struct team_check *c)
{
	if (c == NULL)
		return;
	drop_work(c);
	team_check_queue_free(c->nodes);
	team_check_queue_free(c->keys);
	team_findings_free(c->findings);
	event_free(c->timer);
	free(c);
}

void team_check_stop(struct team_check *c)
{
	if (c->state != CHECK_IDLE)
		end(c, "NOTREADY shutting down; what was repaired stays so");
}

bool team_check_start(struct team_check *c, enum team_check_mode mode)
{
	if (c->state != CHECK_IDLE)
		return c->mode == mode;
	team_findings_free(c->findings);
	c->findings = team_findings_new();
	c->mode = mode;
	c->round = c->failures = 0;
	c->error = NULL;
	c->began_us = clock_mono_us();
	begin_round(c);
	return true;
}

void team_check_wait(struct team_check *c, int64_t timeout_ms, void (*fn)(void *arg), void *arg)
{
	struct wait *w = xmalloc(sizeof(*w));

	*w = (struct wait){.deadline_us = clock_mono_us() + timeout_ms * 1000, .fn = fn, .arg = arg};
	TAILQ_INSERT_TAIL(&c->waits, w, link);
}

void team_check_report(const struct team_check *c, struct team_check_report *ret)
{
	bool running = c->state != CHECK_IDLE;

	*ret = (struct team_check_report){.status = "none",
		.mode = c->round > 0 ? mode_names[c->mode] : "",
		.error = running ? NULL : c->error,
		.rounds = c->round,
		.keys = c->key_count,
		.nodes = c->node_count,
		.ms = running ? (clock_mono_us() - c->began_us) / 1000 : c->took_ms,
		.findings = c->findings};
	if (running)
		ret->status = "running";
	else if (c->round > 0)
		ret->status = c->error != NULL ? "failed" : "done";
}
