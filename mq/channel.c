/* SPDX-License-Identifier: MIT */
/* Channels: opened with their link, answered in time or the link goes, opened again after an error. */
#include "mq/link_private.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

struct channel *channel_new(struct link *l, const struct channel_ops *ops, void *arg, int64_t reopen_ms)
{
	uint16_t number = 1;

	while (number < CODEC_CHANNELS && l->channels[number] != NULL)
		number++;
	if (number == CODEC_CHANNELS)
		return NULL;
	struct channel *ch = xcalloc(1, sizeof(*ch));
	*ch = (struct channel){.link = l, .number = number, .ops = ops, .arg = arg, .reopen_ms = reopen_ms};
	l->channels[number] = ch;
	return ch;
}

void channel_free(struct channel *ch)
{
	if (ch == NULL)
		return;
	ch->link->channels[ch->number] = NULL;
	free(ch);
}

bool channel_is_open(const struct channel *ch)
{
	return ch->state == CHANNEL_OPEN && !ch->link->doomed && ch->link->state == LINK_OPEN;
}

struct link *channel_link(const struct channel *ch)
{
	return ch->link;
}

uint16_t channel_number(const struct channel *ch)
{
	return ch->number;
}

static void channel_enter(struct channel *ch, int state)
{
	static const char *const names[] = {"closed", "opening", "open"};

	log_debug("rabbitmq %s event=channel channel=%u %s -> %s", ch->link->name, ch->number,
		names[ch->state], names[state]);
	ch->state = state;
}

static void arm(struct channel *ch)
{
	ch->due_us = clock_mono_us() + ch->link->timeout_ms * 1000;
}

static void call(struct channel *ch, amqp_method_number_t id, void *decoded)
{
	if (ch->calls++ == 0)
		arm(ch);
	link_send(ch->link, ch->number, id, decoded);
}

static void channel_open(struct channel *ch)
{
	amqp_channel_open_t open = {0};

	ch->reopen_us = 0;
	ch->calls = 0;
	channel_enter(ch, CHANNEL_OPENING);
	call(ch, AMQP_CHANNEL_OPEN_METHOD, &open);
}

void channel_call(struct channel *ch, amqp_method_number_t id, void *decoded)
{
	if (channel_is_open(ch))
		call(ch, id, decoded);
}

void channel_send(struct channel *ch, amqp_method_number_t id, void *decoded)
{
	if (channel_is_open(ch))
		link_send(ch->link, ch->number, id, decoded);
}

bool channel_publish(struct channel *ch, amqp_basic_publish_t *publish, amqp_basic_properties_t *properties,
	struct bytes body)
{
	struct link *l = ch->link;

	if (!channel_is_open(ch))
		return false;
	size_t before = link_backlog(l);
	if (codec_put_publish(link_output(l), ch->number, l->frame_max, publish, properties, body) == 0) {
		l->sent_us = clock_mono_us();
		return true;
	}
	if (link_backlog(l) != before)
		link_drop(l, "no memory for a message of %zu bytes", body.n);
	return false;
}

void channels_open_all(struct link *l)
{
	for (int i = 1; i < CODEC_CHANNELS; i++) {
		if (l->channels[i] != NULL)
			channel_open(l->channels[i]);
	}
}

static void channel_gone(struct channel *ch, int code, const char *text)
{
	channel_enter(ch, CHANNEL_CLOSED);
	ch->calls = 0;
	ch->ops->closed(ch->arg, code, text);
}

void channels_closed_all(struct link *l)
{
	for (int i = 1; i < CODEC_CHANNELS; i++) {
		struct channel *ch = l->channels[i];
		if (ch != NULL && ch->state != CHANNEL_CLOSED)
			channel_gone(ch, 0, l->error);
		if (ch != NULL)
			ch->reopen_us = 0;
	}
}

void channels_writable_all(struct link *l)
{
	for (int i = 1; i < CODEC_CHANNELS; i++) {
		struct channel *ch = l->channels[i];
		if (ch != NULL && channel_is_open(ch) && ch->ops->writable != NULL)
			ch->ops->writable(ch->arg);
	}
}

void channels_restart_clocks(struct link *l)
{
	for (int i = 1; i < CODEC_CHANNELS; i++) {
		if (l->channels[i] != NULL)
			arm(l->channels[i]);
	}
}

bool channels_tick(struct link *l, int64_t now_us)
{
	for (int i = 1; i < CODEC_CHANNELS; i++) {
		struct channel *ch = l->channels[i];
		if (ch == NULL)
			continue;
		if (ch->calls > 0 && now_us >= ch->due_us) {
			link_drop(l, "no answer on channel %u in %lld ms", ch->number,
				(long long)l->timeout_ms);
			return false;
		}
		if (ch->state == CHANNEL_CLOSED && now_us >= ch->reopen_us)
			channel_open(ch);
		else if (ch->state == CHANNEL_OPEN && ch->ops->tick != NULL)
			ch->ops->tick(ch->arg, now_us);
	}
	return !l->doomed;
}

/* Methods that the broker sends of its own; all others answer one of ours. */
static bool unasked(amqp_method_number_t id)
{
	return id == AMQP_BASIC_ACK_METHOD || id == AMQP_BASIC_NACK_METHOD ||
	       id == AMQP_BASIC_CANCEL_METHOD || id == AMQP_BASIC_DELIVER_METHOD ||
	       id == AMQP_BASIC_RETURN_METHOD;
}

static bool answered(struct channel *ch, amqp_method_number_t id)
{
	if (ch->calls == 0 || ch->state == CHANNEL_CLOSED) {
		link_drop(ch->link, "%s on channel %u, not asked for", amqp_method_name(id), ch->number);
		return false;
	}
	if (--ch->calls > 0)
		arm(ch);
	return true;
}

static void on_channel_close(struct channel *ch, const amqp_channel_close_t *close)
{
	amqp_channel_close_ok_t ok = {0};
	char text[LINK_ERROR_MAX];

	bytes_copy(text, sizeof(text), amqp_to(close->reply_text));
	link_send(ch->link, ch->number, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
	ch->reopen_us = clock_mono_us() + ch->reopen_ms * 1000;
	channel_gone(ch, close->reply_code, text);
	if (ch->reopen_ms == 0 && !ch->link->doomed)
		channel_open(ch);
}

static void on_flow(struct channel *ch, const amqp_channel_flow_t *flow)
{
	amqp_channel_flow_ok_t ok = {.active = flow->active};

	channel_send(ch, AMQP_CHANNEL_FLOW_OK_METHOD, &ok);
}

void channel_take_method(struct channel *ch, const amqp_method_t *method)
{
	if (method->id == AMQP_CHANNEL_CLOSE_METHOD) {
		on_channel_close(ch, method->decoded);
	} else if (method->id == AMQP_CHANNEL_FLOW_METHOD) {
		on_flow(ch, method->decoded);
	} else if (unasked(method->id) ? ch->state == CHANNEL_OPEN : answered(ch, method->id)) {
		if (method->id != AMQP_CHANNEL_OPEN_OK_METHOD) {
			ch->ops->method(ch->arg, method);
			return;
		}
		channel_enter(ch, CHANNEL_OPEN);
		ch->ops->opened(ch->arg);
	}
}

void channel_take_content(struct channel *ch, const struct codec_content *content)
{
	if (unasked(content->method->id) ? ch->state == CHANNEL_OPEN : answered(ch, content->method->id))
		ch->ops->content(ch->arg, content);
}
