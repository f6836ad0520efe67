#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Adds up the suites of a test run: tally.py NAME=FILE:STATUS...

FILE is meson's test log (one JSON object a line, cmocka's own counts inside), pytest's JUnit XML, or lines of
`passed NAME` and `failed NAME`; STATUS is the exit status of what wrote it. A suite that ended badly without a
failure in its file counts as one. The last line is `N passed, N failed`.
"""
import json
import re
import sys
import xml.etree.ElementTree
from pathlib import Path


def count_cmocka(test):
    """Passed, failed and skipped of one program; a crash or a time-out is one failure more."""
    text = test.get("stdout", "") + test.get("stderr", "")
    counts = []
    for word in ("PASSED", "FAILED", "SKIPPED"):
        counts.append(sum(int(n) for n in re.findall(rf"^\[  {word}\s*\] (\d+) test\(s\)", text, re.MULTILINE)))
    passed, failed, skipped = counts
    fine = test["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
    if not fine and failed == 0:
        failed = 1
    if fine and passed + failed + skipped == 0:
        passed = 1
    return passed, failed, skipped


def count_meson(path):
    totals = [0, 0, 0]
    for line in path.read_text(encoding="utf-8").splitlines():
        for i, n in enumerate(count_cmocka(json.loads(line))):
            totals[i] += n
    return totals


def count_junit(path):
    totals = [0, 0, 0]
    for suite in xml.etree.ElementTree.parse(path).getroot().iter("testsuite"):
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped = int(suite.get("skipped", 0))
        totals[0] += int(suite.get("tests", 0)) - failed - skipped
        totals[1] += failed
        totals[2] += skipped
    return totals


def count_lines(path):
    words = [line.split()[0] for line in path.read_text(encoding="utf-8").splitlines()]
    return [words.count("passed"), words.count("failed"), 0]


def count(path):
    if not path.exists():
        return [0, 0, 0]
    return {".json": count_meson, ".xml": count_junit, ".txt": count_lines}[path.suffix](path)


def main():
    sums = [0, 0, 0]
    print(f"\n{'suite':12} {'passed':>7} {'failed':>7} {'skipped':>8}")
    for argument in sys.argv[1:]:
        name, rest = argument.split("=", 1)
        file, status = rest.rsplit(":", 1)
        totals = count(Path(file))
        if status != "0" and totals[1] == 0:
            totals[1] = 1
        sums = [a + b for a, b in zip(sums, totals)]
        print(f"{name:12} {totals[0]:7} {totals[1]:7} {totals[2]:8}")
    print(f"{sums[0]} passed, {sums[1]} failed")
    return 1 if sums[1] > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
