/* SPDX-License-Identifier: MIT */
#include "mq/letter.h"

#include "mq/topology.h"

#define ATTEMPT_MAX 1000000
#define SHORT_MAX   255

static const amqp_field_value_t *find(const amqp_table_t *table, const char *key)
{
	for (int i = 0; i < table->num_entries; i++) {
		if (bytes_eq(amqp_to(table->entries[i].key), bytes_of(key)))
			return &table->entries[i].value;
	}
	return NULL;
}

static struct bytes as_text(const amqp_field_value_t *v)
{
	if (v == NULL || v->kind != AMQP_FIELD_KIND_UTF8 || v->value.bytes.len > SHORT_MAX)
		return (struct bytes){"", 0};
	return amqp_to(v->value.bytes);
}

static int64_t as_integer(const amqp_field_value_t *v)
{
	if (v == NULL)
		return 0;
	if (v->kind == AMQP_FIELD_KIND_I8)
		return v->value.i8;
	if (v->kind == AMQP_FIELD_KIND_U8)
		return v->value.u8;
	if (v->kind == AMQP_FIELD_KIND_I16)
		return v->value.i16;
	if (v->kind == AMQP_FIELD_KIND_U16)
		return v->value.u16;
	if (v->kind == AMQP_FIELD_KIND_I32)
		return v->value.i32;
	if (v->kind == AMQP_FIELD_KIND_U32)
		return v->value.u32;
	return v->kind == AMQP_FIELD_KIND_I64 ? v->value.i64 : 0;
}

static bool of_delay_queue(struct bytes queue)
{
	struct bytes prefix = BYTES_LIT(TOPOLOGY_DELAY_PREFIX);

	return queue.n >= prefix.n && memcmp(queue.p, prefix.p, prefix.n) == 0;
}

/* The newest death that is not a wait's end; the broker keeps the newest first. */
static const amqp_table_t *last_death(const amqp_table_t *headers)
{
	const amqp_field_value_t *deaths = find(headers, "x-death");

	if (deaths == NULL || deaths->kind != AMQP_FIELD_KIND_ARRAY)
		return NULL;
	for (int i = 0; i < deaths->value.array.num_entries; i++) {
		const amqp_field_value_t *v = &deaths->value.array.entries[i];
		if (v->kind != AMQP_FIELD_KIND_TABLE)
			continue;
		struct bytes queue = as_text(find(&v->value.table, "queue"));
		if (queue.n > 0 && !of_delay_queue(queue))
			return &v->value.table;
	}
	return NULL;
}

static void read_death(const amqp_table_t *death, struct mq_message *ret)
{
	const amqp_field_value_t *keys = find(death, "routing-keys");

	ret->queue = as_text(find(death, "queue"));
	ret->reason = as_text(find(death, "reason"));
	if (ret->key.n == 0 && keys != NULL && keys->kind == AMQP_FIELD_KIND_ARRAY &&
		keys->value.array.num_entries > 0)
		ret->key = as_text(&keys->value.array.entries[0]);
}

static void read_headers(const amqp_table_t *headers, struct mq_message *ret)
{
	int64_t attempt = as_integer(find(headers, HEADER_ATTEMPT));
	const amqp_table_t *death = last_death(headers);

	ret->attempt = attempt < 0 ? 0 : attempt > ATTEMPT_MAX ? ATTEMPT_MAX : (int)attempt;
	ret->queue = as_text(find(headers, HEADER_QUEUE));
	ret->reason = as_text(find(headers, HEADER_REASON));
	ret->key = as_text(find(headers, HEADER_KEY));
	if (death != NULL)
		read_death(death, ret);
}

void letter_read(const struct codec_content *content, struct mq_message *ret)
{
	const amqp_basic_properties_t *p = content->properties;

	*ret = (struct mq_message){.body = content->body};
	if ((p->_flags & AMQP_BASIC_MESSAGE_ID_FLAG) != 0)
		ret->message_id = amqp_to(p->message_id);
	if ((p->_flags & AMQP_BASIC_TYPE_FLAG) != 0)
		ret->type = amqp_to(p->type);
	if ((p->_flags & AMQP_BASIC_TIMESTAMP_FLAG) != 0 && p->timestamp <= INT64_MAX)
		ret->timestamp_s = (int64_t)p->timestamp;
	if ((p->_flags & AMQP_BASIC_HEADERS_FLAG) != 0)
		read_headers(&p->headers, ret);
}
