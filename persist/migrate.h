/* SPDX-License-Identifier: MIT */
/* Brings the database to the schema that this program knows: the numbered files of sql/, embedded at build
 * time, applied in order under a lock of the server and recorded in schema_migration with their checksums.
 *
 * DDL commits by itself, so a crash may leave a file half applied and unrecorded: it runs again from its
 * first statement, and every statement of a migration must bear that (IF NOT EXISTS, OR REPLACE, upserts). A
 * file that has been released is never edited; a change is a new file. */
#ifndef PERSIST_MIGRATE_H
#define PERSIST_MIGRATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "persist/embed.h"

struct mysql_link;

extern const struct embed_file migrate_files[];
extern const size_t migrate_files_count;

/* `error` is NULL when the schema is as the program knows it, otherwise a sentence for the log; `applied` is
 * how many files this run applied. */
typedef void (*migrate_cb)(const char *error, size_t applied, void *arg);

/* Runs once on a link that is ready and that nobody else uses meanwhile; waits up to a minute for another
 * daemon that is at it. The files must be ordered by number and outlive the run. Calls back exactly once, not
 * before this has returned; after a loss of the connection the caller starts it again. */
void migrate_start(
	struct mysql_link *link, const struct embed_file *files, size_t count, migrate_cb cb, void *arg);

/* The number in front of a file's name; 0 when there is none. */
unsigned migrate_version(const struct embed_file *file);
/* Cuts the first statement off *text: up to a ';' outside of quotes and comments, without it. False at the
 * end. */
bool migrate_next_statement(struct bytes *text, struct bytes *ret_statement);
/* The SHA-256 of the file as lower-case hex. */
void migrate_checksum(const struct embed_file *file, char ret_hex[65]);

#endif
