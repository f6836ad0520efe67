/* SPDX-License-Identifier: MIT */
/* The check of tasks: goes through all their keys and looks whether every task stands in exactly the places
 * that its status names, while changes go on. What the findings mean is in the head of lua/task_check.lua. It
 * may run on any daemon, and on several: each step looks before it writes. */
#ifndef PERSIST_TASK_CHECK_H
#define PERSIST_TASK_CHECK_H

struct check_run;
struct config;
struct event_base;
struct redis;
struct task_check;

enum task_check_mode {
	TASK_CHECK_LOOK, /* changes nothing */
	TASK_CHECK_REPAIR
};

struct task_check *task_check_new(struct event_base *base, struct redis *redis, const struct config *config);
void task_check_free(struct task_check *c);
/* Starts it by a mode, waits for it, tells what it has found. */
struct check_run *task_check_run(struct task_check *c);

#endif
