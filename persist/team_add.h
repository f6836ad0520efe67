/* SPDX-License-Identifier: MIT */
/* Adding a node to the tree, with the day maps of today and tomorrow. The reply's letters are in
 * lua/team_add.lua. */
#ifndef PERSIST_TEAM_ADD_H
#define PERSIST_TEAM_ADD_H

#include <stdint.h>

#include "persist/redis.h"

/* Depth that no node may pass. */
#define TEAM_DEPTH_MAX 64

/* An empty parent makes a root. */
enum redis_sent team_add_send(struct redis *redis, struct bytes id, struct bytes parent, struct bytes name,
	struct bytes manager, int32_t today, redis_cb cb, void *arg) __attribute__((warn_unused_result));

#endif
