# SPDX-License-Identifier: MIT
"""One musterd of a test: its own configuration, port, key prefix in Redis, vhost and database."""
import contextlib
import itertools
import os
import re
import signal
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pika
import pymysql
import redis

import stack as servers
from harness.raw import ErrorReply, Raw
from harness.wait import wait_until

COUNTER = itertools.count(1)
NOT_YET = ("NOTREADY", "UNAVAILABLE", "LOADING")
# What a sanitizer writes; such a daemon has failed its test whatever the test saw.
COMPLAINT = re.compile(r"ERROR: (Address|Leak|Undefined)Sanitizer|runtime error:|SUMMARY: \w+Sanitizer")


class Stores:
    """Where one or more daemons of a test keep their data, and a second opinion on what is there."""

    def __init__(self, stack):
        self.stack = stack
        self.name = f"t{os.getpid()}_{next(COUNTER)}"
        self.prefix = f"{self.name}:"
        self.database = f"{stack.state['mysql_database']}_{self.name}"
        self.connections = []
        self.redis = redis.Redis(port=stack["redis"].port(), decode_responses=True, socket_timeout=10)
        stack["rabbitmq"].add_vhost(self.name)
        self.execute_as_root(f"CREATE DATABASE `{self.database}` CHARACTER SET utf8mb4")

    def execute_as_root(self, statement):
        connection = pymysql.connect(host="127.0.0.1", port=self.stack["mariadb"].port(), user="root",
                                     password=self.stack.state["mysql_root_password"])
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def sql(self, query, args=()):
        """Rows as dicts; each call sees what is committed by then."""
        state = self.stack.state
        connection = pymysql.connect(
            host="127.0.0.1", port=self.stack["mariadb"].port(), user=state["mysql_user"],
            password=state["mysql_password"], database=self.database, autocommit=True, charset="utf8mb4",
            cursorclass=pymysql.cursors.DictCursor, read_timeout=60)
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(query, args)
            return list(cursor.fetchall())

    def amqp(self):
        """A channel of a connection of its own; ended with the test."""
        state = self.stack.state
        connection = pika.BlockingConnection(pika.ConnectionParameters(
            "127.0.0.1", self.stack["rabbitmq"].port(), self.name,
            pika.PlainCredentials(state["amqp_user"], state["amqp_password"]), heartbeat=0))
        self.connections.append(connection)
        return connection.channel()

    def keys(self, pattern="*"):
        """Redis keys of this test, without the prefix."""
        return sorted(key[len(self.prefix):] for key in self.redis.scan_iter(self.prefix + pattern, count=1000))

    def key(self, name):
        return self.prefix + name

    def remove(self):
        for connection in self.connections:
            with contextlib.suppress(Exception):
                connection.close()
        keys = list(self.redis.scan_iter(self.prefix + "*", count=1000))
        for i in range(0, len(keys), 1000):
            self.redis.unlink(*keys[i:i + 1000])
        self.redis.close()
        self.stack["rabbitmq"].delete_vhost(self.name)
        self.execute_as_root(f"DROP DATABASE IF EXISTS `{self.database}`")


class Muster:
    """A daemon. start(), kill9(), terminate(), restart(); client(), raw(), ask() talk to it."""

    def __init__(self, stores, directory, held_clock=False, config=None):
        self.stores = stores
        self.stack = stores.stack
        self.dir = Path(directory)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.held_clock = held_clock
        self.port = servers.free_port(self.stack.state["ports"].values())
        self.config_path = self.dir / "musterd.conf"
        self.log_path = self.dir / "log"
        self.process = None
        self.clients = []
        self.configure(config or {})

    def configure(self, config):
        """Writes the configuration; `config` is {section: {key: value}} over what the test's servers need."""
        state = self.stack.state
        sections = {
            "server": {"port": self.port, "log_level": "debug"},
            "redis": {"port": self.stack["redis"].port(), "prefix": self.stores.prefix},
            "amqp": {"port": self.stack["rabbitmq"].port(), "user": state["amqp_user"],
                     "password": state["amqp_password"], "vhost": self.stores.name},
            "mysql": {"port": self.stack["mariadb"].port(), "user": state["mysql_user"],
                      "password": state["mysql_password"], "database": self.stores.database},
            "day": {"timezone": "UTC"},
        }
        for section, keys in config.items():
            sections.setdefault(section, {}).update(keys)
        servers.write_config(self.config_path, sections)

    @staticmethod
    def build():
        return Path(os.environ.get("MUSTER_BUILD") or servers.ROOT / "build")

    def start(self, wait=True):
        servers.raise_file_limit()
        binary = os.environ.get("MUSTERD") or str(self.build() / "daemon" / "musterd")
        command = [binary, "--config", str(self.config_path)] + (["--held-clock"] if self.held_clock else [])
        env = {**os.environ, servers.MARK: f"test-musterd:{self.stack.dir}"}
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)
        if wait:
            self.wait_answering()
            self.wait_ready()
        return self

    def wait_answering(self, deadline=60):
        def answers():
            if self.process.poll() is not None:
                raise RuntimeError(f"musterd ended with {self.process.returncode} at its start\n{self.log()[-4000:]}")
            return servers.exchange(self.port, b"PING\r\n", 7) == b"+PONG\r\n"
        wait_until(answers, deadline, "musterd answers PING")

    def wait_ready(self, deadline=60):
        """Until it takes commands that need Redis."""
        wait_until(lambda: not str(self.ask("STATUS", "no.such.employee")).startswith(NOT_YET), deadline,
                   "musterd takes commands")

    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill9(self):
        self.process.kill()
        self.process.wait()

    def terminate(self, deadline=30):
        """SIGTERM; the exit code."""
        self.process.terminate()
        try:
            return self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"musterd did not end within {deadline} s of SIGTERM") from None

    def restart(self):
        if self.running():
            assert self.terminate() == 0
        return self.start()

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def client(self, **options):
        """A redis-py client; closed with the test."""
        options = {"decode_responses": True, "socket_timeout": 30, **options}
        client = redis.Redis(port=self.port, **options)
        self.clients.append(client)
        return client

    def raw(self, timeout=10.0):
        return Raw(self.port, timeout)

    def ask(self, *words):
        """One command on a connection of its own; an error is returned as its text (`UNKNOWN no such ...`)."""
        try:
            with self.raw(30) as raw:
                return text_of(raw.command(*words))
        except (OSError, EOFError) as error:
            return f"UNAVAILABLE no answer: {error}"

    def map(self, *words):
        """A command whose reply is a map."""
        reply = self.ask(*words)
        assert isinstance(reply, list), f"{' '.join(map(str, words))}: {reply}"
        return dict(zip(reply[::2], reply[1::2]))

    def roll(self, dept, *words):
        """Every row of ROLL, following the cursor."""
        rows, cursor = [], None
        while cursor != "":
            at = ("CURSOR", cursor) if cursor else ()
            reply = self.ask("ROLL", dept, *words, *at)
            assert isinstance(reply, list), reply
            cursor, items = reply
            rows += [dict(zip(item[::2], item[1::2])) for item in items]
        return rows

    def info(self):
        """The fields of INFO as text."""
        lines = self.ask("INFO").splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))

    def set_clock(self, moment):
        """Moves a held clock: unix milliseconds, RFC 3339 text, or an aware datetime."""
        if isinstance(moment, datetime):
            moment = int(moment.timestamp() * 1000)
        reply = self.ask("CLOCK.SET", moment)
        assert reply == "OK", reply

    def log(self):
        return self.log_path.read_text(encoding="utf-8", errors="replace") if self.log_path.exists() else ""

    def resident(self):
        """Resident memory in KiB."""
        return servers.resident(self.process.pid)

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def close(self):
        """Ends the daemon and fails when it did not end well or a sanitizer complained."""
        for client in self.clients:
            with contextlib.suppress(Exception):
                client.close()
        code = None
        if self.running():
            self.resume()
            code = self.terminate()
        complaint = COMPLAINT.search(self.log())
        if complaint:
            raise AssertionError(f"a sanitizer complained:\n{self.log()[complaint.start():][:6000]}")
        assert code in (None, 0), f"musterd ended with {code}\n{self.log()[-4000:]}"


def text_of(reply):
    """A reply of RESP2 with its bytes as text, errors too."""
    if isinstance(reply, list):
        return [text_of(item) for item in reply]
    if isinstance(reply, bytes):
        return reply.decode("utf-8", "surrogateescape")
    return str(reply) if isinstance(reply, ErrorReply) else reply


def now_ms():
    return int(time.time() * 1000)
