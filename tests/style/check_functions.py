#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Functions and files stay short: no function over 100 lines; those over 60, and files over 500, are named."""
from tree import Report, c_files, functions, read

FORBIDDEN = 100
NOTED = 60
LONG_FILE = 500


def main():
    report = Report()
    for name in c_files():
        text = read(name)
        for function, first, last in functions(text):
            lines = last - first - 1
            if lines > FORBIDDEN:
                report.add(name, first, f"{function}() has {lines} lines; {FORBIDDEN} is the most")
            elif lines > NOTED:
                report.note(name, first, f"{function}() has {lines} lines")
        if text.count("\n") > LONG_FILE:
            report.note(name, 1, f"{text.count(chr(10))} lines")
    report.finish()


main()
