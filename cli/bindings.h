/* SPDX-License-Identifier: MIT */
/* Binding keys of the notices that `watch` and `subscribe` take: which kinds, of which department. */
#ifndef CLI_BINDINGS_H
#define CLI_BINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

#define BINDINGS_MAX 8

struct bindings {
	char text[BINDINGS_MAX][ID_MAX + 32];
	const char *keys[BINDINGS_MAX]; /* into `text` */
	size_t count;
};

/* `list` is such as "late,absent"; NULL = all of attendance. False for an unknown word or too many. */
bool bindings_make(struct bindings *b, const char *list, const char *dept, bool only_here)
	__attribute__((warn_unused_result));
/* For messages: the words of a list. */
extern const char bindings_words[];

#endif
