/* SPDX-License-Identifier: MIT */
#include "mq/parked.h"

#include <errno.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "mq/letter.h"
#include "mq/link.h"
#include "mq/publisher.h"
#include "mq/topology.h"

#define GETS_MAX       32     /* basic.get under way at once */
#define SCAN_MAX       100000 /* messages held while one is looked for */
#define LIST_MAX_BYTES (32 << 20)
#define OPS_MAX        32
#define DEADLINE_S     20
#define REOPEN_MS      1000

enum op_state {
	OP_QUEUED,   /* another one runs */
	OP_GETTING,  /* messages are got, and in a replay sent */
	OP_SETTLING, /* nothing more is got; confirms are awaited */
	OP_DONE,     /* the callback comes at the end of this turn */
};

struct op {
	struct parked *parked;
	enum op_state state; /* written by op_enter() only */
	mq_parked_cb listed; /* one of the two */
	mq_replay_cb replayed;
	void *arg;
	size_t wanted;
	char *message_id; /* owned; NULL: any */
	size_t gets;      /* under way */
	size_t got;
	size_t bytes;
	size_t sending;            /* replays without an outcome */
	size_t done;               /* replays confirmed */
	struct mq_message **items; /* owned, of a list */
	size_t item_count;
	char error[256];
	struct event *deadline;
	struct turn_task task;
	TAILQ_ENTRY(op) link;
};

struct parked {
	struct event_base *base;
	struct channel *channel;
	struct publisher *publisher;
	unsigned channel_life; /* counts openings */
	TAILQ_HEAD(, op) ops;  /* the first one runs */
	size_t op_count;
	struct send *sends; /* all replays without an outcome */
};

/* A replay under way. It outlives its operation when that ends early. */
struct send {
	struct parked *parked;
	struct op *op; /* NULL once the operation has ended */
	uint64_t tag;
	unsigned channel_life;
	char queue[256];
	struct send *next;
};

static void step(struct op *op);
static void start_first(struct parked *p);

static void op_enter(struct op *op, enum op_state state)
{
	static const char *const names[] = {"queued", "getting", "settling", "done"};

	log_debug("rabbitmq parked event=state op=%s %s -> %s", op->listed != NULL ? "list" : "replay",
		names[op->state], names[state]);
	op->state = state;
}

static void op_free(struct op *op)
{
	for (size_t i = 0; i < op->item_count; i++)
		free(op->items[i]);
	free(op->items);
	free(op->message_id);
	event_free(op->deadline);
	turn_cancel(&op->task);
	free(op);
}

static void give_back_all(struct parked *p)
{
	amqp_basic_nack_t all = {.delivery_tag = 0, .multiple = 1, .requeue = 1};

	channel_send(p->channel, AMQP_BASIC_NACK_METHOD, &all);
}

/* Unlinks the operation and calls back at the end of the turn. */
static void finish(struct op *op)
{
	struct parked *p = op->parked;

	if (op->state == OP_DONE)
		return;
	if (op->state != OP_QUEUED && op->got > 0)
		give_back_all(p);
	op_enter(op, OP_DONE);
	event_del(op->deadline);
	for (struct send *s = p->sends; s != NULL; s = s->next) {
		if (s->op == op)
			s->op = NULL;
	}
	turn_schedule(&op->task);
}

static void __attribute__((format(printf, 2, 3))) note(struct op *op, const char *format, ...)
{
	va_list ap;

	if (op->error[0] != '\0')
		return;
	va_start(ap, format);
	vsnprintf(op->error, sizeof(op->error), format, ap);
	va_end(ap);
}

static void tell(void *arg)
{
	struct op *op = arg;
	struct parked *p = op->parked;
	const char *error = op->error[0] != '\0' ? op->error : NULL;

	TAILQ_REMOVE(&p->ops, op, link);
	p->op_count--;
	if (op->listed != NULL)
		op->listed((const struct mq_message *const *)op->items, op->item_count, error, op->arg);
	else
		op->replayed(op->done, error, op->arg);
	op_free(op);
	start_first(p);
}

/* Too late: what the channel still holds or has under way is unknown, so the connection goes and the broker
 * takes all back. */
static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct op *op = arg;

	(void)fd;
	(void)what;
	note(op, "no end after %d s", DEADLINE_S);
	if (op->state != OP_QUEUED)
		link_drop(channel_link(op->parked->channel), "parked: no end after %d s", DEADLINE_S);
	finish(op);
}

static void get(struct op *op)
{
	amqp_basic_get_t g = {.queue = amqp_text(TOPOLOGY_PARKED)};

	op->gets++;
	channel_call(op->parked->channel, AMQP_BASIC_GET_METHOD, &g);
}

/* How many more may be got at the moment. */
static size_t may_get(const struct op *op)
{
	bool replay = op->replayed != NULL;
	size_t enough = op->message_id != NULL ? SCAN_MAX : op->wanted;
	size_t left = op->got + op->gets < enough ? enough - op->got - op->gets : 0;
	size_t limit = GETS_MAX - op->gets;
	size_t room = replay ? publisher_room(op->parked->publisher) : SIZE_MAX;

	room = room > op->gets ? room - op->gets : 0;
	left = left < limit ? left : limit;
	return left < room ? left : room;
}

static bool all_got(const struct op *op)
{
	if (op->bytes > LIST_MAX_BYTES)
		return true;
	if (op->message_id != NULL)
		return op->got >= SCAN_MAX || op->done + op->sending >= op->wanted;
	return op->got >= op->wanted;
}

static void step(struct op *op)
{
	if (op->state == OP_GETTING && all_got(op))
		op_enter(op, OP_SETTLING);
	if (op->state == OP_GETTING) {
		for (size_t n = may_get(op); n > 0; n--)
			get(op);
	}
	if (op->state == OP_SETTLING && op->gets == 0 && op->sending == 0)
		finish(op);
}

static void start_first(struct parked *p)
{
	struct op *op = TAILQ_FIRST(&p->ops);

	if (op == NULL || op->state != OP_QUEUED || !channel_is_open(p->channel))
		return;
	op_enter(op, OP_GETTING);
	step(op);
}

void parked_room(struct parked *p)
{
	struct op *op = TAILQ_FIRST(&p->ops);

	if (op != NULL && op->state == OP_GETTING)
		step(op);
}

static void send_done(struct send *s)
{
	struct send **at = &s->parked->sends;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	free(s);
}

static void on_outcome(enum mq_outcome outcome, void *arg)
{
	struct send *s = arg;
	struct parked *p = s->parked;
	struct op *op = s->op;

	/* When the operation has ended early, its messages are back in the queue and the tag is used up. */
	if (op != NULL && outcome == MQ_CONFIRMED && s->channel_life == p->channel_life) {
		amqp_basic_ack_t ack = {.delivery_tag = s->tag};
		channel_send(p->channel, AMQP_BASIC_ACK_METHOD, &ack);
		op->done++;
	} else if (op != NULL && outcome == MQ_RETURNED) {
		note(op, "queue %s does not exist", s->queue);
	} else if (op != NULL) {
		note(op, "to queue %s: %s", s->queue, mq_outcome_name(outcome));
	}
	if (op != NULL)
		op->sending--;
	send_done(s);
	if (op != NULL)
		step(op);
}

static void replay(struct op *op, struct mq_message *m, uint64_t tag)
{
	struct parked *p = op->parked;
	struct send *s = xcalloc(1, sizeof(*s));

	if (m->queue.n == 0) {
		note(op, "message %.*s does not say where it came from", (int)m->message_id.n,
			m->message_id.p);
		free(s);
		return;
	}
	*s = (struct send){
		.parked = p, .op = op, .tag = tag, .channel_life = p->channel_life, .next = p->sends};
	bytes_copy(s->queue, sizeof(s->queue), m->queue);
	m->exchange = (struct bytes){"", 0};
	m->routing_key = m->queue;
	m->attempt = 0;
	m->reason = (struct bytes){"", 0};
	if (publisher_send(p->publisher, m, on_outcome, s) != 0) {
		note(op, "can't publish to queue %s now", s->queue);
		free(s);
		return;
	}
	p->sends = s;
	op->sending++;
}

static void keep(struct op *op, const struct mq_message *m)
{
	struct mq_message *copy = mq_message_copy(m);

	if (copy == NULL) {
		note(op, "no memory for a message of %zu bytes", m->body.n);
		return;
	}
	op->items = xrealloc(op->items, (op->item_count + 1) * sizeof(struct mq_message *));
	op->items[op->item_count++] = copy;
	op->bytes += m->body.n;
}

static bool is_asked_for(const struct op *op, const struct mq_message *m)
{
	if (op->message_id != NULL && !bytes_eq(m->message_id, bytes_of(op->message_id)))
		return false;
	return op->done + op->sending < op->wanted;
}

static void on_content(void *arg, const struct codec_content *content)
{
	struct parked *p = arg;
	struct op *op = TAILQ_FIRST(&p->ops);
	struct mq_message m;

	if (content->method->id != AMQP_BASIC_GET_OK_METHOD || op == NULL || op->gets == 0) {
		link_drop(channel_link(p->channel), "a message that was not asked for");
		return;
	}
	const amqp_basic_get_ok_t *got = content->method->decoded;
	op->gets--;
	if (op->state == OP_DONE)
		return;
	op->got++;
	letter_read(content, &m);
	if (op->listed != NULL)
		keep(op, &m);
	else if (is_asked_for(op, &m))
		replay(op, &m, got->delivery_tag);
	step(op);
}

static void on_method(void *arg, const amqp_method_t *method)
{
	struct parked *p = arg;
	struct op *op = TAILQ_FIRST(&p->ops);

	if (method->id != AMQP_BASIC_GET_EMPTY_METHOD || op == NULL || op->gets == 0)
		return;
	op->gets--;
	if (op->state == OP_GETTING)
		op_enter(op, OP_SETTLING);
	step(op);
}

static void on_opened(void *arg)
{
	struct parked *p = arg;

	p->channel_life++;
	start_first(p);
}

static void on_closed(void *arg, int code, const char *text)
{
	struct parked *p = arg;
	struct op *op = TAILQ_FIRST(&p->ops);

	if (op == NULL || op->state == OP_QUEUED)
		return;
	if (code != 0)
		log_error("rabbitmq parked event=channel_closed code=%d error=\"%s\"", code, text);
	note(op, "%s", text);
	finish(op);
}

static const struct channel_ops channel_ops = {on_opened, on_method, on_content, on_closed, NULL, NULL};

struct parked *parked_new(struct event_base *base, struct link *link, struct publisher *publisher)
{
	struct parked *p = xcalloc(1, sizeof(*p));

	p->base = base;
	p->publisher = publisher;
	TAILQ_INIT(&p->ops);
	p->channel = channel_new(link, &channel_ops, p, REOPEN_MS);
	return p;
}

void parked_free(struct parked *p)
{
	struct op *op;

	if (p == NULL)
		return;
	while ((op = TAILQ_FIRST(&p->ops)) != NULL) {
		TAILQ_REMOVE(&p->ops, op, link);
		op_free(op);
	}
	while (p->sends != NULL)
		send_done(p->sends);
	channel_free(p->channel);
	free(p);
}

/* NULL when it can't be taken on. The caller sets what is its own and calls op_begin(). */
static struct op *op_new(struct parked *p, size_t wanted, void *arg)
{
	if (!channel_is_open(p->channel) || p->op_count >= OPS_MAX)
		return NULL;
	struct op *op = xcalloc(1, sizeof(*op));
	op->parked = p;
	op->wanted = wanted;
	op->arg = arg;
	op->deadline = event_new(p->base, -1, 0, on_deadline, op);
	turn_task_init(&op->task, tell, op);
	TAILQ_INSERT_TAIL(&p->ops, op, link);
	p->op_count++;
	return op;
}

static void op_begin(struct op *op)
{
	struct timeval wait = {DEADLINE_S, 0};

	event_add(op->deadline, &wait);
	start_first(op->parked);
}

int parked_list(struct parked *p, size_t count, mq_parked_cb cb, void *arg)
{
	struct op *op = op_new(p, count, arg);

	if (op == NULL)
		return -1;
	op->listed = cb;
	op_begin(op);
	return 0;
}

int parked_replay(struct parked *p, size_t count, struct bytes message_id, mq_replay_cb cb, void *arg)
{
	struct op *op = op_new(p, count, arg);

	if (op == NULL)
		return -1;
	op->replayed = cb;
	if (message_id.n > 0)
		op->message_id = xstrndup(message_id.p, message_id.n);
	op_begin(op);
	return 0;
}
