/* SPDX-License-Identifier: MIT */
/* A load generator for musterd, and for whatever else speaks RESP: many connections, each with as many
 * commands on their way as --depth says, from one loop and one thread. All connections are open before the
 * first command leaves. Each takes the next command of the list when it has room, so one person's commands
 * may travel on different connections. A latency runs from handing a command to its connection to having its
 * whole reply; with --rate from the moment at which the command was due, so that a server that falls behind
 * can't hide it.
 *
 * The result is one JSON object on stdout. The exit code is 0 when every command was answered, with whatever.
 * SIGTERM ends it early: nothing more is sent, what is under way is waited for, and the result is printed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/histogram.h"
#include "bench/reply.h"
#include "bench/tally.h"
#include "bench/work.h"

#define CONNECTING_MAX 128 /* at once, so that no listen queue runs over */
#define FIELDS_MAX     4

struct options {
	const char *host;
	int64_t port, connections, depth, requests, patience_s;
	int64_t rate, hold_s, sources; /* 0 = as fast as answers come; none; the system's choice */
	const char *commands, *ids, *resp;
	const char *fields[FIELDS_MAX];
	int field_count;
};

struct conn {
	struct load *load;
	struct bufferevent *bev;
	int64_t *sent_us; /* ring of `depth`, the oldest at `head` */
	int64_t head, inflight;
};

struct load {
	struct options options;
	struct work work;
	struct event_base *base;
	struct event *watch, *pace; /* pace: the next command is due, or the hold is over */
	struct event *enough;       /* SIGTERM */
	struct sockaddr_in address;
	struct conn *conns;
	int64_t turn;              /* whose is the next command that is sent at a rate */
	int64_t begun, open, lost; /* connections: begun to connect, open, ended before their time */
	uint64_t sent, done, wanted, done_at_watch;
	int64_t connect_us, started_us, ended_us;
	struct histogram latencies;
	struct tally kinds, errors, fields[FIELDS_MAX];
	bool begun_sending;
	char trouble[128];
};

static void connect_more(struct load *l);

static void give_up(struct load *l, const char *why)
{
	if (l->trouble[0] == '\0')
		snprintf(l->trouble, sizeof(l->trouble), "%s", why);
	event_base_loopbreak(l->base);
}

static void end_when_done(struct load *l)
{
	if (l->done < l->wanted)
		return;
	l->ended_us = clock_mono_us();
	event_base_loopbreak(l->base);
}

/* ---- commands and replies ---- */

static bool has_room(const struct conn *c)
{
	return c->inflight < c->load->options.depth && c->load->sent < c->load->wanted;
}

static void send_next(struct conn *c, int64_t due_us)
{
	struct load *l = c->load;
	struct bytes command = work_command(&l->work, l->sent++);

	c->sent_us[(c->head + c->inflight++) % l->options.depth] = due_us;
	evbuffer_add(bufferevent_get_output(c->bev), command.p, command.n);
}

static void fill(struct conn *c)
{
	while (c->load->options.rate == 0 && has_room(c))
		send_next(c, clock_mono_us());
}

static struct conn *next_with_room(struct load *l)
{
	for (int64_t i = 0; i < l->options.connections; i++) {
		struct conn *c = &l->conns[l->turn++ % l->options.connections];
		if (has_room(c))
			return c;
	}
	return NULL;
}

/* Sends what is due. When no connection has room it is sent later, and its latency tells. */
static void keep_pace(struct load *l)
{
	int64_t now = clock_mono_us(), due;
	struct conn *c;

	while ((due = l->started_us + (int64_t)l->sent * 1000000 / l->options.rate) <= now &&
		(c = next_with_room(l)) != NULL)
		send_next(c, due);
	int64_t wait_us = due > now ? due - now : 100;
	if (l->sent < l->wanted)
		event_add(l->pace, &(struct timeval){wait_us / 1000000, wait_us % 1000000});
}

static void count_reply(struct load *l, struct bytes reply)
{
	static const struct {
		char type;
		const char *name;
	} kinds[] = {{'+', "status"}, {'-', "error"}, {':', "integer"}, {'$', "bulk"}, {'*', "array"},
		{'%', "map"}};
	const char *kind = "other";

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i].type == reply.p[0])
			kind = kinds[i].name;
	}
	tally_add(&l->kinds, bytes_of(kind));
	if (reply.p[0] == '-')
		tally_add(&l->errors, (struct bytes){reply.p + 1, strcspn(reply.p + 1, " \r")});
	for (int i = 0; i < l->options.field_count; i++) {
		struct bytes value;
		if (reply_field(reply, bytes_of(l->options.fields[i]), &value))
			tally_add(&l->fields[i], value);
	}
}

static bool take_reply(struct conn *c, struct bytes reply)
{
	struct load *l = c->load;

	if (c->inflight == 0) {
		give_up(l, "a reply that nobody asked for");
		return false;
	}
	histogram_add(&l->latencies, clock_mono_us() - c->sent_us[c->head]);
	c->head = (c->head + 1) % l->options.depth;
	c->inflight--;
	count_reply(l, reply);
	l->done++;
	end_when_done(l);
	return true;
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t have = evbuffer_get_length(in), at = 0;
	const char *data = (const char *)evbuffer_pullup(in, -1);

	while (at < have) {
		size_t n = reply_length((struct bytes){data + at, have - at});
		if (n == REPLY_MALFORMED) {
			give_up(c->load, "a reply that is not RESP");
			return;
		}
		if (n == 0 || !take_reply(c, (struct bytes){data + at, n}))
			break;
		at += n;
	}
	evbuffer_drain(in, at);
	fill(c);
}

/* ---- connections ---- */

static void begin(struct load *l)
{
	l->started_us = clock_mono_us();
	if (l->options.rate > 0)
		keep_pace(l);
	for (int64_t i = 0; i < l->options.connections; i++)
		fill(&l->conns[i]);
	l->begun_sending = true;
}

static void all_open(struct load *l)
{
	l->connect_us = clock_mono_us() - l->started_us;
	if (l->options.hold_s == 0)
		begin(l);
	else
		event_add(l->pace, &(struct timeval){l->options.hold_s, 0});
}

static void on_pace(evutil_socket_t fd, short what, void *arg)
{
	struct load *l = arg;

	(void)fd;
	(void)what;
	if (l->begun_sending)
		keep_pace(l);
	else
		begin(l);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct conn *c = arg;
	struct load *l = c->load;
	int on = 1;

	if ((what & BEV_EVENT_CONNECTED) != 0) {
		(void)setsockopt(bufferevent_getfd(bev), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (++l->open == l->options.connections)
			all_open(l);
		else
			connect_more(l);
		return;
	}
	l->lost++;
	give_up(l, (what & BEV_EVENT_EOF) != 0 ? "the server closed a connection"
					       : evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
}

/* A socket with one of several loopback addresses of its own: one address has only so many ports. */
static int bound_socket(const struct load *l)
{
	struct sockaddr_in from = {.sin_family = AF_INET};
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (uint32_t)(l->begun % l->options.sources));
	if (fd >= 0 && setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) == 0 &&
		bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void connect_one(struct load *l, struct conn *c)
{
	int fd = l->options.sources > 0 ? bound_socket(l) : -1;

	c->load = l;
	c->sent_us = xcalloc((size_t)l->options.depth, sizeof(c->sent_us[0]));
	c->bev = bufferevent_socket_new(l->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (c->bev == NULL || (fd < 0 && l->options.sources > 0)) {
		give_up(l, c->bev == NULL ? "no memory for a connection" : strerror(errno));
		return;
	}
	bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	bufferevent_setwatermark(c->bev, EV_READ, 0, 0);
	if (bufferevent_socket_connect(c->bev, (struct sockaddr *)&l->address, sizeof(l->address)) != 0)
		give_up(l, strerror(errno));
}

static void connect_more(struct load *l)
{
	while (l->begun < l->options.connections && l->begun - l->open < CONNECTING_MAX &&
		l->trouble[0] == '\0')
		connect_one(l, &l->conns[l->begun++]);
}

static void on_enough(evutil_socket_t number, short what, void *arg)
{
	struct load *l = arg;

	(void)number;
	(void)what;
	l->wanted = l->sent;
	end_when_done(l);
}

/* Something must have been answered, or connected, since the last time. */
static void on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct load *l = arg;
	uint64_t now = l->done + (uint64_t)l->open;

	(void)fd;
	(void)what;
	if (now == l->done_at_watch && (l->begun_sending || l->open < l->options.connections))
		give_up(l, "no answer for too long");
	l->done_at_watch = now;
}

/* ---- the result ---- */

static json_t *latencies_json(const struct histogram *h)
{
	return json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:I}", "mean",
		h->count > 0 ? (double)h->sum / (double)h->count : 0.0, "p50",
		(json_int_t)histogram_percentile(h, 50), "p90", (json_int_t)histogram_percentile(h, 90),
		"p95", (json_int_t)histogram_percentile(h, 95), "p99",
		(json_int_t)histogram_percentile(h, 99), "p999", (json_int_t)histogram_percentile(h, 99.9),
		"max", (json_int_t)h->max);
}

static void print_result(const struct load *l)
{
	int64_t end_us = l->ended_us != 0 ? l->ended_us : clock_mono_us();
	double seconds = (double)(end_us - l->started_us) / 1e6;
	json_t *fields = json_object();

	for (int i = 0; i < l->options.field_count; i++)
		json_object_set_new(fields, l->options.fields[i], tally_json(&l->fields[i]));
	json_t *all = json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o, s:o, s:o}", "connections",
		(json_int_t)l->open, "depth", (json_int_t)l->options.depth, "lost", (json_int_t)l->lost,
		"sent", (json_int_t)l->sent, "answered", (json_int_t)l->done, "connect_seconds",
		(double)l->connect_us / 1e6, "seconds", seconds, "rate",
		seconds > 0 ? (double)l->done / seconds : 0.0, "latency_us", latencies_json(&l->latencies),
		"replies", tally_json(&l->kinds), "errors", tally_json(&l->errors), "fields", fields);
	json_dumpf(all, stdout, JSON_REAL_PRECISION(9) | JSON_INDENT(1));
	putchar('\n');
	json_decref(all);
}

/* ---- the command line ---- */

static const char usage[] =
	"load [OPTIONS] [COMMAND WORD...]\n"
	"  --host ADDRESS      127.0.0.1 by default\n"
	"  --port N            7411 by default\n"
	"  --connections N     open at once (50)\n"
	"  --depth N           commands on their way on each (1)\n"
	"  --requests N        how many; by default the list once, or 100000 of the one command\n"
	"  --commands FILE     one command a line; - for stdin\n"
	"  --ids FILE          one id a line, each put for {} in the command: load --ids FILE CHECKIN {} IN\n"
	"  --resp FILE         commands as they go over the wire, for words with blanks or none\n"
	"  --rate N            so many a second, whether answered or not, instead of as fast as answers "
	"come\n"
	"  --hold SECONDS      wait so long between the last connection and the first command\n"
	"  --sources N         connect from 127.0.0.2 and so many addresses up\n"
	"  --count FIELD       count the values of this field of the replies; may be repeated\n"
	"  --patience SECONDS  give up when nothing is answered for so long (30)\n";

static bool read_number(const char *text, int64_t most, int64_t *ret)
{
	int64_t n;

	if (!bytes_to_i64(bytes_of(text), &n) || n < 1 || n > most)
		return false;
	*ret = n;
	return true;
}

static bool read_option(struct options *o, int c, const char *value)
{
	switch (c) {
	case 'h':
		o->host = value;
		return true;
	case 'p':
		return read_number(value, 65535, &o->port);
	case 'c':
		return read_number(value, 60000, &o->connections);
	case 'd':
		return read_number(value, 10000, &o->depth);
	case 'n':
		return read_number(value, INT64_C(1000000000000), &o->requests);
	case 's':
		return read_number(value, 86400, &o->patience_s);
	case 'r':
		return read_number(value, 10000000, &o->rate);
	case 'w':
		return read_number(value, 3600, &o->hold_s);
	case 'a':
		return read_number(value, 250, &o->sources);
	case 'b':
		o->resp = value;
		return true;
	case 'f':
		o->commands = value;
		return true;
	case 'i':
		o->ids = value;
		return true;
	case 'k':
		if (o->field_count == FIELDS_MAX)
			return false;
		o->fields[o->field_count++] = value;
		return true;
	default:
		return false;
	}
}

static int read_options(struct load *l, int argc, char **argv)
{
	static const struct option known[] = {{"host", required_argument, NULL, 'h'},
		{"port", required_argument, NULL, 'p'}, {"connections", required_argument, NULL, 'c'},
		{"depth", required_argument, NULL, 'd'}, {"requests", required_argument, NULL, 'n'},
		{"commands", required_argument, NULL, 'f'}, {"ids", required_argument, NULL, 'i'},
		{"resp", required_argument, NULL, 'b'}, {"rate", required_argument, NULL, 'r'},
		{"hold", required_argument, NULL, 'w'}, {"sources", required_argument, NULL, 'a'},
		{"count", required_argument, NULL, 'k'}, {"patience", required_argument, NULL, 's'}, {0}};
	struct options *o = &l->options;

	*o = (struct options){
		.host = "127.0.0.1", .port = 7411, .connections = 50, .depth = 1, .patience_s = 30};
	for (int c; (c = getopt_long(argc, argv, "+", known, NULL)) != -1;) {
		if (!read_option(o, c, optarg))
			return -1;
	}
	l->address.sin_family = AF_INET;
	l->address.sin_port = htons((uint16_t)o->port);
	if (inet_pton(AF_INET, o->host, &l->address.sin_addr) != 1)
		return -1;
	bool from_file = o->commands != NULL || o->resp != NULL;
	return from_file == (optind == argc) ? 0 : -1;
}

static int read_work(struct load *l, int argc, char **argv)
{
	const struct options *o = &l->options;
	const char *file = o->commands != NULL ? o->commands : o->resp != NULL ? o->resp : o->ids;
	struct bytes words[64];
	int rc = 0, count = argc < (int)ARRAY_LEN(words) ? argc : (int)ARRAY_LEN(words);

	if (o->commands != NULL) {
		rc = work_read(&l->work, file);
	} else if (o->resp != NULL) {
		rc = work_read_resp(&l->work, file);
	} else if (o->ids != NULL) {
		rc = work_expand(&l->work, file, argv, argc);
	} else {
		for (int i = 0; i < count; i++)
			words[i] = bytes_of(argv[i]);
		work_add(&l->work, words, count);
	}
	if (rc != 0)
		fprintf(stderr, "load: %s: %s\n", file, strerror(errno));
	else if (l->work.count == 0)
		fprintf(stderr, "load: no commands\n");
	l->wanted = (uint64_t)o->requests;
	if (o->requests == 0)
		l->wanted = file != NULL ? l->work.count : 100000;
	return rc == 0 && l->work.count > 0 ? 0 : -1;
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void run(struct load *l)
{
	struct timeval patience = {l->options.patience_s, 0};

	struct event_config *precise = event_config_new();

	raise_file_limit();
	event_config_set_flag(precise, EVENT_BASE_FLAG_PRECISE_TIMER);
	l->base = event_base_new_with_config(precise);
	event_config_free(precise);
	l->conns = xcalloc((size_t)l->options.connections, sizeof(l->conns[0]));
	l->watch = event_new(l->base, -1, EV_PERSIST, on_watch, l);
	l->pace = evtimer_new(l->base, on_pace, l);
	l->enough = evsignal_new(l->base, SIGTERM, on_enough, l);
	event_add(l->enough, NULL);
	event_add(l->watch, &patience);
	l->started_us = clock_mono_us();
	connect_more(l);
	if (l->trouble[0] == '\0')
		event_base_dispatch(l->base);
	print_result(l);
	for (int64_t i = 0; i < l->begun; i++) {
		if (l->conns[i].bev != NULL)
			bufferevent_free(l->conns[i].bev);
		free(l->conns[i].sent_us);
	}
	free(l->conns);
	event_free(l->watch);
	event_free(l->pace);
	event_free(l->enough);
	event_base_free(l->base);
}

int main(int argc, char **argv)
{
	static struct load l;

	if (read_options(&l, argc, argv) != 0) {
		fputs(usage, stderr);
		return 2;
	}
	if (read_work(&l, argc - optind, argv + optind) != 0)
		return 2;
	run(&l);
	work_release(&l.work);
	if (l.trouble[0] != '\0')
		fprintf(stderr, "load: %s\n", l.trouble);
	return l.done == l.wanted ? 0 : 1;
}
