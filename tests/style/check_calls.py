#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Calls and constructs that the house does without."""
import re

from tree import Report, bare, c_files, files, functions, read

CALLS = {
    "strcat": "use base/buf.h", "strncat": "use base/buf.h", "strcpy": "use snprintf or base/buf.h",
    "sprintf": "use snprintf", "vsprintf": "use vsnprintf", "strtok": "use base/bytes.h",
    "atoi": "use bytes_to_i64", "atol": "use bytes_to_i64",
    "atoll": "use bytes_to_i64", "gets": "use fgets", "alloca": "use base/mem.h", "system": "no shell",
    "popen": "no shell", "gethostbyname": "use base/resolve.h", "localtime": "use localtime_r",
    "gmtime": "use gmtime_r", "asctime": "use strftime", "ctime": "use strftime",
}
SLEEPS = ("sleep", "usleep", "nanosleep")
# A parser's state is its own bookkeeping, changed at every byte; there is nothing to log.
PARSERS = {"daemon/resp.c"}
MACHINES = ("persist/", "mq/", "handlers/", "daemon/")  # where operations live; elsewhere a state is plain data
ASSIGNED_STATE = re.compile(r"->state\s*=(?!=)")
SETTER = re.compile(r"set_state|enter")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_calls(report, name, text):
    words = dict(CALLS)
    if name.startswith("tests/"):
        words.update({word: "wait for the condition, with a deadline" for word in SLEEPS})
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(words) + r")\s*\(")
    for match in pattern.finditer(text):
        report.add(name, line_of(text, match.start()), f"{match.group(1)}(): {words[match.group(1)]}")
    for match in re.finditer(r"^typedef\s+(struct|union|enum)\b", text, re.MULTILINE):
        report.add(name, line_of(text, match.start()), f"typedef of a {match.group(1)}")


def check_state(report, name, text):
    if name in PARSERS or not name.startswith(MACHINES):
        return
    found = functions(text)
    for match in ASSIGNED_STATE.finditer(text):
        line = line_of(text, match.start())
        owner = next((f for f, first, last in found if first <= line <= last), "?")
        if not SETTER.search(owner):
            report.add(name, line, f"{owner}() writes ->state; one setter a machine does (…_set_state, …_enter)")


def check_python(report):
    for name in files("test_*.py", ("tests",)):
        for number, line in enumerate(read(name).splitlines(), 1):
            if re.search(r"\btime\.sleep\(", line):
                report.add(name, number, "time.sleep(): wait for the condition, with a deadline")


def main():
    report = Report()
    for name in c_files():
        text = bare(read(name))
        check_calls(report, name, text)
        check_state(report, name, text)
    check_python(report)
    report.finish()


main()
