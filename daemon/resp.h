/* SPDX-License-Identifier: MIT */
/* Reads requests in RESP, as arrays of bulk strings and as inline lines, out of bytes that arrive in any
 * pieces. Pure: no socket, no clock, and no memory but the list of arguments. It remembers how far it has
 * looked, so a command that comes one byte at a time costs no more than one that comes at once.
 *
 * The caller keeps the bytes. Each call is given all that are not consumed yet, the old ones first and
 * unchanged (their address may change), and says how many of them are consumed now, whatever the status is.
 */
#ifndef DAEMON_RESP_H
#define DAEMON_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct resp_limits {
	size_t max_line;    /* bytes of an inline line */
	size_t max_args;    /* arguments of a command, its name included */
	size_t max_payload; /* bytes of all arguments of a command together */
};

enum resp_status {
	RESP_MORE,    /* nothing yet; worth calling again once `need` bytes are there */
	RESP_COMMAND, /* a command: argc, args */
	RESP_EMPTY,   /* an empty line or array was consumed; nothing to answer */
	RESP_TOOBIG,  /* a well-formed command past a limit: answer `error` once, its rest is skipped by later
			 calls */
	RESP_ERROR,   /* not RESP: answer `error` and close; no further call */
};

/* Where an argument lies: an offset from `data` of the call that returned RESP_COMMAND. */
struct resp_arg {
	size_t at, n;
};

enum resp_state {
	RESP_START,     /* before the first byte of a command */
	RESP_INLINE,    /* in an inline line, no newline up to `scanned` */
	RESP_COUNT,     /* in "*<count>" */
	RESP_BULK_HEAD, /* in "$<length>" */
	RESP_BULK_BODY, /* in the bytes of the last of args */
	RESP_SKIP_LINE, /* dropping up to a newline */
	RESP_SKIP_HEAD, /* dropping an array: in "$<length>" */
	RESP_SKIP_BODY, /* dropping an array: `skip` bytes of a bulk string are left */
};

struct resp {
	enum resp_state state;
	size_t argc, cap;
	struct resp_arg *args; /* owned */
	size_t need;           /* unconsumed bytes that must be there before a further call can do anything */
	const char
		*error; /* of RESP_TOOBIG and RESP_ERROR: code and text, valid until any parser is called */
	size_t mark;    /* offset of the element that is being read */
	size_t scanned; /* bytes in which no end of line was found */
	size_t total;   /* bytes of the arguments so far */
	size_t left;    /* arguments still to come */
	size_t skip;
};

void resp_init(struct resp *r);
void resp_release(struct resp *r);

/* Text in quotes of an inline line is decoded in place, in bytes that are consumed by the same call. */
enum resp_status resp_parse(
	struct resp *r, const struct resp_limits *limits, char *data, size_t len, size_t *ret_consumed);

/* After RESP_MORE: true when the first bytes of a command are there and the rest of it is not. */
static inline bool resp_partial(const struct resp *r)
{
	return r->state != RESP_START;
}

#endif
