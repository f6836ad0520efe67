# SPDX-License-Identifier: MIT
"""One task a key: until it is done, or for a window of time. A second submit is told which task has the key."""
import threading
from collections import Counter

from harness import tasks
from harness.attendance import as_map
from harness.muster import text_of
from harness.raw import encode
from harness.tasks import (claim_one, done, fail, get, key_of, recount, refused, release, status, still, submit,
                           wait_gone)
from harness.wait import wait_until


def duplicate(muster, task, expected, queue="mail", key="k", *words):
    """A submit with this key is told of `task`, in its state, and changes nothing."""
    before = still(muster.stores)
    reply = muster.map("TASK.SUBMIT", queue, "other", "KEY", key, *words)
    assert (reply["id"], reply["status"], reply["duplicate"]) == (task, expected, 1), reply
    assert not tasks.changed(before, still(muster.stores))


def succeed(muster, _, task):
    assert done(muster, task) == "OK"


def fail_for_good(muster, _, task):
    assert fail(muster, task)["status"] == "failed"


def expire(muster, stores, task):
    tasks.beat(muster, "w1", task, words=("LEASE", "0.1"))
    wait_gone(stores, task["queue"], task)
    assert status(muster, task) == "timeout"


def cancel(muster, _, task):
    assert muster.map("TASK.CANCEL", task["id"])["status"] == "running" and release(muster, task) == "OK"


ENDS = {"success": succeed, "failed": fail_for_good, "timeout": expire, "cancelled": cancel}


def test_the_answer_names_the_task(muster):
    """Through all its states: pending, delayed, running, after a failure and a release, the key is its own."""
    task = submit(muster, "mail", "x", "KEY", "k", "DELAY", "1h")
    duplicate(muster, task, "pending")
    assert muster.ask("TASK.RETRY", task) == "OK"
    duplicate(muster, task, "pending")
    held = claim_one(muster, "mail")
    duplicate(muster, task, "running")
    fail(muster, held, "DELAY", "1h")
    duplicate(muster, task, "pending", "mail", "k", "PRIORITY", 1)
    muster.ask("TASK.RETRY", task)
    assert release(muster, claim_one(muster, "mail")) == "OK"
    duplicate(muster, task, "pending")
    wait_gone(muster.stores, "mail", claim_one(muster, "mail", "w1", "LEASE", "0.1"))
    duplicate(muster, task, "pending")
    assert get(muster, task)["key"] == "k" and get(muster, task)["payload"] == "x"


def test_until_done(muster, stores):
    """The key is free as soon as its task has ended, however."""
    for end, how in ENDS.items():
        task = submit(muster, end, "x", "KEY", "k", "RETRIES", 0)
        how(muster, stores, claim_one(muster, end))
        assert status(muster, task) == end
        again = submit(muster, end, "y", "KEY", "k")
        assert again != task
        duplicate(muster, again, "pending", end)
    recount(stores)


def test_a_window_lasts_its_time(muster, stores):
    """With WINDOW the key is refused until the time is over, whatever became of the task, also after a restart."""
    made = {}
    for end in ("success", "failed", "timeout"):
        made[end] = submit(muster, end, "x", "KEY", "k", "WINDOW", "300s", "RETRIES", 0)
        duplicate(muster, made[end], "pending", end)
        ENDS[end](muster, stores, claim_one(muster, end))
        duplicate(muster, made[end], end, end)
    muster.restart()
    for end, task in made.items():
        key = key_of(stores, end, "dedupe", f"{end}:k")
        left = stores.redis.pttl(key)
        assert 250000 < left <= 300000
        duplicate(muster, task, end, end, "k", "WINDOW", "1h")
        assert stores.redis.pttl(key) <= left  # the repeat does not prolong it
        stores.redis.pexpire(key, 1)
        wait_until(lambda k=key: not stores.redis.exists(k), 5, "the window is over")
        assert submit(muster, end, "y", "KEY", "k") != task
    recount(stores)


def test_a_short_window_ends_while_the_task_runs(muster, stores):
    """The window decides, not the task: over, the key is free though the task runs. And what the old one does in
    the end does not touch the key, which is another's by then."""
    old = submit(muster, "mail", "x", "KEY", "k", "WINDOW", "200ms")
    held = claim_one(muster, "mail")
    wait_until(lambda: not stores.redis.exists(key_of(stores, "mail", "dedupe", "mail:k")), 5, "the window is over")
    new = submit(muster, "mail", "y", "KEY", "k")
    assert new != old and done(muster, held) == "OK"
    duplicate(muster, new, "pending")
    assert stores.redis.get(key_of(stores, "mail", "dedupe", "mail:k")) == new
    recount(stores)


def test_the_end_of_an_old_task_frees_no_other_key(muster, stores):
    """Whatever end the one comes to that has lost its key, the key goes on naming the present one."""
    for end, how in ENDS.items():
        old = submit(muster, end, "x", "KEY", "k", "RETRIES", 0)
        held = claim_one(muster, end)
        stores.redis.delete(key_of(stores, end, "dedupe", f"{end}:k"))
        new = submit(muster, end, "y", "KEY", "k")
        how(muster, stores, held)
        assert status(muster, old) == end
        duplicate(muster, new, "pending", end)


def test_a_cancelled_task_leaves_its_key_at_once(muster, stores):
    """In either mode, for a task that waits: the next submit is a new task."""
    for words in ((), ("WINDOW", "1h"), ("DELAY", "1h"), ("DELAY", "1h", "WINDOW", "1h")):
        task = submit(muster, "mail", "x", "KEY", "k", *words)
        assert muster.map("TASK.CANCEL", task) == {"id": task, "status": "cancelled"}
        again = submit(muster, "mail", "y", "KEY", "k", *words)
        assert again != task and muster.map("TASK.CANCEL", again)["status"] == "cancelled"
    recount(stores)


def test_at_once_from_everywhere(make_muster, stores):
    """A hundred submits of one key at a time, through two daemons, in packets and alone: one task."""
    pair = [make_muster() for _ in range(2)]
    replies = []

    def say(number):
        with pair[number % 2].raw(30) as raw:
            raw.send(b"".join(encode("TASK.SUBMIT", "mail", number, "KEY", "k") for _ in range(5)))
            replies.extend(as_map(text_of(raw.read())) for _ in range(5))
    threads = [threading.Thread(target=say, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert Counter(reply["duplicate"] for reply in replies) == {0: 1, 1: 99}
    assert len({reply["id"] for reply in replies}) == 1 and {reply["status"] for reply in replies} == {"pending"}
    assert sum(recount(stores).counts("mail").values()) == 1


def test_a_key_belongs_to_its_queue(muster):
    """Other queues, other cases and longer keys are others."""
    ids = [submit(muster, queue, "x", "KEY", key)
           for queue in ("mail", "print") for key in ("k", "K", "kk", "k:k", ":", "k:", "x" * 200, "!\"#$%&'()*~{}")]
    assert len(set(ids)) == 16
    duplicate(muster, ids[0], "pending")
    duplicate(muster, ids[8], "pending", "print")
    assert get(muster, ids[15])["key"] == "!\"#$%&'()*~{}"


def test_what_is_no_key(muster):
    """Empty, too long, with blanks or bars, control characters or other letters: ERR, and no task is made."""
    submit(muster, "mail")
    refused(muster, "ERR", *[("TASK.SUBMIT", "mail", "x", "KEY", key) for key in (
        b"", b"x" * 201, b"a b", b"a|b", b"a\n", b"\x00", b"\x7f", "ö".encode(), b"\xff", b"\t")],
        ("TASK.SUBMIT", "mail", "x", "WINDOW", "10s"), ("TASK.SUBMIT", "mail", "x", "KEY"),
        ("TASK.SUBMIT", "mail", "x", "KEY", "k", "WINDOW", "0"), ("TASK.SUBMIT", "mail", "x", "KEY", "k", "KEY", "k"),
        ("TASK.SUBMIT", "mail", "x", "KEY", "k", "WINDOW", "-1s"), ("TASK.SUBMIT", "mail", "x", "KEY", "k", "WINDOW"))


def test_brought_back_it_has_its_key_again(muster, stores):
    """RETRY takes the key back when it is free; when another has it, that one stays and RETRY is a CONFLICT."""
    task = submit(muster, "mail", "x", "KEY", "k", "RETRIES", 0)
    fail(muster, claim_one(muster, "mail"))
    assert muster.ask("TASK.RETRY", task) == "OK"
    duplicate(muster, task, "pending")
    fail(muster, claim_one(muster, "mail"))
    other = submit(muster, "mail", "y", "KEY", "k")
    refused(muster, "CONFLICT", ("TASK.RETRY", task))
    duplicate(muster, other, "pending")
    assert done(muster, claim_one(muster, "mail")) == "OK"
    assert muster.ask("TASK.RETRY", task) == "OK"
    duplicate(muster, task, "pending")
    recount(stores)


def test_a_submit_said_again_after_a_crash(muster, stores):
    """With a key a client can say its submit again that was cut off: the task is there once."""
    ids = set()
    for _ in range(3):
        with muster.raw() as raw:
            raw.send(b"".join(encode("TASK.SUBMIT", "mail", n, "KEY", f"k{n}") for n in range(200)))
            ids.add(as_map(text_of(raw.read()))["id"])
            muster.kill9()
        muster.start()
    with muster.raw(30) as raw:
        replies = tasks.pipeline(raw, [("TASK.SUBMIT", "mail", n, "KEY", f"k{n}") for n in range(200)])
    assert len(ids) == 1 and len({as_map(reply)["id"] for reply in replies}) == 200
    assert recount(stores).counts("mail") == {"ready": 200}


def test_a_key_that_names_nothing_is_free(muster, stores):
    """A key left behind for a task that is not there, or has ended, does not shut it for ever."""
    task = submit(muster, "mail", "x", "KEY", "k")
    assert done(muster, claim_one(muster, "mail")) == "OK"
    for left in (task, "0" * 12, "nonsense", ""):
        stores.redis.set(key_of(stores, "mail", "dedupe", "mail:k"), left)
        again = submit(muster, "mail", "y", "KEY", "k")
        duplicate(muster, again, "pending")
        assert muster.map("TASK.CANCEL", again)["status"] == "cancelled"
    recount(stores)
