/* SPDX-License-Identifier: MIT */
#include "persist/team_read.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/keys.h"

/* Who has asked, and for how many of the nodes. */
struct asker {
	size_t count;
	team_read_cb cb;
	void *arg;
};

/* One read, over all its calls of the script. */
struct read_op {
	struct redis *redis;
	bool counted, named;
	struct buf ids; /* NUL after each */
	size_t id_count;
	struct asker askers[TEAM_READ_MAX];
	size_t asker_count;
	struct buf text; /* the replies, one behind the other */
	const char *error;
	struct turn_task failure;
};

struct team_reads {
	struct redis *redis;
	struct read_op *open[4]; /* what this turn of the loop has asked for: [counted + 2 * named] */
	struct turn_task flush;
};

/* What is known of a node that may be above others. */
struct above {
	struct team_ancestor node;
	UT_hash_handle hh;
};

/* What the text says. There is room for all that it can hold. */
struct picture {
	bool named;
	struct above *above, *table;
	size_t above_count;
	struct team_ancestor *ancestors; /* of all nodes, one node's behind another's */
	size_t ancestor_count;
	struct team_node *nodes;
	size_t node_count;
	struct bytes last;
};

static int64_t number(struct bytes text)
{
	int64_t n;

	return bytes_to_i64(text, &n) ? n : 0;
}

static void add_above(struct picture *p, const struct team_ancestor *node)
{
	struct above *a;

	HASH_FIND(hh, p->table, node->id.p, node->id.n, a);
	if (a != NULL)
		return;
	a = &p->above[p->above_count++];
	a->node = *node;
	HASH_ADD_KEYPTR(hh, p->table, a->node.id.p, a->node.id.n, a);
}

/* Lists the ancestors whose ids the text holds, each ended by ':'. */
static size_t add_ancestors(struct picture *p, struct bytes ids)
{
	size_t first = p->ancestor_count;

	while (ids.n > 0) {
		struct bytes id = bytes_cut(&ids, ':');
		struct above *a = NULL;
		if (p->named)
			HASH_FIND(hh, p->table, id.p, id.n, a);
		p->ancestors[p->ancestor_count++] =
			a != NULL ? a->node
				  : (struct team_ancestor){
					    .id = id, .name = {"", 0}, .manager = {"", 0}, .state = {"", 0}};
	}
	return p->ancestor_count - first;
}

static void add_known(struct picture *p, struct bytes line)
{
	struct bytes f[10] = {0};

	bytes_split(line, '|', f, 10);
	const struct team_ancestor own = {.id = f[1], .state = f[7], .manager = f[8], .name = f[9]};
	const struct team_ancestor *first = &p->ancestors[p->ancestor_count];
	size_t count = add_ancestors(p, f[2]);
	p->nodes[p->node_count++] = (struct team_node){.known = true,
		.id = own.id,
		.parent = count > 0 ? first->id : (struct bytes){"", 0},
		.name = own.name,
		.manager = own.manager,
		.state = own.state,
		.sub = number(f[3]),
		.version = number(f[4]),
		.joined = number(f[5]),
		.employees = number(f[6]),
		.ancestor_count = count,
		.ancestors = first};
	if (p->named)
		add_above(p, &own);
}

static void add_line(struct picture *p, struct bytes line)
{
	struct bytes f[5] = {0};

	switch (line.n > 0 ? line.p[0] : '?') {
	case 'A':
		add_known(p, line);
		break;
	case 'N':
		bytes_split(line, '|', f, 5);
		add_above(
			p, &(struct team_ancestor){.id = f[1], .state = f[2], .manager = f[3], .name = f[4]});
		break;
	case 'L':
		bytes_split(line, '|', f, 3);
		p->last = f[1];
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

static void tell(const struct read_op *op)
{
	struct bytes text = buf_bytes(&op->text);
	size_t lines = count_char(text, '\n') + 1;
	struct picture p = {.named = op->named,
		.above = xcalloc(op->named ? lines : 1, sizeof(*p.above)),
		.ancestors = xcalloc(count_char(text, ':') + lines, sizeof(*p.ancestors)),
		.nodes = xcalloc(lines, sizeof(*p.nodes)),
		.last = {"", 0}};

	while (text.n > 0)
		add_line(&p, bytes_cut(&text, '\n'));
	size_t at = 0;
	for (size_t i = 0; i < op->asker_count; i++) {
		const struct asker *a = &op->askers[i];
		/* An employee's teams are known only now. */
		size_t count = op->asker_count == 1 ? p.node_count : a->count;
		a->cb(p.nodes + at, count, p.last, NULL, a->arg);
		at += count;
	}
	HASH_CLEAR(hh, p.table);
	free(p.above);
	free(p.ancestors);
	free(p.nodes);
}

static void end(struct read_op *op, const char *error)
{
	if (error == NULL)
		tell(op);
	for (size_t i = 0; error != NULL && i < op->asker_count; i++)
		op->askers[i].cb(NULL, 0, (struct bytes){"", 0}, error, op->askers[i].arg);
	buf_release(&op->ids);
	buf_release(&op->text);
	free(op);
}

static enum redis_sent ask(struct read_op *op, struct bytes employee, const struct bytes *ids, size_t count);

/* The ids that a call has left over, joined by ':'. */
static enum redis_sent ask_rest(struct read_op *op, struct bytes rest)
{
	size_t count = count_char(rest, ':') + 1;
	struct bytes *ids = xcalloc(count, sizeof(*ids));

	bytes_split(rest, ':', ids, (int)count);
	enum redis_sent sent = ask(op, (struct bytes){"", 0}, ids, count);
	free(ids);
	return sent;
}

static void on_reply(const struct redisReply *reply, void *arg)
{
	struct read_op *op = arg;
	struct bytes text = redis_text(reply), head = text, f[3] = {0};
	const char *error = redis_reply_error(reply);

	if (error != NULL) {
		end(op, error);
		return;
	}
	bytes_split(bytes_cut(&head, '\n'), '|', f, 3);
	if (bytes_eq(f[0], BYTES_LIT("L"))) /* else there is no such employee */
		buf_add_bytes(&op->text, text);
	enum redis_sent sent = f[2].n > 0 ? ask_rest(op, f[2]) : REDIS_SENT;
	if (sent != REDIS_SENT || f[2].n == 0)
		end(op, sent != REDIS_SENT ? redis_sent_error(sent) : NULL);
}

static enum redis_sent ask(struct read_op *op, struct bytes employee, const struct bytes *ids, size_t count)
{
	struct redis_args a;
	struct buf scratch = BUF_INIT;
	int keys = 1;

	redis_args_init(&a);
	key_org(&scratch, "last");
	redis_arg_key(&a, &scratch);
	if (employee.n > 0) {
		key_dir(&scratch, employee);
		redis_arg_key(&a, &scratch);
		keys++;
	}
	for (size_t i = 0; op->counted && i < count; i++, keys++) {
		key_emps(&scratch, ids[i]);
		redis_arg_key(&a, &scratch);
	}
	key_org(&scratch, "");
	redis_arg_key(&a, &scratch);
	redis_arg_str(&a, op->named ? "1" : "0");
	redis_arg(&a, employee);
	for (size_t i = 0; i < count; i++)
		redis_arg(&a, ids[i]);
	buf_release(&scratch);
	return redis_eval(op->redis, SCRIPT_TEAM_READ, keys, &a, on_reply, op);
}

/* ---- gathering ---- */

static struct read_op *op_new(struct redis *redis, bool counted, bool named)
{
	struct read_op *op = xcalloc(1, sizeof(*op));

	op->redis = redis;
	op->counted = counted;
	op->named = named;
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

static void fail(void *arg)
{
	struct read_op *op = arg;

	end(op, op->error);
}

static enum redis_sent send(struct read_op *op, struct bytes employee)
{
	struct bytes *ids = xcalloc(op->id_count + 1, sizeof(*ids)), rest = buf_bytes(&op->ids);

	for (size_t i = 0; i < op->id_count; i++)
		ids[i] = bytes_cut(&rest, '\0');
	enum redis_sent sent = ask(op, employee, ids, op->id_count);
	free(ids);
	return sent;
}

static void send_open(struct read_op **slot)
{
	struct read_op *op = *slot;

	*slot = NULL;
	enum redis_sent sent = send(op, (struct bytes){"", 0});
	if (sent == REDIS_SENT)
		return;
	op->error = redis_sent_error(sent);
	turn_task_init(&op->failure, fail, op);
	turn_schedule(&op->failure);
}

static void flush(void *arg)
{
	struct team_reads *r = arg;

	for (size_t i = 0; i < ARRAY_LEN(r->open); i++) {
		if (r->open[i] != NULL)
			send_open(&r->open[i]);
	}
}

static enum redis_sent gather(struct team_reads *r, bool counted, bool named, const struct bytes *ids,
	size_t count, team_read_cb cb, void *arg)
{
	struct read_op **slot = &r->open[counted + 2 * named];

	if (!redis_ready(r->redis))
		return REDIS_NOT_READY;
	if (*slot != NULL &&
		((*slot)->id_count + count > TEAM_READ_MAX || (*slot)->asker_count == TEAM_READ_MAX))
		send_open(slot);
	if (*slot == NULL)
		*slot = op_new(r->redis, counted, named);
	add_asker(*slot, ids, count, cb, arg);
	turn_schedule(&r->flush);
	return REDIS_SENT;
}

enum redis_sent team_read_send(
	struct team_reads *r, const struct bytes *ids, size_t count, team_read_cb cb, void *arg)
{
	return gather(r, false, false, ids, count, cb, arg);
}

enum redis_sent team_read_counted(
	struct team_reads *r, const struct bytes *ids, size_t count, team_read_cb cb, void *arg)
{
	return gather(r, true, false, ids, count, cb, arg);
}

enum redis_sent team_read_named(
	struct team_reads *r, const struct bytes *ids, size_t count, team_read_cb cb, void *arg)
{
	return gather(r, false, true, ids, count, cb, arg);
}

enum redis_sent team_read_of(struct team_reads *r, struct bytes employee, bool named, const struct bytes *ids,
	size_t count, team_read_cb cb, void *arg)
{
	struct read_op *op = op_new(r->redis, false, named);

	add_asker(op, ids, count, cb, arg);
	enum redis_sent sent = send(op, employee);
	if (sent != REDIS_SENT) {
		buf_release(&op->ids);
		free(op);
	}
	return sent;
}

struct team_reads *team_reads_new(struct redis *redis)
{
	struct team_reads *r = xcalloc(1, sizeof(*r));

	r->redis = redis;
	turn_task_init(&r->flush, flush, r);
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
