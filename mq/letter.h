/* SPDX-License-Identifier: MIT */
/* Reads a received message: its properties, our x-muster-* headers, and what the broker's x-death says about
 * why it is here. Nothing in it is trusted: a missing or odd field reads as empty. The bytes live as long as
 * the content they were read from. */
#ifndef MQ_LETTER_H
#define MQ_LETTER_H

#include "mq/codec.h"
#include "mq/message.h"

#define HEADER_ATTEMPT "x-muster-attempt"
#define HEADER_QUEUE   "x-muster-queue"
#define HEADER_REASON  "x-muster-reason"
#define HEADER_KEY     "x-muster-key"

/* Fills *ret but for exchange and routing key, which are left empty. `queue` and `reason` are of the last
 * death: the newest x-death entry that is not of a delay queue, or else our headers. */
void letter_read(const struct codec_content *content, struct mq_message *ret);

#endif
