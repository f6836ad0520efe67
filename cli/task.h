/* SPDX-License-Identifier: MIT */
/* What the files of `muster task` share: task.c has the verbs that give tasks in, take them and end them,
 * task_look.c those that look, task_many.c those that change many at once. */
#ifndef CLI_TASK_H
#define CLI_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/table.h"
#include "cli/verbs.h"

#define WORKER_MAX 65

/* The name of this machine, cut to what a worker may be called, with `.<suffix>` unless it is 0. */
void task_worker_name(char dst[WORKER_MAX], long suffix);
/* The whole of a file, `-` standard input. False after a message. */
bool task_read_file(const char *name, struct buf *out) __attribute__((warn_unused_result));
/* A duration as the server takes them; false after a message that names the option. */
bool task_duration(const char *option, const char *text, int64_t *ret_ms) __attribute__((warn_unused_result));
enum table_style task_status_style(const char *status);

/* task_look.c */
int task_list(const struct verb *verb, const struct verb_args *args);
int task_show(const struct verb *verb, const struct verb_args *args);
int task_stats(const struct verb *verb, const struct verb_args *args);

/* task_many.c */
int task_many(const struct verb *verb, const struct verb_args *args);

/* check.c */
int task_check(const struct verb *verb, const struct verb_args *args);

#endif
