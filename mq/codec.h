/* SPDX-License-Identifier: MIT */
/* AMQP 0-9-1 frames to and from evbuffers, without a socket.
 *
 * In: codec_input() takes whole frames off a buffer, checks each header before anything is decoded, puts
 * contents (method, header, bodies) together, and calls the handler. What a handler is given lives until it
 * returns. After an error the codec is of no more use: drop the connection. Out: codec_put_*() encode
 * straight into the output buffer. */
#ifndef MQ_CODEC_H
#define MQ_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "mq/rabbitmq.h"

struct evbuffer;
struct codec;

#define CODEC_CHANNELS      16     /* channel numbers 0 to 15 */
#define CODEC_FRAME_DEFAULT 131072 /* what we ask for; a server without a limit gets it too */
#define CODEC_FRAME_MIN     4096   /* the least a server may ask for */
#define CODEC_FRAME_FIRST   65536  /* what is taken before a size is agreed on */

/* A method with its properties and body: basic.deliver, basic.return or basic.get-ok. */
struct codec_content {
	const amqp_method_t *method;
	const amqp_basic_properties_t *properties;
	struct bytes body;
};

struct codec_handler {
	void (*method)(void *arg, uint16_t channel, const amqp_method_t *method);
	void (*content)(void *arg, uint16_t channel, const struct codec_content *content);
};

/* `handler` must outlive the codec. */
struct codec *codec_new(const struct codec_handler *handler, void *arg);
void codec_free(struct codec *c);
void codec_set_frame_max(struct codec *c, uint32_t frame_max);

/* Takes what is whole off `in`. 0, or -1 with a reason in codec_error(). */
int codec_input(struct codec *c, struct evbuffer *in) __attribute__((warn_unused_result));
/* From inside a handler: codec_input() returns after it and takes nothing more. */
void codec_stop(struct codec *c);
const char *codec_error(const struct codec *c);

/* Each returns 0, or -1 when it does not fit a frame or memory; then the connection must be dropped. */
int codec_put_greeting(struct evbuffer *out) __attribute__((warn_unused_result));
int codec_put_heartbeat(struct evbuffer *out) __attribute__((warn_unused_result));
int codec_put_method(struct evbuffer *out, uint16_t channel, amqp_method_number_t id, void *decoded)
	__attribute__((warn_unused_result));

/* basic.publish with its header and body frames. -1 without anything written when the routing key is longer
 * than 255 bytes or the properties do not fit a frame. */
int codec_put_publish(struct evbuffer *out, uint16_t channel, uint32_t frame_max,
	amqp_basic_publish_t *publish, amqp_basic_properties_t *properties, struct bytes body)
	__attribute__((warn_unused_result));

#endif
