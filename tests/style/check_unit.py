#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The systemd unit is valid, and its exposure is at most 1.5 as systemd-analyze counts it."""
import re
import shutil
import subprocess

from tree import ROOT, Report

UNIT = "etc/musterd.service"
LIMIT = 1.5
# Of the machine that checks, not of the unit: nothing is installed there.
EXPECTED = re.compile(r"is not executable: No such file|Command 'man ")


def analyze(*arguments):
    command = ["systemd-analyze", *arguments, str(ROOT / UNIT)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main():
    report = Report()
    if shutil.which("systemd-analyze") is None:
        print(f"{UNIT}: not checked, there is no systemd-analyze")
        report.finish()
    for line in analyze("verify").stderr.splitlines():
        if "musterd.service" in line and not EXPECTED.search(line):
            report.add(UNIT, 1, line)
    done = analyze("security", "--offline=true", "--no-pager")
    level = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    if level is None:
        report.add(UNIT, 1, f"systemd-analyze gives no exposure level: {done.stderr}")
    elif float(level.group(1)) > LIMIT:
        report.add(UNIT, 1, f"exposure level {level.group(1)}; {LIMIT} is the most")
    report.finish()


main()
