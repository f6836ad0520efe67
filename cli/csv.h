/* SPDX-License-Identifier: MIT */
/* CSV as in RFC 4180. The reader streams: bytes go in by pieces of any size, records come out by callback.
 * Fields are separated by ',', may be quoted with '"' ('""' inside is one quote, line ends inside are data),
 * lines end in LF or CRLF, a UTF-8 byte order mark at the start is dropped, blank lines are skipped. A
 * malformed record is reported once and skipped to the end of its line; the reading goes on. Memory is one
 * record. */
#ifndef CLI_CSV_H
#define CLI_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

#define CSV_MAX_FIELDS 64
#define CSV_MAX_RECORD 65536 /* bytes of one record's fields */

struct csv;

struct csv_record {
	uint64_t line; /* of its first byte, from 1 */
	const struct bytes *fields;
	size_t count; /* at least 1 */
};

/* What the reader calls; the record is valid during the call. Anything but 0 stops the reading, and
 * csv_feed() or csv_end() returns it. */
struct csv_events {
	int (*record)(const struct csv_record *record, void *arg);
	int (*error)(uint64_t line, const char *message, void *arg);
};

/* `events` must outlive the reader. */
struct csv *csv_new(const struct csv_events *events, void *arg);
void csv_free(struct csv *c);
int csv_feed(struct csv *c, const char *data, size_t n) __attribute__((warn_unused_result));
/* The input ends: a last line without its end still counts. */
int csv_end(struct csv *c) __attribute__((warn_unused_result));

/* Adds a field as it is written: in quotes where it has to be. */
void csv_put(struct buf *out, struct bytes field);

#endif
