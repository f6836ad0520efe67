/* SPDX-License-Identifier: MIT */
/* Latencies in microseconds, kept in log-linear buckets: memory is constant and a percentile is at most 1.6 %
 * too high. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SUB     64 /* buckets to each power of two */
#define HISTOGRAM_BUCKETS (HISTOGRAM_SUB * 36)

struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	uint64_t count;
	int64_t sum, max;
};

void histogram_add(struct histogram *h, int64_t us);
/* The value that `percent` of all values do not exceed; 0 when there is none. */
int64_t histogram_percentile(const struct histogram *h, double percent);

#endif
