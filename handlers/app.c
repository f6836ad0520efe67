/* SPDX-License-Identifier: MIT */
#include "handlers/app.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "handlers/close_ask.h"
#include "handlers/command.h"
#include "handlers/task.h"
#include "mq/mq.h"
#include "mq/relay.h"
#include "persist/batch.h"
#include "persist/check_run.h"
#include "persist/closer.h"
#include "persist/directory.h"
#include "persist/employee_set.h"
#include "persist/journal.h"
#include "persist/keys.h"
#include "persist/lease.h"
#include "persist/ledger.h"
#include "persist/memory.h"
#include "persist/migrate.h"
#include "persist/mysql_link.h"
#include "persist/opener.h"
#include "persist/redis.h"
#include "persist/task.h"
#include "persist/task_check.h"
#include "persist/task_read.h"
#include "persist/task_sweep.h"
#include "persist/task_wait.h"
#include "persist/team_change.h"
#include "persist/team_check.h"
#include "persist/team_jobs.h"
#include "persist/team_read.h"
#include "persist/tree.h"
#include "persist/tree_trust.h"
#include "rules/when.h"
#include "rules/workday.h"

#define TICK_MS      250
#define TICK_FAST_MS 20  /* while starting and draining, when somebody waits for us */
#define BATCH_EVENTS 256 /* of one script call: about 3 ms of Redis */
/* Between two windows of a partition under load, so that notices can be grouped; a window of RELAY_BUSY
 * records is load. */
#define RELAY_GAP_MS   1000
#define RELAY_BUSY     40
#define RELAY_ENTRIES  500
#define RELAY_RECORDS  1000
#define LEDGER_ENTRIES 500
#define LEDGER_RECORDS 2000
#define LEDGER_GAP_MS  250
#define POLL_MS        500
#define MYSQL_GRACE_US                                                                                       \
	(5 * INT64_C(1000000)) /* so long the start waits for MySQL, to catch up before it is ready */

/* The reader of a journal and who processes its windows know each other. */
struct reader {
	struct journal *journal;
};

static struct reader relay_reader, ledger_reader;

int32_t app_today(void)
{
	return workday_of(clock_wall_ms());
}

void app_journalled(struct app *app, int partition)
{
	(void)app;
	journal_doorbell(relay_reader.journal, partition);
	journal_doorbell(ledger_reader.journal, partition);
}

static void journalled(int partition, void *arg)
{
	app_journalled(arg, partition);
}

static void window_done(struct journal_window *window, bool ok, void *arg)
{
	const struct reader *reader = arg;

	journal_done(reader->journal, window, ok);
}

/* ---- what must be settled before the first command ---- */

static void on_partitions(const struct redisReply *reply, void *arg)
{
	struct app *app = arg;

	if (reply == NULL || redis_reply_error(reply) != NULL)
		return;
	if (redis_int(reply) != app->config->partitions) {
		log_error("handlers app event=refused reason=\"this Redis was begun with %lld partitions, "
			  "the configuration "
			  "says %lld: that can't be changed\"",
			(long long)redis_int(reply), (long long)app->config->partitions);
		app->refused = true;
		return;
	}
	app->checked = true;
}

static void on_redis(void *arg)
{
	struct app *app = arg;
	char count[24];

	app->checked = false;
	if (!redis_ready(app->redis))
		return;
	snprintf(count, sizeof(count), "%lld", (long long)app->config->partitions);
	const char *const set[] = {"partitions", count, NULL}, *const get[] = {"partitions", NULL};
	meta_send(app, NULL, "HSETNX", set);
	meta_send(app, on_partitions, "HGET", get);
}

/* By a job, which may also have moved employees of any partition. */
static void tree_changed(void *arg)
{
	struct app *app = arg;

	tree_doorbell(app->tree);
	for (int p = 0; p <= keys_org(); p++)
		app_journalled(app, p);
}

static void on_unassigned(struct bytes line, const char *error, void *arg)
{
	struct app *app = arg;

	(void)line;
	(void)error; /* the link was lost, and its return loads the tree again */
	tree_doorbell(app->tree);
}

/* Department 0 takes those who have none. */
static void ensure_unassigned(struct app *app)
{
	const struct team_change add = {.verb = TEAM_ADD,
		.id = BYTES_LIT("0"),
		.name = BYTES_LIT("Unassigned"),
		.fold = BYTES_LIT("unassigned")};

	team_change_send(app->team_changes, &add, app_today(), on_unassigned, app);
}

static void on_tree(void *arg)
{
	struct app *app = arg;

	if (tree_find(app->tree, BYTES_LIT("0")) == NULL)
		ensure_unassigned(app);
}

static void on_migrated(const char *error, size_t applied, void *arg)
{
	struct app *app = arg;

	app->migrating = false;
	if (error != NULL) {
		log_error("handlers app event=migration-failed reason=\"%s\"", error);
		app->migrate_again_us = clock_mono_us() + INT64_C(5000000);
		return;
	}
	log_notice("handlers app event=schema-ready applied=%zu", applied);
	app->migrated = true;
	mysql_link_start(app->ledger_sql);
	mysql_link_start(app->work_sql);
}

/* The schema comes first: the links that use it are started after it. */
static void migrate(struct app *app)
{
	if (app->migrated || app->migrating || !mysql_link_ready(app->schema_sql) ||
		clock_mono_us() < app->migrate_again_us)
		return;
	app->migrating = true;
	migrate_start(app->schema_sql, migrate_files, migrate_files_count, on_migrated, app);
}

/* ---- readiness ---- */

bool app_redis_up(struct app *app)
{
	return redis_ready(app->redis) && app->checked;
}

static bool settled(struct app *app)
{
	if (!app_redis_up(app) || !tree_loaded(app->tree) || !lease_settled(app->lease) ||
		tree_find(app->tree, BYTES_LIT("0")) == NULL)
		return false;
	/* Days left unclosed from before come first; but check-ins don't wait for a MySQL that is away. */
	bool away = !mysql_link_ready(app->work_sql) && clock_mono_us() - app->started_us > MYSQL_GRACE_US;
	return away || (mysql_link_ready(app->work_sql) && closer_caught_up(app->closer) &&
			       opener_caught_up(app->opener));
}

bool app_ready(struct app *app)
{
	if (!app->ready && settled(app)) {
		app->ready = true;
		log_notice("handlers app event=ready departments=%lld", (long long)tree_count(app->tree));
	}
	return app->ready;
}

const char *app_trouble(struct app *app)
{
	if (app->refused)
		return "the number of partitions is another than Redis was begun with";
	if (!redis_ready(app->redis))
		return "Redis is away";
	if (!app->ready && !mysql_link_ready(app->work_sql))
		return "waiting for MySQL";
	return app->ready ? "" : "catching up on days left unclosed";
}

bool app_refused(struct app *app)
{
	return app->refused;
}

/* ---- draining ---- */

static void on_mq_drained(void *arg)
{
	struct app *app = arg;

	lease_give_up(app->lease);
	app->mq_drained = true;
}

static void drain_on(struct app *app)
{
	bool late = clock_mono_us() > app->drain_deadline_us;
	bool quiet = journal_busy(relay_reader.journal) == 0 && journal_busy(ledger_reader.journal) == 0 &&
		     !closer_running(app->closer);

	if (!app->mq_draining && (quiet || late)) {
		app->mq_draining = true;
		mq_drain(app->mq, 2000, on_mq_drained, app);
	}
	if (app->drained != NULL && app->mq_drained && (redis_inflight(app->redis) == 0 || late)) {
		void (*done)(void *arg) = app->drained;
		app->drained = NULL;
		done(app->drained_arg);
	}
}

static void set_tick(struct app *app, int ms)
{
	struct timeval every = {0, ms * 1000};

	event_add(app->tick, &every);
}

void app_hurry(struct app *app)
{
	task_waits_stop(app->task_waits);
	check_run_stop(team_check_run(app->team_check));
	check_run_stop(task_check_run(app->task_check));
	team_jobs_hurry(app->team_jobs);
}

void app_drain(struct app *app, void (*done)(void *arg), void *arg)
{
	app->draining = true;
	app->drained = done;
	app->drained_arg = arg;
	app->drain_deadline_us = clock_mono_us() + app->config->drain_timeout * 1000;
	journal_stop(relay_reader.journal);
	journal_stop(ledger_reader.journal);
	closer_stop(app->closer);
	opener_stop(app->opener);
	team_jobs_stop(app->team_jobs);
	task_sweep_stop(app->task_sweep);
	set_tick(app, TICK_FAST_MS);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct app *app = arg;

	(void)fd;
	(void)what;
	migrate(app);
	if (app->draining) {
		drain_on(app);
	} else if (!app_ready(app)) {
		opener_wake(app->opener);
		closer_wake(app->closer);
	} else {
		set_tick(app, TICK_MS);
		if (redis_ready(app->redis) && ++app->ticks % 8 == 0)
			close_ask_look(app);
	}
}

/* ---- life ---- */

static void checkin_head(struct redis_args *args, void *arg)
{
	const struct app *app = arg;
	char date[DATE_TEXT];

	redis_arg_str(args, date_format(app_today(), date));
	redis_arg_i64(args, app->config->max_punches);
}

static bool use_config(struct app *app)
{
	const struct config *c = app->config;

	if (!workday_set_zone(c->timezone)) {
		log_error("handlers app event=refused reason=\"[day] timezone: no such zone '%s'\"",
			c->timezone);
		return false;
	}
	if (strlen(c->redis_prefix) > KEYS_PREFIX_MAX || strpbrk(c->redis_prefix, "{} \t") != NULL) {
		log_error("handlers app event=refused reason=\"[redis] prefix: expected at most %d bytes "
			  "without braces or "
			  "blanks\"",
			KEYS_PREFIX_MAX);
		return false;
	}
	keys_init(c->redis_prefix, (int)c->partitions);
	workday_set_start(c->day_start);
	workday_set_shift(c->shift_start, c->shift_end, c->debounce);
	return true;
}

static void make_teams(struct app *app)
{
	app->tree_trust = tree_trust_new(app->base, app->config, app->tree);
	app->team_reads = team_reads_new(app->redis, app->tree, app->tree_trust);
	app->team_changes = team_changes_new(app->redis, app->config);
	struct team_jobs_deps jobs = {.base = app->base,
		.config = app->config,
		.redis = app->redis,
		.lease = app->lease,
		.employees = app->employees,
		.changed = tree_changed,
		.arg = app};
	app->team_jobs = team_jobs_new(&jobs);
	app->team_check = team_check_new(app->base, app->redis, tree_changed, app);
}

static void make_tasks(struct app *app)
{
	app->tasks = tasks_new(app->redis, app->config);
	app->task_reads = task_reads_new(app->redis);
	app->task_waits = task_waits_new(app->base, app->redis, app->tasks, app->config);
	struct task_sweep_deps sweep = {.base = app->base,
		.config = app->config,
		.redis = app->redis,
		.lease = app->lease,
		.journalled = journalled,
		.arg = app};
	app->task_sweep = task_sweep_new(&sweep);
	app->task_check = task_check_new(app->base, app->redis, app->config);
	app->memory = memory_new(app->base, app->redis);
	info_register("Tasks", task_info_write, app);
}

static void make_closer(struct app *app)
{
	struct closer_deps deps = {.base = app->base,
		.config = app->config,
		.redis = app->redis,
		.sql = app->work_sql,
		.tree = app->tree,
		.lease = app->lease,
		.journalled = journalled,
		.arg = app};

	app->closer = closer_new(&deps);
}

/* Who reads the journals. */
static void make_readers(struct app *app)
{
	app->relay = relay_new(
		app->base, app->mq, app->tree, &app->config->task_notices, window_done, &relay_reader);
	struct journal_spec relay = {.cursor = "relay",
		.planned = true,
		.entries = RELAY_ENTRIES,
		.records = RELAY_RECORDS,
		.poll_ms = POLL_MS,
		.gap_ms = RELAY_GAP_MS,
		.busy_records = RELAY_BUSY,
		.process = relay_process,
		.arg = app->relay};
	relay_reader.journal = journal_new(app->base, app->redis, app->lease, &relay);
	app->ledger = ledger_new(app->ledger_sql, app->tree, window_done, &ledger_reader);
	struct journal_spec ledger = {.cursor = "ledger",
		.entries = LEDGER_ENTRIES,
		.records = LEDGER_RECORDS,
		.poll_ms = POLL_MS,
		.gap_ms = LEDGER_GAP_MS,
		.busy_records = 2,
		.process = ledger_process,
		.arg = app->ledger};
	ledger_reader.journal = journal_new(app->base, app->redis, app->lease, &ledger);
}

struct app *app_new(struct event_base *base, struct config *config)
{
	struct app *app = xcalloc(1, sizeof(*app));

	app->base = base;
	app->config = config;
	if (!use_config(app) || (app->mq = mq_new(base, config)) == NULL) {
		free(app);
		return NULL;
	}
	app->redis = redis_new(base, config, REDIS_MAIN);
	app->schema_sql = mysql_link_new(base, config, "schema");
	app->ledger_sql = mysql_link_new(base, config, "ledger");
	app->work_sql = mysql_link_new(base, config, "work");
	app->directory = directory_new(app->redis, &config->dir_cache);
	app->tree = tree_new(base, app->redis, on_tree, app);
	app->lease = lease_new(base, app->redis, config);
	app->checkins = batch_new(app->redis, SCRIPT_CHECKIN, 4, BATCH_EVENTS, checkin_head, app);
	app->employees = batch_new(
		app->redis, SCRIPT_EMPLOYEE_SET, EMPLOYEE_SET_KEYS, BATCH_EVENTS, employee_set_head, NULL);
	app->opener = opener_new(base, app->redis, app->lease);
	make_teams(app);
	make_tasks(app);
	make_closer(app);
	make_readers(app);
	redis_on_change(app->redis, on_redis, app);
	app->tick = event_new(base, -1, EV_PERSIST, on_tick, app);
	set_tick(app, TICK_FAST_MS);
	return app;
}

/* The tree is loaded when the link is up, and trusted if it was watched before. */
static void on_watch_tried(void *arg)
{
	const struct app *app = arg;

	redis_start(app->redis);
}

void app_start(struct app *app)
{
	app->started_us = clock_mono_us();
	tree_trust_start(app->tree_trust, on_watch_tried, app);
	task_waits_start(app->task_waits);
	mysql_link_start(app->schema_sql);
}

void app_reload(struct app *app)
{
	workday_set_shift(app->config->shift_start, app->config->shift_end, app->config->debounce);
	mq_reload(app->mq, app->config);
	log_set_level_name(app->config->log_level);
}

void app_free(struct app *app)
{
	if (app == NULL)
		return;
	event_free(app->tick);
	/* The links first: whatever waits for them ends, in structures that are still there. */
	mysql_link_free(app->schema_sql);
	mysql_link_free(app->ledger_sql);
	mysql_link_free(app->work_sql);
	tree_trust_stop(app->tree_trust);
	redis_free(app->redis);
	batch_free(app->checkins);
	batch_free(app->employees);
	team_jobs_free(app->team_jobs);
	tree_trust_free(app->tree_trust);
	team_reads_free(app->team_reads);
	team_changes_free(app->team_changes);
	team_check_free(app->team_check);
	tasks_free(app->tasks);
	task_reads_free(app->task_reads);
	task_waits_free(app->task_waits);
	task_sweep_free(app->task_sweep);
	task_check_free(app->task_check);
	memory_free(app->memory);
	mq_free(app->mq);
	tree_free(app->tree);
	relay_free(app->relay);
	ledger_free(app->ledger);
	journal_free(relay_reader.journal);
	journal_free(ledger_reader.journal);
	closer_free(app->closer);
	opener_free(app->opener);
	lease_free(app->lease);
	directory_free(app->directory);
	free(app);
}
