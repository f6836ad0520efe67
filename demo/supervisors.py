# SPDX-License-Identifier: MIT
"""Those who read notices, each a process with a connection of its own: the head office, which reads everything
from muster.supervisors, and the supervisor of a region, who rejects some of his messages."""
import json
import multiprocessing
import os
import signal
import time
from collections import Counter

import pika

LOOK_SECONDS = 0.1
PREFETCH = 500
TRANSIENT_MOST, POISON_AT = 40, (0, 7, 14, 21, 28)
STRICT, SETTLED, MENDED = range(3)  # takes offence at more; at no more than by now; at nothing for good


def connect(address):
    return pika.BlockingConnection(pika.ConnectionParameters(
        "127.0.0.1", address["port"], "/", pika.PlainCredentials(address["user"], address["password"]), heartbeat=0))


def queue_exists(address, queue):
    connection = connect(address)
    try:
        connection.channel().queue_declare(queue, passive=True)
        return True
    except pika.exceptions.ChannelClosedByBroker:
        return False
    finally:
        connection.close()


class Inbox:
    """What a reader has seen, of the demo's day: counted by event id, since notices come at least once."""

    def __init__(self, day):
        self.day = day
        self.ids = set()
        self.events = Counter()  # (employee, kind)
        self.departments = Counter()  # (department, closed or add)
        self.messages = self.repeats = self.strange = 0

    def take(self, body):
        notice = json.loads(body)
        family, kind = notice["type"].split(".")
        self.messages += 1
        if family == "attendance" and notice["day"] != self.day:
            return
        for event in notice["events"]:
            if event["id"] in self.ids:
                self.repeats += 1
                continue
            self.ids.add(event["id"])
            if family == "team":
                self.departments[event["team"], kind] += 1
            elif kind == "closed":
                self.departments[notice["dept"], kind] += 1
                self.strange += event["expected"] != event["written"] + event["failed"]
            else:
                self.events[event["employee"], kind] += 1

    def summary(self):
        return {"events": self.events, "departments": self.departments, "messages": self.messages,
                "repeats": self.repeats, "strange": self.strange}


class Refusals:
    """Which messages the supervisor rejects: some once, some until they are parked, and then no more."""

    def __init__(self):
        self.seen = 0
        self.once, self.always = set(), set()
        self.rejected = 0
        self.attempts = Counter()  # deliveries by x-muster-attempt
        self.recovered = set()  # ids that were taken after a rejection

    def refuses(self, message_id, attempt, mood):
        self.attempts[attempt] += 1
        if attempt == 0 and message_id not in self.always and message_id not in self.once:
            if self.seen in POISON_AT and mood == STRICT:
                self.always.add(message_id)
            elif self.seen % 5 == 2 and len(self.once) < TRANSIENT_MOST:
                self.once.add(message_id)
            self.seen += 1
        refused = (message_id in self.always and mood != MENDED) or (message_id in self.once and attempt == 0)
        self.rejected += refused
        if not refused and (message_id in self.always or message_id in self.once):
            self.recovered.add(message_id)
        return refused

    def summary(self):
        return {"once": self.once, "always": self.always, "rejected": self.rejected, "attempts": self.attempts,
                "recovered": self.recovered}


def read_queue(address, queue, day, pipe, shared):
    """The process: reads until it is told to tell, tells what it has seen, ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = os.getppid()
    inbox, refusals = Inbox(day), Refusals() if shared["refuse"] else None
    connection = connect(address)
    channel = connection.channel()
    channel.basic_qos(prefetch_count=PREFETCH)
    last_tag, mood = 0, STRICT

    def settle():
        nonlocal last_tag
        if last_tag:
            channel.basic_ack(last_tag, multiple=True)
        last_tag = 0

    def on_message(_channel, method, properties, body):
        nonlocal last_tag
        if refusals:
            attempt = (properties.headers or {}).get("x-muster-attempt", 0)
            if refusals.refuses(properties.message_id, attempt, mood):
                settle()
                channel.basic_reject(method.delivery_tag, requeue=False)
                return
        inbox.take(body)
        last_tag = method.delivery_tag
        if method.delivery_tag % 50 == 0:
            settle()

    channel.basic_consume(queue, on_message)
    while os.getppid() == parent:
        mood = shared["mood"].value
        connection.process_data_events(time_limit=LOOK_SECONDS)
        settle()
        shared["mood_seen"].value = mood
        shared["events"].value = len(inbox.ids)
        shared["messages"].value = inbox.messages
        if refusals:
            shared["once"].value = len(refusals.once)
            shared["always"].value = len(refusals.always)
            shared["recovered"].value = len(refusals.recovered)
        if pipe.poll():
            pipe.send({**inbox.summary(), **(refusals.summary() if refusals else {})})
            pipe.recv()
            break
    connection.close()


class Reader:
    """The process from outside."""

    def __init__(self, address, queue, day, refuse=False):
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.shared = {name: context.Value("q", 0, lock=False)
                       for name in ("events", "messages", "once", "always", "recovered", "mood", "mood_seen")}
        self.process = context.Process(
            target=read_queue, args=(address, queue, day, theirs, {**self.shared, "refuse": refuse}), daemon=True)
        self.process.start()

    def count(self, name):
        """How many events, messages, once, always or recovered so far."""
        if not self.process.is_alive():
            raise RuntimeError("a reader of notices has ended before its time")
        return self.shared[name].value

    def set_mood(self, mood, seconds=10):
        """Returns when it is so."""
        self.shared["mood"].value = mood
        deadline = time.monotonic() + seconds
        while self.shared["mood_seen"].value != mood:
            if time.monotonic() > deadline:
                raise RuntimeError("a reader of notices does not answer")
            time.sleep(0.02)

    def finish(self):
        """What it has seen; ends it."""
        self.pipe.send("tell")
        if not self.pipe.poll(60):
            raise RuntimeError("a reader of notices does not answer")
        summary = self.pipe.recv()
        self.process.join(10)
        return summary

    def stop(self):
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(5)
