#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each header compiles alone and twice, and is guarded by the name that its path gives."""
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

from tree import ROOT, Report, files, read

LIBRARIES = ("libevent", "hiredis", "librabbitmq", "libmariadb", "jansson", "inih")


def library_flags():
    flags = []
    for library in LIBRARIES:
        done = subprocess.run(["pkg-config", "--cflags", library], capture_output=True, text=True, check=False)
        flags += done.stdout.split()
    return flags


def compile_alone(name, flags):
    source = f'#include "{name}"\n#include "{name}"\nstruct nothing;\n'
    return subprocess.run(
        [os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
         f"-I{ROOT}", *flags, "-x", "c", "-"], input=source, capture_output=True, text=True, cwd=ROOT, check=False)


def main():
    report = Report()
    names = files("*.h", ("base", "rules", "persist", "mq", "handlers", "daemon", "cli", "tests"))
    flags = library_flags()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, done in zip(names, pool.map(lambda n: compile_alone(n, flags), names)):
            if done.returncode != 0:
                report.add(name, 1, "does not compile alone:\n" + done.stderr)
    for name in names:
        guard = re.sub(r"\W", "_", name).upper()
        if f"#ifndef {guard}\n#define {guard}\n" not in read(name):
            report.add(name, 1, f"is to be guarded by {guard}")
    report.finish()


main()
