/* SPDX-License-Identifier: MIT */
/* TEAM.CHECK: starts a check of the tree, waits for it, shows what it has found. */
#include "handlers/app.h"
#include "handlers/options.h"
#include "handlers/team.h"
#include "persist/redis.h"
#include "persist/team_check.h"
#include "persist/team_findings.h"

#define WAIT_MS   (10 * 60000) /* after which it answers even while the check goes on */
#define ITEMS_MAX 100

static void add_findings(struct reply *r, const struct team_findings *findings)
{
	struct team_finding items[ITEMS_MAX];
	size_t codes, n = team_findings_list(findings, items, ITEMS_MAX);
	const struct team_code *code = team_findings_codes(findings, &codes);

	reply_str(r, "codes");
	reply_map(r, codes);
	for (size_t i = 0; i < codes; i++)
		reply_field_int(r, code[i].name, code[i].count);
	reply_str(r, "items");
	reply_array(r, n);
	for (size_t i = 0; i < n; i++) {
		reply_map(r, 4);
		reply_field_bulk(r, "code", items[i].code);
		reply_field_bulk(r, "id", items[i].id);
		reply_field_bulk(r, "detail", items[i].detail);
		reply_field_int(r, "repaired", items[i].repaired);
	}
}

static void show(struct call *call)
{
	struct team_check_report report;
	struct reply *r = &call->reply;

	team_check_report(call->app->team_check, &report);
	int64_t count = team_findings_count(report.findings);
	reply_map(r, 10);
	reply_field_str(r, "state", report.status);
	reply_field_str(r, "mode", report.mode);
	reply_field_int(r, "rounds", report.rounds);
	reply_field_int(r, "keys", report.keys);
	reply_field_int(r, "nodes", report.nodes);
	reply_field_int(r, "milliseconds", report.ms);
	reply_field_int(r, "findings", count);
	reply_field_int(r, "repaired", count - team_findings_left(report.findings));
	add_findings(r, report.findings);
}

static void on_end(void *arg)
{
	struct call *call = arg;
	struct team_check_report report;

	team_check_report(call->app->team_check, &report);
	if (report.error != NULL)
		(void)call_fail(call, "%s", report.error);
	else
		show(call);
	call_finish(call);
}

enum verdict team_check_exec(struct call *call)
{
	bool status = false, repair = false, truth = false, nowait = false;
	const struct option options[] = {{"STATUS", NULL, &status}, {"REPAIR", NULL, &repair},
		{"TRUTH", NULL, &truth}, {"NOWAIT", NULL, &nowait}, {0}};

	if (options_read(call, 1, options) != 0)
		return CALL_DONE;
	if (status && call->argc > 2)
		return call_fail(call, "ERR syntax error, expected STATUS alone");
	if (truth && !repair)
		return call_fail(call, "ERR syntax error, expected TRUTH behind REPAIR only");
	if (status) {
		show(call);
		return CALL_DONE;
	}
	if (!redis_ready(call->app->redis))
		return call_fail(call, "%s", redis_sent_error(REDIS_NOT_READY));
	enum team_check_mode mode = truth ? TEAM_CHECK_TRUTH : repair ? TEAM_CHECK_REPAIR : TEAM_CHECK_LOOK;
	if (!team_check_start(call->app->team_check, mode))
		return call_fail(
			call, "BUSY a check of another mode runs, nothing was done; try again later");
	if (nowait) {
		show(call);
		return CALL_DONE;
	}
	team_check_wait(call->app->team_check, WAIT_MS, on_end, call);
	return CALL_WAIT;
}
