# SPDX-License-Identifier: MIT
"""Tasks as workers and submitters see them, and as a reader of Redis alone finds them."""
import contextlib
import re
from collections import Counter
from typing import NamedTuple

import redis

from harness.attendance import Notices, as_map
from harness.muster import text_of
from harness.raw import encode
from harness.teams import bytes_client, changed
from harness.wait import wait_until

ENDS = ("success", "failed", "timeout", "cancelled")
BAND = 2 ** 49  # scores of one priority, and one more than the last sequence number
EPOCH = 1767225600000  # unix ms of the first sequence number
DIGITS = "0123456789abcdefghijklmnopqrstuv"


# ---- asking ----

def submit(muster, queue, payload="x", *words):
    """Submits a task that is new; its id."""
    reply = muster.map("TASK.SUBMIT", queue, payload, *words)
    assert (reply["status"], reply["duplicate"]) == ("pending", 0), reply
    return reply["id"]


def claim(muster, queue, worker="w1", *words):
    """The tasks that a claim gets, as maps."""
    return claims(muster.ask("TASK.CLAIM", queue, worker, *words))


def claims(reply):
    assert isinstance(reply, list), reply
    return [as_map(item) for item in reply]


def claim_one(muster, queue, worker="w1", *words):
    """The one task that a claim gets."""
    tasks = claim(muster, queue, worker, *words)
    assert len(tasks) == 1, f"{len(tasks)} tasks in {queue}"
    return tasks[0]


def await_task(muster, queue, worker="w1", *words, deadline=10):
    """Claims one as soon as there is one."""
    return wait_until(lambda: claim(muster, queue, worker, *words), deadline, f"a task in {queue}")[0]


def done(muster, task, *words):
    return muster.ask("TASK.DONE", task["id"], task["token"], *words)


def fail(muster, task, *words):
    """The map of a FAIL that was accepted."""
    return muster.map("TASK.FAIL", task["id"], task["token"], *words)


def release(muster, task):
    return muster.ask("TASK.RELEASE", task["id"], task["token"])


def beat(muster, worker, *tasks, words=()):
    """The map of a BEAT for these tasks."""
    pairs = [word for task in tasks for word in (task["id"], task["token"])]
    return muster.map("TASK.BEAT", worker, *pairs, *words)


def get(muster, task):
    return muster.map("TASK.GET", task if isinstance(task, str) else task["id"])


def status(muster, task):
    return get(muster, task)["status"]


def drain(muster, queue, count=1):
    """Claims and completes all that is ready; the payloads in their order."""
    payloads = []
    while tasks := claim(muster, queue, "drain", "COUNT", count):
        payloads += [task["payload"] for task in tasks]
        for task in tasks:
            assert done(muster, task) == "OK"
    return payloads


def pipeline(raw, commands):
    """Sends all at once over a Raw; their replies as text."""
    raw.send(b"".join(encode(*words) for words in commands))
    return [text_of(raw.read()) for _ in commands]


def stats(muster, queue):
    return muster.map("TASK.STATS", queue)


def listed(muster, queue, *words):
    """All tasks of a LIST, following its cursor."""
    tasks, cursor = [], None
    while cursor != "":
        reply = muster.ask("TASK.LIST", queue, *words, *(("CURSOR", cursor) if cursor else ()))
        assert isinstance(reply, list), reply
        cursor, items = reply
        tasks += [as_map(item) for item in items]
    return tasks


# ---- notices ----

class TaskNotices(Notices):
    """A queue bound to notices of tasks."""

    def events(self, kind=None):
        """Every event told so far, once for each id, with its message's type and queue."""
        self.fetch()
        return list({event["id"]: {**event, "type": body["type"], "queue": body["queue"]}
                     for _, _, body in self.messages for event in body["events"]
                     if kind in (None, body["type"])}.values())

    def told(self):
        """How often each task was told to have come to each end: {(task, end): number of ids}."""
        return Counter((event["task"], event["type"].removeprefix("task.")) for event in self.events())


# ---- Redis, without the daemon ----

def redis_of(stores):
    """A connection whose values are text whatever bytes they hold."""
    if not hasattr(stores, "lenient"):
        stores.lenient = redis.Redis(port=stores.stack["redis"].port(), socket_timeout=30, decode_responses=True,
                                     encoding_errors="surrogateescape")
    return stores.lenient


def tag_of(stores, queue):
    """The hash tag, with braces, of a queue that has been used."""
    tags = stores.__dict__.setdefault("queue_tags", {})
    if queue not in tags:
        found = stores.keys("{*}:queue_info:" + queue)
        assert len(found) == 1, f"{queue}: {found}"
        tags[queue] = found[0].split(":", 1)[0]
    return tags[queue]


def key_of(stores, queue, kind, rest=None):
    """The full name of a key of a queue: key_of(stores, "mail", "lease"), key_of(stores, "mail", "task", id)."""
    return stores.key(f"{tag_of(stores, queue)}:{kind}:{queue if rest is None else rest}")


def ids_in(stores, queue, place):
    """Ids in `queue` (ready), `delayed`, `lease` or an end, in their order there."""
    name = key_of(stores, queue, "status", f"{queue}:{place}") if place in ENDS else key_of(stores, queue, place)
    return redis_of(stores).zrange(name, 0, -1)


def hash_of(stores, queue, task):
    return redis_of(stores).hgetall(key_of(stores, queue, "task", task))


def info_of(stores, queue):
    return redis_of(stores).hgetall(key_of(stores, queue, "queue_info"))


def redis_ms(stores):
    """The clock by which leases and delays are measured."""
    seconds, micros = stores.redis.time()
    return seconds * 1000 + micros // 1000


def wait_gone(stores, queue, *tasks, place="lease", deadline=15):
    """Until none of these tasks is at a place any more; without tasks, until the place is empty."""
    ids = {task if isinstance(task, str) else task["id"] for task in tasks}

    def gone():
        left = set(ids_in(stores, queue, place))
        assert not (left & ids if ids else left), f"{len(left & ids if ids else left)} left"
        return True
    wait_until(gone, deadline, f"{place} of {queue} has let go of {len(ids) or 'all'} tasks")


def wait_ready(stores, queue, count, deadline=15):
    """Until so many tasks are ready."""
    def ready():
        found = redis_of(stores).zcard(key_of(stores, queue, "queue"))
        assert found == count, found
        return True
    wait_until(ready, deadline, f"{count} tasks of {queue} are ready")


# What moves by itself, or tells only that somebody looked.
RESTLESS = (":owner", ":cursor", ":due")
HELPERS = ("waiting:", "waits:", "wake:", "woken:")


def dumps(stores, names):
    """Keys byte for byte: {name: (value, milliseconds it has left)}."""
    with bytes_client(stores).pipeline(transaction=False) as pipe:
        for name in names:
            pipe.dump(stores.key(name))
            pipe.pttl(stores.key(name))
        found = pipe.execute()
    return dict(zip(names, zip(found[::2], found[1::2])))


def still(stores):
    """All of the tasks' keys byte for byte, and how much was ever journalled: {name: value}."""
    names = [name for name in stores.keys("{p*") if not name.endswith(RESTLESS) and
             not name.split(":", 1)[1].startswith(HELPERS)]
    picture = {name: value for name, (value, _) in dumps(stores, names).items()}
    for name in names:
        if name.endswith(":journal") and stores.redis.type(stores.key(name)) == "stream":
            picture[name] = stores.redis.xinfo_stream(stores.key(name))["entries-added"]
    return picture


@contextlib.contextmanager
def kept(stores, queue):
    """Keys of the queue's partition are afterwards as they were before, but for its journal, which is so only when it
    has become something else."""
    prefix, client = tag_of(stores, queue) + ":", bytes_client(stores)

    def names():
        return [name for name in stores.keys(prefix + "*") if not name.endswith((":owner", ":cursor"))]
    before = dumps(stores, names())
    yield
    if client.type(stores.key(prefix + "journal")) == b"stream":
        del before[prefix + "journal"]
    with client.pipeline(transaction=False) as pipe:
        for name in set(names()) - set(before) - {prefix + "journal"}:
            pipe.delete(stores.key(name))
        for name, (value, expires) in before.items():
            pipe.restore(stores.key(name), max(0, expires), value, replace=True)
        pipe.execute()


def refused(muster, code, *commands):
    """Commands, each in a pipeline of one, that answer an error of this code (or of one of these) and change
    nothing."""
    codes = (code,) if isinstance(code, str) else code
    before = still(muster.stores)
    with muster.raw(30) as raw:
        for words in commands:
            reply = text_of(raw.command(*words))
            assert isinstance(reply, str) and reply.split(" ", 1)[0] in codes, f"{words}: {reply}"
            assert "\n" not in reply and len(reply) < 400, reply
    assert not changed(before, still(muster.stores)), commands


class Found(NamedTuple):
    """A task as Redis has it. `place`: ready, delayed, running or an end."""
    place: str
    score: float
    fields: dict
    payload: str


PLACES = {"queue": "ready", "delayed": "delayed", "lease": "running"}
STATUSES = {"ready": "pending", "delayed": "pending", "running": "running", **{end: end for end in ENDS}}
READERS = {"hash": ("hgetall",), "set": ("smembers",), "string": ("get",), "zset": ("zrange", 0, -1, False, True)}


def task_keys(stores):
    """Keys of tasks by kind: {kind: {(tag, rest of the name): content}}, all read at one instant or as good as that:
    nothing may be under way."""
    client = redis_of(stores)
    names = [name for name in stores.keys("{p*") if not name.endswith((":journal", ":owner", ":cursor"))]
    found = {}
    for first in range(0, len(names), 2000):
        part = names[first:first + 2000]
        with client.pipeline(transaction=False) as pipe:
            for name in part:
                pipe.type(stores.key(name))
            kinds = pipe.execute()
            known = [(name, READERS[kind]) for name, kind in zip(part, kinds) if kind in READERS]
            for name, (reader, *arguments) in known:
                getattr(pipe, reader)(stores.key(name), *arguments)
            values = pipe.execute()
        for (name, _), value in zip(known, values):
            tag, kind, rest = (name.split(":", 2) + [""])[:3]
            found.setdefault(kind, {})[tag, rest] = value
    return found


class Recount:
    """Counts anew all that Redis holds of tasks. `wrong` says what does not agree; `queues`: {queue: {id: Found}}."""

    def __init__(self, stores):
        self.keys = task_keys(stores)
        self.wrong = []
        self.places = {}
        self.queues = {}
        self.find_places()
        for at, fields in self.kind("task").items():
            self.look_at(at, fields)
        self.look_for_strays()
        self.look_at_workers()
        self.look_at_keys()
        self.look_at_bytes()

    def kind(self, kind):
        return self.keys.get(kind, {})

    def find_places(self):
        for kind, place in PLACES.items():
            for (tag, queue), members in self.kind(kind).items():
                self.note_places(tag, queue, place, members)
        for (tag, rest), members in self.kind("status").items():
            queue, _, end = rest.rpartition(":")
            self.note_places(tag, queue, end, members)

    def note_places(self, tag, queue, place, members):
        for task, score in members:
            self.places.setdefault((tag, task), []).append((queue, place, score))

    def look_at(self, at, fields):
        """A task is in one place, and its hash says the same."""
        tag, task = at
        places = self.places.get(at, [])
        if len(places) != 1:
            self.wrong.append(f"{task} is in {len(places)} places: {places}, {fields}")
            return
        queue, place, score = places[0]
        payload = self.kind("payload").get(at, "")
        size = len(payload.encode("utf-8", "surrogateescape"))
        said = (fields.get("queue"), fields.get("status"), int(fields.get("size", 0)))
        if said != (queue, STATUSES[place], size):
            self.wrong.append(f"{task} is in {queue} {place} with {size} bytes, and says {said}")
        if place == "ready" and not self.is_place_of(task, fields, score):
            self.wrong.append(f"{task} of priority {fields.get('priority')} is ready at {score:.0f}")
        if task[10:] != self.partition_digits(tag):
            self.wrong.append(f"{task} is in partition {tag}")
        self.queues.setdefault(queue, {})[task] = Found(place, score, fields, payload)

    @staticmethod
    def is_place_of(task, fields, score):
        """Priority and sequence as submitted; ageing takes whole priorities off."""
        band, sequence = divmod(int(score), BAND)
        return sequence == int(task[:10], 32) and 1 <= band <= int(fields["priority"])

    @staticmethod
    def partition_digits(tag):
        number = int(re.match(r"\{p(\d+)", tag)[1])
        return DIGITS[number // 32] + DIGITS[number % 32]

    def look_for_strays(self):
        for tag, task in self.places.keys() - self.kind("task").keys():
            self.wrong.append(f"{task} has no hash and is in {self.places[tag, task]}")
        for tag, task in self.kind("payload").keys() - self.kind("task").keys():
            self.wrong.append(f"{task} has a payload and no hash")

    def look_at_workers(self):
        running = {}
        for queue in self.queues.values():
            for task, found in queue.items():
                if found.place == "running":
                    running.setdefault(found.fields["worker"], set()).add(task)
        said = {}
        for (_, worker), tasks in self.kind("worker").items():
            said.setdefault(worker, set()).update(tasks)
        for worker in running.keys() | said.keys():
            if running.get(worker, set()) != said.get(worker, set()):
                self.wrong.append(f"{worker} runs {running.get(worker)}, and its set has {said.get(worker)}")

    def look_at_keys(self):
        """A key names a task that carries it; until it is done, a task holds its key."""
        held = {}
        for (_, rest), task in self.kind("dedupe").items():
            queue, _, key = rest.partition(":")
            held[queue, key] = task
            found = self.queues.get(queue, {}).get(task)
            if found and found.fields.get("key") != key:
                self.wrong.append(f"{task} is named by the key {key} and has {found.fields.get('key')}")
            if found and found.place in ENDS and "window" not in found.fields:
                self.wrong.append(f"{task} has ended and holds {key}")
        for queue, tasks in self.queues.items():
            for task, found in tasks.items():
                key = found.fields.get("key")
                if key and found.place not in ENDS and "window" not in found.fields and held.get((queue, key)) != task:
                    self.wrong.append(f"{task} should hold {key}, which {held.get((queue, key))} has")

    def look_at_bytes(self):
        for (_, queue), info in self.kind("queue_info").items():
            size = sum(int(found.fields.get("size", 0)) for found in self.queues.get(queue, {}).values())
            if int(info.get("bytes", 0)) != size:
                self.wrong.append(f"{queue} has {size} bytes, and says {info.get('bytes')}")
            known = {(tag, name) for (tag, _), names in self.kind("queues").items() for name in names}
            if not any(name == queue for _, name in known):
                self.wrong.append(f"{queue} is not among the queues")

    def counts(self, queue):
        """How many tasks are at each place."""
        return Counter(found.place for found in self.queues.get(queue, {}).values())


def recount(stores):
    """A Recount that found nothing wrong."""
    result = Recount(stores)
    assert not result.wrong, "\n".join([f"{len(result.wrong)} things are wrong", *result.wrong[:20]])
    return result


def sequence_of(task):
    return int(task[:10], 32)
