/* SPDX-License-Identifier: MIT */
/* Reads CSV twice, in one piece and in small ones, and compares what came out. The first byte of the input is
 * the size of the pieces. Each piece is a block of exactly its size, so that a read past its end is seen. */
#include "cli/csv.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct buf text;
	uint64_t line; /* of the last record or error; they never go back */
};

static void note_line(struct seen *seen, uint64_t line)
{
	if (line < 1 || line < seen->line)
		abort();
	seen->line = line;
}

static int on_record(const struct csv_record *record, void *arg)
{
	struct seen *seen = arg;
	size_t bytes = 0;

	note_line(seen, record->line);
	buf_addf(&seen->text, "%llu:", (unsigned long long)record->line);
	for (size_t i = 0; i < record->count; i++) {
		buf_addf(&seen->text, "%zu ", record->fields[i].n);
		buf_add_bytes(&seen->text, record->fields[i]);
		bytes += record->fields[i].n;
	}
	if (record->count < 1 || record->count > CSV_MAX_FIELDS || bytes > CSV_MAX_RECORD)
		abort();
	return 0;
}

static int on_error(uint64_t line, const char *message, void *arg)
{
	struct seen *seen = arg;

	note_line(seen, line);
	buf_addf(&seen->text, "%llu!%s ", (unsigned long long)line, message);
	return 0;
}

static void feed(struct csv *csv, const uint8_t *data, size_t size)
{
	char *block = malloc(size > 0 ? size : 1);

	if (block == NULL)
		abort();
	if (size > 0)
		memcpy(block, data, size);
	if (csv_feed(csv, block, size) != 0)
		abort();
	free(block);
}

static void read_all(const uint8_t *data, size_t size, size_t piece, struct seen *seen)
{
	static const struct csv_events events = {on_record, on_error};
	struct csv *csv = csv_new(&events, seen);

	for (size_t at = 0; at < size; at += piece)
		feed(csv, data + at, size - at < piece ? size - at : piece);
	if (csv_end(csv) != 0)
		abort();
	csv_free(csv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = {0}, pieces = {0};

	if (size < 2)
		return 0;
	read_all(data + 1, size - 1, size, &whole);
	read_all(data + 1, size - 1, (size_t)data[0] + 1, &pieces);
	if (whole.text.len != pieces.text.len || whole.line != pieces.line)
		abort();
	if (whole.text.len > 0 && memcmp(whole.text.data, pieces.text.data, whole.text.len) != 0)
		abort();
	buf_release(&whole.text);
	buf_release(&pieces.text);
	return 0;
}
