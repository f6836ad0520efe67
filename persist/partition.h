/* SPDX-License-Identifier: MIT */
/* Which partition a department or queue belongs to, and the hash tag that all keys of a partition carry.
 * Partition numbers are 0 to count - 1; the organisation's own keys have the tag "org" and the number
 * partition_org(), one past the last. */
#ifndef PERSIST_PARTITION_H
#define PERSIST_PARTITION_H

#include <stdint.h>

#include "base/bytes.h"

#define PARTITIONS_MAX 48

/* The CRC16 (XMODEM) by which Redis Cluster places keys. */
uint16_t partition_crc16(struct bytes b);
int partition_of(struct bytes id, int count);
/* Tag of a partition, without braces; "org" for number `count`. */
const char *partition_tag(int partition, int count);

#endif
