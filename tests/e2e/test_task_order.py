# SPDX-License-Identifier: MIT
"""The order of claims: priority first, then the order of submission, whatever has happened to a task meanwhile."""
import itertools

import pytest

from harness import tasks
from harness.attendance import pipelined
from harness.raw import encode
from harness.tasks import (BAND, await_task, claim, claim_one, done, drain, fail, ids_in, key_of, refused, release,
                           sequence_of, submit, tag_of, wait_gone, wait_ready)
from harness.wait import wait_until


def submit_all(muster, queue, payloads, *words):
    """Submits over one connection, many at a time; the ids."""
    replies = pipelined(muster, [("TASK.SUBMIT", queue, payload, *words) for payload in payloads], 500)
    assert all(isinstance(reply, list) for reply in replies), [r for r in replies if not isinstance(r, list)][:3]
    return [tasks.as_map(reply)["id"] for reply in replies]


def test_names_do_not_matter(muster):
    """Tasks of one priority run in the order of their submission, not in that of their texts."""
    payloads = ["task:9", "task:10", "task:100", "task:2", "Z", "a", "-1", "0"]
    for payload in payloads:
        submit(muster, "text", payload)
    assert drain(muster, "text") == payloads
    # In one packet, where all are submitted within one turn of the loop.
    ids = submit_all(muster, "text", payloads)
    assert ids == sorted(set(ids)) and drain(muster, "text") == payloads


def test_one_is_the_most_urgent(muster):
    """1 comes before 2 and so on to 10; who says nothing has 5."""
    for priority in range(10, 0, -1):
        submit(muster, "mail", priority, "PRIORITY", priority)
    submit(muster, "mail", "plain")
    order = [(task["payload"], task["priority"]) for task in claim(muster, "mail", "w1", "COUNT", 20)]
    assert order == [(str(p), p) for p in (1, 2, 3, 4, 5)] + [("plain", 5)] + [(str(p), p) for p in range(6, 11)]


@pytest.mark.parametrize("count", (1, 3, 100))
def test_any_mixture(muster, count):
    """Priorities in any order, claimed one by one or many at a time: the same sequence."""
    mixture = [(priority, n) for n, priority in enumerate(itertools.islice(itertools.cycle((5, 10, 1, 7, 5, 1)), 60))]
    with muster.raw() as raw:
        raw.send(b"".join(encode("TASK.SUBMIT", "mail", f"{n}", "PRIORITY", priority) for priority, n in mixture))
        for _ in mixture:
            raw.read()
    assert drain(muster, "mail", count) == [str(n) for _, n in sorted(mixture)]


def test_late_names_wait_their_turn(muster, stores):
    """In a queue that is never empty the sequence goes on rising: what came later runs later; so it is after the queue
    was emptied, and after a restart."""
    early, late = [f"z{n}" for n in range(5000)], [f"a{n}" for n in range(5000)]
    ids = submit_all(muster, "mail", early)
    first = claim(muster, "mail", "w1", "COUNT", 100)
    ids += submit_all(muster, "mail", late)
    assert ids == sorted(set(ids)) and ids_in(stores, "mail", "queue") == ids[100:]
    assert [task["payload"] for task in first] == early[:100]
    for _ in range(3):
        assert claim_one(muster, "mail")["payload"].startswith("z")
    for task in first:
        assert done(muster, task) == "OK"
    stores.redis.delete(key_of(stores, "mail", "queue"))  # quicker than 10,000 claims; the tasks are not looked at
    muster.restart()
    assert submit(muster, "mail") > ids[-1]


def test_sequence_goes_on_from_where_it_was(muster, stores):
    """A clock that was ahead leaves a sequence that is ahead: it rises on, and never goes back to the time of day."""
    before = submit(muster, "mail", "a")
    ahead = sequence_of(before) + 10 ** 12
    stores.redis.set(stores.key(tag_of(stores, "mail") + ":task_seq"), ahead)
    ids = [submit(muster, "mail", payload) for payload in "bcd"]
    assert [sequence_of(task) for task in ids] == [ahead + 1, ahead + 2, ahead + 3]
    assert drain(muster, "mail") == ["a", "b", "c", "d"]


def test_scores_are_exact_to_the_last_sequence_number(muster, stores):
    """Just below the limit neighbours are still told apart, at every priority; at the limit submits are refused, and
    nothing wraps or changes."""
    submit(muster, "mail", "first")
    assert drain(muster, "mail") == ["first"]
    stores.redis.set(stores.key(tag_of(stores, "mail") + ":task_seq"), BAND - 13)
    payloads = [(priority, name) for name in "edcba" for priority in (10, 9)]
    for priority, name in payloads:
        submit(muster, "mail", f"{priority}{name}", "PRIORITY", priority)
    order = [f"{priority}{name}" for priority in (9, 10) for name in "edcba"]
    ids = ids_in(stores, "mail", "queue")
    assert sorted(map(sequence_of, ids)) == list(range(BAND - 12, BAND - 2))
    submit(muster, "mail", "last", "PRIORITY", 10)
    submit(muster, "mail", "very last", "PRIORITY", 10)
    refused(muster, ("ERR", "CONFLICT"), ("TASK.SUBMIT", "mail", "x"), ("TASK.SUBMIT", "mail", "x", "DELAY", "1"))
    assert drain(muster, "mail") == order + ["last", "very last"]


def fail_now(muster, _, task):
    assert fail(muster, task, "DELAY", "0")["status"] == "pending"


def fail_for_a_while(muster, stores, task):
    fail(muster, task, "DELAY", "0.1")
    wait_until(lambda: ids_in(stores, "mail", "delayed") == [task["id"]], 5, "it waits")


def give_back(muster, _, task):
    assert release(muster, task) == "OK"


def lose(muster, stores, task):
    assert tasks.beat(muster, "w1", task, words=("LEASE", "0.1"))["extended"] == [task["id"]]
    wait_gone(stores, "mail", task)


def cancel_and_retry(muster, _, task):
    assert release(muster, task) == "OK"
    assert muster.map("TASK.CANCEL", task["id"])["status"] == "cancelled"
    assert muster.ask("TASK.RETRY", task["id"]) == "OK"


def delay_and_retry(muster, _, task):
    assert fail(muster, task, "DELAY", "1h")["status"] == "pending"
    assert muster.ask("TASK.RETRY", task["id"]) == "OK"


@pytest.mark.parametrize("way", (fail_now, fail_for_a_while, give_back, lose, cancel_and_retry, delay_and_retry))
def test_whatever_comes_back_comes_to_its_old_place(muster, stores, way):
    """A task that has been claimed and comes back, in whatever way, keeps its priority and stands where it stood:
    before those of its priority that came later, and before ten that are less urgent."""
    submit(muster, "mail", "urgent", "PRIORITY", 1)
    for name in "abc":
        submit(muster, "mail", name, "PRIORITY", 5)
    urgent, first = claim_one(muster, "mail"), claim_one(muster, "mail")
    way(muster, stores, urgent)
    for n in range(10):
        submit(muster, "mail", n, "PRIORITY", 2)
    wait_ready(stores, "mail", 13)
    again = claim_one(muster, "mail")
    assert (again["id"], again["payload"], again["priority"]) == (urgent["id"], "urgent", 1)
    way(muster, stores, first)
    wait_ready(stores, "mail", 13)
    assert drain(muster, "mail") == [str(n) for n in range(10)] + ["a", "b", "c"]
    tasks.recount(stores)


def test_given_back_in_another_order(muster):
    """Several come back in the reverse order: the next claims are as the first were."""
    names = [f"{n}" for n in range(8)]
    submit_all(muster, "mail", names)
    claimed = claim(muster, "mail", "w1", "COUNT", 8)
    for task in reversed(claimed):
        assert release(muster, task) == "OK"
    assert drain(muster, "mail", 3) == names


def test_a_delayed_task_takes_the_place_of_its_submission(muster, stores):
    """When its time has come it stands before what was submitted after it."""
    submit(muster, "mail", "a")
    submit(muster, "mail", "b", "DELAY", "0.3")
    submit(muster, "mail", "c")
    assert claim_one(muster, "mail")["payload"] == "a"
    wait_gone(stores, "mail", place="delayed")
    assert drain(muster, "mail") == ["b", "c"]


def test_the_shorter_delay_comes_first(muster):
    """No delay waits behind a longer one that was there before."""
    for payload, delay in (("hour", "1h"), ("third", "0.3"), ("minute", "1m"), ("tenth", "100ms")):
        submit(muster, "mail", payload, "DELAY", delay)
    assert await_task(muster, "mail")["payload"] == "tenth"
    assert await_task(muster, "mail")["payload"] == "third"
    assert claim(muster, "mail") == []


def test_through_two_daemons(make_muster):
    """Submitted and claimed by turns through either: one order."""
    pair = [make_muster(config={"day": {"close_auto": "no"}}) for _ in range(2)]
    for n in range(20):
        submit(pair[n % 2], "mail", n)
    order = [claim_one(pair[(n // 3) % 2], "mail")["payload"] for n in range(20)]
    assert order == [str(n) for n in range(20)]


def test_who_waits_long_becomes_more_urgent(muster, stores):
    """With ageing, a task that has waited goes up by one priority each time, and is then before those that came
    later; it still tells the priority it was given, and without ageing nothing moves."""
    muster.map("TASK.CONFIG", "old", "age_after", "300ms")
    submit(muster, "old", "patient", "PRIORITY", 7)
    submit(muster, "young", "patient", "PRIORITY", 7)
    key = key_of(stores, "old", "queue")

    def band():
        return stores.redis.zrange(key, 0, 0, withscores=True)[0][1] // BAND
    wait_until(lambda: band() <= 5, 20, "two steps up")
    for queue in ("old", "young"):
        submit(muster, queue, "new", "PRIORITY", 6)
    assert claim_one(muster, "young")["payload"] == "new"
    assert [(task["payload"], task["priority"]) for task in (claim_one(muster, "old"), claim_one(muster, "old"))] == \
        [("patient", 7), ("new", 6)]
