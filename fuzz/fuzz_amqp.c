/* SPDX-License-Identifier: MIT */
/* The bytes are what a broker sends. The first one says how they are cut into pieces. */
#include <event2/buffer.h>
#include <stddef.h>
#include <stdint.h>

#include "mq/codec.h"
#include "mq/letter.h"

static void on_method(void *arg, uint16_t channel, const amqp_method_t *method)
{
	(void)arg;
	(void)channel;
	(void)amqp_method_name(method->id);
}

static void on_content(void *arg, uint16_t channel, const struct codec_content *content)
{
	struct mq_message m;

	(void)arg;
	(void)channel;
	letter_read(content, &m);
}

static const struct codec_handler handler = {on_method, on_content};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece = size > 0 && data[0] % 4 == 0 ? 1 : size > 0 ? data[0] : 1;
	struct codec *codec = codec_new(&handler, NULL);
	struct evbuffer *in = evbuffer_new();

	for (size_t at = 1; at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		evbuffer_add(in, data + at, n);
		if (codec_input(codec, in) != 0)
			break;
	}
	evbuffer_free(in);
	codec_free(codec);
	return 0;
}
