#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A worker of its own: task_worker.py QUEUE [LIMIT]

It prints how many words the payload of each task has, and gives that as the result. What every worker must do is here:
a heartbeat while it works; stopping when the claim is lost or the task is cancelled; ending with the token, and again
with the same token when the answer was lost; failing loudly. The work itself bears being done twice.

Two connections, since a claim that waits holds up what is behind it. (A program in any language without all this:
`muster work QUEUE -- PROGRAM`.)"""
import os
import signal
import socket
import sys
import threading
import time

import redis

ADDRESS = (os.environ.get("MUSTER_HOST", "127.0.0.1"), int(os.environ.get("MUSTER_PORT", "7411")))
WORKER = f"{socket.gethostname()}.{os.getpid()}"
PASSING = ("BUSY", "NOTREADY", "UNAVAILABLE")
WAIT_MS = 5000
LEAVING = threading.Event()


class Stop(Exception):
    """The claim has ended, or is to end: what is done from here on is for nothing."""


def connect():
    return redis.Redis(*ADDRESS, socket_timeout=WAIT_MS / 1000 + 10)


def fields(reply):
    """A map: a dict in RESP3, a flat list of field and value in RESP2. Names as text, values as they are: bytes."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    return {name.decode(): value for name, value in pairs}


def patiently(client, *command):
    """Until there is an answer, or it is told to end and there is none: all that is sent here may be sent again."""
    wait = 0.1
    while True:
        try:
            return client.execute_command(*command)
        except (redis.ConnectionError, redis.TimeoutError):
            pass
        except redis.ResponseError as error:
            if not str(error).startswith(PASSING):
                raise
        if LEAVING.is_set():
            sys.exit(f"no answer to {command[0]}")  # the lease of a task whose end is not told runs out
        time.sleep(wait)
        wait = min(wait * 2, 2)


class Heartbeat:
    """Says every third of the lease that the task is worked on. .stop is set when it is no longer ours to do."""

    def __init__(self, task):
        self.task = task
        self.over, self.stop, self.cancelled = threading.Event(), threading.Event(), False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        client = connect()
        while not self.over.wait(self.task["lease"] / 3000):
            try:
                told = fields(client.execute_command("TASK.BEAT", WORKER, self.task["id"], self.task["token"]))
            except redis.RedisError:
                continue  # the token decides in the end
            self.cancelled = bool(told["cancel"])
            if told["stale"] or told["cancel"]:
                self.stop.set()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def work(payload, stop):
    """The work, in small steps, between which it looks whether to go on."""
    words = 0
    for line in payload.splitlines():
        if stop.is_set():
            raise Stop
        words += len(line.split())
    return words


def run(client, task):
    claim = (task["id"], task["token"])
    beat = Heartbeat(task)
    try:
        with beat:
            said = work(task["payload"], beat.stop)
        end = ("TASK.DONE", *claim, "RESULT", said)
    except Stop:
        if not beat.cancelled:
            return
        said, end = "cancelled", ("TASK.RELEASE", *claim)  # of one that is to be cancelled: it is cancelled
    except Exception as error:  # whatever it is, the task must hear of it
        said, end = f"failed: {error}", ("TASK.FAIL", *claim, "ERROR", repr(error))
    try:
        patiently(client, *end)
    except redis.ResponseError as error:
        said = error  # STALE: somebody else has it, or had it
    print(task["id"].decode(), said, flush=True)


def main():
    queue, left = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else -1
    signal.signal(signal.SIGTERM, lambda *_: LEAVING.set())
    claims, client = connect(), connect()
    while left != 0 and not LEAVING.is_set():
        for task in patiently(claims, "TASK.CLAIM", queue, WORKER, "WAIT", WAIT_MS):
            run(client, fields(task))
            left -= 1


main()
