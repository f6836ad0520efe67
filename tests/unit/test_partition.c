/* SPDX-License-Identifier: MIT */
/* The table of hash tags, and the names of the keys that carry them. */
#include "persist/partition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/mem.h"
#include "persist/keys.h"

#define SLOTS 16384

static int slot_of(int partition)
{
	return partition_crc16(bytes_of(partition_tag(partition, PARTITIONS_MAX))) % SLOTS;
}

static void test_crc16(void **state)
{
	(void)state;
	/* The check value of CRC-16/XMODEM, and slots that Redis's documentation gives. */
	assert_int_equal(partition_crc16(BYTES_LIT("123456789")), 0x31c3);
	assert_int_equal(partition_crc16(BYTES_LIT("somekey")) % SLOTS, 11058);
}

static void test_each_in_its_range(void **state)
{
	(void)state;
	for (int i = 0; i < PARTITIONS_MAX; i++) {
		assert_true(slot_of(i) >= i * SLOTS / PARTITIONS_MAX);
		assert_true(slot_of(i) < (i + 1) * SLOTS / PARTITIONS_MAX + 1);
	}
}

/* Slots cut into equal ranges, as cluster tools do it: every shard has as many partitions. */
static void test_equal_shares(void **state)
{
	static const int shards[] = {2, 3, 4, 6, 8, 12, 16};

	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(shards); s++) {
		int count[16] = {0};
		for (int i = 0; i < PARTITIONS_MAX; i++)
			count[slot_of(i) * shards[s] / SLOTS]++;
		for (int k = 0; k < shards[s]; k++)
			assert_int_equal(count[k], PARTITIONS_MAX / shards[s]);
	}
}

static void test_keys(void **state)
{
	struct buf key = BUF_INIT;

	(void)state;
	keys_init("muster:", 48);
	int p = keys_partition_of(BYTES_LIT("D1"));
	key_day(&key, BYTES_LIT("D1"), 20787);
	char expected[128];
	snprintf(expected, sizeof(expected), "muster:{%s}:day:D1:2026-11-30", partition_tag(p, 48));
	assert_string_equal(key.data, expected);
	buf_clear(&key);
	key_org_of(&key, "dept", BYTES_LIT("D1"));
	assert_string_equal(key.data, "muster:{org}:dept:D1");
	buf_clear(&key);
	key_journal(&key, keys_org());
	assert_string_equal(key.data, "muster:{org}:journal");
	buf_clear(&key);
	key_dir(&key, BYTES_LIT("E1"));
	assert_string_equal(key.data, "muster:dir:E1");
	buf_release(&key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc16),
		cmocka_unit_test(test_each_in_its_range),
		cmocka_unit_test(test_equal_shares),
		cmocka_unit_test(test_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
