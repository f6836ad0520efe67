/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/text.h"

#define MAX_COLUMNS 24

struct column {
	const char *head;
	enum table_align align;
	size_t width;
};

struct cell {
	size_t at, len; /* in the text of the table */
	size_t width;
	enum table_style style;
};

struct table {
	FILE *out;
	bool color;
	bool head_written;
	struct column columns[MAX_COLUMNS];
	size_t column_count;
	struct cell *cells; /* row by row */
	size_t cell_count, cell_cap;
	struct buf text; /* what the cells say */
};

struct table *table_new(FILE *out, bool color)
{
	struct table *t = xcalloc(1, sizeof(*t));

	t->out = out;
	t->color = color;
	return t;
}

void table_free(struct table *t)
{
	if (t == NULL)
		return;
	buf_release(&t->text);
	free(t->cells);
	free(t);
}

void table_column(struct table *t, const char *head, enum table_align align)
{
	if (t->column_count == MAX_COLUMNS)
		abort();
	t->columns[t->column_count++] = (struct column){head, align, text_width(head, strlen(head))};
}

void table_cell(struct table *t, enum table_style style, struct bytes text)
{
	struct bytes shown = text.n > 0 ? text : BYTES_LIT("-");
	size_t at = t->text.len;

	if (t->cell_count == t->cell_cap) {
		t->cell_cap = t->cell_cap != 0 ? t->cell_cap * 2 : 256;
		t->cells = xrealloc(t->cells, t->cell_cap * sizeof(*t->cells));
	}
	text_clean(&t->text, shown.p, shown.n);
	struct column *column = &t->columns[t->cell_count % t->column_count];
	size_t width = text_width(shown.p, shown.n);
	if (width > column->width)
		column->width = width;
	t->cells[t->cell_count++] = (struct cell){at, t->text.len - at, width, style};
}

void table_str(struct table *t, enum table_style style, const char *text)
{
	table_cell(t, style, bytes_of(text));
}

void table_int(struct table *t, int64_t n)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRId64, n);
	table_str(t, STYLE_PLAIN, digits);
}

static const char *escape(enum table_style style)
{
	static const char *const codes[] = {
		[STYLE_PLAIN] = "",
		[STYLE_GOOD] = "\033[32m",
		[STYLE_WARN] = "\033[33m",
		[STYLE_BAD] = "\033[31m",
		[STYLE_DIM] = "\033[2m",
		[STYLE_HEAD] = "\033[1m",
	};
	return codes[style];
}

static void write_styled(FILE *out, bool color, enum table_style style, const char *text, size_t n)
{
	bool dressed = color && style != STYLE_PLAIN;

	if (dressed)
		fputs(escape(style), out);
	fwrite(text, 1, n, out);
	if (dressed)
		fputs("\033[0m", out);
}

static void write_cell(struct table *t, size_t index, const char *text, const struct cell *cell)
{
	const struct column *column = &t->columns[index];
	int padding = (int)(column->width - cell->width);
	bool last = index + 1 == t->column_count;

	if (column->align == TABLE_RIGHT)
		fprintf(t->out, "%*s", padding, "");
	write_styled(t->out, t->color, cell->style, text, cell->len);
	if (column->align == TABLE_LEFT && !last)
		fprintf(t->out, "%*s", padding, "");
	fputs(last ? "\n" : "  ", t->out);
}

static void write_head(struct table *t)
{
	for (size_t i = 0; i < t->column_count; i++) {
		const char *head = t->columns[i].head;
		struct cell cell = {0, strlen(head), text_width(head, strlen(head)), STYLE_HEAD};
		write_cell(t, i, head, &cell);
	}
	t->head_written = true;
}

void table_flush(struct table *t)
{
	if (!t->head_written)
		write_head(t);
	for (size_t i = 0; i < t->cell_count; i++)
		write_cell(t, i % t->column_count, t->text.data + t->cells[i].at, &t->cells[i]);
	t->cell_count = 0;
	buf_clear(&t->text);
}

enum table_style table_state_style(const char *state)
{
	static const struct {
		const char *state;
		enum table_style style;
	} styles[] = {
		{"present", STYLE_GOOD},
		{"late", STYLE_WARN},
		{"early", STYLE_WARN},
		{"late_early", STYLE_WARN},
		{"missing_in", STYLE_WARN},
		{"missing_out", STYLE_WARN},
		{"absent", STYLE_BAD},
		{"not_yet", STYLE_DIM},
	};

	for (size_t i = 0; i < ARRAY_LEN(styles); i++) {
		if (strcmp(styles[i].state, state) == 0)
			return styles[i].style;
	}
	return STYLE_PLAIN;
}

void table_styled(FILE *out, bool color, enum table_style style, const char *text)
{
	struct buf clean = BUF_INIT;

	text_clean(&clean, text, strlen(text));
	write_styled(out, color, style, clean.data != NULL ? clean.data : "", clean.len);
	buf_release(&clean);
}
