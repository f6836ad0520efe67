/* SPDX-License-Identifier: MIT */
/* Reading replies. In RESP2 a map is a flat array of field, value; which replies are maps is known from the
 * command. All pointers that come from here live as long as the reply. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <hiredis/hiredis.h>
#include <jansson.h>

#include "base/bytes.h"

/* The value of a field of a map; NULL when the map lacks it or it is null. */
const redisReply *answer_field(const redisReply *map, const char *name);
/* The text of a field; empty when it is missing, null or not a string. */
struct bytes answer_bytes(const redisReply *map, const char *name);
/* The same as a C string, "" when there is none. */
const char *answer_str(const redisReply *map, const char *name);
/* An integer, or a string of digits; `fallback` when there is none. */
int64_t answer_int(const redisReply *map, const char *name, int64_t fallback);

/* A reply of two, next cursor and items: the items, and the cursor ("" at the end). NULL after a message when
 * the reply is something else. */
const redisReply *answer_page(const redisReply *reply, const char **ret_cursor);

/* As JSON: strings that are not UTF-8 have their bad bytes replaced by U+FFFD. The caller owns the value. */
json_t *answer_json(const redisReply *reply);
json_t *answer_map_json(const redisReply *map);
/* Writes a value as one line on stdout and releases it. */
void answer_print(json_t *value);

#endif
