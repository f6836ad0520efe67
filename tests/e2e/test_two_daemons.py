# SPDX-License-Identifier: MIT
"""Two daemons on one Redis: partitions are divided, every event has one reader, every day one closer."""
from collections import Counter

import pytest

from harness.attendance import (DAY, Notices, as_map, at, found, locked, ms, pipelined, punch, statuses,
                                wait_books, wait_closed, wait_quiet)
from harness.load import Load
from harness.wait import wait_until

PARTITIONS = 48
SHORT = {"redis": {"lease": "1s"}, "day": {"close_auto": "no"}}


def held(muster):
    return int(muster.info()["partitions_held"])


def wait_shared(*daemons):
    """Until each has its part and together they have all, the organisation's journal too."""
    def shared():
        parts = [held(daemon) for daemon in daemons]
        assert sum(parts) == PARTITIONS + 1 and max(parts) - min(parts) <= len(daemons), parts
        return parts
    return wait_until(shared, 15, "the partitions are divided")


@pytest.fixture(name="pair")
def fixture_pair(make_muster):
    """Two daemons at noon of DAY with a lease of a second, which close nothing unasked."""
    pair = [make_muster(held_clock=True, config=SHORT) for _ in range(2)]
    for daemon in pair:
        daemon.set_clock(at("12:00"))
    wait_shared(*pair)
    return pair


def test_each_event_is_read_once(pair, stores):
    """Check-ins through both, at once: each is told once and written once, whoever took it."""
    people = found(pair[0], {f"d{n}": 30 for n in range(30)})
    notices = Notices(stores, "attendance.in.#", "attendance.out.#")
    base = ms(at("08:00"))
    events = [(employee, "IN" if k == 0 else "OUT", "AT", base + k * 60000) for k in range(2) for employee in people]
    with Load(pair[0].port, events[::2], 2) as one, Load(pair[1].port, events[1::2], 2) as two:
        one.finish()
        two.finish()
    assert not one.errors and not two.errors
    told = Counter(event["id"] for event in notices.wait_quiet(pair[0]))
    assert len(told) == len(events) and set(told.values()) == {1}
    assert stores.sql("SELECT COUNT(*) AS n FROM attendance_event") == [{"n": len(events)}]
    assert min(int(daemon.info()["notice_events"]) for daemon in pair) > 0


def test_what_one_changes_the_other_knows(pair):
    """Departments, hires, moves and removals made through one hold at the other at once, whatever it remembers."""
    one, two = pair
    found(one, {"a": ["ada", "bo"], "b": []})
    assert punch(two, "ada", "IN", "08:55")["dept"] == "a" and two.map("EMPLOYEE.GET", "bo")["dept"] == "a"
    assert one.ask("EMPLOYEE.MOVE", "bo", "b") == "OK"
    assert punch(two, "bo", "IN", "08:55")["dept"] == "b"
    assert two.map("STATUS", "bo")["dept"] == "b" and two.map("EMPLOYEE.GET", "bo")["dept"] == "b"
    assert one.ask("EMPLOYEE.REMOVE", "ada") == "OK"
    assert two.ask("CHECKIN", "ada", "OUT").startswith("UNKNOWN ")
    assert one.ask("TEAM.ADD", "c", "b") == "OK" and two.ask("EMPLOYEE.SET", "cy", "DEPT", "c") == "OK"
    wait_until(lambda: two.ask("ROLL.COUNT", "b", "SUBTREE") == one.ask("ROLL.COUNT", "b", "SUBTREE") and
               as_map(two.ask("ROLL.COUNT", "b", "SUBTREE"))["departments"] == 2, 10, "both know the new department")


def test_day_close_on_one_closes_the_partitions_of_both(pair, stores):
    """DAY.CLOSE closes everything, also what the other holds; with DEPT only that department, whoever holds it. Rows,
    books and notices are there once."""
    one, two = pair
    departments = [f"d{n}" for n in range(24)]
    people = found(one, {dept: 5 for dept in departments})
    notices = Notices(stores, "attendance.absent.#", "attendance.closed.#")
    pipelined(two, [("CHECKIN", employee, "IN", "AT", at("08:55")) for employee in people[::2]])
    for daemon in pair:
        daemon.set_clock(at("+04:00"))
    for dept in ("d3", "d4", "d5", "d6"):
        as_map(one.ask("DAY.CLOSE", DAY, "DEPT", dept))

    def four():
        rows = stores.sql("SELECT dept, COUNT(*) AS n FROM attendance_day WHERE work_date = %s GROUP BY dept", (DAY,))
        return len(rows) >= 4 and {row["dept"].decode(): row["n"] for row in rows}
    assert wait_until(four, 20, "four departments are closed") == {"d3": 5, "d4": 5, "d5": 5, "d6": 5}
    as_map(two.ask("DAY.CLOSE", DAY))
    wait_closed(one, deadline=20)
    assert one.map("DAY.STATE", DAY) == two.map("DAY.STATE", DAY)
    assert wait_books(stores) == {"expected": 120, "written": 120, "failed": 0, "absent": 60}
    assert Counter(statuses(stores).values()) == {"absent": 60, "missing_out": 60}
    events = [event for event in notices.wait_quiet(one)
              if event["day"] == DAY and event["dept"] in departments]
    assert Counter(event["type"] for event in events) == {"attendance.absent": 60, "attendance.closed": 24}
    assert len({event["id"] for event in events}) == 84
    assert len({row["daemon"] for row in stores.sql("SELECT daemon FROM day_close WHERE work_date = %s", (DAY,))}) == 2


def test_the_other_takes_over(pair, stores):
    """Killed in the rush, a daemon's partitions are the other's when its lease is over: what it left is told, written
    and closed; started again it gets its part back."""
    one, two = pair
    people = found(one, {f"d{n}": 30 for n in range(30)})
    notices = Notices(stores, "attendance.in.#", "attendance.out.#")
    base = ms(at("08:00"))
    events = [(employee, "IN" if k == 0 else "OUT", "AT", base + k * 60000) for k in range(4) for employee in people]
    with Load(two.port, events, 2) as load:
        wait_until(lambda: len(load.accepted) > 500, 30, "it has begun")
        one.kill9()
        wait_until(lambda: held(two) == PARTITIONS + 1, 10, "the other holds all")
        load.finish()
    assert not load.errors
    told = {}
    for event in notices.wait_quiet(two):
        told.setdefault((event["employee"], event["at"]), set()).add(event["id"])
    assert len(told) == len(events) and all(len(ids) == 1 for ids in told.values())
    assert stores.sql("SELECT COUNT(*) AS n FROM attendance_event") == [{"n": len(events)}]
    two.set_clock(at("+04:05"))
    assert as_map(two.ask("DAY.CLOSE", DAY))["state"] == "closed"
    assert wait_books(stores)["written"] == len(people)
    one.start()
    wait_shared(one, two)


def test_a_daemon_that_ends_well_hands_over_at_once(pair):
    """SIGTERM gives the leases back: the other need not wait for them to run out."""
    one, two = pair
    assert one.terminate() == 0
    keys = [key for key in two.stores.keys("*:owner") if two.stores.redis.get(two.stores.key(key))]
    owners = {two.stores.redis.get(two.stores.key(key)) for key in keys}
    assert len(owners) == 1 and len(keys) <= PARTITIONS + 1
    wait_until(lambda: held(two) == PARTITIONS + 1, 10, "the other holds all")


def test_a_daemon_that_was_stopped_gives_up_what_it_lost(pair, stores):
    """A daemon that stood still for longer than its lease finds its partitions taken, and neither tells nor closes
    anything twice."""
    one, two = pair
    people = found(one, {f"d{n}": 10 for n in range(30)})
    notices = Notices(stores, "attendance.in.#")
    pipelined(two, [("CHECKIN", employee, "IN", "AT", at("08:55")) for employee in people])
    one.pause()
    wait_until(lambda: held(two) == PARTITIONS + 1, 10, "the other holds all")
    two.set_clock(at("+04:05"))
    as_map(two.ask("DAY.CLOSE", DAY))
    one.resume()
    one.set_clock(at("+04:05"))
    wait_shared(one, two)
    assert as_map(one.ask("DAY.CLOSE", DAY))["state"] == "closed"
    assert wait_books(stores)["written"] == len(people)
    wait_quiet(two)
    assert {event["employee"] for event in notices.events()} == set(people)
    assert len({event["id"] for event in notices.events()}) == len(people)


def test_what_is_taken_over_during_a_close_is_closed_too(make_muster, stores):
    """Partitions that a daemon gets while it closes its own have not been looked through: it closes them next, with
    no command and no restart."""
    one, two = [make_muster(held_clock=True, config={"redis": {"lease": "1s"}}) for _ in range(2)]
    for daemon in (one, two):
        daemon.set_clock(at("12:00"))
    wait_shared(one, two)
    people = found(one, {f"d{n}": 5 for n in range(24)})
    with locked(stores, "attendance_day"):
        one.set_clock(at("+04:05"))
        wait_until(lambda: one.info()["close_running"] == "1", 10, "it closes")
        two.kill9()
        wait_until(lambda: held(one) == PARTITIONS + 1, 10, "it holds all")
        assert one.info()["close_running"] == "1"
    wait_closed(one, deadline=10)
    assert statuses(stores) == dict.fromkeys(people, "absent")


def test_a_dead_daemon_of_a_later_clock_has_no_share(make_muster, stores):
    """After Redis's clock was put back, a daemon that is gone but stands in the list as of an hour ahead is dropped
    from it, and its share is held."""
    muster = make_muster(held_clock=True, config=SHORT)
    wait_shared(muster)
    now = int(stores.redis.time()[0]) * 1000
    stores.redis.zadd(stores.key("daemons"), {"gone:7411/1.0": now + 3600_000})
    wait_until(lambda: stores.redis.zscore(stores.key("daemons"), "gone:7411/1.0") is None, 8, "it is dropped")
    wait_shared(muster)
