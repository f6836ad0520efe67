/* SPDX-License-Identifier: MIT */
#include "persist/employee_set.h"

#include "base/clock.h"
#include "persist/keys.h"
#include "persist/record.h"
#include "persist/redis.h"

void employee_set_head(struct redis_args *args, void *arg)
{
	struct buf base = BUF_INIT;

	(void)arg;
	key_org(&base, "");
	redis_arg_key(args, &base);
	redis_arg_i64(args, clock_wall_ms());
	buf_release(&base);
}

static void add_maps(struct redis_args *keys, struct buf *scratch, struct bytes dept, int32_t today)
{
	key_emps(scratch, dept);
	redis_arg_key(keys, scratch);
	for (int32_t day = today; day <= today + 1; day++) {
		key_day(scratch, dept, day);
		redis_arg_key(keys, scratch);
	}
}

void employee_set_add(struct batch *b, const struct employee_change *c, int32_t today, batch_cb cb, void *arg)
{
	struct redis_args *keys, *args;
	struct buf scratch = BUF_INIT;
	int partition = keys_partition_of(c->dept);

	batch_add_begin(b, &keys, &args);
	key_dir(&scratch, c->id);
	redis_arg_key(keys, &scratch);
	key_org_of(&scratch, "dept", c->dept);
	redis_arg_key(keys, &scratch);
	add_maps(keys, &scratch, c->dept, today);
	add_maps(keys, &scratch, c->believed.n > 0 ? c->believed : c->dept, today);
	key_journal(&scratch, partition);
	redis_arg_key(keys, &scratch);
	key_days(&scratch, partition);
	redis_arg_key(keys, &scratch);

	redis_arg(args, c->id);
	redis_arg(args, c->named ? c->name : (struct bytes){"", 0});
	redis_arg_str(args, c->named ? "1" : "0");
	redis_arg(args, c->believed);
	redis_arg(args, c->dept);
	record_employee_head(&scratch, c->id, c->dept, clock_wall_ms());
	redis_arg_key(args, &scratch);
	redis_arg_str(args, c->must_exist ? "1" : "0");
	buf_release(&scratch);
	batch_add_end(b, cb, arg);
}
