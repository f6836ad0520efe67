/* SPDX-License-Identifier: MIT */
#include "persist/record.h"

#include "persist/task_id.h"
#include "rules/when.h"

bool record_parse_employee(struct bytes text, struct employee_record *ret)
{
	struct bytes f[4];

	if (bytes_split(text, '|', f, 4) != 4)
		return false;
	*ret = (struct employee_record){.day = f[0], .dept = f[1], .set = f[2], .name = f[3]};
	return true;
}

void record_add_optional(struct buf *out, struct bytes value)
{
	if (value.n == 0)
		buf_add_char(out, '-');
	else
		buf_add_bytes(out, value);
}

struct bytes record_optional(struct bytes field)
{
	return bytes_eq(field, BYTES_LIT("-")) ? (struct bytes){"", 0} : field;
}

static void add_field(struct buf *out, struct bytes value)
{
	buf_add_bytes(out, value);
	buf_add_char(out, '|');
}

static void add_optional_field(struct buf *out, struct bytes value)
{
	record_add_optional(out, value);
	buf_add_char(out, '|');
}

static void add_number_field(struct buf *out, int64_t n)
{
	buf_add_i64(out, n);
	buf_add_char(out, '|');
}

void record_punch_head(struct buf *out, const struct punch_record *punch)
{
	buf_add(out, "P|", 2);
	add_field(out, punch->date);
	add_field(out, punch->dept);
	add_field(out, punch->home);
	add_field(out, punch->employee);
	buf_add_char(out, punch->direction);
	buf_add_char(out, '|');
	add_number_field(out, punch->at);
	add_number_field(out, punch->received);
	add_optional_field(out, punch->event_id);
	add_optional_field(out, punch->source);
	add_optional_field(out, punch->marks);
}

bool record_parse_punch(struct bytes text, struct punch_record *ret)
{
	struct bytes f[14];

	if (bytes_split(text, '|', f, 14) != 14 || !bytes_eq(f[0], BYTES_LIT("P")) || f[5].n != 1)
		return false;
	*ret = (struct punch_record){.date = f[1],
		.dept = f[2],
		.home = f[3],
		.employee = f[4],
		.direction = f[5].p[0],
		.event_id = record_optional(f[8]),
		.source = record_optional(f[9]),
		.marks = record_optional(f[10]),
		.late = bytes_eq(f[11], BYTES_LIT("L")),
		.set = f[12],
		.name = f[13]};
	return date_parse(f[1], &ret->day) && bytes_to_i64(f[6], &ret->at) &&
	       bytes_to_i64(f[7], &ret->received);
}

void record_employee_head(struct buf *out, struct bytes employee, struct bytes dept, int64_t received)
{
	buf_add(out, "E|", 2);
	add_field(out, employee);
	add_field(out, dept);
	add_number_field(out, received);
}

void record_removed(struct buf *out, struct bytes employee, struct bytes dept, int64_t received)
{
	buf_add(out, "X|", 2);
	add_field(out, employee);
	add_field(out, dept);
	buf_add_i64(out, received);
}

/* ---- tasks ---- */

static const char *const task_changes[TASK_CHANGES] = {
	"success", "failed", "timeout", "cancelled", "retry", "expired", "released", "retried"};

const char *task_change_name(enum task_change change)
{
	return task_changes[change];
}

static bool parse_change(struct bytes field, enum task_change *ret)
{
	for (int i = 0; i < TASK_CHANGES; i++) {
		if (bytes_eq(field, bytes_of(task_changes[i]))) {
			*ret = (enum task_change)i;
			return true;
		}
	}
	return false;
}

/* Not negative, or -1 for "-". */
static bool parse_optional(struct bytes field, int64_t *ret)
{
	*ret = -1;
	return record_optional(field).n == 0 || (bytes_to_i64(field, ret) && *ret >= 0);
}

/* Takes as many bytes as `length` says from the front of *rest. */
static bool take(struct bytes *rest, struct bytes length, struct bytes *ret)
{
	int64_t n;

	if (!bytes_to_i64(length, &n) || n < 0 || (uint64_t)n > rest->n)
		return false;
	*ret = (struct bytes){rest->p, (size_t)n};
	*rest = (struct bytes){rest->p + n, rest->n - (size_t)n};
	return true;
}

bool record_parse_task(struct bytes text, struct task_record *ret)
{
	struct bytes f[17];

	if (bytes_split(text, '|', f, 17) != 17 || !bytes_eq(f[0], BYTES_LIT("K")) ||
		!parse_change(f[1], &ret->change))
		return false;
	ret->id = f[2];
	ret->queue = f[3];
	ret->worker = record_optional(f[8]);
	ret->key = record_optional(f[9]);
	return task_id_parse(f[2], NULL, &ret->submitted) && bytes_to_i64(f[4], &ret->priority) &&
	       bytes_to_i64(f[5], &ret->retries) && bytes_to_i64(f[6], &ret->crashes) &&
	       parse_optional(f[7], &ret->token) && parse_optional(f[10], &ret->claimed) &&
	       bytes_to_i64(f[11], &ret->at) && parse_optional(f[12], &ret->until) &&
	       take(&f[16], f[13], &ret->result) && take(&f[16], f[14], &ret->error) &&
	       take(&f[16], f[15], &ret->payload) && f[16].n == 0;
}
