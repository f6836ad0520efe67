/* SPDX-License-Identifier: MIT */
/* `muster tree`: draws the tree, or a part of it, as it comes: depth first, a page at a time. Whether a team
 * is the last of its parent is known from the parent's number of descendants: each team below takes its own
 * share of it, so nothing has to be held back. If the tree changes meanwhile a corner may be drawn wrong, no
 * more. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/pages.h"
#include "cli/table.h"
#include "cli/text.h"

#define PAGE "500"

struct strokes {
	const char *through, *blank, *branch, *corner;
};

struct drawing {
	const struct cli_options *options;
	const char *id;    /* "-" = everything */
	const char *depth; /* NULL = all */
	bool all;          /* retired ones too */
	const struct strokes *strokes;
	int64_t *left; /* by depth: how many descendants of the team on the way are still to come */
	size_t cap;
};

static const struct strokes lines = {"│   ", "    ", "├── ", "└── "};
static const struct strokes ascii = {"|   ", "    ", "|-- ", "`-- "};

static int64_t *left_at(struct drawing *d, size_t depth)
{
	if (depth >= d->cap) {
		size_t cap = depth * 2 + 16;
		d->left = xrealloc(d->left, cap * sizeof(*d->left));
		memset(d->left + d->cap, 0, (cap - d->cap) * sizeof(*d->left));
		d->cap = cap;
	}
	return &d->left[depth];
}

/* Those that the drawing will have. */
static int64_t below(const struct drawing *d, const redisReply *team)
{
	return answer_int(team, d->all ? "descendants" : "listed", 0);
}

static void draw_strokes(struct drawing *d, size_t depth)
{
	size_t first = strcmp(d->id, "-") == 0; /* the roots have nothing above that could be drawn */

	for (size_t i = first; i + 1 < depth; i++)
		fputs(*left_at(d, i) > 0 ? d->strokes->through : d->strokes->blank, stdout);
	if (depth > first)
		fputs(*left_at(d, depth - 1) > 0 ? d->strokes->branch : d->strokes->corner, stdout);
}

static void draw_text(const struct drawing *d, const redisReply *team)
{
	const char *id = answer_str(team, "id"), *name = answer_str(team, "name"),
		   *manager = answer_str(team, "manager");
	int64_t descendants = answer_int(team, "descendants", 0);

	table_styled(stdout, d->options->color, STYLE_HEAD, id);
	if (strcmp(name, id) != 0) {
		fputs("  ", stdout);
		table_styled(stdout, d->options->color, STYLE_PLAIN, name);
	}
	if (manager[0] != '\0') {
		fputs("  ", stdout);
		table_styled(stdout, d->options->color, STYLE_GOOD, manager);
	}
	if (descendants > 0)
		printf("  (%" PRId64 " below)", descendants);
	if (strcmp(answer_str(team, "state"), "retired") == 0)
		table_styled(stdout, d->options->color, STYLE_WARN, "  retired");
	putchar('\n');
}

static void draw(struct drawing *d, const redisReply *team, size_t depth)
{
	int64_t share = below(d, team);

	if (depth > 0)
		*left_at(d, depth - 1) -= share + 1;
	*left_at(d, depth) = share;
	if (d->options->json) {
		answer_print(answer_map_json(team));
		return;
	}
	draw_strokes(d, depth);
	draw_text(d, team);
}

static int draw_page(const redisReply *teams, void *arg)
{
	struct drawing *d = arg;

	for (size_t i = 0; i < teams->elements; i++)
		draw(d, teams->element[i], (size_t)answer_int(teams->element[i], "depth", 1));
	return ferror(stdout) != 0 ? PAGES_ENOUGH : CLI_OK;
}

static void descendants_request(struct request *r, void *arg)
{
	const struct drawing *d = arg;

	request_init(r, "TEAM.DESCENDANTS");
	request_add(r, d->id);
	request_option(r, "DEPTH", d->depth);
	if (d->all)
		request_add(r, "ALL");
	request_add(r, "DETAIL");
}

/* How many below the top will be listed: the children say it of themselves. */
static int add_children(const redisReply *teams, void *arg)
{
	struct drawing *d = arg;

	for (size_t i = 0; i < teams->elements; i++)
		*left_at(d, 0) += below(d, teams->element[i]) + 1;
	return CLI_OK;
}

static void children_request(struct request *r, void *arg)
{
	const struct drawing *d = arg;

	request_init(r, "TEAM.CHILDREN");
	request_add(r, d->id);
	request_add(r, "DETAIL");
}

/* The team at the top. TEAM.GET does not say how many below it will be listed, unless it is all. */
static int draw_top(struct drawing *d, struct conn *conn)
{
	const struct pages_walk children = {conn, PAGE, children_request, add_children, d};
	struct request r;
	redisReply *team;

	request_init(&r, "TEAM.GET");
	request_add(&r, d->id);
	int result = conn_request(conn, &r, &team);
	if (result != CLI_OK)
		return result;
	draw(d, team, 0);
	freeReplyObject(team);
	if (d->all)
		return CLI_OK;
	*left_at(d, 0) = 0;
	return pages_walk(&children);
}

static int draw_all(struct drawing *d)
{
	int result;
	struct conn *conn = conn_open(d->options, false, &result);
	const struct pages_walk descendants = {conn, PAGE, descendants_request, draw_page, d};

	if (conn == NULL)
		return result;
	if (strcmp(d->id, "-") != 0)
		result = draw_top(d, conn);
	if (result == CLI_OK)
		result = pages_walk(&descendants);
	conn_close(conn);
	return result == PAGES_ENOUGH ? CLI_OK : result;
}

int cmd_tree(int argc, char **argv, const struct cli_options *options)
{
	static const struct option own[] = {
		{"depth", required_argument, NULL, 'd'}, {"all", no_argument, NULL, 'a'}, {0}};
	struct drawing d = {.options = options, .id = "-", .strokes = text_is_utf8() ? &lines : &ascii};
	int64_t depth;

	for (int c; (c = getopt_long(argc, argv, "", own, NULL)) != -1;) {
		if (c == 'a')
			d.all = true;
		else if (c != 'd')
			return cli_bad_option("tree");
		else if (!bytes_to_i64(bytes_of(optarg), &depth) || depth < 1)
			return cli_usage("tree", "--depth: expected a number from 1, found '%s'", optarg);
		else
			d.depth = optarg;
	}
	if (argc - optind > 1)
		return cli_usage("tree", "expected at most one team");
	if (argc > optind)
		d.id = argv[optind];
	int result = draw_all(&d);
	free(d.left);
	return result;
}
