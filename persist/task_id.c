/* SPDX-License-Identifier: MIT */
#include "persist/task_id.h"

#include "persist/keys.h"

#define SEQ_DIGITS  10
#define SEQ_LIMIT   (INT64_C(1) << 49)
#define EPOCH_MS    INT64_C(1767225600000) /* 2026 */
#define STEPS_IN_MS 125                    /* of 8 microseconds */

/* -1: not a digit. */
static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'v' ? c - 'a' + 10 : -1;
}

static int64_t number(const char *p, size_t digits)
{
	int64_t n = 0;

	for (size_t i = 0; i < digits; i++) {
		int d = digit(p[i]);
		if (d < 0)
			return -1;
		n = n * 32 + d;
	}
	return n;
}

int64_t task_id_seq(struct bytes id)
{
	return id.n == TASK_ID_LEN ? number(id.p, SEQ_DIGITS) : -1;
}

bool task_id_parse(struct bytes id, int *ret_partition, int64_t *ret_submitted_ms)
{
	int64_t seq = task_id_seq(id);
	int64_t partition = seq >= 0 ? number(id.p + SEQ_DIGITS, TASK_ID_LEN - SEQ_DIGITS) : -1;

	if (partition < 0 || partition >= keys_partitions() || seq >= SEQ_LIMIT)
		return false;
	if (ret_partition != NULL)
		*ret_partition = (int)partition;
	if (ret_submitted_ms != NULL)
		*ret_submitted_ms = EPOCH_MS + seq / STEPS_IN_MS;
	return true;
}

int64_t task_seq_of(int64_t unix_ms)
{
	if (unix_ms <= EPOCH_MS)
		return 0;
	int64_t ms = unix_ms - EPOCH_MS;
	return ms < SEQ_LIMIT / STEPS_IN_MS ? ms * STEPS_IN_MS : SEQ_LIMIT;
}
