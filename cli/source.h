/* SPDX-License-Identifier: MIT */
/* A file to be read more than once: what can't be (a pipe, a terminal) is copied to a temporary file first.
 */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include <sys/types.h>

struct source {
	const char *name; /* as messages have it */
	int fd;           /* -1 = none */
	off_t start, size;
};

/* `-` is standard input, from where it stands. 0, or -1 after a message. Close in both cases. */
int source_open(struct source *s, const char *name) __attribute__((warn_unused_result));
void source_close(struct source *s);

#endif
