/* SPDX-License-Identifier: MIT */
#include "persist/sql_writer.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"

#define DEPTH_MAX 128

struct range {
	size_t from, to;
};

enum writer_state {
	WRITER_WHOLE,  /* the whole transaction is under way */
	WRITER_HALVING /* one range of the insert with a bad row is under way */
};

struct writer {
	struct mysql_link *link;
	struct sql_write write;
	enum writer_state state;
	struct buf texts[SQL_INSERTS_MAX + 1];
	struct bytes statements[SQL_INSERTS_MAX + 1];
	size_t insert_of[SQL_INSERTS_MAX + 1]; /* which insert a statement is */
	size_t statement_count;
	size_t halving; /* which insert */
	/* So many rows of it are in already, by halves: a statement that is only too long as a whole must not
	 * be sent so again. */
	size_t written[SQL_INSERTS_MAX];
	struct range stack[DEPTH_MAX];
	size_t depth;
};

static void send_whole(struct writer *w);

void sql_row_end(struct sql_rows *rows)
{
	if (rows->count == rows->cap) {
		rows->cap = rows->cap == 0 ? 64 : rows->cap * 2;
		rows->ends = xrealloc(rows->ends, rows->cap * sizeof(rows->ends[0]));
		rows->bad = xrealloc(rows->bad, rows->cap * sizeof(rows->bad[0]));
	}
	rows->bad[rows->count] = false;
	rows->ends[rows->count++] = rows->text.len;
}

void sql_rows_release(struct sql_rows *rows)
{
	buf_release(&rows->text);
	free(rows->ends);
	free(rows->bad);
	rows->ends = NULL;
	rows->bad = NULL;
	rows->count = rows->cap = 0;
}

size_t sql_rows_good(const struct sql_rows *rows)
{
	size_t good = 0;

	for (size_t i = 0; i < rows->count; i++)
		good += !rows->bad[i];
	return good;
}

static void set_state(struct writer *w, enum writer_state state)
{
	log_debug("persist writer event=state from=%d to=%d", (int)w->state, (int)state);
	w->state = state;
}

/* The statement of a range of rows without the bad ones; false when nothing is left of it. */
static bool render(const struct sql_rows *rows, struct range range, struct buf *out)
{
	bool any = false;

	buf_clear(out);
	buf_add_str(out, rows->head);
	for (size_t i = range.from; i < range.to; i++) {
		size_t begin = i == 0 ? 0 : rows->ends[i - 1];
		if (rows->bad[i])
			continue;
		buf_add_char(out, any ? ',' : ' ');
		buf_add(out, rows->text.data + begin, rows->ends[i] - begin);
		any = true;
	}
	buf_add_char(out, ' ');
	buf_add_str(out, rows->tail);
	return any;
}

static void finish(struct writer *w, enum sql_outcome outcome, const char *message, const uint64_t *affected)
{
	for (size_t i = 0; i <= SQL_INSERTS_MAX; i++)
		buf_release(&w->texts[i]);
	w->write.done(outcome, message, affected, w->write.arg);
	free(w);
}

static void push(struct writer *w, size_t from, size_t to)
{
	if (from < to && w->depth < DEPTH_MAX)
		w->stack[w->depth++] = (struct range){from, to};
}

static void on_half(const struct mysql_result *result, void *arg);

static void send_half(struct writer *w)
{
	struct sql_rows *rows = &w->write.inserts[w->halving];

	while (w->depth > 0) {
		struct range *top = &w->stack[w->depth - 1];
		if (render(rows, *top, &w->texts[0])) {
			w->statements[0] = buf_bytes(&w->texts[0]);
			mysql_link_batch(w->link, w->statements, 1, on_half, w);
			return;
		}
		w->depth--;
	}
	w->written[w->halving] = rows->count;
	set_state(w, WRITER_WHOLE);
	send_whole(w);
}

static void on_half(const struct mysql_result *result, void *arg)
{
	struct writer *w = arg;
	struct range range = w->stack[--w->depth];

	if (result->outcome != SQL_OK && result->outcome != SQL_DATA) {
		finish(w, result->outcome, result->message, NULL);
		return;
	}
	if (result->outcome == SQL_DATA && range.to - range.from == 1) {
		w->write.inserts[w->halving].bad[range.from] = true;
		w->write.bad(w->halving, range.from, result->code, result->message, w->write.arg);
	} else if (result->outcome == SQL_DATA) {
		size_t middle = range.from + (range.to - range.from) / 2;
		push(w, middle, range.to);
		push(w, range.from, middle);
	}
	send_half(w);
}

static void on_whole(const struct mysql_result *result, void *arg)
{
	struct writer *w = arg;
	uint64_t affected[SQL_INSERTS_MAX] = {0};

	if (result->outcome == SQL_DATA && result->failed < w->statement_count &&
		w->insert_of[result->failed] < w->write.insert_count) {
		set_state(w, WRITER_HALVING);
		w->halving = w->insert_of[result->failed];
		w->depth = 0;
		push(w, 0, w->write.inserts[w->halving].count);
		send_half(w);
		return;
	}
	for (size_t i = 0; result->outcome == SQL_OK && i < w->statement_count; i++) {
		if (w->insert_of[i] < SQL_INSERTS_MAX)
			affected[w->insert_of[i]] = result->affected[i];
	}
	finish(w, result->outcome, result->message, affected);
}

static void add_statement(struct writer *w, size_t insert)
{
	struct buf *text = &w->texts[w->statement_count];

	w->statements[w->statement_count] = buf_bytes(text);
	w->insert_of[w->statement_count++] = insert;
}

static void send_whole(struct writer *w)
{
	w->statement_count = 0;
	for (size_t i = 0; i < w->write.insert_count; i++) {
		struct sql_rows *rows = &w->write.inserts[i];
		if (w->written[i] == rows->count)
			continue;
		if (render(rows, (struct range){0, rows->count}, &w->texts[w->statement_count]))
			add_statement(w, i);
	}
	if (w->write.extra != NULL) {
		buf_clear(&w->texts[w->statement_count]);
		w->write.extra(&w->texts[w->statement_count], w->write.arg);
		add_statement(w, SQL_INSERTS_MAX);
	}
	mysql_link_batch(w->link, w->statements, w->statement_count, on_whole, w);
}

void sql_write_start(struct mysql_link *link, const struct sql_write *write)
{
	struct writer *w = xcalloc(1, sizeof(*w));

	w->link = link;
	w->write = *write;
	send_whole(w);
}
