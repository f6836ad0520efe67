/* SPDX-License-Identifier: MIT */
/* `muster subscribe`: makes, or removes, a durable queue that gets the notices of a department. What its
 * consumer rejects is tried again later and parked in the end. */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/bindings.h"
#include "cli/broker.h"
#include "cli/cli.h"

#define QUEUE_PREFIX "muster.sub."

struct subscription {
	const struct cli_options *options;
	char queue[sizeof(QUEUE_PREFIX) + ID_MAX];
	struct bindings bindings;
	bool remove;
};

static void print_json(const struct subscription *s)
{
	json_t *keys = json_array();

	for (size_t i = 0; i < s->bindings.count; i++)
		json_array_append_new(keys, json_string(s->bindings.keys[i]));
	json_t *all = json_pack("{s:s, s:b, s:o}", "queue", s->queue, "removed", s->remove, "keys", keys);
	json_dumpf(all, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(all);
}

static void on_ready(void *arg, const char *queue)
{
	const struct subscription *s = arg;

	if (s->options->json) {
		print_json(s);
		return;
	}
	if (s->remove) {
		printf("Queue %s is removed, with what was in it.\n", queue);
		return;
	}
	printf("Queue %s gets", queue);
	for (size_t i = 0; i < s->bindings.count; i++)
		printf("%s %s", i > 0 ? "," : "", s->bindings.keys[i]);
	puts(".");
}

static int subscribe(struct subscription *s)
{
	struct broker_visit visit = {.task = s->remove ? CONSUMER_REMOVE : CONSUMER_MAKE,
		.queue = s->queue,
		.keys = s->bindings.keys,
		.key_count = s->bindings.count,
		.ready = on_ready,
		.arg = s};

	return broker_visit(s->options, &visit);
}

int cmd_subscribe(int argc, char **argv, const struct cli_options *options)
{
	static const struct option own[] = {{"what", required_argument, NULL, 'w'},
		{"only-here", no_argument, NULL, 'o'}, {"unsubscribe", no_argument, NULL, 'u'}, {0}};
	struct subscription s = {.options = options};
	const char *what = NULL;
	bool only_here = false;

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == 'w')
			what = optarg;
		else if (c == 'o')
			only_here = true;
		else if (c == 'u')
			s.remove = true;
		else
			return cli_bad_option("subscribe");
	}
	int words = argc - optind;
	if (words < (s.remove ? 1 : 2) || words > 2 || !id_valid(bytes_of(argv[optind])))
		return cli_usage("subscribe", "expected a name and the id of a department");
	if (words == 2 && !id_valid(bytes_of(argv[optind + 1])))
		return cli_usage("subscribe", "%s is not the id of a department", argv[optind + 1]);
	snprintf(s.queue, sizeof(s.queue), QUEUE_PREFIX "%s", argv[optind]);
	if (!s.remove && !bindings_make(&s.bindings, what, argv[optind + 1], only_here))
		return cli_usage("subscribe", "--what takes %s, with commas between", bindings_words);
	return subscribe(&s);
}
