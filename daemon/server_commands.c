/* SPDX-License-Identifier: MIT */
/* INFO, CONFIG GET, RELOAD and CLOCK.SET. */
#include "daemon/server_commands.h"

#include <event2/event.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/info.h"
#include "base/log.h"
#include "daemon/client.h"
#include "daemon/listener.h"
#include "daemon/pipeline.h"
#include "daemon/server.h"
#include "daemon/stats.h"
#include "daemon/users.h"
#include "handlers/app.h"
#include "rules/when.h"

/* ---- INFO ---- */

/* Field names are those of Redis wherever they mean the same: `redis-cli --stat` and readiness checks read
 * them. */
static void info_server(struct buf *out, void *arg)
{
	struct server *s = arg;
	long long up = (clock_mono_us() - stats.started_us) / 1000000;
	struct utsname host;

	buf_addf(out, "redis_version:7.0.0\r\nmuster_version:%s\r\n", MUSTER_VERSION);
	buf_addf(out, "redis_mode:standalone\r\n");
	if (uname(&host) == 0)
		buf_addf(out, "os:%s %s %s\r\n", host.sysname, host.release, host.machine);
	buf_addf(out, "arch_bits:%zu\r\nmultiplexing_api:%s\r\n", 8 * sizeof(void *),
		event_base_get_method(s->base));
	buf_addf(out, "process_id:%d\r\ntcp_port:%d\r\n", (int)getpid(), listener_port(s->listener));
	buf_addf(out, "uptime_in_seconds:%lld\r\nuptime_in_days:%lld\r\n", up, up / 86400);
	buf_addf(out, "server_time_usec:%lld\r\n", (long long)clock_wall_ms() * 1000);
	buf_addf(out, "clock_held:%d\r\n", clock_held());
	buf_addf(out, "config_file:%s\r\n", s->config_path != NULL ? s->config_path : "");
	/* Clients wait while loading is 1; commands that need a store answer NOTREADY meanwhile. */
	buf_addf(out, "loading:%d\r\nready:%d\r\ndraining:%d\r\n", !app_ready(s->app), app_ready(s->app),
		s->draining);
}

static void info_clients(struct buf *out, void *arg)
{
	struct server *s = arg;

	buf_addf(out, "connected_clients:%zu\r\n", clients_count(s->clients));
	buf_addf(out, "maxclients:%zu\r\n", server_max_clients(s));
	buf_addf(out, "blocked_clients:0\r\n");
	buf_addf(out, "commands_in_flight:%u\r\n", pipeline_running_total());
}

/* Resident bytes, and the most there ever were. */
static void info_memory(struct buf *out, void *arg)
{
	char line[128];
	long kib, rss = 0, peak = 0;
	FILE *f = fopen("/proc/self/status", "re");

	(void)arg;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "VmRSS: %ld kB", &kib) == 1)
			rss = kib * 1024;
		else if (sscanf(line, "VmHWM: %ld kB", &kib) == 1)
			peak = kib * 1024;
	}
	if (f != NULL)
		fclose(f);
	buf_addf(out, "used_memory:%ld\r\nused_memory_human:%.2fM\r\n", rss, (double)rss / 1048576.0);
	buf_addf(out, "used_memory_rss:%ld\r\nused_memory_peak:%ld\r\n", rss, peak);
}

void server_info_register(struct server *s)
{
	info_register("Server", info_server, s);
	info_register("Clients", info_clients, s);
	info_register("Memory", info_memory, s);
	info_register("Stats", stats_write, NULL);
	info_register("Commandstats", stats_write_commands, NULL);
	info_register("Latencystats", stats_write_latencies, NULL);
	info_register("Errorstats", stats_write_errors, NULL);
}

enum verdict info_exec(struct call *call)
{
	struct buf text = BUF_INIT;
	char section[32];

	if (call->argc == 1)
		info_write(&text, NULL);
	for (int i = 1; i < call->argc; i++)
		info_write(&text, bytes_copy(section, sizeof(section), call->argv[i]));
	reply_bulk(&call->reply, buf_bytes(&text));
	buf_release(&text);
	return CALL_DONE;
}

/* ---- CONFIG ---- */

/* What redis-benchmark asks a server about before it begins. */
static const struct {
	const char *name, *value;
} of_redis[] = {{"appendonly", "no"}, {"save", ""}};

static bool wanted(struct call *call, const char *name)
{
	char pattern[128];

	for (int i = 2; i < call->argc; i++) {
		bytes_copy(pattern, sizeof(pattern), call->argv[i]);
		if (fnmatch(pattern, name, FNM_CASEFOLD) == 0)
			return true;
	}
	return false;
}

enum verdict config_get_exec(struct call *call)
{
	const struct config *config = client_server(call->client)->config;
	struct reply pairs;
	size_t count, found = 0;
	const struct config_key *keys = config_keys(&count);

	reply_init(&pairs, call->reply.protocol);
	for (size_t i = 0; i < sizeof(of_redis) / sizeof(of_redis[0]); i++) {
		if (!wanted(call, of_redis[i].name))
			continue;
		reply_field_str(&pairs, of_redis[i].name, of_redis[i].value);
		found++;
	}
	for (size_t i = 0; i < count; i++) {
		struct buf value = BUF_INIT;
		char name[64];
		snprintf(name, sizeof(name), "%s.%s", keys[i].section, keys[i].name);
		if (!wanted(call, name))
			continue;
		config_value(config, &keys[i], &value);
		reply_field_bulk(&pairs, name, buf_bytes(&value));
		buf_release(&value);
		found++;
	}
	reply_map(&call->reply, found);
	buf_add_bytes(&call->reply.buf, buf_bytes(&pairs.buf));
	reply_release(&pairs);
	return CALL_DONE;
}

enum verdict config_help_exec(struct call *call)
{
	return reply_help_of(call, "CONFIG");
}

/* ---- the daemon ---- */

enum verdict reload_exec(struct call *call)
{
	struct buf errors = BUF_INIT;

	log_notice("client %llu event=reload user=%s", (unsigned long long)client_id(call->client),
		client_user(call->client)->name);
	if (server_reload(client_server(call->client), &errors) == 0)
		reply_status(&call->reply, "OK");
	else
		reply_error(&call->reply, "ERR nothing was changed: %s", errors.data);
	buf_release(&errors);
	return CALL_DONE;
}

enum verdict clock_set_exec(struct call *call)
{
	int64_t ms;

	if (!when_parse(call->argv[1], &ms))
		return call_fail(call, "ERR expected " WHEN_EXPECTED);
	clock_set(ms);
	reply_status(&call->reply, "OK");
	return CALL_DONE;
}
