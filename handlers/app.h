/* SPDX-License-Identifier: MIT */
/* Everything behind the protocol: the stores, the journal's readers, the jobs of the day. daemon/ starts and
 * stops it as a whole; the handlers reach its parts through call->app. */
#ifndef HANDLERS_APP_H
#define HANDLERS_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/buf.h"

struct batch;
struct call;
struct closer;
struct config;
struct directory;
struct event_base;
struct lease;
struct ledger;
struct memory;
struct mq;
struct mysql_link;
struct opener;
struct redis;
struct relay;
struct task_check;
struct task_reads;
struct task_sweep;
struct task_waits;
struct tasks;
struct team_check;
struct team_changes;
struct team_jobs;
struct team_reads;
struct tree_trust;
struct tree;

/* What this daemon has answered about tasks since it started. */
struct task_totals {
	uint64_t submitted, duplicates, refused; /* BUSY */
	uint64_t claimed, done, failed, released, cancelled;
	uint64_t stale; /* calls of workers who had lost their task */
};

struct app {
	struct event_base *base;
	struct config *config;
	struct redis *redis;
	struct directory *directory;
	struct tree *tree;
	struct lease *lease;
	struct batch *checkins, *employees;
	struct opener *opener;
	struct team_jobs *team_jobs;
	struct team_changes *team_changes;
	struct tree_trust *tree_trust;
	struct team_reads *team_reads;
	struct team_check *team_check;
	struct tasks *tasks;
	struct task_reads *task_reads;
	struct task_waits *task_waits;
	struct task_sweep *task_sweep;
	struct task_check *task_check;
	struct memory *memory;
	struct task_totals task_totals;
	/* Migrations; the ledger's own; the close, failures and look-ups. */
	struct mysql_link *schema_sql, *ledger_sql, *work_sql;
	struct ledger *ledger;
	struct closer *closer;
	struct mq *mq;
	struct relay *relay;
	struct event *tick;
	unsigned ticks;
	int64_t started_us;
	bool checked; /* the number of partitions in Redis is ours */
	bool refused, ready;
	bool migrating, migrated;
	int64_t migrate_again_us;
	int32_t close_asked; /* the last date that a DAY.CLOSE, here or elsewhere, has asked for */
	bool draining, mq_draining, mq_drained;
	void (*drained)(void *arg);
	void *drained_arg;
	int64_t drain_deadline_us;
};

/* NULL after a log line when the configuration can't be used. Nothing is connected before app_start(). */
struct app *app_new(struct event_base *base, struct config *config);
void app_start(struct app *app);
void app_free(struct app *app);

/* Redis and the organisation are known, no day is left unclosed from before: commands are taken. */
bool app_ready(struct app *app);
bool app_redis_up(struct app *app);
/* Why not ready, for people. */
const char *app_trouble(struct app *app);
/* Something that can't heal without an operator: the process should end. */
bool app_refused(struct app *app);

/* Takes up what a reload may change. */
void app_reload(struct app *app);
/* No more calls come: ends what one that is under way might wait long for. */
void app_hurry(struct app *app);
/* Lets what is under way come to an end, within the configured time; then done(arg). */
void app_drain(struct app *app, void (*done)(void *arg), void *arg);

/* For handlers. */

/* There is something new in the journal of the partition. */
void app_journalled(struct app *app, int partition);
int32_t app_today(void);

#endif
