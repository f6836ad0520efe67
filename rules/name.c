/* SPDX-License-Identifier: MIT */
#include "rules/name.h"

#include <stdlib.h>
#include <utf8proc.h>

static bool map(struct buf *out, struct bytes name, utf8proc_option_t options, size_t most)
{
	utf8proc_uint8_t *text = NULL;
	utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)name.p, (utf8proc_ssize_t)name.n, &text,
		(utf8proc_option_t)(UTF8PROC_STABLE | options));
	bool fits = n >= 0 && (size_t)n <= most;

	if (fits)
		buf_add(out, (const char *)text, (size_t)n);
	free(text);
	return fits;
}

bool name_normalise(struct buf *out, struct bytes name)
{
	return map(out, name, UTF8PROC_COMPOSE, NAME_MAX_BYTES);
}

void name_fold(struct buf *out, struct bytes name)
{
	/* Folding makes a text at most three times as long. */
	(void)map(out, name, (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD), 4 * NAME_MAX_BYTES);
}
