/* SPDX-License-Identifier: MIT */
#include "persist/stream_id.h"

#include <stdio.h>

bool stream_id_parse(struct bytes text, struct stream_id *ret)
{
	struct bytes part[2];
	struct stream_id id;

	if (bytes_split(text, '-', part, 2) != 2 || !bytes_to_i64(part[0], &id.ms) ||
		!bytes_to_i64(part[1], &id.number))
		return false;
	*ret = id;
	return true;
}

char *stream_id_format(struct stream_id id, char text[STREAM_ID_TEXT])
{
	snprintf(text, STREAM_ID_TEXT, "%lld-%lld", (long long)id.ms, (long long)id.number);
	return text;
}

int stream_id_compare(struct stream_id a, struct stream_id b)
{
	if (a.ms != b.ms)
		return a.ms < b.ms ? -1 : 1;
	return (a.number > b.number) - (a.number < b.number);
}
