/* SPDX-License-Identifier: MIT */
#include "persist/migrate.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "persist/mysql_link.h"
#include "persist/mysql_text.h"

#define LOCK_NAME    "CONCAT('muster.migrate.', SHA1(DATABASE()))"
#define LOCK_WAIT_S  60
#define LOCK_MS      ((LOCK_WAIT_S + 10) * INT64_C(1000))
#define STATEMENT_MS (INT64_C(3600) * 1000) /* a change of a large table takes as long as it takes */

enum migrate_state {
	MIGRATE_LOCK,   /* waiting for the server's lock */
	MIGRATE_TABLE,  /* schema_migration is being made */
	MIGRATE_READ,   /* what was applied is being read */
	MIGRATE_APPLY,  /* a statement of files[at] runs */
	MIGRATE_RECORD, /* files[at] is being recorded */
	MIGRATE_UNLOCK, /* the lock is being given back */
	MIGRATE_DONE
};

struct migrate {
	enum migrate_state state;
	struct mysql_link *link;
	const struct embed_file *files;
	size_t count, at;
	bool *recorded;    /* count entries */
	struct bytes rest; /* of files[at]: what is not sent yet */
	size_t applied;
	struct buf error; /* empty while all is well */
	migrate_cb cb;
	void *arg;
};

static const char *const state_names[] = {"lock", "table", "read", "apply", "record", "unlock", "done"};

static void on_result(const struct mysql_result *result, void *arg);

static void enter(struct migrate *m, enum migrate_state to)
{
	assert(to > m->state || (to == MIGRATE_APPLY && m->state == MIGRATE_RECORD));
	log_debug("mysql migrate event=state change=%s->%s", state_names[m->state], state_names[to]);
	m->state = to;
}

static void migrate_send(struct migrate *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void migrate_send(struct migrate *m, const char *format, ...)
{
	struct buf sql = BUF_INIT;
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	buf_add_str(&sql, text);
	mysql_link_query(m->link, &sql, on_result, m);
}

static void destroy(void *ptr)
{
	struct migrate *m = ptr;

	free(m->recorded);
	buf_release(&m->error);
	free(m);
}

static void finish(struct migrate *m)
{
	enter(m, MIGRATE_DONE);
	mysql_link_set_timeout(m->link, 0);
	m->cb(m->error.len > 0 ? m->error.data : NULL, m->applied, m->arg);
	turn_free(m, destroy);
}

static void unlock(struct migrate *m)
{
	enter(m, MIGRATE_UNLOCK);
	migrate_send(m, "SELECT RELEASE_LOCK(" LOCK_NAME ")");
}

/* Sends the next statement of files[at], or its record, or goes on to the next file that is not recorded. */
static void apply(struct migrate *m)
{
	struct bytes statement;
	struct buf sql = BUF_INIT;
	char checksum[65];

	if (migrate_next_statement(&m->rest, &statement)) {
		buf_add_bytes(&sql, statement);
		mysql_link_query(m->link, &sql, on_result, m);
		return;
	}
	migrate_checksum(&m->files[m->at], checksum);
	enter(m, MIGRATE_RECORD);
	migrate_send(m,
		"INSERT INTO schema_migration (version, name, checksum, applied_at) VALUES (%u, '%s', '%s', "
		"UTC_TIMESTAMP(3))",
		migrate_version(&m->files[m->at]), m->files[m->at].name, checksum);
}

static void next_file(struct migrate *m)
{
	while (m->at < m->count && m->recorded[m->at])
		m->at++;
	if (m->at == m->count) {
		unlock(m);
		return;
	}
	log_notice("mysql migrate event=apply name=%s", m->files[m->at].name);
	m->rest = (struct bytes){m->files[m->at].data, m->files[m->at].size};
	enter(m, MIGRATE_APPLY);
	apply(m);
}

static size_t file_of_version(const struct migrate *m, int64_t version)
{
	size_t i = 0;

	while (i < m->count && migrate_version(&m->files[i]) != version)
		i++;
	return i;
}

/* Compares one recorded migration with ours. */
static void check_record(struct migrate *m, struct bytes version_text, struct bytes checksum)
{
	int64_t version = -1;
	char ours[65];

	if (!bytes_to_i64(version_text, &version))
		version = -1;
	size_t i = file_of_version(m, version);
	if (i == m->count) {
		buf_addf(&m->error,
			"the database has migration %lld, which this program does not know: it is older than "
			"the database. ",
			(long long)version);
		return;
	}
	migrate_checksum(&m->files[i], ours);
	if (!bytes_eq(bytes_of(ours), checksum))
		buf_addf(&m->error, "migration %s was applied with other contents than this program has. ",
			m->files[i].name);
	m->recorded[i] = true;
}

static void on_records(struct migrate *m, const struct mysql_result *result)
{
	for (size_t i = 0; i < result->rows; i++)
		check_record(m, mysql_cell(result, i, 0), mysql_cell(result, i, 1));
	if (m->error.len > 0)
		unlock(m);
	else
		next_file(m);
}

static void on_lock(struct migrate *m, const struct mysql_result *result)
{
	if (result->rows != 1 || !bytes_eq(mysql_cell(result, 0, 0), BYTES_LIT("1"))) {
		buf_addf(&m->error, "another daemon has been migrating the database for more than %d s",
			LOCK_WAIT_S);
		finish(m);
		return;
	}
	enter(m, MIGRATE_TABLE);
	mysql_link_set_timeout(m->link, STATEMENT_MS);
	migrate_send(m, "CREATE TABLE IF NOT EXISTS schema_migration ("
			"version INT UNSIGNED NOT NULL PRIMARY KEY, name VARCHAR(128) NOT NULL, checksum "
			"CHAR(64) NOT NULL, "
			"applied_at DATETIME(3) NOT NULL) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE "
			"ascii_bin");
}

static void on_failure(struct migrate *m, const struct mysql_result *result)
{
	bool locked = m->state != MIGRATE_LOCK && m->state != MIGRATE_UNLOCK && result->outcome != SQL_LOST;

	if (m->state != MIGRATE_UNLOCK) {
		bool in_file = m->state == MIGRATE_APPLY || m->state == MIGRATE_RECORD;
		buf_addf(&m->error, "migration %s failed: %u %s",
			in_file ? m->files[m->at].name : state_names[m->state], result->code,
			result->message);
	}
	if (locked)
		unlock(m);
	else
		finish(m); /* the server gives the lock of a lost connection back by itself */
}

static void on_result(const struct mysql_result *result, void *arg)
{
	struct migrate *m = arg;

	if (result->outcome != SQL_OK) {
		on_failure(m, result);
		return;
	}
	switch (m->state) {
	case MIGRATE_LOCK:
		on_lock(m, result);
		break;
	case MIGRATE_TABLE:
		enter(m, MIGRATE_READ);
		migrate_send(m, "SELECT version, checksum FROM schema_migration ORDER BY version");
		break;
	case MIGRATE_READ:
		on_records(m, result);
		break;
	case MIGRATE_APPLY:
		apply(m);
		break;
	case MIGRATE_RECORD:
		m->applied++;
		m->at++;
		next_file(m);
		break;
	case MIGRATE_UNLOCK:
		finish(m);
		break;
	case MIGRATE_DONE:
		break;
	}
}

void migrate_start(
	struct mysql_link *link, const struct embed_file *files, size_t count, migrate_cb cb, void *arg)
{
	struct migrate *m = xcalloc(1, sizeof(*m));

	*m = (struct migrate){.link = link, .files = files, .count = count, .cb = cb, .arg = arg};
	m->recorded = xcalloc(count + 1, sizeof(*m->recorded));
	mysql_link_set_timeout(link, LOCK_MS);
	migrate_send(m, "SELECT GET_LOCK(" LOCK_NAME ", %d)", LOCK_WAIT_S);
}

unsigned migrate_version(const struct embed_file *file)
{
	return (unsigned)strtoul(file->name, NULL, 10);
}

void migrate_checksum(const struct embed_file *file, char ret_hex[65])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (EVP_Digest(file->data, file->size, digest, &n, EVP_sha256(), NULL) != 1 || n != 32)
		abort();
	for (unsigned i = 0; i < n; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
}

/* Length of the quoted text or comment that begins at p, 0 when neither does. */
static size_t opaque_length(const char *p, size_t n)
{
	size_t i = 1;

	if (n >= 2 && ((p[0] == '-' && p[1] == '-') || (p[0] == '/' && p[1] == '*'))) {
		const char *end = p[0] == '-' ? "\n" : "*/";
		const char *found = memmem(p + 2, n - 2, end, strlen(end));
		return found != NULL ? (size_t)(found - p) + strlen(end) : n;
	}
	if (n == 0 || (p[0] != '\'' && p[0] != '"' && p[0] != '`'))
		return 0;
	while (i < n && p[i] != p[0])
		i += p[i] == '\\' ? 2 : 1;
	return i < n ? i + 1 : n;
}

/* Skips blanks and comments. */
static void skip_blank(struct bytes *text)
{
	while (text->n > 0) {
		bool comment = text->p[0] == '-' || text->p[0] == '/';
		size_t n = isspace((unsigned char)text->p[0]) ? 1
			   : comment                          ? opaque_length(text->p, text->n)
							      : 0;
		if (n == 0)
			return;
		*text = (struct bytes){text->p + n, text->n - n};
	}
}

bool migrate_next_statement(struct bytes *text, struct bytes *ret_statement)
{
	size_t i = 0;

	skip_blank(text);
	if (text->n == 0)
		return false;
	while (i < text->n && text->p[i] != ';') {
		size_t skip = opaque_length(text->p + i, text->n - i);
		i += skip > 0 ? skip : 1;
	}
	size_t used = i < text->n ? i + 1 : i;
	*ret_statement = (struct bytes){text->p, i};
	*text = (struct bytes){text->p + used, text->n - used};
	return true;
}
