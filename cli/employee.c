/* SPDX-License-Identifier: MIT */
/* `muster employee`: one employee, by the commands of the same name. */
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/verbs.h"

int cmd_employee(int argc, char **argv, const struct cli_options *options)
{
	static const struct verb verbs[] = {
		{"get", "EMPLOYEE.GET", 1, "", verb_map},
		{"set", "EMPLOYEE.SET", 1, "dn", verb_value},
		{"move", "EMPLOYEE.MOVE", 2, "", verb_value},
		{"remove", "EMPLOYEE.REMOVE", 1, "", verb_value},
	};
	return verbs_run(argc, argv, options, verbs, ARRAY_LEN(verbs));
}
