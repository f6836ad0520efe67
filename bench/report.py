# SPDX-License-Identifier: MIT
"""What a benchmark found, as Markdown for people and as JSON for programs."""
from statistics import median


class Report:
    def __init__(self, name, title):
        self.name, self.title = name, title
        self.columns, self.rows, self.notes, self.targets, self.data = [], [], [], [], {}
        self.parts = []

    def part(self, title):
        """A table of its own within the report."""
        self.parts.append(Report(None, title))
        return self.parts[-1]

    def table(self, *columns):
        self.columns = list(columns)

    def row(self, *cells):
        self.rows.append([cell if isinstance(cell, str) else number(cell) for cell in cells])

    def note(self, text):
        self.notes.append(text)

    def target(self, what, value, met):
        """What was to be reached, and what was; `met` is True or False."""
        self.targets.append({"what": what, "value": value, "met": bool(met)})

    def markdown(self):
        lines = [f"### {self.title}", "", f"`./dev bench {self.name}`", ""] if self.name else [f"#### {self.title}", ""]
        if self.rows:
            lines += ["| " + " | ".join(self.columns) + " |", "|" + "---|" + "---:|" * (len(self.columns) - 1)]
            lines += ["| " + " | ".join(row) + " |" for row in self.rows] + [""]
        lines += [f"- {'Met' if t['met'] else '**Missed**'}: {t['what']}; here {t['value']}." for t in self.targets]
        lines += [f"- {note}" for note in self.notes]
        return "\n".join(lines) + "\n" + "".join("\n" + part.markdown() for part in self.parts)

    def all_targets(self):
        return [target for report in (self, *self.parts) for target in report.targets]

    def json(self):
        return {"title": self.title, "columns": self.columns, "rows": self.rows, "targets": self.targets,
                "notes": self.notes, "data": self.data, "parts": [part.json() for part in self.parts]}


def in_short(targets):
    """The table that stands at the head of doc/performance.md, of these targets."""
    lines = ["### In short", "", "| what was to be reached | here | |", "|---|---|---|"]
    lines += [f"| {t['what']} | {t['value']} | {'met' if t['met'] else '**missed**'} |" for t in targets]
    return "\n".join(lines) + "\n"


def number(value):
    if isinstance(value, float) and abs(value) < 100:
        return f"{value:,.2f}"
    return f"{value:,.0f}"


def spread(values):
    """Median, and what it lies between."""
    return f"{median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def milliseconds(us):
    return f"{us / 1000:,.1f} ms"
