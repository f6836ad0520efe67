# SPDX-License-Identifier: MIT
"""The sweep: what time does to tasks, by Redis's clock, a bounded part at a time, by the daemon that holds the
partition; and nothing that is damaged keeps the rest from it."""
import signal
import subprocess
import sys
import threading
import time

import pytest

from harness.attendance import as_map
from harness.muster import text_of
from harness.tasks import (await_task, claim, claim_one, done, ids_in, key_of, recount, redis_of, stats, submit,
                           wait_gone, wait_ready)
from harness.wait import wait_until


def sweep(muster):
    """Its counters."""
    return {name[6:]: int(value) for name, value in muster.info().items() if name.startswith("sweep_")}


def single(stores, queue, name):
    """A key of which a partition has one."""
    return key_of(stores, queue, name, "").removesuffix(":")


def flood(muster, queue, count, *words):
    """Submits so many tasks."""
    with muster.raw(120) as raw:
        for first in range(0, count, 500):
            n = min(500, count - first)
            raw.send("".join(f"TASK.SUBMIT {queue} {i} {' '.join(words)}\r\n" for i in range(first, first + n)))
            for _ in range(n):
                assert isinstance(raw.read(), list)


def claim_all(muster, queue, count, lease):
    """All of them, a hundred at a time; how many."""
    got = 0
    with muster.raw(120) as raw:
        while got < count:
            tasks = raw.command("TASK.CLAIM", queue, "w1", "COUNT", 100, "LEASE", lease)
            if not tasks:
                break
            got += len(tasks)
    return got


@pytest.mark.parametrize("minutes", [-10, 10])
def test_leases_and_delays_go_by_the_clock_of_redis(make_muster, stores, minutes):
    """The daemon's is ten minutes off."""
    muster = make_muster(held_clock=True)
    muster.set_clock(int((time.time() + minutes * 60) * 1000))
    task = submit(muster, "q")
    late = submit(muster, "q", "later", "DELAY", "1s")
    held = claim_one(muster, "q", "w1", "LEASE", "0.2")
    lease = redis_of(stores).zscore(key_of(stores, "q", "lease"), task)
    assert held["id"] == task
    wait_gone(stores, "q", task)
    seconds, micros = stores.redis.time()
    assert seconds * 1000000 + micros >= lease, "not before its time"
    again = claim_one(muster, "q", "w2", "LEASE", "1h")
    assert (again["id"], again["attempt"]) == (task, 2)
    not_before = redis_of(stores).zscore(key_of(stores, "q", "delayed"), late)
    assert await_task(muster, "q")["id"] == late
    seconds, micros = stores.redis.time()
    assert not_before is None or seconds * 1000000 + micros >= not_before
    assert ids_in(stores, "q", "lease")[-1:] == [task], "nobody has taken the long one"


@pytest.mark.timeout(300)
def test_twenty_thousand_leases_at_once_leave_room_for_others(muster, stores):
    """All are recovered, and meanwhile others get answers between the steps: the longest that one waits is a small
    part of the time that all of it takes."""
    count = 20000
    flood(muster, "many", count)
    assert claim_all(muster, "many", count, "60") == count
    flood(muster, "few", 2000)
    lease = key_of(stores, "many", "lease")
    seconds, micros = stores.redis.time()
    at = (seconds + 1) * 1000000 + micros
    # As if all had been claimed in one instant; the tokens' digits stay as they are.
    redis_of(stores).eval("""for i = 0, 19999, 1000 do
        local list, out = redis.call('ZRANGE', KEYS[1], i, i + 999, 'WITHSCORES'), {}
        for j = 1, #list, 2 do
          out[j], out[j + 1] = string.format('%.0f', ARGV[1] - ARGV[1] % 1000 + list[j + 1] % 1000), list[j]
        end
        redis.call('ZADD', KEYS[1], 'XX', unpack(out))
      end
      return redis.call('ZADD', KEYS[2], ARGV[1], 'many')""", 2, lease, single(stores, "many", "due"), at)
    waits, over, began = [], threading.Event(), None
    with muster.raw(60) as raw:
        while not over.is_set():
            start = time.monotonic()
            reply = raw.command("TASK.CLAIM", "few", "w2", "LEASE", "1h") if len(waits) % 2 else raw.command("PING")
            assert text_of(reply) != "OK" and not str(reply).startswith("UNAVAILABLE"), reply
            left = int(redis_of(stores).zcard(lease))
            if left < count and began is None:
                began, waits = start, []
            waits.append(time.monotonic() - start)
            if left == 0:
                over.set()
    took = time.monotonic() - began
    assert len(waits) >= 20, (len(waits), took)
    waits.sort()
    assert waits[len(waits) * 9 // 10] < took / 5, (waits[-5:], took)
    wait_ready(stores, "many", count)
    assert sweep(muster)["expired"] == count
    recount(stores)


def test_garbage_is_quarantined_and_the_rest_proceeds(muster, stores):
    task = submit(muster, "q")
    submit(muster, "q", "later", "DELAY", "0.3")
    client = redis_of(stores)
    claim_one(muster, "q", "w1", "LEASE", "0.3")
    junk = {"": 1, "x": 2, "00000000vv" + task[10:]: 3, "\udcff\n|": 4, "9" * 300: 5}
    client.zadd(key_of(stores, "q", "lease"), junk)
    client.zadd(key_of(stores, "q", "delayed"), junk)
    client.zadd(single(stores, "q", "due"), {"q": 1, "not a queue": 1, "elsewhere": 1})
    wait_ready(stores, "q", 2)
    assert not ids_in(stores, "q", "lease") and not ids_in(stores, "q", "delayed")
    quarantine = client.zrange(single(stores, "q", "quarantine"), 0, -1)
    assert {f"lease|q|{member}" for member in junk} <= set(quarantine)
    assert {f"delayed|q|{member}" for member in junk} <= set(quarantine)
    wait_until(lambda: sweep(muster)["quarantined"] >= 12, 10, "what was due and is no queue has gone, too")
    assert "event=quarantined" in muster.log()
    assert muster.log().count("event=quarantined") <= 5, "one line a second at most"
    recount(stores)


def test_a_damaged_hash_in_a_lease_set_is_put_away(muster, stores):
    broken, wrong, sound = (submit(muster, "q", text) for text in ("a", "b", "c"))
    client = redis_of(stores)
    assert len(claim(muster, "q", "w1", "COUNT", 3, "LEASE", "0.5")) == 3
    client.hdel(key_of(stores, "q", "task", broken), "status")
    client.delete(key_of(stores, "q", "task", wrong))
    client.set(key_of(stores, "q", "task", wrong), "a string")
    wait_ready(stores, "q", 1)
    assert ids_in(stores, "q", "queue") == [sound]
    wait_gone(stores, "q")
    quarantine = client.zrange(single(stores, "q", "quarantine"), 0, -1)
    assert {f"lease|q|{broken}", f"lease|q|{wrong}"} <= set(quarantine)


@pytest.mark.parametrize("kind", ["lease", "delayed", "queue", "queue_info", "waiting"])
def test_a_queue_of_wrong_types_keeps_nobody_waiting(muster, stores, kind):
    client = redis_of(stores)
    submit(muster, "bad")
    claim_one(muster, "bad", "w1", "LEASE", "0.2")
    name = key_of(stores, "bad", kind)
    aside = client.exists(name) and client.rename(name, name + ":aside")
    client.set(name, "not what it was")
    other = submit(muster, "good")
    claim_one(muster, "good", "w1", "LEASE", "0.2")
    assert await_task(muster, "good", "w2")["id"] == other
    wait_until(lambda: sweep(muster)["failures"] > 0, 10, "it was tried")
    assert muster.log().count("persist sweep event=failed") == 1
    client.delete(name)
    if aside:
        client.rename(name + ":aside", name)
    assert await_task(muster, "bad", "w3", deadline=40)["attempt"] == 2, "and it is taken up again"


def test_a_due_set_of_another_type_keeps_no_partition_waiting(muster, stores):
    client = redis_of(stores)
    submit(muster, "q")
    claim_one(muster, "q", "w1", "LEASE", "0.2")
    due = single(stores, "q", "due")
    client.delete(due)
    client.set(due, "x")
    tasks = [submit(muster, f"other{n}") for n in range(5)]
    for n in range(5):
        reply = muster.ask("TASK.CLAIM", f"other{n}", "w1", "LEASE", "0.2")
        if isinstance(reply, str):  # of the same partition
            tasks[n] = None
    for n, task in enumerate(tasks):
        assert task is None or await_task(muster, f"other{n}", "w2")["id"] == task
    assert "reason=\"due is of another type\"" in muster.log()
    assert as_map(muster.ask("TASK.CHECK", "REPAIR"))["findings"] >= 1
    assert await_task(muster, "q", "w2")["attempt"] == 2


WORKER = """
import socket, sys
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.sendall(b"TASK.CLAIM q stopped LEASE 0.3\\r\\n")
link.recv(4096)
print("claimed", flush=True)
while True:
    link.recv(4096)
"""


def test_a_worker_that_stands_still_loses_its_task(muster, stores):
    """Its connection stays open."""
    task = submit(muster, "q")
    with subprocess.Popen([sys.executable, "-c", WORKER, str(muster.port)], stdout=subprocess.PIPE) as worker:
        try:
            assert worker.stdout.readline() == b"claimed\n"
            worker.send_signal(signal.SIGSTOP)
            wait_gone(stores, "q", task)
            found = muster.map("TASK.GET", task)
            assert (found["status"], found["retries"], found["crashes"]) == ("pending", 1, 1)
        finally:
            worker.kill()


def test_retention_lets_go_of_ended_tasks_and_of_nothing_else(make_muster, stores):
    """Those that MySQL has, over `keep`."""
    muster = make_muster(config={"task": {"keep": 3}})
    client = redis_of(stores)
    others = [submit(muster, "q", "ready", "PRIORITY", 9), submit(muster, "q", "late", "DELAY", "1h"),
              submit(muster, "q", "mine", "PRIORITY", 1)]
    claim_one(muster, "q", "w1", "LEASE", "1h")
    ended = []
    for n in range(20):
        ended.append(submit(muster, "q", f"{n}", "PRIORITY", 2))
        assert done(muster, claim_one(muster, "q", "w2")) == "OK"
    failed = submit(muster, "q", "bad", "RETRIES", 0, "PRIORITY", 2)
    muster.ask("TASK.FAIL", failed, claim_one(muster, "q", "w2")["token"])
    wait_until(lambda: ids_in(stores, "q", "success") == ended[-3:], 20, "the newest stay")
    assert sweep(muster)["removed"] == 17
    names = [key_of(stores, "q", kind, task) for task in ended[:-3] for kind in ("task", "payload")]
    assert client.exists(*names) == 0
    assert ids_in(stores, "q", "failed") == [failed], "each status for itself"
    assert (ids_in(stores, "q", "queue"), ids_in(stores, "q", "delayed"), ids_in(stores, "q", "lease")) == (
        [others[0]], [others[1]], [others[2]])
    assert stats(muster, "q")["bytes"] == sum(len(t) for t in ("ready", "late", "mine", "17", "18", "19", "bad"))
    rows = stores.sql("SELECT id FROM task WHERE queue = 'q' AND status = 'success'")
    assert {row["id"] if isinstance(row["id"], str) else row["id"].decode() for row in rows} == set(ended)
    recount(stores)


def test_nothing_leaves_that_mysql_does_not_have(make_muster, stores, intact):
    muster = make_muster(config={"task": {"keep": 0}})
    submit(muster, "q")
    wait_until(lambda: stores.sql("SELECT 1 FROM information_schema.tables WHERE table_name = 'task'"), 20, "tables")
    intact.stop(["mariadb"])
    task = claim_one(muster, "q")
    assert done(muster, task) == "OK"
    calls = sweep(muster)["calls"]
    wait_until(lambda: sweep(muster)["calls"] > calls + 3, 20, "the sweep has looked again and again")
    assert ids_in(stores, "q", "success") == [task["id"]]
    intact.start(["mariadb"])
    wait_gone(stores, "q", task, place="success", deadline=60)
    assert [row["id"] for row in stores.sql("SELECT id FROM task")] in ([task["id"]], [task["id"].encode()])


def test_the_other_daemon_goes_on(make_muster, stores):
    """When one dies that has half of the partitions."""
    one, two = make_muster(), make_muster()
    wait_until(lambda: 0 < int(two.info()["partitions_held"]) < 40, 20, "they share")
    for n in range(30):
        submit(one, f"q{n}")
        claim_one(one, f"q{n}", "w1", "LEASE", "1")
    one.kill9()
    for n in range(30):
        assert await_task(two, f"q{n}", "w2", "LEASE", "1h", deadline=40)["attempt"] == 2
    recount(stores)


def test_redis_comes_back_and_leases_run_out(muster, stores, intact):
    task = submit(muster, "q")
    claim_one(muster, "q", "w1", "LEASE", "1")
    intact.stop(["redis"])
    intact.start(["redis"])
    muster.wait_ready()
    assert await_task(muster, "q", "w2", deadline=30)["id"] == task


def test_old_tasks_go_up_and_keep_their_order(muster, stores):
    """By a priority for each `age_after`, never past the first."""
    assert "age_after" in muster.map("TASK.CONFIG", "q", "age_after", "500ms")
    low = [submit(muster, "q", f"low {n}", "PRIORITY", 4) for n in range(3)]
    wait_until(lambda: redis_of(stores).zcount(key_of(stores, "q", "queue"), 0, 2 * 2 ** 49 - 1) == 3, 20, "aged")
    submit(muster, "q", "new", "PRIORITY", 2)
    assert [claim_one(muster, "q", "w1", "LEASE", "1h")["id"] for _ in range(3)] == low
    recount(stores)
