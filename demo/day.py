# SPDX-License-Identifier: MIT
"""The day itself, told as it goes: the import, the check-ins, the close and what comes after it."""
import json
import os
import subprocess
import sys
import time

import redis

import show
from supervisors import MENDED, SETTLED, Reader, connect, queue_exists

SUBSCRIPTION = "muster.sub.region"
REGION = "r1"
REGION_KINDS = ("late", "absent", "withdrawn")


class DemoError(Exception):
    """The day could not be lived to its end; the text says why."""


def wait_until(done, seconds, what, progress=None, tell=None):
    """Polls until `done`; `tell` gives what the progress line says meanwhile."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise DemoError(f"{what}: not within {seconds} s" + (f" ({tell()})" if tell else ""))
        if progress:
            progress.set(tell())
        time.sleep(0.05)


class Load:
    """Runs the load generator, and adds up what all its runs have seen."""

    def __init__(self, build, port, directory):
        self.binary, self.port, self.file = str(build / "bench" / "load"), port, directory / "commands"
        self.answered = self.duplicates = 0

    def run(self, commands, connections, depth):
        self.file.write_text("\n".join(commands) + "\n", encoding="utf-8")
        done = subprocess.run(
            [self.binary, "--port", str(self.port), "--connections", str(min(connections, len(commands))),
             "--depth", str(depth), "--commands", str(self.file), "--count", "state", "--count", "duplicate"],
            stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise DemoError(f"the load generator ended with {done.returncode}")
        result = json.loads(done.stdout)
        if result["errors"]:
            raise DemoError(f"check-ins were refused: {result['errors']}")
        self.answered += result["answered"]
        self.duplicates += result["fields"]["duplicate"].get("1", 0)
        return result


class Day:
    def __init__(self, company, stack):
        self.company, self.stack, self.clock = company, stack, company.clock
        self.env = self.environment()
        self.muster = redis.Redis(port=stack["musterd"].port(), decode_responses=True, socket_timeout=90)
        self.load = Load(stack.build, stack["musterd"].port(), stack.dir)
        self.amqp = {"port": stack["rabbitmq"].port(), "user": stack.state["amqp_user"],
                     "password": stack.state["amqp_password"]}
        self.readers = []
        self.office = self.region = None
        self.patience = 60 + len(company.people) // 1000  # seconds, for what takes long when there are many
        self.checks = []  # (what, wanted, found) of the day itself

    def environment(self):
        """Of `muster`: where the servers are, and nothing of what the caller may have set for others."""
        mine = {k: v for k, v in os.environ.items() if not k.startswith(("MUSTER_", "AMQP_"))}
        servers = {key: str(value) for key, value in self.stack.env().items()}
        return {**mine, **servers, "HOME": str(self.stack.dir), "TZ": self.clock.zone, "MUSTER_HOST": "127.0.0.1",
                "AMQP_HOST": "127.0.0.1", "AMQP_VHOST": "/"}

    def ask(self, *words):
        return self.muster.execute_command(*words)

    def ask_map(self, *words):
        reply = self.ask(*words)
        return dict(zip(reply[::2], reply[1::2]))

    def cli(self, *words, **options):
        """The `muster` command line tool."""
        done = subprocess.run([str(self.stack.build / "cli" / "muster"), *words], env=self.env,
                              stdin=subprocess.DEVNULL, check=False, **options)
        if done.returncode != 0:
            raise DemoError(f"muster {' '.join(words)} ended with {done.returncode}")
        return done.stdout

    def set_clock(self, moment):
        self.ask("CLOCK.SET", moment)

    def await_ready(self):
        def ready():
            try:
                self.ask("STATUS", "nobody")
            except redis.ResponseError as error:
                return str(error).startswith("UNKNOWN")
            except redis.ConnectionError:
                return False
            return True
        wait_until(ready, 60, "musterd takes commands")

    # ---- before the doors open ----

    def prepare(self):
        self.await_ready()
        wait_until(lambda: queue_exists(self.amqp, "muster.supervisors"), 60, "musterd has made its queues")
        self.set_clock(self.clock.at("06:00"))
        self.office = Reader(self.amqp, "muster.supervisors", self.clock.day.isoformat())
        self.readers.append(self.office)

    def import_company(self):
        path = self.stack.dir / "company.csv"
        self.company.write_csv(path)
        show.line(f"   $ muster import {path}")
        output = self.cli("import", str(path), stdout=subprocess.PIPE, text=True, stderr=sys.stderr)
        for row in output.splitlines():
            show.line(f"   {row}")

    def subscribe(self):
        """A supervisor's own queue; two people of this demo read notices."""
        words = ("subscribe", "region", REGION, "--what", ",".join((*REGION_KINDS, "closed")))
        show.line(f"   $ muster {' '.join(words)}")
        show.line(f"   {self.cli(*words, stdout=subprocess.PIPE, text=True).strip()}")
        self.region = Reader(self.amqp, SUBSCRIPTION, self.clock.day.isoformat(), refuse=True)
        self.readers.append(self.region)

    # ---- check-ins ----

    def live(self, name, begin, end, connections=100, depth=8):
        """All that is said from `begin` to before `end`, moment by moment."""
        moments = sorted(m for m in self.company.schedule if begin <= m < end)
        progress, results = show.Progress(name), []
        for moment in moments:
            self.set_clock(moment)
            commands = self.company.schedule[moment]
            results.append(self.load.run(commands, connections, depth))
            count = sum(r["answered"] for r in results)
            progress.set(f"{count:,} check-ins")
        seconds = sum(r["seconds"] for r in results) or 1
        count = sum(r["answered"] for r in results)
        p99 = show.milliseconds(max((r["latency_us"]["p99"] for r in results), default=0))
        most = max((r["connections"] for r in results), default=0)
        progress.end(f"{count:,} check-ins on {most} connections, {count / seconds:,.0f}/s, p99 at most {p99}")

    def tell_notices(self):
        events, messages = self.office.count("events"), self.office.count("messages")
        show.line(f"   told so far: {events:,} notices in {messages:,} messages")

    def live_rush(self):
        """Everybody at once; a few are watched: what they read on another connection right after."""
        moment = self.clock.at("08:55")
        self.set_clock(moment)
        commands = self.company.schedule[moment]
        result = self.load.run(commands, 500, 1)
        latency = result["latency_us"]
        show.line(f"   {result['answered']:,} people on {result['connections']} connections, each with one command "
                  "at a time:")
        show.line(f"   {result['rate']:,.0f}/s; p50 {show.milliseconds(latency['p50'])}, "
                  f"p90 {show.milliseconds(latency['p90'])}, p99 {show.milliseconds(latency['p99'])}, "
                  f"slowest {show.milliseconds(latency['max'])}; "
                  f"answers: {', '.join(f'{n:,} {state}' for state, n in result['fields']['state'].items())}")
        other = redis.Redis(port=self.stack["musterd"].port(), decode_responses=True, socket_timeout=30)
        seen = 0
        for person in self.company.watched:
            self.ask("CHECKIN", person.id, "IN")
            reply = other.execute_command("STATUS", person.id)
            status = dict(zip(reply[::2], reply[1::2]))
            seen += status["state"] == "present" and int(status["in"]) == moment
        other.close()
        self.load.answered += len(self.company.watched)
        self.checks.append(("saw themselves at once, on another connection", len(self.company.watched), seen))

    def show_refused(self):
        """A reader whose battery was empty thinks it is the year 2000: not counted, but not lost either."""
        refused = 0
        for person in self.company.watched[:self.company.misdated]:
            try:
                self.ask("CHECKIN", person.id, "IN", "AT", "2000-01-01T00:03:00Z", "SOURCE", "gate-3")
            except redis.ResponseError as error:
                refused += str(error).startswith("TIME ")
                answer = error
        show.line(f"   gate 3 thinks it is the year 2000; answer: {answer}")
        self.checks.append(("punches of the year 2000, refused", self.company.misdated, refused))

    def show_status(self):
        person = next(p for p in self.company.people if p.plan == "a_millisecond_late")
        show.line(f"   $ muster status {person.id}")
        for row in self.cli("status", person.id, stdout=subprocess.PIPE, text=True).splitlines():
            show.line(f"   {row}")

    def count_roll(self):
        """At half past ten, of the whole company."""
        self.set_clock(self.clock.at("10:30"))
        begun = time.monotonic()
        counts = self.ask_map("ROLL.COUNT", "company", "SUBTREE")
        elapsed = (time.monotonic() - begun) * 1000
        wanted = {**dict.fromkeys(("not_yet", "present", "late", "early", "late_early", "missing_in", "missing_out",
                                   "absent"), 0), **self.company.morning()}
        found = {state: counts[state] for state in wanted}
        show.line(f"   10:30, ROLL.COUNT company SUBTREE, {elapsed:.0f} ms: "
                  + ", ".join(f"{n:,} {state}" for state, n in found.items() if n))
        self.checks.append(("ROLL.COUNT at 10:30, people as planned", len(self.company.people),
                            counts["total"] if found == wanted else f"{found}"))

    # ---- what the supervisor would not take ----

    def parked_count(self):
        connection = connect(self.amqp)
        count = connection.channel().queue_declare("muster.parked", passive=True).method.message_count
        connection.close()
        return count

    def replay_parked(self):
        self.region.set_mood(SETTLED)
        poison, once = self.region.count("always"), self.region.count("once")
        show.line(f"   the supervisor of region 1 rejects {once} messages once and {poison} every time; "
                  f"delays are 1, 2 and 3 s")
        progress = show.Progress("rejected for good")
        wait_until(lambda: self.parked_count() >= poison, 60, "the messages that are always rejected are parked",
                   progress, lambda: f"{self.parked_count()} of {poison} parked")
        progress.end(f"{poison} parked after the last delay")
        parked = self.ask("NOTICE.PARKED", "COUNT", 100)
        rows = [dict(zip(item[::2], item[1::2])) for item in parked]
        for row in rows[:2]:
            show.line(f"   parked: {row['type']} for {row['queue']}, {row['attempts']} attempts, reason "
                      f"{row['reason']}, id {row['id']}")
        attempts = {row["attempts"] for row in rows}
        self.checks.append(("parked messages shown by NOTICE.PARKED", poison, len(rows)))
        self.checks.append(("attempts of each parked message", "4", " ".join(map(str, sorted(attempts)))))
        self.region.set_mood(MENDED)
        replayed = self.ask("NOTICE.REPLAY", "COUNT", 100)
        show.line(f"   he mends his program; NOTICE.REPLAY sends {replayed} again")
        self.checks.append(("sent again by NOTICE.REPLAY", poison, replayed))
        wanted = self.region.count("once") + poison
        wait_until(lambda: self.region.count("recovered") >= wanted, 30, "what was rejected is taken at last",
                   tell=lambda: f"{self.region.count('recovered')} of {wanted}")

    # ---- the close ----

    def close(self, sql):
        people, day = len(self.company.people), self.clock.day.isoformat()
        self.set_clock(self.clock.at("04:05", 1))
        progress, begun = show.Progress("closing"), time.monotonic()

        def written():
            return sql("SELECT COUNT(*), CAST(IFNULL(SUM(written), 0) AS SIGNED), "
                       "CAST(IFNULL(SUM(absent), 0) AS SIGNED) FROM day_close "
                       "WHERE work_date = %s AND finished IS NOT NULL", day)[0]
        wait_until(lambda: written()[0] == len(self.company.staffed()), self.patience, "the day is closed",
                   progress, lambda: "{:,} departments, {:,} rows".format(*written()))
        departments, rows, absent = written()
        seconds = time.monotonic() - begun
        progress.end(f"{departments:,} departments, {rows:,} of {people:,} rows, {absent:,} absent, "
                     f"{rows / seconds:,.0f} rows/s")

    def settle(self, sql):
        """Until everything that is under way has arrived; what then is missing is missing."""
        day = self.clock.day.isoformat()
        punches = sum(len(p.raw) for p in self.company.people)
        staffed = self.company.staffed()
        made = len(self.company.departments) + 1  # department 0
        notices = sum(self.company.notices().values()) + made + len(staffed)
        below = sum(self.company.notices(REGION_KINDS, REGION).values())
        closed = sum(d.id in staffed and REGION in (d.id, *d.path) for d in self.company.departments)
        progress = show.Progress("under way")

        def ledger():
            return sql("SELECT COUNT(*) FROM attendance_event WHERE work_date = %s", day)[0][0]

        def tell():
            return (f"{self.office.count('events'):,} of {notices:,} notices read, "
                    f"{ledger():,} of {punches:,} raw events written")
        try:
            wait_until(lambda: self.office.count("events") >= notices and self.region.count("events") >= below + closed
                       and ledger() >= punches, self.patience, "everything has arrived", progress, tell)
        except DemoError as error:
            show.line(f"   {error}")
        progress.end(tell())

    def stop(self):
        for reader in self.readers:
            reader.stop()
        self.muster.close()
