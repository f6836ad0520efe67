/* SPDX-License-Identifier: MIT */
#include "cli/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum csv_state {
	CSV_BOM,         /* at the very start; `bom` bytes of the mark have matched */
	CSV_FIELD,       /* before the first byte of a field */
	CSV_PLAIN,       /* in an unquoted field */
	CSV_QUOTED,      /* inside quotes */
	CSV_AFTER_QUOTE, /* behind a quote that was inside quotes: the end of the field, or half of '""' */
	CSV_CR,          /* behind a CR outside quotes: only LF may follow */
	CSV_SKIP,        /* the record was refused: to the end of the line */
};

struct csv {
	const struct csv_events *events;
	void *arg;
	enum csv_state state;
	size_t bom;
	uint64_t line;   /* of the byte to be read */
	uint64_t record; /* line on which the record began */
	uint64_t quote;  /* line on which the quoted field began */
	bool quoted;     /* the record holds a quoted field, so that it is not a blank line */
	struct buf text; /* fields of the record, one behind the other */
	size_t ends[CSV_MAX_FIELDS];
	size_t count; /* fields that have ended */
};

static const char bom[3] = {'\xef', '\xbb', '\xbf'};

struct csv *csv_new(const struct csv_events *events, void *arg)
{
	struct csv *c = xcalloc(1, sizeof(*c));

	c->events = events;
	c->arg = arg;
	c->line = c->record = 1;
	c->text.limit = CSV_MAX_RECORD;
	return c;
}

void csv_free(struct csv *c)
{
	if (c == NULL)
		return;
	buf_release(&c->text);
	free(c);
}

static void begin_record(struct csv *c)
{
	buf_clear(&c->text);
	c->text.failed = false;
	c->count = 0;
	c->quoted = false;
	c->record = c->line;
	c->state = CSV_FIELD;
}

static int refuse(struct csv *c, uint64_t line, const char *message)
{
	c->state = CSV_SKIP;
	return c->events->error(line, message, c->arg);
}

static int end_field(struct csv *c)
{
	char message[64];

	if (c->count == CSV_MAX_FIELDS) {
		snprintf(message, sizeof(message), "more than %d fields", CSV_MAX_FIELDS);
		return refuse(c, c->record, message);
	}
	c->ends[c->count++] = c->text.len;
	c->state = CSV_FIELD;
	return 0;
}

static int give_record(struct csv *c)
{
	struct bytes fields[CSV_MAX_FIELDS];
	const char *text = c->text.data != NULL ? c->text.data : "";
	size_t at = 0;

	if (c->count == 1 && c->text.len == 0 && !c->quoted)
		return 0;
	for (size_t i = 0; i < c->count; i++) {
		fields[i] = (struct bytes){text + at, c->ends[i] - at};
		at = c->ends[i];
	}
	struct csv_record record = {c->record, fields, c->count};
	return c->events->record(&record, c->arg);
}

/* An LF that ends the record. */
static int end_record(struct csv *c)
{
	int result = 0;

	if (c->state != CSV_SKIP)
		result = end_field(c);
	if (result == 0 && c->state != CSV_SKIP)
		result = give_record(c);
	c->line++;
	begin_record(c);
	return result;
}

static int add(struct csv *c, char byte)
{
	char message[96];

	buf_add_char(&c->text, byte);
	if (!buf_failed(&c->text))
		return 0;
	int n = snprintf(message, sizeof(message), "record longer than %d bytes", CSV_MAX_RECORD);
	if (c->state == CSV_QUOTED)
		snprintf(message + n, sizeof(message) - (size_t)n, "; is the quote of line %llu closed?",
			(unsigned long long)c->quote);
	return refuse(c, c->record, message);
}

static int take_quoted(struct csv *c, char byte)
{
	if (byte == '"') {
		c->state = CSV_AFTER_QUOTE;
		return 0;
	}
	int result = add(c, byte);
	if (byte == '\n') {
		c->line++;
		if (c->state == CSV_SKIP)
			begin_record(c);
	}
	return result;
}

static int take_after_quote(struct csv *c, char byte)
{
	if (byte != '"')
		return refuse(c, c->line, "text behind the closing quote");
	c->state = CSV_QUOTED;
	return add(c, byte);
}

static int take_plain(struct csv *c, char byte)
{
	if (byte != '"') {
		c->state = CSV_PLAIN;
		return add(c, byte);
	}
	if (c->state == CSV_PLAIN)
		return refuse(c, c->line, "a quote inside an unquoted field");
	c->state = CSV_QUOTED;
	c->quoted = true;
	c->quote = c->line;
	return 0;
}

static int take(struct csv *c, char byte)
{
	if (c->state == CSV_QUOTED)
		return take_quoted(c, byte);
	if (byte == '\n')
		return end_record(c);
	switch (c->state) {
	case CSV_SKIP:
		return 0;
	case CSV_CR:
		return refuse(c, c->line, "a carriage return that does not end the line");
	default:
		break;
	}
	if (byte == ',')
		return end_field(c);
	if (byte == '\r') {
		c->state = CSV_CR;
		return 0;
	}
	return c->state == CSV_AFTER_QUOTE ? take_after_quote(c, byte) : take_plain(c, byte);
}

/* Bytes that began like a mark and were none are data. */
static int give_back_bom(struct csv *c)
{
	int result = 0;

	c->state = CSV_FIELD;
	for (size_t i = 0; i < c->bom && result == 0; i++)
		result = take(c, bom[i]);
	return result;
}

/* True when the byte was part of the mark. */
static bool take_bom(struct csv *c, char byte)
{
	if (byte != bom[c->bom])
		return false;
	if (++c->bom == sizeof(bom))
		c->state = CSV_FIELD;
	return true;
}

int csv_feed(struct csv *c, const char *data, size_t n)
{
	int result = 0;

	for (size_t i = 0; i < n && result == 0; i++) {
		if (c->state == CSV_BOM) {
			if (take_bom(c, data[i]))
				continue;
			result = give_back_bom(c);
		}
		if (result == 0)
			result = take(c, data[i]);
	}
	return result;
}

int csv_end(struct csv *c)
{
	int result = c->state == CSV_BOM ? give_back_bom(c) : 0;

	if (result != 0)
		return result;
	if (c->state == CSV_QUOTED)
		return refuse(c, c->quote, "the quote that opens here is never closed");
	bool at_start = c->state == CSV_FIELD && c->count == 0;
	return at_start ? 0 : end_record(c);
}

void csv_put(struct buf *out, struct bytes field)
{
	bool quoted = false;

	for (size_t i = 0; i < field.n; i++)
		quoted = quoted || memchr("\",\r\n", field.p[i], 4) != NULL;
	if (quoted)
		buf_add_char(out, '"');
	for (size_t i = 0; i < field.n; i++) {
		if (field.p[i] == '"')
			buf_add_char(out, '"');
		buf_add_char(out, field.p[i]);
	}
	if (quoted)
		buf_add_char(out, '"');
}
