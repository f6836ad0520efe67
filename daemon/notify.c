/* SPDX-License-Identifier: MIT */
#include "daemon/notify.h"

#include <errno.h>
#include <event2/event.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

struct notify {
	int fd; /* -1: nobody listens */
	struct event *watchdog;
	bool (*healthy)(void *arg);
	void *arg;
};

/* A name that begins with '@' is an abstract one. */
static int connect_to(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = strlen(name);

	if (n < 2 || n >= sizeof(address.sun_path) || (name[0] != '/' && name[0] != '@'))
		return -1;
	memcpy(address.sun_path, name, n);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, len) == 0)
		return fd;
	log_warning("notify - event=no_socket error=%s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static void say(struct notify *n, const char *text)
{
	if (n->fd >= 0 && send(n->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		log_warning("notify - event=send_failed error=%s", strerror(errno));
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	struct notify *n = arg;

	(void)fd;
	(void)what;
	if (n->healthy(n->arg))
		say(n, "WATCHDOG=1");
	else
		log_error("notify - event=watchdog_withheld");
}

/* Microseconds, or 0 when no watchdog is meant for this process. */
static int64_t watchdog_period(void)
{
	const char *period = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	int64_t us, owner;

	if (period == NULL || !bytes_to_i64(bytes_of(period), &us) || us <= 0)
		return 0;
	if (pid != NULL && (!bytes_to_i64(bytes_of(pid), &owner) || owner != getpid()))
		return 0;
	return us;
}

struct notify *notify_new(struct event_base *base, bool (*healthy)(void *arg), void *arg)
{
	struct notify *n = xcalloc(1, sizeof(*n));
	const char *name = getenv("NOTIFY_SOCKET");
	int64_t third = watchdog_period() / 3;

	*n = (struct notify){.fd = -1, .healthy = healthy, .arg = arg};
	if (name != NULL)
		n->fd = connect_to(name);
	if (n->fd < 0 || third == 0)
		return n;
	struct timeval period = {third / 1000000, third % 1000000};
	n->watchdog = event_new(base, -1, EV_PERSIST, on_watchdog, n);
	event_add(n->watchdog, &period);
	return n;
}

void notify_free(struct notify *n)
{
	if (n == NULL)
		return;
	if (n->watchdog != NULL)
		event_free(n->watchdog);
	if (n->fd >= 0)
		close(n->fd);
	free(n);
}

static void say_with_status(struct notify *n, const char *state, const char *status)
{
	char text[512];

	snprintf(text, sizeof(text), "%s%sSTATUS=%s", state, state[0] != '\0' ? "\n" : "", status);
	say(n, text);
}

void notify_ready(struct notify *n, const char *status)
{
	say_with_status(n, "READY=1", status);
}

void notify_reloading(struct notify *n)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_mono_us());
	say(n, text);
}

void notify_stopping(struct notify *n, const char *status)
{
	say_with_status(n, "STOPPING=1", status);
}

void notify_status(struct notify *n, const char *status)
{
	say_with_status(n, "", status);
}
