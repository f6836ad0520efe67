/* SPDX-License-Identifier: MIT */
/* The commands that a load generator sends, encoded once: a list, gone through in order and begun again when
 * more requests are wanted than it has. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct work {
	struct buf text; /* RESP, one behind the other */
	size_t *ends;    /* of each command in `text` */
	size_t count, cap;
};

void work_release(struct work *w);
/* A command from words, in RESP, behind what is in `out`. */
void work_encode(struct buf *out, const struct bytes *words, int count);
/* One command from words. */
void work_add(struct work *w, const struct bytes *words, int count);
/* Every line of a file ("-" = stdin) is a command, its words between blanks. 0, or -1 with errno set. */
int work_read(struct work *w, const char *file) __attribute__((warn_unused_result));
/* The file holds commands encoded in RESP, one behind the other. 0, or -1 with errno set. */
int work_read_resp(struct work *w, const char *file) __attribute__((warn_unused_result));
/* One command for each line of a file: the words, with {} replaced by the line. 0, or -1 with errno set. */
int work_expand(struct work *w, const char *file, char *const *words, int count)
	__attribute__((warn_unused_result));

struct bytes work_command(const struct work *w, uint64_t number);

#endif
