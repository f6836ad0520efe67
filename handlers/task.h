/* SPDX-License-Identifier: MIT */
/* The TASK commands. task.c gives tasks in and keeps them alive, task_claim.c hands them out, task_verbs.c
 * ends them or brings them back, task_queue.c is about queues, task_read.c and task_list.c look, task_check.c
 * checks. */
#ifndef HANDLERS_TASK_H
#define HANDLERS_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "handlers/command.h"

struct buf;

/* task.c */
enum verdict task_submit_exec(struct call *call);
enum verdict task_beat_exec(struct call *call);

/* task_claim.c */
enum verdict task_claim_exec(struct call *call);

/* task_verbs.c */
enum verdict task_done_exec(struct call *call);
enum verdict task_fail_exec(struct call *call);
enum verdict task_release_exec(struct call *call);
enum verdict task_cancel_exec(struct call *call);
enum verdict task_retry_exec(struct call *call);

/* task_queue.c */
enum verdict task_pause_exec(struct call *call);
enum verdict task_resume_exec(struct call *call);
enum verdict task_config_exec(struct call *call);
/* The section "Tasks" of INFO; `arg` is the app. */
void task_info_write(struct buf *out, void *arg);

/* task_read.c */
enum verdict task_get_exec(struct call *call);
enum verdict task_stats_exec(struct call *call);

/* task_list.c */
enum verdict task_list_exec(struct call *call);

/* task_check.c */
enum verdict task_check_exec(struct call *call);

/* Sets the error for what a script has answered about the task `id` (empty: about a queue): its first letter
 * says what is wrong, the rest is a detail. Always CALL_DONE. */
enum verdict task_refuse(struct call *call, struct bytes id, struct bytes line);

/* Checks of single arguments, beside those of options.h; each replies an error that says what was expected,
 * and is false. An option that was not given (.p is NULL) leaves *ret as it is. */
bool check_queue(struct call *call, struct bytes queue);
bool check_worker(struct call *call, struct bytes worker);
bool check_task(struct call *call, struct bytes id);
bool check_token(struct call *call, struct bytes token);
bool check_number(
	struct call *call, const char *what, struct bytes text, int64_t min, int64_t max, int64_t *ret);
bool check_duration(struct call *call, const char *what, struct bytes text, int64_t min_ms, int64_t max_ms,
	int64_t *ret_ms);
/* LEASE and DELAY of the commands that take one. */
bool check_lease(struct call *call, struct bytes text, int64_t *ret_ms);
bool check_delay(struct call *call, struct bytes text, int64_t *ret_ms);

#endif
