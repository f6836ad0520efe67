#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The benchmarks: ./dev bench [NAME...] [--quick]. Each compares within one run, prints a Markdown table, and all
of them leave one JSON file. Without a name, all."""
import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

import company
import rates
import tasks
import teams
from report import Report, in_short
from scene import ROOT, BenchError, Scene, machine
from stack import StackError

BENCHMARKS = {
    "checkin-vs-script": (rates.checkin_vs_script, "Check-ins through musterd, and the same script called directly"),
    "plain-recipe": (rates.plain_recipe, "Check-ins through musterd, and the plain recipe"),
    "latency": (rates.latency, "Latency at 500 connections"),
    "connections": (company.connections, "20,000 connections at once"),
    "close": (company.close, "Closing a day, and a bare insert of the same rows"),
    "memory": (company.memory, "Memory, idle and over a long day's load"),
    "scaling": (company.scaling, "Cost of a check-in, and a close, by the size of the company"),
    "teams": (teams.teams, "A tree of a million teams, and MariaDB beside it"),
    "tasks": (tasks.tasks, "Tasks, beside beanstalkd and BullMQ"),
    "teams-company": (teams.company, "A company of 100,000 people in 500 departments"),
}


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("name", nargs="*", choices=[*BENCHMARKS, []], help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run, not how fast")
    parser.add_argument("--nodes", type=int, help="size of the tree of `teams` (1,000,000; with --quick 20,000)")
    parser.add_argument("--build", default=os.environ.get("MUSTER_BUILD") or str(ROOT / "build"),
                        help="build folder with musterd and the load generators (default: build)")
    parser.add_argument("--json", default=str(ROOT / ".run" / "bench.json"), help="where the results go")
    return parser.parse_args()


def run(args):
    results, targets = {}, []
    with Scene(args.build) as scene:
        scene.nodes = args.nodes or (20_000 if args.quick else 1_000_000)
        for name in args.name or BENCHMARKS:
            function, title = BENCHMARKS[name]
            report, before, begun = Report(name, title), machine(), time.monotonic()
            print(f"bench: {name}", file=sys.stderr, flush=True)
            function(scene, report, args.quick)
            print(report.markdown(), flush=True)
            results[name] = {**report.json(), "machine": before, "seconds": round(time.monotonic() - begun, 1),
                             "quick": args.quick}
            targets += [{**target, "bench": name} for target in report.all_targets()]
    if targets:
        print(in_short(targets), flush=True)
    missed = [f"{t['bench']}: {t['what']}; here {t['value']}" for t in targets if not t["met"]]
    path = Path(args.json)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"bench: results are in {path}; {len(missed)} targets missed", *missed, sep="\n  ", file=sys.stderr)
    return 0


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(arguments())
    except (BenchError, StackError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
