/* SPDX-License-Identifier: MIT */
#include "cli/child.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

#define CHUNK      65536
#define PIPE_PAGES 16 /* of PIPE_BUF bytes: what a pipe holds that nobody has read */

enum child_stage { CHILD_RUNNING, CHILD_TERMINATED, CHILD_KILLED, CHILD_OVER };

/* Our end of one of its pipes. */
struct end {
	int fd; /* -1 = closed */
	struct event *event;
};

struct child {
	struct child_limits limits;
	enum child_stage stage;
	pid_t pid;
	int status;
	bool timed_out;
	struct event *timer; /* RUNNING: its time is up; TERMINATED: so is the grace */
	struct end in, out, err;
	struct buf input;
	size_t fed; /* of it */
	struct buf output, error;
	uint64_t output_total;
};

/* ---- pipes ---- */

static void close_end(struct end *end)
{
	if (end->event != NULL)
		event_free(end->event);
	if (end->fd >= 0)
		close(end->fd);
	*end = (struct end){.fd = -1};
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
	struct child *c = arg;

	(void)what;
	while (c->fed < c->input.len) {
		ssize_t n = write(fd, c->input.data + c->fed, c->input.len - c->fed);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			break; /* it does not want the rest, which is its own business */
		c->fed += (size_t)n;
	}
	close_end(&c->in);
}

static void keep_output(struct child *c, struct bytes chunk)
{
	size_t room = c->limits.output - c->output.len;

	c->output_total += chunk.n;
	buf_add(&c->output, chunk.p, chunk.n < room ? chunk.n : room);
}

/* What it complains of shows where our own complaints do, unless nobody takes them: then it is only kept. A
 * pipe that poll() calls ready takes PIPE_BUF bytes without blocking. */
static void keep_error(struct child *c, struct bytes chunk)
{
	struct pollfd ours = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (poll(&ours, 1, 0) == 1)
		(void)!write(STDERR_FILENO, chunk.p, chunk.n);
	buf_add_bytes(&c->error, chunk);
	if (c->error.len > c->limits.error)
		buf_consume(&c->error, c->error.len - c->limits.error);
}

/* One read. False when there is nothing now; at the end of it all our end is closed too. */
static bool take(struct child *c, struct end *end, size_t most, void (*keep)(struct child *, struct bytes))
{
	static char chunk[CHUNK];
	ssize_t n;

	if (end->fd < 0)
		return false;
	do {
		n = read(end->fd, chunk, most);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		keep(c, (struct bytes){chunk, (size_t)n});
	else if (n == 0 || errno != EAGAIN)
		close_end(end);
	return n > 0;
}

static void on_output(evutil_socket_t fd, short what, void *arg)
{
	struct child *c = arg;

	(void)fd;
	(void)what;
	take(c, &c->out, CHUNK, keep_output);
}

static void on_error(evutil_socket_t fd, short what, void *arg)
{
	struct child *c = arg;

	(void)fd;
	(void)what;
	take(c, &c->err, PIPE_BUF, keep_error);
}

/* ---- the process ---- */

enum { STDIN, STDOUT, STDERR, EXEC, PIPES };

/* In the new process; tells through `fault` why the command could not be started. */
static _Noreturn void become(char *const *argv, int (*pipes)[2], pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && dup2(pipes[STDIN][0], STDIN_FILENO) >= 0 &&
		dup2(pipes[STDOUT][1], STDOUT_FILENO) >= 0 && dup2(pipes[STDERR][1], STDERR_FILENO) >= 0)
		execvp(argv[0], argv);
	int fault = errno;
	_exit(write(pipes[EXEC][1], &fault, sizeof(fault)) == sizeof(fault) ? 127 : 126);
}

static void close_pipes(int (*pipes)[2])
{
	for (int i = 0; i < PIPES; i++) {
		for (int side = 0; side < 2; side++) {
			if (pipes[i][side] >= 0)
				close(pipes[i][side]);
		}
	}
}

/* The number of the process; -1 with errno, and no process, when it does not run the command. The pipe EXEC
 * is closed by the exec, so the read below takes no longer than that. */
static pid_t spawn(char *const *argv, int (*pipes)[2])
{
	pid_t parent = getpid(), pid = fork();
	int fault;

	if (pid == 0)
		become(argv, pipes, parent);
	if (pid < 0)
		return -1;
	close(pipes[EXEC][1]);
	pipes[EXEC][1] = -1;
	if (read(pipes[EXEC][0], &fault, sizeof(fault)) != sizeof(fault))
		return pid;
	waitpid(pid, NULL, 0);
	errno = fault;
	return -1;
}

static void hand_over(
	int *fd, struct end *end, struct event_base *base, short what, event_callback_fn fn, struct child *c)
{
	fcntl(*fd, F_SETFL, O_NONBLOCK);
	*end = (struct end){*fd, event_new(base, *fd, (short)(what | EV_PERSIST), fn, c)};
	event_add(end->event, NULL);
	*fd = -1;
}

static void signal_group(const struct child *c, int number)
{
	kill(-c->pid, number);
}

static void arm(struct child *c, int64_t ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	event_add(c->timer, &tv);
}

void child_stop(struct child *c)
{
	if (c->stage != CHILD_RUNNING)
		return;
	c->stage = CHILD_TERMINATED;
	signal_group(c, SIGTERM);
	arm(c, c->limits.grace_ms);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct child *c = arg;

	(void)fd;
	(void)what;
	if (c->stage == CHILD_RUNNING) {
		c->timed_out = true;
		child_stop(c);
	} else if (c->stage == CHILD_TERMINATED) {
		c->stage = CHILD_KILLED;
		signal_group(c, SIGKILL);
	}
}

struct child *child_start(
	struct event_base *base, char *const *argv, struct bytes input, const struct child_limits *limits)
{
	int pipes[PIPES][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
	pid_t pid = -1;
	int opened = 0;

	while (opened < PIPES && pipe2(pipes[opened], O_CLOEXEC) == 0)
		opened++;
	if (opened == PIPES)
		pid = spawn(argv, pipes);
	if (pid < 0) {
		int fault = errno;
		close_pipes(pipes);
		errno = fault;
		return NULL;
	}
	struct child *c = xcalloc(1, sizeof(*c));
	*c = (struct child){.limits = *limits, .pid = pid};
	buf_add_bytes(&c->input, input);
	c->timer = event_new(base, -1, 0, on_timer, c);
	if (limits->max_time_ms > 0)
		arm(c, limits->max_time_ms);
	hand_over(&pipes[STDIN][1], &c->in, base, EV_WRITE, on_input, c);
	hand_over(&pipes[STDOUT][0], &c->out, base, EV_READ, on_output, c);
	hand_over(&pipes[STDERR][0], &c->err, base, EV_READ, on_error, c);
	close_pipes(pipes);
	return c;
}

/* What it has started goes with it when it was stopped. As long as it is not reaped its group is ours. */
static void end_group(struct child *c)
{
	siginfo_t info = {0};

	if ((c->stage == CHILD_TERMINATED || c->stage == CHILD_KILLED) &&
		waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == c->pid)
		signal_group(c, SIGKILL);
}

bool child_reap(struct child *c)
{
	end_group(c);
	if (c->stage == CHILD_OVER || waitpid(c->pid, &c->status, WNOHANG) != c->pid)
		return c->stage == CHILD_OVER;
	c->stage = CHILD_OVER;
	event_del(c->timer);
	for (int i = 0; i < PIPE_PAGES && take(c, &c->out, CHUNK, keep_output); i++)
		;
	for (int i = 0; i < PIPE_PAGES && take(c, &c->err, PIPE_BUF, keep_error); i++)
		;
	close_end(&c->in);
	close_end(&c->out);
	close_end(&c->err);
	return true;
}

void child_free(struct child *c)
{
	if (c == NULL)
		return;
	if (c->stage != CHILD_OVER) {
		signal_group(c, SIGKILL);
		waitpid(c->pid, &c->status, 0);
	}
	close_end(&c->in);
	close_end(&c->out);
	close_end(&c->err);
	event_free(c->timer);
	buf_release(&c->input);
	buf_release(&c->output);
	buf_release(&c->error);
	free(c);
}

int child_status(const struct child *c)
{
	return c->status;
}

bool child_timed_out(const struct child *c)
{
	return c->timed_out;
}

struct bytes child_output(const struct child *c)
{
	return buf_bytes(&c->output);
}

uint64_t child_output_total(const struct child *c)
{
	return c->output_total;
}

struct bytes child_error(const struct child *c)
{
	return buf_bytes(&c->error);
}
