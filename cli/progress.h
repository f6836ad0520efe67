/* SPDX-License-Identifier: MIT */
/* Progress on stderr: on a terminal one line that is redrawn, otherwise a plain line now and then. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress;

/* `what` names the thing that is done and `unit` what is counted; both must outlive it. */
struct progress *progress_new(const char *what, const char *unit);
/* Ends the line, with the last state drawn when anything was. Takes NULL. */
void progress_free(struct progress *p);

/* `done` of `total` parts decide percent and remaining time (0 = unknown); `count` is what is shown and
 * counted a second. Draws when enough time has passed. */
void progress_set(struct progress *p, uint64_t done, uint64_t total, uint64_t count);
/* Takes the line away, so that a message can be written; it comes back with the next state. Takes NULL. */
void progress_hide(struct progress *p);

#endif
