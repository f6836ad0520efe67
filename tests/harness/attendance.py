# SPDX-License-Identifier: MIT
"""Days and people for the end-to-end tests: instants of a work date, a company, its rows, its notices.

The dates lie ahead of the machine's clock, since a held clock starts at the present and is moved forward."""
import contextlib
import json
from datetime import date, datetime, timedelta, timezone

import pika
import pymysql

from harness.muster import text_of
from harness.raw import encode
from harness.wait import wait_until

DAY = "2031-03-03"  # a Monday
LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)


def day_after(day, count=1):
    return (date.fromisoformat(day) + timedelta(days=count)).isoformat()


def at(time, day=DAY, offset="+00:00"):
    """An instant as RFC 3339: at("09:00"), at("09:00:00.001"), at("+00:05") of the calendar day after."""
    if time.startswith("+"):
        time, day = time[1:], day_after(day)
    return f"{day}T{time if time.count(':') == 2 else time + ':00'}{offset}"


def ms(instant):
    """Unix milliseconds of what at() gives."""
    return (datetime.fromisoformat(instant) - LONG_AGO) // timedelta(milliseconds=1)


def ms_of(moment):
    """Unix milliseconds of a DATETIME(3) of MySQL, which is UTC; None stays None."""
    return None if moment is None else (moment.replace(tzinfo=timezone.utc) - LONG_AGO) // timedelta(milliseconds=1)


def pipelined(muster, commands, at_once=200):
    """Sends all commands over one connection, many at a time; their replies as text."""
    replies = []
    with muster.raw(60) as raw:
        for first in range(0, len(commands), at_once):
            part = commands[first:first + at_once]
            raw.send(b"".join(encode(*words) for words in part))
            replies += [text_of(raw.read()) for _ in part]
    return replies


def found(muster, company):
    """Makes a company: {"department": people} or {"department/parent": people}, people a number or their ids. A
    number makes e.<department>.<n>. Returns all ids."""
    teams, people = [], []
    for place, who in company.items():
        dept, _, parent = place.partition("/")
        teams.append(("TEAM.ADD", dept, parent or "-"))
        ids = [f"e.{dept}.{n}" for n in range(who)] if isinstance(who, int) else who
        people += [("EMPLOYEE.SET", employee, "DEPT", dept) for employee in ids]
    for replies in (pipelined(muster, teams, 1), pipelined(muster, people)):
        assert set(replies) <= {"OK"}, set(replies)
    return [words[1] for words in people]


def as_map(reply):
    assert isinstance(reply, list), reply
    return dict(zip(reply[::2], reply[1::2]))


def punch(muster, employee, direction, time, *more, day=DAY):
    """One CHECKIN that is accepted; direction "UNK" sends none."""
    words = [] if direction == "UNK" else [direction]
    return muster.map("CHECKIN", employee, *words, "AT", at(time, day) if ":" in time[:4] else time, *more)


def close_day(muster, day=DAY, deadline=30):
    """Moves the clock to the time at which the day is closed by itself, and waits until it is."""
    muster.set_clock(at("+04:05", day))
    return wait_closed(muster, day, deadline)


def wait_closed(muster, day=DAY, deadline=30):
    def closed():
        reply = muster.ask("DAY.STATE", day)
        assert isinstance(reply, list), reply
        state = as_map(reply)
        assert state["state"] == "closed", state
        return state
    return wait_until(closed, deadline, f"{day} is closed")


def text(value):
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def texts(rows):
    return [{key: text(value) for key, value in row.items()} for row in rows]


def day_rows(stores, day=DAY):
    """The rows of attendance_day of one date: {employee: row}, instants as unix milliseconds."""
    rows = texts(stores.sql("SELECT * FROM attendance_day WHERE work_date = %s", (day,)))
    for row in rows:
        row["in"], row["out"] = ms_of(row["first_in"]), ms_of(row["last_out"])
    assert len(rows) == len({row["employee"] for row in rows})
    return {row["employee"]: row for row in rows}


def statuses(stores, day=DAY):
    return {employee: row["status"] for employee, row in day_rows(stores, day).items()}


def books(stores, day=DAY):
    """day_close of one date, summed up, once every department is finished and the numbers agree with the rows."""
    rows = texts(stores.sql("SELECT * FROM day_close WHERE work_date = %s", (day,)))
    for row in rows:
        assert row["phase"] == "closed" and row["finished"] is not None, row
        assert row["expected"] == row["written"] + row["failed"], row
    return {name: sum(row[name] for row in rows) for name in ("expected", "written", "failed", "absent")}


def wait_books(stores, day=DAY, deadline=30):
    """The end of a day is recorded just after it is closed."""
    return wait_until(lambda: books(stores, day), deadline, f"day_close of {day} is finished")


@contextlib.contextmanager
def locked(stores, *tables):
    """Nobody else writes to these tables meanwhile."""
    state = stores.stack.state
    connection = pymysql.connect(host="127.0.0.1", port=stores.stack["mariadb"].port(), user=state["mysql_user"],
                                 password=state["mysql_password"], database=stores.database)
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute("LOCK TABLES " + ", ".join(f"{table} READ" for table in tables))
        yield


def failures(muster, *words):
    """Every row of FAILURE.LIST."""
    rows, cursor = [], None
    while cursor != "":
        reply = muster.ask("FAILURE.LIST", *words, *(("CURSOR", cursor) if cursor else ()))
        assert isinstance(reply, list), reply
        cursor, items = reply
        rows += [as_map(item) for item in items]
    return rows


class Notices:
    """A supervisor's queue: what has come into it, as (routing key, properties, body)."""

    def __init__(self, stores, *keys):
        self.stores = stores
        self.messages = []
        self.channel = None
        self.queue = self.open().queue_declare("", durable=True, auto_delete=False).method.queue
        # As musterd declares it, which may be a little later than us.
        self.channel.exchange_declare("muster.notices", "topic", durable=True)
        for key in keys or ("#",):
            self.channel.queue_bind(self.queue, "muster.notices", key)

    def open(self):
        self.channel = self.stores.amqp()
        return self.channel

    def fetch(self):
        """Takes what is there; after the broker was away, over a new connection."""
        try:
            self.take()
        except (pika.exceptions.AMQPError, OSError):
            with contextlib.suppress(pika.exceptions.AMQPError, OSError):
                self.open()
                self.take()
        return self.messages

    def take(self):
        while True:
            method, properties, body = self.channel.basic_get(self.queue, auto_ack=True)
            if method is None:
                return
            self.messages.append((method.routing_key, properties, json.loads(body)))

    def events(self, kind=None):
        """Events of all messages of a type such as attendance.late, each with the message's type, dept and day."""
        self.fetch()
        return [{**event, "type": body["type"], "dept": body["dept"], "day": body.get("day")}
                for _, _, body in self.messages for event in body["events"] if kind in (None, body["type"])]

    def wait_for(self, kind, count, deadline=30):
        """The events of a kind once there are as many distinct ones."""
        def enough():
            events = self.events(kind)
            have = len({event["id"] for event in events})
            assert have >= count, f"{have} of {count}"
            return events
        return wait_until(enough, deadline, f"{count} events {kind}") if count else []

    def wait_quiet(self, muster, deadline=30):
        """All events once the relay and the ledger have nothing left."""
        wait_quiet(muster, deadline)
        return self.events()


def wait_quiet(muster, deadline=30):
    """Until both readers of the journal have done with all that is in it."""
    wait_until(lambda: is_quiet(muster.stores), deadline, "the journal is read to its end")


def is_quiet(stores):
    """Whether both cursors of every journal stand at its last entry, by what Redis itself says."""
    for key in stores.redis.scan_iter(stores.prefix + "*:journal", count=1000):
        last = stores.redis.xrevrange(key, count=1)
        if not last:
            continue
        cursor = stores.redis.hmget(key.removesuffix("journal") + "cursor", "relay", "ledger")
        if any(place is None or id_of(place) < id_of(last[0][0]) for place in cursor):
            return False
    return True


def id_of(entry):
    ms_part, _, number = entry.partition("-")
    return int(ms_part), int(number)


def dump(stores):
    """Everything that Muster keeps in Redis, without what moves by itself: leases and cursors."""
    picture = {}
    for name in stores.keys():
        if name.endswith((":owner", ":cursor")) or name == "daemons":
            continue
        picture[name] = content(stores, name)
    return picture


def content(stores, name):
    key, redis = stores.key(name), stores.redis
    kind = redis.type(key)
    readers = {"hash": redis.hgetall, "set": redis.smembers, "string": redis.get, "stream": redis.xrange}
    return readers[kind](key) if kind in readers else kind
