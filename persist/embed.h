/* SPDX-License-Identifier: MIT */
/* Files that tools/embed.py put into the program at build time: migrations and scripts. */
#ifndef PERSIST_EMBED_H
#define PERSIST_EMBED_H

#include <stddef.h>

struct embed_file {
	const char *name; /* without folder and ending */
	const char *data; /* NUL-terminated; the NUL is not counted */
	size_t size;
};

#endif
