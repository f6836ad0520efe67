# SPDX-License-Identifier: MIT
"""What breaks, and what then: the daemon is killed, its stores are killed, stopped, filled and spoilt, and whatever was
accepted is there afterwards, once."""
import contextlib
import random
import signal
import threading
import time
from collections import Counter
from datetime import datetime, timedelta, timezone

import pymysql
import pytest

from harness.attendance import (DAY, Notices, as_map, at, day_rows, dump, failures, found, is_quiet, locked, ms,
                                pipelined, punch, statuses, wait_books, wait_closed, wait_quiet)
from harness.load import Load
from harness.proxy import Proxy
from harness.raw import ErrorReply, encode
from harness.tasks import bytes_client, dumps
from harness.wait import wait_until


def company_of(departments, people):
    return {f"d{n}": people for n in range(departments)}


def events_of(people, per_person=2, base="08:00"):
    """Distinct events, an IN and later OUTs, a minute apart for each person so that each counts."""
    start = ms(base if "T" in base else at(base))
    return [(employee, "IN" if k == 0 else "OUT", "AT", start + k * 60000 + n % 1000)
            for k in range(per_person) for n, employee in enumerate(people)]


def check_all_there(stores, muster, events, notices=None):
    """Each accepted event is once in MySQL, and was told at least once, under one id."""
    wait_quiet(muster, 60)
    rows = stores.sql("SELECT employee, direction, at_ms FROM attendance_event")
    kept = Counter((row["employee"].decode(), row["direction"], row["at_ms"]) for row in rows)
    sent = Counter((employee, direction[0], time_ms) for employee, direction, _, time_ms in events)
    assert kept == sent, f"lost {len(sent - kept)}, too many {len(kept - sent)}"
    if notices is None:
        return
    told = {}
    for event in notices.wait_quiet(muster, 60):
        kind = event["type"].removeprefix("attendance.")[0].upper()
        told.setdefault((event["employee"], kind, event["at"]), set()).add(event["id"])
    told = {what: ids for what, ids in told.items() if what[1] in "IO"}
    assert set(told) == set(sent), f"not told {len(set(sent) - set(told))}, {len(set(told) - set(sent))} of nothing"
    assert all(len(ids) == 1 for ids in told.values())


@pytest.fixture(name="held_day")
def fixture_held_day(held):
    held.set_clock(at("12:00"))
    return held


# ---- the daemon ----

def test_kill9_under_load_loses_no_accepted_event(make_muster, stores):
    """Killed at random moments of a rush and started again each time: every answered check-in is in Redis, in MySQL
    once, and told under one id."""
    rng = random.Random(9)
    now = datetime.now(timezone.utc)
    # By the wall clock, which survives a restart, in a day that neither begins nor ends soon.
    hour = f"{(now.hour + 12) % 24:02}"
    muster = make_muster(config={"day": {"day_start": f"{hour}:00", "shift_start": f"{hour}:00",
                                         "shift_end": f"{hour}:59"}})
    people = found(muster, company_of(20, 100))
    notices = Notices(stores, "attendance.in.#", "attendance.out.#")
    events = events_of(people, 6, (now - timedelta(hours=2)).isoformat(timespec="milliseconds"))
    with Load(muster.port, events, 2, 10) as load:
        for _ in range(4):
            goal = len(load.accepted) + rng.randrange(300, 1500)
            wait_until(lambda g=goal: len(load.accepted) >= g, 30, "some more are accepted")
            muster.kill9()
            accepted = set(load.accepted)
            muster.start()
            # What was answered by then is there, whoever sends it again or not.
            sample = rng.sample(sorted(accepted), 40)
            replies = pipelined(muster, [("CHECKIN", *events[n]) for n in sample])
            assert [as_map(reply)["duplicate"] for reply in replies] == [1] * len(sample)
        load.finish()
    assert load.broken >= 4
    check_all_there(stores, muster, events, notices)


def close_progress(stores):
    """How far the close of DAY has got, in steps that only grow: departments begun, rows, departments done."""
    states = Counter(state for key in stores.keys("*:days") for field, state in
                     stores.redis.hgetall(stores.key(key)).items() if field.endswith(DAY))
    rows = stores.sql("SELECT COUNT(*) AS n FROM attendance_day WHERE work_date = %s", (DAY,))[0]["n"]
    return states["closing"] + states["closed"], rows, states["closed"]


def test_kill9_in_every_phase_of_the_close(make_muster, stores):
    """Killed again and again during a close: as departments are begun, between the commit of their rows and the end of
    their map, between that and the books. In the end each row is there once, what was expected was written, and each
    absentee was told under one id."""
    muster = make_muster(held_clock=True, config={"server": {"log_level": "info"}})
    muster.set_clock(at("12:00"))
    people = found(muster, company_of(50, 100))
    notices = Notices(stores, "attendance.absent.#", "attendance.closed.#")
    present = people[::3]
    pipelined(muster, [("CHECKIN", employee, "IN", "AT", at("08:55")) for employee in present], 500)
    kills = [(0, 1), (1, 1), (0, 8), (2, 3), (1, 1200), (0, 30), (1, 2500), (2, 20), (2, 35), (1, 4800), (2, 45)]
    for index, goal in kills:
        muster.set_clock(at("+04:05"))
        wait_until(lambda i=index, g=goal: close_progress(stores)[i] >= g, 30, f"step {index} has come to {goal}")
        muster.kill9()
        muster.start()
    muster.set_clock(at("+04:05"))
    wait_closed(muster)
    assert wait_books(stores) == {"expected": 5000, "written": 5000, "failed": 0, "absent": len(people) - len(present)}
    got = statuses(stores)
    came = set(present)
    assert got == {employee: "missing_out" if employee in came else "absent" for employee in people}
    events = notices.wait_quiet(muster, 60)
    events = [event for event in events if event["day"] == DAY]
    absent = {event["id"]: event["employee"] for event in events if event["type"] == "attendance.absent"}
    assert sorted(absent.values()) == sorted(set(people) - came)
    closed = {event["id"]: event for event in events if event["type"] == "attendance.closed"}
    assert sum(event["expected"] for event in closed.values()) == 5000 and len(closed) >= 50
    assert {row["revision"] for row in day_rows(stores).values()} == {1}


def test_sigterm_under_load_drains(make_muster, stores):
    """SIGTERM in the middle of pipelines: each command is answered, or its connection closed between two replies, and
    the exit code is 0. What was answered well is there afterwards."""
    muster = make_muster(held_clock=True)
    muster.set_clock(at("12:00"))
    people = found(muster, company_of(4, 500))
    events = events_of(people, 1)
    raws = [muster.raw(30) for _ in range(5)]
    for n, raw in enumerate(raws):
        raw.send(b"".join(encode("CHECKIN", *event) for event in events[n::5]))
    first = [raw.read() for raw in raws]
    assert muster.terminate() == 0
    accepted, refused = [], Counter()
    for n, raw in enumerate(raws):
        replies = [first[n]]
        try:
            while True:
                replies.append(raw.read())
        except EOFError as error:
            assert str(error) == "closed after b''"
        except ConnectionResetError:
            pass
        assert len(replies) <= len(events[n::5])
        accepted += [event for event, reply in zip(events[n::5], replies) if not isinstance(reply, ErrorReply)]
        refused += Counter(str(reply).split(" ", 1)[0] for reply in replies if isinstance(reply, ErrorReply))
        raw.close()
    assert set(refused) <= {"NOTREADY"} and accepted
    muster.start()
    muster.set_clock(at("12:00"))
    replies = pipelined(muster, [("CHECKIN", *event) for event in accepted])
    assert {as_map(reply)["duplicate"] for reply in replies} == {1}
    wait_quiet(muster)


def test_another_number_of_partitions_is_refused(make_muster):
    """A Redis that was begun with 48 partitions is not served with 16: the daemon says so and ends, and takes nothing
    in between."""
    first = make_muster()
    assert first.terminate() == 0
    second = make_muster(config={"redis": {"partitions": 16}}, start=False)
    second.start(wait=False)
    code = wait_until(lambda: second.process.poll() is not None and [second.process.returncode], 20, "it ends")
    assert code != [0] and "partitions" in second.log()
    second.process = None
    first.start()
    assert first.info()["partitions"] == "48"


# ---- RabbitMQ ----

@pytest.mark.timeout(180)
def test_rabbitmq_stopped_during_load(make_muster, stores, intact):
    """RabbitMQ ends in the rush: check-ins go on without an error, and once it is back every event is told."""
    muster = make_muster(held_clock=True)
    muster.set_clock(at("12:00"))
    people = found(muster, company_of(20, 50))
    notices = Notices(stores, "attendance.in.#", "attendance.out.#")
    events = events_of(people, 4)
    with Load(muster.port, events, 2, 10) as load:
        wait_until(lambda: len(load.accepted) > 500, 30, "it has begun")
        # Not kill -9: RabbitMQ 3.10 loses a quorum queue that was made moments before.
        intact["rabbitmq"].stop()
        load.finish()
    assert not load.errors and not load.broken
    assert not is_quiet(stores)
    intact.start(["rabbitmq"])
    # A quorum queue takes its time to find a leader; what is sent to it meanwhile is never confirmed.
    check_all_there(stores, muster, events, notices)


def test_rabbitmq_connections_cut_and_stalled(make_muster, stores):
    """Lines to RabbitMQ that are reset, refused, or silent while open: no notice is lost."""
    with Proxy(stores.stack["rabbitmq"].port()) as proxy:
        muster = make_muster(held_clock=True, config={"amqp": {"port": proxy.port, "heartbeat": "2s"}})
        muster.set_clock(at("12:00"))
        people = found(muster, company_of(10, 50))
        notices = Notices(stores, "attendance.in.#", "attendance.out.#")
        events = events_of(people, 6)
        with Load(muster.port, events, 2, 10) as load:
            for step, fault in enumerate((lambda: proxy.cut(reset=True), proxy.pause, proxy.resume, proxy.refuse,
                                          lambda: proxy.refuse(False), lambda: proxy.cut_after(700))):
                wait_until(lambda s=step: len(load.accepted) > 300 * (s + 1), 30, "more are accepted")
                fault()
            load.finish()
        assert not load.errors and not load.broken
        check_all_there(stores, muster, events, notices)
        assert muster.terminate() == 0


# ---- MariaDB ----

def test_mariadb_stopped_and_killed_during_load(make_muster, stores, intact):
    """MariaDB hangs, then dies, in the rush: check-ins go on without an error, and each is there once afterwards."""
    muster = make_muster(held_clock=True, config={"mysql": {"timeout": "1s"}})
    muster.set_clock(at("12:00"))
    people = found(muster, company_of(20, 50))
    events = events_of(people, 6)
    with Load(muster.port, events, 2, 10) as load:
        wait_until(lambda: len(load.accepted) > 500, 30, "it has begun")
        intact.pause("mariadb")
        wait_until(lambda: len(load.accepted) > 2500, 30, "they go on")
        intact.kill("mariadb")
        load.finish()
    assert not load.errors and not load.broken
    intact.start(["mariadb"])
    check_all_there(stores, muster, events)


def test_mariadb_stopped_and_killed_during_the_close(make_muster, stores, intact):
    """MariaDB hangs and then dies in the middle of a close: the close goes on where it was, check-ins meanwhile are
    taken, and the books add up."""
    muster = make_muster(held_clock=True, config={"mysql": {"timeout": "1s"}})
    muster.set_clock(at("12:00"))
    people = found(muster, company_of(30, 100))
    pipelined(muster, [("CHECKIN", employee, "IN", "AT", at("08:55")) for employee in people[::2]], 500)
    muster.set_clock(at("+04:05"))
    wait_until(lambda: close_progress(stores)[0] >= 3, 30, "the close has begun")
    intact.pause("mariadb")
    assert muster.map("CHECKIN", people[0], "IN", "AT", at("+04:05"))["duplicate"] == 0
    assert muster.map("DAY.STATE", DAY)["history"] in ("ok", "unavailable")
    intact.kill("mariadb")
    assert muster.map("CHECKIN", people[1], "IN", "AT", at("+04:05"))["duplicate"] == 0
    intact.start(["mariadb"])
    wait_closed(muster)
    assert wait_books(stores) == {"expected": 3000, "written": 3000, "failed": 0, "absent": 1500}
    assert Counter(statuses(stores).values()) == {"absent": 1500, "missing_out": 1500}


def test_mariadb_connections_cut_while_a_large_department_closes(make_muster, stores):
    """A department of many pages, and every connection to MariaDB cut again and again in the middle of it: no row is
    skipped and none is written twice, whatever page the cut came behind."""
    muster = make_muster(held_clock=True)
    muster.set_clock(at("12:00"))
    people = found(muster, {"factory": 6500, "office": 300})
    pipelined(muster, [("CHECKIN", employee, "IN", "AT", at("08:55")) for employee in people[::2]], 500)
    muster.set_clock(at("+04:05"))
    for _ in range(25):
        for row in stores.sql("SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()"):
            with contextlib.suppress(pymysql.MySQLError):
                stores.sql(f"KILL {row['id']}")
    wait_closed(muster)
    assert wait_books(stores) == {"expected": 6800, "written": 6800, "failed": 0, "absent": 3400}
    assert Counter(statuses(stores).values()) == {"absent": 3400, "missing_out": 3400}


# ---- Redis ----

def test_redis_restarted(make_muster, stores, intact):
    """Redis ends: requests get an error at once, whoever asks, and a daemon that keeps nothing for itself serves
    again by itself when it is back, with all that was there."""
    muster = make_muster(held_clock=True)
    muster.set_clock(at("12:00"))
    people = found(muster, company_of(5, 20))
    events = events_of(people, 2)
    assert not [reply for reply in pipelined(muster, [("CHECKIN", *event) for event in events[:100]])
                if not isinstance(reply, list)]
    intact["redis"].stop()  # a clean end: what everysec promises about a crash is not what is tested here
    begun = time.monotonic()
    for words in (("CHECKIN", *events[150]), ("STATUS", people[0]), ("ROLL", "d1"), ("TEAM.GET", "d1"),
                  ("EMPLOYEE.SET", "new", "DEPT", "d1"), ("DAY.STATE", DAY)):
        reply = muster.ask(*words)
        assert isinstance(reply, str) and reply.startswith(("UNAVAILABLE ", "NOTREADY ")), (words, reply)
    assert muster.ask("PING") == "PONG" and time.monotonic() - begun < 3
    intact.start(["redis"])
    wait_until(lambda: isinstance(muster.ask("STATUS", people[0]), list), 20, "service resumes")
    replies = pipelined(muster, [("CHECKIN", *event) for event in events])
    assert [as_map(reply)["duplicate"] for reply in replies] == [1] * 100 + [0] * 100
    check_all_there(stores, muster, events)


def test_redis_restarted_under_load(make_muster, stores, intact):
    """Redis ends and starts in the rush: only errors that say send it again, and nothing that was accepted is
    missing."""
    muster = make_muster(held_clock=True)
    muster.set_clock(at("12:00"))
    people = found(muster, company_of(10, 50))
    events = events_of(people, 6)
    with Load(muster.port, events, 2, 10) as load:
        for goal in (500, 1500):
            wait_until(lambda g=goal: len(load.accepted) > g, 30, "more are accepted")
            intact.restart("redis")
        load.finish()
    assert set(load.errors) <= {"UNAVAILABLE", "NOTREADY"} and not load.broken
    check_all_there(stores, muster, events)


def put_back(muster, stores, before):
    """Redis is again as it was at `before`, as after a failover to a replica that was behind, and every line to it is
    cut: nothing of the daemon comes between."""
    client = bytes_client(stores)
    muster.pause()
    for name in set(stores.keys()) - set(before):
        client.delete(stores.key(name))
    for name, (value, expires) in before.items():
        client.restore(stores.key(name), max(0, expires), value, replace=True)
    for kind in ("normal", "pubsub"):
        client.client_kill_filter(_type=kind, skipme=True)
    muster.resume()
    muster.wait_ready()


def test_redis_back_as_it_was_before_a_close(held_day, stores):
    """A close that Redis no longer knows of is done again unasked, and changes no row."""
    found(held_day, {"lab": ["ada", "bo"]})
    punch(held_day, "bo", "IN", "08:50")
    wait_quiet(held_day)
    before = dumps(stores, stores.keys())
    held_day.set_clock(at("+04:05"))
    wait_closed(held_day)
    wait_books(stores)
    rows = day_rows(stores)
    put_back(held_day, stores, before)
    wait_closed(held_day, deadline=10)
    assert day_rows(stores) == rows


def test_redis_back_as_it_was_while_an_entry_is_written(held_day, stores):
    """An entry that Redis loses while MySQL has it does not move the cursor: what is written next, by a clock that is
    behind, has a smaller id and is read all the same."""
    found(held_day, {"lab": ["ada", "bo", "cy"]})
    punch(held_day, "ada", "IN", "08:50")
    wait_quiet(held_day)
    before = dumps(stores, [key for key in stores.keys() if not key.endswith(":owner")])
    for key in stores.redis.scan_iter(stores.prefix + "*:journal"):
        ahead = int(stores.redis.time()[0]) * 1000 + 3600_000
        stores.redis.execute_command("XSETID", key, f"{ahead}-0")

    def blocked():
        rows = stores.execute_as_root("SELECT state, info FROM information_schema.processlist "
                                      f"WHERE db = '{stores.database}'")
        return any("attendance_event" in (info or "") and "lock" in state.lower() for state, info in rows)
    with locked(stores, "attendance_event"):
        punch(held_day, "bo", "IN", "08:51")
        wait_until(blocked, 10, "the entry is with MySQL")
        put_back(held_day, stores, before)
    punch(held_day, "cy", "IN", "08:52")

    def written():
        return {row["employee"].decode() for row in stores.sql("SELECT employee FROM attendance_event")}
    wait_until(lambda: "cy" in written(), 8, "the next entry is written")
    wait_quiet(held_day)
    assert written() == {"ada", "bo", "cy"}


def ledger_lag_ms(muster):
    """lag_ms of the reader that writes to MySQL."""
    text = muster.ask("INFO")
    return int(text[text.index("cursor:ledger"):].split("lag_ms:", 1)[1].split()[0])


def test_the_lag_of_the_ledger_grows_while_mariadb_is_away(held_day, intact):
    """lag_ms is the alarm for it, so it counts between the tries too."""
    found(held_day, {"lab": ["ada"]})
    wait_quiet(held_day)
    intact.kill("mariadb")
    punch(held_day, "ada", "IN", "08:50")
    wait_until(lambda: ledger_lag_ms(held_day) > 1500, 8, "it grows")
    intact.start(["mariadb"])
    wait_quiet(held_day)
    wait_until(lambda: ledger_lag_ms(held_day) == 0, 8, "it is over")


def test_redis_that_hangs(make_muster, stores, intact):
    """A Redis that takes connections and says nothing: UNAVAILABLE when its time is over, at once after that, and
    back by itself."""
    muster = make_muster(held_clock=True, config={"redis": {"timeout": "500ms"}})
    muster.set_clock(at("12:00"))
    found(muster, {"lab": ["ada"]})
    intact.pause("redis")
    begun = time.monotonic()
    assert muster.ask("CHECKIN", "ada", "IN", "AT", at("08:55")).startswith("UNAVAILABLE ")
    assert 0.3 < time.monotonic() - begun < 3
    begun = time.monotonic()
    assert muster.ask("CHECKIN", "ada", "IN", "AT", at("08:55")).startswith(("UNAVAILABLE ", "NOTREADY "))
    assert time.monotonic() - begun < 0.3
    intact.resume("redis")
    wait_until(lambda: isinstance(muster.ask("STATUS", "ada"), list), 20, "service resumes")
    punch(muster, "ada", "IN", "08:55")
    assert muster.map("STATUS", "ada")["punches"] == 1


def test_scripts_flushed_under_load(make_muster, stores):
    """SCRIPT FLUSH again and again: no client sees an error, and a STATUS behind a CHECKIN sees it all the same."""
    muster = make_muster(held_clock=True)
    muster.set_clock(at("12:00"))
    people = found(muster, company_of(10, 30))
    ended = threading.Event()

    def flush():
        while not ended.is_set():
            stores.redis.script_flush()
    flusher = threading.Thread(target=flush)
    flusher.start()
    try:
        wrong = []
        for n, employee in enumerate(people):
            with muster.raw() as raw:
                time_ms = ms(at("08:00")) + n
                raw.send(encode("CHECKIN", employee, "IN", "AT", time_ms) + encode("STATUS", employee) +
                         encode("EMPLOYEE.SET", employee, "NAME", f"Nr {n}") + encode("EMPLOYEE.GET", employee))
                replies = [raw.read() for _ in range(4)]
            if isinstance(replies[0], ErrorReply) or isinstance(replies[1], ErrorReply):
                wrong.append(replies)
            elif dict(zip(replies[1][::2], replies[1][1::2]))[b"in"] != time_ms:
                wrong.append("STATUS did not see the CHECKIN")
            elif replies[2] != "OK" or replies[3][3] != f"Nr {n}".encode():
                wrong.append(("EMPLOYEE.GET did not see the SET", replies[2:]))
        assert not wrong, (len(wrong), wrong[:3])
        with Load(muster.port, events_of(people, 4, "09:00"), 2, 10) as load:
            load.finish()
        assert not load.errors
    finally:
        ended.set()
        flusher.join()
    assert int(muster.info()["redis_noscript_healed"]) > 0


def test_redis_out_of_memory(make_muster, stores):
    """At maxmemory writes are refused as BUSY and nothing of them is done, reads go on, and room heals it."""
    muster = make_muster(held_clock=True)
    muster.set_clock(at("12:00"))
    people = found(muster, {"lab": 50})
    punch(muster, people[0], "IN", "08:55")
    wait_quiet(muster)
    try:
        stores.redis.config_set("maxmemory", "1mb")
        for words in (("CHECKIN", people[1], "IN", "AT", at("08:55")), ("EMPLOYEE.SET", "new", "DEPT", "lab"),
                      ("TEAM.ADD", "annex", "-")):
            assert muster.ask(*words).startswith("BUSY "), words
        assert muster.map("STATUS", people[0])["punches"] == 1 and muster.map("STATUS", people[1])["punches"] == 0
        with Load(muster.port, events_of(people, 4, "09:00"), 2, 10) as load:
            wait_until(lambda: load.errors["BUSY"] > 20, 20, "they are refused")
            assert set(load.errors) == {"BUSY"} and not load.accepted
            stores.redis.config_set("maxmemory", "0")
            load.finish()
    finally:
        stores.redis.config_set("maxmemory", "0")
    assert muster.ask("EMPLOYEE.SET", "new", "DEPT", "lab") == "OK"
    wait_quiet(muster)
    assert stores.sql("SELECT COUNT(*) AS n FROM attendance_event") == [{"n": 201}]


def test_keys_of_another_type(held_day, stores):
    """A key of Muster that somebody has made a string spoils only what lives in it: an error that says so, nobody
    else is troubled, not even by the close; and the day can be repaired."""
    found(held_day, {"good": ["ada"], "bad": ["bo"], "worse": ["cy"]})
    bad = [stores.key(key) for key in stores.keys() if key.endswith(f":day:bad:{DAY}")][0]
    emps = [stores.key(key) for key in stores.keys() if key.endswith(":emps:worse")][0]
    stores.redis.delete(bad, emps)
    stores.redis.set(bad, "x")
    stores.redis.set(emps, "x")
    replies = pipelined(held_day, [("CHECKIN", employee, "IN", "AT", at("08:55")) for employee in ("bo", "ada", "cy")])
    assert replies[0].startswith("ERR ") and replies[2].startswith("ERR ") and as_map(replies[1])["duplicate"] == 0
    for words in (("STATUS", "cy"), ("ROLL", "bad"), ("ROLL.COUNT", "bad"), ("EMPLOYEE.SET", "cy", "NAME", "Cy"),
                  ("EMPLOYEE.GET", "cy"), ("TEAM.GET", "worse")):
        reply = held_day.ask(*words)
        assert isinstance(reply, str) and reply.startswith("ERR "), (words, reply)
    held_day.set_clock(at("+04:05"))
    wait_closed(held_day)
    assert statuses(stores) == {"ada": "missing_out", "cy": "absent"}
    assert [(row["dept"], row["reason"]) for row in failures(held_day, "DAY", DAY)] == [("bad", "bad_map")]
    assert stores.redis.get(bad + ":damaged") == "x"
    assert held_day.map("STATUS", "ada")["state"] == "not_yet"


def test_a_removal_that_a_spoilt_key_stops_has_done_nothing(held_day, stores):
    """With a day map of another type EMPLOYEE.REMOVE is refused before its first write: the employee and his teams
    are as they were, and once the key is gone he can be removed."""
    found(held_day, {"lab": ["ada"], "crew": []})
    assert held_day.ask("TEAM.JOIN", "crew", "ada") == "OK"
    bad = [stores.key(key) for key in stores.keys() if key.endswith(f":day:lab:{DAY}")][0]
    stores.redis.delete(bad)
    stores.redis.set(bad, "x")
    before = dump(stores)
    for _ in range(2):
        assert held_day.ask("EMPLOYEE.REMOVE", "ada").startswith("ERR ")
    assert dump(stores) == before
    stores.redis.delete(bad)
    assert held_day.ask("EMPLOYEE.REMOVE", "ada") == "OK"
    assert held_day.ask("EMPLOYEE.GET", "ada").startswith("UNKNOWN ")
    assert not [key for key in stores.keys("*members:crew")]


def test_signals_that_end_nothing(held_day):
    """SIGPIPE does no harm, and SIGHUP reloads and serves on."""
    found(held_day, {"lab": ["ada"]})
    held_day.process.send_signal(signal.SIGPIPE)
    held_day.reload()
    punch(held_day, "ada", "IN", "08:55")
    assert held_day.map("STATUS", "ada")["punches"] == 1
