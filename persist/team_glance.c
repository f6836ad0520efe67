/* SPDX-License-Identifier: MIT */
#include "persist/team_glance.h"

#include <stdlib.h>

#include "base/mem.h"
#include "persist/keys.h"
#include "persist/tree.h"
#include "persist/tree_trust.h"

/* The answer is the word; Redis's reply, over the other connection, says whether it comes. */
struct glance {
	const struct team_glances *g;
	struct bytes ids;  /* a NUL after each */
	team_glance_cb fn; /* NULL once it was called */
	void *arg;
	uint64_t word;
	bool replied;
};

/* What there is to tell, looked up and not kept. */
struct found {
	const struct dept *depts[TEAM_READ_MAX];
	size_t count, ancestors;
};

/* False when not all of it is trusted. */
static bool find(const struct team_glances *g, struct bytes ids, struct found *ret)
{
	ret->count = ret->ancestors = 0;
	while (ids.n > 0) {
		const struct dept *d = tree_find(g->tree, bytes_cut(&ids, '\0'));
		int above = d != NULL ? tree_trust_line(g->trust, d) : -1;
		if (above < 0)
			return false;
		ret->depts[ret->count++] = d;
		ret->ancestors += (size_t)above;
	}
	return ret->count > 0;
}

static struct team_ancestor ancestor_of(const struct dept *d)
{
	return (struct team_ancestor){.id = bytes_of(d->id),
		.name = bytes_of(d->name),
		.manager = bytes_of(d->manager),
		.state = bytes_of(d->retired ? "retired" : "active")};
}

/* Returns where the next node's ancestors go. */
static struct team_ancestor *write_node(
	struct team_node *node, const struct dept *d, struct team_ancestor *ancestors)
{
	const struct team_ancestor own = ancestor_of(d);

	*node = (struct team_node){.known = true,
		.id = own.id,
		.parent = bytes_of(d->parent != NULL ? d->parent->id : ""),
		.name = own.name,
		.manager = own.manager,
		.state = own.state,
		.sub = d->below,
		.version = d->version,
		.ancestors = ancestors};
	for (d = d->parent; d != NULL; d = d->parent)
		ancestors[node->ancestor_count++] = ancestor_of(d);
	return ancestors + node->ancestor_count;
}

static int64_t cut_number(struct bytes *text)
{
	int64_t n;

	return bytes_to_i64(bytes_cut(text, '|'), &n) ? n : 0;
}

static void tell(const struct glance *l, const struct found *found, struct bytes text)
{
	struct bytes last = bytes_cut(&text, '|');
	struct team_node *nodes = xcalloc(found->count, sizeof(*nodes));
	struct team_ancestor *ancestors = xcalloc(found->ancestors + 1, sizeof(*ancestors)),
			     *next = ancestors;

	for (size_t i = 0; i < found->count; i++) {
		next = write_node(&nodes[i], found->depts[i], next);
		nodes[i].joined = cut_number(&text);
		nodes[i].employees = cut_number(&text);
	}
	l->fn(nodes, found->count, last, l->arg);
	free(nodes);
	free(ancestors);
}

static void end(struct glance *l, const struct bytes *text)
{
	struct bytes rest = text != NULL ? *text : (struct bytes){"", 0};
	struct found found;
	bool is_at = text != NULL && tree_is_at(l->g->tree, bytes_cut(&rest, '|'));

	if (is_at && find(l->g, l->ids, &found)) {
		tell(l, &found, *text);
	} else {
		tree_doorbell(l->g->tree); /* it may be behind */
		l->fn(NULL, 0, (struct bytes){"", 0}, l->arg);
	}
	l->fn = NULL;
}

static void on_word(const struct bytes *text, void *arg)
{
	struct glance *l = arg;

	end(l, text);
	if (l->replied)
		free(l);
}

static void on_reply(const struct redisReply *reply, void *arg)
{
	struct glance *l = arg;

	l->replied = true;
	if (l->fn != NULL && redis_int(reply) > 0)
		return;
	if (l->fn != NULL) {
		tree_trust_forget(l->g->trust, l->word);
		end(l, NULL);
	}
	free(l);
}

static void add_people(struct redis_args *keys, struct redis_args *args, struct bytes ids)
{
	struct buf key = BUF_INIT;

	while (ids.n > 0) {
		struct bytes id = bytes_cut(&ids, '\0');
		key_emps(&key, id);
		redis_arg_key(keys, &key);
		redis_arg(args, id);
	}
	buf_release(&key);
}

bool team_glance(const struct team_glances *g, struct bytes ids, bool people, team_glance_cb fn, void *arg)
{
	struct redis_args keys, args;
	struct buf text = BUF_INIT;
	struct found found;

	if (!redis_ready(g->redis) || !find(g, ids, &found))
		return false;
	struct glance *l = xcalloc(1, sizeof(*l));
	*l = (struct glance){.g = g, .ids = ids, .fn = fn, .arg = arg};
	redis_args_init(&keys);
	redis_args_init(&args);
	key_org(&text, "last");
	redis_arg_key(&keys, &text);
	key_org(&text, "");
	redis_arg_key(&args, &text);
	buf_release(&text);
	redis_arg_str(&args, tree_trust_channel(g->trust));
	l->word = tree_trust_expect(g->trust, on_word, l);
	redis_arg_i64(&args, (int64_t)l->word);
	if (people)
		add_people(&keys, &args, ids);
	int count = keys.argc;
	redis_args_append(&keys, &args);
	if (redis_eval(g->redis, SCRIPT_TEAM_GLANCE, count, &keys, on_reply, l) == REDIS_SENT)
		return true;
	tree_trust_forget(g->trust, l->word);
	free(l);
	return false;
}
