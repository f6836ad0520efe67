/* SPDX-License-Identifier: MIT */
/* What the scripts of tasks answer and write, as hands in Redis could have made it: the journal's records,
 * rows of tasks, tasks that were claimed. The first byte says which. Whatever is read must lie within the
 * input, which is a block of exactly its size. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "persist/record.h"
#include "persist/task.h"
#include "persist/task_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bytes input;

static void check(struct bytes part)
{
	if (part.n > 0 && (part.p < input.p || part.p + part.n > input.p + input.n))
		abort();
}

static void read_record(void)
{
	struct task_record r;

	if (!record_parse_task(input, &r))
		return;
	const struct bytes parts[] = {r.id, r.queue, r.worker, r.key, r.result, r.error, r.payload};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		check(parts[i]);
	if (task_change_name(r.change) == NULL)
		abort();
}

static void read_row(void)
{
	struct task_row r;

	if (!task_row_read(input, &r))
		return;
	const struct bytes parts[] = {
		r.id, r.queue, r.status, r.key, r.worker, r.token, r.error, r.result, r.payload};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		check(parts[i]);
}

static void read_claimed(void)
{
	struct bytes rest = input;
	struct task_claimed c;

	while (task_claimed_next(&rest, &c)) {
		check(c.id);
		check(c.token);
		check(c.payload);
		check(rest);
	}
}

static void read_stats(void)
{
	int64_t stats[TASK_STATS];

	task_stats_read(input, stats);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const readers[])(void) = {read_record, read_row, read_claimed, read_stats};

	if (size == 0)
		return 0;
	char *copy = xmalloc(size - 1 > 0 ? size - 1 : 1);
	memcpy(copy, data + 1, size - 1);
	input = (struct bytes){copy, size - 1};
	readers[data[0] % ARRAY_LEN(readers)]();
	free(copy);
	return 0;
}
