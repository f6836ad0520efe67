/* SPDX-License-Identifier: MIT */
/* One command whose answer may take long, with progress from looking meanwhile how far it is. As long as the
 * looks are answered there is no limit to the wait. */
#ifndef CLI_PATIENCE_H
#define CLI_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "cli/conn.h"

struct patience {
	const struct cli_options *options;
	const char *what, *unit;    /* of the progress */
	const struct request *look; /* what is asked meanwhile */
	/* The answer to it: how far, where it says so. */
	void (*seen)(const redisReply *reply, uint64_t *ret_done, uint64_t *ret_total, void *arg);
	void *arg;
};

/* CLI_OK and the reply, which the caller frees, or an exit code after a message. */
int patience_ask(const struct patience *p, const struct request *r, redisReply **ret)
	__attribute__((warn_unused_result));

#endif
