/* SPDX-License-Identifier: MIT */
/* Feeds a stream of requests to the parser twice, in one piece and in small ones, and compares what it made
 * of them. Every call gets its bytes in a block of exactly their size, so that the address sanitizer sees a
 * read past the end. The first byte of the input selects the limits, the second the size of the pieces. */
#include "daemon/resp.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define END_OF_RECORD "\n--\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct resp_limits limits[] = {
	{.max_line = 64 * 1024, .max_args = 1024, .max_payload = 1024 * 1024},
	{.max_line = 64, .max_args = 4, .max_payload = 128},
	{.max_line = 1024, .max_args = 16, .max_payload = 1024},
};

/* The caller's part of the bargain: the bytes not consumed yet. */
struct feed {
	struct resp parser;
	const struct resp_limits *limits;
	char *bytes; /* a block of exactly len bytes */
	size_t len;
	bool closed;
	struct buf seen; /* what the parser said, to compare */
};

static void keep(struct feed *f, const char *from, size_t len, const char *more, size_t more_len)
{
	char *block = malloc(len + more_len > 0 ? len + more_len : 1);

	if (block == NULL)
		abort();
	if (len > 0)
		memcpy(block, from, len);
	if (more_len > 0)
		memcpy(block + len, more, more_len);
	free(f->bytes);
	f->bytes = block;
	f->len = len + more_len;
}

static void note_command(struct feed *f, size_t consumed)
{
	for (size_t i = 0; i < f->parser.argc; i++) {
		const struct resp_arg *arg = &f->parser.args[i];
		if (arg->at > consumed || arg->n > consumed - arg->at)
			abort();
		buf_addf(&f->seen, "%zu:", arg->n);
		buf_add(&f->seen, f->bytes + arg->at, arg->n);
	}
	if (f->parser.argc == 0 || f->parser.argc > f->limits->max_args)
		abort();
}

/* What was skipped or empty may be told in one piece or in several, and a wrong head may be found wrong
 * before or after its end has come; all else is the same. */
static void note(struct feed *f, enum resp_status status, size_t consumed)
{
	if (status == RESP_EMPTY)
		return;
	if (status == RESP_COMMAND)
		note_command(f, consumed);
	else if (f->parser.error == NULL || f->parser.error[0] == '\0')
		abort();
	buf_addf(&f->seen, " %d" END_OF_RECORD, (int)status);
}

/* Parses as far as the bytes go. */
static void drain(struct feed *f)
{
	while (!f->closed) {
		size_t consumed = 0;
		enum resp_status status = resp_parse(&f->parser, f->limits, f->bytes, f->len, &consumed);
		if (consumed > f->len)
			abort();
		if (status != RESP_MORE)
			note(f, status, consumed);
		else if (f->parser.need <= f->len - consumed)
			abort(); /* would be called again for nothing */
		f->closed = status == RESP_ERROR;
		keep(f, f->bytes + consumed, f->len - consumed, NULL, 0);
		if (status == RESP_MORE)
			return;
	}
}

static void run(struct feed *f, const char *data, size_t size, size_t piece)
{
	resp_init(&f->parser);
	for (size_t at = 0; at < size && !f->closed; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		keep(f, f->bytes, f->len, data + at, n);
		drain(f);
	}
	resp_release(&f->parser);
	free(f->bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3)
		return 0;
	struct feed whole = {.limits = &limits[data[0] % ARRAY_LEN(limits)], .seen = BUF_INIT};
	struct feed pieces = {.limits = whole.limits, .seen = BUF_INIT};
	const char *stream = (const char *)data + 2;

	run(&whole, stream, size - 2, size - 2);
	run(&pieces, stream, size - 2, (size_t)data[1] % 61 + 1);
	if (whole.seen.len != pieces.seen.len)
		abort();
	if (whole.seen.len > 0 && memcmp(whole.seen.data, pieces.seen.data, whole.seen.len) != 0)
		abort();
	buf_release(&whole.seen);
	buf_release(&pieces.seen);
	return 0;
}
