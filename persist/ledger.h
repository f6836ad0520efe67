/* SPDX-License-Identifier: MIT */
/* From journal to MySQL: raw punches, employees as of now, tasks (ledger_task.h), refused events, and the
 * revision of rows whose day was closed when a punch arrived. A window is one transaction; the cursor moves
 * after its commit, and every statement bears repetition. The organisation's journal is for ledger_tree.h. */
#ifndef PERSIST_LEDGER_H
#define PERSIST_LEDGER_H

#include <stdbool.h>

#include "base/buf.h"

struct journal_window;
struct ledger;
struct mysql_link;
struct tree;

/* done(window, ok) is journal_done() of the reader that hands out the windows. */
struct ledger *ledger_new(struct mysql_link *link, const struct tree *tree,
	void (*done)(struct journal_window *window, bool ok, void *arg), void *arg);
/* After the link has been freed: what was under way has ended then. */
void ledger_free(struct ledger *l);
/* For struct journal_spec; arg is the ledger. */
void ledger_process(struct journal_window *window, void *arg);

/* The INSERT of one raw punch from its journal record; false when it is not one. */
bool ledger_event_insert(struct buf *out, struct bytes record, struct bytes ref)
	__attribute__((warn_unused_result));

#endif
