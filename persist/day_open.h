/* SPDX-License-Identifier: MIT */
/* Readying the maps of a date for all departments of a partition that may have employees. Those are the ones
 * that `days` names: who is hired into a department without employees makes its maps, and with them its
 * entries there. A department that nobody was ever hired into costs nothing. */
#ifndef PERSIST_DAY_OPEN_H
#define PERSIST_DAY_OPEN_H

#include <stdbool.h>
#include <stdint.h>

struct redis;

/* done(ok, maps) once, later; `maps` are the departments that were looked at. */
void day_open_start(struct redis *redis, int partition, int32_t day,
	void (*done)(bool ok, int64_t maps, void *arg), void *arg);

#endif
