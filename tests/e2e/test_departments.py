# SPDX-License-Identifier: MIT
"""Departments of attendance are nodes of the tree: what becomes of people, punches, maps, days that are not closed yet,
notices and history when one is moved, lifted, retired or removed."""
import random
from collections import Counter

import pytest

from harness.attendance import (DAY, Notices, as_map, at, close_day, day_after, day_rows, failures, found, pipelined,
                                punch, statuses, text, wait_books, wait_quiet)
from harness.wait import wait_until

NEXT = day_after(DAY)


@pytest.fixture(name="noon")
def fixture_noon(held):
    """A daemon at noon of DAY."""
    held.set_clock(at("12:00"))
    return held


def change(muster, *words):
    reply = muster.ask(*words)
    assert reply == "OK", (words, reply)


def places(stores, day=DAY):
    return {employee: (row["dept"], row["status"]) for employee, row in day_rows(stores, day).items()}


def maps(stores, day):
    """The day maps of a date by department, closing ones, too."""
    found_maps = {}
    for name in stores.keys(f"*:{day}"):
        kind, dept = name.split(":")[1:3]
        found_maps[kind, dept] = stores.redis.hgetall(stores.key(name))
    return found_maps


def told(notices, kind):
    return sorted({(event["dept"], event["employee"]) for event in notices.events(kind)})


# ---- the tree as Redis has it, and as MySQL has it ----

def tree_of(stores):
    """id -> (parent, path, name, manager, state, version), by climbing."""
    nodes = {}
    for name in stores.keys("{org}:dept:*"):
        nodes[name.removeprefix("{org}:dept:")] = stores.redis.hgetall(stores.key(name))

    def path(node):
        ids = [node]
        while nodes[ids[0]]["parent_id"]:
            ids.insert(0, nodes[ids[0]]["parent_id"])
        return ":".join(ids)
    return {i: (node["parent_id"], path(i), node["name"], node.get("manager", ""), node.get("state", "active"),
                int(node.get("version", 1))) for i, node in nodes.items()}


def history_of(stores):
    rows = stores.sql("SELECT id, parent, path, name, manager, state, version FROM department")
    return {text(row["id"]): tuple(text(row[field]) for field in (
        "parent", "path", "name", "manager", "state", "version")) for row in rows}


def check_history(muster, stores):
    """Once the ledger has read all, its rows are the tree, and its memberships those in Redis."""
    wait_quiet(muster)
    live = {i: row for i, row in history_of(stores).items() if row[4] != "removed"}
    assert live == tree_of(stores)
    joined = {(team, name.rpartition(":")[2]) for name in stores.keys("{org}:user_teams:*")
              for team in stores.redis.smembers(stores.key(name))}
    rows = stores.sql("SELECT team, employee FROM team_member")
    assert {(text(row["team"]), text(row["employee"])) for row in rows} == joined and len(rows) == len(joined)


# ---- maps ----

def test_a_department_without_employees_costs_nothing(noon, stores):
    """Its maps are made when somebody is hired or moved into it, not before, and it is closed from then on."""
    found(noon, {"hq": [], "lab/hq": [], "east/hq": ["eve"]})
    wait_quiet(noon)
    assert set(maps(stores, DAY)) == {("day", "east")} == set(maps(stores, NEXT))
    assert noon.map("DAY.STATE", DAY)["departments"] == 1
    assert noon.map("DAY.INIT", NEXT)["departments"] == 1
    found(noon, {"lab/hq": ["ada", "bo"]})
    assert maps(stores, DAY)["day", "lab"] == {"#": "1", "ada": "", "bo": ""} == maps(stores, NEXT)["day", "lab"]
    change(noon, "EMPLOYEE.MOVE", "eve", "hq")
    assert maps(stores, DAY)["day", "hq"] == {"#": "1", "eve": ""} and maps(stores, DAY)["day", "east"] == {"#": "1"}
    punch(noon, "ada", "IN", "08:55")
    close_day(noon)
    assert places(stores) == {"ada": ("lab", "missing_out"), "bo": ("lab", "absent"), "eve": ("hq", "absent")}
    assert wait_books(stores) == {"expected": 3, "written": 3, "failed": 0, "absent": 2}
    wait_until(lambda: {dept for _, dept in maps(stores, day_after(NEXT))} == {"hq", "lab"}, 10, "the maps after it")


def test_a_map_of_the_first_hire_is_made_whoever_readies_the_day(make_muster, stores):
    """A department that is staffed just before four, by a daemon whose clock is behind, has its map the next day."""
    one, two = (make_muster(held_clock=True) for _ in range(2))
    for daemon in (one, two):
        daemon.set_clock(at("12:00"))
    found(one, {"east": ["eve"]})
    one.set_clock(at("+04:00:00.010"))
    wait_until(lambda: [d for d in (one, two) if d.info()["maps_ready"] != "1"] == [], 10, "tomorrow is ready")
    two.set_clock(at("+03:59:59.990"))
    change(two, "TEAM.ADD", "lab", "-")
    change(two, "EMPLOYEE.SET", "ada", "DEPT", "lab")
    for daemon in (one, two):
        daemon.set_clock(at("+12:00", NEXT))
    wait_until(lambda: {dept for _, dept in maps(stores, day_after(NEXT))} == {"east", "lab"}, 10, "the maps")


def test_days_without_employees_are_no_gap(noon, stores):
    """A department that was left by all and is staffed again days later has nothing to close in between, and nobody
    misses a map of those days; one with employees, of which nobody made the map, still has its failure."""
    found(noon, {"east": ["eve"], "lab": ["ada"]})
    change(noon, "EMPLOYEE.MOVE", "ada", "east")
    days = [day_after(DAY, n) for n in range(6)]

    def pass_day(day, *depts):
        close_day(noon, day)
        wait_until(lambda: set(depts) <= {dept for _, dept in maps(stores, day_after(day, 2))}, 10, "the maps after it")
    for day in days[:4]:
        pass_day(day, "east")
    noon.set_clock(at("+12:00", days[3]))
    assert "lab" not in {dept for _, dept in maps(stores, days[4])}
    change(noon, "EMPLOYEE.MOVE", "ada", "lab")
    assert maps(stores, days[4])["day", "lab"] == {"#": "1", "ada": ""}
    pass_day(days[4], "east", "lab")
    wait_books(stores, days[4])
    assert failures(noon) == []
    closed = Counter(text(row["dept"]) for row in stores.sql("SELECT dept FROM day_close"))
    assert closed == {"east": 5, "lab": 3}
    assert statuses(stores, days[4]) == {"ada": "absent", "eve": "absent"}
    noon.kill9()
    noon.start()
    noon.set_clock(at("12:00", day_after(days[5], 4)))
    missed = {(dept, day_after(days[5], n)) for dept in ("east", "lab") for n in (2, 3)}
    wait_until(lambda: {(row["dept"], row["day"]) for row in failures(noon)} == missed, 20, "nobody was up then")


# ---- a move ----

def test_a_moved_department_takes_its_day_along(noon, stores):
    """Punches before and after the move, a day that is over and not closed, and one that is open: one row each, in the
    same department. Its old supervisors hear of it until the move and the new ones from then on, and nobody binds
    anew; the move itself reaches both, and those above both once."""
    found(noon, {"hq": [], "east/hq": ["eve"], "west/hq": [], "lab/east": ["ada", "bo"]})
    wait_quiet(noon)
    above = {dept: Notices(stores, f"attendance.*.{dept}.#") for dept in ("hq", "east", "west")}
    team = {dept: Notices(stores, f"team.*.{dept}.#") for dept in ("hq", "east", "west", "lab")}
    punch(noon, "ada", "IN", "08:55")
    noon.set_clock(at("+04:02"))
    punch(noon, "bo", "IN", at("+04:01"), day=NEXT)
    wait_quiet(noon)
    change(noon, "TEAM.MOVE", "lab", "west")
    punch(noon, "ada", "OUT", "18:01")
    punch(noon, "ada", "IN", at("+04:02"), day=NEXT)
    assert noon.map("STATUS", "ada", "DAY", NEXT)["path"] == "hq:west:lab"
    close_day(noon)
    assert places(stores) == {"ada": ("lab", "present"), "bo": ("lab", "absent"), "eve": ("east", "absent")}
    assert wait_books(stores) == {"expected": 3, "written": 3, "failed": 0, "absent": 2}
    noon.set_clock(at("+12:00"))
    for employee in ("ada", "bo"):
        punch(noon, employee, "OUT", at("+11:00"))
    close_day(noon, NEXT)
    assert places(stores, NEXT) == {"ada": ("lab", "early"), "bo": ("lab", "early"), "eve": ("east", "absent")}
    wait_quiet(noon)
    assert told(above["east"], "attendance.in") == [("lab", "ada"), ("lab", "bo")]
    assert told(above["west"], "attendance.in") == [("lab", "ada")]
    assert told(above["east"], "attendance.out") == []
    for dept in ("west", "hq"):
        assert told(above[dept], "attendance.out") == [("lab", "ada"), ("lab", "bo")]
    assert told(above["west"], "attendance.absent") == [("lab", "bo")]
    assert told(above["east"], "attendance.absent") == [("east", "eve")]
    for dept in team:
        moves = team[dept].events("team.move")
        assert [(e["team"], e["path"], e["old_path"]) for e in moves] == [
            ("lab", ["hq", "west", "lab"], ["hq", "east", "lab"])], dept
    check_history(noon, stores)


def test_a_move_is_known_everywhere_within_two_seconds(make_muster, stores):
    """A change through one daemon holds at the other, in what it answers and whom it tells, before two seconds."""
    one, two = (make_muster(held_clock=True) for _ in range(2))
    for daemon in (one, two):
        daemon.set_clock(at("12:00"))
    people = found(one, {"hq": [], "east/hq": [], "west/hq": [], **{f"d{n}/east": 2 for n in range(12)}})
    west = Notices(stores, "attendance.*.west.#")

    def departments(daemon, top):
        return daemon.map("ROLL.COUNT", top, "SUBTREE")["departments"]
    wait_until(lambda: departments(two, "east") == 13, 2, "the other knows the departments")
    for n in range(12):
        change(one, "TEAM.MOVE", f"d{n}", "west")
        wait_until(lambda n=n: departments(two, "west") == n + 2, 2, "the other knows the move")
    pipelined(two, [("CHECKIN", employee, "IN", "AT", at("08:55")) for employee in people])
    assert {event["employee"] for event in west.wait_for("attendance.in", len(people))} == set(people)
    check_history(one, stores)


# ---- a lift ----

def test_people_of_a_lifted_department(noon, stores):
    """Its people are their grandparent's from then on; who has punched keeps the day where he punched, and is heard of
    at both; who has not is expected at his new place. What was below it stands in its place."""
    found(noon, {"hq": ["boss"], "east/hq": ["eve", "ed", "ella"], "lab/east": ["ada"]})
    change(noon, "TEAM.JOIN", "east", "ada")
    punch(noon, "eve", "IN", "08:55")
    punch(noon, "ada", "IN", "08:56")
    wait_quiet(noon)
    hq, lifted = Notices(stores, "attendance.*.hq.#"), Notices(stores, "team.lift.hq.#")
    change(noon, "TEAM.REMOVE", "east", "LIFT")
    assert [noon.map("EMPLOYEE.GET", e)["dept"] for e in ("eve", "ed", "ella", "ada")] == ["hq", "hq", "hq", "lab"]
    assert noon.map("TEAM.GET", "lab")["path"] == "hq:lab"
    assert punch(noon, "eve", "OUT", "11:59")["dept"] == "east"
    assert punch(noon, "ed", "IN", "08:59")["dept"] == "hq"
    assert noon.map("STATUS", "eve")["punches"] == 2
    assert sorted(row["id"] for row in noon.roll("hq", "SUBTREE")) == ["ada", "boss", "ed", "ella"]
    close_day(noon)
    assert places(stores) == {"boss": ("hq", "absent"), "eve": ("east", "early"), "ed": ("hq", "missing_out"),
                              "ella": ("hq", "absent"), "ada": ("lab", "missing_out")}
    assert wait_books(stores) == {"expected": 5, "written": 5, "failed": 0, "absent": 2}
    wait_quiet(noon)
    assert told(hq, "attendance.out") == [("east", "eve")]
    assert [(e["dept"], e["expected"]) for e in hq.events("attendance.closed") if e["dept"] == "east"] == [("east", 1)]
    assert [(e["team"], e["path"]) for e in lifted.events()] == [("east", ["hq", "east"])]
    assert history_of(stores)["east"][4] == "removed"
    check_history(noon, stores)


# ---- a removal ----

def test_people_of_removed_departments(noon, stores):
    """Removed with all below it while one day is open and the one before not closed yet: everybody has one row a day,
    where he punched or, without a punch, where he was expected; nobody is absent by it, nothing is judged twice, and
    those who were above hear of the days that were still to be told."""
    homes = {"east": 4, "lab/east": 4, "deep/lab": 4}
    people = found(noon, {"hq": ["boss"], "east/hq": 4, "lab/east": 4, "deep/lab": 4})
    assert len(people) == 1 + sum(homes.values())
    hq, removed = Notices(stores, "attendance.*.hq.#"), Notices(stores, "team.remove.hq.#")
    depts = ("east", "lab", "deep")
    for dept in depts:
        punch(noon, f"e.{dept}.0", "IN", "08:55")
        punch(noon, f"e.{dept}.1", "IN", "08:55")
        punch(noon, f"e.{dept}.1", "OUT", "11:00")
    noon.set_clock(at("+04:02"))
    for dept in depts:
        punch(noon, f"e.{dept}.0", "IN", at("+04:01"))
        punch(noon, f"e.{dept}.2", "IN", at("+04:01"))
    wait_quiet(noon)
    change(noon, "TEAM.REMOVE", "east", "CASCADE")
    assert [noon.map("EMPLOYEE.GET", e)["dept"] for e in people] == ["hq"] + ["0"] * 12
    assert noon.ask("TEAM.GET", "lab").startswith("UNKNOWN ") and noon.ask("ROLL", "lab").startswith("UNKNOWN ")
    assert noon.ask("EMPLOYEE.SET", "new", "DEPT", "lab").startswith("UNKNOWN ")
    assert noon.map("STATUS", "e.lab.0")["dept"] == "lab" and noon.map("STATUS", "e.lab.0")["path"] == "hq:east:lab"
    assert punch(noon, "e.lab.0", "OUT", at("+04:02"))["dept"] == "lab"
    assert punch(noon, "e.lab.3", "IN", at("+04:02"))["dept"] == "0"
    close_day(noon)
    wanted = {"boss": ("hq", "absent")}
    for dept in depts:
        wanted.update({f"e.{dept}.0": (dept, "missing_out"), f"e.{dept}.1": (dept, "early"),
                       f"e.{dept}.2": (dept, "absent"), f"e.{dept}.3": (dept, "absent")})
    assert places(stores) == wanted
    assert wait_books(stores) == {"expected": 13, "written": 13, "failed": 0, "absent": 7}
    close_day(noon, NEXT)
    wanted = {"boss": ("hq", "absent"), "e.lab.0": ("lab", "early"), "e.lab.3": ("0", "missing_out")}
    for dept in depts:
        wanted.setdefault(f"e.{dept}.0", (dept, "missing_out"))
        wanted.setdefault(f"e.{dept}.2", (dept, "missing_out"))
        wanted.setdefault(f"e.{dept}.1", ("0", "absent"))
        wanted.setdefault(f"e.{dept}.3", ("0", "absent"))
    assert places(stores, NEXT) == wanted
    assert wait_books(stores, NEXT) == {"expected": 13, "written": 13, "failed": 0, "absent": 6}
    wait_quiet(noon)
    absent = Counter((e["day"], e["dept"]) for e in hq.events("attendance.absent"))
    assert absent == {(DAY, "hq"): 1, (NEXT, "hq"): 1, (DAY, "east"): 2, (DAY, "lab"): 2, (DAY, "deep"): 2}
    assert told(hq, "attendance.out") == [("deep", "e.deep.1"), ("east", "e.east.1"), ("lab", "e.lab.0"),
                                          ("lab", "e.lab.1")]
    closed = Counter((e["day"], e["dept"]) for e in hq.events("attendance.closed"))
    assert closed == {(day, dept): 1 for day in (DAY, NEXT) for dept in ("hq", *depts)}
    assert [e["team"] for e in removed.events()] == ["east"]
    assert not maps(stores, DAY) and not maps(stores, NEXT) and failures(noon) == []
    rows = history_of(stores)
    assert {dept: rows[dept][4] for dept in depts} == {dept: "removed" for dept in depts}
    assert noon.map("DAY.STATE", NEXT)["departments"] == 5
    check_history(noon, stores)
    # Nobody is in them any more, so that nothing of them is left to close.
    close_day(noon, day_after(NEXT))
    assert set(places(stores, day_after(NEXT)).values()) == {("hq", "absent"), ("0", "absent")}


def test_the_day_of_a_removed_department_can_be_closed_alone(make_muster, stores):
    """DAY.CLOSE with DEPT takes a department that is gone, as long as there is news of it."""
    muster = make_muster(held_clock=True, config={"day": {"close_auto": "no"}})
    muster.set_clock(at("12:00"))
    found(muster, {"east": ["eve"], "lab": ["ada"]})
    punch(muster, "ada", "IN", "08:55")
    change(muster, "TEAM.REMOVE", "lab", "CASCADE")
    muster.set_clock(at("+12:00"))
    assert muster.ask("DAY.CLOSE", DAY, "DEPT", "nowhere").startswith("UNKNOWN ")
    as_map(muster.ask("DAY.CLOSE", DAY, "DEPT", "lab"))
    assert places(stores) == {"ada": ("lab", "missing_out")}


def test_a_removal_that_is_killed_over_and_over(make_muster, stores):
    """Departments with hundreds of people are removed in small steps while these punch, and the daemon is killed in
    the midst of it: everybody is in department 0 then, and has one row with both his punches."""
    muster = make_muster(held_clock=True, config={"team": {"chunk": 10}, "redis": {"lease": "1s"}})
    muster.set_clock(at("20:00"))
    people = found(muster, {"hq": [], "east/hq": 150, "lab/east": 150, "deep/lab": 150})
    absent = Notices(stores, "attendance.absent.#")
    pipelined(muster, [("CHECKIN", employee, "IN", "AT", at("08:55")) for employee in people[::2]])
    outs = [("CHECKIN", employee, "OUT", "AT", at("18:05")) for employee in people]
    random.Random(7).shuffle(outs)
    with muster.raw(30) as raw:
        raw.send(b"TEAM.REMOVE east CASCADE\r\n")
        for left in (400, 250, 100):
            def moved(left=left):
                return sum(stores.redis.hlen(stores.key(k)) for k in stores.keys("*:emps:*")
                           if not k.endswith(":0")) < left
            wait_until(moved, 30, f"fewer than {left} are left")
            muster.kill9()
            muster.start()
            muster.set_clock(at("20:00"))
            replies = pipelined(muster, [outs.pop() for _ in range(150)], 10)
            assert {as_map(reply)["duplicate"] for reply in replies} == {0}
    wait_until(lambda: not stores.keys("{org}:jobs"), 30, "the job is done")
    assert {name.rpartition(":")[2] for name in stores.keys("*:emps:*")} == {"0"}
    close_day(muster)
    rows = day_rows(stores)
    assert set(rows) == set(people)
    assert {row["status"] for row in rows.values()} == {"present", "missing_in"}
    assert {e for e, row in rows.items() if row["status"] == "present"} == set(people[::2])
    assert {e for e, row in rows.items() if row["punches"] != (2 if e in people[::2] else 1)} == set()
    assert wait_books(stores) == {"expected": 450, "written": 450, "failed": 0, "absent": 0}
    # Its clock begins anew with each start, so that there are days of the present, too, and departments that were
    # deleted on a day on which they had none: they are waited for in vain.
    wait_quiet(muster, 90)
    assert [event for event in absent.events() if event["day"] == DAY] == []
    check_history(muster, stores)


# ---- retired ----

def test_a_retired_department_goes_on_as_before(noon, stores):
    """Whoever is in it punches, is closed and may leave; nobody comes in, until it is restored."""
    found(noon, {"hq": [], "lab/hq": ["ada", "bo"], "east/hq": ["eve"]})
    hq = Notices(stores, "attendance.*.hq.#")
    punch(noon, "ada", "IN", "08:55")
    change(noon, "TEAM.REMOVE", "lab", "RETIRE")
    for words in (("EMPLOYEE.SET", "new", "DEPT", "lab"), ("EMPLOYEE.MOVE", "eve", "lab")):
        assert noon.ask(*words).startswith("CONFLICT ") and "retired" in noon.ask(*words)
    assert noon.ask("EMPLOYEE.GET", "new").startswith("UNKNOWN ") and noon.map("EMPLOYEE.GET", "eve")["dept"] == "east"
    change(noon, "EMPLOYEE.SET", "ada", "DEPT", "lab", "NAME", "Ada")
    change(noon, "EMPLOYEE.SET", "bo", "NAME", "Bo")
    assert punch(noon, "ada", "OUT", "11:00")["dept"] == "lab" == punch(noon, "bo", "IN", "08:55")["dept"]
    close_day(noon)
    assert places(stores) == {"ada": ("lab", "early"), "bo": ("lab", "missing_out"), "eve": ("east", "absent")}
    wait_until(lambda: ("day", "lab") in maps(stores, day_after(NEXT)), 10, "its map after the next")
    wait_quiet(noon)
    assert ("lab", "ada") in told(hq, "attendance.out") and history_of(stores)["lab"][4] == "retired"
    change(noon, "TEAM.RESTORE", "lab")
    change(noon, "EMPLOYEE.MOVE", "eve", "lab")
    check_history(noon, stores)


# ---- memberships ----

def test_a_joined_team_that_becomes_his_home(noon, stores):
    """The membership goes on as home: it is no longer a joined one, in Redis as in MySQL; other memberships stay, and
    all go with the employee."""
    found(noon, {"hq": [], "lab/hq": ["ada"], "east/hq": [], "west/hq": []})
    notices = Notices(stores, "team.join.#", "team.leave.#")
    for team in ("east", "west", "hq"):
        change(noon, "TEAM.JOIN", team, "ada")
    check_history(noon, stores)
    change(noon, "EMPLOYEE.MOVE", "ada", "east")
    assert stores.redis.smembers(stores.key("{org}:user_teams:ada")) == {"west", "hq"}
    assert not stores.redis.exists(stores.key("{org}:members:east"))
    check_history(noon, stores)
    change(noon, "EMPLOYEE.REMOVE", "ada")
    check_history(noon, stores)
    found(noon, {"lab/hq": ["ada"]})
    change(noon, "TEAM.JOIN", "west", "ada")
    check_history(noon, stores)
    assert Counter((e["type"], e["team"]) for e in notices.events()) == {
        ("team.join", "east"): 1, ("team.join", "west"): 2, ("team.join", "hq"): 1, ("team.leave", "east"): 1,
        ("team.leave", "west"): 1, ("team.leave", "hq"): 1}


# ---- history ----

def test_the_tables_are_the_tree(make_muster, stores):
    """Random changes of a small tree, whose ids look alike, with a MySQL that is killed under them and a daemon that
    is, too: rows, paths and memberships are those of Redis in the end, also after records were read again."""
    rng = random.Random(20310303)
    muster = make_muster(config={"redis": {"lease": "1s"}})
    ids = ["a", "a_", "aa", "a-", "A", "ab", "a_b", "axb", "a-b", "b", "_", "__", "a1", "a10", "a_1"]
    people = found(muster, {"hq": 5})

    def words():
        node, other, person = rng.choice(ids), rng.choice(["-", *ids]), rng.choice(people)
        return rng.choice([
            *[("TEAM.ADD", node, other)] * 5, *[("TEAM.MOVE", node, other)] * 3,
            ("TEAM.REMOVE", node, rng.choice(["CASCADE", "LIFT", "RETIRE"])),
            ("TEAM.RESTORE", node), ("TEAM.RENAME", node, f"{node} {rng.randrange(99)}"),
            ("TEAM.MANAGER", node, rng.choice(["-", *people])), ("TEAM.JOIN", node, person),
            ("TEAM.JOIN", node, person), ("TEAM.LEAVE", node, person), ("EMPLOYEE.MOVE", person, node)])
    codes = Counter()
    for turn in range(6):
        codes.update(str(muster.ask(*words())).split(" ", 1)[0] for _ in range(250))
        if turn % 2:
            connection = stores.execute_as_root("SELECT id FROM information_schema.processlist "
                                                f"WHERE db = '{stores.database}'")
            for (number,) in connection:
                stores.execute_as_root(f"KILL {number}")
        else:
            muster.kill9()
            # As if the daemon had died between the commit in MySQL and the move of its cursor.
            key = stores.key("{org}:cursor")
            if stores.redis.hexists(key, "ledger"):
                entries = stores.redis.xrange(stores.key("{org}:journal"))
                stores.redis.hset(key, "ledger", entries[len(entries) // 2][0] if turn else "0-0")
            muster.start()
        check_history(muster, stores)
    assert codes["OK"] > 300 and set(codes) <= {"OK", "UNKNOWN", "CONFLICT", "EXISTS", "BUSY"}, codes


def test_a_bad_record_stops_nothing(noon, stores):
    """A record that no column takes is left out and named in the log; the others of its window are written."""
    found(noon, {"hq": [], "lab/hq": ["ada"]})
    stores.redis.xadd(stores.key("{org}:journal"), {"e": "T|add|evil|-|-|1|" + "x" * 40 + "|evil|-|Evil"})
    stores.redis.xadd(stores.key("{org}:journal"), {"e": "J|join|hq|" + "y" * 70 + "|1"})
    stores.redis.xadd(stores.key("{org}:journal"), {"e": "T|nonsense"})
    change(noon, "TEAM.JOIN", "hq", "ada")
    wait_quiet(noon)
    assert {"hq", "lab"} <= set(history_of(stores)) and "evil" not in history_of(stores)
    assert [text(row["team"]) for row in stores.sql("SELECT team FROM team_member")] == ["hq"]
    assert noon.log().count("event=bad-record") == 2


def test_deep_trees(make_muster, stores):
    """Paths are written and rewritten however long they are, up to the 65,000 bytes of 1,000 levels, and a notice from
    the bottom reaches the top."""
    muster = make_muster(held_clock=True, config={"team": {"max_depth": 1000}})
    muster.set_clock(at("12:00"))
    chain = [f"{n:04}{'x' * 60}" for n in range(160)]
    pairs = [("top", "-"), *zip(chain, ["top", *chain])]
    assert set(pipelined(muster, [("TEAM.ADD", node, parent) for node, parent in pairs], 20)) == {"OK"}
    change(muster, "EMPLOYEE.SET", "ada", "DEPT", chain[-1])
    top = Notices(stores, "attendance.*.top.#")
    punch(muster, "ada", "IN", "08:55")
    assert len(top.wait_for("attendance.in", 1)) == 1
    check_history(muster, stores)
    assert len(history_of(stores)[chain[-1]][1]) > 10000
    change(muster, "TEAM.ADD", "other", "-")
    change(muster, "TEAM.MOVE", chain[0], "other")
    check_history(muster, stores)
    change(muster, "TEAM.REMOVE", chain[0], "LIFT")
    check_history(muster, stores)
    # Just as deep as it may be, as if it were there.
    deepest = ":".join(f"{n:064}" for n in range(1000))
    everything = Notices(stores, f"team.add.{0:064}.#")
    stores.redis.xadd(stores.key("{org}:journal"), {"e": f"T|add|{999:064}|{998:064}|-|1|active|{deepest}|-|Deepest"})
    wait_quiet(muster)
    assert history_of(stores)[f"{999:064}"][1] == deepest
    assert [event["path"] for event in everything.wait_for("team.add", 1)] == [deepest.split(":")]


def test_reports_by_subtree(noon, stores):
    """daily_subtree sums up a department with all below it; what was removed counts where it stood."""
    found(noon, {"hq": ["boss"], "east/hq": ["eve"], "lab/east": ["ada", "bo"], "lab_2/hq": ["cy"]})
    for employee in ("ada", "cy", "boss"):
        punch(noon, employee, "IN", "08:55")
        punch(noon, employee, "OUT", "11:00")
    close_day(noon)
    wait_quiet(noon)

    def sums():
        rows = stores.sql("SELECT * FROM daily_subtree WHERE work_date = %s", (DAY,))
        return {text(row["dept"]): tuple(int(row[f]) for f in ("departments", "employees", "early", "absent"))
                for row in rows}
    wanted = {"hq": (4, 5, 3, 2), "east": (2, 3, 1, 2), "lab": (1, 2, 1, 1), "lab_2": (1, 1, 1, 0)}
    assert sums() == wanted
    change(noon, "TEAM.REMOVE", "lab", "CASCADE")
    change(noon, "TEAM.MOVE", "east", "lab_2")
    wait_quiet(noon)
    assert sums() == {**wanted, "lab_2": (3, 4, 2, 2)}
