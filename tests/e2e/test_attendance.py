# SPDX-License-Identifier: MIT
"""What punches mean: the rules of a day, from the CHECKIN over the wire to the row in MySQL."""
import random
import threading

import pytest

from harness.attendance import (DAY, Notices, as_map, at, close_day, day_after, day_rows, failures, found, ms,
                                pipelined, punch, statuses, wait_books, wait_quiet)
from harness.muster import text_of
from harness.raw import encode
from harness.wait import wait_until

NEXT = day_after(DAY)


@pytest.fixture(name="day")
def fixture_day(held):
    """A daemon at eight in the evening of DAY, in UTC."""
    held.set_clock(at("20:00"))
    return held


# employee: punches of the day, then what the row must say
RULES = {
    "on.both.edges": ([("IN", "09:00:00.000"), ("OUT", "18:00:00.000")],
                      {"status": "present", "late_ms": 0, "early_ms": 0, "worked_ms": 9 * 3600000}),
    "late.by.1ms": ([("IN", "09:00:00.001"), ("OUT", "18:00:00.000")], {"status": "late", "late_ms": 1}),
    "early.by.1ms": ([("IN", "09:00:00.000"), ("OUT", "17:59:59.999")], {"status": "early", "early_ms": 1}),
    "late.and.early": ([("IN", "12:00"), ("OUT", "17:00")],
                       {"status": "late_early", "late_ms": 10800000, "early_ms": 3600000}),
    "only.out": ([("OUT", "18:05")], {"status": "missing_in", "first_in": None, "out": ms(at("18:05"))}),
    "only.in": ([("IN", "08:55")], {"status": "missing_out", "last_out": None, "in": ms(at("08:55"))}),
    "only.late.in": ([("IN", "09:10")], {"status": "missing_out", "late_ms": 600000}),
    "nothing": ([], {"status": "absent", "first_in": None, "last_out": None, "punches": 0}),
    "lunch.outside": ([("IN", "08:50"), ("OUT", "12:00"), ("IN", "13:00"), ("OUT", "18:10")],
                      {"status": "present", "in": ms(at("08:50")), "out": ms(at("18:10"))}),
    "second.in.is.late": ([("IN", "08:50"), ("IN", "09:30"), ("OUT", "18:00")], {"status": "present", "late_ms": 0}),
    "no.direction": ([("UNK", "08:50"), ("UNK", "12:10"), ("UNK", "18:05")],
                     {"status": "present", "in": ms(at("08:50")), "out": ms(at("18:05"))}),
    "only.outs": ([("OUT", "08:52"), ("OUT", "18:03")],
                  {"status": "present", "in": ms(at("08:52")), "out": ms(at("18:03")), "reason": "direction_guess"}),
    "double.tap": ([("IN", "09:00:00.100"), ("IN", "09:00:00.900"), ("OUT", "18:00")],
                   {"status": "late", "late_ms": 100, "punches": 2}),
    "three.in.a.second": ([("IN", "08:58:00.000"), ("OUT", "08:58:00.400"), ("IN", "08:58:00.900"), ("OUT", "18:00")],
                          {"status": "present", "out": ms(at("18:00"))}),
    "out.before.in": ([("OUT", "18:01"), ("IN", "08:58")],
                      {"status": "present", "in": ms(at("08:58")), "out": ms(at("18:01"))}),
}


def test_rules_of_a_day(day, stores):
    """First in and last out by instant, boundaries inclusive to the millisecond, no punch never anything but absent,
    one half of a day never absent; repeats within the debounce window count once and are all kept."""
    found(day, {"lab": list(RULES)})
    for employee, (punches, _) in RULES.items():
        for direction, time in punches:
            assert punch(day, employee, direction, time)["duplicate"] == 0
    close_day(day)
    rows = day_rows(stores)
    assert set(rows) == set(RULES)
    wrong = {employee: {name: (rows[employee][name], want) for name, want in wanted.items()
                        if rows[employee][name] != want} for employee, (_, wanted) in RULES.items()}
    assert {employee: names for employee, names in wrong.items() if names} == {}
    assert wait_books(stores) == {"expected": 15, "written": 15, "failed": 0, "absent": 1}
    wait_quiet(day)
    kept = stores.sql("SELECT COUNT(*) AS n FROM attendance_event WHERE employee = 'double.tap'")[0]["n"]
    assert kept == 3


def test_a_day_runs_from_four_to_four(day, stores):
    """A punch after midnight belongs to the day before; the first millisecond of four o'clock does not. A new day's
    punch never ends the day before."""
    found(day, {"lab": ["night", "edge", "forgot"]})
    day.set_clock(at("+03:59"))
    punch(day, "night", "IN", at("23:55"))
    punch(day, "edge", "IN", at("04:00:00.000"))
    punch(day, "forgot", "IN", at("09:00"))
    day.set_clock(at("+04:01"))
    punch(day, "night", "OUT", at("+00:05"))
    assert punch(day, "edge", "OUT", at("+03:59:59.999"))["day"] == DAY
    assert punch(day, "edge", "OUT", at("+04:00:00.000"))["day"] == NEXT
    assert punch(day, "forgot", "UNK", at("+04:00:30"))["day"] == NEXT
    close_day(day)
    rows = day_rows(stores)
    assert rows["night"]["worked_ms"] == 600000 and rows["night"]["early_ms"] == 0
    assert (rows["edge"]["in"], rows["edge"]["out"]) == (ms(at("04:00")), ms(at("+03:59:59.999")))
    assert rows["forgot"]["status"] == "missing_out"
    assert day.map("STATUS", "forgot")["in"] == ms(at("+04:00:30"))


@pytest.mark.parametrize("zone, day, begin, end, offset", [
    ("Europe/Berlin", "2031-03-29", "2031-03-29T03:00:00Z", "2031-03-30T02:00:00Z", 60),
    ("Europe/Berlin", "2031-10-25", "2031-10-25T02:00:00Z", "2031-10-26T03:00:00Z", 120),
    ("Asia/Shanghai", "2031-03-03", "2031-03-02T20:00:00Z", "2031-03-03T20:00:00Z", 480),
])
def test_days_of_the_zone(make_muster, stores, zone, day, begin, end, offset):
    """Dates are the zone's, from four to four by its clocks: 23 hours when they go forward, 25 when they go back, and
    never the date of UTC. The row keeps the offset."""
    muster = make_muster(held_clock=True, config={"day": {"timezone": zone}})
    first, last = ms(begin.replace("Z", "+00:00")), ms(end.replace("Z", "+00:00")) - 1
    muster.set_clock(last)
    found(muster, {"lab": ["ada", "bo"]})
    assert last - first + 1 == {"2031-03-29": 23, "2031-10-25": 25}.get(day, 24) * 3600000
    assert muster.map("CHECKIN", "ada", "IN", "AT", first)["day"] == day
    assert muster.map("CHECKIN", "ada", "OUT", "AT", last)["day"] == day
    assert muster.map("CHECKIN", "bo", "IN", "AT", first - 1)["day"] == day_after(day, -1)
    assert muster.map("CHECKIN", "bo", "IN", "AT", last + 1)["day"] == day_after(day)
    muster.set_clock(last + 1 + 5 * 60000 - 1)
    assert muster.map("DAY.STATE", day)["state"] == "open"
    muster.set_clock(last + 1 + 5 * 60000)
    wait_until(lambda: muster.map("DAY.STATE", day)["state"] == "closed", 20, "the day is closed")
    row = day_rows(stores, day)["ada"]
    assert (row["in"], row["out"], row["utc_offset"]) == (first, last, offset) and row["worked_ms"] == last - first


def test_instants_are_subtracted_across_the_change_of_clocks(make_muster, stores):
    """In at 01:49 and out at 03:15 of the night without a two o'clock is 26 minutes."""
    muster = make_muster(held_clock=True, config={"day": {"timezone": "Europe/Berlin"}})
    muster.set_clock("2031-03-30T03:50:00+02:00")
    found(muster, {"lab": ["ada"]})
    muster.map("CHECKIN", "ada", "IN", "AT", "2031-03-30T01:49:00+01:00")
    muster.map("CHECKIN", "ada", "OUT", "AT", "2031-03-30T03:15:00+02:00")
    muster.set_clock("2031-03-30T04:05:00+02:00")
    wait_until(lambda: "ada" in day_rows(stores, "2031-03-29"), 20, "the day is closed")
    assert day_rows(stores, "2031-03-29")["ada"]["worked_ms"] == 1560000


def test_a_day_that_begins_at_a_midnight_that_is_skipped(make_muster, stores):
    """Where the clocks go forward at midnight, a day that begins at 00:00 begins at 01:00: dates stay in order and
    each is closed once."""
    muster = make_muster(held_clock=True, config={"day": {"timezone": "Asia/Beirut", "day_start": "00:00"}})
    muster.set_clock("2031-03-29T12:00:00+02:00")
    found(muster, {"lab": ["ada"]})
    assert muster.map("CHECKIN", "ada", "IN", "AT", "2031-03-29T08:55:00+02:00")["day"] == "2031-03-29"
    for time, day in (("2031-03-29T21:59:59.999Z", "2031-03-29"), ("2031-03-29T22:00:00.000Z", "2031-03-30")):
        muster.set_clock(time)
        assert muster.map("CHECKIN", "ada", "OUT", "AT", time)["day"] == day
    muster.set_clock("2031-03-31T00:05:00+03:00")
    for day in ("2031-03-29", "2031-03-30"):
        wait_until(lambda d=day: "ada" in day_rows(stores, d), 20, f"{day} is closed")
        assert len(stores.sql("SELECT * FROM day_close WHERE work_date = %s AND dept = 'lab'", (day,))) == 1


# ---- repeats, order ----

def test_the_same_event_from_eight_connections_at_once(day, stores):
    """One is accepted, seven are told that it is a repeat, and there is one event and one notice."""
    found(day, {"lab": ["ada"]})
    notices = Notices(stores, "attendance.in.lab")
    raws = [day.raw() for _ in range(8)]
    gate, replies = threading.Barrier(8), []

    def send(raw):
        gate.wait(10)
        replies.append(raw.command("CHECKIN", "ada", "IN", "AT", at("08:58"), "ID", "gate-7.1"))
    threads = [threading.Thread(target=send, args=(raw,)) for raw in raws]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for raw in raws:
        raw.close()
    assert sorted(as_map(reply)[b"duplicate"] for reply in replies) == [0] + [1] * 7
    notices.wait_for("attendance.in", 1)
    assert len(notices.wait_quiet(day)) == 1
    assert len(stores.sql("SELECT * FROM attendance_event")) == 1


def test_a_repeat_is_a_success(day):
    """An event that was accepted is answered again in the same words, with duplicate = 1; an id names an event even
    when its time differs."""
    found(day, {"lab": ["ada"]})
    first = punch(day, "ada", "IN", "08:58", "ID", "x-1")
    again = punch(day, "ada", "IN", "08:58", "ID", "x-1")
    assert (first.pop("duplicate"), again.pop("duplicate")) == (0, 1) and first == again
    assert punch(day, "ada", "IN", "08:59", "ID", "x-1")["duplicate"] == 1
    assert punch(day, "ada", "IN", "08:58")["duplicate"] == 1
    assert day.map("STATUS", "ada")["punches"] == 1


def random_day(rng):
    punches = []
    for n in range(rng.randrange(0, 7)):
        minute = rng.randrange(4 * 60, 24 * 60)
        event = ("ID", f"dev.{n}") if rng.random() < 0.4 else ()
        time = f"{minute // 60:02}:{minute % 60:02}:{rng.choice(['00', '00.001', '20', '59.999'])}"
        punches.append((rng.choice(["IN", "OUT", "UNK"]), time, *event))
        if rng.random() < 0.3:
            punches.append((punches[-1][0], f"{minute // 60:02}:{minute % 60:02}:30"))
    return punches


def test_any_order_and_any_repetition_give_the_same_row(held, stores):
    """Random days, each lived by four people: in order, shuffled, shuffled with repeats, and with a part that arrives
    only after the close. Their rows differ in nothing but the revision."""
    seed = 20310303
    rng = random.Random(seed)
    held.set_clock(at("+00:30"))
    days = {n: random_day(rng) for n in range(40)}
    found(held, {"lab": [f"{who}.{n}" for n in days for who in "abcd"]})

    def words(employee, direction, time, *more):
        return ("CHECKIN", employee, *([] if direction == "UNK" else [direction]), "AT", at(time), *more)
    before, after = [], []
    for n, punches in days.items():
        shuffled, repeated = rng.sample(punches, len(punches)), punches + rng.choices(punches, k=5) if punches else []
        rng.shuffle(repeated)
        cut = rng.randrange(len(punches) + 1)
        before += [words(f"a.{n}", *p) for p in punches] + [words(f"b.{n}", *p) for p in shuffled]
        before += [words(f"c.{n}", *p) for p in repeated] + [words(f"d.{n}", *p) for p in shuffled[:cut]]
        after += [words(f"d.{n}", *p) for p in shuffled[cut:]] + [words(f"b.{n}", *p) for p in repeated]
    assert not [reply for reply in pipelined(held, before) if not isinstance(reply, list)]
    close_day(held)
    assert not [reply for reply in pipelined(held, after) if not isinstance(reply, list)]
    wait_quiet(held)
    rows = day_rows(stores)
    skip = {"employee", "revision", "created", "updated", "punch_set"}
    for n, punches in days.items():
        seen = [{k: v for k, v in rows[f"{who}.{n}"].items() if k not in skip} for who in "abcd"]
        assert seen[1:] == seen[:1] * 3, f"seed {seed}, day {n}: {punches}"
        sets = [sorted(rows[f"{who}.{n}"]["punch_set"].split()) for who in "abcd"]
        assert sets[1:] == sets[:1] * 3
        assert rows[f"b.{n}"]["revision"] == 1


def test_a_write_is_read_by_everyone_at_once(day):
    """STATUS on another connection, and on the same one behind it in the pipe, sees a check-in that was answered."""
    found(day, {"lab": 30})
    with day.raw() as writer, day.raw() as reader:
        for n in range(30):
            employee = f"e.lab.{n}"
            as_map(writer.command("CHECKIN", employee, "IN", "AT", at("08:50")))
            assert as_map(reader.command("STATUS", employee))[b"state"] == b"present"
    replies = pipelined(day, [words for n in range(30) for words in (
        ("CHECKIN", f"e.lab.{n}", "OUT", "AT", at("18:30")), ("STATUS", f"e.lab.{n}"))])
    assert [as_map(reply)["out"] for reply in replies] == [ms(at("18:30"))] * 60


def test_states_while_the_day_is_open(held):
    """Nothing that may still come is held against anyone: not yet before the first punch, late at once, early only
    after an out, and back again when he returns."""
    held.set_clock(at("08:00"))
    found(held, {"lab": ["ada", "bo"]})

    def state(employee):
        return held.map("STATUS", employee)["state"]
    assert state("ada") == "not_yet"
    held.set_clock(at("12:00"))
    assert punch(held, "ada", "IN", "08:59:59.999")["state"] == "present" and state("ada") == "present"
    reply = punch(held, "bo", "IN", "09:00:00.001")
    assert reply["state"] == "late" and held.map("STATUS", "bo")["late"] == 1
    assert punch(held, "ada", "OUT", "11:00")["state"] == "early"
    assert punch(held, "ada", "IN", "11:50")["state"] == "present"
    held.set_clock(at("18:10"))
    assert punch(held, "ada", "OUT", "18:00:00.000")["state"] == "present"
    assert held.map("ROLL.COUNT", "lab")["late"] == 1


# ---- wrong clocks ----

def test_an_event_of_a_wrong_clock_is_set_aside(day, stores):
    """A badge reader that woke up in the year 2000, or is days ahead, is refused with TIME; the person is not
    counted, and whoever is in charge sees the event in FAILURE.LIST."""
    found(day, {"lab": ["ada", "bo"]})
    for time in ("2000-01-01T00:03:00Z", "2031-03-05T00:00:00Z", at("12:00", day_after(DAY, -8))):
        reply = day.ask("CHECKIN", "ada", "IN", "AT", time)
        assert reply.startswith("TIME ") and "not counted" in reply
    assert day.map("STATUS", "ada")["state"] == "not_yet"
    rows = wait_until(lambda: len(failures(day)) == 3 and failures(day), 15, "the events are listed")
    assert [row["reason"] for row in rows] == ["too_old", "in_future", "too_old"]
    assert {(row["kind"], row["employee"], row["dept"]) for row in rows} == {("rejected", "ada", "lab")}
    assert punch(day, "bo", "IN", "08:55")["duplicate"] == 0
    close_day(day)
    assert statuses(stores) == {"ada": "absent", "bo": "missing_out"}


def test_a_clock_that_is_a_little_ahead_is_put_right(held, stores):
    """Up to accept_future an event counts as it says; beyond it the daemon's own time counts, and the punch is
    marked."""
    held.set_clock(at("17:50"))
    found(held, {"lab": ["ada", "bo"]})
    assert punch(held, "bo", "OUT", "17:55:00.000")["out"] == ms(at("17:55"))
    reply = punch(held, "ada", "OUT", "18:05")
    assert (reply["out"], reply["marks"]) == (ms(at("17:50")), "skew")
    wait_quiet(held)
    assert stores.sql("SELECT marks FROM attendance_event WHERE employee = 'ada'") == [{"marks": "skew"}]
    assert stores.sql("SELECT marks FROM attendance_event WHERE employee = 'bo'") == [{"marks": ""}]


def test_one_bad_record_of_a_batch_is_refused_alone(day, stores):
    """Of 500 pipelined events one has a date that no calendar has: 499 are accepted and the one is named by its
    place."""
    people = found(day, {"lab": 500})
    commands = [["CHECKIN", employee, "IN", "AT", at("08:55")] for employee in people]
    commands[321][-1] = "2031-04-31T08:55:00Z"
    replies = pipelined(day, commands, 500)
    bad = [n for n, reply in enumerate(replies) if not isinstance(reply, list)]
    assert bad == [321] and replies[321].startswith("ERR invalid time in AT, expected ")
    wait_quiet(day)
    assert stores.sql("SELECT COUNT(*) AS n FROM attendance_event") == [{"n": 499}]


def test_an_unknown_employee_of_a_batch_is_refused_alone_and_can_come_again(day):
    """Of ten pipelined events two are of people not hired yet; eight are accepted; after the hire the two are taken,
    and lie in the day."""
    people = found(day, {"lab": 8})
    commands = [("CHECKIN", employee, "IN", "AT", at("08:55"))
                for employee in [*people[:4], "new.1", *people[4:], "new.2"]]
    replies = pipelined(day, commands)
    bad = {commands[n][1]: reply for n, reply in enumerate(replies) if not isinstance(reply, list)}
    assert set(bad) == {"new.1", "new.2"}
    assert all(reply.startswith("UNKNOWN no such employee") for reply in bad.values())
    found_again = pipelined(day, [("EMPLOYEE.SET", employee, "DEPT", "lab") for employee in bad])
    assert found_again == ["OK", "OK"]
    replies = pipelined(day, commands)
    assert [as_map(reply)["duplicate"] for reply in replies] == [0 if words[1] in bad else 1 for words in commands]


# ---- people who change place ----

def test_people_who_move_during_the_day(day, stores):
    """Whoever has punched keeps his day where he punched, both supervisors hear of what follows, and the new
    department does not count him absent; whoever has not punched is expected only where he is now. The row keeps the
    department of its day for ever."""
    found(day, {"one": ["in.then.moved", "moved.first", "never"], "two": [], "three": []})
    one, two = Notices(stores, "attendance.*.one"), Notices(stores, "attendance.*.two")
    punch(day, "in.then.moved", "IN", "08:55")
    for employee in ("in.then.moved", "moved.first", "never"):
        assert day.ask("EMPLOYEE.MOVE", employee, "two") == "OK"
    assert punch(day, "in.then.moved", "OUT", "18:01")["dept"] == "one"
    assert punch(day, "moved.first", "IN", "08:55")["dept"] == "two"
    assert sorted(row["id"] for row in day.roll("two")) == ["moved.first", "never"]
    assert [row["id"] for row in day.roll("one")] == ["in.then.moved"]
    assert {e["employee"] for e in one.wait_for("attendance.out", 1)} == {"in.then.moved"}
    assert {e["employee"] for e in two.wait_for("attendance.out", 1)} == {"in.then.moved"}
    close_day(day)
    rows = day_rows(stores)
    assert {employee: (row["dept"], row["status"]) for employee, row in rows.items()} == {
        "in.then.moved": ("one", "present"), "moved.first": ("two", "missing_out"), "never": ("two", "absent")}
    # The next day everyone is where he is now; then a move does not touch the row that is there.
    assert {row["id"] for row in day.roll("two", "DAY", NEXT)} == {"in.then.moved", "moved.first", "never"}
    assert day.ask("EMPLOYEE.MOVE", "in.then.moved", "three") == "OK"
    assert day_rows(stores)["in.then.moved"]["dept"] == "one"
    assert [row["id"] for row in day.roll("one", "DAY", DAY)] == ["in.then.moved"]
    assert day.map("STATUS", "in.then.moved", "DAY", DAY)["dept"] == "one"


def test_people_who_come_and_go_during_the_day(day, stores):
    """A department and an employee made during the day join it at once. Whoever is removed keeps the punches he has,
    and without any is expected no more."""
    found(day, {"lab": ["left.early", "left.unseen", "stays"]})
    punch(day, "left.early", "IN", "08:55")
    for employee in ("left.early", "left.unseen"):
        assert day.ask("EMPLOYEE.REMOVE", employee) == "OK"
        assert day.ask("CHECKIN", employee, "IN").startswith("UNKNOWN ")
        assert day.ask("STATUS", employee).startswith("UNKNOWN ")
    found(day, {"annex": ["hired.today", "hired.unseen"]})
    punch(day, "hired.today", "IN", "08:30")
    assert day.map("ROLL.COUNT", "annex")["total"] == 2
    close_day(day)
    assert statuses(stores) == {"left.early": "missing_out", "stays": "absent", "hired.today": "missing_out",
                                "hired.unseen": "absent"}
    assert wait_books(stores) == {"expected": 4, "written": 4, "failed": 0, "absent": 2}


def test_someone_who_is_removed_and_hired_elsewhere_has_one_day(day, stores):
    """Removed after a punch and hired into another department on the same day: one row, with all punches, and nobody
    is told that he is absent."""
    homes = {f"from.{home}.{n}": home for home in "ab" for n in range(4)}
    found(day, {home: [e for e, d in homes.items() if d == home] for home in "ab"})
    notices = Notices(stores, "attendance.absent.#")
    for employee, home in homes.items():
        punch(day, employee, "IN", "08:55")
        assert day.ask("EMPLOYEE.REMOVE", employee) == "OK"
        assert day.ask("EMPLOYEE.SET", employee, "DEPT", "b" if home == "a" else "a") == "OK"
        if employee.endswith(("0", "1")):
            punch(day, employee, "OUT", "18:00")
    close_day(day)
    wait_books(stores)
    rows = {e: (row["status"], row["in"], row["out"]) for e, row in day_rows(stores).items()}
    assert rows == {e: ("present", ms(at("08:55")), ms(at("18:00"))) if e.endswith(("0", "1")) else
                    ("missing_out", ms(at("08:55")), None) for e in homes}
    assert [event["employee"] for event in notices.wait_quiet(day)] == []


def test_someone_without_a_department_is_counted_in_department_0(day, stores):
    """An employee that no department was named for punches, is closed and is reported like anyone else."""
    assert day.ask("EMPLOYEE.SET", "loose") == "OK"
    assert punch(day, "loose", "IN", "08:55")["dept"] == "0"
    assert day.map("STATUS", "loose")["path"] == "0"
    close_day(day)
    assert {e: (r["dept"], r["status"]) for e, r in day_rows(stores).items()} == {"loose": ("0", "missing_out")}
    view = stores.sql("SELECT employees, missing_out FROM daily_department WHERE dept = '0' AND work_date = %s", (DAY,))
    assert [(row["employees"], row["missing_out"]) for row in view] == [(1, 1)]


def test_someone_who_is_moved_twice_has_one_row(day, stores):
    """Moved on after a punch, and on again: the day stays where it began, and he is on no other roster, so that nobody
    takes him for absent. What is pipelined behind his next punch sees it, though that had to be routed anew."""
    absent = Notices(stores, "attendance.absent.#")
    found(day, {"one": ["wanderer"], "two": [], "three": []})
    punch(day, "wanderer", "IN", "08:55")
    assert day.ask("EMPLOYEE.MOVE", "wanderer", "two") == "OK"
    assert day.ask("EMPLOYEE.MOVE", "wanderer", "three") == "OK"
    assert not day.roll("two") and not day.roll("three")
    with day.raw() as raw:
        raw.send(encode("CHECKIN", "wanderer", "OUT", "AT", at("18:01")) + encode("STATUS", "wanderer"))
        replies = [raw.read(), raw.read()]
    assert as_map(text_of(replies[1]))["punches"] == 2
    close_day(day)
    row = day_rows(stores)["wanderer"]
    assert (row["dept"], row["status"], row["punches"]) == ("one", "present", 2)
    assert not absent.wait_quiet(day)


def test_a_reader_that_repeats_itself_keeps_nobody_from_going(held, stores):
    """Hundreds of punches of one person: all are kept as events, the set stays bounded, first and last decide."""
    held.set_clock(at("20:00"))
    found(held, {"lab": ["shaky"]})
    first = ms(at("08:00"))
    commands = [("CHECKIN", "shaky", "IN", "AT", str(first + n * 1000)) for n in range(300)]
    assert all("duplicate" in reply for reply in pipelined(held, commands))
    punch(held, "shaky", "OUT", "18:00")
    close_day(held)
    row = day_rows(stores)["shaky"]
    assert (row["status"], row["in"], row["out"]) == ("present", first, ms(at("18:00")))
    wait_books(stores)
    # After the close, too: a flood of late punches of one day is bounded, and the row follows its first.
    late = [("CHECKIN", "shaky", "IN", "AT", str(first - 3600000 + n * 1000)) for n in range(1500)]
    assert all("revising" in reply for reply in pipelined(held, late))
    wait_until(lambda: day_rows(stores)["shaky"]["in"] == first - 3600000, 30, "the row to be revised")
