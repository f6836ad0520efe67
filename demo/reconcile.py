# SPDX-License-Identifier: MIT
"""Whether it all adds up: read back from MySQL, RabbitMQ and Redis, compared with what the demo knows of each person.
Nothing here asks the daemon."""
import time
import zlib
from collections import Counter

import pymysql
import redis

import show
from day import REGION, REGION_KINDS, SUBSCRIPTION
from supervisors import connect


class Checks:
    """The table at the end."""

    def __init__(self):
        self.rows, self.wrong = [], 0

    def add(self, what, wanted, found, why=""):
        good = wanted == found
        self.wrong += not good
        self.rows.append((what, wanted, found, "OK" if good else f"WRONG {why}".strip()))

    def none(self, what, findings):
        """Nothing of this kind may be found; the first ones are shown."""
        findings = list(findings)
        self.add(what, 0, len(findings), ", ".join(str(f) for f in findings[:3]))

    def print(self):
        show.table([("check", "expected", "found", ""), *self.rows])


class Database:
    def __init__(self, stack):
        state = stack.state
        self.connection = pymysql.connect(
            host="127.0.0.1", port=stack["mariadb"].port(), user=state["mysql_user"],
            password=state["mysql_password"], database=state["mysql_database"], autocommit=True, charset="utf8mb4",
            init_command="SET time_zone = '+00:00'", read_timeout=60)

    def __call__(self, query, *args):
        with self.connection.cursor() as cursor:
            cursor.execute(query, args)
            return cursor.fetchall()

    def close(self):
        self.connection.close()


def in_ms(column):
    return f"CAST(ROUND(UNIX_TIMESTAMP({column}) * 1000) AS SIGNED)"


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def at_last(find, seconds=10):
    """What is found, tried again for a while as long as it is something: the last step may be under way."""
    deadline = time.monotonic() + seconds
    while (found := find()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


# ---- MySQL ----

def check_rows(checks, company, sql, day):
    """attendance_day: one row a person, and that as planned."""
    rows = sql(f"SELECT employee, dept, status, {in_ms('first_in')}, {in_ms('last_out')}, punches, revision "
               "FROM attendance_day WHERE work_date = %s", day)
    found = {text(row[0]): (text(row[1]), *row[2:]) for row in rows}
    wanted = {p.id: (p.dept.id, p.status, p.first_in, p.last_out, p.counted) for p in company.people}
    checks.add("rows of the day in MySQL", len(wanted), len(rows))
    checks.none("people without their row", wanted.keys() - found.keys())
    checks.none("rows of nobody", found.keys() - wanted.keys())
    have, counts = Counter(row[1] for row in found.values()), company.statuses()
    for status in sorted(have.keys() | counts.keys()):
        checks.add(f"  of them {status}", counts[status], have[status])
    checks.none("rows whose department, status, in, out or punches differ",
                (f"{i}: {found[i][:5]} not {w}" for i, w in wanted.items() if i in found and found[i][:5] != w))
    checks.none("absentees who are not those that stayed away",
                {p.id for p in company.people if p.plan == "absent"}
                ^ {i for i, row in found.items() if row[1] == "absent"})
    late = {p.id for p in company.people if p.plan == "warehouse"}
    checks.add("rows revised after the close", len(late), sum(1 for row in found.values() if row[5] > 1))
    checks.none("revised rows of others", (i for i, row in found.items() if (row[5] > 1) != (i in late)))
    return found


def check_revisions(checks, company, sql, day, found):
    rows = sql("SELECT employee, revision, old_status FROM attendance_revision WHERE work_date = %s", day)
    checks.add("revisions kept", sum(row[5] - 1 for row in found.values()), len(rows))
    checks.add("absences revised", sum(p.plan == "warehouse" for p in company.people),
               sum(row[2] == "absent" for row in rows))


def check_events(checks, company, sql, day):
    """attendance_event: every punch once. A sum of checksums tells two sets apart as well as a list would."""
    punches = [f"{p.id} {direction} {at}" for p in company.people for direction, at in p.raw]
    count, total, late = sql(
        "SELECT COUNT(*), CAST(SUM(CRC32(CONCAT(employee, ' ', direction, ' ', at_ms))) AS SIGNED), "
        "CAST(SUM(late) AS SIGNED) FROM attendance_event WHERE work_date = %s", day)[0]
    checks.add("raw events in MySQL", len(punches), count)
    checks.add("their checksum", f"{sum(zlib.crc32(p.encode()) for p in punches):x}", f"{total or 0:x}")
    checks.add("of them after the close", 2 * sum(p.plan == "warehouse" for p in company.people), late or 0)


def check_close(checks, company, sql, day):
    """day_close: expected = written + failed for every department with employees."""
    rows = sql("SELECT dept, phase, expected, written, failed, absent FROM day_close WHERE work_date = %s", day)
    members, absent = Counter(p.dept.id for p in company.people), company.statuses(closed_only=True)["absent"]
    checks.add("departments closed", len(company.staffed()), sum(row[1] == "closed" for row in rows))
    checks.none("departments whose ledger does not balance",
                (text(row[0]) for row in rows
                 if not row[2] == row[3] + row[4] == members[text(row[0])] or row[4]))
    checks.add("absent at the close", absent, sum(row[5] for row in rows))
    rows = sql("SELECT kind, reason, employee, detail FROM persist_failure")
    checks.add("punches of the year 2000, kept for FAILURE.LIST", company.misdated,
               sum(row[:2] == ("rejected", "too_old") for row in rows))
    checks.none("rows that could not be written", (row for row in rows if row[0] != "rejected"))


def check_organisation(checks, company, sql):
    rows = sql("SELECT id, dept, name FROM employee WHERE state = 'active'")
    found = {(text(row[0]), text(row[1]), row[2]) for row in rows}
    checks.none("employees in MySQL that differ from the company's",
                found ^ {(p.id, p.dept.id, p.name) for p in company.people})
    rows = sql("SELECT id, path FROM department WHERE id <> '0'")
    checks.none("departments in MySQL that differ",
                {(text(row[0]), text(row[1])) for row in rows}
                ^ {(d.id, ":".join((*d.path, d.id))) for d in company.departments})


# ---- RabbitMQ ----

def check_notices(checks, company, office, region):
    """Each that was due, by distinct event ids: neither one less nor one more."""
    wanted, found = company.notices(), office["events"]
    for kind in ("in", "late", "out", "absent", "withdrawn"):
        checks.add(f"notices: {kind}", sum(n for (_, k), n in wanted.items() if k == kind),
                   sum(n for (_, k), n in found.items() if k == kind))
    checks.none("notices that were due and did not come", wanted - found)
    checks.none("notices that nothing was the cause of", found - wanted)
    departments = {d.id for d in company.departments}
    checks.none("departments without one notice of their close",
                company.staffed() ^ {d for (d, kind), n in office["departments"].items()
                                     if kind == "closed" and n == 1})
    checks.none("departments without one notice of their making",
                departments ^ {d for (d, kind), n in office["departments"].items()
                               if kind == "add" and d != "0" and n == 1})
    checks.add("closes told with wrong sums", 0, office["strange"])
    wanted = company.notices(REGION_KINDS, REGION)
    checks.add("notices to the supervisor of region 1", sum(wanted.values()), sum(region["events"].values()))
    checks.none("of them wrong, missing or of others", (wanted - region["events"]) + (region["events"] - wanted))


def check_retries(checks, region):
    once, always, attempts = len(region["once"]), len(region["always"]), region["attempts"]
    checks.add("messages he rejected, in all", once + 4 * always, region["rejected"])
    checks.add("second tries after 1 s", once + always, attempts[1])
    checks.add("third tries after 2 s", always, attempts[2])
    checks.add("fourth tries after 3 s, then parked", always, attempts[3])
    checks.add("rejected messages that he took in the end", once + always, len(region["recovered"]))


def check_queues(checks, day):
    connection = connect(day.amqp)
    channel = connection.channel()

    def find():
        counts = {queue: channel.queue_declare(queue, passive=True).method.message_count for queue in (
            "muster.dead", "muster.parked", "muster.delay.1s", "muster.delay.2s", "muster.delay.3s",
            "muster.supervisors", SUBSCRIPTION)}
        return [f"{queue} {n}" for queue, n in counts.items() if n]
    checks.none("queues that are not empty", at_last(find))
    connection.close()


# ---- Redis ----

def check_maps(checks, company, store, clock):
    """The maps of the closed day are gone, tomorrow's hold the roster and nothing else."""
    gone = [key for kind in ("day", "closing") for key in store.scan_iter(f"muster:*:{kind}:*:{clock.day}", 10_000)]
    checks.none("day maps of the closed day left in Redis", gone)
    keys = list(store.scan_iter(f"muster:*:day:*:{clock.next_day}", 10_000))
    pipe = store.pipeline(transaction=False)
    for key in keys:
        pipe.hgetall(key)
    maps = {key.split(":")[3]: members for key, members in zip(keys, pipe.execute())}
    checks.add("maps of the next day", len(company.staffed()), len(maps))
    checks.none("of them not marked whole", (d for d, members in maps.items() if members.pop("#", "") != "1"))
    checks.none("people on it who have punched already",
                (i for members in maps.values() for i, value in members.items() if value))
    roster = {(p.dept.id, p.id) for p in company.people}
    on_maps = [(d, i) for d, members in maps.items() for i in members]
    checks.add("people on the next day's maps", len(roster), len(on_maps))
    checks.none("of them wrong, missing or twice", set(on_maps) ^ roster)


def check_records(checks, company, store):
    """Each person's own record has his day, whatever its order."""
    wanted = {p.id: {f"{direction}{at}" for direction, at in p.raw} for p in company.people if p.plan != "warehouse"}
    wrong = []
    for key in store.scan_iter("muster:*:emps:*", 10_000):
        for employee, record in store.hgetall(key).items():
            _, _, punches, _ = record.split("|", 3)
            if employee in wanted and {token.split("#")[0] for token in punches.split()} != wanted[employee]:
                wrong.append(employee)
    checks.none("personal records in Redis that differ", wrong)


def check_journals(checks, store):
    """Nothing is left behind the slower cursor."""
    def find():
        left = []
        for key in store.scan_iter("muster:*:journal", 10_000):
            cursors = store.hmget(key[:-len("journal")] + "cursor", "relay", "ledger")
            slower = min(tuple(map(int, (cursor or "0-0").split("-"))) for cursor in cursors)
            left += [f"{key} {entry}" for entry, _ in store.xrange(key, f"({slower[0]}-{slower[1]}", "+", count=1000)]
        return left
    checks.none("journal entries not yet told or not yet written", at_last(find))


def reconcile(company, day, sql, stack, office, region):
    """The table; whether everything adds up."""
    checks, date = Checks(), company.clock.day.isoformat()
    store = redis.Redis(port=stack["redis"].port(), decode_responses=True)
    punches = sum(len(p.raw) for p in company.people)
    checks.add("check-ins answered", punches + company.repeats, day.load.answered)
    checks.add("of them known as repeats", company.repeats, day.load.duplicates)
    for what, wanted, found in day.checks:
        checks.add(what, wanted, found)
    found = check_rows(checks, company, sql, date)
    check_revisions(checks, company, sql, date, found)
    check_events(checks, company, sql, date)
    check_close(checks, company, sql, date)
    check_organisation(checks, company, sql)
    check_notices(checks, company, office, region)
    check_retries(checks, region)
    check_queues(checks, day)
    check_maps(checks, company, store, company.clock)
    check_records(checks, company, store)
    check_journals(checks, store)
    store.close()
    show.line(f"   the head office has read {sum(office['events'].values()):,} notices of people in "
              f"{office['messages']:,} messages; {office['repeats']:,} came twice and were known by their ids")
    checks.print()
    return checks.wrong
