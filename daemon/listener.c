/* SPDX-License-Identifier: MIT */
#include "daemon/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/mem.h"

#define SOCKETS_MAX    16
#define BACKLOG        4096
#define OWN_FILES      64 /* descriptors that are not clients */
#define SYSTEMD_FIRST  3
#define SHED_AT_ONCE   64
#define KEEPALIVE_IDLE 300 /* seconds */

static const char busy[] = "-BUSY max number of clients reached\r\n";

struct listener {
	struct event_base *base;
	const struct listener_ops *ops;
	void *arg;
	struct evconnlistener *sockets[SOCKETS_MAX];
	int count;
	int port;
	int reserve; /* a descriptor to give up when there is none left, or -1 */
	struct event *resume;
};

size_t listener_raise_limit(size_t wanted_clients)
{
	struct rlimit limit;
	rlim_t wanted = wanted_clients + OWN_FILES;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return wanted_clients;
	if (limit.rlim_max < wanted) {
		struct rlimit higher = {.rlim_cur = wanted, .rlim_max = wanted};
		if (setrlimit(RLIMIT_NOFILE, &higher) == 0)
			return wanted_clients;
	}
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= wanted)
		return wanted_clients;
	return limit.rlim_cur > OWN_FILES ? limit.rlim_cur - OWN_FILES : 1;
}

/* Says so and closes; what the peer has sent is read first, so that it gets the answer and not a reset. */
static void turn_away(struct listener *l, int fd)
{
	char drop[1024];

	if (send(fd, busy, sizeof(busy) - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ||
		recv(fd, drop, sizeof(drop), MSG_DONTWAIT) < 0)
		log_debug("listener - event=turned_away error=%s", strerror(errno));
	close(fd);
	l->ops->rejected(l->arg);
}

static void on_accept(struct evconnlistener *socket, evutil_socket_t fd, struct sockaddr *address,
	int address_len, void *arg)
{
	struct listener *l = arg;

	(void)socket;
	(void)address;
	(void)address_len;
	if (l->ops->clients(l->arg) >= l->ops->most(l->arg))
		turn_away(l, fd);
	else
		l->ops->accepted(l->arg, fd);
}

/* Accepts and turns away what waits, one after the other on the reserved descriptor. */
static void shed(struct listener *l, int listening)
{
	for (int i = 0; i < SHED_AT_ONCE && l->reserve >= 0; i++) {
		close(l->reserve);
		int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			turn_away(l, fd);
		l->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return;
	}
}

static void enable(struct listener *l, bool on)
{
	for (int i = 0; i < l->count; i++) {
		if (on)
			evconnlistener_enable(l->sockets[i]);
		else
			evconnlistener_disable(l->sockets[i]);
	}
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	enable(arg, true);
}

/* A level-triggered listener without descriptors would spin: it rests for a tenth of a second. */
static void on_error(struct evconnlistener *socket, void *arg)
{
	struct listener *l = arg;
	int error = errno;

	log_warning("listener - event=accept_failed error=%s", strerror(error));
	if (error == EMFILE || error == ENFILE)
		shed(l, evconnlistener_get_fd(socket));
	enable(l, false);
	event_add(l->resume, &(struct timeval){0, 100000});
}

static int port_of(int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (getsockname(fd, (struct sockaddr *)&ss, &len) != 0)
		return 0;
	if (ss.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
	return ss.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)&ss)->sin_port) : 0;
}

/* Accepted sockets inherit these from the listening one, which saves five system calls a connection. */
static void set_options(int fd)
{
	int on = 1, idle = KEEPALIVE_IDLE, interval = 60, count = 3;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static int add_socket(struct listener *l, int fd)
{
	if (l->count == SOCKETS_MAX) {
		log_error("listener - event=too_many_addresses most=%d", SOCKETS_MAX);
		return -1;
	}
	set_options(fd);
	evutil_make_socket_nonblocking(fd);
	evutil_make_socket_closeonexec(fd);
	struct evconnlistener *socket = evconnlistener_new(
		l->base, on_accept, l, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (socket == NULL)
		return -1;
	evconnlistener_set_error_cb(socket, on_error);
	l->sockets[l->count++] = socket;
	if (l->port == 0)
		l->port = port_of(fd);
	return 0;
}

static int open_socket(struct listener *l, const struct sockaddr *address, socklen_t len)
{
	int on = 1;
	int fd = socket(address->sa_family, SOCK_STREAM, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, address, len) == 0 && listen(fd, BACKLOG) == 0 && add_socket(l, fd) == 0)
		return 0;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int open_address(struct listener *l, const char *text, int port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int result;

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
		result = open_socket(l, (struct sockaddr *)&in, sizeof(in));
	} else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1) {
		result = open_socket(l, (struct sockaddr *)&in6, sizeof(in6));
	} else {
		log_error("listener - event=bad_address address=%s expected=IPv4_or_IPv6", text);
		return -1;
	}
	if (result != 0)
		log_error("listener - event=listen_failed address=%s port=%d error=%s", text, port,
			strerror(errno));
	return result;
}

static int open_addresses(struct listener *l, const char *addresses, int port)
{
	const char *at = addresses;

	for (;;) {
		char text[INET6_ADDRSTRLEN + 1];
		at += strspn(at, " \t,");
		size_t n = strcspn(at, " \t,");
		if (n == 0)
			break;
		bytes_copy(text, sizeof(text), (struct bytes){at, n});
		/* With port 0 the first address chooses it for all. */
		if (open_address(l, text, port != 0 ? port : l->port) != 0)
			return -1;
		at += n;
	}
	if (l->count > 0)
		return 0;
	log_error("listener - event=no_address");
	return -1;
}

/* How many sockets systemd hands over, from descriptor 3 on. */
static int inherited(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int64_t owner, count;

	if (pid == NULL || fds == NULL || !bytes_to_i64(bytes_of(pid), &owner) || owner != getpid())
		return 0;
	return bytes_to_i64(bytes_of(fds), &count) && count > 0 && count <= SOCKETS_MAX ? (int)count : 0;
}

static int open_all(struct listener *l, const char *addresses, int port)
{
	int count = inherited();

	for (int i = 0; i < count; i++) {
		if (add_socket(l, SYSTEMD_FIRST + i) != 0)
			return -1;
	}
	return count > 0 ? 0 : open_addresses(l, addresses, port);
}

struct listener *listener_new(
	struct event_base *base, const char *addresses, int port, const struct listener_ops *ops, void *arg)
{
	struct listener *l = xcalloc(1, sizeof(*l));

	*l = (struct listener){.base = base, .ops = ops, .arg = arg};
	l->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	l->resume = evtimer_new(base, on_resume, l);
	if (open_all(l, addresses, port) == 0) {
		log_notice("listener - event=listening addresses=%s port=%d", addresses, l->port);
		return l;
	}
	listener_free(l);
	return NULL;
}

void listener_close(struct listener *l)
{
	for (int i = 0; i < l->count; i++)
		evconnlistener_free(l->sockets[i]);
	l->count = 0;
	event_del(l->resume);
}

void listener_free(struct listener *l)
{
	if (l == NULL)
		return;
	listener_close(l);
	event_free(l->resume);
	if (l->reserve >= 0)
		close(l->reserve);
	free(l);
}

int listener_port(const struct listener *l)
{
	return l->port;
}
