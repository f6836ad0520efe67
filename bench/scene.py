# SPDX-License-Identifier: MIT
"""What a benchmark plays on: servers and a daemon of its own, a company imported into it, load generators, and a
look at what each process has used. Everything is in one scratch folder and is gone afterwards."""
import contextlib
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from binascii import crc_hqx
from datetime import date, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

import pymysql  # noqa: E402
import redis  # noqa: E402

import stack as servers  # noqa: E402
from harness.raw import ErrorReply, Raw  # noqa: E402

DAY = date.today() + timedelta(days=7)  # the first work date; the clock is held and moved
TICKS = os.sysconf("SC_CLK_TCK")
IDS_SEED = 7411


class BenchError(Exception):
    """Something did not answer, or answered wrongly; the text says what."""


def wait_until(done, seconds, what):
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise BenchError(f"{what}: not within {seconds} s")
        time.sleep(0.05)


def employee(number):
    return f"e{number:012}"


def department(number):
    return f"d{number}"


def at(day, text):
    """Milliseconds of a time of day, UTC, of the n-th work date."""
    hour, minute = (int(part) for part in text.split(":"))
    days = (DAY + timedelta(days=day)).toordinal() - date(1970, 1, 1).toordinal()
    return (days * 1440 + hour * 60 + minute) * 60_000


def day_text(day):
    return (DAY + timedelta(days=day)).isoformat()


PARTITION_TAGS = re.findall(r'"(p\d+\w*)"', (ROOT / "persist" / "partition.c").read_text(encoding="utf-8"))


def tag_of(dept):
    """The hash tag of a department's keys, as musterd computes it."""
    return PARTITION_TAGS[crc_hqx(dept.encode(), 0) % len(PARTITION_TAGS)]


def cpu_seconds(pid):
    """Processor time of a living process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def machine():
    """Cores, processor and load, for the report."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*:\s*(.*)", text)
    return {"cores": os.cpu_count(), "processor": model.group(1) if model else "unknown",
            "load": round(os.getloadavg()[0], 2)}


@contextlib.contextmanager
def paused(scene, *names):
    """Servers that do nothing for a while."""
    for name in names:
        scene.stack.pause(name)
    try:
        yield
    finally:
        for name in names:
            scene.stack.resume(name)


class Scene:
    def __init__(self, build, directory=None):
        self.build = Path(build).resolve()
        self.dir = Path(tempfile.mkdtemp(prefix="muster-bench.", dir=directory))
        self.dir.chmod(0o755)
        self.stack = servers.Stack(self.dir / "stack", build=self.build, held_clock=True)
        self.number = 0
        self.employees = self.departments = 0
        self.raw = None

    def __enter__(self):
        self.stack.start(servers.SERVERS)
        self.redis = redis.Redis(port=self.stack["redis"].port(), decode_responses=True)
        self.redis.config_set("auto-aof-rewrite-percentage", 0)  # a rewrite in the middle would fall on one side only
        return self

    def __exit__(self, *_):
        for name in servers.SERVERS:
            self.stack.resume(name)
        self.stack.stop(discard=True)
        subprocess.run(["rm", "-rf", str(self.dir)], check=False)

    # ---- a fresh daemon and its company ----

    def fresh(self, employees=0, departments=500, config=None):
        """A daemon on empty stores, at 06:00 of the first day, with a company imported. Seconds of the import."""
        self.close_raw()
        self.stack.stop(["musterd"])
        state = self.stack.state
        previous, self.number = f"b{self.number}", self.number + 1
        name = f"b{self.number}"
        self.redis.flushall()
        if self.number > 1:
            self.stack["rabbitmq"].delete_vhost(previous)
            self.sql(f"DROP DATABASE `muster_{previous}`", database=None)
        self.stack["rabbitmq"].add_vhost(name)
        self.sql(f"CREATE DATABASE `muster_{name}` CHARACTER SET utf8mb4", database=None)
        self.stack.musterd_config = {
            "amqp": {"port": self.stack["rabbitmq"].port(), "user": state["amqp_user"],
                     "password": state["amqp_password"], "vhost": name},
            "mysql": {"port": self.stack["mariadb"].port(), "user": state["mysql_user"],
                      "password": state["mysql_password"], "database": f"muster_{name}", "timeout": "5m"},
            "day": {"timezone": "UTC", "close_auto": "no"},
            **(config or {}),
        }
        self.stack.start(["musterd"])
        self.await_commands()
        self.set_clock(at(0, "06:00"))
        self.employees, self.departments = employees, departments
        return self.import_company() if employees else 0

    def await_commands(self):
        wait_until(lambda: not str(self.ask("STATUS", "nobody")).startswith(("NOTREADY", "UNAVAILABLE")), 60,
                   "musterd takes commands")

    def import_company(self):
        """A tree of departments, eight below each, and people spread evenly over all of them."""
        path = self.dir / "company.csv"
        with open(path, "w", encoding="utf-8") as f:
            f.write("kind,id,parent,name,manager\n")
            for i in range(self.departments):
                f.write(f"department,{department(i)},{department((i - 1) // 8) if i else ''},Department {i},\n")
            for i in range(self.employees):
                f.write(f"employee,{employee(i)},{department(i % self.departments)},Employee Number {i},\n")
        begun = time.monotonic()
        done = subprocess.run([str(self.build / "cli" / "muster"), "--port", str(self.port()), "import", str(path)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BenchError(f"muster import: {done.stdout}{done.stderr}")
        seconds = time.monotonic() - begun
        self.write_ids(range(self.employees), self.dir / "ids")
        self.drain()
        return seconds

    @staticmethod
    def write_ids(numbers, path):
        """People arrive in no order."""
        numbers = list(numbers)
        random.Random(IDS_SEED).shuffle(numbers)
        path.write_text("".join(employee(i) + "\n" for i in numbers), encoding="utf-8")
        return path

    # ---- talking to the daemon and its stores ----

    def port(self):
        return self.stack["musterd"].port()

    def close_raw(self):
        if self.raw is not None:
            self.raw.close()
        self.raw = None

    def ask(self, *words, timeout=7200):
        """A reply; an error as its text."""
        for attempt in (1, 2):
            try:
                if self.raw is None:
                    self.raw = Raw(self.port(), timeout)
                reply = self.raw.command(*words)
                return str(reply) if isinstance(reply, ErrorReply) else reply
            except (OSError, EOFError):
                self.close_raw()
                if attempt == 2:
                    raise
        return None

    def set_clock(self, moment):
        reply = self.ask("CLOCK.SET", moment)
        if reply != "OK":
            raise BenchError(f"CLOCK.SET: {reply}")

    def begin_day(self, day):
        """08:00 of a work date, with its maps made."""
        self.set_clock(at(day, "08:00"))
        wait_until(lambda: self.info()["Day"]["maps_ready"] == "1", 600, "the day's maps are made")

    def info(self):
        """{section: {field: text}} of INFO."""
        found, section = {}, {}
        for line in self.ask("INFO").decode().splitlines():
            if line.startswith("# "):
                section = found.setdefault(line[2:], {})
            elif ":" in line:
                key, value = line.split(":", 1)
                section[key] = value
        return found

    def is_drained(self):
        info = self.info()
        return all(info[cursor]["idle"] == "1" and info[cursor]["lag_ms"] == "0" for cursor in ("Relay", "Ledger"))

    def drain(self, seconds=3600):
        """Until notices are confirmed and history is written. How long that took."""
        begun = time.monotonic()
        wait_until(self.is_drained, seconds, "the journal is drained")
        return time.monotonic() - begun

    def sql(self, query, args=(), database=""):
        """Rows as tuples; database "" is the daemon's, None is none, as root."""
        state, root = self.stack.state, database is None
        connection = pymysql.connect(
            host="127.0.0.1", port=self.stack["mariadb"].port(), autocommit=True, charset="utf8mb4",
            user="root" if root else state["mysql_user"],
            password=state["mysql_root_password"] if root else state["mysql_password"],
            database=None if root else f"muster_b{self.number}")
        with connection, connection.cursor() as cursor:
            cursor.execute(query, args or None)
            return cursor.fetchall()

    # ---- what processes use ----

    def cpu(self):
        """Seconds of processor time so far: each server, and the load generators that have ended."""
        used = {name: cpu_seconds(self.stack[name].main_pid()) for name in servers.ALL}
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {**used, "clients": children.ru_utime + children.ru_stime}

    def resident(self):
        """MiB of musterd."""
        return servers.resident(self.stack["musterd"].main_pid()) / 1024

    # ---- load generators ----

    def program(self, name, *words, allow=(0,)):
        done = subprocess.run([str(self.build / "bench" / name), *map(str, words)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode not in allow:
            raise BenchError(f"{name} ended with {done.returncode}: {done.stderr}{done.stdout}")
        return json.loads(done.stdout)

    def load(self, *words, port=None, connections=50, depth=1, errors_allowed=False):
        result = self.program("load", "--port", port or self.port(), "--connections", connections, "--depth", depth,
                              "--patience", 300, *words)
        if result["errors"] and not errors_allowed:
            raise BenchError(f"commands were refused: {result['errors']}")
        return result

    def check_in(self, direction, ids=None, **options):
        """Everybody once."""
        return self.load("--ids", ids or self.dir / "ids", "CHECKIN", "{}", direction, **options)

    def redis_benchmark(self, requests, keyspace, words, connections=50):
        """Requests a second."""
        done = subprocess.run(
            ["redis-benchmark", "-h", "127.0.0.1", "-p", str(self.stack["redis"].port()), "-c", str(connections),
             "-n", str(requests), "-r", str(keyspace), "--csv", *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        lines = done.stdout.strip().splitlines()
        if done.returncode != 0 or not lines or "Error" in done.stdout:
            raise BenchError(f"redis-benchmark: {done.stdout[-500:]}{done.stderr[-500:]}")
        return float(lines[-1].rsplit('","', 7)[1])
