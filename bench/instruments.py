# SPDX-License-Identifier: MIT
"""What the team benchmarks look with: a client that counts, one that goes on asking Redis while something else is
done, the longest that Redis was held up, an import and what it took."""
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

from scene import BenchError
from harness.raw import encode

from forest import BASE

PAGE = 1000  # items asked for at a time


class Counter:
    """Reads lists of ids and counts them, looking at nothing else: what it costs to read does not blur what it costs
    to answer."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 600)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def receive(self):
        chunk = self.socket.recv(1 << 20)
        if not chunk:
            raise BenchError("the server closed the connection")
        return chunk

    def ask(self, head, *words):
        """The first `head` lines of a reply, of which the last says how many ids follow, and that number."""
        self.socket.sendall(encode(*words))
        data = b""
        while data.count(b"\n") < head:
            data += self.receive()
            if data.startswith(b"-"):
                raise BenchError(f"{' '.join(map(str, words))}: {data[:200]!r}")
        first = data.split(b"\r\n", head)[:head]
        count, lines = int(first[-1][1:]), data.count(b"\n")
        while lines < head + 2 * count:
            lines += self.receive().count(b"\n")
        return first, count

    def members(self, key):
        return self.ask(1, "SMEMBERS", key)[1]

    def scan(self, key):
        cursor, total = b"0", 0
        while True:
            head, count = self.ask(4, "SSCAN", key, cursor, "COUNT", PAGE)
            cursor, total = head[2], total + count
            if cursor == b"0":
                return total

    def pages(self, *words):
        """A list of the daemon's, page by page."""
        head, total = self.ask(4, *words, "COUNT", PAGE)
        while head[2]:
            head, count = self.ask(4, *words, "CURSOR", head[2], "COUNT", PAGE)
            total += count
        return total


class Probe:
    """HGET straight on Redis every millisecond until it is stopped; then `result` has the latencies. One of several
    connections in turn asks, so that a question is not held up by the one before it."""

    def __init__(self, scene):
        self.command = [str(scene.build / "bench" / "load"), "--port", str(scene.stack["redis"].port()),
                        "--connections", "20", "--rate", "1000", "--requests", "100000000", "--patience", "60",
                        "HGET", BASE + "dept:1", "name"]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        time.sleep(0.1)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        output, _ = self.process.communicate(timeout=60)
        self.result = json.loads(output)["latency_us"]


class Slowlog:
    """The longest script that Redis has run, by its own clock, and how many took over 5 ms."""

    THRESHOLD_US, LIMIT_US = 200, 5000

    def __init__(self, redis):
        self.redis = redis

    def __enter__(self):
        self.redis.config_set("slowlog-max-len", 100_000)
        self.redis.config_set("slowlog-log-slower-than", self.THRESHOLD_US)
        self.redis.slowlog_reset()
        return self

    def __exit__(self, *_):
        self.redis.config_set("slowlog-log-slower-than", -1)
        entries = self.redis.slowlog_get(100_000)
        took = [e["duration"] for e in entries if e["command"].upper().startswith(b"EVALSHA")]
        self.redis.slowlog_reset()
        self.longest_us = max(took, default=0)
        self.over = sum(1 for us in took if us > self.LIMIT_US)


def peak(scene):
    """Most MiB that musterd has had since its start."""
    status = Path(f"/proc/{scene.stack['musterd'].main_pid()}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s*(\d+)", status)[1]) / 1024


def run_import(scene, path):
    """(seconds, MiB of the client) of `muster import`."""
    command = [str(scene.build / "cli" / "muster"), "--port", str(scene.port()), "import", str(path)]
    begun = time.monotonic()
    with open(scene.dir / "import.log", "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begun
    process.returncode = status
    if status != 0:
        raise BenchError(f"muster import: {(scene.dir / 'import.log').read_text()[-2000:]}")
    return seconds, used.ru_maxrss / 1024
