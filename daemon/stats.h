/* SPDX-License-Identifier: MIT */
/* What the daemon counts: calls, errors and latencies per command, errors by code, connections, bytes, and
 * how long turns of the loop take. Counting a call costs one clock reading and a few additions. */
#ifndef DAEMON_STATS_H
#define DAEMON_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct buf;

/* Durations in buckets an eighth of an octave wide: a percentile is at most 6 % off, up to 2^32 us. */
#define HISTOGRAM_BUCKETS 240

struct histogram {
	uint64_t count, sum, max;
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, int64_t us);
/* The duration that `share` (0 to 1) of all don't exceed; 0 without any. */
int64_t histogram_percentile(const struct histogram *h, double share);

struct stats_totals {
	int64_t started_ms; /* wall */
	int64_t started_us; /* monotonic */
	uint64_t connections, rejected, dropped_slow, dropped_idle, protocol_errors;
	uint64_t commands;
	uint64_t bytes_in, bytes_out;
};
extern struct stats_totals stats;

/* `commands` is the size of the command table. */
void stats_init(size_t commands);
void stats_release(void);

/* One call of the command at `index` of the table took `us`; `error` is its error reply, or empty. */
void stats_call(size_t index, int64_t us, struct bytes error);
/* An error that belongs to no command. */
void stats_error(struct bytes error);
/* One turn of the loop took so long, of processor time. */
void stats_turn(int64_t us);
/* From the janitor, about once a second: rates, and the longest turn of the last minute. */
void stats_tick(int64_t now_us);
int64_t stats_rate(void);

/* Bodies of the INFO sections. */
void stats_write(struct buf *out, void *arg);
void stats_write_commands(struct buf *out, void *arg);
void stats_write_latencies(struct buf *out, void *arg);
void stats_write_errors(struct buf *out, void *arg);

#endif
