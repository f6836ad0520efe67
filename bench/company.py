# SPDX-License-Identifier: MIT
"""What a company as a whole takes: 20,000 connections, the close of a day, memory, and how cost follows its size."""
import contextlib
import json
import resource
import subprocess
import time
from statistics import median

import pymysql

from report import milliseconds, spread
from scene import BenchError, at, day_text, department, wait_until
from script_calls import tag_of

OWN_FILES = 64  # open files that musterd keeps for itself
DEPTH = 8  # commands on their way on each of 50 connections


# ---- 20,000 connections ----

def punched(scene, day):
    """Fields of the day's maps that hold a punch, read from Redis."""
    found = 0
    for i in range(scene.departments):
        dept = department(i)
        key = f"muster:{{{tag_of(dept)}}}:day:{dept}:{day_text(day)}"
        found += sum(1 for field, value in scene.redis.hgetall(key).items() if field != "#" and value)
    return found


def connections(scene, report, quick):
    wanted = 2_000 if quick else 20_000
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - OWN_FILES
    if allowed < 65536:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (65536, 65536))
            allowed = 65536 - OWN_FILES
    count = min(wanted, allowed - 8)
    scene.fresh(max(count, 20_000))
    ids = scene.write_ids(range(count), scene.dir / "some")
    scene.begin_day(1)
    scene.drain()
    before = scene.resident()
    client = subprocess.Popen(
        [str(scene.build / "bench" / "load"), "--port", str(scene.port()), "--connections", str(count), "--hold", "3",
         "--sources", "8", "--patience", "60", "--ids", str(ids), "CHECKIN", "{}", "IN"],
        stdout=subprocess.PIPE, text=True)
    wait_until(lambda: client.poll() is not None or
               int(scene.info()["Clients"]["connected_clients"]) > count, 60, f"{count} connections are open")
    open_at_once = int(scene.info()["Clients"]["connected_clients"]) - 1
    idle = scene.resident()
    result = json.loads(client.communicate()[0])
    wait_until(lambda: int(scene.info()["Clients"]["connected_clients"]) <= 1, 60, "the connections are closed")
    after = scene.resident()
    rejected = int(scene.info()["Stats"]["rejected_connections"])
    in_redis = punched(scene, 1)
    scene.drain()
    in_mysql = scene.sql("SELECT COUNT(*) FROM attendance_event WHERE work_date = %s", (day_text(1),))[0][0]
    report.table("what", "number")
    for what, value in (("connections open at once", open_at_once), ("connections refused", rejected),
                        ("connections lost", result["lost"]), ("check-ins answered", result["answered"]),
                        ("check-ins found in Redis", in_redis), ("check-ins found in MySQL", in_mysql)):
        report.row(what, value)
    latency_us = result["latency_us"]
    report.row("seconds to open them", f"{result['connect_seconds']:.2f}")
    report.row("seconds until the last answer, all check-ins sent at once", f"{result['seconds']:.2f}")
    report.row("p50 and p99 of them", f"{milliseconds(latency_us['p50'])}, {milliseconds(latency_us['p99'])}")
    report.row("musterd, MiB: before", f"{before:.1f}")
    report.row("musterd, MiB: all open and idle", f"{idle:.1f}")
    report.row("musterd, MiB: after they closed", f"{after:.1f}")
    report.data.update(result=result, open=open_at_once, rss={"before": before, "idle": idle, "after": after})
    report.target(f"{wanted:,} connections at once, none refused, none lost",
                  f"{open_at_once:,} at once, {rejected} refused, {result['lost']} lost, {count - in_redis} check-ins "
                  "missing in Redis",
                  open_at_once == result["answered"] == in_redis == in_mysql == wanted
                  and rejected == result["lost"] == 0)
    report.target("20,000 idle connections under 200 MiB", f"{idle:.1f} MiB", idle < 200)
    if count < wanted:
        report.note(f"Run as a user who may not raise the limit of open files, {allowed + OWN_FILES:,} for a process "
                    f"here, musterd takes {allowed:,} connections at most; {count:,} were opened.")


# ---- the close ----

def live_day(scene, day, present):
    """Most come and leave, the rest is absent; all told and written by the end, at 06:00 of the next day."""
    ids = scene.write_ids(range(present), scene.dir / "present")
    scene.begin_day(day)
    for direction, moment in (("IN", "08:30"), ("OUT", "18:30")):
        scene.set_clock(at(day, moment))
        scene.check_in(direction, ids, depth=DEPTH)
    scene.set_clock(at(day + 1, "06:00"))
    wait_until(lambda: scene.info()["Day"]["maps_ready"] == "1", 600, "the day's maps are made")
    scene.drain()


def close_day(scene, day):
    """Seconds from DAY.CLOSE to the last department; the daemon's own count; both with the rows in MySQL."""
    begun = time.monotonic()
    reply = scene.ask("DAY.CLOSE", day_text(day))
    if isinstance(reply, str) and not reply.startswith("UNAVAILABLE"):
        raise BenchError(f"DAY.CLOSE: {reply}")
    wait_until(lambda: scene.info()["Close"]["close_running"] == "0", 3600, "the day is closed")
    seconds = time.monotonic() - begun
    rows = scene.sql("SELECT COUNT(*) FROM attendance_day WHERE work_date = %s", (day_text(day),))[0][0]
    if rows != scene.employees:
        raise BenchError(f"the close of {day_text(day)} left {rows} rows for {scene.employees} employees")
    return seconds


def connect(scene, **options):
    state = scene.stack.state
    return pymysql.connect(
        host="127.0.0.1", port=scene.stack["mariadb"].port(), user=state["mysql_user"],
        password=state["mysql_password"], database=f"muster_b{scene.number}", autocommit=True, charset="utf8mb4",
        **options)


def bare_insert(scene, day, rows_each=1000):
    """Seconds for the rows of a closed day into an empty table of the same definition: a statement for each 1,000
    rows, committed one by one. Making the statements is not counted."""
    seconds = 0.0
    with connect(scene, cursorclass=pymysql.cursors.SSCursor) as source, connect(scene) as target:
        with target.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS bare_day")
            cursor.execute("CREATE TABLE bare_day LIKE attendance_day")
        with source.cursor() as cursor:
            cursor.execute("SELECT * FROM attendance_day WHERE work_date = %s ORDER BY dept, employee",
                           (day_text(day),))
            while rows := cursor.fetchmany(rows_each):
                values = ",".join("(" + ",".join(map(target.literal, row)) + ")" for row in rows)
                begun = time.monotonic()
                target.query("INSERT INTO bare_day VALUES " + values)
                seconds += time.monotonic() - begun
    return seconds


def close(scene, report, quick):
    employees, repeats = (10_000, 2) if quick else (100_000, 5)
    present = employees * 98 // 100
    scene.fresh(employees)
    closes, inserts, used, turns = [], [], [], []
    for day in range(1, repeats + 1):
        live_day(scene, day, present)
        turns.append(int(scene.info()["Stats"]["loop_turn_max_us"]))
        before = scene.cpu()
        closes.append(close_day(scene, day))
        between = scene.cpu()
        turns.append(int(scene.info()["Stats"]["loop_turn_max_us"]))
        scene.drain()
        inserts.append(bare_insert(scene, day))
        after = scene.cpu()
        used.append([between["musterd"] - before["musterd"], between["redis"] - before["redis"],
                     between["mariadb"] - before["mariadb"], after["mariadb"] - between["mariadb"]])
    ratio = median(c / i for c, i in zip(closes, inserts))
    daemon, memory, close_sql, bare_sql = (median(column) for column in zip(*used))
    report.table("rows of one day", "seconds: median (each)", "rows/s", "CPU s of musterd", "of redis", "of mariadbd")
    for name, values, cost in (("close through musterd", closes, (daemon, memory, close_sql)),
                               ("bare insert, 1,000 rows a statement", inserts, ("-", "-", bare_sql))):
        report.row(name, f"{median(values):.2f} ({', '.join(f'{v:.2f}' for v in values)})",
                   spread([employees / v for v in values]).split(" ", maxsplit=1)[0], *cost)
    report.data.update(close=closes, insert=inserts, cpu=used, turn_us=turns)
    report.target("at most 1.5 times a bare insert of the same rows", f"{ratio:.2f} times", ratio <= 1.5)
    report.note(f"{employees:,} employees in {scene.departments} departments, 2 % absent, {repeats} days, close and "
                f"insert of the same day in turn. The bare insert goes into an empty table of the same definition, one "
                f"commit a statement. The close also reads the maps from Redis, judges, keeps the ledger of each "
                f"department, verifies, deletes the maps and writes the day's notices into the journal.")
    report.note(f"Longest turn of musterd's loop since its start, processor time: {milliseconds(turns[0])} before the "
                f"first close, {milliseconds(turns[1])} after it, {milliseconds(turns[-1])} after the last.")


# ---- memory ----

def rounds_of_a_day(scene, day, samples):
    """Five times everybody: in, out, in, out, and the last once more, which is recognised and not journalled."""
    moments = (("IN", "08:30"), ("OUT", "12:00"), ("IN", "12:45"), ("OUT", "18:30"), ("OUT", "18:30"))
    scene.begin_day(day)
    for direction, moment in moments:
        scene.set_clock(at(day, moment))
        scene.check_in(direction, depth=DEPTH)
        samples.append(scene.resident())
    scene.set_clock(at(day + 1, "06:00"))
    scene.drain()
    close_day(scene, day)
    scene.drain()
    samples.append(scene.resident())
    return len(moments) * scene.employees


def memory(scene, report, quick):
    employees, days = (4_000, 4) if quick else (100_000, 10)
    scene.fresh()
    scene.drain()
    idle = scene.resident()
    scene.fresh(employees)
    imported, done = scene.resident(), 0
    report.table("musterd", "MiB at the end", "most seen meanwhile")
    report.row("fresh daemon, nobody in it", f"{idle:.1f}", "-")
    report.row(f"{employees:,} employees imported", f"{imported:.1f}", "-")
    ends, peaks = [], []
    for day in range(1, days + 1):
        samples = []
        done += rounds_of_a_day(scene, day, samples)
        ends.append(samples[-1])
        peaks.append(max(samples))
        report.row(f"after {done:,} check-ins and {day} closed days", f"{ends[-1]:.1f}", f"{peaks[-1]:.1f}")
    report.data.update(idle=idle, imported=imported, ends=ends, peaks=peaks)
    report.target("idle under 16 MiB", f"{idle:.1f} MiB", idle < 16)
    warm = days // 2
    growth = max(ends[warm:]) - max(ends[:warm])
    report.target(f"no growth over {done / 1e6:.1f} million check-ins",
                  f"{growth:+.1f} MiB from the first half of the days to the second", growth < 1)
    report.note("A day: everybody in, out, in, out, and the last of these once more (recognised as a repeat, not "
                "journalled), so four of five reach RabbitMQ and MySQL; then the day is closed and its maps deleted, "
                "and the next one begins. Samples are taken after each of the five rounds and after the close.")


# ---- size ----

def scaling(scene, report, quick):
    sizes = (1_000, 10_000) if quick else (1_000, 100_000, 1_000_000)
    report.table("employees", "import/s", "check-ins/s", "CPU us each: musterd", "redis", "close, s", "rows/s",
                 "bare insert, s", "longest turn, import", "after check-ins", "after close", "MiB")
    worst = 0
    for size in sizes:
        import_seconds = scene.fresh(size)
        turns = [int(scene.info()["Stats"]["loop_turn_max_us"])]
        days = max(1, 50_000 // size)
        done = seconds = musterd = store = close_seconds = 0
        for day in range(1, days + 1):
            scene.begin_day(day)
            if day > 1:
                close_day(scene, day - 1)
            scene.drain()
            scene.set_clock(at(day, "08:30"))
            before = scene.cpu()
            result = scene.check_in("IN", depth=DEPTH)
            after = scene.cpu()
            done, seconds = done + result["answered"], seconds + result["seconds"]
            musterd, store = musterd + after["musterd"] - before["musterd"], store + after["redis"] - before["redis"]
        scene.set_clock(at(days + 1, "06:00"))
        scene.drain()
        turns.append(int(scene.info()["Stats"]["loop_turn_max_us"]))
        close_seconds = close_day(scene, days)
        turns.append(int(scene.info()["Stats"]["loop_turn_max_us"]))
        scene.drain()
        insert_seconds = bare_insert(scene, days)
        report.row(f"{size:,}", size / import_seconds, done / seconds, f"{musterd * 1e6 / done:.1f}",
                   f"{store * 1e6 / done:.1f}", f"{close_seconds:.2f}", size / close_seconds,
                   f"{insert_seconds:.2f}", *(milliseconds(us) for us in turns), f"{scene.resident():.1f}")
        report.data[size] = {"import_seconds": import_seconds, "rate": done / seconds, "close_seconds": close_seconds,
                             "insert_seconds": insert_seconds, "turn_us": turns, "rss": scene.resident()}
        worst = max(worst, *turns)
    report.target("no step over 20 ms in the loop", milliseconds(worst), worst <= 20_000)
    report.note(f"{scene.departments} departments each time. Everybody checks in once a day, over as many days as give "
                "50,000 check-ins; every day is closed, the last one timed. A turn of the loop is measured in "
                "processor time; the figure is the longest since the daemon's start, so it can only rise from left to "
                "right. Relay and ledger work beside the check-ins.")
