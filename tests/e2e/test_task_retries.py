# SPDX-License-Identifier: MIT
"""How often a task runs, and when again: at most max_retries + 1 times on every path, with pauses that double, spread
and stay below their limit."""
import pytest

from harness import tasks
from harness.attendance import pipelined, text
from harness.muster import text_of
from harness.tasks import (TaskNotices, await_task, claim, claim_one, claims, done, fail, get, hash_of, ids_in, info_of,
                           key_of, recount, redis_ms, release, status, submit, wait_gone)


def run_failing(muster, _, queue):
    return claim_one(muster, queue), lambda task: fail(muster, task, "DELAY", "0")


def run_expiring(muster, stores, queue):
    return claim_one(muster, queue, "w1", "LEASE", "0.1"), lambda task: wait_gone(stores, queue, task)


def run_next(muster, _, queue):
    """The claim comes with the end of another task."""
    submit(muster, queue, "other", "PRIORITY", 1)
    other = claim_one(muster, queue)
    got = claims(done(muster, other, "NEXT"))
    assert len(got) == 1
    return got[0], lambda task: fail(muster, task, "DELAY", "0")


def run_in_batch(muster, _, queue):
    """The claim gets others too, which go well."""
    for n in range(3):
        submit(muster, queue, f"other {n}", "PRIORITY", 9)
    got = claim(muster, queue, "w1", "COUNT", 4)
    for task in got[1:]:
        assert done(muster, task) == "OK"
    return got[0], lambda task: fail(muster, task, "DELAY", "0")


def run_beaten(muster, stores, queue):
    """Beats keep it for a while before it is lost."""
    task = claim_one(muster, queue)
    assert tasks.beat(muster, "w1", task, words=("LEASE", "0.1"))["extended"]
    return task, lambda task: wait_gone(stores, queue, task)


def run_delayed(muster, _, queue):
    return await_task(muster, queue), lambda task: fail(muster, task, "DELAY", "0.1")


PATHS = {"fail": (run_failing, "failed"), "expiry": (run_expiring, "timeout"), "next": (run_next, "failed"),
         "batch": (run_in_batch, "failed"), "beats": (run_beaten, "timeout"), "delay": (run_delayed, "failed")}


@pytest.mark.parametrize("retries", (0, 1, 2))
def test_exactly_so_many_runs(muster, stores, retries):
    """max_retries + 1 runs, whatever brings the task to its worker and whatever ends the run; retries is the number
    of runs after the first."""
    for queue, (run, end) in PATHS.items():
        muster.map("TASK.CONFIG", queue, "crashes", "100")
        task = submit(muster, queue, "x", "RETRIES", retries)
        for attempt in range(1, retries + 2):
            found, fall = run(muster, stores, queue)
            assert (found["id"], found["attempt"]) == (task, attempt)
            assert get(muster, task)["retries"] == attempt - 1
            fall(found)
        assert (status(muster, task), get(muster, task)["retries"]) == (end, retries)
        assert claim(muster, queue) == []
    recount(stores)


def test_the_paths_share_one_count(muster, stores):
    """Failures and expiries of one task add up; giving back is free."""
    muster.map("TASK.CONFIG", "mail", "crashes", "100")
    task = submit(muster, "mail", "x", "RETRIES", 3)
    paths = ((run_failing, 2), (run_expiring, 0), (run_next, 1), (run_beaten, 1))
    for attempt, (path, released) in enumerate(paths, 1):
        for _ in range(released):
            found = claim_one(muster, "mail")
            assert found["attempt"] == attempt and release(muster, found) == "OK"
        found, fall = path(muster, stores, "mail")
        assert (found["id"], found["attempt"]) == (task, attempt)
        fall(found)
    fields = get(muster, task)
    assert (fields["status"], fields["retries"], fields["crashes"]) == ("timeout", 3, 2)
    info = info_of(stores, "mail")
    assert [info[name] for name in ("retried", "expired", "released", "timeout")] == ["2", "1", "4", "1"]


def test_success_needs_no_retry(muster):
    """What goes well at once has run once."""
    submit(muster, "mail")
    task = claim_one(muster, "mail")
    assert task["attempt"] == 1 and done(muster, task) == "OK"
    fields = get(muster, task)
    assert (fields["retries"], fields["crashes"], fields["attempt"]) == (0, 0, 1)


def test_how_often_when_nobody_says(make_muster):
    """The task's own number goes before the queue's, and that before the server's."""
    muster = make_muster(config={"task": {"retries": 1}})
    muster.map("TASK.CONFIG", "own", "retries", "2")

    def runs(queue, *words):
        task, n = submit(muster, queue, "x", *words), 0
        while status(muster, task) == "pending":
            fail(muster, claim_one(muster, queue), "DELAY", "0")
            n += 1
        return n
    assert [runs("plain"), runs("own"), runs("own", "RETRIES", "0"), runs("plain", "RETRIES", 5)] == [2, 3, 1, 6]


def test_given_back_without_end(muster, stores):
    """A release costs nothing, however often."""
    task = submit(muster, "mail", "x", "RETRIES", 0)
    for _ in range(25):
        found = claim_one(muster, "mail")
        assert found["attempt"] == 1 and release(muster, found) == "OK"
    assert claim_one(muster, "mail")["attempt"] == 1 and get(muster, task)["retries"] == 0
    assert info_of(stores, "mail")["released"] == "25"


# ---- pauses ----

def test_those_that_fail_together_come_back_apart(make_muster, stores):
    """A thousand that fail at one moment are spread over a tenth of the pause at least, none earlier than it."""
    muster = make_muster(config={"task": {"backoff": "10s"}, "server": {"log_level": "info"}})
    pipelined(muster, [("TASK.SUBMIT", "mail", n) for n in range(1000)], 500)
    held = [task for _ in range(10) for task in claim(muster, "mail", "w1", "COUNT", 100)]
    before = redis_ms(stores)
    replies = pipelined(muster, [("TASK.FAIL", task["id"], task["token"]) for task in held], 1000)
    after = redis_ms(stores)
    times = [tasks.as_map(reply)["not_before"] for reply in replies]
    assert len(times) == 1000 and min(times) >= before + 10000 and max(times) <= after + 12001
    assert max(times) - min(times) >= 1000 and len(set(times)) > 500
    recount(stores)


def test_pauses_double_up_to_their_limit(make_muster, stores):
    """base * 2^retries and up to a fifth more; not more than the limit and its fifth, and never less than the base, for
    any number of retries."""
    muster = make_muster(config={"task": {"backoff": "2s", "backoff_max": "1m"}})
    submit(muster, "mail", "x", "RETRIES", 1000000)
    expected = [(n, min(60000, 2000 * 2 ** n)) for n in (0, 1, 2, 3, 4, 5, 6, 30, 31, 32, 52, 53, 63, 64, 1000, 999998)]
    for retries, pause in expected:
        task = claim_one(muster, "mail")
        stores.redis.hset(key_of(stores, "mail", "task", task["id"]), "retries", retries)
        before = redis_ms(stores)
        told = fail(muster, task)
        waits = told["not_before"] - before
        assert pause <= waits <= pause * 1.2 + 500, f"{waits} ms after {retries} retries"
        assert (told["retries"], told["status"]) == (retries + 1, "pending")
        assert muster.ask("TASK.RETRY", task["id"]) == "OK"


def test_a_limit_below_the_base(muster, stores):
    """The limit holds; without a pause the task is ready at once."""
    muster.map("TASK.CONFIG", "mail", "backoff", "5s", "backoff_max", "1s")
    submit(muster, "mail")
    told = fail(muster, claim_one(muster, "mail"))
    assert 500 <= told["not_before"] - redis_ms(stores) <= 1200
    muster.map("TASK.CONFIG", "print", "backoff", "0s")
    submit(muster, "print")
    assert fail(muster, claim_one(muster, "print"))["not_before"] is None
    assert claim_one(muster, "print")["attempt"] == 2


def test_the_workers_own_pause(muster, stores):
    """DELAY of FAIL is taken as it is, whatever the queue's backoff."""
    submit(muster, "mail")
    for words, pause in ((("DELAY", "7s"), 7000), (("DELAY", "250ms"), 250), (("DELAY", "0.5"), 500)):
        task = await_task(muster, "mail")
        before = redis_ms(stores)
        told = fail(muster, task, *words)
        assert pause <= told["not_before"] - before <= pause + 500
        if pause > 1000:
            assert claim(muster, "mail") == [] and muster.ask("TASK.RETRY", task["id"]) == "OK"


def test_never_before_its_time(muster, stores):
    """A delayed task can't be claimed until Redis's clock has come to its time, and soon can then."""
    for delay in ("0.2", "0.45", "0.7", "700ms"):
        submit(muster, "mail", delay, "DELAY", delay)
    starts = {task: get(muster, task)["not_before"] for task in ids_in(stores, "mail", "delayed")}
    assert len(starts) == 4
    while starts:
        got = claim(muster, "mail", "w1", "COUNT", 10)
        now = redis_ms(stores)
        for task in got:
            assert 0 <= now - starts.pop(task["id"]) < 2000
    recount(stores)


# ---- brought back ----

@pytest.mark.parametrize("path", ("fail", "expiry"))
def test_brought_back_by_hand_it_begins_anew(muster, stores, path):
    """RETRY of a task that failed or timed out: as if it had not run, with all its retries."""
    run, end = PATHS[path]
    muster.map("TASK.CONFIG", "mail", "crashes", "2")
    task = submit(muster, "mail", "x", "RETRIES", 1)
    for _ in range(2):
        for attempt in (1, 2):
            found, fall = run(muster, stores, "mail")
            assert (found["id"], found["attempt"]) == (task, attempt)
            fall(found)
        assert status(muster, task) == end
        assert muster.ask("TASK.RETRY", task) == "OK" and muster.ask("TASK.RETRY", task) == "OK"
        fields = get(muster, task)
        assert [fields[name] for name in ("status", "retries", "crashes", "finished")] == ["pending", 0, 0, None]
        recount(stores)
    assert info_of(stores, "mail")[end] == "2"


def test_what_cannot_be_brought_back(muster):
    """Running and done tasks stay what they are; of a ready one nothing changes."""
    submit(muster, "mail")
    tasks.refused(muster, "UNKNOWN", ("TASK.RETRY", "000000000000"))
    task = claim_one(muster, "mail")
    tasks.refused(muster, "CONFLICT", ("TASK.RETRY", task["id"]))
    assert release(muster, task) == "OK"
    before = tasks.still(muster.stores)
    assert muster.ask("TASK.RETRY", task["id"]) == "OK" and not tasks.changed(before, tasks.still(muster.stores))
    task = claim_one(muster, "mail")
    assert done(muster, task) == "OK"
    tasks.refused(muster, "CONFLICT", ("TASK.RETRY", task["id"]))


def test_a_delayed_task_is_made_ready_without_charge(muster, stores):
    """RETRY ends the wait of a task that was submitted, or has failed, with a delay; its count stays."""
    fresh = submit(muster, "mail", "a", "DELAY", "1h")
    submit(muster, "mail", "b")
    task = claim_one(muster, "mail")
    fail(muster, task, "DELAY", "1h")
    assert claim(muster, "mail") == []
    assert muster.ask("TASK.RETRY", fresh) == muster.ask("TASK.RETRY", task["id"]) == "OK"
    assert not ids_in(stores, "mail", "delayed")
    got = claim(muster, "mail", "w1", "COUNT", 5)
    assert [(t["id"], t["attempt"]) for t in got] == [(fresh, 1), (task["id"], 2)]
    recount(stores)


# ---- what is told ----

def test_each_attempt_is_in_the_books(muster, stores):
    """Every failed attempt with its error, the lost lease, the end: MySQL has a row each, and supervisors are told of
    the end alone, once."""
    notices = TaskNotices(stores, "task.#")
    task = submit(muster, "mail", "x", "RETRIES", 2)
    for n in range(2):
        fail(muster, await_task(muster, "mail", f"w{n}"), "ERROR", f"e{n}", "DELAY", "0")
    wait_gone(stores, "mail", claim_one(muster, "mail", "w2", "LEASE", "0.1"))
    notices.wait_quiet(muster)
    rows = stores.sql("SELECT event, error, worker, retries, crashes FROM task_event WHERE task = %s ORDER BY at",
                      (task,))
    found = [tuple(map(text, row.values())) for row in rows]
    assert [row[:3] for row in found] == [("retry", "e0", "w0"), ("retry", "e1", "w1"),
                                          ("timeout", "the lease ran out", "w2")]
    assert [row[3:] for row in found] == [(1, 0), (2, 0), (2, 1)]
    assert notices.told() == {(task, "timeout"): 1}
    [ended] = stores.sql("SELECT status, retries FROM task WHERE id = %s", (task,))
    assert (text(ended["status"]), ended["retries"]) == ("timeout", 2)


def test_errors_are_cut_not_refused(make_muster, stores):
    """An error longer than is kept is cut; the rest of the call is as ever."""
    muster = make_muster(config={"task": {"max_error": "64"}})
    submit(muster, "mail", "x", "RETRIES", 0)
    task = claim_one(muster, "mail")
    with muster.raw() as raw:
        reply = text_of(raw.command("TASK.FAIL", task["id"], task["token"], "ERROR", "ü" * 1000))
    assert tasks.as_map(reply)["status"] == "failed"
    assert get(muster, task)["error"] == "ü" * 32 == hash_of(stores, "mail", task["id"])["error"]
