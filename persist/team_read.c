/* SPDX-License-Identifier: MIT */
#include "persist/team_read.h"

#include <stdlib.h>

#include "base/info.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/keys.h"
#include "persist/team_glance.h"
#include "persist/tree_trust.h"

#define UNDER_WAY_MAX 2 /* calls: one that Redis works on, and one that waits for it */

/* Who has asked, and for how many of the nodes. */
struct asker {
	size_t count;
	team_read_cb cb;
	void *arg;
};

/* One read, over all its calls of the script. */
struct read_op {
	struct team_reads *reads;
	bool people;
	struct buf ids; /* a NUL after each */
	size_t id_count;
	struct asker askers[TEAM_READ_MAX];
	size_t asker_count;
	struct buf text; /* the script's replies, one behind the other */
	uint64_t news;   /* of the watch, when the script was asked first */
	bool passed;     /* a line goes through a team that is being lifted */
	const char *error;
	struct turn_task failure;
};

struct team_reads {
	struct team_glances from;
	struct read_op *open[2]; /* what has been asked for and not been sent: [people] */
	int under_way;
	struct turn_task flush;
	/* for INFO */
	uint64_t by_picture, by_script;
};

/* ---- what the text says ---- */

/* A node that a line has told; lines that meet in it go on together. */
struct told {
	struct team_ancestor node;
	int64_t sub, version;
	const struct told *up; /* NULL = a root */
	size_t above;          /* how many are above it */
};

/* There is room for all that the text can hold. */
struct picture {
	struct told *told;
	size_t told_count, described, first; /* first: of the present call, whose numbers begin with it */
	struct team_node *nodes;
	const struct told **own; /* of each node, NULL where it is refused */
	size_t node_count, ancestor_count;
	struct bytes last;
};

static int64_t number(struct bytes text)
{
	int64_t n;

	return bytes_to_i64(text, &n) ? n : 0;
}

/* The ids of a line, joined by ':', in front of what it goes on with. Returns its beginning. */
static const struct told *add_told(struct picture *p, struct bytes ids, const struct told *on)
{
	size_t first = p->told_count;

	while (ids.n > 0)
		p->told[p->told_count++].node.id = bytes_cut(&ids, ':');
	for (size_t i = p->told_count; i > first; i--) {
		p->told[i - 1].up = on;
		p->told[i - 1].above = on != NULL ? on->above + 1 : 0;
		on = &p->told[i - 1];
	}
	return on;
}

static void add_known(struct picture *p, struct bytes line)
{
	struct bytes f[5] = {0};

	bytes_split(line, '|', f, 5);
	int64_t on = number(f[2]);
	const struct told *own = add_told(p, f[1], on > 0 ? &p->told[p->first + (size_t)on - 1] : NULL);
	p->nodes[p->node_count] = (struct team_node){.known = true,
		.id = own->node.id,
		.parent = own->up != NULL ? own->up->node.id : (struct bytes){"", 0},
		.name = own->node.name,
		.manager = own->node.manager,
		.state = own->node.state,
		.sub = own->sub,
		.version = own->version,
		.joined = number(f[3]),
		.employees = number(f[4]),
		.ancestor_count = own->above};
	p->own[p->node_count++] = own;
	p->ancestor_count += own->above;
}

/* Its id comes with the line that it is in. */
static void add_stored(struct picture *p, struct bytes line)
{
	struct bytes f[6] = {0};

	bytes_split(line, '|', f, 6);
	p->told[p->described++] = (struct told){.node = {.state = f[3], .manager = f[4], .name = f[5]},
		.sub = number(f[1]),
		.version = number(f[2])};
}

static void add_line(struct picture *p, struct bytes line)
{
	struct bytes f[3] = {0};

	switch (line.n > 0 ? line.p[0] : '?') {
	case 'A':
		add_known(p, line);
		break;
	case 'N':
		add_stored(p, line);
		break;
	case 'L':
		bytes_split(line, '|', f, 3);
		p->last = f[1];
		p->first = p->told_count;
		break;
	default: /* P or C */
		bytes_split(line, '|', f, 2);
		p->nodes[p->node_count++] =
			(struct team_node){.refused = bytes_eq(f[0], BYTES_LIT("P")) ? 'P' : 'C', .id = f[1]};
	}
}

static size_t count_char(struct bytes text, char c)
{
	size_t count = 0;

	for (size_t i = 0; i < text.n; i++)
		count += text.p[i] == c;
	return count;
}

/* Gives each node its ancestors, one node's behind another's, in memory that the caller frees. */
static struct team_ancestor *list_ancestors(struct picture *p)
{
	struct team_ancestor *all = xcalloc(p->ancestor_count + 1, sizeof(*all)), *next = all;

	for (size_t i = 0; i < p->node_count; i++) {
		p->nodes[i].ancestors = next;
		for (const struct told *t = p->own[i]; t != NULL && t->up != NULL; t = t->up)
			*next++ = t->up->node;
	}
	return all;
}

/* Each asker has what he asked for; an employee's teams are known only now. */
static void hand_out(const struct read_op *op, const struct team_node *nodes, size_t count, struct bytes last)
{
	for (size_t i = 0, at = 0; i < op->asker_count; i++) {
		const struct asker *a = &op->askers[i];
		size_t own = op->asker_count == 1 ? count : a->count;
		a->cb(nodes + at, own, last, NULL, a->arg);
		at += own;
	}
}

static void note_told(struct tree_trust *trust, const struct told *t)
{
	const struct dept_fields read = {.id = t->node.id,
		.parent = t->up != NULL ? t->up->node.id : (struct bytes){"", 0},
		.name = t->node.name,
		.manager = t->node.manager,
		.version = t->version,
		.retired = bytes_eq(t->node.state, BYTES_LIT("retired"))};

	tree_trust_found(trust, &read, t->sub);
}

/* Notes what the picture has as Redis has. */
static void note_found(const struct read_op *op, const struct picture *p)
{
	if (op->passed || op->news != tree_trust_news(op->reads->from.trust))
		return;
	for (const struct told *t = p->told; t < p->told + p->told_count; t++)
		note_told(op->reads->from.trust, t);
}

static void tell(const struct read_op *op)
{
	struct bytes text = buf_bytes(&op->text);
	size_t lines = count_char(text, '\n') + 1;
	struct picture p = {.told = xcalloc(count_char(text, ':') + lines, sizeof(*p.told)),
		.nodes = xcalloc(lines, sizeof(*p.nodes)),
		.own = xcalloc(lines, sizeof(*p.own)),
		.last = {"", 0}};

	while (text.n > 0)
		add_line(&p, bytes_cut(&text, '\n'));
	struct team_ancestor *ancestors = list_ancestors(&p);
	note_found(op, &p);
	op->reads->by_script += p.node_count;
	hand_out(op, p.nodes, p.node_count, p.last);
	free(ancestors);
	free(p.told);
	free(p.nodes);
	free(p.own);
}

/* ---- calls of the script ---- */

static void op_free(struct read_op *op)
{
	buf_release(&op->ids);
	buf_release(&op->text);
	free(op);
}

static void end(struct read_op *op, const char *error)
{
	if (error == NULL)
		tell(op);
	for (size_t i = 0; error != NULL && i < op->asker_count; i++)
		op->askers[i].cb(NULL, 0, (struct bytes){"", 0}, error, op->askers[i].arg);
	op_free(op);
}

static void on_reply(const struct redisReply *reply, void *arg);

/* `ids` with a separator between or after each. */
static enum redis_sent ask(struct read_op *op, struct bytes employee, struct bytes ids, char separator)
{
	struct redis_args keys, args;
	struct buf text = BUF_INIT;

	redis_args_init(&keys);
	redis_args_init(&args);
	key_org(&text, "last");
	redis_arg_key(&keys, &text);
	if (employee.n > 0) {
		key_dir(&text, employee);
		redis_arg_key(&keys, &text);
	}
	key_org(&text, "");
	redis_arg_key(&args, &text);
	redis_arg_str(&args, op->people ? "1" : "0");
	redis_arg(&args, employee);
	while (ids.n > 0) {
		struct bytes id = bytes_cut(&ids, separator);
		redis_arg(&args, id);
		if (!op->people)
			continue;
		key_emps(&text, id);
		redis_arg_key(&keys, &text);
	}
	buf_release(&text);
	int count = keys.argc;
	redis_args_append(&keys, &args);
	enum redis_sent sent =
		redis_eval(op->reads->from.redis, SCRIPT_TEAM_READ, count, &keys, on_reply, op);
	op->reads->under_way += sent == REDIS_SENT;
	return sent;
}

static void landed(struct team_reads *r)
{
	r->under_way--;
	turn_schedule(&r->flush);
}

static void on_reply(const struct redisReply *reply, void *arg)
{
	struct read_op *op = arg;
	struct bytes text = redis_text(reply), head = text, f[4] = {0};
	const char *error = redis_reply_error(reply);

	landed(op->reads);
	if (error != NULL) {
		end(op, error);
		return;
	}
	bytes_split(bytes_cut(&head, '\n'), '|', f, 4);
	if (bytes_eq(f[0], BYTES_LIT("L"))) /* else there is no such employee */
		buf_add_bytes(&op->text, text);
	op->passed = op->passed || !bytes_eq(f[2], BYTES_LIT("0"));
	enum redis_sent sent = f[3].n > 0 ? ask(op, (struct bytes){"", 0}, f[3], ':') : REDIS_SENT;
	if (sent != REDIS_SENT || f[3].n == 0)
		end(op, sent != REDIS_SENT ? redis_sent_error(sent) : NULL);
}

static void fail(void *arg)
{
	struct read_op *op = arg;

	end(op, op->error);
}

static enum redis_sent ask_first(struct read_op *op, struct bytes employee)
{
	op->news = tree_trust_news(op->reads->from.trust);
	return ask(op, employee, buf_bytes(&op->ids), '\0');
}

static void send(struct read_op *op, struct bytes employee)
{
	enum redis_sent sent = ask_first(op, employee);

	if (sent == REDIS_SENT)
		return;
	op->error = redis_sent_error(sent);
	turn_task_init(&op->failure, fail, op);
	turn_schedule(&op->failure);
}

/* ---- gathering ---- */

static struct read_op *op_new(struct team_reads *r, bool people)
{
	struct read_op *op = xcalloc(1, sizeof(*op));

	op->reads = r;
	op->people = people;
	return op;
}

static void add_asker(struct read_op *op, const struct bytes *ids, size_t count, team_read_cb cb, void *arg)
{
	for (size_t i = 0; i < count; i++) {
		buf_add_bytes(&op->ids, ids[i]);
		buf_add_char(&op->ids, '\0');
	}
	op->id_count += count;
	op->askers[op->asker_count++] = (struct asker){count, cb, arg};
}

static void on_glance(const struct team_node *nodes, size_t count, struct bytes last, void *arg)
{
	struct read_op *op = arg;

	landed(op->reads);
	enum redis_sent sent = nodes == NULL ? ask_first(op, (struct bytes){"", 0}) : REDIS_SENT;
	if (nodes != NULL) {
		op->reads->by_picture += count;
		hand_out(op, nodes, count, last);
		op_free(op);
	} else if (sent != REDIS_SENT) {
		end(op, redis_sent_error(sent));
	}
}

static void send_open(struct read_op **slot)
{
	struct read_op *op = *slot;
	struct team_reads *r = op->reads;

	*slot = NULL;
	if (team_glance(&r->from, buf_bytes(&op->ids), op->people, on_glance, op))
		r->under_way++;
	else
		send(op, (struct bytes){"", 0});
}

static void flush(void *arg)
{
	struct team_reads *r = arg;

	for (size_t i = 0; i < ARRAY_LEN(r->open); i++) {
		if (r->open[i] != NULL && r->under_way < UNDER_WAY_MAX)
			send_open(&r->open[i]);
	}
}

static void gather(
	struct team_reads *r, bool people, const struct bytes *ids, size_t count, team_read_cb cb, void *arg)
{
	struct read_op **slot = &r->open[people];

	if (*slot != NULL &&
		((*slot)->id_count + count > TEAM_READ_MAX || (*slot)->asker_count == TEAM_READ_MAX))
		send_open(slot);
	if (*slot == NULL)
		*slot = op_new(r, people);
	add_asker(*slot, ids, count, cb, arg);
	turn_schedule(&r->flush);
}

void team_read_send(struct team_reads *r, const struct bytes *ids, size_t count, team_read_cb cb, void *arg)
{
	gather(r, false, ids, count, cb, arg);
}

void team_read_people(struct team_reads *r, const struct bytes *ids, size_t count, team_read_cb cb, void *arg)
{
	gather(r, true, ids, count, cb, arg);
}

void team_read_of(struct team_reads *r, struct bytes employee, const struct bytes *ids, size_t count,
	team_read_cb cb, void *arg)
{
	struct read_op *op = op_new(r, false);

	add_asker(op, ids, count, cb, arg);
	send(op, employee);
}

static void write_info(struct buf *out, void *arg)
{
	const struct team_reads *r = arg;

	buf_addf(out, "teams_read_by_picture:%llu\r\nteams_read_by_script:%llu\r\n",
		(unsigned long long)r->by_picture, (unsigned long long)r->by_script);
}

struct team_reads *team_reads_new(struct redis *redis, struct tree *tree, struct tree_trust *trust)
{
	struct team_reads *r = xcalloc(1, sizeof(*r));

	r->from = (struct team_glances){.redis = redis, .tree = tree, .trust = trust};
	turn_task_init(&r->flush, flush, r);
	info_register("Team reads", write_info, r);
	return r;
}

void team_reads_free(struct team_reads *r)
{
	if (r == NULL)
		return;
	turn_cancel(&r->flush);
	for (size_t i = 0; i < ARRAY_LEN(r->open); i++) {
		if (r->open[i] != NULL)
			end(r->open[i], redis_sent_error(REDIS_NOT_READY));
	}
	free(r);
}

void team_node_path(struct buf *out, const struct team_node *node)
{
	for (size_t i = node->ancestor_count; i > 0; i--) {
		buf_add_bytes(out, node->ancestors[i - 1].id);
		buf_add_char(out, ':');
	}
	buf_add_bytes(out, node->id);
}
