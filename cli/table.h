/* SPDX-License-Identifier: MIT */
/* A table with aligned columns. Rows are held until table_flush(), which sets the widths by what it has seen
 * so far; flushing page by page keeps memory flat, and later pages only ever widen. The head is written once.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/bytes.h"

enum table_align { TABLE_LEFT, TABLE_RIGHT };
enum table_style { STYLE_PLAIN, STYLE_GOOD, STYLE_WARN, STYLE_BAD, STYLE_DIM, STYLE_HEAD };

struct table;

struct table *table_new(FILE *out, bool color);
void table_free(struct table *t);
/* All columns before the first cell. `head` must outlive the table. */
void table_column(struct table *t, const char *head, enum table_align align);
/* Cells from left to right; the row ends with the last column. An empty one is shown as '-'. */
void table_cell(struct table *t, enum table_style style, struct bytes text);
void table_str(struct table *t, enum table_style style, const char *text);
void table_int(struct table *t, int64_t n);
void table_flush(struct table *t);

/* How a state of an employee's day is coloured. */
enum table_style table_state_style(const char *state);
/* Writes text in a style; without colour just the text. */
void table_styled(FILE *out, bool color, enum table_style style, const char *text);

#endif
