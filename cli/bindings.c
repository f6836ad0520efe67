/* SPDX-License-Identifier: MIT */
#include "cli/bindings.h"

#include <stdio.h>

#include "base/mem.h"

const char bindings_words[] = "in, out, late, absent, withdrawn, closed, digest, team";

static const struct {
	const char *word, *key;
} kinds[BINDINGS_MAX] = {
	{"in", "attendance.in"},
	{"out", "attendance.out"},
	{"late", "attendance.late"},
	{"absent", "attendance.absent"},
	{"withdrawn", "attendance.withdrawn"},
	{"closed", "attendance.closed"},
	{"digest", "attendance.digest"},
	{"team", "team.*"},
};

static void add(struct bindings *b, const char *key, const char *dept, bool only_here)
{
	snprintf(b->text[b->count], sizeof(b->text[0]), "%s.%s%s", key, dept, only_here ? "" : ".#");
	b->keys[b->count] = b->text[b->count];
	b->count++;
}

static const char *find_key(struct bytes word)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (bytes_eq(word, bytes_of(kinds[i].word)))
			return kinds[i].key;
	}
	return NULL;
}

bool bindings_make(struct bindings *b, const char *list, const char *dept, bool only_here)
{
	b->count = 0;
	if (list == NULL) {
		add(b, "attendance.*", dept, only_here);
		return true;
	}
	while (b->count < BINDINGS_MAX) {
		struct bytes word = {list, strcspn(list, ",")};
		const char *key = find_key(word);
		if (key == NULL)
			return false;
		add(b, key, dept, only_here);
		if (list[word.n] == '\0')
			return true;
		list += word.n + 1;
	}
	return false;
}
