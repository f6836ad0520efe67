/* SPDX-License-Identifier: MIT */
#include "persist/mysql_login.h"

#include <event2/event.h>
#include <fcntl.h>
#include <mysql.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "persist/mysql_io.h"

struct mysql_login {
	MYSQL *handle;
	char *host, *user, *password, *database; /* copies: the caller's may go before the thread does */
	unsigned port;
	int64_t timeout_ms;
	bool connected; /* written by the thread before `over` */
	int done[2];    /* a pipe: the thread closes its end when it is over */
	pthread_mutex_t lock;
	bool over, cancelled; /* under the lock: whoever comes second cleans up */
	int twin; /* under the lock: a duplicate of the socket, by which a cancel reaches the thread, or -1 */
	pthread_t thread;
	struct event *event; /* of done[0] */
	mysql_login_cb cb;
	void *arg;
};

static void destroy(struct mysql_login *login)
{
	explicit_bzero(login->password, strlen(login->password));
	free(login->host);
	free(login->user);
	free(login->password);
	free(login->database);
	pthread_mutex_destroy(&login->lock);
	if (login->twin >= 0)
		close(login->twin);
	free(login);
}

/* The library may close its socket and try another address, so the cancel has a descriptor of its own. */
static void follow_socket(struct mysql_login *login)
{
	pthread_mutex_lock(&login->lock);
	if (login->twin >= 0)
		close(login->twin);
	login->twin = fcntl(mysql_get_socket(login->handle), F_DUPFD_CLOEXEC, 0);
	if (login->cancelled && login->twin >= 0)
		shutdown(login->twin, SHUT_RDWR);
	pthread_mutex_unlock(&login->lock);
}

/* Which of the wanted directions are ready, or 0 when none is in time. */
static int wait_for(struct mysql_login *login, int status, int64_t until_us)
{
	short want =
		(short)((status & MYSQL_WAIT_READ ? POLLIN : 0) | (status & MYSQL_WAIT_WRITE ? POLLOUT : 0));
	struct pollfd p = {.fd = mysql_get_socket(login->handle), .events = want};
	follow_socket(login);
	int64_t left = (until_us - clock_mono_us()) / 1000;

	if (left <= 0 || poll(&p, 1, (int)left) <= 0)
		return 0;
	bool hung_up = (p.revents & (POLLERR | POLLHUP)) != 0;
	return (hung_up || p.revents & POLLIN ? status & MYSQL_WAIT_READ : 0) |
	       (hung_up || p.revents & POLLOUT ? status & MYSQL_WAIT_WRITE : 0);
}

static void log_in(struct mysql_login *login)
{
	/* Later than the loop's own deadline, which is the one that counts. */
	int64_t until_us = clock_mono_us() + (login->timeout_ms + 1000) * 1000;
	MYSQL *connected = NULL;
	int status = mysql_real_connect_start(&connected, login->handle, login->host, login->user,
		login->password, login->database, login->port, NULL, 0);

	while (status != 0) {
		int ready = wait_for(login, status, until_us);
		if (ready == 0) {
			shutdown(mysql_get_socket(login->handle),
				SHUT_RDWR); /* so that closing it can't block */
			return;
		}
		status = mysql_real_connect_cont(&connected, login->handle, ready);
	}
	login->connected = connected != NULL;
}

static void *run(void *arg)
{
	struct mysql_login *login = arg;
	int done = login->done[1];

	log_in(login);
	pthread_mutex_lock(&login->lock);
	login->over = true;
	bool cancelled = login->cancelled;
	pthread_mutex_unlock(&login->lock);
	if (cancelled) {
		mysql_close(login->handle);
		destroy(login);
	}
	close(done);
	return NULL;
}

static void on_done(evutil_socket_t fd, short what, void *arg)
{
	struct mysql_login *login = arg;
	mysql_login_cb cb = login->cb;
	void *cb_arg = login->arg;
	bool connected;

	(void)what;
	pthread_join(login->thread, NULL); /* it has closed its end and has nothing left to do */
	connected = login->connected;
	close(fd);
	event_free(login->event);
	destroy(login);
	cb(connected, cb_arg);
}

/* Signals are the loop's. */
static int start_thread(struct mysql_login *login)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int failed = pthread_create(&login->thread, NULL, run, login);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return failed;
}

struct mysql_login *mysql_login_start(struct event_base *base, struct st_mysql *handle,
	const struct mysql_target *target, int64_t timeout_ms, mysql_login_cb cb, void *arg)
{
	struct mysql_login *login = xcalloc(1, sizeof(*login));
	unsigned seconds = (unsigned)(timeout_ms / 1000 + 1);

	login->handle = handle;
	login->host = xstrdup(target->host);
	login->user = xstrdup(target->user);
	login->password = xstrdup(target->password);
	login->database = xstrdup(target->database);
	login->port = target->port;
	login->timeout_ms = timeout_ms;
	login->twin = -1;
	login->cb = cb;
	login->arg = arg;
	pthread_mutex_init(&login->lock, NULL);
	mysql_options(handle, MYSQL_OPT_CONNECT_TIMEOUT, &seconds); /* ends each poll() of the handshake */
	if (pipe2(login->done, O_CLOEXEC) != 0) {
		destroy(login);
		return NULL;
	}
	if (start_thread(login) != 0) {
		close(login->done[0]);
		close(login->done[1]);
		destroy(login);
		return NULL;
	}
	login->event = event_new(base, login->done[0], EV_READ, on_done, login);
	event_add(login->event, NULL);
	return login;
}

void mysql_login_cancel(struct mysql_login *login)
{
	if (login == NULL)
		return;
	close(event_get_fd(login->event));
	event_free(login->event);
	pthread_detach(login->thread);
	pthread_mutex_lock(&login->lock);
	login->cancelled = true;
	bool over = login->over;
	if (login->twin >= 0)
		shutdown(login->twin, SHUT_RDWR); /* ends the library's wait */
	pthread_mutex_unlock(&login->lock);
	if (over) {
		mysql_close(login->handle);
		destroy(login);
	}
}
