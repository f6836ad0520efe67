# SPDX-License-Identifier: MIT
"""The close of a day: what it writes, what it refuses to judge, what it does when data are bad or late."""
import pytest

from harness.attendance import (DAY, Notices, as_map, at, books, close_day, day_after, day_rows, failures, found, ms,
                                pipelined, punch, statuses, texts, wait_books, wait_closed, wait_quiet)
from harness.raw import encode
from harness.wait import wait_until

NEXT = day_after(DAY)


@pytest.fixture(name="morning")
def fixture_morning(held):
    """A daemon at noon of DAY."""
    held.set_clock(at("12:00"))
    return held


def map_key(stores, dept, day=DAY):
    """The key of a day map, prefix and all."""
    names = [name for name in stores.keys() if name.endswith(f":day:{dept}:{day}")]
    assert len(names) == 1, names
    return stores.key(names[0])


def ask_close(muster, *words):
    return as_map(muster.ask("DAY.CLOSE", *words))


def wait_revised(stores, employee, revision, day=DAY):
    def revised():
        row = day_rows(stores, day).get(employee)
        return row if row and row["revision"] == revision else None
    return wait_until(revised, 20, f"revision {revision} of {employee}")


# ---- when ----

def test_an_open_window_is_never_closed(morning, stores):
    """DAY.CLOSE of a day that is not over is refused whole: the map stays, nobody becomes absent, and who comes at
    noon is late and has one row."""
    found(morning, {"lab": ["ada", "bo"]})
    before = stores.redis.hgetall(map_key(stores, "lab"))
    for day in (DAY, NEXT):
        reply = morning.ask("DAY.CLOSE", day)
        assert reply.startswith("CONFLICT ") and "open" in reply
    assert stores.redis.hgetall(map_key(stores, "lab")) == before and day_rows(stores) == {}
    punch(morning, "ada", "IN", "12:00")
    close_day(morning)
    row = day_rows(stores)["ada"]
    assert (row["late_ms"], row["revision"]) == (10800000, 1)
    assert len(stores.sql("SELECT * FROM attendance_day WHERE employee = 'ada'")) == 1


def test_a_day_closes_by_itself_and_once(morning, stores):
    """A minute before close_delay is over the day is open; at it, it closes, and the map is gone. Asked again it is
    closed still, and nothing is written twice or told twice. Tomorrow's map is there before tomorrow."""
    found(morning, {"hq": ["boss"], "lab/hq": ["ada"]})
    notices = Notices(stores, "attendance.*.#")
    morning.set_clock(at("+04:04:59.999"))
    state = morning.map("DAY.STATE", DAY)
    assert state["state"] == "open" and state["expected"] == 2
    assert "boss" in stores.redis.hgetall(map_key(stores, "hq", NEXT))
    wait_until(lambda: "#" in stores.redis.hgetall(map_key(stores, "hq", day_after(NEXT))), 10, "the map after it")
    state = close_day(morning)
    assert {name: state[name] for name in ("departments", "expected", "written", "failed", "absent")} == {
        "departments": 2, "expected": 2, "written": 2, "failed": 0, "absent": 2}
    rows = day_rows(stores)
    wait_books(stores)
    assert ask_close(morning, DAY) == morning.map("DAY.STATE", DAY)
    assert day_rows(stores) == rows and not [key for key in stores.keys() if DAY in key]
    events = notices.wait_quiet(morning)
    absent = [e for e in events if e["type"] == "attendance.absent"]
    closed = [e for e in events if e["type"] == "attendance.closed"]
    assert sorted(e["employee"] for e in absent) == ["ada", "boss"]
    assert {e["dept"]: (e["expected"], e["absent"]) for e in closed if e["day"] == DAY} == {
        "hq": (1, 1), "lab": (1, 1)}
    assert len(closed) == len({e["id"] for e in closed})
    assert morning.map("DAY.STATE", "2031-02-01")["state"] == "none"


def test_only_the_asked_department_is_closed(make_muster, stores):
    """With close_auto off the clock closes nothing; DAY.CLOSE with DEPT closes that department, also after a restart
    no other; without it all that is left, and earlier days first."""
    muster = make_muster(held_clock=True, config={"day": {"close_auto": "no"}})
    muster.set_clock(at("12:00"))
    found(muster, {"a": ["ada"], "b": ["bo"]})
    muster.set_clock(at("+12:00"))
    state = ask_close(muster, DAY, "DEPT", "a")
    assert state["state"] == "closing" and statuses(stores) == {"ada": "absent"}
    muster.restart()
    muster.set_clock(at("+12:01"))
    assert muster.ask("DAY.CLOSE", DAY, "DEPT", "nowhere").startswith("UNKNOWN ")
    asked = muster.info()
    wait_until(lambda: int(muster.info()["uptime_in_seconds"]) > int(asked["uptime_in_seconds"]) + 3, 20, "it looked")
    assert statuses(stores) == {"ada": "absent"} and muster.map("DAY.STATE", DAY)["state"] == "closing"
    muster.set_clock(at("12:00", day_after(NEXT)))
    assert ask_close(muster, NEXT)["state"] == "closed"
    assert statuses(stores) == {"ada": "absent", "bo": "absent"} == statuses(stores, NEXT)
    wait_books(stores)


def test_days_left_unclosed_are_caught_up_in_order(morning, stores):
    """Down over three nights, the daemon closes what was left, oldest day first, before it takes commands. A day of
    which there is no roster, since nobody was up to make one, is reported as such, and makes nobody absent."""
    found(morning, {"a": ["ada"], "b": ["bo"]})
    punch(morning, "ada", "IN", "08:55")
    wait_until(lambda: [k for k in stores.keys() if k.endswith(f":day:a:{NEXT}")], 20, "tomorrow's map")
    morning.kill9()
    days = [day_after(DAY, n) for n in range(3)]
    morning.start()
    morning.set_clock(at("+04:05", days[2]))
    for day in days:
        wait_closed(morning, day)
    assert statuses(stores) == {"ada": "missing_out", "bo": "absent"}
    assert statuses(stores, NEXT) == {"ada": "absent", "bo": "absent"}
    started = {day: [row["started"] for row in stores.sql("SELECT started FROM day_close WHERE work_date=%s", (day,))]
               for day in days}
    assert all(len(rows) == 2 for rows in started.values()), started
    assert statuses(stores, days[2]) == {}
    assert {(row["dept"], row["reason"]) for row in failures(morning, "DAY", days[2])} == {
        ("a", "no_map"), ("b", "no_map")}
    punch(morning, "bo", "IN", at("08:55", days[2]))
    assert wait_revised(stores, "bo", 1, days[2])["status"] == "missing_out"


# ---- what can't be judged ----

def test_a_missing_map_makes_nobody_absent(morning, stores):
    """A map that vanished is a failure for the people in charge; the other departments are closed as ever, and late
    punches still make their rows."""
    found(morning, {"a": ["ada"], "b": ["bo"]})
    notices = Notices(stores, "attendance.absent.#")
    stores.redis.delete(map_key(stores, "a"))
    close_day(morning)
    assert statuses(stores) == {"bo": "absent"}
    rows = failures(morning, "DAY", DAY)
    assert [(row["dept"], row["reason"], row["employee"]) for row in rows] == [("a", "no_map", "")]
    assert [event["employee"] for event in notices.wait_quiet(morning)] == ["bo"]
    punch(morning, "ada", "IN", "08:55")
    wait_revised(stores, "ada", 1)
    assert statuses(stores)["ada"] == "missing_out"


def test_a_map_without_its_mark_makes_nobody_absent(morning, stores):
    """Without the mark of a whole roster only those who punched are judged; the others are failures."""
    found(morning, {"a": ["ada", "bo"]})
    punch(morning, "ada", "IN", "08:55")
    stores.redis.hdel(map_key(stores, "a"), "#")
    state = close_day(morning)
    assert (state["expected"], state["written"], state["failed"], state["absent"]) == (2, 1, 1, 0)
    assert statuses(stores) == {"ada": "missing_out"}
    assert [(row["employee"], row["reason"]) for row in failures(morning)] == [("bo", "no_roster")]


def test_poison_in_one_map_stops_nobody_else(morning, stores):
    """Values that are no punches, an id that no column holds and a set that is too long become one failure each; all
    the others are written, the day ends, and its numbers say so."""
    company = {f"d{n}": 20 for n in range(30)}
    people = found(morning, company)
    pipelined(morning, [("CHECKIN", employee, "IN", "AT", at("08:55")) for employee in people[::2]])
    endless = " ".join(f"I{ms(at('04:00')) + n * 40000}#{n:064}" for n in range(300))
    poison = {("d7", "e.d7.3"): "garbage", ("d8", "e.d8.4"): "I12x", ("d11", "x" * 70): "", ("d12", "e.d12.5"): endless,
              ("d13", "quo'te\\\"\n"): f"I{ms(at('08:00'))}", ("d14", "e.d14.6"): b"\xff\xfe\x00",
              ("d15", "café".encode("latin-1")): f"O{ms(at('19:00'))}"}
    for (dept, employee), value in poison.items():
        stores.redis.hset(map_key(stores, dept), employee, value)
    state = close_day(morning)
    total = 600 + 3
    assert (state["expected"], state["written"], state["failed"]) == (total, total - 5, 5)
    assert wait_books(stores)["written"] == total - 5
    rows = day_rows(stores)
    assert len(rows) == total - 5 and "quo'te\\\"\n" in rows
    reasons = {row["employee"]: row["reason"] for row in failures(morning)}
    assert reasons == {"e.d7.3": "bad_value", "e.d8.4": "bad_value", "x" * 70: "refused", "e.d12.5": "refused",
                       "e.d14.6": "bad_value"}
    assert sum(row["status"] == "absent" for row in rows.values()) == state["absent"]


def test_failures_are_listed_retried_and_discarded(morning, stores):
    """FAILURE.LIST filters and pages; RETRY writes what has become possible and puts the books right; what is still
    bad stays; DISCARD takes one off the list and is not repeated."""
    found(morning, {"a": ["ada", "bo"], "b": ["cy"]})
    stores.redis.hset(map_key(stores, "a"), mapping={"ada": "garbage", "bo": "garbage"})
    stores.redis.hset(map_key(stores, "b"), "cy", "garbage")
    close_day(morning)
    wait_books(stores)
    assert len(failures(morning, "COUNT", 1)) == 3 == len(failures(morning, "DAY", DAY))
    assert [row["employee"] for row in failures(morning, "DEPT", "b")] == ["cy"]
    assert failures(morning, "DAY", NEXT) == []
    ids = {row["employee"]: row["id"] for row in failures(morning)}
    # An operator repairs the payload of one.
    stores.sql("UPDATE persist_failure SET payload = %s WHERE employee = 'ada'", (f"I{ms(at('08:55'))}",))
    assert morning.ask("FAILURE.RETRY", "ALL") == 1
    assert statuses(stores) == {"ada": "missing_out"}
    assert books(stores) == {"expected": 3, "written": 1, "failed": 2, "absent": 0}
    assert morning.ask("FAILURE.RETRY", ids["ada"]) == 0
    assert morning.ask("FAILURE.DISCARD", ids["bo"]) == 1 and morning.ask("FAILURE.DISCARD", ids["bo"]) == 0
    assert morning.ask("FAILURE.DISCARD", 99999) == 0
    assert [row["employee"] for row in failures(morning)] == ["cy"]
    for word in ("x", "-1", "0", "1.5", ""):
        assert morning.ask("FAILURE.RETRY", word).startswith("ERR ")
        assert morning.ask("FAILURE.DISCARD", word).startswith("ERR ")


def test_retry_makes_nobody_absent_who_could_not_be_judged(morning, stores):
    """RETRY leaves a failure no_roster alone, by its id and with ALL: that he was expected is not known now either."""
    found(morning, {"lab": ["ada", "bo"]})
    punch(morning, "ada", "IN", "08:50")
    stores.redis.hdel(map_key(stores, "lab"), "#")
    close_day(morning)
    wait_books(stores)
    rows = failures(morning)
    assert [(row["employee"], row["reason"]) for row in rows] == [("bo", "no_roster")]
    assert morning.ask("FAILURE.RETRY", "ALL") == 0 == morning.ask("FAILURE.RETRY", rows[0]["id"])
    assert statuses(stores) == {"ada": "missing_out"} and failures(morning) == rows
    assert morning.ask("FAILURE.DISCARD", rows[0]["id"]) == 1


def test_two_retries_at_once_count_once(morning, stores):
    """Two RETRYs of one failure that both find it open write one row and move the books by one."""
    found(morning, {"lab": ["ada", "bo"]})
    stores.redis.hset(map_key(stores, "lab"), mapping={"ada": "garbage", "bo": "garbage"})
    close_day(morning)
    wait_books(stores)
    ids = {row["employee"]: row["id"] for row in failures(morning)}
    stores.sql("UPDATE persist_failure SET payload = %s WHERE employee = 'ada'", (f"I{ms(at('08:55'))}",))
    with morning.raw() as one, morning.raw() as two:
        morning.pause()  # so that both are there when it looks
        for raw in (one, two):
            raw.send(encode("FAILURE.RETRY", ids["ada"]))
        morning.resume()
        assert 1 in (one.read(), two.read())
    assert books(stores) == {"expected": 2, "written": 1, "failed": 1, "absent": 0}
    assert statuses(stores) == {"ada": "missing_out"} and [row["employee"] for row in failures(morning)] == ["bo"]


def test_a_key_of_another_type_where_a_map_is_closed(morning, stores):
    """What stands where the close puts a map is set aside as …:damaged: that department is closed and so are those
    that come after it."""
    found(morning, {"a": ["ada"], "b": ["bo"], "c": ["cy"]})
    closing = [map_key(stores, dept).replace(":day:", ":closing:") for dept in "ab"]
    for key in closing:
        stores.redis.set(key, "x")
    close_day(morning, deadline=10)
    assert statuses(stores) == {"ada": "absent", "bo": "absent", "cy": "absent"} and failures(morning) == []
    assert [stores.redis.get(key + ":damaged") for key in closing] == ["x", "x"]


def test_one_employee_in_two_maps_has_one_row(morning, stores):
    """Two fields for one employee in a batch, of two departments: both are counted into his one row."""
    found(morning, {"a": ["ada"], "b": ["bo"]})
    stores.redis.hset(map_key(stores, "a"), "ada", f"I{ms(at('08:55'))}")
    stores.redis.hset(map_key(stores, "b"), "ada", f"O{ms(at('18:05'))}")
    close_day(morning)
    row = day_rows(stores)["ada"]
    assert (row["status"], row["dept"], row["in"], row["out"]) == ("present", "a", ms(at("08:55")), ms(at("18:05")))
    assert wait_books(stores) == {"expected": 2, "written": 2, "failed": 0, "absent": 1}


# ---- after the close ----

def test_a_late_punch_opens_the_closed_day_again(morning, stores):
    """A reader that was offline delivers yesterday's punch: the absence becomes a presence as revision 2 with its
    cause, the supervisor gets exactly one withdrawal, and repeats, restarts and another DAY.CLOSE change nothing."""
    found(morning, {"lab": ["ada", "bo"]})
    notices = Notices(stores, "attendance.*.lab")
    close_day(morning)
    assert statuses(stores) == {"ada": "absent", "bo": "absent"}
    notices.wait_for("attendance.absent", 2)
    morning.set_clock(at("+10:05"))
    reply = punch(morning, "ada", "IN", "08:50", "ID", "reader.1")
    assert reply["day"] == DAY and reply["duplicate"] == 0
    wait_revised(stores, "ada", 2)
    punch(morning, "ada", "OUT", "18:10", "ID", "reader.2")
    row = wait_revised(stores, "ada", 3)
    assert (row["status"], row["in"], row["out"]) == ("present", ms(at("08:50")), ms(at("18:10")))
    for _ in range(3):
        punch(morning, "ada", "IN", "08:50", "ID", "reader.1")
    ask_close(morning, DAY)
    morning.restart()
    morning.set_clock(at("+10:06"))
    punch(morning, "ada", "OUT", "18:10")
    events = notices.wait_quiet(morning)
    assert day_rows(stores)["ada"] == row and day_rows(stores)["bo"]["revision"] == 1
    withdrawn = [event for event in events if event["type"] == "attendance.withdrawn"]
    assert [(e["employee"], e["of"], e["state"]) for e in withdrawn] == [("ada", "absent", "missing_out")]
    revisions = texts(stores.sql("SELECT * FROM attendance_revision ORDER BY revision"))
    assert [(r["revision"], r["cause"], r["old_status"], r["new_status"]) for r in revisions] == [
        (2, "late_punch", "absent", "missing_out"), (3, "late_punch", "missing_out", "present")]
    assert morning.map("STATUS", "ada", "DAY", DAY)["state"] == "present"
    assert {row["id"]: row["state"] for row in morning.roll("lab", "DAY", DAY)} == {"ada": "present", "bo": "absent"}
    assert morning.map("ROLL.COUNT", "lab", "DAY", DAY)["present"] == 1
    # Today is not touched by yesterday's news.
    assert morning.map("STATUS", "ada")["state"] == "not_yet"


def test_a_punch_between_the_end_of_a_day_and_its_close(morning, stores):
    """Until it is closed a day that is over takes late punches as an open one does."""
    found(morning, {"lab": ["ada"]})
    morning.set_clock(at("+04:04"))
    assert punch(morning, "ada", "IN", "08:50")["state"] == "present"
    close_day(morning)
    row = day_rows(stores)["ada"]
    assert (row["status"], row["revision"]) == ("missing_out", 1)


def test_a_late_punch_of_someone_who_was_not_expected(morning, stores):
    """Hired today, with a punch of yesterday from the probation list: a row of its own, no revision of anybody."""
    found(morning, {"lab": ["ada"]})
    close_day(morning)
    found(morning, {"annex": ["new"]})
    punch(morning, "new", "IN", "08:50")
    assert wait_revised(stores, "new", 1)["dept"] == "annex"
    wait_quiet(morning)
    assert [r["revision"] for r in stores.sql("SELECT * FROM attendance_revision WHERE employee = 'new'")] in ([], [1])
    assert statuses(stores) == {"ada": "absent", "new": "missing_out"}


# ---- reading a day that is over ----

def test_a_roll_that_the_close_came_between(morning, stores):
    """A page that is asked for after the close, by a cursor of the time before, is BUSY and no silent end; asked again
    from the beginning the day is there whole."""
    people = found(morning, {"lab": 1000})
    morning.set_clock(at("+04:01"))
    cursor, items = morning.ask("ROLL", "lab", "DAY", DAY, "COUNT", 100)
    assert cursor and items
    close_day(morning)
    reply = morning.ask("ROLL", "lab", "DAY", DAY, "COUNT", 100, "CURSOR", cursor)
    assert isinstance(reply, str) and reply.startswith("BUSY "), reply
    rows = morning.roll("lab", "DAY", DAY, "COUNT", 500)
    assert sorted(row["id"] for row in rows) == sorted(people) and {row["state"] for row in rows} == {"absent"}


def test_a_map_whose_first_page_is_empty(morning, stores):
    """Redis may give an empty page of a map that has people: the others follow, and none is left out."""
    found(morning, {"lab": 1000})
    key = map_key(stores, "lab")
    while fields := stores.redis.hscan(key, 0, count=1)[1]:
        stores.redis.hdel(key, *fields)
    morning.set_clock(at("+04:01"))
    rows = morning.roll("lab", "DAY", DAY, "COUNT", 1)
    assert sorted(row["id"] for row in rows) == sorted(field for field in stores.redis.hkeys(key) if field != "#")


# ---- DAY.INIT ----

def test_day_init(morning, stores):
    """DAY.INIT readies the maps of a day to come and may be repeated; a day that is over, or too far ahead, is
    refused. What it makes is the roster, without anyone's punches lost."""
    found(morning, {"lab": ["ada", "bo"]})
    punch(morning, "ada", "IN", "08:55")
    ahead = NEXT
    for _ in range(2):
        state = as_map(morning.ask("DAY.INIT", ahead))
        assert (state["state"], state["departments"], state["expected"]) == ("open", 1, 2)
    assert stores.redis.hgetall(map_key(stores, "lab", ahead)) == {"#": "1", "ada": "", "bo": ""}
    as_map(morning.ask("DAY.INIT", DAY))
    assert morning.map("STATUS", "ada")["punches"] == 1
    assert morning.ask("DAY.INIT", day_after(DAY, -1)).startswith("CLOSED ")
    assert morning.ask("DAY.INIT", day_after(DAY, 2)).startswith("TIME ")
    for word in ("2031-04-31", "today", "", "2031-3-3", "20310303"):
        for command in ("DAY.INIT", "DAY.CLOSE", "DAY.STATE"):
            reply = morning.ask(command, word)
            assert reply.startswith("ERR invalid day, expected ") and "YYYY-MM-DD" in reply


def test_map_that_was_lost_is_made_again_before_it_is_needed(morning, stores):
    """DAY.INIT makes the map again that vanished during the day; the punches come back with nobody's help only from
    the personal record, so those who punched are not absent."""
    found(morning, {"lab": ["ada", "bo"]})
    stores.redis.delete(map_key(stores, "lab"))
    as_map(morning.ask("DAY.INIT", DAY))
    punch(morning, "ada", "IN", "08:55")
    close_day(morning)
    assert statuses(stores) == {"ada": "missing_out", "bo": "absent"}
