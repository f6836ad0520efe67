/* SPDX-License-Identifier: MIT */
/* Text for a terminal: how many columns UTF-8 takes, and bytes of others made harmless (a name with an escape
 * sequence must not drive the reader's terminal). */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Sets a UTF-8 character set for the process, whatever the environment says. Before anything else here. */
void text_init(void);
/* Does the environment say that more than ASCII can be shown? */
bool text_is_utf8(void);
/* Columns of n bytes of UTF-8; a byte or character that can't be shown counts as one, as text_clean() shows
 * it. */
size_t text_width(const char *s, size_t n);
/* Adds the text with control characters and invalid bytes replaced by '?'. */
void text_clean(struct buf *out, const char *s, size_t n);

#endif
