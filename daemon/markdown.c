/* SPDX-License-Identifier: MIT */
/* The command table as the last chapter of doc/protocol.md. */
#include "daemon/commands.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

static const char *right_of(enum privilege privilege)
{
	static const char *const rights[] = {
		[PRIV_NONE] = "anyone",
		[PRIV_PUNCH] = "punch",
		[PRIV_READ] = "read",
		[PRIV_WRITE] = "write",
		[PRIV_TASK] = "task",
		[PRIV_ADMIN] = "admin",
	};
	return rights[privilege];
}

static void add_command(struct buf *out, const struct command *command)
{
	buf_add_str(out, "\n**`");
	commands_usage(out, command);
	buf_addf(out, "`**<br>\n%s", command->summary);
	buf_addf(out, "<br>\nReply: %s. Right: %s.", command->reply, right_of(command->privilege));
	if ((command->flags & CMD_SELF) != 0)
		buf_add_str(out, " A user tied to an employee may call it for that one only.");
	if ((command->flags & CMD_HELD_CLOCK) != 0)
		buf_add_str(out, " Exists only with `--held-clock`.");
	buf_add_char(out, '\n');
}

void commands_markdown(struct buf *out)
{
	size_t count;
	const struct command *table = commands_table(&count);

	for (size_t i = 0; i < count; i++) {
		bool first = true;
		for (size_t k = 0; k < i && first; k++)
			first = strcmp(table[k].group, table[i].group) != 0;
		if (!first)
			continue;
		buf_addf(out, "%s### %s\n", i > 0 ? "\n" : "", table[i].group);
		for (size_t k = i; k < count; k++) {
			if (strcmp(table[k].group, table[i].group) == 0 && table[k].exec != NULL)
				add_command(out, &table[k]);
		}
	}
}
