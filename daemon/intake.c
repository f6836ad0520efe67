/* SPDX-License-Identifier: MIT */
/* From the socket into the pipeline: how much is read and parsed, of one client and of all, in one turn. */
#include "daemon/client_struct.h"

#include <errno.h>
#include <event2/buffer.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "daemon/server.h"
#include "daemon/stats.h"

#define READ_SIZE     ((size_t)64 * 1024)
#define CLIENT_BUDGET 1024 /* commands of one client parsed in one turn */
#define TURN_BUDGET   8192 /* commands of all clients parsed in one turn */
#define TURN_READS    1024 /* clients read in one turn; the sockets of the others stay ready */
/* As in Redis: who has not said who he is can't make us hold much. */
#define STRANGER_ARGS    10
#define STRANGER_PAYLOAD 16384

static char scratch[64 * 1024];

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
size_t client_room(const struct client *c)
{
	return (size_t)c->all->server->config->output_limit / 8;
}

bool client_may_parse(const struct client *c)
{
	return c->state <= CLIENT_ENDING && evbuffer_get_length(c->out) < client_room(c) &&
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
			client_stop_reading(c);
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
		client_stop_reading(c);
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
	for (unsigned n = 0; n < CLIENT_BUDGET && all->budget > 0 && client_may_parse(c); n++) {
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

void client_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;

	(void)fd;
	(void)what;
	if (c->all->reads == 0)
		return;
	c->all->reads--;
	turn_schedule(&c->all->new_budget);
	int64_t now_us = clock_mono_us();
	ssize_t n = read_some(c, now_us);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		client_drop(c, strerror(errno));
		return;
	}
	if (n == 0) {
		client_set_state(c, CLIENT_ENDING);
		watch_stop(&c->all->partial, &c->partial);
		pipeline_hang_up(&c->calls);
	}
	stats.bytes_in += (uint64_t)n;
	watch_start(&c->all->idle, &c->idle, now_us);
	turn_schedule(&c->task);
}

/* There are bytes that may hold a whole command. */
bool client_unparsed(const struct client *c)
{
	return c->in.len > 0 && !c->hungry && c->state <= CLIENT_ENDING;
}

/* Once per round of the loop, everyone in the backlog in order as far as the budget goes. */
void clients_on_backlog(evutil_socket_t fd, short what, void *arg)
{
	struct clients *all = arg;
	int64_t now_us = clock_mono_us();
	struct client *c;

	(void)fd;
	(void)what;
	while (all->budget > 0 && (c = TAILQ_FIRST(&all->backlog)) != NULL) {
		clients_backlog_leave(c);
		if (client_unparsed(c))
			parse_kept(c, now_us);
		turn_schedule(&c->task);
	}
	if (!TAILQ_EMPTY(&all->backlog))
		event_add(all->backlog_event, &(struct timeval){0, 0});
}

void clients_backlog_leave(struct client *c)
{
	if (c->in_backlog)
		TAILQ_REMOVE(&c->all->backlog, c, backlog_link);
	c->in_backlog = false;
}

/* By a timer of zero, so that the loop looks at all sockets in between. */
void clients_backlog_join(struct client *c)
{
	struct clients *all = c->all;

	if (c->in_backlog)
		return;
	if (TAILQ_EMPTY(&all->backlog))
		event_add(all->backlog_event, &(struct timeval){0, 0});
	c->in_backlog = true;
	TAILQ_INSERT_TAIL(&all->backlog, c, backlog_link);
}

void clients_renew_budget(void *arg)
{
	struct clients *all = arg;
	all->budget = TURN_BUDGET;
	all->reads = TURN_READS;
}
