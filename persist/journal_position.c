/* SPDX-License-Identifier: MIT */
#include "persist/journal_position.h"

struct journal_position journal_position_of(struct bytes ref)
{
	struct bytes f[4];
	struct journal_position p = {0};

	if (bytes_split(ref, '-', f, 4) == 4 && bytes_to_i64(f[1], &p.ms) && bytes_to_i64(f[2], &p.number) &&
		bytes_to_i64(f[3], &p.index))
		return p;
	return (struct journal_position){0};
}

bool journal_position_after(struct bytes ref, struct bytes other)
{
	struct journal_position a = journal_position_of(ref), b = journal_position_of(other);

	if (a.ms != b.ms)
		return a.ms > b.ms;
	return a.number != b.number ? a.number > b.number : a.index > b.index;
}

void journal_position_add(struct buf *out, struct bytes ref)
{
	struct journal_position p = journal_position_of(ref);

	/* The number is mostly small, but grows for as long as the clock of Redis stands behind the journal.
	 */
	buf_addf(out, "%013lld-%09lld-%05lld", (long long)p.ms, (long long)p.number, (long long)p.index);
}
