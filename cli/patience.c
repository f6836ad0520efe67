/* SPDX-License-Identifier: MIT */
#include "cli/patience.h"

#include "base/clock.h"
#include "cli/progress.h"

#define LOOK_FIRST_MS 200
#define LOOK_MAX_MS   1000

/* True when somebody answers. */
static bool look(const struct patience *p, struct progress *progress)
{
	uint64_t done = 0, total = 0;
	redisReply *reply = conn_try(p->options, p->look);
	bool answered = reply != NULL;

	if (answered && reply->type != REDIS_REPLY_ERROR) {
		p->seen(reply, &done, &total, p->arg);
		if (done > 0 || total > 0)
			progress_set(progress, done, total, done);
	}
	freeReplyObject(reply);
	return answered;
}

/* Until the answer can be read; false when nobody is there any more. */
static bool await(const struct patience *p, const struct conn *c, struct progress *progress)
{
	int64_t heard_us = clock_mono_us();
	int wait_ms = LOOK_FIRST_MS;

	while (!conn_await(c, wait_ms)) {
		if (look(p, progress))
			heard_us = clock_mono_us();
		else if (clock_mono_us() - heard_us > (int64_t)p->options->timeout_ms * 1000)
			return false;
		wait_ms = wait_ms * 2 < LOOK_MAX_MS ? wait_ms * 2 : LOOK_MAX_MS;
	}
	return true;
}

/* The reply, or NULL. */
static redisReply *ask(const struct patience *p, struct conn *c, const struct request *r)
{
	if (!conn_start(c, r))
		return NULL;
	struct progress *progress = progress_new(p->what, p->unit);
	bool there = await(p, c, progress);
	progress_free(progress);
	return there ? conn_next(c) : NULL;
}

int patience_ask(const struct patience *p, const struct request *r, redisReply **ret)
{
	int result;
	struct conn *c = conn_open(p->options, false, &result);

	if (c == NULL)
		return result;
	redisReply *reply = ask(p, c, r);
	if (reply == NULL) {
		const char *fault = conn_fault(c);
		cli_error("no answer: %s", fault[0] != '\0' ? fault : "nobody is there any more");
		result = CLI_UNREACHABLE;
	} else if (reply->type == REDIS_REPLY_ERROR) {
		conn_print_refusal(reply);
		freeReplyObject(reply);
		result = CLI_FAILED;
	} else {
		*ret = reply;
	}
	conn_close(c);
	return result;
}
