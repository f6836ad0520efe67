# SPDX-License-Identifier: MIT
"""Claims that wait: who came first is served first, wherever he waits; nobody is forgotten, and nothing is handed to
those who have gone."""
import random
import select
import selectors
import socket
import struct
import threading
import time
from contextlib import ExitStack

import pytest

from harness import tasks
from harness.muster import text_of
from harness.raw import Raw, encode
from harness.tasks import claim, claim_one, done, fail, release, status, submit
from harness.wait import wait_until

LONG = 60000  # a WAIT that no test sees the end of


@pytest.fixture(name="clients")
def fixture_clients():
    """For connections that end with the test."""
    with ExitStack() as stack:
        yield stack


def waiting(stores, queue):
    """How many claims are registered for a queue."""
    return sum(stores.redis.zcard(stores.key(name)) for name in stores.keys("{*}:waiting:" + queue))


def wait_waiting(stores, queue, count, deadline=10):
    def registered():
        found = waiting(stores, queue)
        assert found == count, found
        return True
    wait_until(registered, deadline, f"{count} claims wait for {queue}")


def send_claim(muster, clients, queue, worker="w1", *words, wait=LONG):
    """A connection whose claim is on its way."""
    raw = clients.enter_context(muster.raw(20))
    raw.send(encode("TASK.CLAIM", queue, worker, *words, "WAIT", wait))
    return raw


def park(muster, clients, queue, *words, wait=LONG):
    """A connection whose claim waits behind those that do so already."""
    before = waiting(muster.stores, queue)
    raw = send_claim(muster, clients, queue, *words, wait=wait)
    wait_waiting(muster.stores, queue, before + 1)
    return raw


def read_tasks(raw):
    return tasks.claims(text_of(raw.read()))


def read_one(raw):
    found = read_tasks(raw)
    assert len(found) == 1, found
    return found[0]


def silent(raws):
    """Nothing has come on any of these."""
    with selectors.DefaultSelector() as selector:
        for raw in raws:
            selector.register(raw.socket, selectors.EVENT_READ)
        return not selector.select(0)


def answered(raws, deadline=20):
    """The connections in the order in which their replies come, until all have one."""
    with selectors.DefaultSelector() as selector:
        for raw in raws:
            selector.register(raw.socket, selectors.EVENT_READ, raw)
        end = time.monotonic() + deadline
        while selector.get_map():
            ready = selector.select(end - time.monotonic())
            assert ready, f"{len(selector.get_map())} of {len(raws)} wait for ever"
            for key, _ in ready:
                selector.unregister(key.fileobj)
                yield key.data


# ---- order ----

@pytest.mark.parametrize("daemons", [1, 2])
def test_order_of_arrival(make_muster, clients, daemons):
    musters = [make_muster() for _ in range(daemons)]
    waiters = [park(musters[n % daemons], clients, "mail", f"w{n}") for n in range(50)]
    for n, waiter in enumerate(waiters):
        submit(musters[n // 3 % daemons], "mail", n)
        task = read_one(waiter)
        assert task["payload"] == str(n)
        assert silent(waiters[n + 1:])
        assert done(musters[0], task) == "OK"


def test_burst_goes_to_those_who_came_first(muster, clients):
    waiters = [park(muster, clients, "mail", f"w{n}") for n in range(50)]
    with muster.raw() as raw:
        replies = tasks.pipeline(raw, [("TASK.SUBMIT", "mail", n) for n in range(30)])
    assert all(isinstance(reply, list) for reply in replies), replies
    assert [read_one(waiter)["payload"] for waiter in waiters[:30]] == [str(n) for n in range(30)]
    assert silent(waiters[30:])
    wait_waiting(muster.stores, "mail", 20)


def test_newcomers_do_not_overtake(muster, clients):
    """Who waits at a paused queue, with tasks in it, keeps his place before those who come when it goes on."""
    assert muster.ask("TASK.PAUSE", "mail") == "OK"
    for n in range(4):
        submit(muster, "mail", n)
    waiters = [park(muster, clients, "mail") for _ in range(3)]
    with muster.raw() as raw:
        resumed, got = tasks.pipeline(raw, [("TASK.RESUME", "mail"), ("TASK.CLAIM", "mail", "late", "COUNT", 10)])
    assert resumed == "OK"
    assert len(got) <= 1
    assert [read_one(waiter)["payload"] for waiter in waiters] == ["0", "1", "2"]
    late = tasks.claims(got) or claim(muster, "mail", "late")
    assert [task["payload"] for task in late] == ["3"]


def test_the_woken_keep_their_task(make_muster, clients):
    """The task that somebody is woken for is his, even if his daemon is slow; if it is too slow, others go on."""
    slow, other = [make_muster() for _ in range(2)]
    waiter = park(slow, clients, "mail")
    slow.pause()
    submit(other, "mail", "his")
    assert claim(other, "mail") == []
    slow.resume()
    assert read_one(waiter)["payload"] == "his"
    waiter, next_one = park(slow, clients, "mail"), park(other, clients, "mail")
    slow.pause()
    submit(other, "mail", "any")
    assert read_one(next_one)["payload"] == "any"
    slow.resume()
    submit(other, "mail", "his")
    assert read_one(waiter)["payload"] == "his"


def test_queues_do_not_wait_for_each_other(muster, clients):
    """Whoever waits for one queue hears nothing of another, in the same partition or not."""
    waiters = {f"q{n}": park(muster, clients, f"q{n}") for n in range(60)}
    for queue in list(waiters)[::-1]:
        submit(muster, queue, queue)
        assert read_one(waiters[queue])["payload"] == queue
    assert muster.info()["claims_waiting"] == "0"


def test_claim_and_task_at_once(muster, clients):
    """Whichever comes first. The word that a task is there may overtake the one that the claim is registered."""
    worker, client = clients.enter_context(muster.raw()), clients.enter_context(muster.raw())
    for n in range(300):
        worker.send(encode("TASK.CLAIM", "mail", "w1", "WAIT", LONG))
        client.send(encode("TASK.SUBMIT", "mail", n))
        assert read_one(worker)["payload"] == str(n)
        client.read()
    assert int(muster.info()["claims_rescued"]) <= 2


def test_several_at_once(muster, clients):
    """COUNT is the most that a claim takes, not what it waits for."""
    waiter = park(muster, clients, "mail", "w1", "COUNT", 5)
    submit(muster, "mail", "one")
    assert read_one(waiter)["payload"] == "one"


# ---- what wakes ----

def one_taken(muster, *words):
    submit(muster, "mail", "x", *words)
    return claim_one(muster, "mail", "first")


def by_submit(_):
    return lambda muster: submit(muster, "mail", "x")


def by_release(muster):
    task = one_taken(muster)
    return lambda _: release(muster, task)


def by_fail(muster):
    task = one_taken(muster)
    return lambda _: fail(muster, task, "DELAY", 0)


def by_retry(muster):
    task = one_taken(muster, "RETRIES", 0)
    assert fail(muster, task)["status"] == "failed"
    return lambda _: muster.ask("TASK.RETRY", task["id"])


def by_resume(muster):
    assert muster.ask("TASK.PAUSE", "mail") == "OK"
    submit(muster, "mail", "x")
    return lambda _: muster.ask("TASK.RESUME", "mail")


def by_delay(_):
    return lambda muster: submit(muster, "mail", "x", "DELAY", "0.2")


def by_fail_with_delay(muster):
    task = one_taken(muster)
    return lambda _: fail(muster, task, "DELAY", "0.2")


WAKERS = [by_submit, by_release, by_fail, by_retry, by_resume, by_delay, by_fail_with_delay]


@pytest.mark.parametrize("waker", WAKERS, ids=lambda waker: waker.__name__)
def test_what_wakes(muster, clients, waker):
    """Not the look that is taken once a second, but for one that comes in between by chance."""
    for n in range(4):
        wake = waker(muster)
        waiter = park(muster, clients, "mail", f"w{n}")
        assert silent([waiter])
        wake(muster)
        task = read_one(waiter)
        assert task["payload"] == "x"
        assert done(muster, task) == "OK"
    assert int(muster.info()["claims_rescued"]) <= 1


def test_lease_that_ends_wakes(muster, clients):
    submit(muster, "mail", "x")
    task = claim_one(muster, "mail", "first", "LEASE", "0.5")
    again = read_one(park(muster, clients, "mail"))
    assert (again["id"], again["attempt"]) == (task["id"], 2)


# ---- the end of waiting ----

def test_wait_is_over(muster, clients):
    start = time.monotonic()
    assert read_tasks(send_claim(muster, clients, "mail", wait=300)) == []
    assert 0.3 <= time.monotonic() - start < 5
    assert waiting(muster.stores, "mail") == 0
    assert claim(muster, "mail", "w1", "WAIT", 0) == []
    submit(muster, "mail", "x")
    assert claim_one(muster, "mail", "w1", "WAIT", LONG)["payload"] == "x"


def test_wait_is_checked(muster):
    for wait in (-1, "1.5", "", "5s", 300001, 18446744073709551616):
        reply = muster.ask("TASK.CLAIM", "mail", "w1", "WAIT", wait)
        assert isinstance(reply, str) and reply.startswith("ERR invalid WAIT"), (wait, reply)


def test_done_next_waits(muster, clients):
    submit(muster, "mail", 1)
    task = claim_one(muster, "mail", "w1")
    raw = clients.enter_context(muster.raw(20))
    raw.send(encode("TASK.DONE", task["id"], task["token"], "NEXT", "WAIT", LONG))
    wait_waiting(muster.stores, "mail", 1)
    assert status(muster, task) == "success"
    submit(muster, "mail", 2)
    task = read_one(raw)
    assert (task["queue"], task["payload"]) == ("mail", "2")
    assert tasks.get(muster, task)["worker"] == "w1"
    assert raw.command("TASK.DONE", task["id"], task["token"], "NEXT", "WAIT", 100) == []


def test_what_stands_behind_waits_too(muster, clients):
    """Not even another claim is begun: what it got could not be answered before."""
    submit(muster, "other", "x")
    raw = clients.enter_context(muster.raw(20))
    raw.send(encode("TASK.CLAIM", "mail", "w1", "WAIT", LONG) + encode("TASK.CLAIM", "other", "w1", "WAIT", LONG) +
             encode("PING"))
    wait_waiting(muster.stores, "mail", 1)
    assert claim_one(muster, "other", "w2")["payload"] == "x"
    submit(muster, "mail", "y")
    assert read_one(raw)["payload"] == "y"
    wait_waiting(muster.stores, "other", 1)
    submit(muster, "other", "z")
    assert read_one(raw)["payload"] == "z"
    assert raw.read() == "PONG"


def test_idle_timeout_spares_who_waits(make_muster, clients):
    """He is idle from when he has been answered, and then dropped."""
    muster = make_muster(config={"server": {"idle_timeout": "1s"}})
    raws = [send_claim(muster, clients, "mail", wait=wait) for wait in range(1500, 3000, 100)]
    heard = {}
    for raw in answered(raws):
        heard[raw] = time.monotonic()
        assert read_tasks(raw) == []
    for raw in answered(raws):
        assert time.monotonic() - heard[raw] > 0.9
        assert raw.at_end()


# ---- clients that go ----

def abort(raw):
    """Ends a connection with a reset."""
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


def test_who_has_gone_waits_no_longer(muster, clients):
    waiters = [park(muster, clients, "mail") for _ in range(6)]
    for waiter, end in zip(waiters[:4], (Raw.close, abort, Raw.close, abort)):
        end(waiter)
    wait_waiting(muster.stores, "mail", 2)
    victims = [line for line in muster.ask("CLIENT", "LIST").splitlines() if "cmd=task.claim" in line]
    assert muster.ask("CLIENT", "KILL", "ID", victims[0].split(" ")[0].removeprefix("id=")) == 1
    wait_waiting(muster.stores, "mail", 1)
    submit(muster, "mail", "x")
    assert read_one(waiters[5])["payload"] == "x"


def test_who_says_no_more_is_answered_and_not_kept(muster, clients):
    """As `printf ... | nc` does: what there is he gets, but he does not wait."""
    submit(muster, "mail", "x")
    waiter = park(muster, clients, "other")
    late, got = send_claim(muster, clients, "other"), send_claim(muster, clients, "mail")
    for raw in (got, waiter, late):
        raw.socket.shutdown(socket.SHUT_WR)
    assert read_one(got)["payload"] == "x"
    for raw in (waiter, late):
        assert read_tasks(raw) == []
    assert all(raw.at_end() for raw in (got, waiter, late))
    assert waiting(muster.stores, "other") == 0


@pytest.mark.parametrize("woken_first", [False, True])
def test_woken_as_he_goes(make_muster, clients, woken_first):
    """His daemon learns of both in one turn: the task is at once for the next, wherever that one waits."""
    slow, other = [make_muster() for _ in range(2)]
    for n in range(4):
        leaver, next_one = park(slow, clients, "mail"), park(other, clients, "mail")
        slow.pause()
        if woken_first:
            submit(other, "mail", n)
        leaver.socket.shutdown(socket.SHUT_WR)
        if not woken_first:
            submit(other, "mail", n)
        slow.resume()
        assert read_tasks(leaver) == []
        task = read_one(next_one)
        assert (task["payload"], task["attempt"]) == (str(n), 1)
    assert int(other.info()["claims_rescued"]) <= 1


def test_gone_behind_a_full_pipeline(make_muster, clients):
    """A client that is not read at the time, since it has sent too much, is still seen to go."""
    muster = make_muster(config={"server": {"max_pipeline": 4}})
    raw = park(muster, clients, "mail")
    raw.send(encode("PING") * 20)
    raw.close()
    wait_waiting(muster.stores, "mail", 0)


def test_gone_while_its_claim_is_at_redis(muster, clients, intact):
    """What the claim then gets goes back at once, at no charge."""
    ids = [submit(muster, "mail", n) for n in range(3)]
    intact.pause("redis")
    raws = [clients.enter_context(muster.raw()) for _ in range(2)]
    raws[0].send(encode("TASK.CLAIM", "mail", "gone", "COUNT", 2))
    raws[1].send(encode("TASK.CLAIM", "mail", "gone", "WAIT", LONG))
    wait_until(lambda: muster.ask("CLIENT", "LIST").count("cmd=task.claim") == 2, 5, "both claims are on their way")
    for raw in raws:
        abort(raw)
    wait_until(lambda: "cmd=task.claim" not in muster.ask("CLIENT", "LIST"), 5, "the clients are gone")
    intact.resume("redis")
    tasks.wait_ready(muster.stores, "mail", 3)
    found = claim(muster, "mail", "w1", "COUNT", 10)
    assert [(task["id"], task["attempt"]) for task in found] == [(task, 1) for task in ids]


@pytest.mark.timeout(180)
def test_half_of_a_thousand_go(muster, clients):
    """Then 1,000 tasks come: all run, none after its lease, and the dead get none."""
    raws = [clients.enter_context(muster.raw(30)) for _ in range(1000)]
    for n, raw in enumerate(raws):
        raw.send(encode("TASK.CLAIM", "mail", f"w{n}", "WAIT", LONG))
    wait_waiting(muster.stores, "mail", 1000, 30)
    for n, raw in enumerate(raws[1::2]):
        (abort if n % 2 else Raw.close)(raw)
    start = time.monotonic()
    with muster.raw(30) as raw:
        replies = tasks.pipeline(raw, [("TASK.SUBMIT", "mail", n) for n in range(1000)])
    assert all(isinstance(reply, list) for reply in replies), replies
    alive = raws[::2]
    seen = []
    for raw in answered(alive):
        task = read_one(raw)
        seen.append(task)
        raw.send(encode("TASK.DONE", task["id"], task["token"], "NEXT", "WAIT", LONG))
    for raw in answered(alive):
        task = read_one(raw)
        seen.append(task)
        raw.send(encode("TASK.DONE", task["id"], task["token"]))
    assert all(raw.read() == "OK" for raw in alive)
    assert time.monotonic() - start < 30  # half of a lease
    assert {int(task["payload"]) for task in seen} == set(range(1000))
    assert {task["attempt"] for task in seen} == {1}
    assert tasks.recount(muster.stores).counts("mail") == {"success": 1000}
    assert tasks.info_of(muster.stores, "mail").get("expired") is None


@pytest.mark.timeout(180)
@pytest.mark.parametrize("daemons", [1, 2])
def test_coming_and_going(make_muster, stores, daemons):
    """Workers who wait for short times, and hang up now and then, and hear what became of it: each task runs once, and
    none has to wait for its lease."""
    musters = [make_muster(config={"task": {"keep": 10000}}) for _ in range(daemons)]
    total, workers = 1500, [Worker(musters[n % daemons], n) for n in range(24)]

    def wait_ran(count):
        wait_until(lambda: sum(len(worker.ran) for worker in workers) >= count, 60, f"{count} tasks have run")
    for first in range(0, total, 5):
        with musters[first % daemons].raw() as raw:
            tasks.pipeline(raw, [("TASK.SUBMIT", "mail", first + n) for n in range(5)])
        if first % 3 == 0:
            wait_ran(first + 5)
    wait_ran(total)
    for worker in workers:
        worker.stop()
    assert sorted(payload for worker in workers for payload in worker.ran) == list(range(total))
    assert tasks.recount(stores).counts("mail") == {"success": total}
    assert tasks.info_of(stores, "mail").get("expired") is None
    assert waiting(stores, "mail") == 0


class Worker:
    """Claims for a short time, again and again; sometimes says at once, or a little later, that it says no more."""

    def __init__(self, muster, number):
        self.muster, self.name, self.ran, self.running = muster, f"w{number}", [], True
        self.chance = random.Random(number)
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        while self.running:
            with self.muster.raw(30) as raw:
                raw.send(encode("TASK.CLAIM", "mail", self.name, "COUNT", self.chance.randint(1, 3), "WAIT",
                                self.chance.randint(1, 150)))
                if self.chance.random() < 0.5:
                    select.select([raw.socket], [], [], self.chance.random() * 0.02)
                    raw.socket.shutdown(socket.SHUT_WR)
                got = read_tasks(raw)
            for task in got:
                assert done(self.muster, task) == "OK"
                self.ran.append(int(task["payload"]))

    def stop(self):
        self.running = False
        self.thread.join(30)
        assert not self.thread.is_alive()


# ---- daemons that go ----

def test_stopping_sends_them_home(make_muster, clients):
    musters = [make_muster() for _ in range(2)]
    mine = [park(musters[0], clients, "mail") for _ in range(20)]
    other = park(musters[1], clients, "mail")
    assert musters[0].terminate(10) == 0
    assert [read_tasks(raw) for raw in mine] == [[]] * 20
    assert all(raw.at_end() for raw in mine)
    assert waiting(musters[1].stores, "mail") == 1
    submit(musters[1], "mail", "x")
    assert read_one(other)["payload"] == "x"


@pytest.mark.timeout(180)
def test_killed_daemon_holds_nobody_up(make_muster, clients):
    """Its claims are passed over as soon as it is known to be dead."""
    musters = [make_muster() for _ in range(2)]
    waiters = [park(musters[n % 2], clients, "mail", f"w{n}") for n in range(50)]
    musters[0].kill9()
    start = time.monotonic()
    for n in range(25):
        submit(musters[1], "mail", n)
    got = [read_one(waiter)["payload"] for waiter in waiters[1::2]]
    assert sorted(got, key=int) == [str(n) for n in range(25)]
    assert time.monotonic() - start < 8
    late = [park(musters[1], clients, "mail", f"late{n}") for n in range(5)]
    for n, waiter in enumerate(late):
        submit(musters[1], "mail", n)
        assert read_one(waiter)["payload"] == str(n)
    assert waiting(musters[1].stores, "mail") == 0


@pytest.mark.timeout(180)
def test_many_dead_before_one(make_muster, clients):
    musters = [make_muster() for _ in range(2)]
    for n in range(300):
        send_claim(musters[0], clients, "mail", f"dead{n}")
    wait_waiting(musters[0].stores, "mail", 300)
    waiter = park(musters[1], clients, "mail")
    musters[0].kill9()
    submit(musters[1], "mail", "x")
    start = time.monotonic()
    assert read_one(waiter)["payload"] == "x"
    assert time.monotonic() - start < 8
    wait_waiting(musters[1].stores, "mail", 0)


# ---- what goes wrong on the way ----

def test_lost_places_and_words(muster, clients, stores):
    """Somebody has deleted who waits; later, the words that should wake: within a second or so all go on."""
    for lost in ("waiting:mail", "wake:*"):
        waiters = [park(muster, clients, "mail", f"w{n}") for n in range(20)]
        if lost.startswith("waiting"):
            assert stores.redis.delete(*[stores.key(name) for name in stores.keys("{*}:" + lost)]) == 1
        else:
            # The link that reads them is held up; what is sent over it meanwhile goes nowhere.
            drop_words(stores)
        with muster.raw() as raw:
            tasks.pipeline(raw, [("TASK.SUBMIT", "mail", n) for n in range(20)])
            start = time.monotonic()
        got = [read_one(waiter) for waiter in waiters]
        assert time.monotonic() - start < 8
        assert {task["payload"] for task in got} == {str(n) for n in range(20)}
        assert all(done(muster, task) == "OK" for task in got)


def drop_words(stores):
    """What is on the wake lists, and the members, as if they had been read by a daemon that lost them."""
    for name in stores.keys("{*}:waiting:mail"):
        stores.redis.zpopmin(stores.key(name), 15)


def test_wake_link_is_cut(muster, clients, stores):
    waiter = park(muster, clients, "mail")
    cut = [client["id"] for client in stores.redis.client_list() if client["cmd"] == "blmpop"]
    assert cut
    for client in cut:
        stores.redis.client_kill_filter(_id=client)
    submit(muster, "mail", "x")
    assert read_one(waiter)["payload"] == "x"
    wait_until(lambda: muster.info()["redis_wake_link"] == "ready", 10, "the link is back")
    for n in range(3):
        waiter = park(muster, clients, "mail")
        submit(muster, "mail", n)
        assert read_one(waiter)["payload"] == str(n)


def test_redis_is_lost(make_muster, clients, intact):
    """Who waits is told, and nobody is in the way of those who come afterwards."""
    muster = make_muster()
    waiters = [park(muster, clients, "mail") for _ in range(10)]
    intact.restart("redis")
    for waiter in waiters:
        assert str(waiter.read()).startswith("UNAVAILABLE ")
    muster.wait_ready()
    wait_waiting(muster.stores, "mail", 0)
    for n in range(5):
        waiter = park(muster, clients, "mail")
        submit(muster, "mail", n)
        assert read_one(waiter)["payload"] == str(n)
    assert int(muster.info()["claims_rescued"]) <= 1


def test_other_things_under_our_names(muster, clients, stores):
    """A wake list that is none, and words that are none, harm nobody."""
    waiter = park(muster, clients, "mail")
    [alive] = stores.keys("{*}:waits:*")
    wake = stores.key(alive.replace(":waits:", ":wake:"))
    stores.redis.rpush(wake, "", "mail", "mail|", "mail|x", "|1", "other|99", "mail|18446744073709551617", "a b|1")
    wait_until(lambda: not stores.redis.exists(wake), 5, "the words are read")
    stores.redis.set(wake, "no list")
    submit(muster, "mail", "x")
    assert read_one(waiter)["payload"] == "x"
    stores.redis.delete(wake)
    waiter = park(muster, clients, "mail")
    submit(muster, "mail", "y")
    assert read_one(waiter)["payload"] == "y"
