/* SPDX-License-Identifier: MIT */
#include "daemon/pipeline.h"

#include <assert.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/turn.h"

enum queued_state {
	QUEUED_NEW,       /* parsed */
	QUEUED_PREPARING, /* its prepare will call back */
	QUEUED_READY,     /* prepared, or nothing to prepare */
	QUEUED_RUNNING,   /* its handler has it, and will call back if it waits */
	QUEUED_FINISHED,  /* the reply is complete */
};

struct queued {
	struct call call; /* first: a call is cast to it */
	enum queued_state state;
	struct pipeline *pipeline; /* NULL once abandoned */
	const struct pipeline_ops *ops;
	TAILQ_ENTRY(queued) link;
	struct bytes argv[];
};

static unsigned running_total;

unsigned pipeline_running_total(void)
{
	return running_total;
}

/* Not logged: it happens five times a command. */
static void set_state(struct queued *q, enum queued_state state)
{
	assert(state > q->state);
	running_total += state == QUEUED_RUNNING;
	running_total -= q->state == QUEUED_RUNNING;
	q->state = state;
}

static void destroy(void *arg)
{
	struct queued *q = arg;

	reply_release(&q->call.reply);
	free(q);
}

/* Its handler is through with it. Counts it, and frees it later when nobody waits for the reply. */
static void complete(struct queued *q)
{
	struct pipeline *p = q->pipeline;

	assert(q->call.reply.buf.len > 0);
	set_state(q, QUEUED_FINISHED);
	q->ops->done(&q->call);
	if (p == NULL) {
		turn_free(q, destroy);
		return;
	}
	p->held += q->call.reply.buf.len;
	if (q->call.alone)
		p->alone = false;
	if (--p->running == 0)
		p->barrier = NULL;
}

static void on_finished(struct call *call)
{
	struct queued *q = (struct queued *)call;

	complete(q);
	if (q->pipeline != NULL)
		q->ops->wake(q->pipeline->owner);
}

static void on_prepared(struct call *call)
{
	struct queued *q = (struct queued *)call;

	set_state(q, QUEUED_READY);
	if (q->pipeline == NULL)
		turn_free(q, destroy);
	else
		q->ops->wake(q->pipeline->owner);
}

static bool on_looked(struct call *call)
{
	const struct queued *q = (const struct queued *)call;

	return q->pipeline == NULL || q->ops->hung_up(q->pipeline->owner);
}

void pipeline_init(struct pipeline *p, const struct pipeline_ops *ops, void *owner)
{
	*p = (struct pipeline){.ops = ops, .owner = owner};
	TAILQ_INIT(&p->queue);
}

static void tell_hung_up(struct queued *q)
{
	bool news = !q->call.hung_up;

	q->call.hung_up = true;
	if (news && q->state == QUEUED_RUNNING && q->call.on_hangup != NULL)
		q->call.on_hangup(&q->call);
}

void pipeline_hang_up(struct pipeline *p)
{
	struct queued *q;

	p->hung_up = true;
	TAILQ_FOREACH (q, &p->queue, link)
		tell_hung_up(q);
}

/* Out of the queue. A handler that has it will bring it to its end. */
static void detach(struct pipeline *p, struct queued *q)
{
	TAILQ_REMOVE(&p->queue, q, link);
	q->pipeline = NULL;
	q->call.client = NULL;
	if (q->state == QUEUED_RUNNING)
		tell_hung_up(q);
	else if (q->state != QUEUED_PREPARING)
		destroy(q);
}

void pipeline_abandon(struct pipeline *p)
{
	struct queued *q;

	while ((q = TAILQ_FIRST(&p->queue)) != NULL)
		detach(p, q);
	pipeline_init(p, p->ops, p->owner);
}

void pipeline_cut(struct pipeline *p)
{
	struct queued *q, *next;

	if (p->next != NULL && p->next->state < QUEUED_RUNNING)
		p->next = NULL;
	for (q = TAILQ_FIRST(&p->queue); q != NULL; q = next) {
		next = TAILQ_NEXT(q, link);
		if (q->state < QUEUED_RUNNING) {
			p->count--;
			detach(p, q);
		}
	}
}

static struct queued *append(struct pipeline *p, size_t argc, size_t text)
{
	struct queued *q = xmalloc(sizeof(*q) + argc * sizeof(struct bytes) + text);

	*q = (struct queued){.state = QUEUED_NEW, .pipeline = p, .ops = p->ops};
	reply_init(&q->call.reply, 2);
	q->call.argc = (int)argc;
	q->call.argv = q->argv;
	q->call.finished = on_finished;
	q->call.prepared = on_prepared;
	q->call.looked = on_looked;
	q->call.hung_up = p->hung_up;
	TAILQ_INSERT_TAIL(&p->queue, q, link);
	if (p->next == NULL)
		p->next = q;
	p->count++;
	return q;
}

/* An answer that no handler gives. */
static void refuse(struct pipeline *p, struct queued *q)
{
	set_state(q, QUEUED_FINISHED);
	q->ops->done(&q->call);
	p->held += q->call.reply.buf.len;
}

static void prepare(struct queued *q)
{
	const struct command *command = q->call.command;

	if (command->prepare == NULL || command->prepare(&q->call))
		set_state(q, QUEUED_READY);
	else
		set_state(q, QUEUED_PREPARING);
}

void pipeline_push(struct pipeline *p, struct app *app, struct client *client, const char *data,
	const struct resp_arg *args, size_t argc, int64_t now_us)
{
	size_t text = 0;
	for (size_t i = 0; i < argc; i++)
		text += args[i].n;
	struct queued *q = append(p, argc, text);
	char *copy = (char *)&q->argv[argc];

	for (size_t i = 0; i < argc; i++) {
		if (args[i].n > 0)
			memcpy(copy, data + args[i].at, args[i].n);
		q->argv[i] = (struct bytes){copy, args[i].n};
		copy += args[i].n;
	}
	q->call.app = app;
	q->call.client = client;
	q->call.received_us = now_us;
	if (p->ops->resolve(&q->call) && p->ops->may_prepare(p->owner, q->call.command))
		prepare(q);
}

void pipeline_push_error(struct pipeline *p, const char *error)
{
	struct queued *q = append(p, 0, 0);
	reply_error(&q->call.reply, "%s", error);
}

static bool lane_open(const struct pipeline *p, const struct command *command)
{
	if (p->alone)
		return false;
	if (p->barrier != NULL)
		return command == p->barrier;
	return command->lane != LANE_BARRIER || p->running == 0;
}

static void start(struct pipeline *p, struct queued *q)
{
	const struct command *command = q->call.command;

	reply_init(&q->call.reply, p->ops->protocol(p->owner));
	if (!p->ops->allow(p->owner, &q->call)) {
		refuse(p, q);
		return;
	}
	set_state(q, QUEUED_RUNNING);
	p->running++;
	if (command->lane == LANE_BARRIER)
		p->barrier = command;
	if (command->exec(&q->call) == CALL_DONE)
		complete(q);
	else
		p->alone = q->call.alone;
}

/* Starts p->next if it may start now, or answers it; false when it has to wait. */
static bool advance(struct pipeline *p)
{
	struct queued *q = p->next;

	if (q->call.command == NULL) {
		refuse(p, q);
	} else {
		if (q->state == QUEUED_NEW && p->ops->may_prepare(p->owner, q->call.command))
			prepare(q);
		if (q->state == QUEUED_PREPARING || !lane_open(p, q->call.command))
			return false;
		start(p, q);
	}
	p->next = TAILQ_NEXT(q, link);
	return true;
}

static void emit(struct pipeline *p, struct evbuffer *out)
{
	struct queued *q;

	while ((q = TAILQ_FIRST(&p->queue)) != NULL && q->state == QUEUED_FINISHED) {
		struct buf *reply = &q->call.reply.buf;
		evbuffer_add(out, reply->data, reply->len);
		p->held -= reply->len;
		p->count--;
		TAILQ_REMOVE(&p->queue, q, link);
		destroy(q);
	}
}

bool pipeline_run(struct pipeline *p, struct evbuffer *out, size_t room)
{
	emit(p, out);
	while (p->next != NULL) {
		if (evbuffer_get_length(out) + p->held >= room)
			return false;
		if (!advance(p))
			break;
		emit(p, out);
	}
	return true;
}
