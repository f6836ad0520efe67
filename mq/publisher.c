/* SPDX-License-Identifier: MIT */
/* Delivery tags count from 1 on each new channel. A message's slot is its tag modulo the size of a ring that
 * is some windows long, so that one late confirm does not hold up the others. */
#include "mq/publisher.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "mq/letter.h"
#include "mq/link.h"

#define RING_WINDOWS      4
#define RING_MIN          64
#define BACKLOG_MAX_BYTES ((size_t)4 << 20)
#define CONFIRM_WAIT_US   (15 * INT64_C(1000000))
#define REOPEN_MS         1000
#define HEADERS_MAX       5

struct slot {
	mq_publish_cb cb; /* NULL: free */
	bool returned;
	void *arg;
	uint64_t id_hash; /* of the message id: what a return names it by */
};

struct publisher {
	struct channel *channel;
	const struct publisher_ops *ops;
	void *arg;
	bool ready; /* the channel confirms */
	bool hold;
	bool starved; /* there was no room when last looked at */
	size_t window;
	struct slot *ring; /* owned; ring_size is a power of two */
	size_t ring_size;
	uint64_t next;   /* the tag of the next message */
	uint64_t oldest; /* no tag before it is waiting */
	size_t pending;
	int64_t progress_us; /* last confirm, or when the first message got under way */
	struct turn_task room_task;
	struct publisher_counts counts;
	amqp_field_value_t *cc; /* owned, scratch */
	size_t cc_size;
};

static struct slot *slot_of(const struct publisher *p, uint64_t tag)
{
	return &p->ring[tag & (p->ring_size - 1)];
}

static uint64_t hash(struct bytes id)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < id.n; i++)
		h = (h ^ (unsigned char)id.p[i]) * UINT64_C(0x100000001b3);
	return h;
}

size_t publisher_room(const struct publisher *p)
{
	struct link *link = channel_link(p->channel);
	size_t ring_used = (size_t)(p->next - p->oldest);

	if (!p->ready || p->hold || link_blocked(link) || !channel_is_open(p->channel) ||
		link_backlog(link) > BACKLOG_MAX_BYTES || p->pending >= p->window)
		return 0;
	size_t room = p->window - p->pending;
	return room < p->ring_size - ring_used ? room : p->ring_size - ring_used;
}

size_t publisher_pending(const struct publisher *p)
{
	return p->pending;
}

const struct publisher_counts *publisher_counts(const struct publisher *p)
{
	return &p->counts;
}

static void look_for_room(struct publisher *p)
{
	if (p->starved && publisher_room(p) > 0)
		turn_schedule(&p->room_task);
}

static void tell_room(void *arg)
{
	struct publisher *p = arg;

	if (!p->starved || publisher_room(p) == 0)
		return;
	p->starved = false;
	if (p->ops->room != NULL)
		p->ops->room(p->arg);
}

void publisher_hold(struct publisher *p, bool hold)
{
	p->hold = hold;
	p->starved = p->starved || hold;
	look_for_room(p);
}

/* Ends the message of a tag. Its callback may publish. */
static void settle(struct publisher *p, uint64_t tag, enum mq_outcome outcome)
{
	struct slot *slot = slot_of(p, tag);
	struct slot done = *slot;

	if (outcome != MQ_LOST && done.returned)
		outcome = MQ_RETURNED;
	slot->cb = NULL;
	p->pending--;
	p->counts.outcome[outcome]++;
	while (p->oldest < p->next && slot_of(p, p->oldest)->cb == NULL)
		p->oldest++;
	done.cb(outcome, done.arg);
}

static bool waiting(const struct publisher *p, uint64_t tag)
{
	return tag >= p->oldest && tag < p->next && slot_of(p, tag)->cb != NULL;
}

/* `multiple` ends every tag up to this one; tag 0 then means all. */
static void on_confirm(struct publisher *p, uint64_t tag, bool multiple, enum mq_outcome outcome)
{
	uint64_t last = multiple && tag == 0 ? p->next - 1 : tag;

	if (last >= p->next || (!multiple && !waiting(p, tag))) {
		link_drop(channel_link(p->channel), "a confirm of message %llu, which is not under way",
			(unsigned long long)tag);
		return;
	}
	p->progress_us = clock_mono_us();
	for (uint64_t t = multiple ? p->oldest : tag; t <= last; t++) {
		if (waiting(p, t))
			settle(p, t, outcome);
	}
	look_for_room(p);
}

/* The broker returns a message before it confirms it, and in the order of publishing. */
static void on_content(void *arg, const struct codec_content *content)
{
	struct publisher *p = arg;
	struct mq_message m;

	if (content->method->id != AMQP_BASIC_RETURN_METHOD)
		return;
	letter_read(content, &m);
	uint64_t id_hash = hash(m.message_id);
	for (uint64_t tag = p->oldest; tag < p->next; tag++) {
		struct slot *slot = slot_of(p, tag);
		if (slot->cb != NULL && !slot->returned && slot->id_hash == id_hash) {
			slot->returned = true;
			return;
		}
	}
	link_drop(channel_link(p->channel), "a return of a message that is not under way");
}

static void on_method(void *arg, const amqp_method_t *method)
{
	struct publisher *p = arg;

	if (method->id == AMQP_BASIC_ACK_METHOD) {
		const amqp_basic_ack_t *ack = method->decoded;
		on_confirm(p, ack->delivery_tag, ack->multiple, MQ_CONFIRMED);
	} else if (method->id == AMQP_BASIC_NACK_METHOD) {
		const amqp_basic_nack_t *nack = method->decoded;
		on_confirm(p, nack->delivery_tag, nack->multiple, MQ_NACKED);
	} else if (method->id == AMQP_CONFIRM_SELECT_OK_METHOD) {
		p->ready = true;
		look_for_room(p);
	}
}

static void on_opened(void *arg)
{
	struct publisher *p = arg;
	amqp_confirm_select_t select = {0};

	channel_call(p->channel, AMQP_CONFIRM_SELECT_METHOD, &select);
}

static void on_closed(void *arg, int code, const char *text)
{
	struct publisher *p = arg;
	uint64_t end = p->next;

	p->ready = false;
	p->starved = true;
	for (uint64_t tag = p->oldest; tag < end; tag++) {
		if (waiting(p, tag))
			settle(p, tag, MQ_LOST);
	}
	p->next = p->oldest = 1;
	if (code != 0 && p->ops->broken != NULL)
		p->ops->broken(p->arg, code, text);
}

static void on_writable(void *arg)
{
	look_for_room(arg);
}

/* A queue without a leader takes messages and never confirms them, while heartbeats come and go. What has not
 * left yet, or is not read by a broker that has blocked us, is not late. */
static void on_tick(void *arg, int64_t now_us)
{
	struct publisher *p = arg;

	struct link *link = channel_link(p->channel);

	if (link_backlog(link) > 0 || link_blocked(link))
		p->progress_us = now_us;
	else if (p->pending > 0 && now_us - p->progress_us > CONFIRM_WAIT_US)
		link_drop(link, "%zu messages without a confirm for %lld s", p->pending,
			(long long)((now_us - p->progress_us) / 1000000));
}

static const struct channel_ops channel_ops = {
	on_opened, on_method, on_content, on_closed, on_writable, on_tick};

/* Makes the ring large enough for the window and moves what is under way into it. */
static void fit_ring(struct publisher *p)
{
	size_t size = RING_MIN;
	struct slot *old = p->ring;
	size_t old_size = p->ring_size;

	while (size < p->window * RING_WINDOWS)
		size *= 2;
	if (size <= old_size)
		return;
	p->ring_size = size;
	p->ring = xcalloc(size, sizeof(*p->ring));
	for (uint64_t tag = p->oldest; tag < p->next; tag++)
		*slot_of(p, tag) = old[tag & (old_size - 1)];
	free(old);
}

void publisher_set_window(struct publisher *p, size_t window)
{
	p->window = window;
	fit_ring(p);
	look_for_room(p);
}

struct publisher *publisher_new(struct link *link, size_t window, const struct publisher_ops *ops, void *arg)
{
	struct publisher *p = xcalloc(1, sizeof(*p));

	p->ops = ops;
	p->arg = arg;
	p->hold = p->starved = true;
	p->next = p->oldest = 1;
	p->channel = channel_new(link, &channel_ops, p, REOPEN_MS);
	p->window = window;
	fit_ring(p);
	turn_task_init(&p->room_task, tell_room, p);
	return p;
}

void publisher_free(struct publisher *p)
{
	if (p == NULL)
		return;
	turn_cancel(&p->room_task);
	channel_free(p->channel);
	free(p->ring);
	free(p->cc);
	free(p);
}

static amqp_table_entry_t text_header(const char *name, struct bytes value)
{
	amqp_table_entry_t e = {.key = amqp_text(name), .value = {.kind = AMQP_FIELD_KIND_UTF8}};

	e.value.value.bytes = amqp_from(value);
	return e;
}

static amqp_table_entry_t cc_header(struct publisher *p, const struct mq_message *m)
{
	amqp_table_entry_t e = {.key = amqp_text("CC"), .value = {.kind = AMQP_FIELD_KIND_ARRAY}};

	if (m->cc_count > p->cc_size) {
		p->cc_size = m->cc_count * 2;
		p->cc = xrealloc(p->cc, p->cc_size * sizeof(*p->cc));
	}
	for (size_t i = 0; i < m->cc_count; i++) {
		p->cc[i].kind = AMQP_FIELD_KIND_UTF8;
		p->cc[i].value.bytes = amqp_from(m->cc[i]);
	}
	e.value.value.array.num_entries = (int)m->cc_count;
	e.value.value.array.entries = p->cc;
	return e;
}

/* Fills headers[HEADERS_MAX]; how many there are. */
static int make_headers(struct publisher *p, const struct mq_message *m, amqp_table_entry_t *headers)
{
	int n = 0;

	if (m->cc_count > 0)
		headers[n++] = cc_header(p, m);
	if (m->queue.n > 0)
		headers[n++] = text_header(HEADER_QUEUE, m->queue);
	if (m->reason.n > 0)
		headers[n++] = text_header(HEADER_REASON, m->reason);
	if (m->key.n > 0)
		headers[n++] = text_header(HEADER_KEY, m->key);
	if (m->attempt > 0 || m->queue.n > 0) {
		headers[n].key = amqp_text(HEADER_ATTEMPT);
		headers[n].value.kind = AMQP_FIELD_KIND_I32;
		headers[n++].value.value.i32 = m->attempt;
	}
	return n;
}

static bool encode(struct publisher *p, const struct mq_message *m)
{
	amqp_table_entry_t headers[HEADERS_MAX];
	amqp_basic_publish_t publish = {
		.exchange = amqp_from(m->exchange), .routing_key = amqp_from(m->routing_key), .mandatory = 1};
	amqp_basic_properties_t properties = {._flags = AMQP_BASIC_CONTENT_TYPE_FLAG |
							AMQP_BASIC_DELIVERY_MODE_FLAG |
							AMQP_BASIC_MESSAGE_ID_FLAG,
		.content_type = amqp_text("application/json"),
		.delivery_mode = 2,
		.message_id = amqp_from(m->message_id),
		.type = amqp_from(m->type),
		.timestamp = (uint64_t)m->timestamp_s,
		.headers = {.entries = headers}};

	properties.headers.num_entries = make_headers(p, m, headers);
	if (properties.headers.num_entries > 0)
		properties._flags |= AMQP_BASIC_HEADERS_FLAG;
	if (m->type.n > 0)
		properties._flags |= AMQP_BASIC_TYPE_FLAG;
	if (m->timestamp_s > 0)
		properties._flags |= AMQP_BASIC_TIMESTAMP_FLAG;
	return channel_publish(p->channel, &publish, &properties, m->body);
}

int publisher_send(struct publisher *p, const struct mq_message *m, mq_publish_cb cb, void *arg)
{
	size_t room = publisher_room(p);

	if (room <= 1)
		p->starved = true;
	if (room == 0)
		return -EAGAIN;
	if (!encode(p, m))
		return channel_is_open(p->channel) ? -EINVAL : -EAGAIN;
	if (p->pending++ == 0)
		p->progress_us = clock_mono_us();
	*slot_of(p, p->next++) = (struct slot){.cb = cb, .arg = arg, .id_hash = hash(m->message_id)};
	p->counts.published++;
	return 0;
}
