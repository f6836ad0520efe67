/* SPDX-License-Identifier: MIT */
#include "persist/mysql_link.h"

#include <assert.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/info.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/resolve.h"
#include "base/turn.h"
#include "persist/mysql_io.h"
#include "persist/mysql_job.h"

#define SERVER_GONE    2006
#define WATCHERS_MAX   4
#define PAUSE_FIRST_MS 100
#define PAUSE_MAX_MS   10000
#define PAUSE_BUSY_MS  2000 /* at least, when the server is out of connections */

enum link_state {
	LINK_NEW,     /* not started */
	LINK_WAIT,    /* the timer runs to the next attempt */
	LINK_RESOLVE, /* a name look-up runs */
	LINK_CONNECT, /* logging in */
	LINK_SESSION, /* statements that set the session up run */
	LINK_READY,   /* jobs run; the only state in which `current` may be set */
	LINK_CLOSED,  /* mysql_link_free() was called */
	LINK_STATES
};

struct mysql_link {
	enum link_state state;
	struct event_base *base;
	const struct config *config;
	const char *name;
	struct mysql_io *io;
	struct resolve *resolve; /* only in LINK_RESOLVE */
	struct event *timer;     /* the next attempt */
	struct event *kick;      /* the next turn: look at the queue */
	int64_t pause_ms;        /* before the next attempt */
	int64_t timeout_ms;      /* 0 = of the configuration */
	char address[64];        /* the host's, resolved; unused with TLS, where the library needs the name */
	size_t session_at;       /* in LINK_SESSION: which statement */
	size_t max_packet;
	struct mysql_jobs jobs;    /* waiting, in order */
	struct mysql_job *current; /* sent to the server, in no list */
	struct {
		void (*fn)(bool ready, void *arg);
		void *arg;
	} watchers[WATCHERS_MAX];
	int watcher_count;
	uint64_t queued, queries, errors, connects;
	char last_error[MYSQL_ERROR_MAX];
	TAILQ_ENTRY(mysql_link) siblings;
};

static const char *const link_names[LINK_STATES] = {
	"new", "waiting", "resolving", "connecting", "session", "ready", "closed"};

#define SQL_MODE                                                                                             \
	"STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"

static const char *const session[] = {
	"SET SESSION sql_mode = '" SQL_MODE "', time_zone = '+00:00', innodb_lock_wait_timeout = 5",
	"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
	"SELECT @@max_allowed_packet",
};

static TAILQ_HEAD(, mysql_link) links = TAILQ_HEAD_INITIALIZER(links);

static void link_enter(struct mysql_link *link, enum link_state to)
{
	static const unsigned from_to[LINK_STATES] = {
		[LINK_NEW] = 1 << LINK_RESOLVE | 1 << LINK_CONNECT | 1 << LINK_CLOSED,
		[LINK_WAIT] = 1 << LINK_RESOLVE | 1 << LINK_CONNECT | 1 << LINK_CLOSED,
		[LINK_RESOLVE] = 1 << LINK_CONNECT | 1 << LINK_WAIT | 1 << LINK_CLOSED,
		[LINK_CONNECT] = 1 << LINK_SESSION | 1 << LINK_WAIT | 1 << LINK_CLOSED,
		[LINK_SESSION] = 1 << LINK_READY | 1 << LINK_WAIT | 1 << LINK_CLOSED,
		[LINK_READY] = 1 << LINK_WAIT | 1 << LINK_CLOSED,
	};

	assert(from_to[link->state] & 1u << to);
	log_debug("mysql %s event=state change=%s->%s", link->name, link_names[link->state], link_names[to]);
	link->state = to;
}

static void notify(struct mysql_link *link)
{
	bool ready = link->state == LINK_READY;

	for (int i = 0; i < link->watcher_count && link->state != LINK_CLOSED; i++)
		link->watchers[i].fn(ready, link->watchers[i].arg);
}

static void kick(struct mysql_link *link)
{
	/* By a timer, so that the loop looks at its sockets before a job that failed at once is sent again.
	 */
	event_add(link->kick, &(struct timeval){0, 0});
}

static int64_t timeout_of(const struct mysql_link *link)
{
	return link->timeout_ms > 0 ? link->timeout_ms : link->config->mysql_timeout;
}

/* Jobs. */

/* The job is in no list and not current; its callback may free the link. */
static void end_job(struct mysql_link *link, struct mysql_job *job)
{
	link->queued--;
	if (job->result.outcome != SQL_OK) {
		link->errors++;
		log_info("mysql %s event=failed outcome=%s code=%u statement=%zd", link->name,
			sql_outcome_name(job->result.outcome), job->result.code, (ssize_t)job->result.failed);
	}
	mysql_job_complete(job);
}

/* Ends all jobs that are here now; those that the callbacks add wait for the next turn. */
static void fail_jobs(struct mysql_link *link)
{
	const char *why = link->last_error[0] != '\0' ? link->last_error : "not connected";
	struct mysql_jobs failed = TAILQ_HEAD_INITIALIZER(failed);
	struct mysql_job *job;

	TAILQ_CONCAT(&failed, &link->jobs, link);
	if (link->current != NULL)
		TAILQ_INSERT_HEAD(&failed, link->current, link);
	link->current = NULL;
	while ((job = TAILQ_FIRST(&failed)) != NULL) {
		TAILQ_REMOVE(&failed, job, link);
		mysql_job_lose(job, SERVER_GONE, why);
		end_job(link, job);
	}
}

static void link_send(struct mysql_link *link, struct bytes sql)
{
	link->queries++;
	mysql_io_query(link->io, sql, timeout_of(link));
}

static void end_current(struct mysql_link *link)
{
	struct mysql_job *job = link->current;

	link->current = NULL;
	mysql_io_result(link->io, &job->result);
	end_job(link, job);
	mysql_io_drop_result(link->io);
}

static void run_jobs(struct mysql_link *link)
{
	struct bytes sql;

	while (link->state == LINK_READY && link->current == NULL && !TAILQ_EMPTY(&link->jobs)) {
		link->current = TAILQ_FIRST(&link->jobs);
		TAILQ_REMOVE(&link->jobs, link->current, link);
		if (mysql_job_start(link->current, link->max_packet, &sql))
			link_send(link, sql);
		else
			end_current(link);
	}
}

/* The current job has said what comes next. */
static void go_on(struct mysql_link *link, bool more, struct bytes sql)
{
	if (more) {
		link_send(link, sql);
		return;
	}
	end_current(link);
	run_jobs(link);
}

static void on_kick(evutil_socket_t fd, short what, void *arg)
{
	struct mysql_link *link = arg;

	(void)fd;
	(void)what;
	if (link->state == LINK_READY)
		run_jobs(link);
	else
		fail_jobs(link);
}

/* The connection. */

static void set_last_error(struct mysql_link *link, unsigned code, const char *message)
{
	snprintf(link->last_error, sizeof(link->last_error), "%u %s", code, message);
}

/* The connection is gone or could not be made. */
static void link_down(struct mysql_link *link, unsigned code, const char *message)
{
	bool was_ready = link->state == LINK_READY;
	struct timeval pause;

	set_last_error(link, code, message);
	link_enter(link, LINK_WAIT);
	mysql_io_close(link->io);
	if (sql_classify(code) == SQL_BUSY && link->pause_ms < PAUSE_BUSY_MS)
		link->pause_ms = PAUSE_BUSY_MS;
	log_warning("mysql %s event=%s retry_ms=%lld error=\"%s\"", link->name,
		was_ready ? "lost" : "connect-failed", (long long)link->pause_ms, link->last_error);
	pause = (struct timeval){link->pause_ms / 1000, link->pause_ms % 1000 * 1000};
	event_add(link->timer, &pause);
	link->pause_ms = link->pause_ms * 2 < PAUSE_MAX_MS ? link->pause_ms * 2 : PAUSE_MAX_MS;
	if (was_ready)
		notify(link);
	if (link->state != LINK_CLOSED)
		fail_jobs(link);
}

static void link_connect(struct mysql_link *link)
{
	const struct config *c = link->config;
	struct mysql_target target = {
		.host = c->mysql_tls_ca[0] != '\0' ? c->mysql_host : link->address,
		.port = (unsigned)c->mysql_port,
		.socket = c->mysql_socket,
		.user = c->mysql_user,
		.password = c->mysql_password,
		.database = c->mysql_database,
		.tls_ca = c->mysql_tls_ca,
	};

	link_enter(link, LINK_CONNECT);
	mysql_io_connect(link->io, &target, timeout_of(link));
}

static void on_resolved(const char *address, const char *error, void *arg)
{
	struct mysql_link *link = arg;

	link->resolve = NULL;
	if (address == NULL) {
		link_down(link, 2005, error);
		return;
	}
	snprintf(link->address, sizeof(link->address), "%s", address);
	link_connect(link);
}

static void attempt(struct mysql_link *link)
{
	if (link->config->mysql_socket[0] != '\0' || link->config->mysql_tls_ca[0] != '\0') {
		link_connect(link);
		return;
	}
	link_enter(link, LINK_RESOLVE);
	link->resolve =
		resolve_start(link->base, link->config->mysql_host, timeout_of(link), on_resolved, link);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	attempt(arg);
}

static void session_send(struct mysql_link *link)
{
	link_send(link, bytes_of(session[link->session_at]));
}

static void session_done(struct mysql_link *link)
{
	struct mysql_result result = {0};
	int64_t limit;

	mysql_io_result(link->io, &result);
	if (result.rows != 1 || !bytes_to_i64(mysql_cell(&result, 0, 0), &limit) || limit < 1024) {
		link_down(link, 2000, "unexpected answer to SELECT @@max_allowed_packet");
		return;
	}
	link->max_packet = (size_t)limit;
	mysql_io_drop_result(link->io);
	link->pause_ms = PAUSE_FIRST_MS;
	link->connects++;
	link_enter(link, LINK_READY);
	log_notice("mysql %s event=ready max_packet=%zu", link->name, link->max_packet);
	notify(link);
	run_jobs(link);
}

static void on_session_step(struct mysql_link *link)
{
	if (++link->session_at == ARRAY_LEN(session))
		session_done(link);
	else
		session_send(link);
}

/* What was sent for the current job failed. */
static void on_job_error(struct mysql_link *link, unsigned code, const char *message)
{
	struct mysql_job *job = link->current;
	struct bytes sql = {0};

	/* A ROLLBACK that failed leaves a session of unknown state. */
	if (sql_classify(code) == SQL_LOST || job->state == MYSQL_JOB_ROLLBACK) {
		mysql_job_lose(job, code, message);
		link_down(link, code, message);
	} else {
		bool more = mysql_job_fail(job, code, message, &sql);
		go_on(link, more, sql);
	}
}

static void on_error(struct mysql_link *link)
{
	char message[256];
	unsigned code = mysql_io_code(link->io);

	snprintf(message, sizeof(message), "%s", mysql_io_message(link->io));
	if (link->state == LINK_READY && link->current != NULL)
		on_job_error(link, code, message);
	else
		link_down(link, code, message);
}

static void on_io(enum mysql_io_event event, void *arg)
{
	struct mysql_link *link = arg;

	if (event != MYSQL_IO_DONE) {
		on_error(link);
	} else if (link->state == LINK_CONNECT) {
		link_enter(link, LINK_SESSION);
		link->session_at = 0;
		session_send(link);
	} else if (link->state == LINK_SESSION) {
		on_session_step(link);
	} else {
		struct bytes sql = {0};
		bool more =
			mysql_job_step(link->current, link->max_packet, mysql_io_affected(link->io), &sql);
		go_on(link, more, sql);
	}
}

/* The public side. */

static void add_clean(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++)
		buf_add_char(out, (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text);
}

static void write_info(struct buf *out, void *arg)
{
	const struct mysql_link *link;

	(void)arg;
	TAILQ_FOREACH (link, &links, siblings) {
		buf_addf(out, "mysql_%s_state:%s\r\n", link->name, link_names[link->state]);
		buf_addf(out, "mysql_%s_queue:%llu\r\n", link->name, (unsigned long long)link->queued);
		buf_addf(out, "mysql_%s_queries:%llu\r\n", link->name, (unsigned long long)link->queries);
		buf_addf(out, "mysql_%s_errors:%llu\r\n", link->name, (unsigned long long)link->errors);
		buf_addf(out, "mysql_%s_reconnects:%llu\r\n", link->name,
			(unsigned long long)(link->connects > 0 ? link->connects - 1 : 0));
		buf_addf(out, "mysql_%s_last_error:", link->name);
		add_clean(out, link->last_error);
		buf_add_str(out, "\r\n");
	}
}

static void register_info(void)
{
	static bool registered;

	if (!registered)
		info_register("mysql", write_info, NULL);
	registered = true;
}

struct mysql_link *mysql_link_new(struct event_base *base, const struct config *config, const char *name)
{
	struct mysql_link *link = xcalloc(1, sizeof(*link));

	register_info();
	link->base = base;
	link->config = config;
	link->name = name;
	link->pause_ms = PAUSE_FIRST_MS;
	link->io = mysql_io_new(base, on_io, link);
	link->timer = event_new(base, -1, 0, on_timer, link);
	link->kick = event_new(base, -1, 0, on_kick, link);
	TAILQ_INIT(&link->jobs);
	TAILQ_INSERT_TAIL(&links, link, siblings);
	return link;
}

void mysql_link_start(struct mysql_link *link)
{
	attempt(link);
}

static void destroy(void *ptr)
{
	struct mysql_link *link = ptr;

	mysql_io_free(link->io);
	event_free(link->timer);
	event_free(link->kick);
	free(link);
}

void mysql_link_free(struct mysql_link *link)
{
	if (link == NULL)
		return;
	link_enter(link, LINK_CLOSED);
	TAILQ_REMOVE(&links, link, siblings);
	resolve_cancel(link->resolve);
	event_del(link->timer);
	event_del(link->kick);
	mysql_io_close(link->io);
	set_last_error(link, SERVER_GONE, "the link is being closed");
	fail_jobs(link);
	turn_free(link, destroy);
}

bool mysql_link_ready(const struct mysql_link *link)
{
	return link->state == LINK_READY;
}

void mysql_link_watch(struct mysql_link *link, void (*fn)(bool ready, void *arg), void *arg)
{
	assert(link->watcher_count < WATCHERS_MAX);
	link->watchers[link->watcher_count].fn = fn;
	link->watchers[link->watcher_count++].arg = arg;
}

const char *mysql_link_last_error(const struct mysql_link *link)
{
	return link->last_error;
}

size_t mysql_link_max_packet(const struct mysql_link *link)
{
	return link->max_packet;
}

void mysql_link_set_timeout(struct mysql_link *link, int64_t timeout_ms)
{
	link->timeout_ms = timeout_ms;
}

static void enqueue(struct mysql_link *link, struct mysql_job *job)
{
	assert(link->state != LINK_CLOSED);
	link->queued++;
	TAILQ_INSERT_TAIL(&link->jobs, job, link);
	kick(link);
}

void mysql_link_query(struct mysql_link *link, struct buf *sql, mysql_cb cb, void *arg)
{
	enqueue(link, mysql_job_query(sql, cb, arg));
}

void mysql_link_batch(
	struct mysql_link *link, const struct bytes *statements, size_t count, mysql_cb cb, void *arg)
{
	enqueue(link, mysql_job_batch(statements, count, cb, arg));
}
