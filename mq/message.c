/* SPDX-License-Identifier: MIT */
#include "mq/message.h"

#include <stdlib.h>

const char *mq_outcome_name(enum mq_outcome outcome)
{
	static const char *const names[] = {[MQ_CONFIRMED] = "confirmed",
		[MQ_RETURNED] = "returned",
		[MQ_NACKED] = "nacked",
		[MQ_LOST] = "lost"};

	return names[outcome];
}

static char *move(char *to, struct bytes *field)
{
	if (field->n > 0)
		memcpy(to, field->p, field->n);
	field->p = to;
	return to + field->n;
}

struct mq_message *mq_message_copy(const struct mq_message *m)
{
	size_t n = m->exchange.n + m->routing_key.n + m->message_id.n + m->type.n + m->body.n + m->queue.n +
		   m->reason.n + m->key.n;
	struct mq_message *copy = malloc(sizeof(*copy) + n);

	if (copy == NULL)
		return NULL;
	*copy = *m;
	copy->cc = NULL;
	copy->cc_count = 0;
	char *at = (char *)(copy + 1);
	at = move(at, &copy->exchange);
	at = move(at, &copy->routing_key);
	at = move(at, &copy->message_id);
	at = move(at, &copy->type);
	at = move(at, &copy->queue);
	at = move(at, &copy->reason);
	at = move(at, &copy->key);
	move(at, &copy->body);
	return copy;
}
