# SPDX-License-Identifier: MIT
"""Cancelling: at once what waits; what runs is told at its next beat, and its end decides. Work that is done counts."""
import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import tasks
from harness.attendance import as_map, pipelined, texts
from harness.tasks import (TaskNotices, beat, claim, claim_one, done, fail, get, hash_of, info_of, pipeline, recount,
                           refused, release, status, submit, wait_gone)

STEPS = int(os.environ.get("MUSTER_TASK_STEPS", "4000"))
CONFIG = {"server": {"log_level": "info"}, "task": {"keep": 1000000}}


def cancel(muster, task):
    """The status that a CANCEL tells."""
    reply = muster.map("TASK.CANCEL", task if isinstance(task, str) else task["id"])
    return reply["status"]


def test_what_waits_is_never_delivered(make_muster, stores):
    """Ready or delayed, the task is cancelled when the answer comes: no worker gets it, not through another daemon nor
    after everything was restarted."""
    pair = [make_muster() for _ in range(2)]
    ready, delayed = submit(pair[0], "mail", "a"), submit(pair[0], "mail", "b", "DELAY", "0.2")
    kept = submit(pair[0], "mail", "c")
    failed = submit(pair[0], "mail", "d", "PRIORITY", 1)
    fail(pair[1], claim_one(pair[1], "mail"), "DELAY", "0.3")
    for task in (ready, delayed, failed):
        assert cancel(pair[1], task) == "cancelled" and status(pair[0], task) == "cancelled"
    for muster in pair:
        muster.kill9()
    for muster in pair:
        muster.start()
    before = tasks.redis_ms(stores)
    assert claim_one(pair[0], "mail")["id"] == kept
    while tasks.redis_ms(stores) < before + 500:
        assert claim(pair[1], "mail") == []
    assert recount(stores).counts("mail") == {"cancelled": 3, "running": 1}


def test_who_runs_it_is_told(muster):
    """Until the worker is told nothing changes for it; each beat tells, and goes on extending the lease, until the
    worker gives up."""
    task = submit(muster, "mail")
    held = claim_one(muster, "mail")
    assert beat(muster, "w1", held)["cancel"] == []
    assert [cancel(muster, task) for _ in range(3)] == ["running"] * 3
    for _ in range(2):
        deadline = get(muster, task)["deadline"]
        assert beat(muster, "w1", held) == {"extended": [], "stale": [], "cancel": [task]}
        assert get(muster, task)["deadline"] >= deadline and get(muster, task)["cancel"] == 1
    assert release(muster, held) == "OK" and status(muster, task) == "cancelled"
    assert release(muster, held) == "OK" and claim(muster, "mail") == []
    recount(muster.stores)


ENDINGS = {
    "released": (release, "cancelled"),
    "failed": (lambda muster, task: fail(muster, task, "ERROR", "gave up", "DELAY", "0"), "cancelled"),
    "lost": (lambda muster, task: (beat(muster, "w1", task, words=("LEASE", "0.1")),
                                   wait_gone(muster.stores, "mail", task)), "cancelled"),
    "done": (done, "success"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_how_it_ends(muster, stores, ending):
    """Given back, failed or lost it is cancelled, whatever retries are left; done before the worker gave up it is a
    success."""
    end, expected = ENDINGS[ending]
    notices = TaskNotices(stores, "task.#")
    task = submit(muster, "mail", "x", "RETRIES", 5)
    held = claim_one(muster, "mail")
    assert cancel(muster, task) == "running"
    end(muster, held)
    assert status(muster, task) == expected and claim(muster, "mail") == []
    refused(muster, "CONFLICT", ("TASK.CANCEL", task))
    assert info_of(stores, "mail")[expected] == "1" and recount(stores).counts("mail") == {expected: 1}
    notices.wait_quiet(muster)
    assert notices.told() == ({(task, "cancelled"): 1} if expected == "cancelled" else {})
    assert [row["status"] for row in texts(stores.sql("SELECT status FROM task WHERE id = %s", (task,)))] == \
        [expected]


def test_what_has_ended_or_is_not_there(muster):
    """A success, a failure, one that is cancelled already and an id that nobody has: an error that says so, and nothing
    changes, not even for the worker that had it."""
    submit(muster, "mail", "a")
    success = claim_one(muster, "mail")
    assert done(muster, success) == "OK"
    submit(muster, "mail", "b", "RETRIES", 0)
    failed = claim_one(muster, "mail")
    assert fail(muster, failed)["status"] == "failed"
    twice = submit(muster, "mail", "c")
    assert cancel(muster, twice) == "cancelled"
    refused(muster, "CONFLICT", *[("TASK.CANCEL", task) for task in (success["id"], failed["id"], twice)])
    refused(muster, "UNKNOWN", ("TASK.CANCEL", twice[:8] + "00" + twice[10:]))
    assert done(muster, success) == "OK" and beat(muster, "w1", success)["stale"] == [success["id"]]


def test_cancelled_and_brought_back(muster):
    """RETRY of a cancelled task: it is as new, and no worker is told of the old cancel."""
    task = submit(muster, "mail")
    held = claim_one(muster, "mail")
    assert cancel(muster, task) == "running" and release(muster, held) == "OK"
    assert muster.ask("TASK.RETRY", task) == "OK"
    held = claim_one(muster, "mail")
    assert beat(muster, "w1", held) == {"extended": [task], "stale": [], "cancel": []}
    assert fail(muster, held, "DELAY", "0")["status"] == "pending"
    assert done(muster, claim_one(muster, "mail")) == "OK" and status(muster, task) == "success"


# What a worker may say while somebody cancels: (what the task is when it came first, when the cancel came first), and
# what the cancel is told then.
RACES = {
    "DONE": ("success", "success", "CONFLICT", "running"),
    "RELEASE": ("cancelled", "cancelled", "cancelled", "running"),
    "FAIL": ("cancelled", "cancelled", "cancelled", "running"),  # with retries left
    "LAST": ("failed", "cancelled", "CONFLICT", "running"),  # a FAIL without
}


def race(muster_a, muster_b, rng, verb, count):
    """So many running tasks, each ended and cancelled at the same time over two connections, in random orders."""
    words = ("RETRIES", 0 if verb == "LAST" else 5)
    pipelined(muster_a, [("TASK.SUBMIT", "mail", n, *words) for n in range(count)], 500)
    held = [task for _ in range(count // 100) for task in claim(muster_a, "mail", "w1", "COUNT", 100)]
    assert len(held) == count
    said = "FAIL" if verb == "LAST" else verb
    ends = [(f"TASK.{said}", task["id"], task["token"], *(("DELAY", "1h") if verb == "FAIL" else ())) for task in held]
    cancels = [("TASK.CANCEL", task["id"]) for task in held]
    # Mostly in the same order, so that they meet; shuffled a little, so that now one and now the other is first.
    for commands in (ends, cancels):
        for at in range(0, count - 20, 10):
            part = commands[at:at + 20]
            rng.shuffle(part)
            commands[at:at + 20] = part
    with muster_a.raw(60) as one, muster_b.raw(60) as two, ThreadPoolExecutor(2) as pool:
        size = rng.choice((1, 5, 25))

        def play(raw, commands):
            return [reply for at in range(0, count, size) for reply in pipeline(raw, commands[at:at + size])]
        answers = [pool.submit(play, raw, commands) for raw, commands in ((one, ends), (two, cancels))]
        ended, cancelled = (dict(zip((words[1] for words in commands), future.result()))
                            for commands, future in zip((ends, cancels), answers))
    return held, ended, cancelled


@pytest.mark.parametrize("verb", RACES)
def test_it_meets_the_workers_own_end(make_muster, stores, verb):
    """Cancel and the end of the run at the same time, thousands of times: only the two orders can be seen, each with
    its one outcome, the worker's call is always taken, and each task ends at most once."""
    pair = [make_muster(config=CONFIG) for _ in range(2)]
    first, second, late, early = RACES[verb]
    rng = random.Random(verb)
    seen = Counter()
    for _ in range(max(1, STEPS // 2000)):
        held, ended, cancelled = race(*pair, rng, verb, 1000)
        found = recount(stores).queues["mail"]
        for task in (task["id"] for task in held):
            assert isinstance(ended[task], list) or ended[task] == "OK", ended[task]
            answer = cancelled[task]
            told = as_map(answer)["status"] if isinstance(answer, list) else answer.split(" ", 1)[0]
            assert told in (late, early), answer
            expected = second if told == early else first
            assert (found[task].place, found[task].fields["status"]) == (expected, expected), (told, found[task])
            seen[told] += 1
    info = info_of(stores, "mail")
    counts = recount(stores).counts("mail")
    assert {end: int(info.get(end, 0)) for end in tasks.ENDS} == {end: counts[end] for end in tasks.ENDS}
    assert len(seen) == 2, f"only one order was seen: {seen}"
    print(f"\n{verb}: {dict(seen)}")


def test_it_meets_a_claim(make_muster, stores):
    """Cancel and claim at the same time: either nobody gets the task, or its worker is told at the next beat."""
    pair = [make_muster(config=CONFIG) for _ in range(2)]
    ids = [as_map(reply)["id"] for reply in pipelined(pair[0], [("TASK.SUBMIT", "mail", n) for n in range(1000)], 500)]
    with pair[0].raw(60) as one, pair[1].raw(60) as two, ThreadPoolExecutor(2) as pool:
        claims = pool.submit(lambda: [reply for _ in range(200) for reply in
                                      pipeline(one, [("TASK.CLAIM", "mail", "w1", "COUNT", 2)] * 3)])
        order = [task for at in range(0, 1000, 10) for task in random.Random(at).sample(ids[at:at + 10], 10)]
        answers = [reply for at in range(0, 1000, 4)
                   for reply in pipeline(two, [("TASK.CANCEL", task) for task in order[at:at + 4]])]
        held = [task for reply in claims.result() for task in tasks.claims(reply)]
    told = {task: as_map(answer)["status"] for task, answer in zip(order, answers)}
    got = {task["id"]: task for task in held}
    assert len(got) == len(held) and {task for task, word in told.items() if word == "running"} == set(got)
    for at in range(0, len(held), 100):
        part = held[at:at + 100]
        assert beat(pair[0], "w1", *part) == {"extended": [], "stale": [], "cancel": [task["id"] for task in part]}
    assert recount(stores).counts("mail") == Counter({"running": len(got), "cancelled": 1000 - len(got)})
    assert all(hash_of(stores, "mail", task)["cancel"] == "1" for task in list(got)[:10])
