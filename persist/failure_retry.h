/* SPDX-License-Identifier: MIT */
/* Tries open failures again, after somebody has mended their cause: a day row is judged and written, a raw
 * event or a task is written. Each is one transaction with its failure's new state, so repeating does nothing
 * twice. What was rejected for its time can't be retried, only discarded. */
#ifndef PERSIST_FAILURE_RETRY_H
#define PERSIST_FAILURE_RETRY_H

#include <stdint.h>

struct mysql_link;

/* id 0: all open ones, at most 1,000 a call. done() once, later: how many were written, or an error for the
 * client. */
void failure_retry_start(struct mysql_link *link, int64_t id,
	void (*done)(int64_t written, const char *error, void *arg), void *arg);

#endif
