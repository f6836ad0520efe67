/* SPDX-License-Identifier: MIT */
/* A borrowed piece of memory: pointer and length, not NUL-terminated, valid as long as its owner says. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
	const char *p;
	size_t n;
};

#define BYTES_LIT(s) ((struct bytes){(s), sizeof(s) - 1})

static inline struct bytes bytes_of(const char *s)
{
	return (struct bytes){s, strlen(s)};
}

bool bytes_eq(struct bytes a, struct bytes b);
/* ASCII case is ignored; `word` is a C string. */
bool bytes_is_word(struct bytes a, const char *word);

/* A whole decimal number with an optional '-', nothing before or after it. False, *ret untouched, otherwise.
 */
bool bytes_to_i64(struct bytes b, int64_t *ret) __attribute__((warn_unused_result));

/* Ids of departments, teams and queues: 1 to 64 of letters, digits, '_', '-', and not "-" alone. */
bool id_valid(struct bytes b);
/* Ids of employees and workers: the same, and '.' and '@'. */
bool person_id_valid(struct bytes b);
/* Names: valid UTF-8 up to 255 bytes, no control bytes. */
bool name_valid(struct bytes b);

/* Length of the UTF-8 sequence at p, of which there are n > 0 bytes; 0 when it is not a valid one. */
size_t utf8_sequence(const unsigned char *p, size_t n);

/* Cuts b at `separator` into at most `max` fields; the last takes the rest, separators and all. Returns how
 * many. */
int bytes_split(struct bytes b, char separator, struct bytes *fields, int max);
/* Cuts off and returns what is in front of the first separator, all of it when there is none; b becomes what
 * is behind. */
struct bytes bytes_cut(struct bytes *b, char separator);

/* Copies b into dst[cap] with a NUL, cutting what does not fit; returns dst. */
char *bytes_copy(char *dst, size_t cap, struct bytes b);

#define ID_MAX         64
#define NAME_MAX_BYTES 255

#endif
