# SPDX-License-Identifier: MIT
"""How the demo talks: short lines, the time of the held clock in front."""
import sys
import time

BEGUN = time.monotonic()


def line(text=""):
    print(text, flush=True)


def heading(text):
    line()
    line(f"== {text} ({time.monotonic() - BEGUN:.0f} s)")


def number(n):
    return f"{n:,}"


def milliseconds(us):
    return f"{us / 1000:.1f} ms" if us < 99_500 else f"{us / 1_000_000:.2f} s"


def table(rows, indent="   "):
    """Columns as wide as their widest cell: the first and the last to the left, those between to the right."""
    rows = [[number(cell) if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for first, *middle, last in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(middle, widths[1:])), last]
        line(indent + "  ".join(cells).rstrip())


class Progress:
    """One line that is rewritten on a terminal; elsewhere only its end is printed."""

    def __init__(self, text):
        self.text, self.begun, self.drawn = text, time.monotonic(), 0.0
        self.terminal = sys.stdout.isatty()

    def set(self, text):
        now = time.monotonic()
        if self.terminal and now - self.drawn > 0.1:
            self.drawn = now
            print(f"\r\033[K   {self.text}: {text}", end="", flush=True)

    def end(self, text):
        start = "\r\033[K" if self.terminal else ""
        line(f"{start}   {self.text}: {text}, {time.monotonic() - self.begun:.1f} s")
