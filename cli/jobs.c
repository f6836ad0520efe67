/* SPDX-License-Identifier: MIT */
/* `muster jobs`: big changes of the tree that are under way. */
#include <getopt.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/listing.h"
#include "cli/show.h"

static const struct listing_column columns[] = {
	{"JOB", "job", TABLE_LEFT},
	{"CHANGE", "op", TABLE_LEFT},
	{"TEAM", "team", TABLE_LEFT},
	{"PARENT", "parent", TABLE_LEFT},
	{"PHASE", "phase", TABLE_LEFT},
	{"DONE", "done", TABLE_RIGHT},
	{"TOTAL", "total", TABLE_RIGHT},
};
static const struct listing jobs = {columns, ARRAY_LEN(columns), "Nothing is under way."};

int cmd_jobs(int argc, char **argv, const struct cli_options *options)
{
	static const struct option none[] = {{0}};
	struct request r;

	if (getopt_long(argc, argv, "", none, NULL) != -1)
		return cli_bad_option("jobs");
	int words = argc - optind;
	const char *what = words > 0 ? argv[optind] : "list";
	if (strcmp(what, "list") == 0 && words <= 1) {
		request_init(&r, "TEAM.JOBS");
		return listing_request(&jobs, options, &r);
	}
	if (strcmp(what, "cancel") == 0 && words == 2) {
		request_init(&r, "TEAM.CANCEL");
		request_add(&r, argv[optind + 1]);
		return show_request(options, &r);
	}
	return cli_usage("jobs", "expected list, or cancel and the number of a job");
}
