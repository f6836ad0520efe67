/* SPDX-License-Identifier: MIT */
/* `muster info` and `muster call`: the daemon's own words. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/show.h"
#include "cli/text.h"

/* The next line of *text without its end, which is moved behind it; false at the end. */
static bool next_line(struct bytes *text, struct bytes *ret)
{
	if (text->n == 0)
		return false;
	const char *end = memchr(text->p, '\n', text->n);
	size_t n = end != NULL ? (size_t)(end - text->p) : text->n;
	*ret = (struct bytes){text->p, n > 0 && text->p[n - 1] == '\r' ? n - 1 : n};
	n += end != NULL;
	*text = (struct bytes){text->p + n, text->n - n};
	return true;
}

static json_t *value_json(struct bytes value)
{
	int64_t n;
	bool number = bytes_to_i64(value, &n) && (value.n == 1 || value.p[0] != '0');
	json_t *text = number ? json_integer(n) : json_stringn(value.p, value.n);
	return text != NULL ? text : json_null();
}

/* {"server": {"uptime_in_seconds": 5, …}, …}; the names of sections in lower case. */
static json_t *info_json(struct bytes text)
{
	json_t *all = json_object(), *section = all;
	struct bytes line;
	char name[128];

	while (next_line(&text, &line)) {
		const char *colon = line.n > 0 ? memchr(line.p, ':', line.n) : NULL;
		if (line.n > 2 && line.p[0] == '#') {
			bytes_copy(name, sizeof(name), (struct bytes){line.p + 2, line.n - 2});
			for (char *c = name; *c != '\0'; c++)
				*c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
			section = json_object();
			json_object_set_new(all, name, section);
		} else if (colon != NULL) {
			size_t n = (size_t)(colon - line.p);
			bytes_copy(name, sizeof(name), (struct bytes){line.p, n});
			json_object_set_new(
				section, name, value_json((struct bytes){colon + 1, line.n - n - 1}));
		}
	}
	return all;
}

/* Columns of the longest key, so that the values line up. */
static int key_width(struct bytes text)
{
	struct bytes line;
	size_t width = 0;

	while (next_line(&text, &line)) {
		const char *colon = line.n > 0 && line.p[0] != '#' ? memchr(line.p, ':', line.n) : NULL;
		if (colon != NULL && (size_t)(colon - line.p) > width)
			width = (size_t)(colon - line.p);
	}
	return (int)(width < 60 ? width : 60);
}

static void show_info(const struct cli_options *options, struct bytes text)
{
	int width = key_width(text);
	struct buf clean = BUF_INIT;
	struct bytes line;

	while (next_line(&text, &line)) {
		buf_clear(&clean);
		buf_add_str(&clean, "");
		text_clean(&clean, line.p, line.n);
		char *colon = strchr(clean.data, ':');
		if (clean.data[0] == '#') {
			table_styled(stdout, options->color, STYLE_HEAD, clean.data);
			putchar('\n');
		} else if (colon != NULL) {
			*colon = '\0';
			printf("%-*s  %s\n", width, clean.data, colon + 1);
		} else {
			puts(clean.data);
		}
	}
	buf_release(&clean);
}

int cmd_info(int argc, char **argv, const struct cli_options *options)
{
	static const struct option none[] = {{0}};
	struct request r;
	redisReply *reply;

	if (getopt_long(argc, argv, "", none, NULL) != -1)
		return cli_bad_option("info");
	if (argc - optind > 1)
		return cli_usage("info", "expected at most one section");
	request_init(&r, "INFO");
	if (argc > optind)
		request_add(&r, argv[optind]);
	int result = conn_ask(options, &r, &reply);
	if (result != CLI_OK)
		return result;
	struct bytes text =
		reply->str != NULL ? (struct bytes){reply->str, (size_t)reply->len} : BYTES_LIT("");
	if (options->json)
		answer_print(info_json(text));
	else
		show_info(options, text);
	freeReplyObject(reply);
	return CLI_OK;
}

int cmd_call(int argc, char **argv, const struct cli_options *options)
{
	int result, first = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;

	if (argc - first < 1)
		return cli_usage("call", "expected a command");
	struct conn *conn = conn_open(options, false, &result);
	if (conn == NULL)
		return result;
	size_t *len = xmalloc((size_t)argc * sizeof(*len));
	for (int i = first; i < argc; i++)
		len[i] = strlen(argv[i]);
	redisReply *reply = conn_call(conn, argc - first, (const char *const *)(argv + first), len + first);
	if (reply == NULL) {
		result = CLI_UNREACHABLE;
	} else if (reply->type == REDIS_REPLY_ERROR) {
		conn_print_refusal(reply);
		result = CLI_FAILED;
	} else {
		show_reply(options, reply);
	}
	freeReplyObject(reply);
	free(len);
	conn_close(conn);
	return result;
}
