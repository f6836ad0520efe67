/* SPDX-License-Identifier: MIT */
#include "persist/text_queue.h"

void text_push(struct text_queue *q, struct bytes text)
{
	buf_add_bytes(&q->text, text);
	buf_add_char(&q->text, '\0');
}

bool text_pop(struct text_queue *q, struct bytes *ret)
{
	if (q->at == q->text.len) {
		buf_clear(&q->text);
		q->at = 0;
		return false;
	}
	*ret = bytes_of(q->text.data + q->at);
	q->at += ret->n + 1;
	return true;
}

void text_release(struct text_queue *q)
{
	buf_release(&q->text);
	q->at = 0;
}
