/* SPDX-License-Identifier: MIT */
#include "persist/keys.h"

#include <stdio.h>

#include "persist/partition.h"
#include "rules/when.h"

static char prefix[KEYS_PREFIX_MAX + 1];
static int partitions = PARTITIONS_MAX;

void keys_init(const char *key_prefix, int count)
{
	snprintf(prefix, sizeof(prefix), "%s", key_prefix);
	partitions = count;
}

int keys_partitions(void)
{
	return partitions;
}

int keys_org(void)
{
	return partitions;
}

int keys_partition_of(struct bytes dept)
{
	return partition_of(dept, partitions);
}

static void add_tagged(struct buf *b, int partition, const char *kind)
{
	buf_add_str(b, prefix);
	buf_add_char(b, '{');
	buf_add_str(b, partition_tag(partition, partitions));
	buf_add(b, "}:", 2);
	buf_add_str(b, kind);
}

static void add_dated(struct buf *b, const char *kind, struct bytes dept, int32_t day)
{
	char date[DATE_TEXT];

	add_tagged(b, keys_partition_of(dept), kind);
	buf_add_bytes(b, dept);
	buf_add_char(b, ':');
	buf_add(b, date_format(day, date), DATE_TEXT - 1);
}

void key_meta(struct buf *b)
{
	buf_add_str(b, prefix);
	buf_add_str(b, "meta");
}

void key_daemons(struct buf *b)
{
	buf_add_str(b, prefix);
	buf_add_str(b, "daemons");
}

void key_dir(struct buf *b, struct bytes employee)
{
	buf_add_str(b, prefix);
	buf_add_str(b, "dir:");
	buf_add_bytes(b, employee);
}

void key_day(struct buf *b, struct bytes dept, int32_t day)
{
	add_dated(b, "day:", dept, day);
}

void key_closing(struct buf *b, struct bytes dept, int32_t day)
{
	add_dated(b, "closing:", dept, day);
}

void key_emps(struct buf *b, struct bytes dept)
{
	add_tagged(b, keys_partition_of(dept), "emps:");
	buf_add_bytes(b, dept);
}

void key_days(struct buf *b, int partition)
{
	add_tagged(b, partition, "days");
}

void key_journal(struct buf *b, int partition)
{
	add_tagged(b, partition, "journal");
}

void key_cursor(struct buf *b, int partition)
{
	add_tagged(b, partition, "cursor");
}

void key_owner(struct buf *b, int partition)
{
	add_tagged(b, partition, "owner");
}

void key_task(struct buf *b, int partition, struct bytes id)
{
	add_tagged(b, partition, "task:");
	buf_add_bytes(b, id);
}

void key_queue_info(struct buf *b, struct bytes queue)
{
	add_tagged(b, keys_partition_of(queue), "queue_info:");
	buf_add_bytes(b, queue);
}

void key_part(struct buf *b, int partition, const char *kind)
{
	add_tagged(b, partition, kind);
}

void key_org(struct buf *b, const char *kind)
{
	add_tagged(b, partitions, kind);
}

void key_org_of(struct buf *b, const char *kind, struct bytes id)
{
	add_tagged(b, partitions, kind);
	buf_add_char(b, ':');
	buf_add_bytes(b, id);
}
