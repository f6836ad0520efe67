# SPDX-License-Identifier: MIT
"""What the style checks share: the files of the tree, C text without comments and strings, and its functions."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = ("base", "rules", "persist", "mq", "handlers", "daemon", "cli")
ALL_C = CODE + ("tests", "fuzz", "bench")
SKIPPED = {".git", ".run", "node_modules", "__pycache__", ".pytest_cache"}


def files(pattern, folders=("",)):
    """Paths relative to the root, sorted, without what is built or fetched."""
    found = set()
    for folder in folders:
        for path in (ROOT / folder).rglob(pattern):
            parts = path.relative_to(ROOT).parts
            if path.is_file() and not SKIPPED & set(parts) and not parts[0].startswith("build"):
                found.add("/".join(parts))
    return sorted(found)


def c_files(folders=ALL_C):
    return [f for f in files("*.[ch]", folders)]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def bare(text):
    """C text with comments blanked and strings emptied; lines keep their numbers."""
    def blank(match):
        token = match.group()
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + token[0]
    return TOKEN.sub(blank, text)


def functions(text):
    """(name, first line, last line) of each function, by the house's layout: braces in the first column."""
    lines = bare(text).splitlines()
    found = []
    begin = None
    for number, line in enumerate(lines, 1):
        if line == "{" and number > 1:
            begin = number
        elif line.startswith("}") and begin is not None:
            found.append((name_above(lines, begin - 1), begin, number))
            begin = None
    return found


def name_above(lines, brace):
    """The name in the head of a function whose `{` is at lines[brace]."""
    head = []
    for line in reversed(lines[:brace]):
        if line == "" or line.startswith(("}", "#")) or line.rstrip().endswith(";"):
            break
        head.insert(0, line)
    names = re.findall(r"(\w+)\s*\(", " ".join(head))
    names = [n for n in names if n not in ("__attribute__", "format")]
    return names[0] if names else "?"


class Report:
    """Prints findings as path:line: text. finish() ends the program: 1 when there was one."""

    def __init__(self):
        self.count = 0

    def add(self, name, line, text):
        print(f"{name}:{line}: {text}")
        self.count += 1

    def note(self, name, line, text):
        print(f"{name}:{line}: note: {text}")

    def finish(self):
        sys.exit(1 if self.count else 0)
