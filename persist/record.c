/* SPDX-License-Identifier: MIT */
#include "persist/record.h"

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
