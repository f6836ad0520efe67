/* SPDX-License-Identifier: MIT */
#include "cli/pages.h"

#include <stdio.h>

#include "base/buf.h"
#include "cli/answer.h"

/* One page; *cursor moves on and is "" after the last. */
static int print_page(const struct pages *p, struct conn *conn, struct buf *cursor, size_t *count)
{
	struct request r;
	redisReply *reply;
	const char *next;

	p->request(&r, p->arg);
	request_option(&r, "CURSOR", cursor->len > 0 ? cursor->data : NULL);
	request_option(&r, "COUNT", p->page);
	int result = conn_request(conn, &r, &reply);
	if (result != CLI_OK)
		return result;
	const redisReply *items = answer_page(reply, &next);
	buf_clear(cursor);
	if (items != NULL)
		buf_add_str(cursor, next);
	for (size_t i = 0; items != NULL && i < items->elements; i++, ++*count) {
		if (p->options->json)
			answer_print(answer_map_json(items->element[i]));
		else
			p->row(p->table, items->element[i], p->arg);
	}
	freeReplyObject(reply);
	if (!p->options->json && *count > 0)
		table_flush(p->table);
	return items != NULL ? CLI_OK : CLI_FAILED;
}

int pages_print(const struct pages *pages)
{
	struct buf cursor = BUF_INIT;
	size_t count = 0;
	int result;
	struct conn *conn = conn_open(pages->options, false, &result);

	if (conn != NULL) {
		do {
			result = print_page(pages, conn, &cursor, &count);
		} while (result == CLI_OK && cursor.len > 0 && ferror(stdout) == 0);
		if (result == CLI_OK && count == 0 && !pages->options->json)
			puts(pages->none);
		conn_close(conn);
	}
	table_free(pages->table);
	buf_release(&cursor);
	return result;
}
