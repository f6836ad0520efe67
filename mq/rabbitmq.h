/* SPDX-License-Identifier: MIT */
/* librabbitmq as this folder uses it: its encoders and decoders only, none of its sockets. The one place that
 * knows where a version keeps its headers. */
#ifndef MQ_RABBITMQ_H
#define MQ_RABBITMQ_H

#if defined(__has_include) && __has_include(<rabbitmq-c/amqp.h>)
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/framing.h>
#else
#include <amqp.h>
#include <amqp_framing.h>
#endif

#include "base/bytes.h"

/* The library's type is not const, but nothing it does with it writes. */
static inline amqp_bytes_t amqp_from(struct bytes b)
{
	amqp_bytes_t out = {.len = b.n};

	memcpy(&out.bytes, &b.p, sizeof(out.bytes));
	return out;
}

static inline amqp_bytes_t amqp_text(const char *s)
{
	return amqp_from(bytes_of(s));
}

static inline struct bytes amqp_to(amqp_bytes_t b)
{
	return (struct bytes){b.bytes, b.len};
}

#endif
