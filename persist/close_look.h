/* SPDX-License-Identifier: MIT */
/* Reads the `days` hashes of partitions: which department's day is not closed yet. */
#ifndef PERSIST_CLOSE_LOOK_H
#define PERSIST_CLOSE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "persist/closer.h"

struct close_look_spec {
	const struct closer_deps *deps;
	/* One open or closing day of a department; dept is valid during the call. */
	void (*found)(int partition, struct bytes dept, int32_t day, void *arg);
	/* All partitions have been read, or !ok: some could not be. */
	void (*done)(bool ok, void *arg);
	void *arg;
};

/* Reads the partitions that are set in wanted[]. For those that are set in fresh[] it also sets right what
 * day_close says of days that are closed in Redis. done() once, later. */
void close_look_start(const struct close_look_spec *spec, const bool *wanted, const bool *fresh);

#endif
