/* SPDX-License-Identifier: MIT */
/* The common options: taken out of the command line wherever they stand, over the environment, over the
 * client files, over the defaults. Secrets come from a file or the environment only, never from the command
 * line.
 *
 * Files, the later over the earlier: /etc/muster/client.conf, then $XDG_CONFIG_HOME/muster.conf (or
 * ~/.config/muster.conf); with --config FILE that one alone. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli/cli.h"

/* What stood on the command line; the strings point into argv. */
struct options_given {
	const char *host, *port, *user, *token_file, *config, *timeout;
	bool json, no_color, help, version;
};

/* Moves the common options out of argv, which keeps argv[0] and the rest in order and stays NULL-terminated.
 * Stops at "--", and with a CLI_RAW_ARGS subcommand at its first argument that is no option. 0, or CLI_USAGE
 * after a message. */
int options_take(int *argc, char **argv, struct options_given *ret) __attribute__((warn_unused_result));

/* Fills o from all the places. 0, or CLI_USAGE after a message. Release in both cases. */
int options_load(struct cli_options *o, const struct options_given *given)
	__attribute__((warn_unused_result));
void options_release(struct cli_options *o);

#endif
