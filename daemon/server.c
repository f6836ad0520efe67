/* SPDX-License-Identifier: MIT */
/* Start in order: users, statistics, application, clients, listener, signals, janitor; stop in reverse. */
#include "daemon/server.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/turn.h"
#include "daemon/client.h"
#include "daemon/commands.h"
#include "daemon/listener.h"
#include "daemon/notify.h"
#include "daemon/pipeline.h"
#include "daemon/server_commands.h"
#include "daemon/stats.h"
#include "daemon/users.h"
#include "handlers/app.h"

#define TICK_MAX_MS  1000
#define TICK_MIN_MS  25
#define STALL_US     ((int64_t)10 * 1000000) /* a janitor this late means a blocked loop */
#define EXIT_NO_HELP 78                      /* EX_CONFIG: an operator has to look */

static void log_lines(enum log_level level, const char *event, struct buf *lines)
{
	char *line, *rest = lines->data;

	while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
		if (line[0] != '\0')
			log_line(level, "server - event=%s %s", event, line);
	}
}

/* ---- reload ---- */

static int load_config(struct server *s, struct config *fresh, struct buf *errors)
{
	config_init(fresh);
	return s->config_path != NULL ? config_load(fresh, s->config_path, errors) : 0;
}

int server_reload(struct server *s, struct buf *errors)
{
	struct buf restart = BUF_INIT;
	struct config fresh;

	if (load_config(s, &fresh, errors) != 0) {
		config_release(&fresh);
		return -1;
	}
	struct users *users = users_load(fresh.users_file, errors);
	if (users == NULL) {
		config_release(&fresh);
		return -1;
	}
	config_reload(s->config, &fresh, &restart);
	config_release(&fresh);
	clients_rebind(s->clients, users);
	users_free(s->users);
	s->users = users;
	log_set_level_name(s->config->log_level);
	app_reload(s->app);
	if (restart.len > 0)
		log_warning("server - event=needs_restart keys=%s", restart.data);
	log_notice("server - event=reloaded");
	buf_release(&restart);
	return 0;
}

static void on_hangup(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;
	struct buf errors = BUF_INIT;

	(void)fd;
	(void)what;
	notify_reloading(s->notify);
	if (server_reload(s, &errors) != 0)
		log_lines(LOG_LEVEL_ERROR, "reload_failed", &errors);
	buf_release(&errors);
	/* Also after a failed one: systemd waits for it, and the daemon goes on as before. */
	notify_ready(s->notify, app_ready(s->app) ? "ready" : app_trouble(s->app));
}

/* ---- drain ---- */

static void finish(struct server *s, const char *how)
{
	log_notice("server - event=stopped how=%s", how);
	event_base_loopbreak(s->base);
}

static void on_drained(void *arg)
{
	struct server *s = arg;
	s->app_drained = true;
}

static void on_drain_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;

	(void)fd;
	(void)what;
	log_warning("server - event=drain_timeout calls=%u", pipeline_running_total());
	finish(s, "deadline");
}

static void set_timer(struct event *event, int64_t ms)
{
	event_add(event, &(struct timeval){ms / 1000, ms % 1000 * 1000});
}

void server_drain(struct server *s)
{
	if (s->draining)
		return;
	log_notice("server - event=draining clients=%zu calls=%u", clients_count(s->clients),
		pipeline_running_total());
	s->draining = true;
	notify_stopping(s->notify, "finishing what is under way");
	listener_close(s->listener);
	app_hurry(s->app);
	set_timer(s->drain_deadline, s->config->drain_timeout);
	set_timer(s->janitor, 0);
}

/* Calls first, then what the application still has to confirm, then the last replies. */
static void drain_step(struct server *s)
{
	if (pipeline_running_total() > 0)
		return;
	if (!s->app_draining) {
		s->app_draining = true;
		app_drain(s->app, on_drained, s);
	} else if (s->app_drained && clients_quiet(s->clients)) {
		finish(s, "drained");
	}
}

static void on_stop_signal(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;

	(void)what;
	log_notice("server - event=signal number=%d", (int)fd);
	if (s->draining)
		finish(s, "second_signal");
	else
		server_drain(s);
}

/* ---- the janitor ---- */

static void watch_app(struct server *s)
{
	if (app_refused(s->app)) {
		log_error("server - event=refused reason=%s", app_trouble(s->app));
		s->exit_code = EXIT_NO_HELP;
		finish(s, "refused");
	} else if (!s->announced && app_ready(s->app)) {
		s->announced = true;
		log_notice("server - event=ready port=%d", listener_port(s->listener));
		notify_ready(s->notify, "ready");
	}
}

/* Soon enough for the shortest time-out, seldom enough to be nothing. */
static int64_t tick_ms(const struct server *s)
{
	int64_t ms = s->config->partial_timeout / 4;

	if (s->draining || !s->announced || ms < TICK_MIN_MS)
		return TICK_MIN_MS;
	return ms < TICK_MAX_MS ? ms : TICK_MAX_MS;
}

static void on_janitor(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;
	int64_t now_us = clock_mono_us();

	(void)fd;
	(void)what;
	s->janitor_us = now_us;
	clients_expire(s->clients, now_us);
	stats_tick(now_us);
	watch_app(s);
	if (s->draining)
		drain_step(s);
	set_timer(s->janitor, tick_ms(s));
}

/* The loop runs, or the watchdog would not ask; that the janitor has run too shows that timers are served. */
static bool healthy(void *arg)
{
	struct server *s = arg;
	return clock_mono_us() - s->janitor_us < STALL_US;
}

/* ---- start and stop ---- */

static void on_accepted(void *arg, int fd)
{
	clients_accept(((struct server *)arg)->clients, fd);
}

static size_t count_clients(void *arg)
{
	return clients_count(((struct server *)arg)->clients);
}

static size_t most_clients(void *arg)
{
	return server_max_clients(arg);
}

static void on_rejected(void *arg)
{
	(void)arg;
	stats.rejected++;
}

static const struct listener_ops listener_ops = {
	.accepted = on_accepted,
	.clients = count_clients,
	.most = most_clients,
	.rejected = on_rejected,
};

size_t server_max_clients(const struct server *s)
{
	size_t wanted = (size_t)s->config->max_clients;
	return wanted < s->files_allow ? wanted : s->files_allow;
}

static void raise_limit(struct server *s)
{
	s->files_allow = listener_raise_limit((size_t)s->config->max_clients);
	if (s->files_allow < (size_t)s->config->max_clients)
		log_warning("server - event=max_clients_capped wanted=%lld allowed=%zu reason=open_files",
			(long long)s->config->max_clients, s->files_allow);
}

static void add_signals(struct server *s)
{
	s->signals[0] = evsignal_new(s->base, SIGTERM, on_stop_signal, s);
	s->signals[1] = evsignal_new(s->base, SIGINT, on_stop_signal, s);
	s->signals[2] = evsignal_new(s->base, SIGHUP, on_hangup, s);
	for (int i = 0; i < 3; i++)
		event_add(s->signals[i], NULL);
}

static int load_users(struct server *s)
{
	struct buf errors = BUF_INIT;

	s->users = users_load(s->config->users_file, &errors);
	log_lines(LOG_LEVEL_ERROR, "users", &errors);
	buf_release(&errors);
	return s->users != NULL ? 0 : -1;
}

int server_start(struct server *s)
{
	size_t commands;

	commands_table(&commands);
	commands_init();
	stats_init(commands);
	raise_limit(s);
	s->notify = notify_new(s->base, healthy, s);
	s->janitor = evtimer_new(s->base, on_janitor, s);
	s->drain_deadline = evtimer_new(s->base, on_drain_deadline, s);
	s->janitor_us = clock_mono_us();
	if (load_users(s) != 0)
		return -1;
	server_info_register(s);
	s->app = app_new(s->base, s->config);
	if (s->app == NULL)
		return -1;
	s->clients = clients_new(s);
	s->listener = listener_new(s->base, s->config->listen, (int)s->config->port, &listener_ops, s);
	if (s->listener == NULL)
		return -1;
	add_signals(s);
	app_start(s->app);
	notify_status(s->notify, "starting");
	set_timer(s->janitor, 0);
	return 0;
}

static int64_t thread_cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Turn by turn, to know how long one takes: by processor time, since a turn also waits for its first event.
 */
int server_run(struct server *s)
{
	int64_t before = thread_cpu_us();

	for (;;) {
		int result = event_base_loop(s->base, EVLOOP_ONCE);
		if (result != 0) {
			log_error("server - event=loop_ended result=%d", result);
			return 1;
		}
		if (event_base_got_break(s->base))
			return s->exit_code;
		int64_t now = thread_cpu_us();
		stats_turn(now - before);
		before = now;
	}
}

static void free_event(struct event *event)
{
	if (event != NULL)
		event_free(event);
}

void server_stop(struct server *s)
{
	free_event(s->janitor);
	free_event(s->drain_deadline);
	for (int i = 0; i < 3; i++)
		free_event(s->signals[i]);
	listener_free(s->listener);
	clients_free(s->clients);
	if (s->app != NULL)
		app_free(s->app);
	turn_release();
	users_free(s->users);
	notify_free(s->notify);
	stats_release();
}
