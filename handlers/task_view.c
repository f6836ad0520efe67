/* SPDX-License-Identifier: MIT */
#include "handlers/task_view.h"

#include "base/reply.h"
#include "persist/task_read.h"

/* Null when there is none. */
static void text(struct reply *r, const char *field, struct bytes value)
{
	reply_str(r, field);
	if (value.p == NULL)
		reply_null(r);
	else
		reply_bulk(r, value);
}

void view_task(struct reply *r, const struct task_row *row, bool whole)
{
	reply_map(r, whole ? 21 : 19);
	reply_field_bulk(r, "id", row->id);
	reply_field_bulk(r, "queue", row->queue);
	reply_field_bulk(r, "status", row->status);
	reply_field_int(r, "priority", row->priority);
	reply_field_int(r, "submitted", row->submitted);
	reply_field_instant(r, "not_before", row->not_before);
	text(r, "worker", row->worker);
	reply_field_instant(r, "claimed", row->claimed);
	reply_field_instant(r, "deadline", row->deadline);
	text(r, "token", row->token);
	reply_field_int(r, "attempt", row->retries + 1);
	reply_field_int(r, "retries", row->retries);
	reply_field_int(r, "crashes", row->crashes);
	reply_field_instant(r, "max_retries", row->max_retries);
	text(r, "key", row->key);
	reply_field_int(r, "cancel", row->cancel);
	reply_field_instant(r, "finished", row->finished);
	text(r, "error", row->error);
	reply_field_int(r, "size", row->size);
	if (!whole)
		return;
	text(r, "result", row->result);
	reply_field_bulk(r, "payload", row->payload); /* one that is empty is not stored */
}
