/* SPDX-License-Identifier: MIT */
#include "rules/text.h"

#define REPLACEMENT BYTES_LIT("\xef\xbf\xbd")

/* Cuts one character, or one byte that belongs to none, off the front and returns what is kept for it. */
static struct bytes next_character(struct bytes *text)
{
	size_t n = utf8_sequence((const unsigned char *)text->p, text->n);
	struct bytes kept = n > 0 ? (struct bytes){text->p, n} : REPLACEMENT;

	n += n == 0;
	text->p += n;
	text->n -= n;
	return kept;
}

void text_keep(struct buf *out, struct bytes text, size_t most)
{
	while (text.n > 0) {
		struct bytes c = next_character(&text);
		if (c.n > most)
			return;
		buf_add_bytes(out, c);
		most -= c.n;
	}
}
