/* SPDX-License-Identifier: MIT */
/* What the command table says about itself: COMMAND, COMMAND DOCS and HELP. */
#include "daemon/commands.h"

#include "base/buf.h"

static void reply_name(struct reply *r, const struct command *command)
{
	char name[COMMAND_NAME];
	reply_str(r, commands_lower(command, name));
}

/* The entries behind `command` that are its subcommands and exist. */
static size_t count_subs(const struct command *command)
{
	size_t count, subs = 0;
	const struct command *table = commands_table(&count);

	for (const struct command *c = command + 1; c < table + count && commands_is_sub(c, command); c++)
		subs += commands_exists(c);
	return subs;
}

static void each_sub(struct reply *r, const struct command *command,
	void (*fn)(struct reply *r, const struct command *command))
{
	size_t count;
	const struct command *table = commands_table(&count);

	for (const struct command *c = command + 1; c < table + count && commands_is_sub(c, command); c++) {
		if (commands_exists(c))
			fn(r, c);
	}
}

/* ---- COMMAND ---- */

static void reply_flags(struct reply *r, unsigned flags)
{
	reply_array(r, (size_t)((flags & CMD_WRITE) != 0) + ((flags & CMD_READONLY) != 0));
	if ((flags & CMD_WRITE) != 0)
		reply_status(r, "write");
	if ((flags & CMD_READONLY) != 0)
		reply_status(r, "readonly");
}

/* Ten elements, as Redis 7: no keys, no ACL categories, no tips. */
void commands_reply_info(struct reply *r, const struct command *command)
{
	bool open = command->max_argc != command->min_argc;

	reply_array(r, 10);
	reply_name(r, command);
	reply_int(r, open ? -command->min_argc : command->min_argc);
	reply_flags(r, command->flags);
	reply_int(r, 0);
	reply_int(r, 0);
	reply_int(r, 0);
	reply_array(r, 0);
	reply_array(r, 0);
	reply_array(r, 0);
	reply_array(r, count_subs(command));
	each_sub(r, command, commands_reply_info);
}

/* ---- COMMAND DOCS ---- */

static const char *type_name(enum arg_type type)
{
	static const char *const names[] = {
		[ARG_STRING] = "string",
		[ARG_INTEGER] = "integer",
		[ARG_TIME] = "string",
		[ARG_TOKEN] = "pure-token",
		[ARG_ONEOF] = "oneof",
		[ARG_BLOCK] = "block",
	};
	return names[type];
}

static size_t count_args(const struct command_arg *args)
{
	size_t n = 0;

	while (args != NULL && args[n].name != NULL)
		n++;
	return n;
}

/* redis-cli takes flags as simple strings only. */
static void reply_arg_flags(struct reply *r, unsigned flags)
{
	reply_str(r, "flags");
	reply_array(r, (size_t)((flags & ARG_OPTIONAL) != 0) + ((flags & ARG_MULTIPLE) != 0));
	if ((flags & ARG_OPTIONAL) != 0)
		reply_status(r, "optional");
	if ((flags & ARG_MULTIPLE) != 0)
		reply_status(r, "multiple");
}

static void reply_args(struct reply *r, const struct command_arg *args)
{
	reply_str(r, "arguments");
	reply_array(r, count_args(args));
	for (const struct command_arg *a = args; a->name != NULL; a++) {
		reply_map(r, 2u + (a->token != NULL) + (a->flags != 0) + (a->args != NULL));
		reply_field_str(r, "name", a->name);
		reply_field_str(r, "type", type_name(a->type));
		if (a->token != NULL)
			reply_field_str(r, "token", a->token);
		if (a->flags != 0)
			reply_arg_flags(r, a->flags);
		if (a->args != NULL)
			reply_args(r, a->args);
	}
}

/* Name and map: a pair of the reply of COMMAND DOCS, or of "subcommands" within. */
void commands_reply_docs(struct reply *r, const struct command *command)
{
	size_t subs = count_subs(command);
	bool args = count_args(command->args) > 0;

	reply_name(r, command);
	reply_map(r, 3u + (command->reply != NULL) + args + (subs > 0));
	reply_field_str(r, "summary", command->summary);
	reply_field_str(r, "since", "0.1.0");
	reply_field_str(r, "group", command->group);
	if (command->reply != NULL)
		reply_field_str(r, "reply", command->reply);
	if (args)
		reply_args(r, command->args);
	if (subs > 0) {
		reply_str(r, "subcommands");
		reply_map(r, subs);
		each_sub(r, command, commands_reply_docs);
	}
}

/* ---- usage ---- */

static void usage_args(struct buf *out, const struct command_arg *args, const char *separator);

static void usage_arg(struct buf *out, const struct command_arg *a)
{
	if (a->token != NULL)
		buf_add_str(out, a->token);
	if (a->token != NULL && a->type != ARG_TOKEN)
		buf_add_char(out, ' ');
	if (a->type == ARG_ONEOF)
		usage_args(out, a->args, "|");
	else if (a->type == ARG_BLOCK)
		usage_args(out, a->args, " ");
	else if (a->type != ARG_TOKEN)
		buf_add_str(out, a->name);
}

static void usage_args(struct buf *out, const struct command_arg *args, const char *separator)
{
	for (const struct command_arg *a = args; a != NULL && a->name != NULL; a++) {
		bool optional = (a->flags & ARG_OPTIONAL) != 0;
		if (a != args)
			buf_add_str(out, separator);
		if (optional)
			buf_add_char(out, '[');
		usage_arg(out, a);
		if ((a->flags & ARG_MULTIPLE) != 0) {
			buf_add_str(out, " [");
			usage_arg(out, a);
			buf_add_str(out, " …]");
		}
		if (optional)
			buf_add_char(out, ']');
	}
}

void commands_usage(struct buf *out, const struct command *command)
{
	for (const char *c = command->name; *c != '\0'; c++)
		buf_add_char(out, *c == '|' ? ' ' : *c);
	if (count_args(command->args) > 0)
		buf_add_char(out, ' ');
	usage_args(out, command->args, " ");
}
