/* SPDX-License-Identifier: MIT */
#include "persist/ledger_tree.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/journal.h"
#include "persist/journal_position.h"
#include "persist/mysql_link.h"
#include "persist/mysql_text.h"
#include "persist/record.h"

#define RUN_BYTES 262144 /* of a statement of many rows */
/* A change of a million paths takes the server a minute, and must be given the time. */
#define STATEMENT_MS (15 * 60 * INT64_C(1000))
#define MANY         (-1)

/* Rows that wait for more of their kind. Departments and memberships do not touch each other's table. */
enum run { RUN_DEPARTMENTS, RUN_JOINS, RUN_LEAVES, RUN_COUNT };

static const struct {
	const char *head, *between, *tail;
} runs[RUN_COUNT] = {
	[RUN_DEPARTMENTS] = {.head = "INSERT INTO department "
				     "(id,name,parent,path,manager,state,version,updated) VALUES ",
		.between = ",",
		.tail = " ON DUPLICATE KEY UPDATE name=VALUES(name),parent=VALUES(parent),path=VALUES(path),"
			"manager=VALUES(manager),state=VALUES(state),version=VALUES(version),"
			"updated=VALUES(updated)"},
	[RUN_JOINS] = {.head = "INSERT INTO team_member (team,employee,since) VALUES ",
		.between = ",",
		.tail = " ON DUPLICATE KEY UPDATE since=VALUES(since)"},
	/* An IN with a single pair would be a scan of the whole table on MariaDB. */
	[RUN_LEAVES] = {.head = "DELETE FROM team_member WHERE ", .between = " OR ", .tail = ""},
};

struct statement {
	struct buf text;
	int record; /* of the window, or MANY */
};

struct write {
	struct mysql_link *link;
	struct journal_window *window;
	void (*done)(bool ok, void *arg);
	void *arg;
	char from[96]; /* the position before */
	struct statement open[RUN_COUNT];
	struct statement *list;
	size_t count, cap;
	struct bytes *texts; /* of `list`, for the link */
	bool *bad;           /* records that the server refuses */
	bool careful;        /* a statement of many rows was refused: each record has its own now */
};

static void clear(struct write *w)
{
	for (int i = 0; i < RUN_COUNT; i++)
		buf_release(&w->open[i].text);
	for (size_t i = 0; i < w->count; i++)
		buf_release(&w->list[i].text);
	w->count = 0;
}

static void finish(struct write *w, bool ok)
{
	mysql_link_set_timeout(w->link, 0);
	clear(w);
	free(w->list);
	free(w->texts);
	free(w->bad);
	w->done(ok, w->arg);
	free(w);
}

/* ---- statements ---- */

/* The text of the next statement. */
static struct buf *statement(struct write *w, int record)
{
	if (w->count == w->cap) {
		w->cap = w->cap == 0 ? 16 : w->cap * 2;
		w->list = xrealloc(w->list, w->cap * sizeof(w->list[0]));
	}
	w->list[w->count] = (struct statement){.record = record};
	return &w->list[w->count++].text;
}

static void close_run(struct write *w, enum run run)
{
	struct statement *open = &w->open[run];

	if (open->text.len == 0)
		return;
	buf_add_str(&open->text, runs[run].tail);
	(void)statement(w, MANY);
	w->list[w->count - 1] = *open;
	*open = (struct statement){0};
}

static void close_runs(struct write *w)
{
	for (int i = 0; i < RUN_COUNT; i++)
		close_run(w, (enum run)i);
}

/* Where a row of a run goes. */
static struct buf *row(struct write *w, enum run run, int record)
{
	struct statement *open = &w->open[run];

	if (w->careful || open->text.len > RUN_BYTES)
		close_run(w, run);
	buf_add_str(&open->text, open->text.len == 0 ? runs[run].head : runs[run].between);
	open->record = w->careful ? record : MANY;
	return &open->text;
}

static void add_quoted(struct buf *out, struct bytes value)
{
	mysql_add_quoted(out, value);
	buf_add_char(out, ',');
}

static void add_updated(struct buf *out)
{
	buf_add_str(out, "updated=");
	mysql_add_datetime(out, clock_wall_ms());
}

/* What is strictly below a path: all that begins with it and ':', whose successor is ';'. No wildcard, since
 * ids may hold '_', and the index on path serves it. */
static void add_below(struct buf *out, const char *column, struct bytes path)
{
	struct buf bound = BUF_INIT;

	buf_add_bytes(&bound, path);
	buf_add_char(&bound, ':');
	buf_addf(out, "%s>=", column);
	mysql_add_quoted(out, buf_bytes(&bound));
	bound.data[bound.len - 1] = ';';
	buf_addf(out, " AND %s<", column);
	mysql_add_quoted(out, buf_bytes(&bound));
	buf_release(&bound);
}

/* The paths below `old` begin with `new` from now on. */
static void add_new_paths(struct buf *out, struct bytes old, struct bytes new)
{
	/* At the top the ':' goes, too. */
	buf_add_str(out, "path=CONCAT(");
	mysql_add_quoted(out, new);
	buf_addf(out, ",SUBSTRING(path,%zu)),", old.n + (new.n > 0 ? 1 : 2));
	add_updated(out);
	buf_add_str(out, " WHERE ");
	add_below(out, "path", old);
}

/* ---- records ---- */

/* T|change|id|parent or -|manager or -|version|state|path|old path or -|name */
enum field { T, CHANGE, ID, PARENT, MANAGER, VERSION, STATE, PATH, OLD_PATH, NAME, FIELDS };

static void move(struct write *w, int record, const struct bytes *f)
{
	struct buf *sql = statement(w, record);

	buf_add_str(sql, "UPDATE department SET ");
	add_new_paths(sql, f[OLD_PATH], f[PATH]);
}

static void lift(struct write *w, int record, const struct bytes *f)
{
	struct buf *sql = statement(w, record);
	struct bytes above = {f[PATH].p, f[PATH].n > f[ID].n ? f[PATH].n - f[ID].n - 1 : 0};

	buf_add_str(sql, "DELETE FROM team_member WHERE team=");
	mysql_add_quoted(sql, f[ID]);
	sql = statement(w, record);
	buf_add_str(sql, "UPDATE department SET parent=IF(parent=");
	add_quoted(sql, f[ID]);
	add_quoted(sql, record_optional(f[PARENT]));
	buf_add_str(sql, "parent),");
	add_new_paths(sql, f[PATH], above);
}

static void remove_all(struct write *w, int record, const struct bytes *f)
{
	struct buf *sql = statement(w, record);

	buf_add_str(sql, "DELETE m FROM team_member m JOIN department d ON d.id=m.team WHERE d.id=");
	mysql_add_quoted(sql, f[ID]);
	buf_add_str(sql, " OR ");
	add_below(sql, "d.path", f[PATH]);
	sql = statement(w, record);
	buf_add_str(sql, "UPDATE department SET state='removed',");
	add_updated(sql);
	buf_add_str(sql, " WHERE state<>'removed' AND ");
	add_below(sql, "path", f[PATH]);
}

/* The changes that touch more than the row of the team. */
static const struct {
	const char *change;
	void (*apply)(struct write *w, int record, const struct bytes *f);
} wide[] = {{"move", move}, {"lift", lift}, {"remove", remove_all}};

static void add_team(struct write *w, int record, struct bytes text)
{
	struct bytes f[FIELDS];
	int64_t version;

	if (bytes_split(text, '|', f, FIELDS) != FIELDS || !bytes_to_i64(f[VERSION], &version))
		return;
	for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
		if (bytes_is_word(f[CHANGE], wide[i].change)) {
			close_runs(w);
			wide[i].apply(w, record, f);
		}
	}
	struct buf *sql = row(w, RUN_DEPARTMENTS, record);
	buf_add_char(sql, '(');
	add_quoted(sql, f[ID]);
	add_quoted(sql, f[NAME]);
	add_quoted(sql, record_optional(f[PARENT]));
	add_quoted(sql, f[PATH]);
	add_quoted(sql, record_optional(f[MANAGER]));
	add_quoted(sql, f[STATE]);
	buf_addf(sql, "%lld,", (long long)version);
	mysql_add_datetime(sql, clock_wall_ms());
	buf_add_char(sql, ')');
}

/* J|join or leave|team|employee|unix ms */
static void add_member(struct write *w, int record, struct bytes text)
{
	struct bytes f[5];
	int64_t at;

	if (bytes_split(text, '|', f, 5) != 5 || !bytes_to_i64(f[4], &at))
		return;
	bool joins = bytes_is_word(f[1], "join");
	close_run(w, joins ? RUN_LEAVES : RUN_JOINS);
	struct buf *sql = row(w, joins ? RUN_JOINS : RUN_LEAVES, record);
	buf_add_str(sql, joins ? "(" : "(team=");
	mysql_add_quoted(sql, f[2]);
	buf_add_str(sql, joins ? "," : " AND employee=");
	mysql_add_quoted(sql, f[3]);
	if (joins) {
		buf_add_char(sql, ',');
		mysql_add_datetime(sql, at);
	}
	buf_add_char(sql, ')');
}

/* ---- the position ---- */

/* Moves the position, which locks it, and fails unless it was where we saw it: another daemon may think that
 * the journal is its own. A scalar subquery of two rows is the one error that a SELECT can choose to have. */
static void add_position(struct write *w)
{
	struct buf *sql = statement(w, MANY);

	buf_add_str(sql, "INSERT INTO journal_position (journal,ref) VALUES ('org',");
	mysql_add_quoted(sql, w->window->records[w->window->count - 1].ref);
	buf_add_str(sql, ") ON DUPLICATE KEY UPDATE ref=IF(ref=");
	mysql_add_quoted(sql, bytes_of(w->from));
	buf_add_str(sql, ",VALUES(ref),ref)");
	buf_add_str(statement(w, MANY), "SELECT IF(ROW_COUNT()>0,1,(SELECT 1 UNION SELECT 2))");
}

/* ---- the write ---- */

static void send(struct write *w);

static void on_written(const struct mysql_result *result, void *arg)
{
	struct write *w = arg;

	if (result->outcome != SQL_OK && result->outcome != SQL_LOST)
		log_warning("persist ledger event=tree-failed outcome=%s message=\"%s\"",
			sql_outcome_name(result->outcome), result->message);
	int record = result->failed < w->count ? w->list[result->failed].record : MANY;
	if (result->outcome != SQL_DATA || (record == MANY && w->careful)) {
		finish(w, result->outcome == SQL_OK);
		return;
	}
	/* A record that the server refuses must not stop the others: it is found, and left out. */
	if (record != MANY) {
		w->bad[record] = true;
		log_error("persist ledger event=bad-record ref=%.*s", (int)w->window->records[record].ref.n,
			w->window->records[record].ref.p);
	}
	w->careful = true;
	send(w);
}

static void send(struct write *w)
{
	clear(w);
	add_position(w);
	for (int i = 0; i < w->window->count; i++) {
		const struct journal_record *r = &w->window->records[i];
		if (w->bad[i] || r->text.n == 0 || !journal_position_after(r->ref, bytes_of(w->from)))
			continue;
		if (r->text.p[0] == 'T')
			add_team(w, i, r->text);
		else if (r->text.p[0] == 'J')
			add_member(w, i, r->text);
	}
	close_runs(w);
	w->texts = xrealloc(w->texts, w->count * sizeof(w->texts[0]));
	for (size_t i = 0; i < w->count; i++)
		w->texts[i] = buf_bytes(&w->list[i].text);
	mysql_link_set_timeout(w->link, STATEMENT_MS);
	mysql_link_batch(w->link, w->texts, w->count, on_written, w);
}

static void on_position(const struct mysql_result *result, void *arg)
{
	struct write *w = arg;

	if (result->outcome != SQL_OK) {
		finish(w, false);
		return;
	}
	if (result->rows > 0)
		bytes_copy(w->from, sizeof(w->from), mysql_cell(result, 0, 0));
	if (journal_position_after(w->window->records[w->window->count - 1].ref, bytes_of(w->from)))
		send(w);
	else
		finish(w, true); /* committed before the cursor moved */
}

void ledger_tree_start(
	struct mysql_link *link, struct journal_window *window, void (*done)(bool ok, void *arg), void *arg)
{
	struct write *w = xcalloc(1, sizeof(*w));
	struct buf sql = BUF_INIT;

	w->link = link;
	w->window = window;
	w->done = done;
	w->arg = arg;
	w->bad = xcalloc((size_t)window->count + 1, sizeof(w->bad[0]));
	buf_add_str(&sql, "SELECT ref FROM journal_position WHERE journal='org'");
	mysql_link_query(link, &sql, on_position, w);
}
