/* SPDX-License-Identifier: MIT */
/* Readying a day map from the members of its department, page by page. Safe to repeat and to do twice at
 * once. */
#ifndef PERSIST_DAY_INIT_H
#define PERSIST_DAY_INIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct redis;

/* done(ok) once, later. */
void day_init_start(
	struct redis *redis, struct bytes dept, int32_t day, void (*done)(bool ok, void *arg), void *arg);

#endif
