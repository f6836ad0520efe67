# SPDX-License-Identifier: MIT
"""The shortest way through everything: a check-in is answered, seen, published, kept and survives."""
import json
import subprocess

import pytest
import redis
from harness.raw import ErrorReply, encode
from harness.wait import wait_until


def add_people(muster, dept="dev", count=3):
    assert muster.ask("TEAM.ADD", dept, "-", "NAME", "Development") == "OK"
    for number in range(count):
        assert muster.ask("EMPLOYEE.SET", f"e.{number}", "DEPT", dept, "NAME", f"Person {number}") == "OK"


def test_ping_and_echo(muster):
    client = muster.client()
    assert client.ping() is True
    assert client.echo("déjà vu") == "déjà vu"


def test_inline_lines(muster):
    done = subprocess.run(["nc", "-N", "127.0.0.1", str(muster.port)], input=b"PING\r\nECHO \"a b\"\nQUIT\r\n",
                          capture_output=True, timeout=20, check=True)
    assert done.stdout == b"+PONG\r\n$3\r\na b\r\n+OK\r\n"


def test_unknown_command_in_the_words_clients_know(muster):
    with pytest.raises(redis.ResponseError, match="^unknown command 'NO.SUCH'"):
        muster.client().execute_command("NO.SUCH")


def test_resp3_by_hello(muster):
    with muster.raw() as raw:
        hello = raw.command("HELLO", "3")
        assert isinstance(hello, dict) and hello[b"proto"] == 3
        assert str(raw.command("HELLO", "4")).startswith("NOPROTO")


def test_pipelined_in_single_bytes(muster):
    with muster.raw() as raw:
        for byte in encode("PING") * 20:
            raw.send(bytes([byte]))
        assert [raw.read() for _ in range(20)] == ["PONG"] * 20


def test_checkin_is_seen_by_the_next_command(muster):
    add_people(muster)
    with muster.raw() as raw:
        raw.send(encode("CHECKIN", "e.0", "IN") + encode("STATUS", "e.0") + encode("CHECKIN", "nobody", "IN"))
        checkin, status, refused = raw.read(), raw.read(), raw.read()
    checkin = dict(zip(checkin[::2], checkin[1::2]))
    status = dict(zip(status[::2], status[1::2]))
    assert checkin[b"id"] == b"e.0" and checkin[b"punches"] == 1 and checkin[b"duplicate"] == 0
    assert status[b"in"] == checkin[b"in"] and status[b"dept"] == b"dev"
    assert isinstance(refused, ErrorReply) and str(refused).startswith("UNKNOWN ")


def test_roll_counts_everyone(muster):
    add_people(muster, count=5)
    muster.map("CHECKIN", "e.0", "IN")
    rows = muster.roll("dev", "COUNT", 2)
    assert sorted(row["id"] for row in rows) == [f"e.{n}" for n in range(5)]
    assert muster.map("ROLL.COUNT", "dev")["total"] == 5


def test_checkin_survives_kill9(muster):
    add_people(muster)
    before = muster.map("CHECKIN", "e.1", "IN")
    muster.kill9()
    muster.start()
    assert muster.map("STATUS", "e.1")["in"] == before["in"]


def test_sigterm_ends_cleanly(muster):
    assert muster.terminate() == 0


def test_notice_reaches_a_consumer(muster, stores):
    add_people(muster)
    channel = stores.amqp()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.exchange_declare("muster.notices", "topic", durable=True)
    channel.queue_bind(queue, "muster.notices", "attendance.*.dev")
    muster.map("CHECKIN", "e.0", "IN")

    def next_body():
        _, _, body = channel.basic_get(queue, auto_ack=True)
        return body

    notice = json.loads(wait_until(next_body, 15, "a notice arrives"))
    assert "e.0" in json.dumps(notice["events"])


def test_event_reaches_the_ledger(muster, stores):
    add_people(muster)
    muster.map("CHECKIN", "e.2", "IN")
    rows = wait_until(lambda: stores.sql("SELECT * FROM attendance_event"), 15, "the event is in MySQL")
    assert len(rows) == 1


def test_held_clock_stands_still_and_moves(held):
    add_people(held)
    held.set_clock("2026-03-02T08:55:00Z")
    assert held.map("CHECKIN", "e.0", "IN")["in"] == 1772441700000
    held.set_clock("2026-03-02T09:05:00Z")
    assert held.map("CHECKIN", "e.1", "IN")["in"] == 1772442300000


def test_clock_set_does_not_exist_without_a_held_clock(muster):
    assert muster.ask("CLOCK.SET", "2026-03-02T08:55:00Z").startswith("ERR unknown command")
