# SPDX-License-Identifier: MIT
"""What breaks under tasks: ids of nothing, keys of other types, scripts thrown away, a daemon killed, Redis killed. No
task is lost, none runs twice, and what is damaged troubles nobody else."""
import binascii
import os
import random
import threading
from collections import Counter

import pytest

from harness import tasks
from harness.attendance import as_map, pipelined, wait_quiet
from harness.muster import text_of
from harness.raw import Raw
from harness.tasks import (beat, changed, claim, claim_one, claims, done, drain, fail, get, ids_in, info_of, key_of,
                           pipeline, recount, release, still, submit, tag_of, wait_gone, wait_ready)
from harness.wait import wait_until

STEPS = int(os.environ.get("MUSTER_TASK_STEPS", "4000"))
QUIET = {"server": {"log_level": "info"}, "day": {"close_auto": "no"}, "task": {"keep": 1000000}}


# ---- ids of nothing ----

def ghosts_of(task, count):
    """Ids of the task's partition that nobody has."""
    return [f"{n:09d}v{task[10:]}" for n in range(count)]


def no_traces(stores, ghosts):
    for ghost in ghosts:
        assert not stores.keys(f"*:task:{ghost}") and not stores.keys(f"*:payload:{ghost}")


@pytest.mark.parametrize("count", (1, 3, 100))
def test_ids_without_a_task_are_never_given_away(muster, stores, count):
    """Ahead of, between and behind good ones: claims step over them, clear them away and count them; no hash comes
    to be, and what is no id at all goes the same way."""
    ids = [submit(muster, "mail", n) for n in range(6)]
    ghosts = ghosts_of(ids[0], 5) + ["nonsense", "", "x" * 300, ids[0].upper() + "z"]
    queue = key_of(stores, "mail", "queue")
    first, last = (stores.redis.zscore(queue, ids[n]) for n in (0, -1))
    stores.redis.zadd(queue, {ghost: score for ghost, score in zip(ghosts, (
        first - 1, first - 1, first + 1, last - 1, last + 1, first - 1, last + 1, first + 2, last + 1))})
    before = stores.redis.dbsize()
    assert drain(muster, "mail", count) == [str(n) for n in range(6)]
    assert claim(muster, "mail", "w1", "COUNT", 100) == []
    assert info_of(stores, "mail")["dropped"] == str(len(ghosts)) and not stores.redis.exists(queue)
    no_traces(stores, ghosts[:5])
    assert stores.redis.dbsize() <= before + 20  # of other tests' daemons, too
    recount(stores)


def test_thousands_of_ids_without_a_task(muster, stores):
    """More than one claim may clear away: it may get nothing meanwhile, and soon the task behind them; one that waits
    gets it too."""
    for words in ((), ("WAIT", "5000")):
        task = submit(muster, "mail", "good")
        ghosts = ghosts_of(task, 500)
        stores.redis.zadd(key_of(stores, "mail", "queue"), {ghost: n for n, ghost in enumerate(ghosts)})
        got = wait_until(lambda w=words: claim(muster, "mail", "w1", *w), 20, "the task behind them")
        assert [t["id"] for t in got] == [task] and done(muster, got[0]) == "OK"
    assert info_of(stores, "mail")["dropped"] == "1000"
    recount(stores)


@pytest.mark.parametrize("place", ("delayed", "lease"))
def test_ids_without_a_task_that_are_due(muster, stores, place):
    """The sweep puts them away where people can see them, makes no task of them, and goes on with the others."""
    task = submit(muster, "mail", "good", "RETRIES", 1)
    ghosts = ghosts_of(task, 50)
    stores.redis.zadd(key_of(stores, "mail", place), {ghost: n + 1 for n, ghost in enumerate(ghosts + ["nonsense"])})
    held = claim_one(muster, "mail", "w1", "LEASE", "0.1")
    submit(muster, "mail", "later", "DELAY", "0.1")
    wait_gone(stores, "mail", held)
    wait_gone(stores, "mail", place=place)
    wait_ready(stores, "mail", 2)
    kept = tasks.redis_of(stores).zrange(stores.key(tag_of(stores, "mail") + ":quarantine"), 0, -1)
    assert sorted(kept) == sorted(f"{place}|mail|{ghost}" for ghost in [*ghosts, "nonsense"])
    no_traces(stores, ghosts[:3])
    assert drain(muster, "mail") == ["good", "later"] and get(muster, task)["attempt"] == 2
    recount(stores)


def test_an_id_that_stands_where_it_does_not_belong(muster, stores):
    """The hash says where a task is: another entry for it, of a queue it is not in or a place it has left, is not
    believed, and it is not given away twice."""
    running = submit(muster, "mail", "running")
    held = claim_one(muster, "mail")
    ended = submit(muster, "mail", "ended")
    assert done(muster, claim_one(muster, "mail")) == "OK"
    other = neighbour(muster, "mail", True)
    for queue in ("mail", other):
        stores.redis.zadd(key_of(stores, queue, "queue"), {running: 5, ended: 6})
        assert claim(muster, queue, "w2", "COUNT", 10) == []
        assert info_of(stores, queue)["dropped"] == "2"
    assert beat(muster, "w1", held)["extended"] == [running] and done(muster, held) == "OK"
    recount(stores)


def partition_of(queue):
    return binascii.crc_hqx(queue.encode(), 0) % 48


def neighbour(muster, queue, near):
    """Another queue, of the same partition or of another one; it is empty."""
    names = (f"q{n}" for n in range(1000))
    name = next(name for name in names if (partition_of(name) == partition_of(queue)) == near)
    submit(muster, name)
    drain(muster, name)
    assert (tag_of(muster.stores, name) == tag_of(muster.stores, queue)) == near
    return name


# ---- keys of another type ----

# What a queue with a task in every place has in Redis. Those of the partition stop all its queues; the others only what
# needs them.
OF_THE_PARTITION = ("due", "queues", "journal", "task_seq", "task_fence", "quarantine")
OF_THE_QUEUE = ("queue", "delayed", "lease", "status:success", "status:failed", "queue_info", "waiting")
OF_A_TASK = ("task", "payload", "worker", "dedupe")


def full_queue(muster, queue):
    """A task in each place; {place: map or id}."""
    made = {"success": submit(muster, queue, "success")}
    assert done(muster, claim_one(muster, queue)) == "OK"
    submit(muster, queue, "failed", "RETRIES", 0)
    made["failed"] = claim_one(muster, queue)["id"]
    assert fail(muster, {"id": made["failed"], "token": get(muster, made["failed"])["token"]})["status"] == "failed"
    submit(muster, queue, "running")
    made["running"] = claim_one(muster, queue, "spoilt", "LEASE", "1h")
    made["delayed"] = submit(muster, queue, "delayed", "DELAY", "1h")
    made["ready"] = submit(muster, queue, "ready", "KEY", "k")
    return made


def name_of(stores, queue, kind, made):
    rest = {"task": made["ready"], "payload": made["ready"], "worker": "spoilt", "dedupe": f"{queue}:k"}
    if kind in OF_THE_PARTITION:
        return stores.key(f"{tag_of(stores, queue)}:{kind}")
    if kind.startswith("status"):
        return key_of(stores, queue, "status", f"{queue}:{kind.partition(':')[2]}")
    return key_of(stores, queue, kind, rest.get(kind))


def every_verb(queue, made):
    held = (made["running"]["id"], made["running"]["token"])
    return [("TASK.SUBMIT", queue, "new"), ("TASK.SUBMIT", queue, "new", "KEY", "k"),
            ("TASK.SUBMIT", queue, "new", "KEY", "other", "DELAY", "1h"), ("TASK.CLAIM", queue, "spoilt"),
            ("TASK.CLAIM", queue, "w9", "COUNT", "5"), ("TASK.CLAIM", queue, "w9", "WAIT", "1"),
            ("TASK.BEAT", "spoilt", *held), ("TASK.FAIL", *held), ("TASK.RELEASE", *held), ("TASK.DONE", *held),
            ("TASK.DONE", *held, "NEXT"), ("TASK.CANCEL", made["ready"]), ("TASK.CANCEL", made["delayed"]),
            ("TASK.CANCEL", made["running"]["id"]), ("TASK.RETRY", made["failed"]), ("TASK.RETRY", made["delayed"]),
            ("TASK.GET", made["ready"]), ("TASK.GET", made["running"]["id"]), ("TASK.LIST", queue),
            ("TASK.STATS", queue), ("TASK.PAUSE", queue), ("TASK.RESUME", queue), ("TASK.CONFIG", queue)]


REFUSALS = ("ERR", "CORRUPT", "UNKNOWN", "CONFLICT")


@pytest.mark.parametrize("kinds", (OF_THE_PARTITION, OF_THE_QUEUE, OF_A_TASK))
def test_keys_of_another_type(muster, stores, kinds):
    """Somebody has made one of Muster's keys something else: each verb either says so and has done nothing at all, or
    does all of its work; other queues go on as ever, and when the key is itself again so does this one."""
    made = full_queue(muster, "mail")
    others = [neighbour(muster, "mail", False)]
    others += [neighbour(muster, "mail", True)] if kinds is not OF_THE_PARTITION else []
    wait_quiet(muster)
    for kind in kinds:
        name = name_of(stores, "mail", kind, made)
        codes = Counter()
        for words in every_verb("mail", made):
            with tasks.kept(stores, "mail"):
                stores.redis.delete(name)
                stores.redis.rpush(name, "what", "is", "this")
                codes[code_of(muster, words, made)] += 1
                with muster.raw() as raw:
                    for other in others:
                        cycle(raw, other, ["fine"])
        assert codes["ERR"] + codes["CORRUPT"] or kind in ("waiting", "payload", "quarantine"), (kind, codes)
        print(f"\n{kind}: {dict(codes)}")
    recount(stores)
    assert done(muster, made["running"]) == "OK" and drain(muster, "mail") == ["ready"]


def code_of(muster, words, made):
    """Says a command; what refuses has changed nothing. NEXT alone is two steps: the task may be done when its claim is
    refused."""
    before = still(muster.stores)
    reply = muster.ask(*words)
    code = reply.split(" ", 1)[0] if isinstance(reply, str) else "map"
    assert code in ("OK", "map", *REFUSALS), f"{words}: {reply}"
    if code in REFUSALS and changed(before, still(muster.stores)):
        assert words[-1] == "NEXT" and done(muster, made["running"]) == "OK", f"{words}: {reply}, and yet changed"
    return code


def test_a_damaged_hash_is_one_tasks_trouble(muster, stores):
    """A hash without what a task must have: CORRUPT for who asks for it, stepped over by claims, and the rest go on."""
    ids = [submit(muster, "mail", n) for n in range(6)]
    hashes = [key_of(stores, "mail", "task", task) for task in ids]
    stores.redis.hdel(hashes[0], "queue")
    stores.redis.hset(hashes[1], "priority", "high")
    stores.redis.delete(hashes[2])
    stores.redis.set(hashes[2], "x")
    stores.redis.hdel(hashes[3], "status")
    for task in ids[:4]:
        for verb in ("CANCEL", "RETRY", "GET"):
            reply = muster.ask("TASK." + verb, task)
            assert isinstance(reply, str) and reply.startswith(("CORRUPT ", "ERR ")), (verb, reply)
    assert drain(muster, "mail", 3) == ["4", "5"] and claim(muster, "mail") == []
    kept = tasks.redis_of(stores).zrange(stores.key(tag_of(stores, "mail") + ":quarantine"), 0, -1)
    assert sorted(kept) == sorted(f"queue|mail|{task}" for task in ids[:4])


NUMBERS = ("priority", "size", "retries", "crashes", "max_retries", "lease", "hold")


def spoil(stores, queue, tasks_, values=("x", "1.5", "-1", "inf", "")):
    """Makes a number of each of these tasks none."""
    for n, (task, field) in enumerate(zip(tasks_, NUMBERS)):
        stores.redis.hset(key_of(stores, queue, "task", task), field, values[n % len(values)])


def put_away(stores, queue, place):
    """Ids of a place that are in quarantine."""
    kept = tasks.redis_of(stores).zrange(stores.key(tag_of(stores, queue) + ":quarantine"), 0, -1)
    return {member.rsplit("|", 1)[1] for member in kept if member.startswith(f"{place}|{queue}|")}


def test_a_number_that_is_none_is_stepped_over(muster, stores):
    """By claims, in the middle of good tasks: these come in their order, and each of them once."""
    ids = [submit(muster, "mail", n) for n in range(2 * len(NUMBERS))]
    spoil(stores, "mail", ids[::2])
    assert drain(muster, "mail", 3) == [str(n) for n in range(1, 2 * len(NUMBERS), 2)]
    assert put_away(stores, "mail", "queue") == set(ids[::2])


def test_a_number_that_is_none_keeps_no_lease_waiting(muster, stores):
    """The sweep puts such tasks away, gives the others back, and makes ready what is due."""
    ids = [submit(muster, "mail", n) for n in range(2 * len(NUMBERS))]
    assert len(claim(muster, "mail", "w1", "COUNT", 100, "LEASE", "1s")) == len(ids)
    spoil(stores, "mail", ids[::2])
    submit(muster, "mail", "later", "DELAY", "1s")
    wait_gone(stores, "mail")
    wait_ready(stores, "mail", len(NUMBERS) + 1)
    assert put_away(stores, "mail", "lease") == set(ids[::2])


def test_a_number_that_is_none_stops_no_batch(muster, stores):
    """Ends of other tasks in the same packet are written with all that belongs to them."""
    ids = [submit(muster, "mail", n) for n in range(2 * len(NUMBERS))]
    held = claim(muster, "mail", "w1", "COUNT", 100)
    spoil(stores, "mail", ids[::2])
    with muster.raw() as raw:
        replies = pipeline(raw, [(f"TASK.{('FAIL', 'DONE')[n % 2]}", task["id"], task["token"])
                                 for n, task in enumerate(held)])
    assert all(reply.startswith("CORRUPT ") for reply in replies[::2]) and set(replies[1::2]) == {"OK"}
    assert set(ids_in(stores, "mail", "success")) == set(ids[1::2])
    assert ids_in(stores, "mail", "lease") and set(ids_in(stores, "mail", "lease")) == set(ids[::2])


@pytest.mark.parametrize("field", ("submitted", "success", "bytes"))
def test_a_counter_that_is_none_stops_nothing(muster, stores, field):
    """What a queue counts can't be counted, and all else is as it was: also of another queue in the same packet."""
    submit(muster, "mail", "a")
    other = neighbour(muster, "mail", True)
    stores.redis.hset(key_of(stores, "mail", "queue_info"), field, "x")
    with muster.raw() as raw:
        replies = pipeline(raw, [("TASK.SUBMIT", queue, "b") for queue in ("mail", other)])
    assert all(as_map(reply)["status"] == "pending" for reply in replies)
    assert drain(muster, "mail") == ["a", "b"] and drain(muster, other) == ["b"]
    muster.ask("TASK.CHECK", "REPAIR")
    recount(stores)


# ---- scripts thrown away ----

def test_scripts_flushed_under_load(make_muster, stores):
    """SCRIPT FLUSH again and again under pipelines of every verb: no client sees an error, each queue keeps its order,
    and nothing has its effect twice."""
    pair = [make_muster(config=QUIET) for _ in range(2)]
    ended = threading.Event()
    wrong = []

    def flush():
        while not ended.is_set():
            stores.redis.script_flush()

    def work(number):
        try:
            with pair[number % 2].raw(60) as raw:
                for n in range(12):
                    cycle(raw, f"q{number}", [f"{n}.{k}" for k in range(25)])
        except (AssertionError, OSError, EOFError) as error:
            wrong.append(f"{number}: {error}")
    threads = [threading.Thread(target=flush)] + [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads[1:]:
        thread.join(60)
    ended.set()
    threads[0].join()
    assert not wrong, wrong[:3]
    for number in range(8):
        info = info_of(stores, f"q{number}")
        assert [info[name] for name in ("submitted", "success", "retried", "released")] == ["300", "300", "60", "60"]
    assert sum(int(muster.info()["redis_noscript_healed"]) for muster in pair) > 0
    recount(stores)


def cycle(raw, queue, payloads):
    """Submits, claims and ends in packets, some of the tasks after a failure or a release; all of it in order."""
    replies = pipeline(raw, [("TASK.SUBMIT", queue, payload) for payload in payloads] +
                       [("TASK.CLAIM", queue, "w1"), ("TASK.CLAIM", queue, "w1", "COUNT", 100)])
    ids = [as_map(reply)["id"] for reply in replies[:-2]]
    held = claims(replies[-2]) + claims(replies[-1])
    assert ids == sorted(ids) and [task["id"] for task in held] == ids and [t["payload"] for t in held] == payloads
    again = held[:5] + held[10:15]
    replies = pipeline(raw, [("TASK.FAIL", task["id"], task["token"], "DELAY", "0") for task in held[:5]] +
                       [("TASK.RELEASE", task["id"], task["token"]) for task in held[10:15]] +
                       [("TASK.CLAIM", queue, "w2", "COUNT", 100)])
    assert [as_map(reply)["retries"] for reply in replies[:len(held[:5])]] == [1] * len(held[:5])
    back = claims(replies[-1])
    assert [task["id"] for task in back] == [task["id"] for task in again]
    assert [task["attempt"] for task in back] == [2] * len(held[:5]) + [1] * len(held[10:15])
    rest = held[5:10] + held[15:] + back
    replies = pipeline(raw, [("TASK.BEAT", "w1", *(word for t in rest for word in (t["id"], t["token"])))] +
                       [("TASK.DONE", task["id"], task["token"], "RESULT", "r") for task in rest] +
                       [("TASK.GET", task["id"]) for task in rest[:3]])
    assert as_map(replies[0])["extended"] == [task["id"] for task in rest]
    assert set(replies[1:len(rest) + 1]) == {"OK"}
    assert {as_map(reply)["status"] for reply in replies[len(rest) + 1:]} == {"success"}


# ---- daemons and Redis killed ----

class Workers:
    """Submitters and workers in threads who go on until so many tasks have been claimed. `acknowledged`: the payloads
    whose SUBMIT was answered; `ended`: ids whose DONE was."""

    def __init__(self, muster, goal):
        self.muster = muster
        self.goal = goal
        self.claimed = 0
        self.acknowledged = {}
        self.ended = set()
        self.wrong = []
        self.broken = 0
        self.errors = Counter()
        self.pause = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(n,), daemon=True) for n in range(6)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        rng = random.Random(number)
        serial = 0
        while self.claimed < self.goal:
            try:
                with Raw(self.muster.port, 30) as raw:
                    while self.claimed < self.goal:
                        serial += 1
                        (self.give if number < 2 else self.work)(raw, rng, f"{number}.{serial}")
            except (OSError, EOFError):
                self.broken += 1
                self.pause.wait(0.01)
            except AssertionError as error:
                self.wrong.append(str(error))
                return

    def give(self, raw, rng, name):
        payloads = [f"{name}.{n}" for n in range(20)]
        queues = [f"q{rng.randrange(4)}" for _ in payloads]
        replies = pipeline(raw, [("TASK.SUBMIT", *pair) for pair in zip(queues, payloads)])
        for payload, reply in zip(payloads, replies):
            if self.is_good(reply):
                self.acknowledged[payload] = as_map(reply)["id"]

    def work(self, raw, rng, name):
        reply = pipeline(raw, [("TASK.CLAIM", f"q{rng.randrange(4)}", f"w{name[0]}", "COUNT", rng.randint(1, 20),
                                "LEASE", "1h")])[0]
        if not self.is_good(reply):
            return
        held = claims(reply)
        self.claimed += len(held)
        if not held:
            self.pause.wait(0.002)
        for task, answer in zip(held, pipeline(raw, [("TASK.DONE", t["id"], t["token"]) for t in held])):
            if self.is_good(answer):
                self.ended.add(task["id"])

    def is_good(self, reply):
        """False for what may be said again."""
        if isinstance(reply, list) or reply == "OK":
            return True
        code = reply.split(" ", 1)[0]
        self.errors[code] += 1
        assert code in ("UNAVAILABLE", "NOTREADY", "BUSY"), reply
        self.pause.wait(0.01)
        return False

    def finish(self):
        for thread in self.threads:
            thread.join(60)
        assert not self.wrong, self.wrong[:3]
        assert self.claimed >= self.goal


def check_all_there(stores, workers):
    """Every acknowledged task is in one place, under its id and with its payload; what is done is done, once."""
    found = {task: one for queue in recount(stores).queues.values() for task, one in queue.items()}
    lost = [payload for payload, task in workers.acknowledged.items()
            if task not in found or found[task].payload != payload]
    assert not lost, f"{len(lost)} of {len(workers.acknowledged)} tasks are lost, such as {lost[:3]}"
    undone = [task for task in workers.ended if found[task].place != "success"]
    assert not undone, f"{len(undone)} tasks were done and are not, such as {found[undone[0]]}"
    payloads = Counter(one.payload for one in found.values())
    assert payloads.most_common(1)[0][1] == 1, "a submit that was said once has made two tasks"
    for queue, counts in ((f"q{n}", recount(stores).counts(f"q{n}")) for n in range(4)):
        assert int(info_of(stores, queue)["success"]) == counts["success"]
        assert set(counts) <= {"ready", "running", "success"}


@pytest.mark.timeout(60 + STEPS // 20)
def test_kill9_under_thousands_of_claims(make_muster, stores):
    """The daemon killed again and again while thousands of tasks are claimed and done: each that was acknowledged is in
    exactly one place afterwards, and can be brought to its end."""
    muster = make_muster(config=QUIET)
    rng = random.Random(STEPS)
    workers = Workers(muster, max(5000, STEPS))
    for goal in sorted(rng.sample(range(workers.goal), 5)):
        wait_until(lambda g=goal: workers.claimed >= g, 60, "some more are claimed")
        muster.kill9()
        muster.start()
    workers.finish()
    check_all_there(stores, workers)
    assert workers.broken >= 5
    # What was claimed and never ended belongs to workers that did not hear of it: their leases run out.
    held = [(queue, task) for queue in (f"q{n}" for n in range(4)) for task in ids_in(stores, queue, "lease")]
    for queue, task in held[:50]:
        token = tasks.hash_of(stores, queue, task)["token"]
        assert release(muster, {"id": task, "token": token}) == "OK"
    print(f"\n{workers.claimed} claimed, {len(held)} of them unheard, {workers.broken} lines broken")


@pytest.mark.parametrize("way", ("restart", "kill"))
def test_redis_goes_and_comes_back(make_muster, stores, intact, way):
    """Redis ends, or is killed, and starts again from its append-only file in the midst of work: clients get errors
    that say to try again, and nothing that was acknowledged is missing."""
    muster = make_muster(config=QUIET)
    workers = Workers(muster, 4000)
    for goal in (800, 2500):
        wait_until(lambda g=goal: workers.claimed >= g, 60, "some more are claimed")
        if way == "kill":
            intact.kill("redis")
            intact.start(["redis"])
        else:
            intact.restart("redis")
    workers.finish()
    check_all_there(stores, workers)
    assert sum(workers.errors.values()) or workers.broken
    before = recount(stores).queues
    intact.restart("redis")
    assert recount(stores).queues == before
    wait_until(lambda: isinstance(muster.ask("TASK.STATS", "q0"), list), 20, "service resumes")
    submit(muster, "q0", "after")


def test_leases_and_delays_go_on_while_nobody_looks(muster, stores):
    """The daemon is away while leases run out and delays end: at its start all is caught up, each charged once."""
    pipelined(muster, [("TASK.SUBMIT", "mail", n, "RETRIES", n % 2) for n in range(200)])
    pipelined(muster, [("TASK.SUBMIT", "mail", n, "DELAY", "0.3") for n in range(200, 300)])
    held = [task for _ in range(2) for task in claim(muster, "mail", "w1", "COUNT", 100, "LEASE", "0.3")]
    muster.kill9()
    wait_until(lambda: tasks.redis_ms(stores) > held[-1]["deadline"] + 100, 10, "all is over")
    assert len(ids_in(stores, "mail", "lease")) == 200
    muster.start()
    wait_gone(stores, "mail")
    wait_gone(stores, "mail", place="delayed")
    assert recount(stores).counts("mail") == {"ready": 200, "timeout": 100}
    info = info_of(stores, "mail")
    assert (info["expired"], info["timeout"]) == ("100", "100")
    with muster.raw() as raw:
        assert text_of(raw.command("TASK.DONE", held[0]["id"], held[0]["token"])).startswith("STALE ")


def test_two_daemons_one_sweep(make_muster, stores):
    """Two daemons, of which one is stopped for a while and then goes on with what it knew: nothing expires twice, and
    what was claimed again meanwhile is not taken away."""
    config = {**QUIET, "redis": {"lease": "1s"}}
    pair = [make_muster(config=config) for _ in range(2)]
    queues = [f"q{n}" for n in range(16)]
    for queue in queues:
        pipelined(pair[0], [("TASK.SUBMIT", queue, n) for n in range(10)])
    lost = {queue: claim(pair[0], queue, "w1", "COUNT", 10, "LEASE", "0.5") for queue in queues}
    pair[1].pause()
    for queue in queues:
        wait_gone(stores, queue, *lost[queue])
    kept = {queue: claim(pair[0], queue, "w2", "COUNT", 10, "LEASE", "1h") for queue in queues}
    pair[1].resume()
    pair[1].wait_ready()
    wait_until(lambda: all(int(daemon.info()["partitions_held"]) > 10 for daemon in pair), 20, "both have their part")
    for queue in queues:
        assert [(task["attempt"], task["id"]) for task in kept[queue]] == [(2, task["id"]) for task in lost[queue]]
        assert len(beat(pair[1], "w2", *kept[queue])["extended"]) == 10
        assert info_of(stores, queue)["expired"] == "10"
    recount(stores)
