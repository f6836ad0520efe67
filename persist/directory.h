/* SPDX-License-Identifier: MIT */
/* Which department an employee is at home in: a cache of the dir: keys. It may be outdated at any time; the
 * scripts check it and say so, and the caller asks again. Look-ups of one turn go out as one MGET. */
#ifndef PERSIST_DIRECTORY_H
#define PERSIST_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct directory;
struct redis;

/* dept is empty when there is no such employee; or error is the text for the client. */
typedef void (*directory_cb)(struct bytes dept, const char *error, void *arg);

struct directory *directory_new(struct redis *redis, const int64_t *max_entries);
void directory_free(struct directory *d);

/* Empty when it is not known here. Valid until the next call of the loop. */
struct bytes directory_peek(struct directory *d, struct bytes employee);
/* Whether he is known; if so he is now the youngest of his part of the cache, and the last to give way. */
bool directory_touch(struct directory *d, struct bytes employee);
/* Asks Redis and remembers the answer. The callback comes once, later. */
void directory_lookup(struct directory *d, struct bytes employee, directory_cb cb, void *arg);
void directory_put(struct directory *d, struct bytes employee, struct bytes dept);
void directory_forget(struct directory *d, struct bytes employee);
int64_t directory_count(const struct directory *d);

#endif
