/* SPDX-License-Identifier: MIT */
/* What a client library says when it connects. The texts are those of Redis, which libraries compare with. */
#include "daemon/server_commands.h"

#include "base/log.h"
#include "daemon/client.h"
#include "daemon/server.h"
#include "daemon/users.h"

/* The version of Redis whose manners we have; libraries look at it to choose what they say. */
#define REDIS_VERSION "7.0.0"

enum verdict ping_exec(struct call *call)
{
	if (call->argc > 1)
		reply_bulk(&call->reply, call->argv[1]);
	else
		reply_status(&call->reply, "PONG");
	return CALL_DONE;
}

enum verdict echo_exec(struct call *call)
{
	reply_bulk(&call->reply, call->argv[1]);
	return CALL_DONE;
}

static enum verdict reply_ok(struct call *call)
{
	reply_status(&call->reply, "OK");
	return CALL_DONE;
}

enum verdict quit_exec(struct call *call)
{
	client_quit(call->client);
	return reply_ok(call);
}

enum verdict readonly_exec(struct call *call)
{
	return reply_ok(call);
}

enum verdict select_exec(struct call *call)
{
	int64_t index;

	if (!bytes_to_i64(call->argv[1], &index))
		return call_fail(call, "ERR invalid DB index");
	if (index != 0)
		return call_fail(call, "ERR DB index is out of range");
	return reply_ok(call);
}

enum verdict reset_exec(struct call *call)
{
	struct client *c = call->client;

	client_set_protocol(c, 2);
	client_set_user(c, users_required(client_server(c)->users) ? NULL : &user_anyone);
	if (!client_set_text(c, CLIENT_NAME, BYTES_LIT("")))
		return call_fail(call, "ERR can't forget the name");
	reply_reset(&call->reply);
	reply_status(&call->reply, "RESET");
	return CALL_DONE;
}

/* Who the client says he is. False with an error in the reply. */
static bool log_in(struct call *call, const struct bytes *name, struct bytes token)
{
	struct client *c = call->client;
	const struct users *users = client_server(c)->users;

	if (!users_required(users)) {
		reply_error(&call->reply,
			"ERR AUTH <password> called without any password configured for the default "
			"user. Are you sure your configuration is correct?");
		return false;
	}
	/* "default" is what libraries send as the name when they were given a password alone. */
	bool any = name == NULL || bytes_eq(*name, BYTES_LIT("default"));
	const struct user *user = users_check(users, any ? NULL : name, token);
	if (user == NULL) {
		log_notice("client %llu event=auth_failed", (unsigned long long)client_id(c));
		reply_error(&call->reply, "WRONGPASS invalid username-password pair or user is disabled.");
		return false;
	}
	log_info("client %llu event=auth user=%s", (unsigned long long)client_id(c), user->name);
	client_set_user(c, user);
	return true;
}

enum verdict auth_exec(struct call *call)
{
	bool ok = call->argc == 3 ? log_in(call, &call->argv[1], call->argv[2])
				  : log_in(call, NULL, call->argv[1]);
	return ok ? reply_ok(call) : CALL_DONE;
}

struct hello {
	int64_t protocol;
	const struct bytes *name, *token, *set_name;
};

/* HELLO [protocol [AUTH name token] [SETNAME name]]. False with an error in the reply. */
static bool parse_hello(struct call *call, struct hello *h)
{
	*h = (struct hello){.protocol = client_protocol(call->client)};
	if (call->argc > 1 && !bytes_to_i64(call->argv[1], &h->protocol)) {
		reply_error(&call->reply, "ERR Protocol version is not an integer or out of range");
		return false;
	}
	if (h->protocol != 2 && h->protocol != 3) {
		reply_error(&call->reply, "NOPROTO unsupported protocol version");
		return false;
	}
	for (int i = 2; i < call->argc;) {
		if (bytes_is_word(call->argv[i], "AUTH") && i + 2 < call->argc) {
			h->name = &call->argv[i + 1];
			h->token = &call->argv[i + 2];
			i += 3;
		} else if (bytes_is_word(call->argv[i], "SETNAME") && i + 1 < call->argc) {
			h->set_name = &call->argv[i + 1];
			i += 2;
		} else {
			reply_error(&call->reply, "ERR Syntax error in HELLO option '%.*s'",
				(int)(call->argv[i].n < 64 ? call->argv[i].n : 64), call->argv[i].p);
			return false;
		}
	}
	return true;
}

static void reply_hello(struct call *call)
{
	struct reply *r = &call->reply;

	reply_map(r, 7);
	reply_field_str(r, "server", "muster");
	reply_field_str(r, "version", REDIS_VERSION);
	reply_field_int(r, "proto", r->protocol);
	reply_field_int(r, "id", (int64_t)client_id(call->client));
	reply_field_str(r, "mode", "standalone");
	reply_field_str(r, "role", "master");
	reply_str(r, "modules");
	reply_array(r, 0);
}

enum verdict hello_exec(struct call *call)
{
	struct client *c = call->client;
	struct hello h;

	if (!parse_hello(call, &h) || (h.token != NULL && !log_in(call, h.name, *h.token)))
		return CALL_DONE;
	if (client_user(c) == NULL)
		return call_fail(call, "NOAUTH HELLO must be called with the client already authenticated, "
				       "otherwise the HELLO <proto> "
				       "AUTH <user> <pass> option can be used to authenticate the client and "
				       "select the RESP protocol "
				       "version at the same time");
	if (h.set_name != NULL && !client_set_text(c, CLIENT_NAME, *h.set_name))
		return call_fail(
			call, "ERR Client names cannot contain spaces, newlines or special characters.");
	client_set_protocol(c, (int)h.protocol);
	call->reply.protocol = (int)h.protocol;
	reply_hello(call);
	return CALL_DONE;
}
