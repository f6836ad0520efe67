/* SPDX-License-Identifier: MIT */
/* `muster work`: a worker. It claims tasks of a queue and runs a command for each, with the payload on
 * standard input; see work_job.c for one of them. */
#include "cli/work.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/turn.h"
#include "cli/cli.h"

#define JOBS_MAX      256
#define COUNT_MAX     100   /* of a CLAIM */
#define WAIT_MS       20000 /* of a CLAIM; a server may allow less, but no less than a second */
#define WAIT_MIN_MS   1000
#define BUSY_PAUSE_MS 500
#define GRACE_MS      10000
#define OUTPUT_MAX    65536 /* what a server takes as RESULT unless it is configured otherwise */
#define ERROR_MAX     1000  /* of 1,024 that a server keeps; the rest says how the command ended */

void work_say(int fd, const char *format, ...)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	char line[4096];
	va_list ap;

	va_start(ap, format);
	int n = vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	size_t len = n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1;
	if (poll(&ready, 1, 0) == 1)
		(void)!write(fd, line, len);
}

/* ---- the end ---- */

static void leave(struct work *w)
{
	if (w->leaving)
		return;
	w->leaving = true;
	wire_hang_up(w->claims);
	work_go_on(w);
}

void work_give_up(struct work *w, const char *error)
{
	if (w->result == CLI_OK)
		work_say(STDERR_FILENO, "muster: %s\n", error);
	w->result = CLI_FAILED;
	leave(w);
}

/* Commands end by SIGTERM or the grace's SIGKILL; the server then has the time of one answer to be told. */
static void hurry(struct work *w)
{
	int64_t ms = w->plan.limits.grace_ms + w->plan.options->timeout_ms;
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	if (w->hurried)
		return;
	w->hurried = true;
	event_add(w->last, &tv);
	for (struct job *job = TAILQ_FIRST(&w->jobs), *next; job != NULL; job = next) {
		next = job_next(job);
		job_hurry(job);
	}
}

static void on_last(evutil_socket_t fd, short what, void *arg)
{
	struct work *w = arg;

	(void)fd;
	(void)what;
	work_say(STDERR_FILENO, "muster: %" PRId64 " tasks could not be given back; their leases run out\n",
		w->running);
	w->result = CLI_UNREACHABLE;
	event_base_loopbreak(w->base);
}

static void on_stop(evutil_socket_t number, short what, void *arg)
{
	struct work *w = arg;

	(void)number;
	(void)what;
	if (w->leaving) {
		hurry(w);
		return;
	}
	if (w->running > 0)
		work_say(STDERR_FILENO,
			"Ending with the %" PRId64 " commands that run; once more stops them.\n", w->running);
	leave(w);
}

static void on_child(evutil_socket_t number, short what, void *arg)
{
	struct work *w = arg;

	(void)number;
	(void)what;
	for (struct job *job = TAILQ_FIRST(&w->jobs), *next; job != NULL; job = next) {
		next = job_next(job);
		job_reap(job);
	}
}

/* ---- claims ---- */

int64_t work_room(const struct work *w)
{
	int64_t room = w->plan.jobs - w->running;

	if (w->leaving || event_pending(w->pause, EV_TIMEOUT, NULL) != 0)
		return 0;
	return w->left >= 0 && w->left < room ? w->left : room;
}

/* NEXT takes no LEASE, and does not know of a limit that a CLAIM under way may use up. */
bool work_wants_next(const struct work *w)
{
	return !w->leaving && w->plan.lease == NULL && w->plan.limit < 0 &&
	       event_pending(w->pause, EV_TIMEOUT, NULL) == 0;
}

void work_pause(struct work *w, int64_t ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	event_add(w->pause, &tv);
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	work_go_on(arg);
}

void work_take(struct work *w, const redisReply *tasks)
{
	for (size_t i = 0; i < tasks->elements; i++)
		job_start(w, tasks->element[i]);
}

static void on_claimed(const redisReply *reply, void *arg)
{
	struct work *w = arg;

	w->claiming = false;
	if (reply != NULL && reply->type == REDIS_REPLY_ARRAY) {
		work_take(w, reply);
		if (w->plan.once && reply->elements == 0)
			leave(w);
	} else if (reply != NULL && conn_is_temporary(reply->str)) {
		work_pause(w, BUSY_PAUSE_MS);
	} else if (reply != NULL && strncmp(reply->str, "ERR ", 4) == 0 && w->wait_ms / 2 >= WAIT_MIN_MS) {
		w->wait_ms /= 2;
	} else if (reply != NULL) {
		work_give_up(w, reply->str);
	}
	work_go_on(w);
}

static void claim(struct work *w)
{
	char count[24], wait[24];
	int64_t room = work_room(w);
	struct request r;

	snprintf(count, sizeof(count), "%" PRId64, room < COUNT_MAX ? room : COUNT_MAX);
	snprintf(wait, sizeof(wait), "%" PRId64, w->wait_ms);
	request_init(&r, "TASK.CLAIM");
	request_add(&r, w->plan.queue);
	request_add(&r, w->plan.worker);
	request_option(&r, "COUNT", count);
	request_option(&r, "WAIT", w->wait_ms > 0 ? wait : NULL);
	request_option(&r, "LEASE", w->plan.lease);
	w->claiming = wire_send(w->claims, &r, w->plan.options->timeout_ms + w->wait_ms, on_claimed, w);
}

void work_go_on(struct work *w)
{
	if (w->left == 0)
		leave(w);
	if (w->leaving && w->running == 0 && !w->claiming)
		event_base_loopbreak(w->base);
	else if (!w->claiming && work_room(w) > 0)
		claim(w);
}

/* ---- wires ---- */

static void on_up(struct work *w)
{
	if (w->away)
		work_say(STDERR_FILENO, "muster: %s:%d is there again\n", w->plan.options->host,
			w->plan.options->port);
	w->away = false;
}

static void on_claims_up(void *arg)
{
	on_up(arg);
	work_go_on(arg);
}

static void on_talk_up(void *arg)
{
	struct work *w = arg;

	on_up(w);
	for (struct job *job = TAILQ_FIRST(&w->jobs), *next; job != NULL; job = next) {
		next = job_next(job);
		job_wire_up(job);
	}
}

static void on_failed(void *arg, const char *error, bool final)
{
	struct work *w = arg;

	if (final) { /* no beat, no end can be told any more */
		work_give_up(w, error);
		hurry(w);
		return;
	}
	if (!w->away)
		work_say(STDERR_FILENO, "muster: can't reach %s:%d: %s; trying again\n",
			w->plan.options->host, w->plan.options->port, error);
	w->away = true;
	if (w->plan.once && w->running == 0) {
		w->result = CLI_UNREACHABLE;
		leave(w);
	}
}

/* ---- the program ---- */

/* A signal's event; they are few and end with the program. */
static struct event *watch_signal(struct work *w, int number, event_callback_fn fn)
{
	struct event *event = evsignal_new(w->base, number, fn, w);

	event_add(event, NULL);
	return event;
}

static void run(struct work *w)
{
	static const struct wire_events claims_events = {on_claims_up, on_failed};
	static const struct wire_events talk_events = {on_talk_up, on_failed};
	struct event *signals[] = {watch_signal(w, SIGTERM, on_stop), watch_signal(w, SIGINT, on_stop),
		watch_signal(w, SIGCHLD, on_child)};

	TAILQ_INIT(&w->jobs);
	w->pause = event_new(w->base, -1, 0, on_pause_over, w);
	w->last = event_new(w->base, -1, 0, on_last, w);
	w->claims = wire_new(w->base, w->plan.options, &claims_events, w);
	w->talk = wire_new(w->base, w->plan.options, &talk_events, w);
	event_base_dispatch(w->base);
	w->leaving = true;
	wire_free(w->claims);
	wire_free(w->talk);
	while (!TAILQ_EMPTY(&w->jobs))
		job_free(TAILQ_FIRST(&w->jobs));
	event_free(w->pause);
	event_free(w->last);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		event_free(signals[i]);
}

/* Our pipes must not get the numbers of standard streams that somebody has closed. */
static void fill_standard_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

static int work(const struct work_plan *plan)
{
	struct work w = {.plan = *plan,
		.left = plan->limit,
		.output_max = plan->limits.output,
		.wait_ms = plan->once ? 0 : WAIT_MS};

	fill_standard_streams();
	w.base = event_base_new();
	if (w.base == NULL) {
		cli_error("can't start an event loop");
		return CLI_FAILED;
	}
	log_set_level(LOG_LEVEL_ERROR); /* what matters here is told by work_say() */
	turn_init(w.base);
	run(&w);
	turn_release();
	event_base_free(w.base);
	return w.result;
}

/* ---- the command line ---- */

/* Is there a program that execvp() would find? Otherwise each task would tell us in turn. */
static bool is_program(const char *name)
{
	const char *path = getenv("PATH");
	struct bytes rest = bytes_of(path != NULL ? path : "/usr/bin:/bin");
	struct buf candidate = BUF_INIT;
	bool found = false;

	if (strchr(name, '/') != NULL)
		return access(name, X_OK) == 0;
	while (!found && rest.n > 0) {
		struct bytes folder = bytes_cut(&rest, ':');
		buf_clear(&candidate);
		buf_add_bytes(&candidate, folder.n > 0 ? folder : BYTES_LIT("."));
		buf_addf(&candidate, "/%s", name);
		found = access(candidate.data, X_OK) == 0;
	}
	buf_release(&candidate);
	return found;
}

static bool read_number(const char *text, int64_t min, int64_t max, int64_t *ret)
{
	int64_t n;

	if (!bytes_to_i64(bytes_of(text), &n) || n < min || n > max)
		return false;
	*ret = n;
	return true;
}

/* One option; false when its value is none. */
static bool take_option(struct work_plan *p, int letter)
{
	int64_t n;

	switch (letter) {
	case 'W':
		snprintf(p->worker, sizeof(p->worker), "%s", optarg);
		return person_id_valid(bytes_of(optarg));
	case 'j':
		return read_number(optarg, 1, JOBS_MAX, &p->jobs);
	case 'l':
		p->lease = optarg;
		return duration_parse(bytes_of(optarg), &n) && n > 0;
	case 'm':
		return duration_parse(bytes_of(optarg), &p->limits.max_time_ms);
	case 'g':
		return duration_parse(bytes_of(optarg), &p->limits.grace_ms);
	case 'r':
		return read_number(optarg, 1, 255, &p->release_on);
	case 'n':
		return read_number(optarg, 1, INT64_MAX, &p->limit);
	case 'b':
		if (!read_number(optarg, 0, 16 * 1024 * 1024, &n))
			return false;
		p->limits.output = (size_t)n;
		return true;
	default:
		p->once = true;
		return true;
	}
}

int cmd_work(int argc, char **argv, const struct cli_options *options)
{
	static const struct option own[] = {{"worker", required_argument, NULL, 'W'},
		{"jobs", required_argument, NULL, 'j'}, {"lease", required_argument, NULL, 'l'},
		{"max-time", required_argument, NULL, 'm'}, {"grace", required_argument, NULL, 'g'},
		{"release-on", required_argument, NULL, 'r'}, {"limit", required_argument, NULL, 'n'},
		{"max-result", required_argument, NULL, 'b'}, {"once", no_argument, NULL, 'o'}, {0}};
	struct work_plan plan = {.options = options,
		.jobs = 1,
		.release_on = -1,
		.limit = -1,
		.limits = {.output = OUTPUT_MAX, .error = ERROR_MAX, .grace_ms = GRACE_MS}};
	int index = 0;

	task_worker_name(plan.worker, getpid());
	for (int c; (c = getopt_long(argc, argv, "", own, &index)) != -1;) {
		if (c == '?')
			return cli_bad_option("work");
		if (!take_option(&plan, c))
			return cli_usage("work", "--%s does not take '%s'", own[index].name, optarg);
	}
	if (argc - optind < 2 || !id_valid(bytes_of(argv[optind])))
		return cli_usage("work", "expected a queue and, behind --, a command");
	plan.queue = argv[optind];
	plan.command = argv + optind + 1;
	if (!is_program(plan.command[0])) {
		cli_error("%s: no such program", plan.command[0]);
		return CLI_USAGE;
	}
	return work(&plan);
}
