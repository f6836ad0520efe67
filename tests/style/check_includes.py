#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Who may include whom: main -> daemon -> handlers -> persist, mq -> rules -> base, cli beside them; each client
library in the one folder that hides it; own header first; house headers named from the root."""
import re

from tree import ALL_C, CODE, ROOT, Report, c_files, read

MAY_INCLUDE = {
    "base": {"base"},
    "rules": {"rules", "base"},
    "persist": {"persist", "rules", "base"},
    "mq": {"mq", "rules", "base"},
    "handlers": {"handlers", "persist", "mq", "rules", "base"},
    "daemon": {"daemon", "handlers", "persist", "mq", "rules", "base"},
    "cli": {"cli", "mq", "rules", "base"},
}
# What turns journal records into notices reads the journal; the rest of mq/ knows no store.
BRIDGES = {"mq/relay.c", "mq/notice.c", "mq/notice_message.c"}
# Tests and benchmarks may look into any library to have a second opinion.
LIBRARIES = {
    r"hiredis(/|\.h)": {"persist", "cli"},
    r"(mysql|mariadb)(/|\.h)|(mysqld_error|errmsg)\.h": {"persist"},
    r"(rabbitmq-c/|amqp(_\w+)?\.h)": {"mq"},
    r"ini\.h": {"base", "cli"},
    r"event2/": {"base", "persist", "mq", "handlers", "daemon", "cli"},
}
# Modules that decide and do not act: no loop, no network.
PURE = re.compile(r"rules/|daemon/resp\.|persist/(keys|partition)\.|base/(bytes|mem|buf)\.")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)


def check_house(report, name, line, target):
    folder = name.split("/", 1)[0]
    if "/" not in target:
        report.add(name, line, f'"{target}": name house headers from the root')
        return
    to = target.split("/", 1)[0]
    if to not in ALL_C:
        report.add(name, line, f'"{target}": no such folder of the house')
    elif folder in MAY_INCLUDE and to not in MAY_INCLUDE[folder] and not (name in BRIDGES and to == "persist"):
        report.add(name, line, f'{folder}/ must not include {to}/ ("{target}")')


def check_library(report, name, line, target):
    folder = name.split("/", 1)[0]
    if folder not in CODE:
        return
    for pattern, allowed in LIBRARIES.items():
        if re.match(pattern, target) and folder not in allowed:
            report.add(name, line, f"<{target}> is for {', '.join(sorted(allowed))} only")
    if target.startswith("event2/") and PURE.match(name):
        report.add(name, line, f"<{target}> in a module that is to stay pure")


def check_own_first(report, name, includes):
    own = name[:-2] + ".h"
    if name.endswith(".c") and (ROOT / own).exists() and includes and includes[0][1] != own:
        report.add(name, includes[0][0], f'the first include is to be "{own}"')


def main():
    report = Report()
    for name in c_files():
        text = read(name)
        includes = []
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            includes.append((line, match.group(2)))
            check = check_house if match.group(1) == '"' else check_library
            check(report, name, line, match.group(2))
        check_own_first(report, name, includes)
    report.finish()


main()
