/* SPDX-License-Identifier: MIT */
#include "handlers/notice.h"

#include "handlers/app.h"
#include "handlers/options.h"
#include "mq/mq.h"

static const char away[] = "UNAVAILABLE RabbitMQ is away, nothing was done; try again";

static void on_parked(const struct mq_message *const *items, size_t count, const char *error, void *arg)
{
	struct call *call = arg;
	struct reply *r = &call->reply;

	if (error != NULL) {
		(void)call_fail(call, "UNAVAILABLE %s", error);
		call_finish(call);
		return;
	}
	reply_array(r, count);
	for (size_t i = 0; i < count; i++) {
		reply_map(r, 8);
		reply_field_bulk(r, "id", items[i]->message_id);
		reply_field_bulk(r, "type", items[i]->type);
		reply_field_bulk(r, "queue", items[i]->queue);
		reply_field_int(r, "attempts", items[i]->attempt);
		reply_field_bulk(r, "reason", items[i]->reason);
		reply_field_int(r, "time", items[i]->timestamp_s * 1000);
		reply_field_bulk(r, "key", items[i]->key);
		reply_field_bulk(r, "body", items[i]->body);
	}
	call_finish(call);
}

enum verdict notice_parked_exec(struct call *call)
{
	struct bytes count_text = {0};
	const struct option options[] = {{"COUNT", &count_text, NULL}, {0}};
	int64_t count;

	if (options_read(call, 1, options) != 0 || !check_count(call, count_text, &count))
		return CALL_DONE;
	if (mq_parked_list(call->app->mq, (size_t)count, on_parked, call) != 0)
		return call_fail(call, "%s", away);
	return CALL_WAIT;
}

static void on_replayed(size_t replayed, const char *error, void *arg)
{
	struct call *call = arg;

	if (error != NULL)
		(void)call_fail(
			call, "UNAVAILABLE %zu sent again, the rest is still parked: %s", replayed, error);
	else
		reply_int(&call->reply, (int64_t)replayed);
	call_finish(call);
}

enum verdict notice_replay_exec(struct call *call)
{
	struct bytes count_text = {0}, id = {0};
	const struct option options[] = {{"COUNT", &count_text, NULL}, {"ID", &id, NULL}, {0}};
	int64_t count;

	if (options_read(call, 1, options) != 0 || !check_count(call, count_text, &count))
		return CALL_DONE;
	if (id.p == NULL)
		id = (struct bytes){"", 0};
	if (id.n > 255)
		return call_fail(call, "ERR invalid ID, expected a message id of at most 255 bytes");
	if (mq_parked_replay(call->app->mq, (size_t)count, id, on_replayed, call) != 0)
		return call_fail(call, "%s", away);
	return CALL_WAIT;
}
