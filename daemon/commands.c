/* SPDX-License-Identifier: MIT */
#include "daemon/commands.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/users.h"

#define SLOTS 512 /* a power of two, several times the table */

static const struct command *slots[SLOTS];

static size_t hash(struct bytes name)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < name.n; i++)
		h = (h ^ (uint32_t)toupper((unsigned char)name.p[i])) * 16777619u;
	return (h ^ h >> 15) & (SLOTS - 1);
}

void commands_init(void)
{
	size_t count;
	const struct command *table = commands_table(&count);

	assert(count < SLOTS / 2);
	memset(slots, 0, sizeof(slots));
	for (size_t i = 0; i < count; i++) {
		size_t at = hash(bytes_of(table[i].name));
		while (slots[at] != NULL)
			at = (at + 1) & (SLOTS - 1);
		slots[at] = &table[i];
	}
}

bool commands_exists(const struct command *command)
{
	return (command->flags & CMD_HELD_CLOCK) == 0 || clock_held();
}

const struct command *commands_find(struct bytes name)
{
	for (size_t at = hash(name); slots[at] != NULL; at = (at + 1) & (SLOTS - 1)) {
		if (bytes_is_word(name, slots[at]->name))
			return commands_exists(slots[at]) ? slots[at] : NULL;
	}
	return NULL;
}

size_t commands_index(const struct command *command)
{
	size_t count;
	return (size_t)(command - commands_table(&count));
}

const char *commands_lower(const struct command *command, char dst[COMMAND_NAME])
{
	size_t i = 0;

	for (; command->name[i] != '\0' && i < COMMAND_NAME - 1; i++)
		dst[i] = (char)tolower((unsigned char)command->name[i]);
	dst[i] = '\0';
	return dst;
}

bool commands_is_sub(const struct command *command, const struct command *container)
{
	size_t n = strlen(container->name);
	return strncmp(command->name, container->name, n) == 0 && command->name[n] == '|';
}

/* Subcommands stand right behind their container. */
static bool has_subs(const struct command *command)
{
	size_t count;
	const struct command *table = commands_table(&count);
	return command + 1 < table + count && commands_is_sub(command + 1, command);
}

static const struct command *find_sub(const struct command *container, struct bytes word)
{
	char name[COMMAND_NAME];

	if (word.n > COMMAND_NAME / 2)
		return NULL;
	int n = snprintf(name, sizeof(name), "%s|%.*s", container->name, (int)word.n, word.p);
	return commands_find((struct bytes){name, (size_t)n});
}

/* At most 128 bytes of what a client typed, for an error text. */
static int shown(struct bytes b)
{
	return b.n < 128 ? (int)b.n : 128;
}

static bool fail_arity(struct call *call, const struct command *command)
{
	char name[COMMAND_NAME];

	reply_error(&call->reply, "ERR wrong number of arguments for '%s' command",
		commands_lower(command, name));
	return false;
}

bool commands_resolve(struct call *call)
{
	struct bytes name = call->argv[0];
	/* A subcommand is found by two words only. */
	const struct command *command = memchr(name.p, '|', name.n) == NULL ? commands_find(name) : NULL;

	if (command == NULL) {
		reply_error(&call->reply, "ERR unknown command '%.*s'", shown(name), name.p);
		return false;
	}
	if (call->argc > 1 && has_subs(command)) {
		const struct command *sub = find_sub(command, call->argv[1]);
		if (sub == NULL) {
			reply_error(&call->reply, "ERR unknown subcommand '%.*s'. Try %s HELP.",
				shown(call->argv[1]), call->argv[1].p, command->name);
			return false;
		}
		command = sub;
	}
	if (command->exec == NULL || call->argc < command->min_argc ||
		(command->max_argc >= 0 && call->argc > command->max_argc))
		return fail_arity(call, command);
	call->command = command;
	return true;
}

bool commands_permitted(const struct command *command, const struct user *user)
{
	if (command->privilege == PRIV_NONE)
		return true;
	if (!user_may(user, command->privilege))
		return false;
	return user->employee[0] == '\0' || (command->flags & CMD_SELF) != 0;
}

static void audit(const struct call *call, const struct access *access, const char *why)
{
	struct bytes target = call->argc > 1 ? call->argv[1] : BYTES_LIT("");
	log_notice("client %lld event=denied user=%s command=%s target=%.*s reason=%s", access->client_id,
		access->user->name, call->command->name, shown(target), target.n > 0 ? target.p : "", why);
}

static bool check_user(struct call *call, const struct access *access)
{
	const struct command *command = call->command;
	const struct user *user = access->user;
	char name[COMMAND_NAME];

	if (command->privilege == PRIV_NONE)
		return true;
	if (user == NULL) {
		reply_error(&call->reply, "NOAUTH Authentication required.");
		return false;
	}
	if (!commands_permitted(command, user)) {
		audit(call, access, "right");
		reply_error(&call->reply, "NOPERM this user has no permissions to run the '%s' command",
			commands_lower(command, name));
		return false;
	}
	if (user->employee[0] != '\0' && !bytes_eq(call->argv[1], bytes_of(user->employee))) {
		audit(call, access, "other_employee");
		reply_error(&call->reply, "NOPERM this user may ask for employee %s only", user->employee);
		return false;
	}
	return true;
}

static bool check_state(struct call *call, const struct access *access)
{
	unsigned flags = call->command->flags;

	if ((flags & CMD_WRITE) != 0 && access->draining) {
		reply_error(&call->reply, "NOTREADY shutting down");
		return false;
	}
	if ((flags & CMD_NEEDS_REDIS) == 0)
		return true;
	if (!access->ready) {
		reply_error(&call->reply, "NOTREADY starting: %s", access->trouble);
		return false;
	}
	if (!access->redis_up) {
		reply_error(
			&call->reply, "UNAVAILABLE no connection to Redis; nothing was done, send it again");
		return false;
	}
	return true;
}

bool commands_allow(struct call *call, const struct access *access)
{
	return check_user(call, access) && check_state(call, access);
}
