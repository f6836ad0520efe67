/* SPDX-License-Identifier: MIT */
/* The way of bytes: on_read() parses what has come into the pipeline and asks for the end of the turn;
 * client_turn() runs the pipeline, writes, and settles what the client waits for next. */
#include "daemon/client.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
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

#define READ_SIZE     ((size_t)64 * 1024)
#define CLIENT_BUDGET 1024 /* commands of one client parsed in one turn */
#define TURN_BUDGET   8192 /* commands of all clients parsed in one turn */
/* As in Redis: who has not said who he is can't make us hold much. */
#define STRANGER_ARGS    10
#define STRANGER_PAYLOAD 16384

static char scratch[64 * 1024];

/* ---- lists of the janitor ---- */

static void watch_stop(struct watch_list *list, struct watch *w)
{
	if (w->listed)
		TAILQ_REMOVE(list, w, link);
	w->listed = false;
}

static void watch_start(struct watch_list *list, struct watch *w, int64_t now_us)
{
	watch_stop(list, w);
	w->since_us = now_us;
	w->listed = true;
	TAILQ_INSERT_TAIL(list, w, link);
}

/* ---- life ---- */

static void set_state(struct client *c, enum client_state state)
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

static void backlog_leave(struct client *c)
{
	if (c->in_backlog)
		TAILQ_REMOVE(&c->all->backlog, c, backlog_link);
	c->in_backlog = false;
}

void client_drop(struct client *c, const char *reason)
{
	struct clients *all = c->all;

	if (c->state == CLIENT_GONE)
		return;
	log_debug("client %llu event=closed reason=%s", (unsigned long long)c->id, reason);
	set_state(c, CLIENT_GONE);
	pipeline_abandon(&c->calls);
	turn_cancel(&c->task);
	backlog_leave(c);
	want_read(c, false);
	want_write(c, false);
	watch_stop(&all->idle, &c->idle);
	watch_stop(&all->partial, &c->partial);
	watch_stop(&all->stalled, &c->stalled);
	close(c->fd);
	TAILQ_REMOVE(&all->list, c, link);
	all->count--;
	turn_free(c, destroy);
}

/* What was parsed is still answered. */
static void stop_reading(struct client *c)
{
	set_state(c, CLIENT_QUIT);
	watch_stop(&c->all->partial, &c->partial);
	turn_schedule(&c->task);
}

void client_quit(struct client *c)
{
	pipeline_cut(&c->calls);
	stop_reading(c);
}

/* ---- parsing ---- */

/* A browser that was lured into posting to this port: its body must not be taken for commands. */
static bool is_http(const char *data, const struct resp_arg *name)
{
	return (name->n == 4 && strncasecmp(data + name->at, "post", 4) == 0) ||
	       (name->n == 5 && strncasecmp(data + name->at, "host:", 5) == 0);
}

static struct resp_limits limits_of(const struct client *c)
{
	const struct config *config = c->all->server->config;
	struct resp_limits limits = {
		.max_line = (size_t)config->max_line,
		.max_args = (size_t)config->max_args,
		.max_payload = (size_t)config->max_payload,
	};

	if (c->user == NULL) {
		limits.max_args = limits.max_args < STRANGER_ARGS ? limits.max_args : STRANGER_ARGS;
		limits.max_payload =
			limits.max_payload < STRANGER_PAYLOAD ? limits.max_payload : STRANGER_PAYLOAD;
	}
	return limits;
}

/* Bytes of replies with which a client is not yet behind. */
static size_t room_of(const struct client *c)
{
	return (size_t)c->all->server->config->output_limit / 8;
}

static bool may_parse(const struct client *c)
{
	return c->state <= CLIENT_ENDING && evbuffer_get_length(c->out) < room_of(c) &&
	       c->calls.count < (unsigned)c->all->server->config->max_pipeline;
}

static void spend(struct clients *all)
{
	all->budget--;
	turn_schedule(&all->new_budget);
}

static void take(struct client *c, enum resp_status status, const char *data, int64_t now_us)
{
	switch (status) {
	case RESP_COMMAND:
		if (is_http(data, &c->parser.args[0])) {
			log_warning("client %llu event=http_refused", (unsigned long long)c->id);
			stats.protocol_errors++;
			stop_reading(c);
			break;
		}
		pipeline_push(
			&c->calls, c->all->server->app, c, data, c->parser.args, c->parser.argc, now_us);
		break;
	case RESP_TOOBIG:
		pipeline_push_error(&c->calls, c->parser.error);
		break;
	case RESP_ERROR:
		stats.protocol_errors++;
		pipeline_push_error(&c->calls, c->parser.error);
		stop_reading(c);
		break;
	default:
		break;
	}
}

/* Parses data[0..len) as far as limits and fairness allow; returns how many bytes are consumed. */
static size_t parse(struct client *c, char *data, size_t len, int64_t now_us)
{
	struct resp_limits limits = limits_of(c);
	struct clients *all = c->all;
	size_t at = 0;

	c->hungry = false;
	for (unsigned n = 0; n < CLIENT_BUDGET && all->budget > 0 && may_parse(c); n++) {
		size_t consumed;
		enum resp_status status = resp_parse(&c->parser, &limits, data + at, len - at, &consumed);
		if (status == RESP_MORE) {
			at += consumed;
			c->hungry = true;
			break;
		}
		spend(all);
		take(c, status, data + at, now_us);
		at += consumed;
	}
	if (!c->hungry || !resp_partial(&c->parser))
		watch_stop(&all->partial, &c->partial);
	else if (!c->partial.listed)
		watch_start(&all->partial, &c->partial, now_us);
	return at;
}

/* Keeps what was not consumed. */
static void parse_kept(struct client *c, int64_t now_us)
{
	size_t used = parse(c, c->in.data, c->in.len, now_us);

	if (used >= c->in.len)
		buf_release(&c->in);
	else if (used > 0)
		buf_consume(&c->in, used);
}

static void parse_fresh(struct client *c, size_t len, int64_t now_us)
{
	size_t used = parse(c, scratch, len, now_us);

	if (used < len && c->state <= CLIENT_ENDING)
		buf_add(&c->in, scratch + used, len - used);
}

/* ---- reading ---- */

/* A long command is read in steps that grow with what is there, not with what the client has announced. */
static size_t read_step(const struct client *c)
{
	size_t missing = c->parser.need > c->in.len ? c->parser.need - c->in.len : 0;
	size_t most = c->in.len > READ_SIZE ? c->in.len : READ_SIZE;

	if (missing <= READ_SIZE / 4)
		return READ_SIZE / 4;
	return missing < most ? missing : most;
}

static ssize_t read_some(struct client *c, int64_t now_us)
{
	if (c->in.len == 0) {
		ssize_t n = read(c->fd, scratch, sizeof(scratch));
		if (n > 0)
			parse_fresh(c, (size_t)n, now_us);
		return n;
	}
	size_t step = read_step(c);
	if (!buf_reserve(&c->in, step)) {
		errno = ENOMEM;
		return -1;
	}
	ssize_t n = read(c->fd, c->in.data + c->in.len, step);
	if (n > 0) {
		c->in.len += (size_t)n;
		if (c->in.len >= c->parser.need)
			parse_kept(c, now_us);
	}
	return n;
}

static void on_read(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	int64_t now_us = clock_mono_us();

	(void)fd;
	(void)what;
	ssize_t n = read_some(c, now_us);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		client_drop(c, strerror(errno));
		return;
	}
	if (n == 0) {
		set_state(c, CLIENT_ENDING);
		watch_stop(&c->all->partial, &c->partial);
	}
	stats.bytes_in += (uint64_t)n;
	watch_start(&c->all->idle, &c->idle, now_us);
	turn_schedule(&c->task);
}

/* There are bytes that may hold a whole command. */
static bool unparsed(const struct client *c)
{
	return c->in.len > 0 && !c->hungry && c->state <= CLIENT_ENDING;
}

/* Once per round of the loop, everyone in the backlog in order as far as the budget goes. */
static void on_backlog(evutil_socket_t fd, short what, void *arg)
{
	struct clients *all = arg;
	int64_t now_us = clock_mono_us();
	struct client *c;

	(void)fd;
	(void)what;
	while (all->budget > 0 && (c = TAILQ_FIRST(&all->backlog)) != NULL) {
		backlog_leave(c);
		if (unparsed(c))
			parse_kept(c, now_us);
		turn_schedule(&c->task);
	}
	if (!TAILQ_EMPTY(&all->backlog))
		event_add(all->backlog_event, &(struct timeval){0, 0});
}

/* By a timer of zero, so that the loop looks at all sockets in between. */
static void backlog_join(struct client *c)
{
	struct clients *all = c->all;

	if (c->in_backlog)
		return;
	if (TAILQ_EMPTY(&all->backlog))
		event_add(all->backlog_event, &(struct timeval){0, 0});
	c->in_backlog = true;
	TAILQ_INSERT_TAIL(&all->backlog, c, backlog_link);
}

static void on_new_budget(void *arg)
{
	struct clients *all = arg;
	all->budget = TURN_BUDGET;
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
	if (n > 0)
		stats.bytes_out += (uint64_t)n;
	bool left = evbuffer_get_length(c->out) > 0;
	if (!left)
		watch_stop(&c->all->stalled, &c->stalled);
	else if (n > 0 || !c->stalled.listed)
		watch_start(&c->all->stalled, &c->stalled, clock_mono_us());
	want_write(c, left);
	return true;
}

/* What the client waits for next, or its end. */
static void settle(struct client *c, bool calls_left)
{
	bool more = unparsed(c);

	if (c->state >= CLIENT_ENDING && !more && c->calls.count == 0 && evbuffer_get_length(c->out) == 0) {
		client_drop(c, c->state == CLIENT_QUIT ? "quit" : "end of input");
		return;
	}
	if (c->state == CLIENT_QUIT)
		buf_release(&c->in);
	bool room = evbuffer_get_length(c->out) + c->calls.held < room_of(c);
	if ((more && may_parse(c)) || (calls_left && room))
		backlog_join(c);
	want_read(c, c->state == CLIENT_OPEN && !more && may_parse(c));
}

static void client_turn(void *arg)
{
	struct client *c = arg;
	size_t limit = (size_t)c->all->server->config->output_limit;
	size_t unsent = evbuffer_get_length(c->out);

	bool all_started = pipeline_run(&c->calls, c->out, room_of(c));
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
	.wake = wake,
};

/* ---- all of them ---- */

struct clients *clients_new(struct server *server)
{
	struct clients *all = xcalloc(1, sizeof(*all));

	all->server = server;
	all->budget = TURN_BUDGET;
	TAILQ_INIT(&all->list);
	TAILQ_INIT(&all->backlog);
	TAILQ_INIT(&all->idle);
	TAILQ_INIT(&all->partial);
	TAILQ_INIT(&all->stalled);
	all->backlog_event = evtimer_new(server->base, on_backlog, all);
	turn_task_init(&all->new_budget, on_new_budget, all);
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
	c->idle.client = c->partial.client = c->stalled.client = c;
	resp_init(&c->parser);
	pipeline_init(&c->calls, &ops, c);
	turn_task_init(&c->task, client_turn, c);
	event_assign(&c->read_event, all->server->base, fd, EV_READ | EV_PERSIST, on_read, c);
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

void clients_expire(struct clients *all, int64_t now_us)
{
	const struct config *config = all->server->config;
	struct client *c;

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
