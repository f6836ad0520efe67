/* SPDX-License-Identifier: MIT */
/* The waits between the tries of a dead message, from the text of the configuration: `5s 30s 5m`. The text of
 * each is part of the name of its queue, so it is kept as written. */
#ifndef MQ_DELAYS_H
#define MQ_DELAYS_H

#include <stdint.h>

#include "base/buf.h"

#define DELAYS_MAX     16
#define DELAY_TEXT_MAX 16

struct delays {
	int count;
	struct {
		char text[DELAY_TEXT_MAX];
		int64_t ms;
	} item[DELAYS_MAX];
};

/* Words of a positive number and ms, s, m, h or d, with blanks or commas between them, each from 1 ms to 30
 * days; an empty text is no delay at all. -1 with what is wrong in `errors`, *ret then untouched. */
int delays_parse(struct delays *ret, const char *text, struct buf *errors)
	__attribute__((warn_unused_result));

#endif
