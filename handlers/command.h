/* SPDX-License-Identifier: MIT */
/* One command of the table and one call of it.
 *
 * daemon/commands.c holds the table, the only source of dispatch, arity, privilege, HELP, COMMAND DOCS and
 * the check of doc/protocol.md. The daemon parses, checks and starts calls; a handler fills in the reply and
 * returns a verdict. It never writes to a socket, closes a client or frees a call.
 *
 * Life of a call: parsed -> prepare (any number of calls ahead, see below) -> started in the order of its
 * connection -> CALL_DONE at once, or CALL_WAIT and later call_finish(). Replies leave in order. A client
 * that goes away in between leaves its calls running: they finish, and their replies are dropped. A call that
 * waits for the world outside asks to be told by on_hangup(). */
#ifndef HANDLERS_COMMAND_H
#define HANDLERS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/reply.h"

struct app;
struct call;
struct client;

enum verdict {
	CALL_DONE, /* the reply (or an error) is in call->reply */
	CALL_WAIT, /* call_finish() will be called, exactly once and not before the handler has returned */
};

/* What a user must hold to call it. A user's set is a mask of 1 << privilege. */
enum privilege {
	PRIV_NONE,  /* anyone, before AUTH too */
	PRIV_PUNCH, /* report check-ins */
	PRIV_READ,  /* look at everything */
	PRIV_WRITE, /* change employees and departments */
	PRIV_TASK,  /* submit tasks and work on them */
	PRIV_ADMIN, /* close days, failures, notices, queues, clients, reload */
};

/* How a call stands to the others of its connection. */
enum lane {
	LANE_LOCAL,   /* answered by the daemon alone */
	LANE_STREAM,  /* goes to Redis in the order of the connection; may follow another without waiting */
	LANE_BARRIER, /* waits until all earlier ones have finished, and later ones wait for it; calls of the
		       * same command in a row may run together */
};

enum command_flag {
	CMD_WRITE = 1 << 0, /* changes something: refused while draining */
	CMD_SELF = 1 << 1,  /* argv[1] is an employee: a user bound to one may call it for that one only */
	CMD_HELD_CLOCK = 1 << 2,  /* exists only with --held-clock */
	CMD_NEEDS_REDIS = 1 << 3, /* UNAVAILABLE at once while Redis is away, NOTREADY while starting */
	CMD_READONLY = 1 << 4,
};

enum arg_type { ARG_STRING, ARG_INTEGER, ARG_TIME, ARG_TOKEN, ARG_ONEOF, ARG_BLOCK };
enum arg_flag { ARG_OPTIONAL = 1, ARG_MULTIPLE = 2 };

/* For HELP, COMMAND DOCS and redis-cli's hints. An array ends with a name of NULL. */
struct command_arg {
	const char *name;
	enum arg_type type;
	const char *token; /* the word before it, or the word itself for ARG_TOKEN */
	unsigned flags;
	const struct command_arg *args; /* of ONEOF and BLOCK */
};

struct command {
	const char *name; /* upper case; a subcommand is "CLIENT|LIST" */
	const char *group;
	const char *summary;    /* one sentence */
	const char *reply;      /* what it answers, one line, for the documents */
	int min_argc, max_argc; /* the name counts; max -1 = as many as fit */
	enum privilege privilege;
	enum lane lane;
	unsigned flags;
	const struct command_arg *args;
	/* May be NULL. Called as soon as the call is parsed, before earlier calls of the connection are done.
	 * Looks up what the start will need. True = ready; false = call_prepared() will be called. It must
	 * not change anything and must tolerate that what it saw is outdated by the start. */
	bool (*prepare)(struct call *call);
	enum verdict (*exec)(struct call *call);
};

struct call {
	const struct command *command;
	struct app *app;
	struct client *client; /* NULL once it has gone; only daemon/ looks into it */
	int argc;
	struct bytes *argv; /* argv[0] is the name as typed; valid as long as the call */
	struct reply reply;
	int64_t received_us; /* monotonic */
	/* The handler's own; the call does not free it. */
	void *op;
	/* Set in exec: it may wait long, so nothing behind it is started before it has finished. */
	bool alone;
	/* The handler's own, may be NULL: hung_up has become true while the call runs. May finish the call.
	 */
	void (*on_hangup)(struct call *call);
	/* Set by the daemon. */
	bool hung_up; /* the peer has sent its last byte; perhaps it still listens, perhaps it is gone */
	void (*finished)(struct call *call);
	void (*prepared)(struct call *call);
	bool (*looked)(struct call *call);
};

static inline void call_finish(struct call *call)
{
	call->finished(call);
}

static inline void call_prepared(struct call *call)
{
	call->prepared(call);
}

/* Whether hung_up is true, or would be if all that has come were read: for what must not be handed to nobody.
 */
static inline bool call_hung_up(struct call *call)
{
	return call->hung_up || call->looked(call);
}

/* Replies an error and is the verdict: `return call_fail(call, "ERR …")`. What was in the reply is dropped.
 */
#define call_fail(call, ...)                                                                                 \
	(reply_reset(&(call)->reply), reply_error(&(call)->reply, __VA_ARGS__), CALL_DONE)

#endif
