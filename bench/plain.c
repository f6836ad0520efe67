/* SPDX-License-Identifier: MIT */
/* The plain recipe for a check-in, to compare Muster with: take a lock, read, write, give the lock back,
 * write the second place, publish; a round trip to Redis for each, in as many processes as --connections
 * says. No check, no journal, no history: less than Muster does.
 *
 * The result is one JSON object on stdout. The exit code is 0 when every step of every check-in succeeded.
 */
#include <getopt.h>
#include <hiredis/hiredis.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bench/histogram.h"

#define LOCK_MS    5000
#define TEXT       256 /* bytes of a key or value */
#define PROCESSES  512
#define SET_LENGTH 200 /* bytes of a person's punches that are kept */

struct options {
	int64_t port, connections, requests, employees, departments;
};

/* What a process hands back, in shared memory. */
struct share {
	struct histogram latencies;
	int64_t done;
};

/* One step: a command, its whole round trip. False when it did not end as it should. */
__attribute__((format(printf, 3, 4))) static bool ask(
	redisContext *redis, char answer[TEXT], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	redisReply *reply = redisvCommand(redis, format, args);
	va_end(args);
	if (reply == NULL)
		return false;
	bool good = reply->type != REDIS_REPLY_ERROR;
	if (answer != NULL)
		snprintf(answer, TEXT, "%.*s", SET_LENGTH, reply->str != NULL ? reply->str : "");
	freeReplyObject(reply);
	return good;
}

static bool lock(redisContext *redis, long long id)
{
	char answer[TEXT];

	do {
		if (!ask(redis, answer, "SET plain:lock:e%012lld %d NX PX %d", id, getpid(), LOCK_MS))
			return false;
	} while (strcmp(answer, "OK") != 0);
	return true;
}

static bool check_in(redisContext *redis, long long id, long long dept)
{
	long long now = (long long)clock_wall_ms();
	char set[TEXT];

	return lock(redis, id) && ask(redis, set, "HGET plain:day:d%lld e%012lld", dept, id) &&
	       ask(redis, NULL, "HSET plain:day:d%lld e%012lld %s,I%lld", dept, id, set, now) &&
	       ask(redis, NULL, "DEL plain:lock:e%012lld", id) &&
	       ask(redis, NULL, "HSET plain:emps:d%lld e%012lld d%lld|%s,I%lld", dept, id, dept, set, now) &&
	       ask(redis, NULL, "PUBLISH plain:notices {\"employee\":\"e%012lld\",\"at\":%lld}", id, now);
}

/* A process: every connections-th check-in, when the pipe is closed. */
static int work(const struct options *o, int64_t number, int pipe_end, struct share *share)
{
	redisContext *redis = redisConnect("127.0.0.1", (int)o->port);
	char byte;

	if (redis == NULL || redis->err != 0 || read(pipe_end, &byte, 1) != 0)
		return 1;
	for (int64_t i = number; i < o->requests; i += o->connections) {
		int64_t begun = clock_mono_us(), id = i * 7919 % o->employees;
		if (!check_in(redis, id, id % o->departments))
			return 1;
		histogram_add(&share->latencies, clock_mono_us() - begun);
		share->done++;
	}
	redisFree(redis);
	return 0;
}

static void merge(struct share *into, const struct share *from)
{
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->latencies.buckets[i] += from->latencies.buckets[i];
	into->latencies.count += from->latencies.count;
	if (from->latencies.max > into->latencies.max)
		into->latencies.max = from->latencies.max;
	into->done += from->done;
}

static void print_result(const struct options *o, const struct share *shares, int64_t us)
{
	static struct share all;

	for (int64_t i = 0; i < o->connections; i++)
		merge(&all, &shares[i]);
	json_t *result = json_pack("{s:I, s:I, s:f, s:f, s:{s:I, s:I, s:I}}", "connections",
		(json_int_t)o->connections, "answered", (json_int_t)all.done, "seconds", (double)us / 1e6,
		"rate", (double)all.done * 1e6 / (double)us, "latency_us", "p50",
		(json_int_t)histogram_percentile(&all.latencies, 50), "p99",
		(json_int_t)histogram_percentile(&all.latencies, 99), "max", (json_int_t)all.latencies.max);
	json_dumpf(result, stdout, JSON_REAL_PRECISION(9) | JSON_INDENT(1));
	putchar('\n');
	json_decref(result);
}

static int run(const struct options *o)
{
	size_t size = (size_t)o->connections * sizeof(struct share);
	struct share *shares = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int gate[2], failed = 0, status;

	if (shares == MAP_FAILED || pipe(gate) != 0)
		return 1;
	for (int64_t i = 0; i < o->connections; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			close(gate[1]);
			_exit(work(o, i, gate[0], &shares[i]));
		}
		failed += pid < 0;
	}
	int64_t begun = clock_mono_us();
	close(gate[1]);
	while (wait(&status) > 0)
		failed += status != 0;
	print_result(o, shares, clock_mono_us() - begun);
	munmap(shares, size);
	return failed == 0 ? 0 : 1;
}

static bool read_number(const char *text, int64_t most, int64_t *ret)
{
	return bytes_to_i64(bytes_of(text), ret) && *ret >= 1 && *ret <= most;
}

static bool read_option(struct options *o, int c)
{
	switch (c) {
	case 'p':
		return read_number(optarg, 65535, &o->port);
	case 'c':
		return read_number(optarg, PROCESSES, &o->connections);
	case 'n':
		return read_number(optarg, INT64_C(1000000000), &o->requests);
	case 'e':
		return read_number(optarg, INT64_C(10000000), &o->employees);
	case 'd':
		return read_number(optarg, INT64_C(100000), &o->departments);
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	static const struct option known[] = {{"port", required_argument, NULL, 'p'},
		{"connections", required_argument, NULL, 'c'}, {"requests", required_argument, NULL, 'n'},
		{"employees", required_argument, NULL, 'e'}, {"departments", required_argument, NULL, 'd'},
		{0}};
	struct options o = {6379, 50, 100000, 100000, 500};

	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (!read_option(&o, c)) {
			fputs("plain [--port N] [--connections N] [--requests N] [--employees N] "
			      "[--departments N]\n",
				stderr);
			return 2;
		}
	}
	return run(&o);
}
