/* SPDX-License-Identifier: MIT */
#include "cli/people.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/answer.h"

#define PAGE   "500"
#define WINDOW 500

/* One employee in one team. */
struct place {
	size_t id;   /* offset in the text */
	size_t team; /* index in `teams` */
	bool home;
};

struct people {
	struct conn *conn;
	const char *const *teams;
	size_t team_count;
	const struct people_events *events;
	struct buf text; /* ids, each with its NUL */
	struct place *places;
	size_t count, cap;
};

static const char *id_of(const struct people *p, const struct place *place)
{
	return p->text.data + place->id;
}

static void add(struct people *p, size_t team, const redisReply *id)
{
	if (p->count == p->cap) {
		p->cap = p->cap != 0 ? p->cap * 2 : 1024;
		p->places = xrealloc(p->places, p->cap * sizeof(*p->places));
	}
	p->places[p->count++] = (struct place){.id = p->text.len, .team = team};
	buf_add(&p->text, id->str, (size_t)id->len);
	buf_add_char(&p->text, '\0');
}

static void append(struct people *p, struct request *r)
{
	char *command;
	long long n = redisFormatCommandArgv(&command, r->argc, r->argv, r->len);

	if (n < 0)
		abort();
	conn_append(p->conn, command, (size_t)n);
	redisFreeCommand(command);
}

/* The next reply of the pipeline; NULL after a message, for an error reply too. */
static redisReply *next(struct people *p)
{
	redisReply *reply = conn_next(p->conn);

	if (reply == NULL)
		cli_error("lost the server: %s", conn_fault(p->conn));
	else if (reply->type == REDIS_REPLY_ERROR)
		conn_print_refusal(reply);
	else
		return reply;
	freeReplyObject(reply);
	return NULL;
}

/* ---- the members of each team ---- */

static void members_request(struct request *r, const struct people *p, size_t team, const char *cursor)
{
	request_init(r, "TEAM.MEMBERS");
	request_add(r, p->teams[team]);
	request_option(r, "CURSOR", cursor[0] != '\0' ? cursor : NULL);
	request_option(r, "COUNT", PAGE);
}

/* Takes a page of members and leaves the next cursor. */
static bool take_members(struct people *p, size_t team, redisReply *reply, struct buf *cursor)
{
	const char *more;
	const redisReply *ids = reply != NULL ? answer_page(reply, &more) : NULL;

	buf_clear(cursor);
	if (ids != NULL)
		buf_add_str(cursor, more);
	for (size_t i = 0; ids != NULL && i < ids->elements; i++)
		add(p, team, ids->element[i]);
	freeReplyObject(reply);
	return ids != NULL;
}

/* The pages behind a team's first. */
static bool ask_further(struct people *p, size_t team, struct buf *cursor)
{
	bool fine = true;

	while (fine && cursor->len > 0) {
		struct request r;
		members_request(&r, p, team, cursor->data);
		append(p, &r);
		fine = take_members(p, team, next(p), cursor);
	}
	return fine;
}

static bool ask_members(struct people *p)
{
	struct buf *cursors = xcalloc(p->team_count + 1, sizeof(*cursors));
	bool fine = true;

	for (size_t i = 0; i < p->team_count; i++) {
		struct request r;
		members_request(&r, p, i, "");
		append(p, &r);
	}
	for (size_t i = 0; i < p->team_count && fine; i++)
		fine = take_members(p, i, next(p), &cursors[i]);
	for (size_t i = 0; i < p->team_count; i++) {
		fine = fine && ask_further(p, i, &cursors[i]);
		buf_release(&cursors[i]);
	}
	free(cursors);
	return fine;
}

/* ---- in order ---- */

static int by_team_and_id(const void *a, const void *b, void *arg)
{
	const struct place *x = a, *y = b;
	const struct people *p = arg;

	if (x->team != y->team)
		return x->team < y->team ? -1 : 1;
	return strcmp(id_of(p, x), id_of(p, y));
}

/* A cursor may bring somebody twice. */
static void sort(struct people *p)
{
	size_t kept = 0;

	if (p->count == 0)
		return;
	qsort_r(p->places, p->count, sizeof(*p->places), by_team_and_id, p);
	for (size_t i = 1; i < p->count; i++) {
		if (by_team_and_id(&p->places[kept], &p->places[i], p) != 0)
			p->places[++kept] = p->places[i];
	}
	p->count = kept + 1;
}

/* ---- who they are ---- */

/* Those of a team who are not at home in it, from first to before last. */
static void give_joined(struct people *p, size_t first, size_t last)
{
	for (size_t i = first; i < last; i++) {
		const struct place *at = &p->places[i];
		if (!at->home)
			p->events->person(
				p->teams[at->team], id_of(p, at), BYTES_LIT(""), false, p->events->arg);
	}
}

/* One employee's own reply. Someone who was removed meanwhile is left out: as one at home who is not given.
 */
static bool give_employee(struct people *p, struct place *at)
{
	redisReply *reply = conn_next(p->conn);
	bool gone =
		reply != NULL && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "UNKNOWN ", 8) == 0;

	if (reply == NULL) {
		cli_error("lost the server: %s", conn_fault(p->conn));
		return false;
	}
	if (reply->type == REDIS_REPLY_ERROR && !gone) {
		conn_print_refusal(reply);
		freeReplyObject(reply);
		return false;
	}
	at->home = gone || strcmp(answer_str(reply, "dept"), p->teams[at->team]) == 0;
	if (at->home && !gone)
		p->events->person(
			p->teams[at->team], id_of(p, at), answer_bytes(reply, "name"), true, p->events->arg);
	freeReplyObject(reply);
	return true;
}

static void ask_employees(struct people *p, size_t first, size_t last)
{
	for (size_t i = first; i < last; i++) {
		struct request r;
		request_init(&r, "EMPLOYEE.GET");
		request_add(&r, id_of(p, &p->places[i]));
		append(p, &r);
	}
}

/* A window of employees is asked for at once; a team's joined ones follow when the last of it is known. */
static bool give_all(struct people *p)
{
	size_t team_from = 0;
	bool fine = true;

	for (size_t i = 0; i < p->count && fine; i++) {
		if (i % WINDOW == 0)
			ask_employees(p, i, i + WINDOW < p->count ? i + WINDOW : p->count);
		if (p->places[i].team != p->places[team_from].team) {
			give_joined(p, team_from, i);
			team_from = i;
		}
		fine = give_employee(p, &p->places[i]);
	}
	if (fine)
		give_joined(p, team_from, p->count);
	return fine;
}

int people_of(struct conn *conn, const char *const *teams, size_t count, const struct people_events *events)
{
	struct people p = {.conn = conn, .teams = teams, .team_count = count, .events = events};
	bool fine = ask_members(&p);

	if (fine) {
		sort(&p);
		fine = give_all(&p);
	}
	buf_release(&p.text);
	free(p.places);
	return fine ? CLI_OK : CLI_FAILED;
}
