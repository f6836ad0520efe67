/* SPDX-License-Identifier: MIT */
/* How often each word was seen: kinds of replies, codes of errors, values of a field. Few words; the rest are
 * counted together. */
#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include <jansson.h>
#include <stdint.h>

#include "base/bytes.h"

#define TALLY_WORDS 32
#define TALLY_WORD  32 /* bytes of a word that are kept, with its NUL */

struct tally {
	struct {
		char text[TALLY_WORD];
		size_t n;
		uint64_t count;
	} words[TALLY_WORDS];
	int used;
	uint64_t other;
};

void tally_add(struct tally *t, struct bytes word);
/* An object, word to count. */
json_t *tally_json(const struct tally *t);

#endif
