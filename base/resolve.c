/* SPDX-License-Identifier: MIT */
#include "base/resolve.h"

#include <arpa/inet.h>
#include <event2/dns.h>
#include <stdbool.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* One look-up has its own evdns base, made when a real name must be asked for and gone with it: reconnects
 * are rare, a change of resolv.conf is seen, and nothing keeps the loop alive in between. */
struct resolve {
	resolve_cb cb;
	void *arg;
	struct event *timer;
	struct evdns_base *dns;
	struct evdns_getaddrinfo_request *request;
	char address[INET6_ADDRSTRLEN];
	char error[128];
};

static void destroy(struct resolve *r)
{
	event_free(r->timer);
	if (r->dns != NULL)
		evdns_base_free(r->dns, 0);
	free(r);
}

/* Runs from the loop, never inside a call of evdns, so that everything may be freed here. */
static void finish(evutil_socket_t fd, short what, void *arg)
{
	struct resolve *r = arg;

	(void)fd;
	(void)what;
	if (r->request != NULL) {
		snprintf(r->error, sizeof(r->error), "no answer to the name look-up");
		evdns_getaddrinfo_cancel(r->request);
		r->request = NULL;
	}
	resolve_cb cb = r->cb;
	bool found = r->address[0] != '\0';
	char address[INET6_ADDRSTRLEN], error[128];
	memcpy(address, r->address, sizeof(address));
	memcpy(error, r->error, sizeof(error));
	void *cb_arg = r->arg;
	destroy(r);
	if (cb != NULL)
		cb(found ? address : NULL, found ? NULL : error, cb_arg);
}

static void on_answer(int result, struct evutil_addrinfo *list, void *arg)
{
	struct resolve *r = arg;

	if (result == EVUTIL_EAI_CANCEL)
		return;
	r->request = NULL;
	if (result != 0 || list == NULL) {
		snprintf(r->error, sizeof(r->error), "%s", evutil_gai_strerror(result));
	} else if (list->ai_family == AF_INET) {
		struct sockaddr_in sin;
		memcpy(&sin, list->ai_addr, sizeof(sin));
		inet_ntop(AF_INET, &sin.sin_addr, r->address, sizeof(r->address));
	} else {
		struct sockaddr_in6 sin6;
		memcpy(&sin6, list->ai_addr, sizeof(sin6));
		inet_ntop(AF_INET6, &sin6.sin6_addr, r->address, sizeof(r->address));
	}
	if (list != NULL)
		evutil_freeaddrinfo(list);
	event_active(r->timer, EV_TIMEOUT, 1);
}

static bool numeric(const char *host)
{
	unsigned char raw[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, raw) == 1 || inet_pton(AF_INET6, host, raw) == 1;
}

struct resolve *resolve_start(
	struct event_base *base, const char *host, int64_t timeout_ms, resolve_cb cb, void *arg)
{
	struct resolve *r = xcalloc(1, sizeof(*r));
	struct timeval deadline = {timeout_ms / 1000, timeout_ms % 1000 * 1000};

	r->cb = cb;
	r->arg = arg;
	r->timer = event_new(base, -1, 0, finish, r);
	if (numeric(host)) {
		snprintf(r->address, sizeof(r->address), "%s", host);
		event_active(r->timer, EV_TIMEOUT, 1);
		return r;
	}
	event_add(r->timer, &deadline);
	r->dns = evdns_base_new(base, EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (r->dns == NULL) {
		snprintf(r->error, sizeof(r->error), "no name server is configured");
		event_active(r->timer, EV_TIMEOUT, 1);
		return r;
	}
	struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	r->request = evdns_getaddrinfo(r->dns, host, NULL, &hints, on_answer, r);
	return r;
}

void resolve_cancel(struct resolve *r)
{
	if (r == NULL)
		return;
	/* A cancelled look-up still answers: let finish() free it, without its caller. */
	r->cb = NULL;
	event_active(r->timer, EV_TIMEOUT, 1);
}
