/* SPDX-License-Identifier: MIT */
/* From journal to notices: takes windows of journal records, makes one message of the consecutive events of a
 * department and kind, publishes, and lets the cursor move when the broker has confirmed every message of the
 * window. A message that no queue took, or that the broker failed on, is tried again for as long as it takes.
 */
#ifndef MQ_RELAY_H
#define MQ_RELAY_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct journal_window;
struct mq;
struct relay;
struct tree;

/* done(window, ok) is journal_done() of the reader that hands out the windows. `task_ends` is the
 * configuration's [task] notices, which a reload may change. */
struct relay *relay_new(struct event_base *base, struct mq *mq, struct tree *tree, const int64_t *task_ends,
	void (*done)(struct journal_window *window, bool ok, void *arg), void *arg);
/* After the tree. Windows under way are dropped without a word: the cursor in Redis has not moved. */
void relay_free(struct relay *r);
/* For struct journal_spec; arg is the relay. */
void relay_process(struct journal_window *window, void *arg);

#endif
