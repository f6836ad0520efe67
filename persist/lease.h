/* SPDX-License-Identifier: MIT */
/* Which partitions this daemon looks after: reads their journals, closes their days. Daemons on one Redis
 * share the partitions by leases that are renewed three times a lease; a daemon that stops renewing loses
 * them, and scripts that move a cursor or end a close check the lease themselves, so a daemon that slept can
 * do no harm. */
#ifndef PERSIST_LEASE_H
#define PERSIST_LEASE_H

#include <stdbool.h>

struct config;
struct event_base;
struct lease;
struct redis;

struct lease *lease_new(struct event_base *base, struct redis *redis, const struct config *config);
void lease_free(struct lease *l);

/* Ours now, as far as we know. Partition keys_org() is the organisation. */
bool lease_holds(const struct lease *l, int partition);
/* The name of this run of the daemon in owner keys: host, port, pid and a random number; valid as long as the
 * lease. At start it takes over what an earlier run at the same host and port has left: a crash costs no
 * waiting. */
const char *lease_name(const struct lease *l);
/* At least one round of the lease script has been answered since the link came up. */
bool lease_settled(const struct lease *l);
/* Gives all up, so that another daemon can go on at once. */
void lease_give_up(struct lease *l);

#endif
