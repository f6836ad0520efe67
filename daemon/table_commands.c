/* SPDX-License-Identifier: MIT */
/* COMMAND and HELP: what the table says. */
#include "base/buf.h"
#include "daemon/commands.h"
#include "daemon/server_commands.h"

static bool is_sub(const struct command *command)
{
	return strchr(command->name, '|') != NULL;
}

/* Calls fn for every command that exists and is no subcommand; returns how many. fn may be NULL. */
static size_t each(struct reply *r, void (*fn)(struct reply *r, const struct command *command))
{
	size_t count, found = 0;
	const struct command *table = commands_table(&count);

	for (size_t i = 0; i < count; i++) {
		if (is_sub(&table[i]) || !commands_exists(&table[i]))
			continue;
		found++;
		if (fn != NULL)
			fn(r, &table[i]);
	}
	return found;
}

enum verdict command_exec(struct call *call)
{
	reply_array(&call->reply, each(NULL, NULL));
	each(&call->reply, commands_reply_info);
	return CALL_DONE;
}

enum verdict command_count_exec(struct call *call)
{
	reply_int(&call->reply, (int64_t)each(NULL, NULL));
	return CALL_DONE;
}

static void reply_name(struct reply *r, const struct command *command)
{
	char name[COMMAND_NAME];
	reply_str(r, commands_lower(command, name));
}

enum verdict command_list_exec(struct call *call)
{
	reply_array(&call->reply, each(NULL, NULL));
	each(&call->reply, reply_name);
	return CALL_DONE;
}

enum verdict command_info_exec(struct call *call)
{
	if (call->argc == 2)
		return command_exec(call);
	reply_array(&call->reply, (size_t)call->argc - 2);
	for (int i = 2; i < call->argc; i++) {
		const struct command *command = commands_find(call->argv[i]);
		if (command == NULL)
			reply_null(&call->reply);
		else
			commands_reply_info(&call->reply, command);
	}
	return CALL_DONE;
}

/* Unknown names are left out, as Redis does. */
enum verdict command_docs_exec(struct call *call)
{
	size_t known = 0;

	if (call->argc == 2) {
		reply_map(&call->reply, each(NULL, NULL));
		each(&call->reply, commands_reply_docs);
		return CALL_DONE;
	}
	for (int i = 2; i < call->argc; i++)
		known += commands_find(call->argv[i]) != NULL;
	reply_map(&call->reply, known);
	for (int i = 2; i < call->argc; i++) {
		const struct command *command = commands_find(call->argv[i]);
		if (command != NULL)
			commands_reply_docs(&call->reply, command);
	}
	return CALL_DONE;
}

static void add_usage(struct buf *lines, size_t *count, const struct command *command)
{
	commands_usage(lines, command);
	buf_add_char(lines, '\n');
	buf_addf(lines, "    %s\n", command->summary);
	*count += 2;
}

/* An array of simple strings, one a line, which nc shows as it is. */
static enum verdict reply_lines(struct call *call, struct buf *lines, size_t count)
{
	char *at = lines->data;

	reply_array(&call->reply, count);
	for (size_t i = 0; i < count; i++) {
		char *end = strchr(at, '\n');
		*end = '\0';
		reply_status(&call->reply, at);
		at = end + 1;
	}
	buf_release(lines);
	return CALL_DONE;
}

enum verdict reply_help_of(struct call *call, const char *container)
{
	struct buf lines = BUF_INIT;
	size_t count, n = 0;
	const struct command *table = commands_table(&count);
	const struct command *head = commands_find(bytes_of(container));

	for (size_t i = 0; i < count; i++) {
		if (commands_is_sub(&table[i], head) && commands_exists(&table[i]))
			add_usage(&lines, &n, &table[i]);
	}
	return reply_lines(call, &lines, n);
}

enum verdict command_help_exec(struct call *call)
{
	return reply_help_of(call, "COMMAND");
}

static enum verdict help_all(struct call *call)
{
	struct buf lines = BUF_INIT;
	size_t count, n = 1;
	const struct command *table = commands_table(&count);

	buf_add_str(&lines, "Muster " MUSTER_VERSION ". HELP command says more about one of these:\n");
	for (size_t i = 0; i < count; i++) {
		if (table[i].exec == NULL || !commands_exists(&table[i]))
			continue;
		commands_usage(&lines, &table[i]);
		buf_add_char(&lines, '\n');
		n++;
	}
	return reply_lines(call, &lines, n);
}

static enum verdict help_one(struct call *call, const struct command *command)
{
	struct buf lines = BUF_INIT;
	size_t n = 0;

	add_usage(&lines, &n, command);
	if (command->reply != NULL) {
		buf_addf(&lines, "    Reply: %s\n", command->reply);
		n++;
	}
	buf_addf(&lines, "    Group: %s\n", command->group);
	return reply_lines(call, &lines, n + 1);
}

/* HELP, HELP CHECKIN, HELP CLIENT LIST, HELP CLIENT. */
enum verdict help_exec(struct call *call)
{
	char name[COMMAND_NAME];
	size_t n = 0;

	if (call->argc == 1)
		return help_all(call);
	for (int i = 1; i < call->argc; i++) {
		if (n + call->argv[i].n + 1 >= sizeof(name))
			return call_fail(call, "ERR no such command; HELP lists them");
		if (i > 1)
			name[n++] = '|';
		memcpy(name + n, call->argv[i].p, call->argv[i].n);
		n += call->argv[i].n;
	}
	const struct command *command = commands_find((struct bytes){name, n});
	if (command == NULL)
		return call_fail(call, "ERR no such command; HELP lists them");
	return command->exec != NULL ? help_one(call, command) : reply_help_of(call, command->name);
}
