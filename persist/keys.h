/* SPDX-License-Identifier: MIT */
/* Names of the keys in Redis: one function a kind, each appends the whole name. Nobody else builds a key. */
#ifndef PERSIST_KEYS_H
#define PERSIST_KEYS_H

#include <stdint.h>

#include "base/buf.h"

/* Longest prefix accepted by keys_init(). */
#define KEYS_PREFIX_MAX 64

/* Once, at start. `prefix` is copied; `partitions` as configured. */
void keys_init(const char *prefix, int partitions);
int keys_partitions(void);
/* Number of the organisation's own keys, one past the last partition. */
int keys_org(void);
int keys_partition_of(struct bytes dept);

void key_meta(struct buf *b);
void key_daemons(struct buf *b);
void key_dir(struct buf *b, struct bytes employee);
void key_day(struct buf *b, struct bytes dept, int32_t day);
void key_closing(struct buf *b, struct bytes dept, int32_t day);
void key_emps(struct buf *b, struct bytes dept);

/* Of a partition, or of the organisation. */
void key_days(struct buf *b, int partition); /* hash: <dept>:<date> -> open, closing, closed */
void key_journal(struct buf *b, int partition);
void key_cursor(struct buf *b, int partition);
void key_owner(struct buf *b, int partition);

/* Of tasks. */
void key_task(struct buf *b, int partition, struct bytes id);
void key_queue_info(struct buf *b, struct bytes queue);
void key_part(struct buf *b, int partition, const char *kind); /* {p}:<kind> */

/* Of the organisation tree. */
void key_org(struct buf *b, const char *kind);                     /* {org}:<kind> */
void key_org_of(struct buf *b, const char *kind, struct bytes id); /* {org}:<kind>:<id> */

#endif
