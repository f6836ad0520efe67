/* SPDX-License-Identifier: MIT */
/* DAY.CLOSE reaches every daemon: what one is asked for stands in the hash `meta`, where the others see it.
 */
#ifndef HANDLERS_CLOSE_ASK_H
#define HANDLERS_CLOSE_ASK_H

#include <stdint.h>

#include "base/bytes.h"
#include "persist/redis.h"

struct app;

/* Other daemons on this Redis close the day in their partitions, too; with a department only its owner does.
 */
void close_ask_others(struct app *app, int32_t day, struct bytes dept);
/* Takes up what others have been asked for. */
void close_ask_look(struct app *app);

/* Sends a command on `meta` with further words, which end with NULL; the callback gets the app. A command
 * that can't be sent is dropped: the link is down, and its return begins again. cb NULL: nobody waits for the
 * reply. */
void meta_send(struct app *app, redis_cb cb, const char *command, const char *const *words);

#endif
