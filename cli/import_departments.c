/* SPDX-License-Identifier: MIT */
/* The departments of `muster import`: collected in the first pass, checked as a whole, and sent level by
 * level, parents first. A department whose parent this import has made can't be there yet and is added at
 * once; of the others the server is asked first, so that what is there already is known from what is made.
 *
 * Whatever fails fails with everything below it: no department is ever sent whose parent was not accepted. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/import.h"

#define UNASSIGNED "0"

/* ---- collecting and checking ---- */

void import_collect(struct import *im, const struct row *row)
{
	char message[96];
	struct org *earlier;

	if (orgtree_add(im->tree, row, &earlier) != NULL)
		return;
	if (org_is_as(earlier, row)) {
		im->duplicates++;
		return;
	}
	snprintf(message, sizeof(message), "this department is in line %" PRIu64 " already, and not the same",
		earlier->line);
	import_fail(im, ROW_DEPARTMENT, row->line, message);
	orgtree_add_flaw(im->tree, row->parent);
	orgtree_add_flaw(im->tree, row->id);
}

static void on_cycle(const struct org *org, void *arg)
{
	import_fail(arg, ROW_DEPARTMENT, org->line, "this department is above itself");
}

static void on_taken(const struct org *org, const struct org *earlier, void *arg)
{
	char message[ID_MAX + 96];

	snprintf(message, sizeof(message),
		"the department %s of line %" PRIu64 " has this name and the same parent", org_id(earlier),
		earlier->line);
	import_fail(arg, ROW_DEPARTMENT, org->line, message);
}

static void on_spoilt(const struct org *org, void *arg)
{
	import_fail(arg, ROW_DEPARTMENT, org->line, "left out: something in its tree is wrong");
}

/* The server's cap, or INT64_MAX when it does not say. */
static int64_t levels_allowed(const struct import *im)
{
	struct request r;
	int64_t most = INT64_MAX;

	request_init(&r, "CONFIG");
	request_add(&r, "GET");
	request_add(&r, "team.max_depth");
	redisReply *reply = im->dry_run ? NULL : conn_try(im->options, &r);
	if (reply != NULL)
		most = answer_int(reply, "team.max_depth", INT64_MAX);
	freeReplyObject(reply);
	return most;
}

static void check_depth(struct import *im)
{
	char message[96];
	int64_t most = levels_allowed(im);

	for (size_t i = 0; i < orgtree_count(im->tree); i++) {
		struct org *org = orgtree_at(im->tree, i);
		if (org->state == ORG_FAILED || org->depth < most)
			continue;
		org->state = ORG_FAILED;
		snprintf(message, sizeof(message), "too deep, expected at most %" PRId64 " levels", most);
		import_fail(im, ROW_DEPARTMENT, org->line, message);
	}
}

void import_check(struct import *im)
{
	orgtree_order(im->tree, on_cycle, im);
	orgtree_check_names(im->tree, on_taken, im);
	if (!im->whole)
		return;
	check_depth(im);
	orgtree_spoil(im->tree, on_spoilt, im);
}

/* ---- sending ---- */

static void settle(struct import *im, struct org *org, enum org_state state)
{
	org->state = state;
	im->decided++;
}

static void fail(struct import *im, struct org *org, const char *message)
{
	org->state = ORG_FAILED;
	im->decided++;
	import_fail(im, ROW_DEPARTMENT, org->line, message);
}

static bool is_decided(const struct org *org)
{
	return org->state == ORG_CREATED || org->state == ORG_UNCHANGED || org->state == ORG_FAILED;
}

/* Its parent is decided. Finds out whether the department has to be added. */
static void begin(struct import *im, struct org *org)
{
	char message[ID_MAX + 96];
	struct import_words w = {0};
	const struct org *above = orgtree_above(im->tree, org);

	if (above != NULL && above->state == ORG_FAILED) {
		snprintf(message, sizeof(message), "its parent %s of line %" PRIu64 " failed", org_id(above),
			above->line);
		fail(im, org, message);
		return;
	}
	im->counts[ROW_DEPARTMENT].sent += im->sender != NULL;
	if (im->sender == NULL || (above != NULL && above->state == ORG_CREATED)) {
		org->state = ORG_NEW;
		return;
	}
	import_word(&w, BYTES_LIT("TEAM.GET"));
	import_word(&w, bytes_of(org_id(org)));
	import_put(im, &w, org->line, org);
}

static void change(struct import *im, struct org *org, const char *command, const char *value)
{
	struct import_words w = {0};

	import_word(&w, bytes_of(command));
	import_word(&w, bytes_of(org_id(org)));
	import_word(&w, bytes_of(value[0] != '\0' ? value : "-"));
	import_put(im, &w, org->line, org);
}

/* The department of those who have none is made by the server, and may have another name or place in the
 * file. */
static void adapt_unassigned(struct import *im, struct org *org)
{
	if (org_name(org)[0] != '\0')
		change(im, org, "TEAM.RENAME", org_name(org));
	if (im->stopped == 0)
		change(im, org, "TEAM.MANAGER", org_manager(org));
}

static void add(struct import *im, struct org *org)
{
	struct import_words w = {0};

	if (org->state == ORG_OTHER && strcmp(org_id(org), UNASSIGNED) == 0 && org_parent(org)[0] == '\0') {
		adapt_unassigned(im, org);
		return;
	}

	import_word(&w, BYTES_LIT("TEAM.ADD"));
	import_word(&w, bytes_of(org_id(org)));
	import_word(&w, org_parent(org)[0] != '\0' ? bytes_of(org_parent(org)) : BYTES_LIT("-"));
	import_option(&w, "NAME", bytes_of(org_name(org)));
	import_option(&w, "MANAGER", bytes_of(org_manager(org)));
	import_put(im, &w, org->line, org);
}

static void show_progress(struct import *im)
{
	progress_set(im->progress, im->decided, orgtree_count(im->tree), im->decided);
}

/* One level of the tree, from first to before last in order. */
static void send_level(struct import *im, size_t first, size_t last)
{
	for (size_t i = first; i < last && im->stopped == 0; i++) {
		if (!is_decided(orgtree_at(im->tree, i)))
			begin(im, orgtree_at(im->tree, i));
		show_progress(im);
	}
	import_flush(im);
	for (size_t i = first; i < last && im->stopped == 0; i++) {
		if (!is_decided(orgtree_at(im->tree, i)))
			add(im, orgtree_at(im->tree, i));
		show_progress(im);
	}
	import_flush(im);
}

void import_departments(struct import *im)
{
	size_t count = orgtree_count(im->tree), last;

	if (count == 0)
		return;
	im->progress = progress_new(im->dry_run ? "checking" : "importing", "departments");
	for (size_t first = 0; first < count && im->stopped == 0; first = last) {
		uint32_t depth = orgtree_at(im->tree, first)->depth;
		for (last = first; last < count && orgtree_at(im->tree, last)->depth == depth; last++)
			;
		send_level(im, first, last);
	}
	if (im->stopped == 0)
		progress_set(im->progress, count, count, count);
	progress_free(im->progress);
	im->progress = NULL;
}

void import_retire(struct import *im)
{
	for (size_t i = 0; i < orgtree_count(im->tree) && im->stopped == 0 && im->sender != NULL; i++) {
		struct org *org = orgtree_at(im->tree, i);
		struct import_words w = {0};
		if (!org->retired || org->retired_there || org->state == ORG_FAILED)
			continue;
		import_word(&w, BYTES_LIT("TEAM.REMOVE"));
		import_word(&w, bytes_of(org_id(org)));
		import_word(&w, BYTES_LIT("RETIRE"));
		import_put(im, &w, org->line, org);
	}
	import_flush(im);
}

/* ---- replies ---- */

static bool is_as_said(const struct org *org, const redisReply *map)
{
	const char *name = org_name(org)[0] != '\0' ? org_name(org) : org_id(org);

	return strcmp(answer_str(map, "parent"), org_parent(org)) == 0 &&
	       strcmp(answer_str(map, "name"), name) == 0 &&
	       strcmp(answer_str(map, "manager"), org_manager(org)) == 0;
}

/* The reply to TEAM.GET. What looks different is added all the same: the server compares names better and
 * says best what is in the way. */
static void take_answer(struct import *im, struct org *org, const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ERROR) {
		org->retired_there = strcmp(answer_str(reply, "state"), "retired") == 0;
		if (is_as_said(org, reply))
			settle(im, org, ORG_UNCHANGED);
		else
			org->state = ORG_OTHER;
	} else if (strncmp(reply->str, "UNKNOWN ", 8) == 0) {
		org->state = ORG_NEW;
	} else {
		fail(im, org, reply->str);
	}
}

void import_department_done(struct import *im, struct org *org, const redisReply *reply)
{
	if (reply == NULL)
		settle(im, org, ORG_CREATED);
	else if (org->state == ORG_WAITING)
		take_answer(im, org, reply);
	else if (reply->type == REDIS_REPLY_ERROR)
		fail(im, org, reply->str);
	else if (!is_decided(org))
		settle(im, org, org->state == ORG_NEW ? ORG_CREATED : ORG_UNCHANGED);
}

void import_count_departments(struct import *im)
{
	for (size_t i = 0; i < orgtree_count(im->tree); i++) {
		const struct org *org = orgtree_at(im->tree, i);
		im->created += org->state == ORG_CREATED;
		im->unchanged += org->state == ORG_UNCHANGED;
	}
	im->counts[ROW_DEPARTMENT].ok = im->created + im->unchanged;
	if (im->dry_run)
		im->created = 0;
}
