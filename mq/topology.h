/* SPDX-License-Identifier: MIT */
/* The exchanges and queues of Muster, brought into being on a channel of their own whenever the link opens.
 *
 * Each is first looked for passively and declared when it is missing. One that exists is declared too, to
 * compare: the broker refuses when it differs (406). That is reported and left alone; what depends on it does
 * not run. Without the right to declare (403) an existing one is taken as it is. */
#ifndef MQ_TOPOLOGY_H
#define MQ_TOPOLOGY_H

#include <stdbool.h>

#include "mq/delays.h"
#include "mq/rabbitmq.h"

struct link;
struct topology;

#define TOPOLOGY_NOTICES      "muster.notices"
#define TOPOLOGY_SUPERVISORS  "muster.supervisors"
#define TOPOLOGY_DEAD         "muster.dead"
#define TOPOLOGY_PARKED       "muster.parked"
#define TOPOLOGY_DELAY_PREFIX "muster.delay."

/* What can be used on its own. */
enum topology_part {
	TOPOLOGY_PART_NOTICES = 1 << 0,     /* the exchange: notices can be published */
	TOPOLOGY_PART_RETRY = 1 << 1,       /* dead, parked and the delays */
	TOPOLOGY_PART_SUPERVISORS = 1 << 2, /* the default queue and its bindings */
};

/* Runs at once when the link opens. `done` comes after each run with the parts that are as they should be. */
struct topology *topology_new(
	struct link *link, const struct delays *delays, void (*done)(void *arg, unsigned parts), void *arg);
void topology_free(struct topology *t);
/* Runs again, unless it runs already or the link is down. */
void topology_run(struct topology *t);
/* The last mismatch in words, "" when there is none. */
const char *topology_problem(const struct topology *t);

/* The arguments of a quorum queue whose dead messages go to muster.dead. Fills entries[TOPOLOGY_QUEUE_ARGS].
 */
#define TOPOLOGY_QUEUE_ARGS 3
amqp_table_t topology_queue_args(amqp_table_entry_t *entries);

#endif
