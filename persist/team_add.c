/* SPDX-License-Identifier: MIT */
#include "persist/team_add.h"

#include "persist/keys.h"
#include "rules/when.h"

enum redis_sent team_add_send(struct redis *redis, struct bytes id, struct bytes parent, struct bytes name,
	struct bytes manager, int32_t today, redis_cb cb, void *arg)
{
	struct redis_args a;
	struct buf text = BUF_INIT;
	char date[DATE_TEXT];

	redis_args_init(&a);
	key_org_of(&text, "dept", id);
	redis_arg_key(&a, &text);
	key_journal(&text, keys_org());
	redis_arg_key(&a, &text);
	key_days(&text, keys_partition_of(id));
	redis_arg_key(&a, &text);
	for (int32_t day = today; day <= today + 1; day++) {
		key_day(&text, id, day);
		redis_arg_key(&a, &text);
	}
	key_org(&text, "");
	redis_arg_key(&a, &text);
	redis_arg(&a, id);
	redis_arg(&a, parent);
	redis_arg(&a, name);
	redis_arg(&a, manager);
	redis_arg_i64(&a, TEAM_DEPTH_MAX);
	for (int32_t day = today; day <= today + 1; day++) {
		buf_addf(&text, "%.*s:%s", (int)id.n, id.p, date_format(day, date));
		redis_arg_key(&a, &text);
	}
	buf_release(&text);
	return redis_eval(redis, SCRIPT_TEAM_ADD, 5, &a, cb, arg);
}
