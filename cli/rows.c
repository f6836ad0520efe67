/* SPDX-License-Identifier: MIT */
#include "cli/rows.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/csv.h"

#define CHUNK 65536

enum column { COL_KIND, COL_ID, COL_PARENT, COL_NAME, COL_MANAGER, COL_STATE, COL_COUNT };

static const char *const column_names[COL_COUNT] = {"kind", "id", "parent", "name", "manager", "state"};

struct rows {
	const struct rows_events *events;
	void *arg;
	bool head_seen;
	size_t width;      /* fields of the head line */
	int at[COL_COUNT]; /* index of the field, -1 = no such column */
	uint64_t offset;
};

static int find_column(struct bytes name)
{
	for (int i = 0; i < COL_COUNT; i++) {
		if (bytes_is_word(name, column_names[i]))
			return i;
	}
	return -1;
}

static int line_fault(struct rows *r, uint64_t line, const char *message)
{
	struct row row = {.line = line, .kind = ROW_UNKNOWN};

	return r->events->error(&row, message, r->arg);
}

static int head_fault(struct rows *r, uint64_t line, const char *message)
{
	int result = line_fault(r, line, message);
	return result != 0 ? result : ROWS_NO_HEAD;
}

static int read_head(struct rows *r, const struct csv_record *record)
{
	char message[160];

	for (size_t i = 0; i < COL_COUNT; i++)
		r->at[i] = -1;
	for (size_t i = 0; i < record->count; i++) {
		int column = find_column(record->fields[i]);
		if (column < 0 || r->at[column] >= 0) {
			snprintf(message, sizeof(message),
				"column %zu of the head line is %s: expected kind, id, parent, name, "
				"manager, state",
				i + 1, column < 0 ? "not known" : "there twice");
			return head_fault(r, record->line, message);
		}
		r->at[column] = (int)i;
	}
	if (r->at[COL_KIND] < 0 || r->at[COL_ID] < 0)
		return head_fault(r, record->line, "the head line lacks the column kind or id");
	r->head_seen = true;
	r->width = record->count;
	return 0;
}

static struct bytes field(const struct rows *r, const struct csv_record *record, enum column column)
{
	return r->at[column] >= 0 ? record->fields[r->at[column]] : BYTES_LIT("");
}

/* What is wrong with the texts that a row of this kind has; NULL when nothing is. */
static const char *fault_of_texts(const struct row *row)
{
	static const char *const department_id = "id: expected 1 to 64 letters, digits, '_', '-'";
	static const char *const employee_id = "id: expected 1 to 64 letters, digits, '_', '-', '.', '@'";

	if (row->kind == ROW_DEPARTMENT ? !id_valid(row->id) : !person_id_valid(row->id))
		return row->kind == ROW_DEPARTMENT ? department_id : employee_id;
	if (row->parent.n > 0 && !id_valid(row->parent))
		return "parent: expected the id of a department, or nothing";
	if (!name_valid(row->name))
		return "name: expected UTF-8 text of at most 255 bytes without control characters";
	if (row->manager.n > 0 && !person_id_valid(row->manager))
		return "manager: expected the id of an employee, or nothing";
	return NULL;
}

/* NULL when the row is fine. */
static const char *fault_of(const struct row *row, struct bytes state)
{
	if (row->kind == ROW_UNKNOWN)
		return "kind: expected department, employee or member";
	if (row->kind != ROW_DEPARTMENT && row->manager.n > 0)
		return "manager: belongs to a department";
	if (row->kind != ROW_DEPARTMENT && state.n > 0)
		return "state: belongs to a department";
	if (state.n > 0 && !row->retired && !bytes_is_word(state, "active"))
		return "state: expected active, retired, or nothing";
	if (row->kind == ROW_MEMBER && row->parent.n == 0)
		return "parent: expected the team that the employee is a member of";
	if (row->kind == ROW_MEMBER && row->name.n > 0)
		return "name: belongs to a department or an employee";
	return fault_of_texts(row);
}

static enum row_kind kind_of(struct bytes text)
{
	return bytes_is_word(text, "department") ? ROW_DEPARTMENT
	       : bytes_is_word(text, "employee") ? ROW_EMPLOYEE
	       : bytes_is_word(text, "member")   ? ROW_MEMBER
						 : ROW_UNKNOWN;
}

static int on_record(const struct csv_record *record, void *arg)
{
	struct rows *r = arg;
	char message[80];

	if (!r->head_seen)
		return read_head(r, record);
	if (record->count != r->width) {
		snprintf(message, sizeof(message), "expected %zu fields as in the head line, found %zu",
			r->width, record->count);
		return line_fault(r, record->line, message);
	}
	struct row row = {
		.line = record->line,
		.offset = r->offset,
		.kind = kind_of(field(r, record, COL_KIND)),
		.id = field(r, record, COL_ID),
		.parent = field(r, record, COL_PARENT),
		.name = field(r, record, COL_NAME),
		.manager = field(r, record, COL_MANAGER),
	};
	struct bytes state = field(r, record, COL_STATE);
	row.retired = bytes_is_word(state, "retired");
	const char *fault = fault_of(&row, state);
	if (fault != NULL)
		return r->events->error(&row, fault, r->arg);
	return r->events->row(&row, r->arg);
}

static int on_error(uint64_t line, const char *message, void *arg)
{
	struct rows *r = arg;

	return r->head_seen ? line_fault(r, line, message) : head_fault(r, line, message);
}

static int feed_all(struct rows *r, struct csv *csv, int fd, off_t at, char *chunk)
{
	for (;;) {
		ssize_t n = pread(fd, chunk, CHUNK, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ROWS_UNREADABLE;
		if (n == 0)
			return csv_end(csv);
		int result = csv_feed(csv, chunk, (size_t)n);
		if (result != 0)
			return result;
		at += n;
		r->offset += (uint64_t)n;
	}
}

int rows_read(int fd, off_t start, const struct rows_events *events, void *arg)
{
	static const struct csv_events csv_events = {on_record, on_error};
	struct rows r = {.events = events, .arg = arg};
	struct csv *csv = csv_new(&csv_events, &r);
	char *chunk = xmalloc(CHUNK);

	int result = feed_all(&r, csv, fd, start, chunk);
	if (result == 0 && !r.head_seen)
		result = head_fault(&r, 1, "no head line: expected kind,id,parent,name,manager");
	free(chunk);
	csv_free(csv);
	return result;
}
