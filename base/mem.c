/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static void *must(void *ptr, size_t size)
{
	if (ptr == NULL && size != 0) {
		log_error("base mem event=out-of-memory bytes=%zu", size);
		abort();
	}
	return ptr;
}

void *xmalloc(size_t size)
{
	return must(malloc(size), size);
}

void *xcalloc(size_t count, size_t size)
{
	return must(calloc(count, size), count * size);
}

void *xrealloc(void *ptr, size_t size)
{
	return must(realloc(ptr, size), size);
}

char *xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *xstrndup(const char *s, size_t n)
{
	char *copy = xmalloc(n + 1);
	memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}
