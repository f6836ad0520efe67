#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A company's day with Muster, from the first check-in to the closed books, on servers of its own.

Starts Redis, RabbitMQ, MariaDB and musterd in a scratch folder, imports a company, lives a day on a clock that is
held and moved, and reads everything back from the three stores to see that it adds up. Exit code 0: it does.
The programs are taken from build/, or from the folder that MUSTER_BUILD names."""
import argparse
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pika
import pymysql
import redis

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))

import show  # noqa: E402
from company import Clock, Company  # noqa: E402
from day import Day, DemoError  # noqa: E402
from reconcile import Database, reconcile  # noqa: E402
from stack import SERVERS, Stack, StackError  # noqa: E402

# What the stores and their clients say when one of them is not there as it should be.
TROUBLES = (StackError, DemoError, redis.RedisError, pymysql.MySQLError, pika.exceptions.AMQPError, RuntimeError)
ZONE = "Europe/Berlin" if Path("/usr/share/zoneinfo/Europe/Berlin").exists() else "UTC"


def arguments():
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--employees", type=int, default=100_000, metavar="N", help="100000 by default, at least 100")
    parser.add_argument("--departments", type=int, default=500, metavar="N", help="500 by default, at least 10")
    parser.add_argument("--keep", action="store_true", help="leave everything running and say how to look around")
    args = parser.parse_args()
    if args.employees < 100 or args.departments < 10:
        parser.error("at least 100 employees and 10 departments")
    return args


def start_servers(stack):
    def report(text):
        show.line(f"   {text}")
    stack.start(SERVERS, report)
    amqp = {**stack["musterd"].config()["amqp"], "delays": "1s 2s 3s"}
    stack.musterd_config = {"amqp": amqp, "day": {"timezone": ZONE}}
    stack.start(["musterd"], report)


def live(company, day, sql):
    at = company.clock.at
    show.heading(f"{company.clock.day}, 06:00 in {ZONE}: the company is imported")
    day.prepare()
    day.import_company()
    day.subscribe()
    show.heading("07:00: people come")
    day.live("07:00 to 08:50", at("07:00"), at("08:55"))
    show.heading(f"08:55: the morning rush, {len(company.schedule[at('08:55')]):,} people at once")
    day.live_rush()
    day.tell_notices()
    show.heading("09:00: in time to the millisecond, and late")
    day.live("09:00:00.000 and .001", at("09:00"), at("09:05"))
    day.show_status()
    day.live("stragglers until 10:25, and gate 7 delivers", at("09:05"), at("10:30"))
    day.show_refused()
    day.count_roll()
    show.heading("12:00: lunch, and those who leave early")
    day.live("out for lunch and back", at("12:00"), at("13:00"))
    day.live("gone before 18:00", at("13:00"), at("18:00"))
    show.heading("18:00: the evening")
    day.live("18:00 to 19:30", at("18:00"), at("20:00"))
    day.live("01:30, still the same work date", at("20:00"), at("04:00", 1))
    day.tell_notices()
    show.heading("what the supervisor would not take")
    day.replay_parked()
    show.heading("04:05 of the next day: the books are closed")
    day.close(sql)
    show.heading("06:00: the reader of the warehouse comes back with yesterday's punches")
    day.live("after the close", at("06:00", 1), at("07:00", 1))
    day.settle(sql)


def run(stack, args):
    """0 when everything adds up."""
    company = Company(args.employees, args.departments, Clock(ZONE))
    show.line(f"   {len(company.people):,} people in {len(company.departments):,} departments on four levels; "
              f"{sum(len(p.raw) for p in company.people):,} punches to come")
    day, sql = Day(company, stack), Database(stack)
    try:
        live(company, day, sql)
        show.heading("the reconciliation, from MySQL, RabbitMQ and Redis")
        wrong = reconcile(company, day, sql, stack, day.office.finish(), day.region.finish())
    finally:
        day.stop()
        sql.close()
    show.line()
    show.line(f"{wrong} checks are WRONG" if wrong else "Everything adds up.")
    return 1 if wrong else 0


def say_how_to_look(stack):
    env = stack.dir / "stack.env"
    muster = stack.build / "cli" / "muster"
    show.line(f"""
Everything is still running; its clock stands at 06:00 of the next day. To look around:
  . {env}; export MUSTER_PORT AMQP_PORT AMQP_USER AMQP_PASSWORD
  {muster} roll t1        {muster} status e000001        {muster} info
  redis-cli -p $MUSTER_PORT          then: HELP, STATUS e000001, ROLL.COUNT company SUBTREE, INFO
  redis-cli -p $REDIS_PORT           the keys begin with muster:
  mysql -h 127.0.0.1 -P $MYSQL_PORT -u $MYSQL_USER -p$MYSQL_PASSWORD $MYSQL_DATABASE
                                     then: SELECT * FROM daily_department LIMIT 10;
To end and remove it:
  {ROOT / 'tools' / 'stack.py'} --dir {stack.dir} down --discard""")


def end_on_signal(number, _frame):
    raise SystemExit(128 + number)


def main():
    args = arguments()
    sys.stdout.reconfigure(line_buffering=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_on_signal)
    folder = Path(tempfile.mkdtemp(prefix="muster-demo.", dir="/tmp"))
    folder.chmod(0o755)  # MariaDB runs as its own user
    stack = Stack(folder, build=os.environ.get("MUSTER_BUILD"), held_clock=True)
    code, kept = 1, False
    try:
        show.heading(f"servers of its own in {folder}")
        start_servers(stack)
        code = run(stack, args)
        kept = args.keep
    except KeyboardInterrupt:
        show.line("\ninterrupted")
        code = 130
    except TROUBLES as error:
        print(f"\ndemo: {type(error).__name__}: {error}\n{stack['musterd'].log_tail()}", file=sys.stderr)
        kept = args.keep
    finally:
        if not kept:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            stack.stop(discard=True)
            shutil.rmtree(folder, ignore_errors=True)
    if kept:
        say_how_to_look(stack)
    return code


if __name__ == "__main__":
    sys.exit(main())
