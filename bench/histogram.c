/* SPDX-License-Identifier: MIT */
#include "bench/histogram.h"

static int bucket_of(int64_t us)
{
	uint64_t v = us < 0 ? 0 : (uint64_t)us;
	int shift = 0;

	while (v >> shift >= 2 * HISTOGRAM_SUB)
		shift++;
	int bucket = shift * HISTOGRAM_SUB + (int)(v >> shift);
	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The largest value that falls into it. */
static int64_t bucket_end(int bucket)
{
	int shift = bucket < 2 * HISTOGRAM_SUB ? 0 : bucket / HISTOGRAM_SUB - 1;
	int64_t first = bucket - shift * HISTOGRAM_SUB;

	return ((first + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, int64_t us)
{
	h->buckets[bucket_of(us)]++;
	h->count++;
	h->sum += us;
	if (us > h->max)
		h->max = us;
}

int64_t histogram_percentile(const struct histogram *h, double percent)
{
	uint64_t below = 0, wanted = (uint64_t)((double)h->count * percent / 100 + 0.5);

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += h->buckets[i];
		if (below > 0 && below >= wanted)
			return bucket_end(i) < h->max ? bucket_end(i) : h->max;
	}
	return h->max;
}
