/* SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <ini.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mem.h"

#define SYSTEM_FILE "/etc/muster/client.conf"

enum {
	OPT_HOST,
	OPT_PORT,
	OPT_USER,
	OPT_TOKEN_FILE,
	OPT_CONFIG,
	OPT_TIMEOUT,
	OPT_JSON,
	OPT_NO_COLOR,
	OPT_HELP,
	OPT_VERSION
};

static const struct option common[] = {
	{"host", required_argument, NULL, OPT_HOST},
	{"port", required_argument, NULL, OPT_PORT},
	{"user", required_argument, NULL, OPT_USER},
	{"token-file", required_argument, NULL, OPT_TOKEN_FILE},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"json", no_argument, NULL, OPT_JSON},
	{"no-color", no_argument, NULL, OPT_NO_COLOR},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
};

/* A value as text, before it is checked: what files, environment and command line have in common. */
struct setting {
	const char *section, *name;
	const char *env, *env_other; /* the first goes before the second */
	size_t offset;               /* in struct cli_options, of a string or an int */
	bool is_port;
};

#define AT(member) offsetof(struct cli_options, member)

static const struct setting settings[] = {
	{"server", "host", "MUSTER_HOST", NULL, AT(host), false},
	{"server", "port", "MUSTER_PORT", NULL, AT(port), true},
	{"server", "user", "MUSTER_USER", NULL, AT(user), false},
	{"amqp", "host", "MUSTER_AMQP_HOST", "AMQP_HOST", AT(amqp.host), false},
	{"amqp", "port", "MUSTER_AMQP_PORT", "AMQP_PORT", AT(amqp.port), true},
	{"amqp", "user", "MUSTER_AMQP_USER", "AMQP_USER", AT(amqp.user), false},
	{"amqp", "password", "MUSTER_AMQP_PASSWORD", "AMQP_PASSWORD", AT(amqp.password), false},
	{"amqp", "vhost", "MUSTER_AMQP_VHOST", "AMQP_VHOST", AT(amqp.vhost), false},
};

static const struct option *find_common(const char *word, const char **ret_value)
{
	size_t n = strcspn(word + 2, "=");

	for (size_t i = 0; i < ARRAY_LEN(common); i++) {
		if (strlen(common[i].name) == n && strncmp(common[i].name, word + 2, n) == 0) {
			*ret_value = word[2 + n] == '=' ? word + 3 + n : NULL;
			return &common[i];
		}
	}
	return NULL;
}

static void give(struct options_given *g, int which, const char *value)
{
	const char **const values[] = {
		[OPT_HOST] = &g->host,
		[OPT_PORT] = &g->port,
		[OPT_USER] = &g->user,
		[OPT_TOKEN_FILE] = &g->token_file,
		[OPT_CONFIG] = &g->config,
		[OPT_TIMEOUT] = &g->timeout,
	};
	bool *const flags[] = {
		[OPT_JSON] = &g->json,
		[OPT_NO_COLOR] = &g->no_color,
		[OPT_HELP] = &g->help,
		[OPT_VERSION] = &g->version,
	};

	if ((size_t)which < ARRAY_LEN(values))
		*values[which] = value;
	else
		*flags[which] = true;
}

/* The command word has been seen and what follows it is not ours to read. */
static bool raw_from_here(int kept, char **argv)
{
	if (kept < 3)
		return false;
	const struct cli_command *command = cli_find(argv[1]);
	return command != NULL && (command->flags & CLI_RAW_ARGS) != 0;
}

static int take_one(int *at, int argc, char **argv, const struct option *option, const char *value,
	struct options_given *ret)
{
	if (option->has_arg == no_argument && value != NULL) {
		cli_error("--%s takes no value", option->name);
		return CLI_USAGE;
	}
	if (option->has_arg == required_argument && value == NULL) {
		if (*at + 1 >= argc) {
			cli_error("--%s needs a value", option->name);
			return CLI_USAGE;
		}
		value = argv[++*at];
	}
	give(ret, option->val, value);
	return 0;
}

int options_take(int *argc, char **argv, struct options_given *ret)
{
	int kept = 1, i;

	*ret = (struct options_given){0};
	for (i = 1; i < *argc && strcmp(argv[i], "--") != 0 && !raw_from_here(kept, argv); i++) {
		const char *value = NULL;
		const struct option *option =
			strncmp(argv[i], "--", 2) == 0 ? find_common(argv[i], &value) : NULL;

		if (strcmp(argv[i], "-h") == 0)
			ret->help = true;
		else if (option == NULL)
			argv[kept++] = argv[i];
		else if (take_one(&i, *argc, argv, option, value, ret) != 0)
			return CLI_USAGE;
	}
	for (; i < *argc; i++)
		argv[kept++] = argv[i];
	argv[kept] = NULL;
	*argc = kept;
	return 0;
}

static void replace(char **dst, const char *text)
{
	free(*dst);
	*dst = xstrdup(text);
}

static int set_port(int *dst, const char *text, const char *where)
{
	int64_t n;

	if (!bytes_to_i64(bytes_of(text), &n) || n < 1 || n > 65535) {
		cli_error("%s: expected a port from 1 to 65535, found '%s'", where, text);
		return CLI_USAGE;
	}
	*dst = (int)n;
	return 0;
}

static int set(struct cli_options *o, const struct setting *s, const char *text, const char *where)
{
	char *at = (char *)o + s->offset;

	if (s->is_port)
		return set_port((int *)(void *)at, text, where);
	replace((char **)(void *)at, text);
	return 0;
}

static int set_timeout(struct cli_options *o, const char *text, const char *where)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end != '\0' || !(seconds >= 0.001) || seconds > 86400) {
		cli_error("%s: expected seconds, from 0.001 to 86400, found '%s'", where, text);
		return CLI_USAGE;
	}
	o->timeout_ms = (int)(seconds * 1000);
	return 0;
}

static int read_token(struct cli_options *o, const char *path)
{
	char line[1024];
	FILE *f = fopen(path, "re");

	if (f == NULL) {
		cli_error("%s: can't read the token: %s", path, strerror(errno));
		return CLI_USAGE;
	}
	bool got = fgets(line, sizeof(line), f) != NULL;
	fclose(f);
	if (!got) {
		cli_error("%s: the token file is empty", path);
		return CLI_USAGE;
	}
	line[strcspn(line, "\r\n")] = '\0';
	replace(&o->token, line);
	explicit_bzero(line, sizeof(line));
	return 0;
}

struct load {
	struct cli_options *options;
	const char *path;
	int result;
};

static int set_from_file(struct load *load, const char *section, const char *name, const char *value)
{
	char where[256];

	snprintf(where, sizeof(where), "%s: [%s] %s", load->path, section, name);
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		if (strcmp(settings[i].section, section) == 0 && strcmp(settings[i].name, name) == 0)
			return set(load->options, &settings[i], value, where);
	}
	if (strcmp(section, "server") == 0 && strcmp(name, "timeout") == 0)
		return set_timeout(load->options, value, where);
	if (strcmp(section, "server") == 0 && strcmp(name, "token_file") == 0)
		return read_token(load->options, value);
	cli_error("%s: no such key", where);
	return CLI_USAGE;
}

static int on_value(void *user, const char *section, const char *name, const char *value)
{
	struct load *load = user;

	if (load->result == 0)
		load->result = set_from_file(load, section, name, value);
	return 1;
}

static int read_file(struct cli_options *o, const char *path, bool must_exist)
{
	struct load load = {.options = o, .path = path};

	if (!must_exist && access(path, R_OK) != 0)
		return 0;
	int line = ini_parse(path, on_value, &load);
	if (line < 0)
		cli_error("%s: can't read it: %s", path, strerror(errno));
	else if (line > 0 && load.result == 0)
		cli_error("%s: line %d: expected [section], key = value, or a comment", path, line);
	return line != 0 ? CLI_USAGE : load.result;
}

static int read_files(struct cli_options *o, const char *config)
{
	char path[4096];
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config != NULL)
		return read_file(o, config, true);
	if (read_file(o, SYSTEM_FILE, false) != 0)
		return CLI_USAGE;
	if (xdg != NULL && xdg[0] != '\0')
		snprintf(path, sizeof(path), "%s/muster.conf", xdg);
	else if (home != NULL && home[0] != '\0')
		snprintf(path, sizeof(path), "%s/.config/muster.conf", home);
	else
		return 0;
	return read_file(o, path, false);
}

static const char *environment(const char *name)
{
	const char *value = name != NULL ? getenv(name) : NULL;
	return value != NULL && value[0] != '\0' ? value : NULL;
}

static int read_environment(struct cli_options *o)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		const char *name =
			environment(settings[i].env) != NULL ? settings[i].env : settings[i].env_other;
		const char *value = environment(name);
		if (value != NULL && set(o, &settings[i], value, name) != 0)
			return CLI_USAGE;
	}
	const char *file = environment("MUSTER_TOKEN_FILE");
	if (file != NULL && read_token(o, file) != 0)
		return CLI_USAGE;
	if (environment("MUSTER_TOKEN") != NULL)
		replace(&o->token, environment("MUSTER_TOKEN"));
	return 0;
}

static int read_given(struct cli_options *o, const struct options_given *given)
{
	if (given->host != NULL)
		replace(&o->host, given->host);
	if (given->user != NULL)
		replace(&o->user, given->user);
	if (given->port != NULL && set_port(&o->port, given->port, "--port") != 0)
		return CLI_USAGE;
	if (given->timeout != NULL && set_timeout(o, given->timeout, "--timeout") != 0)
		return CLI_USAGE;
	return given->token_file != NULL ? read_token(o, given->token_file) : 0;
}

int options_load(struct cli_options *o, const struct options_given *given)
{
	*o = (struct cli_options){
		.host = xstrdup("127.0.0.1"),
		.port = 7411,
		.user = xstrdup(""),
		.token = xstrdup(""),
		.timeout_ms = 15000,
		.json = given->json,
		.amqp = {xstrdup("127.0.0.1"), 5672, xstrdup("guest"), xstrdup("guest"), xstrdup("/")},
	};
	if (read_files(o, given->config) != 0 || read_environment(o) != 0 || read_given(o, given) != 0)
		return CLI_USAGE;
	o->color = !given->no_color && environment("NO_COLOR") == NULL && isatty(STDOUT_FILENO) == 1;
	return 0;
}

static void wipe(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void options_release(struct cli_options *o)
{
	free(o->host);
	free(o->user);
	wipe(o->token);
	free(o->amqp.host);
	free(o->amqp.user);
	wipe(o->amqp.password);
	free(o->amqp.vhost);
	*o = (struct cli_options){0};
}
