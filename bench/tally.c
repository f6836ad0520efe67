/* SPDX-License-Identifier: MIT */
#include "bench/tally.h"

void tally_add(struct tally *t, struct bytes word)
{
	if (word.n >= TALLY_WORD)
		word.n = TALLY_WORD - 1;
	for (int i = 0; i < t->used; i++) {
		if (t->words[i].n == word.n && memcmp(t->words[i].text, word.p, word.n) == 0) {
			t->words[i].count++;
			return;
		}
	}
	if (t->used == TALLY_WORDS) {
		t->other++;
		return;
	}
	bytes_copy(t->words[t->used].text, TALLY_WORD, word);
	t->words[t->used].n = word.n;
	t->words[t->used++].count = 1;
}

json_t *tally_json(const struct tally *t)
{
	json_t *all = json_object();

	for (int i = 0; i < t->used; i++)
		json_object_set_new(all, t->words[i].text, json_integer((json_int_t)t->words[i].count));
	if (t->other > 0)
		json_object_set_new(all, "other", json_integer((json_int_t)t->other));
	return all;
}
