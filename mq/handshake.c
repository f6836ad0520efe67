/* SPDX-License-Identifier: MIT */
/* Channel 0: from connection.start to open, and the broker's notices about the connection. */
#include "mq/link_private.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

static bool in_place(struct link *l, enum link_state wanted, const amqp_method_t *method)
{
	if (l->state != wanted)
		link_drop(l, "%s out of place", amqp_method_name(method->id));
	return l->state == wanted;
}

static amqp_table_entry_t text_entry(const char *key, const char *value)
{
	amqp_table_entry_t e = {.key = amqp_text(key), .value = {.kind = AMQP_FIELD_KIND_UTF8}};

	e.value.value.bytes = amqp_text(value);
	return e;
}

static amqp_table_entry_t flag_entry(const char *key)
{
	amqp_table_entry_t e = {.key = amqp_text(key), .value = {.kind = AMQP_FIELD_KIND_BOOLEAN}};

	e.value.value.boolean = 1;
	return e;
}

static bool offers_plain(amqp_bytes_t mechanisms)
{
	struct bytes m = amqp_to(mechanisms);

	return m.n >= 5 && memmem(m.p, m.n, "PLAIN", 5) != NULL;
}

/* authentication_failure_close makes the broker say 403 instead of hanging up. */
static void send_start_ok(struct link *l)
{
	amqp_table_entry_t can[] = {flag_entry("publisher_confirms"), flag_entry("consumer_cancel_notify"),
		flag_entry("basic.nack"), flag_entry("connection.blocked"),
		flag_entry("authentication_failure_close")};
	amqp_field_value_t abilities = {.kind = AMQP_FIELD_KIND_TABLE};
	char name[64];
	struct buf secret = BUF_INIT;

	abilities.value.table = (amqp_table_t){.num_entries = ARRAY_LEN(can), .entries = can};
	snprintf(name, sizeof(name), "muster %s", l->name);
	amqp_table_entry_t about[] = {text_entry("product", "muster"), text_entry("version", MUSTER_VERSION),
		text_entry("platform", "C"), text_entry("connection_name", name),
		{.key = amqp_text("capabilities"), .value = abilities}};
	buf_add_char(&secret, '\0');
	buf_add_str(&secret, l->user);
	buf_add_char(&secret, '\0');
	buf_add_str(&secret, l->password);
	amqp_connection_start_ok_t ok = {
		.client_properties = {.num_entries = ARRAY_LEN(about), .entries = about},
		.mechanism = amqp_text("PLAIN"),
		.response = amqp_from(buf_bytes(&secret)),
		.locale = amqp_text("en_US"),
	};
	link_enter(l, LINK_LOGIN);
	link_send(l, 0, AMQP_CONNECTION_START_OK_METHOD, &ok);
	explicit_bzero(secret.data, secret.len);
	buf_release(&secret);
}

static void on_start(struct link *l, const amqp_method_t *method)
{
	const amqp_connection_start_t *start = method->decoded;

	if (!in_place(l, LINK_GREETING, method))
		return;
	if (start->version_major != 0 || start->version_minor != 9)
		link_drop(l, "the broker speaks AMQP %u.%u, not 0.9.1", start->version_major,
			start->version_minor);
	else if (!offers_plain(start->mechanisms))
		link_drop_code(l, AMQP_ACCESS_REFUSED, "the broker does not offer PLAIN logins");
	else
		send_start_ok(l);
}

static uint32_t agreed(uint32_t ours, uint32_t theirs)
{
	return theirs != 0 && (ours == 0 || theirs < ours) ? theirs : ours;
}

static void on_tune(struct link *l, const amqp_method_t *method)
{
	const amqp_connection_tune_t *tune = method->decoded;

	if (!in_place(l, LINK_LOGIN, method))
		return;
	uint32_t frame_max = agreed(CODEC_FRAME_DEFAULT, tune->frame_max);
	if (frame_max < CODEC_FRAME_MIN ||
		agreed(CODEC_CHANNELS - 1, tune->channel_max) < CODEC_CHANNELS - 1) {
		link_drop(l, "the broker allows frames of %u bytes and %u channels only", frame_max,
			tune->channel_max);
		return;
	}
	amqp_connection_tune_ok_t ok = {.channel_max = CODEC_CHANNELS - 1, .frame_max = frame_max};
	ok.heartbeat = (uint16_t)agreed((uint32_t)((l->heartbeat_ms + 999) / 1000), tune->heartbeat);
	l->frame_max = frame_max;
	l->beat_us = ok.heartbeat * INT64_C(1000000);
	codec_set_frame_max(l->codec, frame_max);
	link_send(l, 0, AMQP_CONNECTION_TUNE_OK_METHOD, &ok);
	amqp_connection_open_t open = {.virtual_host = amqp_text(l->vhost)};
	link_enter(l, LINK_OPENING);
	link_send(l, 0, AMQP_CONNECTION_OPEN_METHOD, &open);
}

static void on_open_ok(struct link *l, const amqp_method_t *method)
{
	if (!in_place(l, LINK_OPENING, method))
		return;
	link_enter(l, LINK_OPEN);
	l->opened_us = clock_mono_us();
	l->refusal = 0;
	l->told[0] = '\0';
	log_line(l->failures > 0 ? LOG_LEVEL_NOTICE : LOG_LEVEL_INFO, "rabbitmq %s event=up", l->name);
	if (l->ops->opened != NULL)
		l->ops->opened(l->arg);
	channels_open_all(l);
}

static void on_close(struct link *l, const amqp_method_t *method)
{
	const amqp_connection_close_t *close = method->decoded;
	amqp_connection_close_ok_t ok = {0};

	link_send(l, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
	/* A close once all was well is not about the login: 403 and 530 then are no reason to wait long. */
	int code = l->state == LINK_OPEN ? 0 : close->reply_code;
	link_drop_code(l, code, "%s: %u %.*s", link_state_name(l->state), close->reply_code,
		(int)close->reply_text.len, (const char *)close->reply_text.bytes);
}

static void on_blocked(struct link *l, const amqp_method_t *method)
{
	bool blocked = method->id == AMQP_CONNECTION_BLOCKED_METHOD;

	if (!in_place(l, LINK_OPEN, method))
		return;
	if (blocked) {
		const amqp_connection_blocked_t *b = method->decoded;
		log_warning("rabbitmq %s event=blocked reason=\"%.*s\"", l->name, (int)b->reason.len,
			(const char *)b->reason.bytes);
	} else {
		log_notice("rabbitmq %s event=unblocked", l->name);
	}
	l->blocked = blocked;
	channels_restart_clocks(l);
	if (l->ops->blocked != NULL)
		l->ops->blocked(l->arg);
	if (!blocked)
		channels_writable_all(l);
}

void handshake_method(struct link *l, const amqp_method_t *method)
{
	if (l->state == LINK_CLOSING && method->id != AMQP_CONNECTION_CLOSE_OK_METHOD &&
		method->id != AMQP_CONNECTION_CLOSE_METHOD)
		return;
	switch (method->id) {
	case AMQP_CONNECTION_START_METHOD:
		on_start(l, method);
		break;
	case AMQP_CONNECTION_TUNE_METHOD:
		on_tune(l, method);
		break;
	case AMQP_CONNECTION_OPEN_OK_METHOD:
		on_open_ok(l, method);
		break;
	case AMQP_CONNECTION_CLOSE_METHOD:
		on_close(l, method);
		break;
	case AMQP_CONNECTION_BLOCKED_METHOD:
	case AMQP_CONNECTION_UNBLOCKED_METHOD:
		on_blocked(l, method);
		break;
	default:
		/* close-ok, or something that we never asked for. */
		link_drop(l, "%s", amqp_method_name(method->id));
	}
}
