# SPDX-License-Identifier: MIT
"""TASK.CHECK: faults are planted in Redis behind the daemon's back; the check names each of them and nothing else, a
repair puts it right by the status in the task's hash, and while workers are busy it finds nothing in what is sound."""
import contextlib
import random
import threading
import time

import pytest

from harness.attendance import as_map
from harness.check import assert_nothing_found, named, run_check
from harness.muster import text_of
from harness.tasks import BAND, claim_one, done, ids_in, key_of, recount, redis_of, sequence_of, submit, task_keys
from harness.wait import wait_until

LONG = ("LEASE", "1h")


def check(muster, *words):
    """One TASK.CHECK; its map, `items` as a sorted list of (code, task, detail)."""
    return run_check(muster, "TASK.CHECK", ("task", "queue"), *words)


def assert_clean(muster):
    assert_nothing_found(check(muster))


def picture(stores):
    """All keys of tasks; but when the sweep comes, and what it and the check have put aside."""
    keys = task_keys(stores)
    return {kind: keys[kind] for kind in keys.keys() - {"due", "quarantine"}}


class Work:
    """A queue with a task in each place; `redis` and key() to do harm with."""

    def __init__(self, muster, stores):
        self.muster, self.stores, self.redis = muster, stores, redis_of(stores)
        self.ready = submit(muster, "q", "12345", "PRIORITY", 3)
        self.delayed = submit(muster, "q", "123", "DELAY", "1h")
        self.keyed = submit(muster, "q", "", "KEY", "k")
        self.running = self.started("w1", "1234")["id"]
        self.success = self.started("w1", "1")["id"]
        assert done(muster, self.claimed) == "OK"
        self.failed = self.started("w2", "12", "RETRIES", 0)["id"]
        assert muster.map("TASK.FAIL", self.failed, self.claimed["token"], "ERROR", "no")["status"] == "failed"
        self.cancelled = submit(muster, "q", "x", "KEY", "c")
        assert muster.map("TASK.CANCEL", self.cancelled)["status"] == "cancelled"
        self.other = submit(muster, "q2", "other")

    def started(self, worker, payload, *words):
        """A task of highest priority, so that it is the next one; it is running."""
        identity = submit(self.muster, "q", payload, "PRIORITY", 1, *words)
        self.claimed = claim_one(self.muster, "q", worker, *LONG)
        assert self.claimed["id"] == identity
        return self.claimed

    def key(self, kind, rest=None):
        return key_of(self.stores, "q", kind, rest)

    def single(self, name):
        return self.key(name, "").removesuffix(":")

    def task(self, identity):
        return self.key("task", identity)

    def entries(self, place):
        return ids_in(self.stores, "q", place)

    def quarantined(self):
        return {member for member in self.redis.zrange(self.single("quarantine"), 0, -1)}


@pytest.fixture(name="work")
def fixture_work(muster, stores):
    work = Work(muster, stores)
    assert_clean(muster)
    return work


GHOST = "00000000vv"  # with the digits of a partition: an id that nobody has


def ghost(work):
    return GHOST + work.ready[10:]


HEALED = {
    "a ready task is in no place": (
        lambda w: w.redis.zrem(w.key("queue"), w.ready), lambda w: {("MISSING", w.ready)}),
    "an ended task is in two places": (
        lambda w: w.redis.zadd(w.key("queue"), {w.success: 3 * BAND + 5}), lambda w: {("PLACE", w.success)}),
    "a running task is ready, too": (
        lambda w: w.redis.zadd(w.key("queue"), {w.running: BAND}), lambda w: {("PLACE", w.running)}),
    "a ready task is leased": (
        lambda w: w.redis.zadd(w.key("lease"), {w.ready: 4e15}), lambda w: {("PLACE", w.ready)}),
    "a ready task is delayed, too": (
        lambda w: w.redis.zadd(w.key("delayed"), {w.ready: 4e15}), lambda w: {("TWICE", w.ready)}),
    "an end is another one, too": (
        lambda w: w.redis.zadd(w.key("status", "q:failed"), {w.success: 2e15}), lambda w: {("PLACE", w.success)}),
    "a task is in another queue": (
        lambda w: w.redis.zadd(w.key("queue", "q81"), {w.ready: BAND}) and w.redis.sadd(w.single("queues"), "q81"),
        lambda w: {("PLACE", w.ready)}),
    "a ready task is at a place that it never had": (
        lambda w: w.redis.zadd(w.key("queue"), {w.ready: 3 * BAND + 77}), lambda w: {("SCORE", w.ready)}),
    "a ready task has fallen back": (
        lambda w: w.redis.zadd(w.key("queue"), {w.ready: 4 * BAND + sequence_of(w.ready)}),
        lambda w: {("SCORE", w.ready)}),
    "a running task is in no worker's set": (
        lambda w: w.redis.delete(w.key("worker", "w1")), lambda w: {("WORKER", w.running)}),
    "a worker's set names a task that has ended": (
        lambda w: w.redis.sadd(w.key("worker", "w1"), w.success), lambda w: {("PLACE", w.success)}),
    "a task runs at two workers": (
        lambda w: w.redis.sadd(w.key("worker", "w9"), w.running), lambda w: {("PLACE", w.running)}),
    "a task does not hold its key": (
        lambda w: w.redis.delete(w.key("dedupe", "q:k")), lambda w: {("KEY", w.keyed)}),
    "a key names a task that was cancelled": (
        lambda w: w.redis.set(w.key("dedupe", "q:c"), w.cancelled), lambda w: {("DEDUPE", w.cancelled)}),
    "a key names no task": (
        lambda w: w.redis.set(w.key("dedupe", "q:z"), ghost(w)), lambda w: {("DEDUPE", ghost(w))}),
    "a key names garbage": (
        lambda w: w.redis.set(w.key("dedupe", "q:z:z"), "\udcff|\n"), lambda w: {("DEDUPE", "")}),
    "a task's key names another": (
        lambda w: w.redis.set(w.key("dedupe", "q:k"), w.ready), lambda w: {("DEDUPE", w.ready), ("KEY", w.keyed)}),
    "a payload without a task": (
        lambda w: w.redis.set(w.key("payload", ghost(w)), "boo"), lambda w: {("PAYLOAD", ghost(w))}),
    "a queue that is not listed": (
        lambda w: w.redis.srem(w.single("queues"), "q"), lambda w: {("QUEUE", "")}),
    "a queue that is not an id": (
        lambda w: w.redis.sadd(w.single("queues"), "a b"), lambda w: {("MEMBER", "")}),
    "bytes that are too many": (
        lambda w: w.redis.hincrby(w.key("queue_info"), "bytes", 5), lambda w: {("BYTES", "")}),
    "bytes that are below nothing": (
        lambda w: w.redis.hincrby(w.key("queue_info"), "bytes", -500), lambda w: {("BYTES", "")}),
    "bytes that are no number": (
        lambda w: w.redis.hset(w.key("queue_info"), "bytes", "many"), lambda w: {("BYTES", "")}),
    "a waiter that is none": (
        lambda w: w.redis.zadd(w.key("waiting", "q"), {"who?": 1}), lambda w: {("MEMBER", "")}),
    "a size that is no number": (
        lambda w: w.redis.hset(w.task(w.ready), "size", "x"), lambda w: {("FIELD", w.ready)}),
    "retries that are no number": (
        lambda w: w.redis.hset(w.task(w.ready), "retries", "-1"), lambda w: {("FIELD", w.ready)}),
    "a setting that is no number": (
        lambda w: w.redis.hset(w.key("queue_info"), "keep", "all"), lambda w: {("COUNTER", "")}),
}


@pytest.mark.timeout(300)
def test_each_fault_is_named_and_healed(muster, work, stores):
    """As it was; a look changes nothing."""
    good = picture(stores)
    for fault, (plant, expected) in HEALED.items():
        plant(work)
        bad = picture(stores)
        assert bad != good, fault
        result = check(muster)
        assert named(result) == expected(work) and result["repaired"] == 0, (fault, result)
        assert picture(stores) == bad, f"{fault}: a look changes nothing"
        result = check(muster, "REPAIR")
        assert named(result) == expected(work) and result["findings"] == result["repaired"], (fault, result)
        healed = picture(stores)
        for at in good["queues"]:
            healed["queues"][at].discard("q81")
        assert healed == good, fault
        assert_clean(muster)


def test_what_names_no_task_is_quarantined_and_counted(muster, work, stores):
    good = picture(stores)
    for place in ("queue", "delayed", "lease"):
        work.redis.zadd(work.key(place), {ghost(work): 1e15, "\udcff|no\nid": 2e15})
    work.redis.zadd(work.key("status", "q:failed"), {ghost(work): 1e15})
    work.redis.sadd(work.key("worker", "w1"), ghost(work))
    result = check(muster)
    # The sweep may have been at what is due before.
    assert {("ORPHAN", ghost(work)), ("MEMBER", "")} >= named(result) and result["repaired"] == 0, result
    result = check(muster, "REPAIR")
    assert result["findings"] == result["repaired"], result
    assert_clean(muster)
    healed = picture(stores)
    [info] = [fields for (_, queue), fields in healed["queue_info"].items() if queue == "q"]
    assert 1 <= int(info.pop("dropped")) <= 4
    assert healed == good
    quarantined = work.quarantined()
    assert {f"queue|q|{ghost(work)}", f"lease|q|{ghost(work)}", f"worker:w1||{ghost(work)}",
            "queue|q|\udcff|no\nid"} <= quarantined, quarantined


def test_a_hash_that_is_gone_leaves_places_and_a_payload(muster, work):
    work.redis.delete(work.task(work.ready))
    assert named(check(muster)) == {("ORPHAN", work.ready), ("PAYLOAD", work.ready), ("BYTES", "")}
    result = check(muster, "REPAIR")
    assert result["findings"] == result["repaired"] == 3, result
    assert_clean(muster)
    assert muster.ask("TASK.GET", work.ready).startswith("UNKNOWN")
    assert f"queue|q|{work.ready}" in work.quarantined()


@pytest.mark.parametrize("field, value", [("queue", None), ("status", None), ("status", "asleep"), ("queue", "a b")])
def test_a_task_that_can_not_be_known_is_put_aside(muster, work, field, value):
    """With its payload, for a person to look at: nothing of it is lost."""
    name = work.task(work.ready)
    if value is None:
        work.redis.hdel(name, field)
    else:
        work.redis.hset(name, field, value)
    before = work.redis.hgetall(name)
    first = check(muster)
    assert ("FIELD", work.ready) in named(first) and first["repaired"] == 0, first
    result = check(muster, "REPAIR")
    assert result["findings"] == result["repaired"], result
    assert_clean(muster)
    assert work.redis.hgetall(name + ":damaged") == before
    assert work.redis.get(work.key("payload", work.ready) + ":damaged") == "12345"
    assert not work.redis.exists(name, work.key("payload", work.ready))
    assert any(member.startswith("task|") and member.endswith(work.ready) for member in work.quarantined())
    assert work.ready not in work.entries("queue")


def test_a_running_task_without_worker_or_token_is_put_aside(muster, work):
    for field in ("worker", "token"):
        task = work.started("w5", field)["id"]
        work.redis.hdel(work.task(task), field)
        assert ("FIELD", task) in named(check(muster))
        check(muster, "REPAIR")
        assert_clean(muster)
        assert not work.redis.exists(work.task(task)) and work.redis.exists(work.task(task) + ":damaged")
        assert task not in work.entries("lease")


def test_a_running_task_without_a_lease_runs_out_at_once(muster, work, stores):
    work.redis.delete(work.key("lease"))
    assert named(check(muster)) == {("MISSING", work.running)}
    assert check(muster, "REPAIR")["repaired"] == 1
    wait_until(lambda: work.redis.hget(work.task(work.running), "crashes") == "1", 10, "the sweep has taken it")
    assert claim_one(muster, "q", "w3", *LONG)["id"] == work.running, "the first by priority"
    assert_clean(muster)
    recount(stores)


@pytest.mark.parametrize("score", ["inf", "-inf", 12345.5, 2e16])
def test_a_lease_that_can_not_be_runs_out_at_once(muster, work, score):
    work.redis.zadd(work.key("lease"), {work.running: float(score)})
    expired = ("-inf", 12345.5)  # the sweep may have been quicker
    assert named(check(muster)) in [{("SCORE", work.running)}, set()][:1 + (score in expired)]
    check(muster, "REPAIR")
    wait_until(lambda: work.redis.hget(work.task(work.running), "crashes") == "1", 10, "the sweep has taken it")
    assert_clean(muster)


@pytest.mark.parametrize("score", ["inf", 2e16])
def test_a_delay_that_can_not_be_ends(muster, work, score):
    work.redis.zadd(work.key("delayed"), {work.delayed: float(score)})
    assert named(check(muster)) == {("SCORE", work.delayed)}
    assert check(muster, "REPAIR")["repaired"] == 1
    wait_until(lambda: work.delayed in work.entries("queue"), 10, "it is ready")
    assert_clean(muster)


def test_an_end_in_no_place_has_just_come_to_it(muster, work):
    for end, task in (("success", work.success), ("failed", work.failed), ("cancelled", work.cancelled)):
        work.redis.delete(work.key("status", f"q:{end}"))
        assert named(check(muster)) == {("MISSING", task)}
        check(muster, "REPAIR")
        assert work.entries(end) == [task]
        work.redis.zadd(work.key("status", f"q:{end}"), {task: float("inf")})
        assert named(check(muster)) == {("SCORE", task)}
        check(muster, "REPAIR")
        assert_clean(muster)


def test_work_that_nobody_would_come_for_is_due_again(muster, work):
    task = work.started("w4", "soon")
    work.redis.zadd(work.key("lease"), {task["id"]: 1e15 + int(task["token"]) % 1000})
    due = work.single("due")
    for score in (None, 9e15):
        work.redis.zrem(due, "q")
        if score:
            work.redis.zadd(due, {"q": score})
        found = check(muster)
        assert named(found) == {("DUE", "")}, found
    assert check(muster, "REPAIR")["repaired"] == 1
    wait_until(lambda: task["id"] in work.entries("queue"), 10, "the lease has run out")
    work.redis.zadd(due, {"no queue": 9e15, "nobody": 9e15})
    result = check(muster, "REPAIR")
    assert named(result) == {("MEMBER", "")} and result["repaired"] == 2, result
    assert_clean(muster)


TYPES = ("queue", "delayed", "lease", "queue_info", "waiting", "woken")


@pytest.mark.timeout(300)
def test_keys_of_another_type_are_put_aside_and_what_they_held_comes_back(muster, work, stores):
    good = picture(stores)
    names = [work.key(kind) for kind in TYPES] + [work.key("status", "q:failed"), work.key("worker", "w1"),
             work.key("dedupe", "q:k"), work.single("queues"), work.single("due"), work.single("quarantine")]
    for name in names:
        wrong = "set" if not name.endswith(("worker:w1", "queues")) else "hash"
        work.redis.delete(name)
        (work.redis.sadd(name, "x") if wrong == "set" else work.redis.hset(name, "x", "y"))
        result = check(muster)
        short = name[name.index("}:") + 2:]
        assert ("TYPE", "", "", f"{short} is a {wrong}") in result["items"], (name, result)
        assert named(result) <= {("TYPE", ""), ("KEY", work.keyed), ("WORKER", work.running)}, (name, result)
        result = check(muster, "REPAIR")
        assert result["findings"] == result["repaired"], (name, result)
        wait_until(lambda: check(muster, "REPAIR")["findings"] == 0, 10, "it is quiet")
        assert work.redis.delete(name + ":damaged") == 1
        assert_clean(muster)
    recount(stores)
    assert picture(stores)["payload"] == good["payload"]


def test_what_can_not_be_healed_is_told_and_left(muster, work, stores):
    """A payload that is not what was submitted; a key that two tasks claim; a queue in the wrong partition."""
    twin = submit(muster, "q", "", "KEY", "k2")
    work.redis.set(work.key("payload", work.ready), "other")
    work.redis.append(work.key("payload", work.ready), "wise")
    work.redis.delete(work.key("dedupe", "q:k2"))
    work.redis.hset(work.task(twin), "key", "k")
    work.redis.hset(work.key("queue_info", "q7"), "keep", 5)
    bad = picture(stores)
    for words in ((), ("REPAIR",)):
        result = check(muster, *words)
        assert named(result) == {("SIZE", work.ready), ("KEY", twin), ("QUEUE", "")} and result["repaired"] == 0, result
        assert picture(stores) == bad


def test_counters_are_numbers_again(muster, work):
    tokens = int(work.claimed["token"])
    work.redis.set(work.single("task_seq"), "x1")
    work.redis.set(work.single("task_fence"), "-")
    assert {item[3] for item in check(muster)["items"]} == {"task_seq x1", "task_fence -"}
    assert check(muster, "REPAIR")["repaired"] == 2
    assert_clean(muster)
    assert submit(muster, "q", "later") > work.ready
    assert int(claim_one(muster, "q")["token"]) > tokens


def test_a_window_outlives_its_task(muster, work):
    """Such a key is no finding, whatever has become of the task."""
    task = submit(muster, "q", "w", "KEY", "window", "WINDOW", "1h", "PRIORITY", 1)
    assert done(muster, claim_one(muster, "q")) == "OK"
    assert_clean(muster)
    work.redis.zrem(work.key("status", "q:success"), task)
    work.redis.delete(work.task(task), work.key("payload", task))
    work.redis.hincrby(work.key("queue_info"), "bytes", -1)
    assert_clean(muster)


def test_what_is_answered(muster, work):
    assert as_map(muster.ask("TASK.CHECK", "STATUS"))["state"] == "done"
    for words in (("STATUS", "REPAIR"), ("TRUTH",), ("REPAIR", "REPAIR")):
        assert muster.ask("TASK.CHECK", *words).startswith("ERR"), words
    work.redis.zrem(work.key("queue"), work.ready)
    [item] = as_map(muster.ask("TASK.CHECK"))["items"]
    assert as_map(item) == {"code": "MISSING", "task": work.ready, "queue": "q", "detail": "pending", "repaired": 0}
    result = as_map(muster.ask("TASK.CHECK", "REPAIR", "NOWAIT"))
    assert result["state"] == "running"
    wait_until(lambda: as_map(muster.ask("TASK.CHECK", "STATUS"))["state"] == "done", 10, "it is over")
    result = check(muster, "STATUS")
    assert (result["mode"], result["findings"], result["repaired"], result["codes"]) == (
        "repair", 1, 1, {"MISSING": 1}), result
    assert result["tasks"] == 8 and result["skipped"] == 0, result
    assert muster.info()["task_check_findings"] == "1"


def test_bytes_of_a_big_queue_are_not_looked_at(muster, stores):
    with muster.raw(60) as raw:
        for n in range(2000):
            raw.send(b"TASK.SUBMIT big xx\r\n")
        assert all(isinstance(raw.read(), list) for _ in range(2000))
    redis_of(stores).hincrby(key_of(stores, "big", "queue_info"), "bytes", 1)
    result = check(muster)
    assert (result["findings"], result["skipped"], result["tasks"]) == (0, 1, 2000), result


def test_a_check_ends_with_redis(muster, intact):
    with muster.raw(60) as raw:
        for n in range(5000):
            raw.send(f"TASK.SUBMIT q{n % 50} x\r\n")
        assert all(isinstance(raw.read(), list) for _ in range(5000))
        raw.send(b"TASK.CHECK REPAIR\r\n")
        wait_until(lambda: muster.info()["task_check_state"] == "running", 10, "it runs")
        intact.kill("redis")
        assert str(text_of(raw.read())).startswith("UNAVAILABLE")
    intact.start(["redis"])
    muster.wait_ready()
    assert as_map(muster.ask("TASK.CHECK", "STATUS"))["state"] == "failed"
    assert check(muster, "REPAIR")["state"] == "done"
    assert_clean(muster)


# ---- while workers are busy ----

class Client(threading.Thread):
    """Submits, claims and ends tasks of a few queues at random until told to stop."""

    def __init__(self, muster, seed):
        super().__init__(daemon=True)
        self.muster, self.rng, self.name = muster, random.Random(seed), f"w{seed}"
        self.over, self.done, self.refused = threading.Event(), 0, None
        self.held, self.past = [], []

    def words(self):
        rng, queue = self.rng, f"busy{self.rng.randint(0, 3)}"
        if self.held and rng.random() < 0.6:
            task = self.held.pop(rng.randrange(len(self.held)))
            claim = (task["id"], task["token"])
            self.past = [*self.past[-50:], task["id"]]
            return rng.choice([
                ("TASK.DONE", *claim), ("TASK.DONE", *claim, "RESULT", "ok"), ("TASK.DONE", *claim, "NEXT"),
                ("TASK.FAIL", *claim, "ERROR", "no"), ("TASK.FAIL", *claim, "DELAY", "0.1"),
                ("TASK.FAIL", *claim, "DELAY", "0"), ("TASK.RELEASE", *claim), ("TASK.CANCEL", task["id"]),
                ("PING",)])  # leaves it to its lease
        if self.past and rng.random() < 0.2:
            return rng.choice(["TASK.RETRY", "TASK.CANCEL"]), rng.choice(self.past)
        return rng.choice([
            ("TASK.SUBMIT", queue, "x" * rng.randint(0, 80), "PRIORITY", rng.randint(1, 10)),
            ("TASK.SUBMIT", queue, "later", "DELAY", "0.2"),
            ("TASK.SUBMIT", queue, "once", "KEY", f"k{rng.randint(0, 5)}"),
            ("TASK.SUBMIT", queue, "in a while", "KEY", f"w{rng.randint(0, 5)}", "WINDOW", "0.3"),
            ("TASK.CLAIM", queue, self.name, "COUNT", rng.randint(1, 5), "LEASE", "0.2"),
            ("TASK.CLAIM", queue, self.name, "COUNT", 2, "LEASE", "30"),
            ("TASK.CLAIM", queue, self.name, "WAIT", 20)])

    def run(self):
        with self.muster.raw(60) as raw:
            while not self.over.is_set():
                words = self.words()
                reply = text_of(raw.command(*words))
                self.done += 1
                if isinstance(reply, list) and (words[0] == "TASK.CLAIM" or "NEXT" in words):
                    self.held += [as_map(item) for item in reply]
                elif str(reply).startswith(("ERR", "UNAVAILABLE", "CORRUPT")):
                    self.refused = (words, reply)
                    return


@contextlib.contextmanager
def busy(musters, clients=20):
    for n, age in enumerate(("0", "200ms")):
        musters[0].map("TASK.CONFIG", f"busy{n}", "age_after", age, "crashes", 2)
    threads = [Client(musters[n % len(musters)], n) for n in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.over.set()
        for thread in threads:
            thread.join()
    for thread in threads:
        assert thread.refused is None, thread.refused
    assert sum(thread.done for thread in threads) > 1000


KEEP_FEW = {"task": {"keep": 20, "backoff": "100ms"}}


@pytest.mark.timeout(300)
def test_nothing_is_found_while_workers_are_busy(make_muster, stores):
    """By two daemons, with leases that run out, delays that end and old tasks that leave meanwhile."""
    musters = [make_muster(config=KEEP_FEW), make_muster(config=KEEP_FEW)]
    checks, until = 0, time.monotonic() + 15
    with busy(musters):
        while time.monotonic() < until:
            for muster in musters:
                result = check(muster)
                assert result["findings"] == 0, result
                checks += 1
    assert checks >= 4
    assert_clean(musters[0])
    assert int(musters[0].info()["sweep_expired"]) + int(musters[1].info()["sweep_expired"]) > 0


@pytest.mark.timeout(300)
def test_faults_are_healed_while_workers_are_busy(make_muster, stores):
    musters = [make_muster(config=KEEP_FEW), make_muster(config=KEEP_FEW)]
    rng, client, until = random.Random(5), redis_of(stores), time.monotonic() + 12
    with busy(musters, 8):
        wait_until(lambda: all(stores.keys(f"{{*}}:queue_info:busy{n}") for n in range(4)), 20, "there are queues")
        while time.monotonic() < until:
            for _ in range(10):
                queue = f"busy{rng.randint(0, 3)}"
                place = key_of(stores, queue, rng.choice(["queue", "lease", "delayed"]))
                other = key_of(stores, queue, rng.choice(["queue", "lease", "delayed"]))
                for task in client.zrandmember(place, 2) or []:
                    rng.choice([lambda t=task, k=place: client.zrem(k, t),
                                lambda t=task, k=other: client.zadd(k, {t: 2e15}),
                                lambda k=place: client.zadd(k, {f"x{rng.random()}": 3e15})])()
            for muster in musters:
                assert check(muster, "REPAIR")["state"] == "done"
    wait_until(lambda: check(musters[0], "REPAIR")["findings"] == 0, 30, "all is healed")
    assert_clean(musters[1])
