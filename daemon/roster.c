/* SPDX-License-Identifier: MIT */
/* Who is connected: names, users, CLIENT LIST and CLIENT KILL. */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/client_struct.h"
#include "daemon/commands.h"
#include "daemon/users.h"

#define TEXT_MAX 64
#define ADDRESS  64 /* bytes of "[address]:port" and its NUL */

struct server *client_server(const struct client *c)
{
	return c->all->server;
}

uint64_t client_id(const struct client *c)
{
	return c->id;
}

const struct user *client_user(const struct client *c)
{
	return c->user;
}

void client_set_user(struct client *c, const struct user *user)
{
	c->user = user;
}

int client_protocol(const struct client *c)
{
	return c->protocol;
}

void client_set_protocol(struct client *c, int protocol)
{
	c->protocol = protocol;
}

static const char *text_of(const struct client *c, enum client_text which)
{
	return c->texts[which] != NULL ? c->texts[which] : "";
}

struct bytes client_name(const struct client *c)
{
	return bytes_of(text_of(c, CLIENT_NAME));
}

bool client_set_text(struct client *c, enum client_text which, struct bytes text)
{
	if (text.n > TEXT_MAX)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '!' || text.p[i] > '~')
			return false;
	}
	free(c->texts[which]);
	c->texts[which] = text.n > 0 ? xstrndup(text.p, text.n) : NULL;
	return true;
}

static const char *address_text(const struct sockaddr_storage *ss, char text[ADDRESS])
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (ss->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(text, ADDRESS, "[%s]:%d", host, ntohs(in6->sin6_port));
	} else if (ss->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(text, ADDRESS, "%s:%d", host, ntohs(in->sin_port));
	} else {
		snprintf(text, ADDRESS, "unix:0");
	}
	return text;
}

/* Asked of the socket when somebody wants to know, not kept. */
static const char *peer_text(const struct client *c, char text[ADDRESS])
{
	struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(ss);

	if (getpeername(c->fd, (struct sockaddr *)&ss, &len) != 0)
		ss.ss_family = AF_UNSPEC;
	return address_text(&ss, text);
}

static const char *local_text(const struct client *c, char text[ADDRESS])
{
	struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(ss);

	if (getsockname(c->fd, (struct sockaddr *)&ss, &len) != 0)
		ss.ss_family = AF_UNSPEC;
	return address_text(&ss, text);
}

void client_describe(const struct client *c, struct buf *out)
{
	char peer[ADDRESS], local[ADDRESS], command[COMMAND_NAME] = "NULL";
	int64_t now_us = clock_mono_us();

	if (c->last != NULL)
		commands_lower(c->last, command);
	buf_addf(out, "id=%llu addr=%s laddr=%s fd=%d name=%s", (unsigned long long)c->id, peer_text(c, peer),
		local_text(c, local), c->fd, text_of(c, CLIENT_NAME));
	buf_addf(out, " age=%lld idle=%lld flags=N db=0", (long long)(now_us - c->connected_us) / 1000000,
		(long long)(now_us - c->idle.since_us) / 1000000);
	buf_addf(out, " qbuf=%zu calls=%u obl=%zu cmd=%s user=%s", c->in.len, c->calls.count,
		evbuffer_get_length(c->out), command, c->user != NULL ? c->user->name : "(none)");
	buf_addf(out, " resp=%d lib-name=%s lib-ver=%s\n", c->protocol, text_of(c, CLIENT_LIB_NAME),
		text_of(c, CLIENT_LIB_VERSION));
}

void clients_list(const struct clients *all, struct buf *out)
{
	const struct client *c;

	TAILQ_FOREACH (c, &all->list, link)
		client_describe(c, out);
}

size_t clients_count(const struct clients *all)
{
	return all->count;
}

bool clients_quiet(const struct clients *all)
{
	const struct client *c;

	TAILQ_FOREACH (c, &all->list, link) {
		if (c->calls.count > 0 || evbuffer_get_length(c->out) > 0)
			return false;
	}
	return true;
}

void clients_rebind(struct clients *all, const struct users *now)
{
	struct client *c;

	TAILQ_FOREACH (c, &all->list, link) {
		if (!users_required(now))
			c->user = &user_anyone;
		else if (c->user != NULL)
			c->user = users_same(now, c->user);
	}
}

static bool matches(const struct client *c, const struct client_filter *f)
{
	char peer[ADDRESS], local[ADDRESS];

	if (c == f->except || (f->id != 0 && c->id != f->id))
		return false;
	if (f->user.n > 0 && (c->user == NULL || !bytes_eq(f->user, bytes_of(c->user->name))))
		return false;
	if (f->addr.n > 0 && !bytes_eq(f->addr, bytes_of(peer_text(c, peer))))
		return false;
	return f->laddr.n == 0 || bytes_eq(f->laddr, bytes_of(local_text(c, local)));
}

size_t clients_kill(struct clients *all, const struct client_filter *filter, struct client *by)
{
	struct client *c, *next;
	size_t killed = 0;

	for (c = TAILQ_FIRST(&all->list); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (!matches(c, filter))
			continue;
		killed++;
		if (c == by)
			client_quit(c);
		else
			client_drop(c, "killed");
	}
	return killed;
}
