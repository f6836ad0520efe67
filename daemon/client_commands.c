/* SPDX-License-Identifier: MIT */
/* CLIENT and its subcommands. */
#include <strings.h>

#include "base/log.h"
#include "daemon/client.h"
#include "daemon/server.h"
#include "daemon/server_commands.h"
#include "daemon/users.h"

enum verdict client_id_exec(struct call *call)
{
	reply_int(&call->reply, (int64_t)client_id(call->client));
	return CALL_DONE;
}

enum verdict client_getname_exec(struct call *call)
{
	struct bytes name = client_name(call->client);

	if (name.n == 0)
		reply_null(&call->reply);
	else
		reply_bulk(&call->reply, name);
	return CALL_DONE;
}

enum verdict client_setname_exec(struct call *call)
{
	if (!client_set_text(call->client, CLIENT_NAME, call->argv[2]))
		return call_fail(
			call, "ERR Client names cannot contain spaces, newlines or special characters.");
	reply_status(&call->reply, "OK");
	return CALL_DONE;
}

enum verdict client_setinfo_exec(struct call *call)
{
	enum client_text which;

	if (bytes_is_word(call->argv[2], "LIB-NAME"))
		which = CLIENT_LIB_NAME;
	else if (bytes_is_word(call->argv[2], "LIB-VER"))
		which = CLIENT_LIB_VERSION;
	else
		return call_fail(call, "ERR Unrecognized option '%.*s'",
			(int)(call->argv[2].n < 64 ? call->argv[2].n : 64), call->argv[2].p);
	if (!client_set_text(call->client, which, call->argv[3]))
		return call_fail(call, "ERR %s cannot contain spaces, newlines or special characters.",
			which == CLIENT_LIB_NAME ? "lib-name" : "lib-ver");
	reply_status(&call->reply, "OK");
	return CALL_DONE;
}

/* NO-EVICT and NO-TOUCH: there is nothing to evict or touch. */
enum verdict client_no_evict_exec(struct call *call)
{
	if (!bytes_is_word(call->argv[2], "ON") && !bytes_is_word(call->argv[2], "OFF"))
		return call_fail(call, "ERR syntax error");
	reply_status(&call->reply, "OK");
	return CALL_DONE;
}

static enum verdict reply_text(struct call *call, struct buf *text)
{
	reply_bulk(&call->reply, buf_bytes(text));
	buf_release(text);
	return CALL_DONE;
}

enum verdict client_info_exec(struct call *call)
{
	struct buf text = BUF_INIT;

	client_describe(call->client, &text);
	return reply_text(call, &text);
}

enum verdict client_list_exec(struct call *call)
{
	struct buf text = BUF_INIT;

	clients_list(client_server(call->client)->clients, &text);
	return reply_text(call, &text);
}

/* Reads one option and its value; false when it is none. */
static bool parse_filter(struct call *call, int at, struct client_filter *f)
{
	struct bytes option = call->argv[at], value = call->argv[at + 1];
	int64_t id;

	if (bytes_is_word(option, "ID")) {
		if (!bytes_to_i64(value, &id) || id <= 0)
			return false;
		f->id = (uint64_t)id;
	} else if (bytes_is_word(option, "ADDR")) {
		f->addr = value;
	} else if (bytes_is_word(option, "LADDR")) {
		f->laddr = value;
	} else if (bytes_is_word(option, "USER")) {
		f->user = value;
	} else if (bytes_is_word(option, "SKIPME")) {
		if (!bytes_is_word(value, "yes") && !bytes_is_word(value, "no"))
			return false;
		f->except = bytes_is_word(value, "yes") ? call->client : NULL;
	} else {
		return false;
	}
	return value.n > 0;
}

static size_t kill_clients(struct call *call, const struct client_filter *f)
{
	size_t killed = clients_kill(client_server(call->client)->clients, f, call->client);
	log_notice("client %llu event=killed_clients user=%s count=%zu",
		(unsigned long long)client_id(call->client), client_user(call->client)->name, killed);
	return killed;
}

/* CLIENT KILL addr, as of old, or any number of filters. */
enum verdict client_kill_exec(struct call *call)
{
	struct client_filter f = {.except = call->client};

	if (call->argc == 3) {
		f = (struct client_filter){.addr = call->argv[2]};
		if (f.addr.n == 0 || kill_clients(call, &f) == 0)
			return call_fail(call, "ERR No such client");
		reply_status(&call->reply, "OK");
		return CALL_DONE;
	}
	if (call->argc % 2 != 0)
		return call_fail(call, "ERR syntax error");
	for (int i = 2; i < call->argc; i += 2) {
		if (!parse_filter(call, i, &f))
			return call_fail(call,
				"ERR syntax error: expected ID id, ADDR ip:port, LADDR ip:port, USER name "
				"or SKIPME yes|no");
	}
	reply_int(&call->reply, (int64_t)kill_clients(call, &f));
	return CALL_DONE;
}

enum verdict client_help_exec(struct call *call)
{
	return reply_help_of(call, "CLIENT");
}
