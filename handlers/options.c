/* SPDX-License-Identifier: MIT */
#include "handlers/options.h"

#include "handlers/app.h"
#include "rules/when.h"

static int refuse(struct call *call, const struct option *options, struct bytes word)
{
	struct buf expected = BUF_INIT;

	for (; options->word != NULL; options++)
		buf_addf(&expected, "%s%s", expected.len > 0 ? ", " : "", options->word);
	(void)call_fail(call, "ERR syntax error at '%.*s', expected %s, each at most once and with its value",
		(int)(word.n < 64 ? word.n : 64), word.p, expected.len > 0 ? expected.data : "nothing more");
	buf_release(&expected);
	return -1;
}

/* The values behind the word; the index of the last. */
static int take(struct call *call, int i, const struct option *o)
{
	*o->value = call->argv[++i];
	if (o->second != NULL)
		*o->second = call->argv[++i];
	return i;
}

int options_read(struct call *call, int from, const struct option *options)
{
	for (int i = from; i < call->argc; i++) {
		const struct option *o = options;
		while (o->word != NULL && !bytes_is_word(call->argv[i], o->word))
			o++;
		if (o->word != NULL && o->flag != NULL && !*o->flag)
			*o->flag = true;
		else if (o->word != NULL && o->value != NULL && o->value->p == NULL &&
			 i + 1 + (o->second != NULL) < call->argc)
			i = take(call, i, o);
		else
			return refuse(call, options, call->argv[i]);
	}
	return 0;
}

bool check_dept(struct call *call, struct bytes id)
{
	if (id_valid(id))
		return true;
	(void)call_fail(call, "ERR invalid department id, expected 1 to 64 letters, digits, '_' or '-'");
	return false;
}

bool check_employee(struct call *call, struct bytes id)
{
	if (person_id_valid(id))
		return true;
	(void)call_fail(
		call, "ERR invalid employee id, expected 1 to 64 letters, digits, '_', '-', '.' or '@'");
	return false;
}

bool check_name(struct call *call, struct bytes name)
{
	if (name_valid(name))
		return true;
	(void)call_fail(
		call, "ERR invalid name, expected UTF-8 of at most 255 bytes without control characters");
	return false;
}

bool check_day(struct call *call, struct bytes text, int32_t *ret_day)
{
	if (text.p == NULL) {
		*ret_day = app_today();
		return true;
	}
	if (date_parse(text, ret_day))
		return true;
	(void)call_fail(call, "ERR invalid day, expected " DATE_EXPECTED);
	return false;
}

bool check_count(struct call *call, struct bytes text, int64_t *ret_count)
{
	*ret_count = 100;
	if (text.p == NULL || (bytes_to_i64(text, ret_count) && *ret_count >= 1 && *ret_count <= 1000))
		return true;
	(void)call_fail(call, "ERR invalid COUNT, expected a number from 1 to 1000");
	return false;
}
