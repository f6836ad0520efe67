/* SPDX-License-Identifier: MIT */
/* From the organisation's journal to MySQL: departments with their paths, and who has joined which team.
 *
 * A change of the tree changes the paths of all below it, so records must be applied in order and each
 * exactly once: up to where they are is kept in the same database and moves in the same transaction. A window
 * is one transaction; rows in a row are one statement, a change of many paths is one of its own. */
#ifndef PERSIST_LEDGER_TREE_H
#define PERSIST_LEDGER_TREE_H

#include <stdbool.h>

struct journal_window;
struct mysql_link;

/* done(ok) once, later; !ok: do it again. */
void ledger_tree_start(
	struct mysql_link *link, struct journal_window *window, void (*done)(bool ok, void *arg), void *arg);

#endif
