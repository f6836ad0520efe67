/* SPDX-License-Identifier: MIT */
/* Tasks through musterd, or jobs through beanstalkd, by the same client: connections that each send a batch
 * of commands in one write, read all answers, and go on with what they got. Both servers are driven batched
 * as far as each allows: musterd's CLAIM takes a COUNT, beanstalkd is asked for as many jobs one behind the
 * other.
 *
 * Phases: submit (put), work (claim and done; reserve and delete), cycle (all three at once). The result is
 * one JSON object on stdout; the exit code is 0 when all were done. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <getopt.h>
#include <jansson.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bench/histogram.h"
#include "bench/reply.h"
#include "bench/work.h"

#define HANDLE_MAX 48 /* bytes of what ends a task: id and token */

enum phase { PHASE_SUBMIT, PHASE_WORK, PHASE_CYCLE };
static const char *const phase_names[] = {"submit", "work", "cycle"};

/* What one answer was. */
enum answer { ANSWER_PARTIAL, ANSWER_SUBMITTED, ANSWER_CLAIMED, ANSWER_NONE, ANSWER_ENDED, ANSWER_WRONG };

struct conn;

struct protocol {
	const char *name;
	bool counts; /* one claim for a whole batch */
	void (*submit)(struct buf *out, struct bytes queue, struct bytes payload);
	void (*claim)(struct buf *out, struct bytes queue, int count);
	void (*end)(struct buf *out, struct bytes handle);
	/* The first answer in `in`: how long it is, and what; handles of what was claimed go to the
	 * connection.
	 */
	enum answer (*read)(struct conn *c, struct bytes in, size_t *ret_length);
	void (*hello)(struct buf *out, struct bytes queue);
	int hello_answers;
};

struct load {
	const struct protocol *protocol;
	enum phase phase;
	struct event_base *base;
	struct sockaddr_in address;
	int64_t connections, batch, wanted;
	struct bytes queue, payload;
	struct conn *conns;
	int64_t open, submitted, ended; /* submitted: sent; ended: answered */
	int64_t answered;               /* submits */
	int64_t claims, empty;
	int64_t started_us, ended_us;
	struct histogram claim_latency;
	char trouble[128];
};

struct conn {
	struct load *load;
	struct bufferevent *bev;
	struct buf out;
	int64_t pending; /* answers that are still to come */
	int64_t sent_us;
	int handles;
	char (*handle)[HANDLE_MAX];
	int *handle_size;
};

static void give_up(struct load *l, const char *why, struct bytes what)
{
	if (l->trouble[0] == '\0')
		snprintf(l->trouble, sizeof(l->trouble), "%s %.*s", why, (int)(what.n < 80 ? what.n : 80),
			what.p);
	event_base_loopbreak(l->base);
}

static void keep_handle(struct conn *c, struct bytes a, struct bytes b)
{
	int n = snprintf(c->handle[c->handles], HANDLE_MAX, "%.*s%s%.*s", (int)a.n, a.p, b.n > 0 ? " " : "",
		(int)b.n, b.p);

	c->handle_size[c->handles++] = n;
}

/* ---- musterd ---- */

static void muster_submit(struct buf *out, struct bytes queue, struct bytes payload)
{
	const struct bytes words[] = {BYTES_LIT("TASK.SUBMIT"), queue, payload};

	work_encode(out, words, 3);
}

static void muster_claim(struct buf *out, struct bytes queue, int count)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", count);
	const struct bytes words[] = {
		BYTES_LIT("TASK.CLAIM"), queue, BYTES_LIT("bench"), BYTES_LIT("COUNT"), {text, (size_t)n}};

	work_encode(out, words, 5);
}

static void muster_end(struct buf *out, struct bytes handle)
{
	struct bytes words[3] = {BYTES_LIT("TASK.DONE")};

	bytes_split(handle, ' ', words + 1, 2);
	work_encode(out, words, 3);
}

/* The tasks of a CLAIM: an array of maps. */
static enum answer read_claimed(struct conn *c, struct bytes in, size_t whole)
{
	struct bytes rest = {in.p, whole}, id, token;
	int64_t count;

	if (!bytes_to_i64((struct bytes){in.p + 1, strcspn(in.p + 1, "\r")}, &count))
		return ANSWER_WRONG;
	bytes_cut(&rest, '\n');
	for (int64_t i = 0; i < count; i++) {
		struct bytes item = {rest.p, reply_length(rest)};
		if (!reply_field(item, BYTES_LIT("id"), &id) ||
			!reply_field(item, BYTES_LIT("token"), &token))
			return ANSWER_WRONG;
		keep_handle(c, id, token);
		rest = (struct bytes){rest.p + item.n, rest.n - item.n};
	}
	return count > 0 ? ANSWER_CLAIMED : ANSWER_NONE;
}

static enum answer muster_read(struct conn *c, struct bytes in, size_t *ret_length)
{
	struct bytes field;
	size_t n = *ret_length = reply_length(in);

	if (n == 0 || n == REPLY_MALFORMED)
		return n == 0 ? ANSWER_PARTIAL : ANSWER_WRONG;
	if (in.p[0] == '+')
		return ANSWER_ENDED;
	if (in.p[0] != '*')
		return ANSWER_WRONG;
	if (reply_field((struct bytes){in.p, n}, BYTES_LIT("status"), &field))
		return ANSWER_SUBMITTED;
	return read_claimed(c, in, n);
}

/* ---- beanstalkd ---- */

static void beanstalkd_hello(struct buf *out, struct bytes queue)
{
	buf_addf(out, "use %.*s\r\nwatch %.*s\r\n", (int)queue.n, queue.p, (int)queue.n, queue.p);
}

static void beanstalkd_submit(struct buf *out, struct bytes queue, struct bytes payload)
{
	(void)queue;
	buf_addf(out, "put 5 0 60 %zu\r\n", payload.n);
	buf_add_bytes(out, payload);
	buf_add(out, "\r\n", 2);
}

static void beanstalkd_claim(struct buf *out, struct bytes queue, int count)
{
	(void)queue;
	for (int i = 0; i < count; i++)
		buf_add_str(out, "reserve-with-timeout 0\r\n");
}

static void beanstalkd_end(struct buf *out, struct bytes handle)
{
	buf_addf(out, "delete %.*s\r\n", (int)handle.n, handle.p);
}

static bool begins(struct bytes line, const char *word)
{
	size_t n = strlen(word);

	return line.n >= n && memcmp(line.p, word, n) == 0;
}

static enum answer beanstalkd_read(struct conn *c, struct bytes in, size_t *ret_length)
{
	const char *end = in.n > 0 ? memchr(in.p, '\n', in.n) : NULL;
	struct bytes line, f[3];
	int64_t size;

	if (end == NULL)
		return ANSWER_PARTIAL;
	line = (struct bytes){in.p, (size_t)(end - in.p) - 1};
	*ret_length = line.n + 2;
	if (begins(line, "INSERTED "))
		return ANSWER_SUBMITTED;
	if (begins(line, "DELETED") || begins(line, "USING ") || begins(line, "WATCHING "))
		return ANSWER_ENDED;
	if (begins(line, "TIMED_OUT"))
		return ANSWER_NONE;
	if (!begins(line, "RESERVED ") || bytes_split(line, ' ', f, 3) != 3 || !bytes_to_i64(f[2], &size))
		return ANSWER_WRONG;
	*ret_length += (size_t)size + 2;
	if (*ret_length > in.n)
		return ANSWER_PARTIAL;
	keep_handle(c, f[1], (struct bytes){"", 0});
	return ANSWER_CLAIMED;
}

static const struct protocol protocols[] = {
	{"muster", true, muster_submit, muster_claim, muster_end, muster_read, NULL, 0},
	{"beanstalkd", false, beanstalkd_submit, beanstalkd_claim, beanstalkd_end, beanstalkd_read,
		beanstalkd_hello, 2},
};

/* ---- rounds ---- */

static void submit_some(struct conn *c)
{
	struct load *l = c->load;

	for (int64_t i = 0; i < l->batch && l->submitted < l->wanted; i++, l->submitted++, c->pending++)
		l->protocol->submit(&c->out, l->queue, l->payload);
}

static void end_some(struct conn *c)
{
	for (int i = 0; i < c->handles; i++, c->pending++)
		c->load->protocol->end(&c->out, (struct bytes){c->handle[i], (size_t)c->handle_size[i]});
	c->handles = 0;
}

static void claim_some(struct conn *c)
{
	struct load *l = c->load;

	l->protocol->claim(&c->out, l->queue, (int)l->batch);
	c->pending += l->protocol->counts ? 1 : l->batch;
	l->claims++;
}

/* The next batch, in one write. */
static void next_round(struct conn *c)
{
	struct load *l = c->load;

	if (l->phase == PHASE_SUBMIT ? l->answered >= l->wanted : l->ended >= l->wanted) {
		l->ended_us = clock_mono_us();
		event_base_loopbreak(l->base);
		return;
	}
	buf_clear(&c->out);
	end_some(c);
	if (l->phase != PHASE_WORK)
		submit_some(c);
	if (l->phase != PHASE_SUBMIT)
		claim_some(c);
	c->sent_us = clock_mono_us();
	if (c->out.len > 0)
		evbuffer_add(bufferevent_get_output(c->bev), c->out.data, c->out.len);
}

static void count_answer(struct conn *c, enum answer what)
{
	struct load *l = c->load;

	c->pending--;
	l->answered += what == ANSWER_SUBMITTED;
	l->ended += what == ANSWER_ENDED;
	l->empty += what == ANSWER_NONE;
	if (what == ANSWER_CLAIMED || what == ANSWER_NONE)
		histogram_add(&l->claim_latency, clock_mono_us() - c->sent_us);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t have = evbuffer_get_length(in), at = 0, n;
	const char *data = (const char *)evbuffer_pullup(in, -1);

	while (c->pending > 0 && at < have) {
		struct bytes rest = {data + at, have - at};
		enum answer what = c->load->protocol->read(c, rest, &n);
		if (what == ANSWER_WRONG)
			give_up(c->load, "answered", rest);
		if (what == ANSWER_WRONG || what == ANSWER_PARTIAL)
			break;
		at += n;
		count_answer(c, what);
	}
	evbuffer_drain(in, at);
	if (c->pending == 0)
		next_round(c);
}

/* ---- connections ---- */

static void all_open(struct load *l)
{
	l->started_us = clock_mono_us();
	l->ended = 0;
	for (int64_t i = 0; i < l->connections; i++) {
		struct conn *c = &l->conns[i];
		if (l->protocol->hello != NULL) {
			l->protocol->hello(&c->out, l->queue);
			evbuffer_add(bufferevent_get_output(c->bev), c->out.data, c->out.len);
			c->pending = l->protocol->hello_answers;
			l->ended -= c->pending;
		} else {
			next_round(c);
		}
	}
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct conn *c = arg;
	int on = 1;

	if ((what & BEV_EVENT_CONNECTED) == 0) {
		give_up(c->load, "a connection ended", (struct bytes){"", 0});
		return;
	}
	(void)setsockopt(bufferevent_getfd(bev), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (++c->load->open == c->load->connections)
		all_open(c->load);
}

static void connect_all(struct load *l)
{
	l->conns = xcalloc((size_t)l->connections, sizeof(l->conns[0]));
	for (int64_t i = 0; i < l->connections; i++) {
		struct conn *c = &l->conns[i];
		c->load = l;
		c->handle = xcalloc((size_t)l->batch, sizeof(c->handle[0]));
		c->handle_size = xcalloc((size_t)l->batch, sizeof(c->handle_size[0]));
		c->bev = bufferevent_socket_new(l->base, -1, BEV_OPT_CLOSE_ON_FREE);
		bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
		bufferevent_enable(c->bev, EV_READ | EV_WRITE);
		if (bufferevent_socket_connect(c->bev, (struct sockaddr *)&l->address, sizeof(l->address)) !=
			0)
			give_up(l, strerror(errno), (struct bytes){"", 0});
	}
}

static void release(struct load *l)
{
	for (int64_t i = 0; i < l->connections; i++) {
		struct conn *c = &l->conns[i];
		bufferevent_free(c->bev);
		buf_release(&c->out);
		free(c->handle);
		free(c->handle_size);
	}
	free(l->conns);
	event_base_free(l->base);
}

static int report(const struct load *l)
{
	int64_t done = l->phase == PHASE_SUBMIT ? l->answered : l->ended;
	double seconds = (double)(l->ended_us - l->started_us) / 1e6;
	json_t *all = json_pack("{s:s, s:s, s:I, s:f, s:I, s:I, s:I, s:I, s:s}", "server", l->protocol->name,
		"phase", phase_names[l->phase], "done", (json_int_t)done, "seconds", seconds, "claims",
		(json_int_t)l->claims, "empty", (json_int_t)l->empty, "claim_p50_us",
		(json_int_t)histogram_percentile(&l->claim_latency, 50), "claim_p99_us",
		(json_int_t)histogram_percentile(&l->claim_latency, 99), "trouble", l->trouble);
	int rc = json_dumpf(all, stdout, JSON_REAL_PRECISION(9)) == 0 ? 0 : 1;

	json_decref(all);
	putchar('\n');
	return rc != 0 || l->trouble[0] != '\0';
}

static int usage(void)
{
	fputs("usage: queue --protocol muster|beanstalkd --phase submit|work|cycle --port N [--tasks N]\n"
	      "             [--connections N] [--batch N] [--bytes N] [--queue NAME]\n",
		stderr);
	return 2;
}

static bool read_options(struct load *l, int argc, char **argv)
{
	static const struct option options[] = {{"protocol", required_argument, NULL, 'P'},
		{"phase", required_argument, NULL, 'f'}, {"port", required_argument, NULL, 'p'},
		{"tasks", required_argument, NULL, 'n'}, {"connections", required_argument, NULL, 'c'},
		{"batch", required_argument, NULL, 'b'}, {"bytes", required_argument, NULL, 's'},
		{"queue", required_argument, NULL, 'q'}, {0}};
	int64_t port = 0, size = 100;
	int c, phase = -1;

	*l = (struct load){.connections = 50, .batch = 20, .wanted = 100000, .queue = BYTES_LIT("bench")};
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		struct bytes value = bytes_of(optarg != NULL ? optarg : "");
		int64_t *number = c == 'p'   ? &port
				  : c == 'n' ? &l->wanted
				  : c == 'c' ? &l->connections
				  : c == 'b' ? &l->batch
				  : c == 's' ? &size
					     : NULL;
		if (c == '?' || (number != NULL && !bytes_to_i64(value, number)))
			return false;
		if (c == 'q')
			l->queue = value;
		for (size_t i = 0; c == 'P' && i < ARRAY_LEN(protocols); i++) {
			if (bytes_eq(value, bytes_of(protocols[i].name)))
				l->protocol = &protocols[i];
		}
		for (int i = 0; c == 'f' && i < (int)ARRAY_LEN(phase_names); i++)
			phase = bytes_eq(value, bytes_of(phase_names[i])) ? i : phase;
	}
	if (l->protocol == NULL || phase < 0 || port < 1 || port > 65535 || size < 1 || l->batch < 1 ||
		l->connections < 1)
		return false;
	l->phase = (enum phase)phase;
	char *payload = xmalloc((size_t)size);
	memset(payload, 'x', (size_t)size);
	l->payload = (struct bytes){payload, (size_t)size};
	l->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	l->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return true;
}

int main(int argc, char **argv)
{
	struct load l;

	if (!read_options(&l, argc, argv))
		return usage();
	l.base = event_base_new();
	connect_all(&l);
	event_base_dispatch(l.base);
	if (l.ended_us == 0)
		l.ended_us = clock_mono_us();
	int rc = report(&l);
	release(&l);
	free((void *)(uintptr_t)l.payload.p);
	return rc;
}
