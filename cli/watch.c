/* SPDX-License-Identifier: MIT */
/* `muster watch`: prints the notices of a department as they come, by a queue of its own that goes with it.
 */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "cli/bindings.h"
#include "cli/broker.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/when.h"

struct watch {
	const struct cli_options *options;
	const char *dept;
	bool only_here;
	int64_t left; /* notices until the end, 0 = no end */
};

static enum table_style what_style(const char *what)
{
	static const struct {
		const char *what;
		enum table_style style;
	} styles[] = {{"absent", STYLE_BAD}, {"late", STYLE_WARN}, {"withdrawn", STYLE_WARN},
		{"in", STYLE_GOOD}, {"closed", STYLE_HEAD}};

	for (size_t i = 0; i < ARRAY_LEN(styles); i++) {
		if (strcmp(styles[i].what, what) == 0)
			return styles[i].style;
	}
	return STYLE_PLAIN;
}

/* Pads a text to so many columns; what is longer stays whole. */
static void put_padded(const struct watch *w, enum table_style style, const char *text, size_t columns)
{
	struct buf clean = BUF_INIT;

	text_clean(&clean, text, strlen(text));
	table_styled(stdout, w->options->color, style, clean.len > 0 ? clean.data : "-");
	for (size_t n = clean.len > 0 ? text_width(clean.data, clean.len) : 1; n < columns; n++)
		putchar(' ');
	buf_release(&clean);
}

static const char *text_of(const json_t *object, const char *field)
{
	const char *text = json_string_value(json_object_get(object, field));

	return text != NULL ? text : "";
}

/* Fields that have a column of their own, or say nothing to a reader. */
static bool is_shown_elsewhere(const char *field)
{
	static const char *const fields[] = {
		"id", "employee", "team", "name", "at", "received", "in", "out", "state", "late_ms", "marks"};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (strcmp(fields[i], field) == 0)
			return true;
	}
	return false;
}

static void put_details(const struct watch *w, json_t *event)
{
	char text[WHEN_MAX];
	const char *field;
	json_t *value;
	int64_t late = json_integer_value(json_object_get(event, "late_ms"));

	if (late > 0)
		printf("  %s late", when_duration(text, late));
	json_object_foreach(event, field, value)
	{
		if (is_shown_elsewhere(field))
			continue;
		if (json_is_integer(value))
			printf("  %s %lld", field, (long long)json_integer_value(value));
		if (json_is_string(value)) {
			printf("  %s ", field);
			put_padded(w, STYLE_PLAIN, json_string_value(value), 0);
		}
	}
}

static void put_event(const struct watch *w, const struct mq_message *m, const json_t *notice, json_t *event)
{
	char when[WHEN_MAX];
	const char *type = text_of(notice, "type");
	const char *what = strchr(type, '.') != NULL ? strchr(type, '.') + 1 : type;
	json_t *at = json_object_get(event, "at");
	int64_t ms = json_is_integer(at) ? json_integer_value(at) : m->timestamp_s * 1000;
	const char *who = text_of(event, "employee");

	printf("%s  ", when_format(when, ms, text_of(notice, "day"), false));
	put_padded(w, what_style(what), what, 9);
	printf("  ");
	put_padded(w, STYLE_DIM, text_of(notice, "dept"), 8);
	printf("  ");
	put_padded(w, STYLE_PLAIN, who[0] != '\0' ? who : text_of(event, "team"), 10);
	printf("  ");
	put_padded(w, STYLE_PLAIN, text_of(event, "name"), 0);
	put_details(w, event);
	if (m->attempt > 0)
		printf("  (try %d)", m->attempt + 1);
	putchar('\n');
}

static void put_notice(const struct watch *w, const struct mq_message *m, json_t *notice)
{
	json_t *event;
	size_t i;

	if (w->options->json) {
		json_dumpf(notice, stdout, JSON_COMPACT);
		putchar('\n');
		return;
	}
	json_array_foreach(json_object_get(notice, "events"), i, event)
	{
		put_event(w, m, notice, event);
	}
}

static bool on_notice(void *arg, const struct mq_message *m)
{
	struct watch *w = arg;
	json_error_t error;
	json_t *notice = json_loadb(m->body.p, m->body.n, JSON_REJECT_DUPLICATES, &error);

	if (notice != NULL)
		put_notice(w, m, notice);
	else
		cli_error("message %.*s is not JSON: %s", (int)m->message_id.n, m->message_id.p, error.text);
	json_decref(notice);
	if (fflush(stdout) != 0)
		return false;
	return w->left == 0 || --w->left > 0;
}

static void on_ready(void *arg, const char *queue)
{
	const struct watch *w = arg;

	(void)queue;
	fprintf(stderr, "Watching department %s%s. Ctrl-C ends it.\n", w->dept,
		w->only_here ? "" : " and all below");
}

int cmd_watch(int argc, char **argv, const struct cli_options *options)
{
	static const struct option own[] = {{"what", required_argument, NULL, 'w'},
		{"only-here", no_argument, NULL, 'o'}, {"limit", required_argument, NULL, 'l'}, {0}};
	struct watch w = {.options = options};
	struct bindings bindings;
	const char *what = NULL;

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == 'o')
			w.only_here = true;
		else if (c == 'w')
			what = optarg;
		else if (c != 'l')
			return cli_bad_option("watch");
		else if (!bytes_to_i64(bytes_of(optarg), &w.left) || w.left < 1)
			return cli_usage("watch", "expected a number with --limit");
	}
	if (argc - optind != 1 || !id_valid(bytes_of(argv[optind])))
		return cli_usage("watch", "expected the id of one department");
	w.dept = argv[optind];
	if (!bindings_make(&bindings, what, w.dept, w.only_here))
		return cli_usage("watch", "--what takes %s, with commas between", bindings_words);
	struct broker_visit visit = {.task = CONSUMER_READ,
		.keys = bindings.keys,
		.key_count = bindings.count,
		.ready = on_ready,
		.notice = on_notice,
		.arg = &w};
	return broker_visit(options, &visit);
}
