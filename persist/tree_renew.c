/* SPDX-License-Identifier: MIT */
#include "persist/tree_renew.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/forest_build.h"
#include "persist/text_queue.h"
#include "persist/tree_journal.h"
#include "persist/tree_load.h"

#define SLICE   4000 /* small steps before the loop turns */
#define ENTRIES 500  /* of the journal, in a read */
#ifndef POLL_MS      /* tests look more often */
#define POLL_MS 500
#endif
/* Half of what the organisation's journal keeps: after a longer sleep of ours entries may be gone unseen. */
#define SLEEP_MAX_US (30 * INT64_C(1000000))

enum renew_state {
	RENEW_LOADING,   /* nodes are being read */
	RENEW_REPLAYING, /* records are being applied, or the next ones read from the journal */
	RENEW_DROPPING,  /* a subtree that a record has removed is being freed */
	RENEW_RESTING,   /* nothing is being read; what is left will be looked at */
	RENEW_BUILDING,
	RENEW_DONE /* or failed; done() has been called */
};

static const char *const state_names[] = {"loading", "replaying", "dropping", "resting", "building", "done"};

/* The journal is read all the while, lest it is trimmed before the nodes have been read; its records wait in
 * the backlog. */
struct tree_renew {
	struct redis *redis;
	struct forest *forest;
	void (*done)(bool ok, void *arg);
	void *arg;
	enum renew_state state;
	struct tree_load *load;
	struct build *build;
	struct event *work;  /* the next slice */
	struct event *timer; /* the next look into the journal */
	int64_t polled_us;
	struct stream_id at; /* how far the journal has been read */
	struct text_queue backlog;
	bool reading;
	bool expecting; /* when it was asked for, there was more in the journal */
	bool ended;
};

static void set_state(struct tree_renew *r, enum renew_state state)
{
	if (r->state != state)
		log_debug("persist tree event=renew from=%s to=%s nodes=%zu", state_names[r->state],
			state_names[state], forest_size(r->forest));
	r->state = state;
}

static void set_work(struct tree_renew *r, enum renew_state state)
{
	struct timeval now = {0, 0};

	set_state(r, state);
	event_add(r->work, &now);
}

static void finish(struct tree_renew *r, bool ok)
{
	set_state(r, RENEW_DONE);
	r->done(ok, r->arg);
}

/* ---- the journal behind the beginning ---- */

static void replay(struct tree_renew *r);

static void on_record(struct bytes text, void *arg)
{
	struct tree_renew *r = arg;

	text_push(&r->backlog, text);
}

static void read_journal(struct tree_renew *r);

static void on_entries(const struct redisReply *reply, void *arg)
{
	struct tree_renew *r = arg;
	size_t i = 0, count = redis_count(reply);

	r->reading = false;
	if (r->ended) {
		free(r);
		return;
	}
	while (i < count && tree_journal_entry(reply, i, &r->at, on_record, r))
		i++;
	if (r->state == RENEW_DONE)
		return;
	/* What must be there and is not has been trimmed unseen, or lost. */
	if (!redis_is_array(reply) || i < count || (r->expecting && count == 0))
		finish(r, false);
	else if (r->state == RENEW_REPLAYING)
		replay(r);
	else if (count == ENTRIES)
		read_journal(r);
}

static void read_journal(struct tree_renew *r)
{
	if (r->reading)
		return;
	r->expecting = r->state == RENEW_REPLAYING;
	r->reading = tree_journal_after(r->redis, r->at, ENTRIES, on_entries, r);
}

/* The journal is read from where it was when the first node was. */
static bool know_place(struct tree_renew *r)
{
	struct stream_id first = tree_load_first(r->load);

	if (stream_id_compare(r->at, first) < 0)
		r->at = first;
	return tree_load_begun(r->load);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct tree_renew *r = arg;
	int64_t slept = clock_mono_us() - r->polled_us;

	(void)fd;
	(void)what;
	r->polled_us += slept;
	if (slept > SLEEP_MAX_US && r->state != RENEW_DONE)
		finish(r, false);
	else if (r->state < RENEW_RESTING && know_place(r))
		read_journal(r);
}

/* Whether the next record can be applied at once. */
static bool apply(struct tree_renew *r, struct bytes text)
{
	struct tree_record record;

	if (!tree_record_parse(text, &record))
		return true;
	switch (tree_load_apply(r->load, &record)) {
	case LOAD_APPLIED:
		return true;
	case LOAD_DROP:
		set_work(r, RENEW_DROPPING);
		break;
	case LOAD_READ:
		set_state(r, RENEW_LOADING);
		break;
	case LOAD_RESTART:
		log_info("persist tree event=restart");
		finish(r, false);
	}
	return false;
}

/* Up to where the last of the nodes was read; then the forest is that of one instant. */
static void replay(struct tree_renew *r)
{
	struct bytes text;

	set_state(r, RENEW_REPLAYING);
	for (int left = SLICE / 4; left > 0; left--) {
		if (text_pop(&r->backlog, &text)) {
			if (!apply(r, text))
				return;
		} else if (!r->reading && stream_id_compare(r->at, tree_load_last(r->load)) >= 0) {
			set_work(r, RENEW_RESTING);
			return;
		} else {
			read_journal(r);
			if (!r->reading)
				finish(r, false);
			return;
		}
	}
	set_work(r, RENEW_REPLAYING);
}

static void on_idle(void *arg)
{
	struct tree_renew *r = arg;

	if (!know_place(r) || tree_load_failed(r->load))
		finish(r, false);
	else
		replay(r);
}

/* ---- slices ---- */

static void drop_some(struct tree_renew *r)
{
	int budget = SLICE;

	if (forest_drop(r->forest, &budget, NULL, NULL))
		replay(r);
	else
		set_work(r, RENEW_DROPPING);
}

static void look_at_rest(struct tree_renew *r)
{
	switch (tree_load_rest(r->load)) {
	case LOAD_COMPLETE:
		tree_load_end(r->load);
		r->build = build_new(r->forest);
		set_work(r, RENEW_BUILDING);
		break;
	case LOAD_ASKED:
		set_state(r, RENEW_LOADING);
		break;
	case LOAD_REMOVED:
		set_work(r, RENEW_DROPPING);
		break;
	case LOAD_BUSY:
		set_work(r, RENEW_RESTING);
	}
}

static void build_some(struct tree_renew *r)
{
	int budget = SLICE;
	const char *example;

	if (!build_step(r->build, &budget)) {
		set_work(r, RENEW_BUILDING);
		return;
	}
	size_t stray = build_stray(r->build, &example);
	if (stray > 0)
		log_error("persist tree event=stray departments=%zu example=%s: no root is above them, "
			  "TEAM.CHECK says why",
			stray, example);
	finish(r, true);
}

static void on_work(evutil_socket_t fd, short what, void *arg)
{
	struct tree_renew *r = arg;

	(void)fd;
	(void)what;
	if (r->state == RENEW_REPLAYING)
		replay(r);
	else if (r->state == RENEW_DROPPING)
		drop_some(r);
	else if (r->state == RENEW_RESTING)
		look_at_rest(r);
	else if (r->state == RENEW_BUILDING)
		build_some(r);
}

/* ---- life ---- */

struct tree_renew *tree_renew_new(
	struct event_base *base, struct redis *redis, void (*done)(bool ok, void *arg), void *arg)
{
	struct tree_renew *r = xcalloc(1, sizeof(*r));
	struct timeval every = {0, POLL_MS * 1000};

	r->redis = redis;
	r->done = done;
	r->arg = arg;
	r->forest = forest_new();
	r->polled_us = clock_mono_us();
	r->work = event_new(base, -1, 0, on_work, r);
	r->timer = event_new(base, -1, EV_PERSIST, on_timer, r);
	event_add(r->timer, &every);
	r->load = tree_load_new(redis, r->forest, on_idle, r);
	return r;
}

struct forest *tree_renew_end(struct tree_renew *r, struct stream_id *ret_at)
{
	struct forest *f = r->forest;

	*ret_at = r->at;
	tree_load_free(r->load);
	build_free(r->build);
	event_free(r->work);
	event_free(r->timer);
	text_release(&r->backlog);
	r->ended = true;
	if (!r->reading)
		free(r);
	return f;
}

size_t tree_renew_size(const struct tree_renew *r)
{
	return forest_size(r->forest);
}

size_t tree_renew_stray(const struct tree_renew *r)
{
	const char *example;

	return r->build != NULL ? build_stray(r->build, &example) : 0;
}
