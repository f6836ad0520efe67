/* SPDX-License-Identifier: MIT */
/* The sections of INFO. Whoever has something to say registers a function once, at start; INFO calls them in
 * that order. A section's text is lines `key:value\r\n` without its `# Name` head. */
#ifndef BASE_INFO_H
#define BASE_INFO_H

#include "base/buf.h"

void info_register(const char *section, void (*fn)(struct buf *out, void *arg), void *arg);
/* Writes one section by name (case ignored), or all for NULL, "all", "default" or "everything". */
void info_write(struct buf *out, const char *section);

#endif
