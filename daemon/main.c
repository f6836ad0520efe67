/* SPDX-License-Identifier: MIT */
/* musterd: arguments, the loop, and what has to be true before and after. */
#include <event2/event.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/turn.h"
#include "daemon/commands.h"
#include "daemon/server.h"
#include "daemon/users.h"

static const char usage[] =
	"Usage: musterd [--config FILE] [--held-clock]\n"
	"       musterd --check-config [FILE]\n"
	"       musterd --help-config | --help-commands | --hash-token | --version | --help\n"
	"\n"
	"  -c, --config FILE       read the configuration from FILE; without it the defaults hold\n"
	"      --check-config      say what is wrong with the configuration and end\n"
	"      --help-commands     print the table of commands, in Markdown\n"
	"      --help-config       print a commented sample of the configuration\n"
	"      --hash-token        read a token from standard input, print its line for the users file\n"
	"      --held-clock        time stands still and moves by CLOCK.SET: for tests and demonstrations\n"
	"  -V, --version           print the version\n"
	"  -h, --help              print this\n";

enum mode {
	MODE_RUN,
	MODE_CHECK,
	MODE_SAMPLE,
	MODE_COMMANDS,
	MODE_HASH,
	MODE_VERSION,
	MODE_HELP,
	MODE_WRONG
};

struct options {
	enum mode mode;
	const char *config_path;
	bool held_clock;
};

static struct options parse_options(int argc, char **argv)
{
	static const struct option words[] = {
		{"config", required_argument, NULL, 'c'},
		{"check-config", no_argument, NULL, MODE_CHECK},
		{"help-config", no_argument, NULL, MODE_SAMPLE},
		{"help-commands", no_argument, NULL, MODE_COMMANDS},
		{"hash-token", no_argument, NULL, MODE_HASH},
		{"held-clock", no_argument, NULL, 'H'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct options o = {.mode = MODE_RUN};
	int c;

	while ((c = getopt_long(argc, argv, "c:Vh", words, NULL)) != -1) {
		if (c == 'c')
			o.config_path = optarg;
		else if (c == 'H')
			o.held_clock = true;
		else if (c == 'V')
			o.mode = MODE_VERSION;
		else if (c == 'h')
			o.mode = MODE_HELP;
		else
			o.mode = c == '?' ? MODE_WRONG : (enum mode)c;
	}
	if (o.mode == MODE_CHECK && o.config_path == NULL && optind < argc)
		o.config_path = argv[optind++];
	if (optind < argc && o.mode != MODE_WRONG) {
		fprintf(stderr, "musterd: unexpected argument '%s'\n", argv[optind]);
		o.mode = MODE_WRONG;
	}
	return o;
}

static int print_text(void (*write)(struct buf *out))
{
	struct buf text = BUF_INIT;

	write(&text);
	fwrite(text.data, 1, text.len, stdout);
	buf_release(&text);
	return fflush(stdout) == 0 ? 0 : 1;
}

/* The first line of standard input, without its end. */
static int print_hash(void)
{
	char *line = NULL;
	size_t cap = 0;
	char text[TOKEN_HASH_TEXT];

	ssize_t n = getline(&line, &cap, stdin);
	if (n > 0)
		n = (ssize_t)strcspn(line, "\r\n");
	if (n > 0) {
		token_hash((struct bytes){line, (size_t)n}, text);
		explicit_bzero(line, cap);
		puts(text);
	} else {
		fputs("musterd: expected a token on standard input\n", stderr);
	}
	free(line);
	return n > 0 ? 0 : 1;
}

/* 0, or -1 after the faults are on stderr. */
static int read_config(struct config *config, const char *path)
{
	struct buf errors = BUF_INIT;
	int result = 0;

	config_init(config);
	if (path != NULL)
		result = config_load(config, path, &errors);
	if (result == 0 && config->log_level[0] != '\0' && !log_set_level_name(config->log_level)) {
		buf_addf(&errors, "[server] log_level = %s: expected error, warning, notice, info or debug\n",
			config->log_level);
		result = -1;
	}
	if (errors.len > 0)
		fputs(errors.data, stderr);
	buf_release(&errors);
	return result;
}

static int check_config(const char *path)
{
	struct config config;
	struct buf errors = BUF_INIT;
	struct users *users = NULL;
	int result = read_config(&config, path);

	if (result == 0)
		users = users_load(config.users_file, &errors);
	if (errors.len > 0)
		fputs(errors.data, stderr);
	if (users != NULL)
		puts("the configuration is good");
	buf_release(&errors);
	users_free(users);
	config_release(&config);
	return users != NULL ? 0 : 1;
}

static void on_event_log(int severity, const char *text)
{
	static const enum log_level levels[] = {
		LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR};
	log_line(levels[severity & 3], "loop - event=message text=%s", text);
}

static void on_event_fatal(int error)
{
	log_error("loop - event=fatal error=%d", error);
	abort();
}

static int run(const struct options *o)
{
	struct config config;

	signal(SIGPIPE, SIG_IGN);
	event_set_log_callback(on_event_log);
	event_set_fatal_callback(on_event_fatal);
	if (read_config(&config, o->config_path) != 0) {
		config_release(&config);
		return 1;
	}
	if (o->held_clock)
		clock_hold();
	struct event_base *base = event_base_new();
	if (base == NULL) {
		log_error("loop - event=not_made");
		config_release(&config);
		return 1;
	}
	turn_init(base);
	struct server server = {.base = base, .config = &config, .config_path = o->config_path};
	log_notice("server - event=starting version=%s held_clock=%d", MUSTER_VERSION, o->held_clock);
	int code = server_start(&server) == 0 ? server_run(&server) : 1;
	server_stop(&server);
	event_base_free(base);
	libevent_global_shutdown();
	config_release(&config);
	return code;
}

int main(int argc, char **argv)
{
	struct options o = parse_options(argc, argv);

	switch (o.mode) {
	case MODE_RUN:
		return run(&o);
	case MODE_CHECK:
		return check_config(o.config_path);
	case MODE_COMMANDS:
		return print_text(commands_markdown);
	case MODE_SAMPLE:
		return print_text(config_sample);
	case MODE_HASH:
		return print_hash();
	case MODE_VERSION:
		puts("musterd " MUSTER_VERSION);
		return 0;
	case MODE_HELP:
		fputs(usage, stdout);
		return 0;
	default:
		fputs(usage, stderr);
		return 2;
	}
}
