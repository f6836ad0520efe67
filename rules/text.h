/* SPDX-License-Identifier: MIT */
/* Text of programs, such as what they say when they fail: kept even when it is broken or too long. */
#ifndef RULES_TEXT_H
#define RULES_TEXT_H

#include "base/buf.h"

/* Appends at most `most` bytes of valid UTF-8: what is none becomes U+FFFD, and no character is cut apart. */
void text_keep(struct buf *out, struct bytes text, size_t most);

#endif
