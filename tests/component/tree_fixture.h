/* SPDX-License-Identifier: MIT */
/* What the tests of the picture of the tree share: a loop that waits for conditions, links to Redis, and a
 * plain model of the tree that is fed by the journal alone and compared with the picture. */
#ifndef TESTS_COMPONENT_TREE_FIXTURE_H
#define TESTS_COMPONENT_TREE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/keys.h"
#include "persist/redis.h"
#include "persist/stream_id.h"
#include "persist/tree.h"

#define WAIT_US   (20 * INT64_C(1000000))
#define MODEL_MAX 200

static struct event_base *loop;
static struct config config;
static struct redis *admin; /* the test's own link */

static inline void turn_loop(void)
{
	struct timeval most = {0, 10000};

	event_base_loopexit(loop, &most);
	event_base_loop(loop, EVLOOP_ONCE);
}

#define wait_for(condition)                                                                                  \
	do {                                                                                                 \
		int64_t deadline_us = clock_mono_us() + WAIT_US;                                             \
		while (!(condition)) {                                                                       \
			if (clock_mono_us() > deadline_us)                                                   \
				fail_msg("waited in vain for %s", #condition);                               \
			turn_loop();                                                                         \
		}                                                                                            \
	} while (0)

/* ---- Redis ---- */

static struct buf answer; /* the texts of the last reply, a NUL after each */
static int answers;
static bool answered;

static inline void keep_texts(const struct redisReply *reply)
{
	for (size_t i = 0; i < redis_count(reply); i++)
		keep_texts(redis_at(reply, i));
	if (redis_is_array(reply))
		return;
	if (redis_text(reply).n > 0)
		buf_add_bytes(&answer, redis_text(reply));
	else
		buf_add_i64(&answer, redis_int(reply));
	buf_add_char(&answer, '\0');
	answers++;
}

static inline void on_answer(const struct redisReply *reply, void *arg)
{
	(void)arg;
	if (redis_reply_error(reply) != NULL)
		fail_msg("%.*s", (int)redis_text(reply).n, redis_text(reply).p);
	keep_texts(reply);
	answered = true;
}

/* The first text of the reply; the others with next_answer(). */
static inline const char *wait_answer(enum redis_sent sent)
{
	assert_int_equal(sent, REDIS_SENT);
	wait_for(answered);
	return answers > 0 ? answer.data : "";
}

static inline void begin_answer(void)
{
	buf_clear(&answer);
	answers = 0;
	answered = false;
}

/* Sends a command, its words cut at blanks; "@x" stands for the key {org}:x. */
static inline __attribute__((format(printf, 2, 3))) const char *ask_by(
	struct redis *redis, const char *format, ...)
{
	char line[1024], *rest = line, *word;
	struct redis_args a;
	struct buf key = BUF_INIT;
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	redis_args_init(&a);
	while ((word = strsep(&rest, " ")) != NULL) {
		if (word[0] == '@') {
			key_org(&key, word + 1);
			redis_arg_key(&a, &key);
		} else {
			redis_arg_str(&a, word);
		}
	}
	buf_release(&key);
	begin_answer();
	return wait_answer(redis_send(redis, &a, on_answer, NULL));
}

#define ask(...) ask_by(admin, __VA_ARGS__)

static inline struct redis *new_link(void)
{
	struct redis *r = redis_new(loop, &config, REDIS_MAIN);

	redis_start(r);
	wait_for(redis_ready(r));
	return r;
}

/* Runs a script with the prefix of the tree's keys as ARGV[1] and a word as ARGV[2]. */
static inline const char *ask_lua(const char *script, const char *word)
{
	struct redis_args a;
	struct buf base = BUF_INIT;

	redis_args_init(&a);
	redis_arg_str(&a, "EVAL");
	redis_arg_str(&a, script);
	redis_arg_str(&a, "0");
	key_org(&base, "");
	redis_arg_key(&a, &base);
	redis_arg_str(&a, word);
	buf_release(&base);
	begin_answer();
	return wait_answer(redis_send(admin, &a, on_answer, NULL));
}

/* The keys of a node: its path is given, and what is above it is there. */
static inline void put(const char *path, const char *name)
{
	char up[128];
	const char *id = strrchr(path, ':') != NULL ? strrchr(path, ':') + 1 : path;
	char *rest = up, *above, *parent = NULL;

	snprintf(up, sizeof(up), "%.*s", (int)(id - path > 0 ? id - path - 1 : 0), path);
	while (rest != NULL && *rest != '\0' && (above = strsep(&rest, ":")) != NULL) {
		ask("SADD @children:%s %s", above, id);
		parent = above;
	}
	ask("HSET @dept:%s name %s parent_id %s", id, name, parent != NULL ? parent : "");
	if (parent != NULL)
		ask("SADD @direct_children:%s %s", parent, id);
	else
		ask("SADD @roots %s", id);
}

/* All keys of the tree. */
static inline void forget_all(void)
{
	ask_lua("for _, k in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do redis.call('DEL', k) end", "");
}

static inline int fixture_setup(void **state)
{
	static char prefix[KEYS_PREFIX_MAX];
	struct buf errors = BUF_INIT;
	const char *port = getenv("REDIS_PORT");

	(void)state;
	if (port == NULL)
		fail_msg("REDIS_PORT is not set");
	config_init(&config);
	assert_int_equal(config_set(&config, "redis", "port", port, &errors), 0);
	snprintf(prefix, sizeof(prefix), "treetest%d:", (int)getpid());
	keys_init(prefix, 48);
	log_set_level(LOG_LEVEL_WARNING);
	loop = event_base_new();
	turn_init(loop);
	admin = new_link();
	forget_all();
	return 0;
}

static inline int fixture_teardown(void **state)
{
	(void)state;
	if (admin == NULL)
		return -1; /* the setup has failed */
	forget_all();
	redis_free(admin);
	buf_release(&answer);
	turn_release();
	event_base_free(loop);
	config_release(&config);
	return 0;
}

/* ---- the model ---- */

struct model_node {
	char id[16], parent[16], name[64], manager[16];
	int64_t version;
	bool retired;
};

struct model {
	int count;
	struct model_node nodes[MODEL_MAX];
};

static inline struct model_node *model_find(struct model *m, const char *id)
{
	for (int i = 0; i < m->count; i++) {
		if (strcmp(m->nodes[i].id, id) == 0)
			return &m->nodes[i];
	}
	return NULL;
}

static inline bool model_is_below(struct model *m, const struct model_node *n, const char *top)
{
	while (n != NULL && strcmp(n->parent, top) != 0)
		n = model_find(m, n->parent);
	return n != NULL;
}

static inline void model_delete(struct model *m, struct model_node *n)
{
	*n = m->nodes[--m->count];
}

static inline void model_remove(struct model *m, const char *id)
{
	char top[16];

	snprintf(top, sizeof(top), "%s", id);
	for (int i = m->count; i-- > 0;) {
		if (model_is_below(m, &m->nodes[i], top)) {
			m->nodes[i].name[0] = '\n'; /* marked: the chains must stay until all are found */
		}
	}
	for (int i = m->count; i-- > 0;) {
		if (m->nodes[i].name[0] == '\n' || strcmp(m->nodes[i].id, top) == 0)
			model_delete(m, &m->nodes[i]);
	}
}

static inline void model_lift(struct model *m, struct model_node *n)
{
	struct model_node lifted = *n;

	for (int i = 0; i < m->count; i++) {
		if (strcmp(m->nodes[i].parent, lifted.id) == 0)
			snprintf(m->nodes[i].parent, sizeof(lifted.parent), "%s", lifted.parent);
	}
	model_delete(m, n);
}

/* One record of the journal, taken at its word; others change nothing. */
static inline void model_apply(struct model *m, const char *record)
{
	struct bytes f[10];

	if (bytes_split(bytes_of(record), '|', f, 10) != 10)
		return;
	char id[16];
	struct model_node *n = model_find(m, bytes_copy(id, sizeof(id), f[2]));
	if (bytes_eq(f[1], BYTES_LIT("remove"))) {
		model_remove(m, id);
		return;
	}
	if (bytes_eq(f[1], BYTES_LIT("lift"))) {
		model_lift(m, n);
		return;
	}
	if (n == NULL) {
		assert_true(m->count < MODEL_MAX);
		n = &m->nodes[m->count++];
		*n = (struct model_node){.version = 0};
		bytes_copy(n->id, sizeof(n->id), f[2]);
	}
	if (bytes_eq(f[1], BYTES_LIT("add")) || bytes_eq(f[1], BYTES_LIT("move")))
		bytes_copy(n->parent, sizeof(n->parent),
			bytes_eq(f[3], BYTES_LIT("-")) ? (struct bytes){"", 0} : f[3]);
	bytes_copy(n->manager, sizeof(n->manager),
		bytes_eq(f[4], BYTES_LIT("-")) ? (struct bytes){"", 0} : f[4]);
	bytes_copy(n->name, sizeof(n->name), f[9]);
	assert_true(bytes_to_i64(f[5], &n->version));
	n->retired = bytes_eq(f[6], BYTES_LIT("retired"));
}

static inline int by_id(const void *a, const void *b)
{
	return strcmp(((const struct model_node *)a)->id, ((const struct model_node *)b)->id);
}

/* The children of `parent` ("" = roots) by id; the counters of all below it. */
static inline int model_children(struct model *m, const char *parent, struct model_node *out)
{
	int count = 0;

	for (int i = 0; i < m->count; i++) {
		if (strcmp(m->nodes[i].parent, parent) == 0)
			out[count++] = m->nodes[i];
	}
	qsort(out, (size_t)count, sizeof(out[0]), by_id);
	return count;
}

static inline void expect_children(struct model *m, const char *parent, const struct dept *d,
	struct dept *const *children, uint32_t count, int64_t *ret_below, int64_t *ret_listed)
{
	struct model_node *wanted = xcalloc((size_t)m->count + 1, sizeof(*wanted));
	int64_t below = 0, listed = 0;

	if ((int)count != model_children(m, parent, wanted)) {
		for (int i = 0; i < m->count; i++)
			print_error("model: %s below '%s'\n", m->nodes[i].id, m->nodes[i].parent);
		for (uint32_t i = 0; i < count; i++)
			print_error("picture: %s\n", children[i]->id);
		fail_msg("'%s' has other children", parent);
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct dept *c = children[i];
		assert_string_equal(c->id, wanted[i].id);
		assert_string_equal(c->name, wanted[i].name);
		assert_string_equal(c->manager, wanted[i].manager);
		assert_int_equal(c->version, wanted[i].version);
		assert_int_equal(c->retired, wanted[i].retired);
		assert_ptr_equal(c->parent, d);
		int64_t c_below, c_listed;
		expect_children(m, c->id, c, c->children, c->child_count, &c_below, &c_listed);
		assert_int_equal(c->below, c_below);
		assert_int_equal(c->listed, c_listed);
		below += 1 + c_below;
		listed += c->retired ? 0 : 1 + c_listed;
	}
	free(wanted);
	*ret_below = below;
	*ret_listed = listed;
}

/* The whole picture is the model's. */
static inline void expect_model(struct model *m, struct dept *const *roots, uint32_t count)
{
	int64_t below, listed;

	expect_children(m, "", NULL, roots, count, &below, &listed);
	assert_int_equal(below, m->count);
}

#endif
