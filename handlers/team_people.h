/* SPDX-License-Identifier: MIT */
/* The people of a team, or of a team and all below it: who is at home there and who has joined, each once.
 * Over a subtree one is found at his home if that is in it, else at the first of the teams in it that he has
 * joined, by their ids.
 *
 * The walk follows the picture, made up to date first; how many people a team has is asked of Redis for many
 * teams at a time, which also finds a damaged tree. A page looks at a bounded number of teams and asks for
 * the people of one at a time. */
#ifndef HANDLERS_TEAM_PEOPLE_H
#define HANDLERS_TEAM_PEOPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct app;
struct dept;

struct people_ask {
	struct bytes team;
	bool subtree;
	struct bytes cursor; /* as a page gave it; "" or "0" = from the start */
	int64_t count;       /* so many are wanted; a page may have a few more, or fewer */
};

struct people_page {
	char refused; /* 0, or 'P', 'C' as in team_read.h, and `about` which team */
	struct bytes about;
	int64_t count;
	struct bytes ids;    /* each ended by '\n' */
	struct bytes cursor; /* "" = that was all */
};

/* Whether it can be a cursor. */
bool team_people_cursor_valid(struct bytes cursor);

/* fn once, later; what it gets is valid until it returns. error is the text for the client. `ask` is read
 * before this returns. */
typedef void (*team_people_cb)(const struct people_page *page, const char *error, void *arg);
void team_people_list(struct app *app, const struct people_ask *ask, team_people_cb fn, void *arg);

/* How many distinct people are in a subtree. `visit`, where it is not NULL, is called for each of its teams
 * as the walk comes to it, and with NULL when it begins anew. fn once, later, when the picture is up to date
 * (tree_sync). `team` empty = nobody is counted. */
typedef void (*team_visit_cb)(const struct dept *d, void *arg);
void team_people_count(struct app *app, struct bytes team, team_visit_cb visit,
	void (*fn)(int64_t people, const char *error, void *arg), void *arg);

#endif
