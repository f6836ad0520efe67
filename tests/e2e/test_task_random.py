# SPDX-License-Identifier: MIT
"""Thousands of task commands by several clients through two daemons, with kills, every answer judged by a plain model;
and as many by fifty clients without any order at all, where only the books must be right in the end.

The judged play goes in rounds. In each, some queues get a client of one of the daemons each, which sends a handful of
commands in one packet; they all run at the same time, in daemons, scripts and partitions that they share, but each
queue's order is known, and so is every answer. Leases that run out and delays that end come last in their packets, and
their queues rest until Redis shows that it has happened. In some rounds a daemon is killed with all that it has under
way: of the commands without an answer the first so many have had their effect and the others have not, which Redis
itself must show; what was cut off is not said again.

At the end a reader of Redis alone counts everything anew, and MySQL has just the events that the model counted.

The same seed makes the same commands. MUSTER_TASK_SEEDS and MUSTER_TASK_STEPS set how many seeds and commands."""
import os
import random
import threading
import time
from collections import Counter, deque

import pytest

from harness import tasks
from harness.attendance import texts, wait_quiet
from harness.muster import text_of
from harness.raw import Raw, encode
from harness.taskmodel import COUNTED, ENDS, Mismatch, Queue
from harness.wait import wait_until

SEEDS = int(os.environ.get("MUSTER_TASK_SEEDS", "2"))
STEPS = int(os.environ.get("MUSTER_TASK_STEPS", "4000"))
CLIENTS = 50
QUEUES = [f"q{n}" for n in range(12)]  # of one partition and of several
WORKERS = [f"w{n}" for n in range(4)]
SIZE = 60  # tasks of a queue that have not ended, about
CONFIG = {"server": {"log_level": "info"}, "redis": {"lease": "1s", "partitions": 4}, "day": {"close_auto": "no"},
          "task": {"lease": "1h", "backoff": "1h", "backoff_max": "1h", "keep": 1000000, "max_tasks": 1000000}}
KINDS = {"submit": 30, "claim": 18, "done": 12, "next": 5, "fail": 12, "release": 8, "beat": 6, "cancel": 9, "retry": 9,
         "pause": 1, "resume": 2, "get": 5, "stats": 2, "list": 2}


class Script:
    """What is said to a queue, made of what its model has."""

    def __init__(self, rng):
        self.rng = rng
        self.made = 0

    def maybe(self, chance, *words):
        return words if self.rng.random() < chance else ()

    def command(self, queue):
        kinds = dict(KINDS)
        if len(queue.at("ready", "delayed")) > SIZE:
            kinds["submit"] = 5
        if queue.paused:
            kinds["resume"] = 10
        kind = self.rng.choices(list(kinds), list(kinds.values()))[0]
        return tuple(map(str, getattr(self, kind)(queue)))

    def submit(self, queue):
        self.made += 1
        words = ("TASK.SUBMIT", queue.name, f"payload {self.made}" + "x" * self.rng.choice((0, 5, 100)))
        words += self.maybe(0.7, "PRIORITY", self.rng.randint(1, 10))
        words += self.maybe(0.5, "RETRIES", self.rng.randint(0, 4))
        words += self.maybe(0.15, "DELAY", "1h") + self.maybe(0.1, "LEASE", "1h")
        if self.rng.random() < 0.25:
            words += ("KEY", f"k{self.rng.randrange(10)}") + self.maybe(0.3, "WINDOW", "1h")
        return words

    def claim(self, queue):
        return ("TASK.CLAIM", queue.name, self.rng.choice(WORKERS), *self.maybe(0.6, "COUNT", self.rng.randint(1, 6)),
                "LEASE", "1h")

    def task(self, queue, *places):
        """One that is there, mostly at one of these places; now and then one that nobody has."""
        if self.rng.random() < 0.03 or not queue.by_id:
            return "0" * 11 + self.rng.choice("0123z"), None
        fit = [task for task in queue.at(*places) if task.id]
        task = self.rng.choice(fit) if fit and self.rng.random() < 0.9 else self.rng.choice(list(queue.by_id.values()))
        return task.id, task

    def held(self, queue):
        """An id and its token; sometimes one of another time, or of another task."""
        identity, task = self.task(queue, "running")
        tokens = [task.token] if task and task.token else []
        if tokens and self.rng.random() < 0.8:
            return identity, tokens[0]
        others = [other.token for other in queue.at("running") if other.token]
        return identity, self.rng.choice([*others, *(task.old_tokens if task else ()), *tokens, "1", "999999999"])

    def done(self, queue):
        return ("TASK.DONE", *self.held(queue), *self.maybe(0.3, "RESULT", "r" * self.rng.randint(0, 50)))

    def next(self, queue):
        return ("TASK.DONE", *self.held(queue), "NEXT", *self.maybe(0.5, "COUNT", self.rng.randint(1, 4)))

    def fail(self, queue):
        delay = self.rng.choice((("DELAY", "0"), ("DELAY", "0"), ("DELAY", "1h"), ()))
        return ("TASK.FAIL", *self.held(queue), *self.maybe(0.5, "ERROR", "went wrong"), *delay)

    def release(self, queue):
        return ("TASK.RELEASE", *self.held(queue))

    def beat(self, queue):
        pairs = [word for _ in range(self.rng.randint(1, 5)) for word in self.held(queue)]
        return ("TASK.BEAT", self.rng.choice(WORKERS), *pairs, *self.maybe(0.5, "LEASE", "1h"))

    def cancel(self, queue):
        return ("TASK.CANCEL", self.task(queue, "ready", "delayed", "running")[0])

    def retry(self, queue):
        return ("TASK.RETRY", self.task(queue, "failed", "timeout", "cancelled", "delayed")[0])

    def pause(self, queue):
        return ("TASK.PAUSE", queue.name)

    def resume(self, queue):
        return ("TASK.RESUME", queue.name)

    def get(self, queue):
        return ("TASK.GET", self.task(queue, *ENDS, "ready", "delayed", "running")[0])

    def stats(self, queue):
        return ("TASK.STATS", queue.name)

    def list(self, queue):
        place = self.rng.choice((*ENDS, "ready", "delayed", "running", "pending"))
        return ("TASK.LIST", queue.name, "STATUS", place, "COUNT", "1000")

    def last(self, queue):
        """A command whose effect ends by itself soon, or () for none."""
        if self.rng.random() > 0.15:
            return ()
        running = [task for task in queue.at("running") if task.id and task.token]
        kind = self.rng.choice(("claim", "beat", "submit", "fail", "wait"))
        if kind == "claim":
            return (*self.claim(queue)[:-1], "0.1")
        if kind == "wait":
            return (*self.claim(queue), "WAIT", "10")
        if kind == "submit":
            self.made += 1
            return ("TASK.SUBMIT", queue.name, f"payload {self.made}", "DELAY", "0.1")
        if not running:
            return ()
        task = self.rng.choice(running)
        return ("TASK.BEAT", "w0", task.id, task.token, "LEASE", "0.1") if kind == "beat" else \
            ("TASK.FAIL", task.id, task.token, "DELAY", "0.1")


def steps_of(words):
    """NEXT is a second step: a crash can leave the task done and nothing claimed. Said again, it claims."""
    return [words[:3], words] if "NEXT" in words[3:] else [words]


class Play:
    """One seed: play() the steps, then finish()."""

    def __init__(self, daemons, stores, seed):
        self.daemons = daemons
        self.stores = stores
        self.seed = seed
        self.rng = random.Random(seed)
        self.script = Script(self.rng)
        self.queues = {name: Queue(name) for name in QUEUES}
        self.resting = {}  # queue -> (place, tasks that are to leave it)
        self.raws = {}
        self.log = {name: deque(maxlen=30) for name in QUEUES}
        self.step = self.kills = self.cut_off = 0
        self.next_kill = self.rng.randint(200, 800)

    def play(self, steps):
        while self.step < steps:
            awake = [queue for queue in QUEUES if queue not in self.resting]
            chosen = self.rng.sample(awake, min(len(awake), 4))
            if self.step >= self.next_kill and chosen:
                self.round_with_a_kill(chosen)
                self.next_kill = self.step + self.rng.randint(400, 1200)
            elif chosen:
                self.round(chosen)
            self.look_at_resting()
        self.wait_awake()

    # ---- what is said and heard ----

    def raw(self, daemon, queue):
        key = (daemon.dir.name, queue)
        if key not in self.raws:
            self.raws[key] = Raw(daemon.port, 30)
        return self.raws[key]

    def say(self, names, daemons, may_rest=True):
        """Each queue's packet is sent; [(queue, Raw, daemon, commands)]."""
        said = []
        for name in names:
            queue, daemon = self.queues[name], self.rng.choice(daemons)
            commands = [self.script.command(queue) for _ in range(self.rng.randint(1, 8))]
            last = self.script.last(queue) if may_rest else ()
            commands += [last] if last else []
            raw = self.raw(daemon, name)
            raw.send(b"".join(encode(*words) for words in commands))
            self.step += len(commands)
            said.append((queue, raw, daemon, commands))
        return said

    def round(self, names):
        for queue, raw, _, commands in self.say(names, self.daemons):
            for words in commands:
                before = {task: task.place for task in queue.tasks}
                self.judge(queue, words, text_of(raw.read()))
                self.rest(queue, words, before)

    def judge(self, queue, words, reply):
        self.log[queue.name].append((self.step, words, reply))
        try:
            queue.judge(words, reply)
        except Mismatch as mismatch:
            raise AssertionError(self.story(queue, mismatch)) from None

    def rest(self, queue, words, before):
        """After a command whose effect ends by itself the queue is left alone until it has."""
        if words[-1] != "0.1":
            return
        if words[0] == "TASK.BEAT":
            tasks_ = [task for task in queue.at("running") if (task.id, task.token) == tuple(words[2:4])]
        else:
            tasks_ = [task for task in queue.tasks if task.place in ("running", "delayed") and
                      before.get(task) != task.place]
        if tasks_:
            place = "delayed" if tasks_[0].place == "delayed" else "lease"
            self.resting[queue.name] = (place, tasks_)

    def look_at_resting(self):
        for name, (place, left) in list(self.resting.items()):
            there = set(tasks.ids_in(self.stores, name, place))
            if any(task.id in there for task in left):
                continue
            for task in left:
                (self.queues[name].promote if place == "delayed" else self.queues[name].expire)(task)
            self.log[name].append((self.step, "left", place, [task.id for task in left]))
            del self.resting[name]

    def wait_awake(self):
        wait_until(lambda: self.look_at_resting() or not self.resting, 20, "all leases and delays are over")

    # ---- kills ----

    def round_with_a_kill(self, names):
        """A daemon dies while the packets are under way."""
        victim = self.rng.choice(self.daemons)
        said = self.say(names, self.daemons, may_rest=False)
        for _ in range(self.rng.randrange(3)):
            self.hear_one(said)
        victim.kill9()
        self.kills += 1
        unanswered = []
        for queue, raw, _, commands in said:
            while commands and self.hear(queue, raw, commands):
                pass
            if commands:
                unanswered.append((queue, commands))
        for key in [key for key in self.raws if key[0] == victim.dir.name]:
            self.raws.pop(key).close()
        victim.start()  # by then Redis has done all that the dead one had sent
        self.settle(unanswered)

    def hear_one(self, said):
        queue, raw, _, commands = self.rng.choice(said)
        if commands:
            self.hear(queue, raw, commands)

    def hear(self, queue, raw, commands):
        """The next reply; false when the line is dead."""
        try:
            reply = text_of(raw.read())
        except (OSError, EOFError):
            return False
        self.judge(queue, commands.pop(0), reply)
        return True

    def settle(self, unanswered):
        """Of the commands without an answer the first so many have had their effect: Redis shows how many."""
        self.wait_awake()
        found = tasks.recount(self.stores).queues
        for queue, commands in unanswered:
            there = found.get(queue.name, {})
            after = self.after_some(queue, commands, there)
            after.adopt(there)
            self.cut_off += len(commands)
            self.queues[queue.name] = after
            self.log[queue.name].append((self.step, "killed", commands))

    def after_some(self, queue, commands, there):
        """The queue after the first so many of the commands, as Redis has it."""
        after, nearest = queue.copy(), None
        for words in [None, *(step for words in commands for step in steps_of(words))]:
            if words:
                after.judge(words)
            wrong = after.differences(there)
            if not wrong and after.paused == self.is_paused(queue.name):
                return after
            nearest = wrong if nearest is None else min(nearest, wrong, key=len)
        raise AssertionError(self.story(queue, f"killed with {commands} under way, and Redis shows none of their "
                                        f"beginnings; the nearest: {nearest[:10]}"))

    def is_paused(self, name):
        return tasks.info_of(self.stores, name).get("paused") == "1"

    # ---- the end ----

    def finish(self):
        """Redis counted anew, and what MySQL has of it."""
        wait_quiet(self.daemons[0], 60)
        found = tasks.recount(self.stores).queues
        for queue in self.queues.values():
            wrong = queue.differences(found.get(queue.name, {}))
            assert not wrong, self.story(queue, "\n".join(wrong[:20]))
            self.check_counters(queue)
        self.check_mysql()
        assert tasks.as_map(self.daemons[0].ask("TASK.CHECK"))["findings"] == 0
        for raw in self.raws.values():
            raw.close()

    def check_counters(self, queue):
        info = tasks.info_of(self.stores, queue.name)
        told = {name: int(info.get(name, 0)) for name in COUNTED}
        assert told == {name: queue.counts[name] for name in COUNTED}, self.story(queue, told)
        assert "dropped" not in info, info

    def check_mysql(self):
        """An event for each change but submits, claims and what went well at once, and a row for each task that has
        ended."""
        events = Counter((row["queue"], row["event"]) for row in texts(
            self.stores.sql("SELECT queue, event FROM task_event")))
        names = {"retried": "retry", "brought_back": "retried"}
        expected = Counter({(queue.name, names.get(name, name)): queue.counts[name] for queue in self.queues.values()
                            for name in COUNTED if name != "submitted"})
        expected.subtract((queue.name, "success") for queue in self.queues.values() for task in queue.at("success")
                          if not task.retries and not task.crashes)
        assert events == +expected, {what: (events[what], n) for what, n in expected.items() if events[what] != n}
        rows = {row["id"]: row["status"] for row in texts(self.stores.sql("SELECT id, status FROM task"))}
        ended = {task.id: task.place for queue in self.queues.values() for task in queue.at(*ENDS)}
        assert {identity: status for identity, status in rows.items() if status != "pending"} == ended

    def story(self, queue, what):
        said = [str(entry)[:300] for entry in self.log[queue.name]]
        return "\n".join([f"seed {self.seed}, step {self.step}: {what}", *said])


@pytest.mark.timeout(60 + STEPS // 20)
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_every_answer_is_the_models(make_muster, stores, seed):
    """Submits, claims, ends, beats, cancels, retries and pauses, with tokens right, stale and foreign, with lost leases
    and killed daemons: each answer is the one that a plain queue gives, and in the end all books agree."""
    play = Play([make_muster(config=CONFIG) for _ in range(2)], stores, seed)
    begun = time.monotonic()
    play.play(STEPS)
    play.finish()
    counts = sum((queue.counts for queue in play.queues.values()), Counter())
    print(f"\nseed {seed}: {play.step} commands, {play.kills} kills, {play.cut_off} cut off, "
          f"{time.monotonic() - begun:.1f} s, {dict(counts)}")


class Crowd:
    """Clients that know only what they have been told, in threads; a daemon that is gone is asked again."""

    def __init__(self, ports, steps):
        self.ports = ports
        self.left = steps
        self.lock = threading.Lock()
        self.submitted = set()
        self.codes = Counter()
        self.broken = 0
        self.pause = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(n,), daemon=True) for n in range(CLIENTS)]

    def take(self, count):
        with self.lock:
            count = min(count, self.left)
            self.left -= count
            return count

    def run(self, number):
        rng = random.Random(number)
        held = []
        while self.left > 0:
            try:
                with Raw(rng.choice(self.ports), 30) as raw:
                    while count := self.take(rng.choice((1, 4, 16))):
                        self.exchange(raw, rng, number, held, count)
            except (OSError, EOFError):
                self.broken += 1
                held.clear()
                self.pause.wait(0.01)

    def exchange(self, raw, rng, number, held, count):
        commands = [self.command(rng, number, held) for _ in range(count)]
        for words, reply in zip(commands, tasks.pipeline(raw, commands)):
            self.codes[words[0], reply.split(" ", 1)[0] if isinstance(reply, str) else "map"] += 1
            if words[0] == "TASK.SUBMIT" and isinstance(reply, list):
                self.submitted.add(tasks.as_map(reply)["id"])
            elif words[0] in ("TASK.CLAIM", "TASK.DONE") and isinstance(reply, list):
                held += [(task["id"], task["token"]) for task in tasks.claims(reply)]
                del held[:-20]

    def command(self, rng, number, held):
        kind, queue = rng.random(), rng.choice(QUEUES)
        some = list(self.submitted)[:1] if rng.random() < 0.01 else []
        pair = rng.choice(held) if held else ("0" * 12, "1")
        if kind < 0.3:
            return ("TASK.SUBMIT", queue, "x" * rng.randrange(80), "PRIORITY", rng.randint(1, 10), "RETRIES",
                    rng.randint(0, 3), *rng.choice(((), ("DELAY", "0.05"), ("KEY", f"k{rng.randrange(500)}"))))
        if kind < 0.5:
            return ("TASK.CLAIM", queue, f"w{number}", "COUNT", rng.randint(1, 5), "LEASE", rng.choice(("0.1", "2s")))
        if kind < 0.7:
            return ("TASK.DONE", *pair, *rng.choice(((), ("NEXT",), ("RESULT", "r"))))
        if kind < 0.8:
            return ("TASK.FAIL", *pair, "DELAY", rng.choice(("0", "0.05")))
        if kind < 0.9:
            return ("TASK.RELEASE", *pair)
        if kind < 0.93:
            return ("TASK.BEAT", f"w{number}", *pair)
        return (rng.choice(("TASK.CANCEL", "TASK.CANCEL", "TASK.RETRY")), some[0] if some else pair[0])


@pytest.mark.timeout(60 + STEPS // 50)
def test_the_books_are_right_whatever_happens(make_muster, stores):
    """Fifty clients at once, every verb, short leases, two daemons of which now one and now the other is killed: every
    task that was acknowledged is in one place, every count is what a full recount gives, and nothing is dropped."""
    config = {**CONFIG, "task": {**CONFIG["task"], "lease": "1s"}}
    daemons = [make_muster(config=config) for _ in range(2)]
    rng = random.Random(STEPS)
    crowd = Crowd([daemon.port for daemon in daemons], STEPS * 2)
    for thread in crowd.threads:
        thread.start()
    for goal in sorted(rng.sample(range(STEPS * 2), 3), reverse=True):
        wait_until(lambda g=goal: crowd.left <= g, 120, "some more is done")
        victim = rng.choice(daemons)
        victim.kill9()
        victim.start()
    for thread in crowd.threads:
        thread.join(60)
        assert not thread.is_alive()
    assert crowd.left == 0
    for queue in QUEUES:
        if stores.keys(f"*:queue_info:{queue}"):
            tasks.wait_gone(stores, queue)
    wait_quiet(daemons[0], 60)
    check_books(stores, crowd)
    strange = {what: n for what, n in crowd.codes.items()
               if what[1] not in ("map", "OK", "STALE", "UNKNOWN", "CONFLICT", "UNAVAILABLE", "NOTREADY")}
    assert not strange and crowd.broken >= 3
    print(f"\n{sum(crowd.codes.values())} answers, {crowd.broken} broken lines, {len(crowd.submitted)} tasks")


def went_wrong(found):
    return any(int(found.fields.get(name, 0)) for name in ("retries", "crashes"))


def check_books(stores, crowd):
    found = tasks.recount(stores).queues
    there = {task for queue in found.values() for task in queue}
    assert crowd.submitted <= there, f"{len(crowd.submitted - there)} acknowledged tasks are gone"
    events = Counter((row["queue"], row["event"]) for row in texts(stores.sql("SELECT queue, event FROM task_event")))
    for queue, all_tasks in found.items():
        info = Counter({name: int(n) for name, n in tasks.info_of(stores, queue).items() if n.isdigit()})
        assert info["submitted"] == len(all_tasks) and info["dropped"] == 0
        events[queue, "success"] += sum(one.place == "success" and not went_wrong(one) for one in all_tasks.values())
        for name, event in (("retried", "retry"), ("brought_back", "retried"), ("expired", "expired"),
                            ("released", "released"), *((end, end) for end in ENDS)):
            assert info[name] == events[queue, event], (queue, name, info, events)
    rows = {row["id"]: row["status"] for row in texts(stores.sql("SELECT id, status FROM task"))}
    assert {identity: end for identity, end in rows.items() if end != "pending"} == {
        identity: one.place for queue in found.values() for identity, one in queue.items() if one.place in ENDS}
