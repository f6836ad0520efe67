/* SPDX-License-Identifier: MIT */
/* Small, fixed-size allocations: on failure the process ends with a log line, since nothing sensible can be
 * done without 100 bytes. What a peer decides the size of goes through buf.h, which refuses instead. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

/* Each returns memory that the caller frees with free(); none returns NULL. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *ptr, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
