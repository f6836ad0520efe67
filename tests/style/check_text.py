#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Text of every file: licence line, line ends, blanks, tabs, width, and nothing of the machine it was written on."""
import re

from tree import Report, files, read

SUFFIXES = (".c", ".h", ".py", ".lua", ".sql", ".mjs", ".js", ".md", ".build", ".json", ".service", ".socket",
            ".sysusers", ".tmpfiles", ".ini", ".sample", ".txt", ".csv", ".1", ".5", ".8", ".html")
LICENSED = (".c", ".h", ".py", ".lua", ".sql", ".mjs", ".js", ".service", ".socket", ".sysusers", ".tmpfiles")
PROGRAMS = ("dev", ".ci/run")
WIDTH = 120  # of C, clang-format decides
WIDE = (".c", ".h", ".md", ".json", ".csv", ".html", ".txt", ".sample", ".build", ".1", ".5", ".8")
FOREIGN = [
    (re.compile(r"(?<![\w.])/(home|root|work|Users)/\w"), "a path of one machine"),
    (re.compile(r"\.\./shared\b"), "a path outside the tree"),
    (re.compile(r"\bregistry\.[a-z]+|\bdeb\.debian\.org|\"resolved\":"), "the host of a package registry"),
    (re.compile(r"\b(TODO|FIXME|XXX)\b"), "a note to oneself: do it or drop it"),
]
SELF = "tests/style/check_text.py"


def check_lines(report, name, text):
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip() and not name.endswith(".sample"):
            report.add(name, number, "blanks (or a CR) at the end of the line")
        if name.endswith(".py") and "\t" in line:
            report.add(name, number, "a tab")
        width = len(line.expandtabs(8))
        if width > WIDTH and not name.endswith(WIDE):
            report.add(name, number, f"{width} columns; {WIDTH} is the most")
        for pattern, what in FOREIGN:
            if name != SELF and pattern.search(line):
                report.add(name, number, what)


def main():
    report = Report()
    for name in files("*"):
        if not name.endswith(SUFFIXES) and name not in PROGRAMS:
            continue
        text = read(name)
        check_lines(report, name, text)
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            report.add(name, text.count("\n") + 1, "the file is to end with one line end")
        if (name.endswith(LICENSED) or name in PROGRAMS) and "SPDX-License-Identifier: MIT" not in text[:200]:
            report.add(name, 1, "no SPDX line")
    report.finish()


main()
