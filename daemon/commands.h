/* SPDX-License-Identifier: MIT */
/* The command table and everything that is checked before a handler sees a call. commands_table.c holds the
 * entries; dispatch, arity, privilege, HELP, COMMAND DOCS and the check of doc/protocol.md all read them
 * there. To add a command is to add an entry. */
#ifndef DAEMON_COMMANDS_H
#define DAEMON_COMMANDS_H

#include <stddef.h>

#include "handlers/command.h"

struct user;

/* A subcommand "CLIENT|LIST" stands behind its container "CLIENT", whose exec is NULL unless the bare word is
 * a command too. */
const struct command *commands_table(size_t *ret_count);

/* Builds the index. Once, at start. */
void commands_init(void);
/* By full name, as "client|list", case ignored; NULL when it does not exist (now: see CMD_HELD_CLOCK). */
const struct command *commands_find(struct bytes name);
size_t commands_index(const struct command *command);
#define COMMAND_NAME 48 /* bytes of the longest name, with its NUL */
/* The name in lower case, as Redis writes it; returns dst. */
const char *commands_lower(const struct command *command, char dst[COMMAND_NAME]);
/* True for "CLIENT|LIST" of "CLIENT". */
bool commands_is_sub(const struct command *command, const struct command *container);
/* False for one that exists only with a held clock, without one. */
bool commands_exists(const struct command *command);

/* Looks up call->argv and checks the number of arguments; false with an error in the reply. */
bool commands_resolve(struct call *call);

/* What the checks of a call depend on. */
struct access {
	const struct user *user; /* NULL: has not said who he is */
	long long client_id;     /* for the audit log */
	bool ready;              /* the stores are known and the days caught up */
	const char *trouble;     /* why it is not ready */
	bool redis_up;
	bool draining;
};

/* Whether the call may start; false with an error in the reply, and a refusal for lack of rights is logged.
 */
bool commands_allow(struct call *call, const struct access *access);
/* The part of it that depends on the user alone; says and logs nothing. */
bool commands_permitted(const struct command *command, const struct user *user);

/* Replies of COMMAND, COMMAND DOCS and HELP. */
void commands_reply_info(struct reply *r, const struct command *command);
void commands_reply_docs(struct reply *r, const struct command *command);
/* `CHECKIN id [IN|OUT] [AT t]`, appended to out. */
void commands_usage(struct buf *out, const struct command *command);
/* The whole table, by group: the last chapter of doc/protocol.md. */
void commands_markdown(struct buf *out);

#endif
