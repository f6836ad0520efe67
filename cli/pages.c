/* SPDX-License-Identifier: MIT */
#include "cli/pages.h"

#include <stdio.h>

#include "base/buf.h"
#include "cli/answer.h"

/* One page; *cursor moves on and is "" after the last. */
static int walk_page(const struct pages_walk *w, struct buf *cursor)
{
	struct request r;
	redisReply *reply;
	const char *next;

	w->request(&r, w->arg);
	request_option(&r, "CURSOR", cursor->len > 0 ? cursor->data : NULL);
	request_option(&r, "COUNT", w->page);
	int result = conn_request(w->conn, &r, &reply);
	if (result != CLI_OK)
		return result;
	const redisReply *items = answer_page(reply, &next);
	buf_clear(cursor);
	if (items != NULL)
		buf_add_str(cursor, next);
	result = items != NULL ? w->take(items, w->arg) : CLI_FAILED;
	freeReplyObject(reply);
	return result;
}

int pages_walk(const struct pages_walk *walk)
{
	struct buf cursor = BUF_INIT;
	int result;

	do {
		result = walk_page(walk, &cursor);
	} while (result == CLI_OK && cursor.len > 0);
	buf_release(&cursor);
	return result;
}

struct printing {
	const struct pages *pages;
	size_t count;
};

static void write_request(struct request *r, void *arg)
{
	const struct printing *p = arg;

	p->pages->request(r, p->pages->arg);
}

static int print_items(const redisReply *items, void *arg)
{
	struct printing *p = arg;
	const struct pages *pages = p->pages;

	for (size_t i = 0; i < items->elements; i++) {
		const redisReply *item = items->element[i];
		if (pages->options->json)
			answer_print(
				item->type == REDIS_REPLY_ARRAY ? answer_map_json(item) : answer_json(item));
		else
			pages->row(pages->table, item, pages->arg);
	}
	p->count += items->elements;
	if (!pages->options->json && p->count > 0)
		table_flush(pages->table);
	return ferror(stdout) != 0 ? PAGES_ENOUGH : CLI_OK;
}

int pages_print(const struct pages *pages)
{
	struct printing printing = {.pages = pages};
	struct pages_walk walk = {
		.page = pages->page, .request = write_request, .take = print_items, .arg = &printing};
	int result;

	walk.conn = conn_open(pages->options, false, &result);
	if (walk.conn != NULL) {
		result = pages_walk(&walk);
		if (result == CLI_OK && printing.count == 0 && !pages->options->json)
			puts(pages->none);
		conn_close(walk.conn);
	}
	table_free(pages->table);
	return result == PAGES_ENOUGH ? CLI_OK : result;
}
