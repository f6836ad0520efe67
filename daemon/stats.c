/* SPDX-License-Identifier: MIT */
#include "daemon/stats.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "daemon/commands.h"

#define CODES_MAX   24
#define CODE_LENGTH 16
#define RATE_SLOTS  8
#define MINUTE_US   ((int64_t)60 * 1000000)

struct stats_totals stats;

struct command_stats {
	uint64_t failed;
	struct histogram *latency; /* owned; NULL until the first call */
};

static struct {
	struct command_stats *commands;
	size_t count;
	struct {
		char code[CODE_LENGTH];
		uint64_t count;
	} errors[CODES_MAX]; /* the last one takes what has no room */
	struct {
		int64_t at_us;
		uint64_t commands;
	} rate[RATE_SLOTS]; /* a ring of samples */
	unsigned rate_at;
	int64_t turn_max, turn_minute_max, turn_last_minute_max, minute_us;
} own;

/* ---- histogram ---- */

static size_t bucket_of(uint64_t us)
{
	if (us < 8)
		return us;
	unsigned octave = 63 - (unsigned)__builtin_clzll(us);
	size_t bucket = (octave - 2) * 8 + ((us >> (octave - 3)) & 7);
	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The middle of a bucket. */
static int64_t bucket_value(size_t bucket)
{
	if (bucket < 16)
		return (int64_t)bucket;
	unsigned shift = (unsigned)bucket / 8 - 1;
	return (int64_t)((8 + bucket % 8) << shift) + ((int64_t)1 << shift) / 2;
}

void histogram_add(struct histogram *h, int64_t us)
{
	uint64_t value = us > 0 ? (uint64_t)us : 0;

	h->count++;
	h->sum += value;
	if (value > h->max)
		h->max = value;
	h->buckets[bucket_of(value)]++;
}

int64_t histogram_percentile(const struct histogram *h, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)h->count);
	uint64_t seen = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen > wanted || (seen == h->count && seen > 0))
			return bucket_value(i) < (int64_t)h->max ? bucket_value(i) : (int64_t)h->max;
	}
	return 0;
}

/* ---- counting ---- */

void stats_init(size_t commands)
{
	stats = (struct stats_totals){.started_ms = clock_wall_ms(), .started_us = clock_mono_us()};
	own.count = commands;
	own.commands = xcalloc(commands, sizeof(*own.commands));
	own.minute_us = stats.started_us;
}

void stats_release(void)
{
	for (size_t i = 0; i < own.count; i++)
		free(own.commands[i].latency);
	free(own.commands);
	memset(&own, 0, sizeof(own));
}

void stats_error(struct bytes error)
{
	char code[CODE_LENGTH];
	size_t n = 0;

	if (error.n > 0 && error.p[0] == '-')
		error = (struct bytes){error.p + 1, error.n - 1};
	while (n < error.n && n < sizeof(code) - 1 && isupper((unsigned char)error.p[n])) {
		code[n] = error.p[n];
		n++;
	}
	code[n] = '\0';
	size_t i = 0;
	while (i < CODES_MAX - 1 && own.errors[i].count > 0 && strcmp(own.errors[i].code, code) != 0)
		i++;
	if (own.errors[i].count++ == 0)
		snprintf(own.errors[i].code, CODE_LENGTH, "%s", i == CODES_MAX - 1 ? "OTHER" : code);
}

void stats_call(size_t index, int64_t us, struct bytes error)
{
	struct command_stats *c = &own.commands[index];

	stats.commands++;
	if (c->latency == NULL)
		c->latency = xcalloc(1, sizeof(*c->latency));
	histogram_add(c->latency, us);
	if (error.n > 0) {
		c->failed++;
		stats_error(error);
	}
}

void stats_turn(int64_t us)
{
	if (us > own.turn_max)
		own.turn_max = us;
	if (us > own.turn_minute_max)
		own.turn_minute_max = us;
}

void stats_tick(int64_t now_us)
{
	own.rate_at = (own.rate_at + 1) % RATE_SLOTS;
	own.rate[own.rate_at].at_us = now_us;
	own.rate[own.rate_at].commands = stats.commands;
	if (now_us - own.minute_us < MINUTE_US)
		return;
	own.minute_us = now_us;
	own.turn_last_minute_max = own.turn_minute_max;
	own.turn_minute_max = 0;
}

/* Calls a second from the newest sample to the one before it that is at least half a second older. */
int64_t stats_rate(void)
{
	int64_t newest_us = own.rate[own.rate_at].at_us;

	for (unsigned back = 1; back < RATE_SLOTS; back++) {
		unsigned i = (own.rate_at + RATE_SLOTS - back) % RATE_SLOTS;
		int64_t span = newest_us - own.rate[i].at_us;
		if (own.rate[i].at_us == 0)
			break;
		if (span >= 500000)
			return (int64_t)(own.rate[own.rate_at].commands - own.rate[i].commands) * 1000000 /
			       span;
	}
	return 0;
}

/* ---- INFO ---- */

void stats_write(struct buf *out, void *arg)
{
	int64_t recent = own.turn_minute_max > own.turn_last_minute_max ? own.turn_minute_max
									: own.turn_last_minute_max;

	(void)arg;
	buf_addf(out, "total_connections_received:%lu\r\n", (unsigned long)stats.connections);
	buf_addf(out, "total_commands_processed:%lu\r\n", (unsigned long)stats.commands);
	buf_addf(out, "instantaneous_ops_per_sec:%ld\r\n", (long)stats_rate());
	buf_addf(out, "total_net_input_bytes:%lu\r\n", (unsigned long)stats.bytes_in);
	buf_addf(out, "total_net_output_bytes:%lu\r\n", (unsigned long)stats.bytes_out);
	buf_addf(out, "rejected_connections:%lu\r\n", (unsigned long)stats.rejected);
	buf_addf(out, "dropped_slow_clients:%lu\r\n", (unsigned long)stats.dropped_slow);
	buf_addf(out, "dropped_idle_clients:%lu\r\n", (unsigned long)stats.dropped_idle);
	buf_addf(out, "protocol_errors:%lu\r\n", (unsigned long)stats.protocol_errors);
	buf_addf(out, "loop_turn_max_us:%ld\r\n", (long)own.turn_max);
	buf_addf(out, "loop_turn_max_recent_us:%ld\r\n", (long)recent);
}

static const char *name_of(size_t index, char name[COMMAND_NAME])
{
	size_t count;
	return commands_lower(&commands_table(&count)[index], name);
}

void stats_write_commands(struct buf *out, void *arg)
{
	char name[COMMAND_NAME];

	(void)arg;
	for (size_t i = 0; i < own.count; i++) {
		const struct histogram *h = own.commands[i].latency;
		if (h == NULL)
			continue;
		buf_addf(out, "cmdstat_%s:calls=%lu,usec=%lu,usec_per_call=%.2f,failed_calls=%lu\r\n",
			name_of(i, name), (unsigned long)h->count, (unsigned long)h->sum,
			(double)h->sum / (double)h->count, (unsigned long)own.commands[i].failed);
	}
}

void stats_write_latencies(struct buf *out, void *arg)
{
	char name[COMMAND_NAME];

	(void)arg;
	for (size_t i = 0; i < own.count; i++) {
		const struct histogram *h = own.commands[i].latency;
		if (h == NULL)
			continue;
		buf_addf(out, "latency_percentiles_usec_%s:p50=%ld,p99=%ld,p99.9=%ld,max=%lu\r\n",
			name_of(i, name), (long)histogram_percentile(h, 0.5),
			(long)histogram_percentile(h, 0.99), (long)histogram_percentile(h, 0.999),
			(unsigned long)h->max);
	}
}

void stats_write_errors(struct buf *out, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < CODES_MAX; i++) {
		if (own.errors[i].count > 0)
			buf_addf(out, "errorstat_%s:count=%lu\r\n", own.errors[i].code,
				(unsigned long)own.errors[i].count);
	}
}
