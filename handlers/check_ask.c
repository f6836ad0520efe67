/* SPDX-License-Identifier: MIT */
#include "handlers/check_ask.h"

#include "handlers/app.h"
#include "persist/check_run.h"
#include "persist/findings.h"
#include "persist/redis.h"

#define WAIT_MS   (10 * 60000) /* after which it answers even while the check goes on */
#define ITEMS_MAX 100

static void add_item(struct reply *r, const struct finding *f, bool queued)
{
	reply_map(r, queued ? 5 : 4);
	reply_field_bulk(r, "code", f->code);
	reply_field_bulk(r, queued ? "task" : "id", f->id);
	if (queued)
		reply_field_bulk(r, "queue", f->queue);
	reply_field_bulk(r, "detail", f->detail);
	reply_field_int(r, "repaired", f->repaired);
}

static void add_findings(struct reply *r, const struct findings *findings, bool queued)
{
	struct finding items[ITEMS_MAX];
	size_t codes, n = findings_list(findings, items, ITEMS_MAX);
	const struct finding_code *code = findings_codes(findings, &codes);

	reply_str(r, "codes");
	reply_map(r, codes);
	for (size_t i = 0; i < codes; i++)
		reply_field_int(r, code[i].name, code[i].count);
	reply_str(r, "items");
	reply_array(r, n);
	for (size_t i = 0; i < n; i++)
		add_item(r, &items[i], queued);
}

enum verdict check_show(struct call *call, struct check_run *run)
{
	struct check_report report;
	struct reply *r = &call->reply;

	check_run_report(run, &report);
	int64_t count = findings_count(report.findings);
	reply_map(r, report.queued ? 11 : 10);
	reply_field_str(r, "state", report.status);
	reply_field_str(r, "mode", report.mode);
	reply_field_int(r, "rounds", report.rounds);
	reply_field_int(r, "keys", report.keys);
	reply_field_int(r, report.item_name, report.items);
	if (report.queued)
		reply_field_int(r, "skipped", report.skipped);
	reply_field_int(r, "milliseconds", report.ms);
	reply_field_int(r, "findings", count);
	reply_field_int(r, "repaired", count - findings_left(report.findings));
	add_findings(r, report.findings, report.queued);
	return CALL_DONE;
}

static void on_end(void *arg)
{
	struct call *call = arg;
	struct check_report report;

	check_run_report(call->op, &report);
	if (report.error != NULL)
		(void)call_fail(call, "%s", report.error);
	else
		(void)check_show(call, call->op);
	call_finish(call);
}

enum verdict check_ask(struct call *call, struct check_run *run, int mode, bool nowait)
{
	if (!redis_ready(call->app->redis))
		return call_fail(call, "%s", redis_sent_error(REDIS_NOT_READY));
	if (!check_run_start(run, mode))
		return call_fail(
			call, "BUSY a check of another mode runs, nothing was done; try again later");
	if (nowait)
		return check_show(call, run);
	call->op = run;
	check_run_wait(run, WAIT_MS, on_end, call);
	return CALL_WAIT;
}
