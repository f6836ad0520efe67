/* SPDX-License-Identifier: MIT */
/* Ids of entries in a stream of Redis, "<ms>-<number>": their order is that of the numbers, not of the text.
 */
#ifndef PERSIST_STREAM_ID_H
#define PERSIST_STREAM_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define STREAM_ID_TEXT 42

/* All 0 = before the first entry. */
struct stream_id {
	int64_t ms, number;
};

bool stream_id_parse(struct bytes text, struct stream_id *ret) __attribute__((warn_unused_result));
/* Returns text. */
char *stream_id_format(struct stream_id id, char text[STREAM_ID_TEXT]);
/* Less than, equal to or greater than 0, as memcmp(). */
int stream_id_compare(struct stream_id a, struct stream_id b);

#endif
