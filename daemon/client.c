/* SPDX-License-Identifier: MIT */
/* The way of bytes: client_on_read() parses what has come into the pipeline and asks for the end of the turn;
 * client_turn() runs the pipeline, writes, and settles what the client waits for next. */
#include "daemon/client.h"

#include <errno.h>
#include <event2/buffer.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/client_struct.h"
#include "daemon/commands.h"
#include "daemon/server.h"
#include "daemon/stats.h"
#include "daemon/users.h"
#include "handlers/app.h"

/* ---- life ---- */

void client_set_state(struct client *c, enum client_state state)
{
	static const char *const names[] = {"open", "ending", "quit", "gone"};

	if (state <= c->state)
		return;
	log_debug(
		"client %llu event=state %s -> %s", (unsigned long long)c->id, names[c->state], names[state]);
	c->state = state;
}

static void destroy(void *arg)
{
	struct client *c = arg;

	resp_release(&c->parser);
	buf_release(&c->in);
	evbuffer_free(c->out);
	for (int i = 0; i < CLIENT_TEXTS; i++)
		free(c->texts[i]);
	free(c);
}

static void want_read(struct client *c, bool on)
{
	if (on == c->reading)
		return;
	c->reading = on;
	if (on)
		event_add(&c->read_event, NULL);
	else
		event_del(&c->read_event);
}

static void want_write(struct client *c, bool on)
{
	if (on == c->writing)
		return;
	c->writing = on;
	if (on)
		event_add(&c->write_event, NULL);
	else
		event_del(&c->write_event);
}

void client_drop(struct client *c, const char *reason)
{
	struct clients *all = c->all;

	if (c->state == CLIENT_GONE)
		return;
	log_debug("client %llu event=closed reason=%s", (unsigned long long)c->id, reason);
	client_set_state(c, CLIENT_GONE);
	pipeline_abandon(&c->calls);
	turn_cancel(&c->task);
	clients_backlog_leave(c);
	want_read(c, false);
	want_write(c, false);
	watch_stop(&all->idle, &c->idle);
	watch_stop(&all->partial, &c->partial);
	watch_stop(&all->stalled, &c->stalled);
	watch_stop(&all->paused, &c->paused);
	close(c->fd);
	TAILQ_REMOVE(&all->list, c, link);
	all->count--;
	turn_free(c, destroy);
}

/* What was parsed is still answered. */
void client_stop_reading(struct client *c)
{
	client_set_state(c, CLIENT_QUIT);
	watch_stop(&c->all->partial, &c->partial);
	turn_schedule(&c->task);
}

void client_quit(struct client *c)
{
	pipeline_cut(&c->calls);
	client_stop_reading(c);
}

/* ---- writing ---- */

/* False when the connection is lost. */
static bool write_out(struct client *c)
{
	size_t before = evbuffer_get_length(c->out);

	if (before == 0)
		return true;
	int n = evbuffer_write(c->out, c->fd);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		client_drop(c, strerror(errno));
		return false;
	}
	int64_t now_us = clock_mono_us();
	if (n > 0) {
		stats.bytes_out += (uint64_t)n;
		watch_start(&c->all->idle, &c->idle, now_us);
	}
	bool left = evbuffer_get_length(c->out) > 0;
	if (!left)
		watch_stop(&c->all->stalled, &c->stalled);
	else if (n > 0 || !c->stalled.listed)
		watch_start(&c->all->stalled, &c->stalled, now_us);
	want_write(c, left);
	return true;
}

/* What the client waits for next, or its end. */
static void settle(struct client *c, bool calls_left)
{
	bool more = client_unparsed(c);

	if (c->state >= CLIENT_ENDING && !more && c->calls.count == 0 && evbuffer_get_length(c->out) == 0) {
		client_drop(c, c->state == CLIENT_QUIT ? "quit" : "end of input");
		return;
	}
	if (c->state == CLIENT_QUIT)
		buf_release(&c->in);
	bool room = evbuffer_get_length(c->out) + c->calls.held < client_room(c);
	if ((more && client_may_parse(c)) || (calls_left && room))
		clients_backlog_join(c);
	want_read(c, c->state == CLIENT_OPEN && !more && client_may_parse(c));
	if (c->reading || c->calls.running == 0 || c->calls.hung_up)
		watch_stop(&c->all->paused, &c->paused);
	else if (!c->paused.listed)
		watch_start(&c->all->paused, &c->paused, clock_mono_us());
}

static void client_turn(void *arg)
{
	struct client *c = arg;
	size_t limit = (size_t)c->all->server->config->output_limit;
	size_t unsent = evbuffer_get_length(c->out);

	bool all_started = pipeline_run(&c->calls, c->out, client_room(c));
	if (!write_out(c))
		return;
	if (unsent > 0 && evbuffer_get_length(c->out) > limit) {
		log_notice("client %llu event=dropped reason=output_limit unsent=%zu",
			(unsigned long long)c->id, evbuffer_get_length(c->out));
		stats.dropped_slow++;
		client_drop(c, "output_limit");
		return;
	}
	settle(c, !all_started);
}

static void on_write(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;

	(void)fd;
	(void)what;
	if (write_out(c))
		turn_schedule(&c->task);
}

/* ---- what the pipeline asks ---- */

static bool allow(void *owner, struct call *call)
{
	struct client *c = owner;
	struct server *server = c->all->server;
	bool needs_redis = (call->command->flags & CMD_NEEDS_REDIS) != 0;
	struct access access = {
		.user = c->user,
		.client_id = (long long)c->id,
		.ready = !needs_redis || app_ready(server->app),
		.redis_up = !needs_redis || app_redis_up(server->app),
		.draining = server->draining,
	};

	if (!access.ready)
		access.trouble = app_trouble(server->app);
	c->last = call->command;
	return commands_allow(call, &access);
}

static bool may_prepare(void *owner, const struct command *command)
{
	return commands_permitted(command, ((struct client *)owner)->user);
}

static int protocol(void *owner)
{
	return ((struct client *)owner)->protocol;
}

static void done(struct call *call)
{
	struct bytes reply = buf_bytes(&call->reply.buf);
	struct bytes error = reply.p[0] == '-' ? reply : (struct bytes){NULL, 0};

	if (call->command != NULL)
		stats_call(commands_index(call->command), clock_mono_us() - call->received_us, error);
	else
		stats_error(error);
}

static bool hung_up(void *owner)
{
	struct pollfd peer = {.fd = ((struct client *)owner)->fd, .events = POLLRDHUP};

	return poll(&peer, 1, 0) > 0;
}

static void wake(void *owner)
{
	turn_schedule(&((struct client *)owner)->task);
}

static const struct pipeline_ops ops = {
	.resolve = commands_resolve,
	.allow = allow,
	.may_prepare = may_prepare,
	.protocol = protocol,
	.done = done,
	.hung_up = hung_up,
	.wake = wake,
};

/* ---- all of them ---- */

struct clients *clients_new(struct server *server)
{
	struct clients *all = xcalloc(1, sizeof(*all));

	all->server = server;
	TAILQ_INIT(&all->list);
	TAILQ_INIT(&all->backlog);
	TAILQ_INIT(&all->idle);
	TAILQ_INIT(&all->partial);
	TAILQ_INIT(&all->stalled);
	TAILQ_INIT(&all->paused);
	all->backlog_event = evtimer_new(server->base, clients_on_backlog, all);
	turn_task_init(&all->new_budget, clients_renew_budget, all);
	clients_renew_budget(all);
	return all;
}

void clients_free(struct clients *all)
{
	struct client *c;

	if (all == NULL)
		return;
	while ((c = TAILQ_FIRST(&all->list)) != NULL)
		client_drop(c, "shutdown");
	turn_cancel(&all->new_budget);
	event_free(all->backlog_event);
	free(all);
}

void clients_accept(struct clients *all, int fd)
{
	struct client *c = xcalloc(1, sizeof(*c));

	*c = (struct client){.all = all, .id = ++all->last_id, .fd = fd, .protocol = 2};
	c->connected_us = clock_mono_us();
	c->user = users_required(all->server->users) ? NULL : &user_anyone;
	c->out = evbuffer_new();
	c->idle.client = c->partial.client = c->stalled.client = c->paused.client = c;
	resp_init(&c->parser);
	pipeline_init(&c->calls, &ops, c);
	turn_task_init(&c->task, client_turn, c);
	event_assign(&c->read_event, all->server->base, fd, EV_READ | EV_PERSIST, client_on_read, c);
	event_assign(&c->write_event, all->server->base, fd, EV_WRITE | EV_PERSIST, on_write, c);
	TAILQ_INSERT_TAIL(&all->list, c, link);
	all->count++;
	stats.connections++;
	watch_start(&all->idle, &c->idle, c->connected_us);
	want_read(c, true);
}

/* ---- the janitor ---- */

static struct client *expired(struct watch_list *list, int64_t timeout_ms, int64_t now_us)
{
	struct watch *oldest = TAILQ_FIRST(list);
	return oldest != NULL && now_us - oldest->since_us > timeout_ms * 1000 ? oldest->client : NULL;
}

static void expire(struct client *c, const char *reason)
{
	log_info("client %llu event=dropped reason=%s", (unsigned long long)c->id, reason);
	client_drop(c, reason);
}

/* The end of what they send is not seen by reading. */
static void look_after_paused(struct clients *all)
{
	struct watch *w, *next;

	for (w = TAILQ_FIRST(&all->paused); w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		if (!hung_up(w->client))
			continue;
		watch_stop(&all->paused, w);
		pipeline_hang_up(&w->client->calls);
	}
}

void clients_expire(struct clients *all, int64_t now_us)
{
	const struct config *config = all->server->config;
	struct client *c;

	look_after_paused(all);
	while ((c = expired(&all->partial, config->partial_timeout, now_us)) != NULL) {
		stats.dropped_slow++;
		expire(c, "partial_timeout");
	}
	while ((c = expired(&all->stalled, config->partial_timeout, now_us)) != NULL) {
		stats.dropped_slow++;
		expire(c, "unread_replies");
	}
	while (config->idle_timeout > 0 && (c = expired(&all->idle, config->idle_timeout, now_us)) != NULL) {
		if (c->calls.count > 0) {
			watch_start(&all->idle, &c->idle, now_us);
			continue;
		}
		stats.dropped_idle++;
		expire(c, "idle_timeout");
	}
}
