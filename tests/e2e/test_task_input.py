# SPDX-License-Identifier: MIT
"""What is wrong with a task command is answered by its code and changes nothing; what a payload, a result or an error
holds is nobody's business and comes back as it went in."""
import threading
from hashlib import sha256

import pytest

from harness import tasks
from harness.attendance import as_map, text
from harness.muster import text_of
from harness.raw import ErrorReply, encode
from harness.tasks import (claim, claim_one, done, fail, get, ids_in, key_of, recount, redis_of, refused, release,
                           status, submit, tag_of)
from harness.wait import wait_until

BAD_NUMBERS = ("", " ", "x", "5x", "x5", "1.5", "+5", " 5", "5 ", "0x5", "1e1", "05x", "--1", "NaN", "9" * 30, "５")
BAD_DURATIONS = ("", " ", "-1", "-1s", "x", "s", "ms", ".", ".s", "1.", "1.s", "1..5", "1.5.5s", "5 s", " 5", "5 ",
                 "+5", "1e3", "0x10", "NaN", "inf", "5sec", "5ss", "1h30m", "9" * 30, "9223372036854775807d",
                 "106751991168d", "5\0s", "５s", "1,5")
BAD_QUEUES = (b"", b"a b", b"a:b", b"a|b", b"{a}", b"a.b", b"a@b", b"*", b"a\n", b"a\0", b"x" * 65, "ä".encode(),
              b"\xff")
BAD_WORKERS = tuple(name for name in BAD_QUEUES if name not in (b"a.b", b"a@b"))
NO_IDS = ("", "x", "0", "-1", "1", "a" * 11, "a" * 13, "0" * 10 + "zz", "w" * 12, "000000000 00", "0000000000" + "\0\0",
          "../../../../x", "{p0o}:task:x", "*", "ü" * 6, "0" * 10 + "1g", "A" * 12, "v" * 12)
BAD_TOKENS = ("", "x", "-1", "0", "1.0", "1e3", " 1", "1 ", "0x1", str(2 ** 63), str(2 ** 64), "9" * 40, "1|2")
ALL_BYTES = bytes(range(256))
PAYLOADS = (ALL_BYTES, ALL_BYTES[::-1], b"\r\n", b"\0", b"\0" * 1000, b"", b"\xff\xfe\xfd", "王小明 🏭 é".encode(),
            b"*1\r\n$4\r\nPING\r\n", b"$-1\r\n", b"+OK\r\n", b"PRIORITY", b"NEXT", b"a|b|c\n1|2|3|4|5|6\nT", b"%s%n%d",
            b"' OR 1=1 --", b"\x1b[2J", b"x" * 65, ALL_BYTES * 300)
JSONS = ('{"id":130775545883395173,"a":[],"f":1.0}', '{"e":{},"n":null,"u":"\\u00e9\\/","x":1e400,"-0":-0.0}', "[]",
         "{}", "9007199254740993", '{"a":1,"a":2}', '"\\ud800"', '{"deep":' + "[" * 500 + "]" * 500 + "}", " { } ",
         "{broken", "1E+2", '{"z":0.1,"y":100000000000000000000000}')


@pytest.fixture(name="settled")
def fixture_settled(muster):
    """A daemon with a queue that has one ready task and one that runs; the running one."""
    submit(muster, "mail", "run")
    held = claim_one(muster, "mail", "w1", "LEASE", "1h")
    submit(muster, "mail", "ready", "KEY", "k")
    return muster, held


# ---- numbers, times, names ----

def test_priorities(settled):
    """1 to 10, whole numbers as people write them; anything else makes no task."""
    muster, _ = settled
    refused(muster, "ERR", *[("TASK.SUBMIT", "mail", "x", "PRIORITY", word) for word in ("0", "11", "-1", "2097152",
                             *BAD_NUMBERS)])
    refused(muster, "ERR", *[("TASK.SUBMIT", "fresh", "x", "PRIORITY", word) for word in ("0", "11", "-1")])
    assert not muster.stores.keys("*:queue_info:fresh")
    for priority in range(1, 11):
        assert get(muster, submit(muster, "other", "x", "PRIORITY", priority))["priority"] == priority


def test_counts(settled):
    """RETRIES, COUNT and WAIT are whole numbers within their ranges."""
    muster, held = settled
    here = (held["id"], held["token"])
    refused(muster, "ERR",
            *[("TASK.SUBMIT", "mail", "x", "RETRIES", word) for word in ("-1", "1000001", *BAD_NUMBERS)],
            *[("TASK.CLAIM", "mail", "w1", "COUNT", word) for word in ("0", "-1", "1000000000", *BAD_NUMBERS)],
            *[("TASK.CLAIM", "mail", "w1", "WAIT", word) for word in ("-1", "1s", "99999999999", *BAD_NUMBERS)],
            *[("TASK.DONE", *here, "NEXT", "COUNT", word) for word in ("0", "-1", *BAD_NUMBERS)],
            *[("TASK.DONE", *here, "NEXT", "WAIT", word) for word in ("-1", "0.5", *BAD_NUMBERS)],
            ("TASK.DONE", *here, "COUNT", "5"), ("TASK.DONE", *here, "WAIT", "5"))
    assert done(muster, held) == "OK"


def test_durations(settled):
    """Digits, perhaps a fraction, perhaps ms, s, m, h or d; no signs, blanks, names, or numbers beyond all time."""
    muster, held = settled
    here = (held["id"], held["token"])
    refused(muster, "ERR",
            *[("TASK.SUBMIT", "mail", "x", "DELAY", word) for word in BAD_DURATIONS],
            *[("TASK.SUBMIT", "mail", "x", "LEASE", word) for word in ("0", "99ms", "0.099", "2h", *BAD_DURATIONS)],
            *[("TASK.SUBMIT", "mail", "x", "KEY", "n", "WINDOW", word) for word in ("0", "0ms", *BAD_DURATIONS)],
            *[("TASK.CLAIM", "mail", "w1", "LEASE", word) for word in ("0", "50ms", "1d", *BAD_DURATIONS)],
            *[("TASK.BEAT", "w1", *here, "LEASE", word) for word in ("0", "1d", *BAD_DURATIONS)],
            *[("TASK.FAIL", *here, "DELAY", word) for word in BAD_DURATIONS])
    assert status(muster, held) == "running"


def test_durations_are_what_they_say(muster):
    """A bare number is seconds; fractions go down to the millisecond."""
    for word, ms in (("1", 1000), ("1.5", 1500), ("0.25", 250), ("1500ms", 1500), ("2m", 120000), ("0.1h", 360000),
                     ("1H", 3600000), ("1d", 86400000), ("0.0005h", 1800)):
        before = tasks.redis_ms(muster.stores)
        task = get(muster, submit(muster, "mail", "x", "DELAY", word))
        assert 0 <= task["not_before"] - before - ms < 1000, word


def test_names_of_queues_and_workers(settled):
    """Queues are ids, workers may also have points and at signs; nothing that could cut a key or a record."""
    muster, held = settled
    refused(muster, "ERR",
            *[(*words[:1], queue, *words[1:]) for queue in BAD_QUEUES for words in (
                ("TASK.SUBMIT", "x"), ("TASK.CLAIM", "w1"), ("TASK.PAUSE",), ("TASK.RESUME",), ("TASK.CONFIG",))],
            *[("TASK.CLAIM", "mail", worker) for worker in BAD_WORKERS],
            *[("TASK.BEAT", worker, held["id"], held["token"]) for worker in BAD_WORKERS])
    queue, worker = "Az09_-" + "q" * 58, "Az09_-.@" + "w" * 56
    task = submit(muster, queue)
    assert claim_one(muster, queue, worker)["id"] == task and get(muster, task)["worker"] == worker
    recount(muster.stores)


def test_ids_that_are_none(settled):
    """Unknown, of another partition, or no ids at all: UNKNOWN, the same for every verb, and nothing is made."""
    muster, held = settled
    own = held["id"]
    digits = sorted({own[10:], "00", "01", "1f"} - {own[10:]})
    ids = [*NO_IDS, *(own[:10] + other for other in digits), own[:9] + ("0" if own[9] != "0" else "1") + own[10:],
           own.upper() if own.upper() != own else "V" * 12, own + "0", own[:-1], " " + own[1:]]
    for verb in ("DONE", "FAIL", "RELEASE"):
        refused(muster, "UNKNOWN", *[("TASK." + verb, task, held["token"]) for task in ids])
    for verb in ("CANCEL", "RETRY", "GET"):
        refused(muster, "UNKNOWN", *[("TASK." + verb, task) for task in ids])
    told = tasks.beat(muster, "w1", *[{"id": task, "token": held["token"]} for task in ids])
    assert told["extended"] == told["cancel"] == [] and len(told["stale"]) == len(ids)
    assert done(muster, held) == "OK"


def test_tokens_that_are_none(settled):
    """What can't be a token is ERR, one of another task or another time is STALE; the claim is untouched."""
    muster, held = settled
    submit(muster, "print")
    other = claim_one(muster, "print")
    for verb in ("DONE", "FAIL", "RELEASE"):
        refused(muster, "ERR", *[("TASK." + verb, held["id"], token) for token in BAD_TOKENS])
        refused(muster, ("ERR", "STALE"), *[("TASK." + verb, held["id"], token)
                                            for token in ("00" + held["token"], "+" + held["token"])])
        refused(muster, "STALE", *[("TASK." + verb, held["id"], token) for token in (
            str(int(held["token"]) + 1), str(2 ** 63 - 1), str(int(other["token"]) + 10 ** 6))])
    refused(muster, "ERR", *[("TASK.BEAT", "w1", held["id"], token) for token in BAD_TOKENS])
    assert done(muster, held) == "OK"


def test_words_too_few_too_many_and_twice(settled):
    """ERR and what was expected, for every verb."""
    muster, held = settled
    here = (held["id"], held["token"])
    refused(muster, "ERR", ("TASK.SUBMIT",), ("TASK.SUBMIT", "mail"), ("TASK.SUBMIT", "mail", "x", "PRIORITY"),
            ("TASK.SUBMIT", "mail", "x", "y"), ("TASK.SUBMIT", "mail", "x", "PRIORITY", "1", "PRIORITY", "1"),
            ("TASK.SUBMIT", "mail", "x", "WAIT", "1"), ("TASK.CLAIM", "mail"), ("TASK.CLAIM",),
            ("TASK.CLAIM", "mail", "w1", "COUNT"), ("TASK.CLAIM", "mail", "w1", "5"),
            ("TASK.CLAIM", "mail", "w1", "NEXT"), ("TASK.BEAT", "w1"), ("TASK.BEAT", "w1", held["id"]),
            ("TASK.BEAT", "w1", *here, held["id"]), ("TASK.BEAT", "w1", *here, "LEASE"), ("TASK.DONE", held["id"]),
            ("TASK.DONE", *here, "RESULT"), ("TASK.DONE", *here, "NEXT", "NEXT"), ("TASK.DONE", *here, "x"),
            ("TASK.FAIL", *here, "boom"), ("TASK.FAIL", *here, "ERROR"), ("TASK.FAIL", *here, "RESULT", "x"),
            ("TASK.RELEASE", *here, "DELAY", "1"), ("TASK.RELEASE", held["id"]), ("TASK.CANCEL",),
            ("TASK.CANCEL", held["id"], held["id"]), ("TASK.RETRY",), ("TASK.GET",), ("TASK.GET", held["id"], "x"),
            ("TASK.PAUSE",), ("TASK.PAUSE", "mail", "x"), ("TASK.RESUME",), ("TASK.CONFIG",),
            ("TASK.CONFIG", "mail", "lease"), ("TASK.CONFIG", "mail", "colour", "red"), ("TASK.STATS", "mail", "x"),
            ("TASK.CONFIG", "mail", "lease", "x"), ("TASK.CONFIG", "mail", "retries", "-1"), ("TASK.LIST",))
    assert muster.ask("task.submit", "mail", "x", "priority", "3", "Retries", "2", "lease", "5S")[3] == "pending"
    assert done(muster, held) == "OK"


def test_settings_all_or_none(settled):
    """A CONFIG of which one word is wrong sets nothing of the rest either."""
    muster, _ = settled
    refused(muster, "ERR", ("TASK.CONFIG", "mail", "lease", "5s", "retries", "many"),
            ("TASK.CONFIG", "mail", "retries", "5", "max_tasks", "0"))
    assert muster.map("TASK.CONFIG", "mail")["own"] == []
    assert muster.map("TASK.CONFIG", "mail", "lease", "5s", "retries", "7")["own"] == ["lease", "retries"]
    assert muster.map("TASK.CONFIG", "mail", "lease", "default", "retries", "default")["own"] == []


# ---- payloads ----

@pytest.mark.parametrize("protocol", ("2", "3"))
def test_payloads_come_back_byte_for_byte(muster, protocol):
    """Every byte value, line ends, NUL, what is no UTF-8, protocol and numbers as text: identical from GET and CLAIM,
    alone and in a batch, and so are results; in either protocol."""
    payloads = [*PAYLOADS, *(json.encode() for json in JSONS)]
    with muster.raw() as raw:
        assert raw.command("HELLO", protocol)

        def said(*words):
            reply = raw.command(*words)
            return reply if isinstance(reply, dict) else as_map(reply)

        def claimed(*words):
            return [item if isinstance(item, dict) else as_map(item)
                    for item in raw.command("TASK.CLAIM", "mail", "w1", *words)]
        ids = [said("TASK.SUBMIT", "mail", payload)[b"id"] for payload in payloads]
        for task, payload in zip(ids, payloads):
            found = said("TASK.GET", task)
            assert (found[b"payload"], found[b"size"]) == (payload, len(payload))
        got = claimed() + claimed("COUNT", 3) + claimed("COUNT", 100)
        assert [task[b"payload"] for task in got] == payloads
        for task, payload in zip(got, payloads):
            result = payload[:65536]
            assert raw.command("TASK.DONE", task[b"id"], task[b"token"], "RESULT", result) == "OK"
            assert said("TASK.GET", task[b"id"])[b"result"] == (result or None)
    recount(muster.stores)


def test_payloads_are_with_redis_as_they_are(muster, stores):
    """No encoding, no wrapping: the string in Redis is the payload."""
    for payload in JSONS:
        task = submit(muster, "mail", payload)
        assert stores.redis.get(key_of(stores, "mail", "payload", task)) == payload
        assert get(muster, task)["payload"] == payload == claim_one(muster, "mail")["payload"]


def test_an_empty_payload(muster, stores):
    """A task without a payload is a task; it has no key for one."""
    task = submit(muster, "mail", "")
    assert not stores.redis.exists(key_of(stores, "mail", "payload", task))
    assert get(muster, task)["size"] == 0 and claim_one(muster, "mail")["payload"] == ""
    recount(stores)


def test_payloads_in_the_books(make_muster, stores):
    """A payload, a result and an error reach MySQL as they are."""
    muster = make_muster()
    for n, payload in enumerate(PAYLOADS[:-1]):
        with muster.raw() as raw:
            task = as_map(text_of(raw.command("TASK.SUBMIT", f"q{n}", payload, "RETRIES", 0)))["id"]
            token = raw.command("TASK.CLAIM", f"q{n}", "w1")[0][3]
            raw.command("TASK.FAIL", task, token, "ERROR", payload)

    def written():
        rows = stores.sql("SELECT queue, payload FROM task")
        return len(rows) == len(PAYLOADS) - 1 and rows
    rows = wait_until(written, 20, "the tasks are in MySQL")
    kept = {text(row["queue"]): row["payload"] for row in rows}
    assert [kept[f"q{n}"] or b"" for n in range(len(PAYLOADS) - 1)] == list(PAYLOADS[:-1])


def test_a_payload_that_is_too_big_is_not_looked_into(make_muster, stores):
    """One TOOBIG for the command, whose bytes are read and thrown away, whatever commands they look like; the next
    command of the connection is answered, and what the bytes name is untouched."""
    muster = make_muster(config={"server": {"max_payload": "64k"}})
    victim = submit(muster, "mail", "victim")
    inside = encode("TASK.CANCEL", victim) + f"TASK.CANCEL {victim}\r\n".encode()
    for body in (inside * 5000, b"x" * 65536 + inside, b"\r\n" * 70000 + inside):
        before = tasks.still(stores)
        with muster.raw(30) as raw:
            sender = threading.Thread(target=raw.send, args=(
                encode("PING") + encode("TASK.SUBMIT", "mail", body) + encode("ECHO", "next"),))
            sender.start()
            assert raw.read() == "PONG"
            reply = raw.read()
            assert isinstance(reply, ErrorReply) and str(reply).startswith("TOOBIG "), reply
            assert raw.read() == b"next"
            sender.join()
            assert as_map(text_of(raw.command("TASK.GET", victim)))["status"] == "pending"
        assert not tasks.changed(before, tasks.still(stores))
    fits = submit(muster, "mail", "y" * 65000)
    assert get(muster, fits)["payload"] == "y" * 65000
    with muster.raw() as raw:
        raw.send(b"TASK.SUBMIT mail " + b"z" * 100000 + f"\r\nTASK.CANCEL {victim}x\r\n".encode())
        assert str(raw.read()).startswith("TOOBIG ")
    assert status(muster, victim) == "pending"


def test_lengths_that_are_none(muster):
    """A payload's length that is no number, or more than can be: an error, nothing is stored, nothing is set aside."""
    submit(muster, "mail")
    before, memory = tasks.still(muster.stores), muster.resident()
    for length in (b"-1", b"2147483648", b"4294967297", b"18446744073709551616", b"12abc", b"", b" 5", b"-0", b"1e3",
                   b"9" * 40):
        with muster.raw() as raw:
            raw.send(b"*3\r\n$11\r\nTASK.SUBMIT\r\n$4\r\nmail\r\n$" + length + b"\r\nhello\r\n")
            reply = raw.read()
            assert isinstance(reply, ErrorReply), (length, reply)
    assert muster.ask("PING") == "PONG" and muster.resident() - memory < 4096
    assert not tasks.changed(before, tasks.still(muster.stores))


def test_results_and_errors(make_muster):
    """A result over its limit is refused before anything happens; an error is text, and is mended and cut."""
    muster = make_muster(config={"task": {"max_result": "1k", "max_error": "64"}})
    submit(muster, "mail", "x", "RETRIES", 9)
    held = claim_one(muster, "mail")
    refused(muster, "TOOBIG", ("TASK.DONE", held["id"], held["token"], "RESULT", "r" * 1025),
            ("TASK.DONE", held["id"], held["token"], "RESULT", "r" * 1025, "NEXT"))
    for given, kept in ((b"plain", "plain"), (b"a|b\nc\0d", "a|b\nc\0d"), (b"\xff\xfeok", "\ufffd\ufffdok"),
                        (b"e" * 100, "e" * 64), ("é".encode() * 100, "é" * 32), (b"NEXT", "NEXT")):
        with muster.raw() as raw:
            raw.command("TASK.FAIL", held["id"], held["token"], "ERROR", given, "DELAY", "0")
        assert get(muster, held)["error"] == kept
        held = claim_one(muster, "mail")
    assert done(muster, held, "RESULT", "r" * 1024) == "OK" and get(muster, held)["result"] == "r" * 1024


# ---- limits of a queue ----

def test_a_full_queue_is_busy(muster, stores):
    """max_tasks counts every task of the queue in Redis, max_bytes their payloads; a repeat of a key is answered all
    the same, other queues and workers go on, and room heals it."""
    muster.map("TASK.CONFIG", "mail", "max_tasks", "3", "max_bytes", "2k")
    first = submit(muster, "mail", "a", "KEY", "k")
    submit(muster, "mail", "b" * 1500)
    refused(muster, "BUSY", ("TASK.SUBMIT", "mail", "c" * 600))
    submit(muster, "mail", "c" * 500, "DELAY", "1h")
    refused(muster, "BUSY", ("TASK.SUBMIT", "mail", ""), ("TASK.SUBMIT", "mail", "", "KEY", "other"))
    assert muster.map("TASK.SUBMIT", "mail", "z", "KEY", "k")["id"] == first
    submit(muster, "print")
    held = claim(muster, "mail", "w1", "COUNT", 5)
    assert len(held) == 2 and fail(muster, held[0], "DELAY", "0")["status"] == "pending"
    assert release(muster, held[1]) == "OK" and len(claim(muster, "mail", "w1", "COUNT", 5)) == 2
    muster.map("TASK.CONFIG", "mail", "max_tasks", "4", "max_bytes", "default")
    submit(muster, "mail", "d")
    recount(stores)


def test_queues_are_counted(make_muster, stores):
    """No more queues than queues_max in a partition: names made up without end do not fill Redis."""
    muster = make_muster(config={"task": {"queues_max": 2}, "redis": {"partitions": 1}})
    submit(muster, "a")
    submit(muster, "b")
    refused(muster, "BUSY", ("TASK.SUBMIT", "c", "x"), ("TASK.SUBMIT", "d", "x", "PRIORITY", "1"))
    assert claim(muster, "c") == [] and not stores.keys("*:queue_info:c")
    submit(muster, "a")


def test_an_empty_queue_makes_room_for_another(make_muster, stores):
    """When there are as many as there may be, those without a task and settings are forgotten, and no others."""
    muster = make_muster(config={"task": {"queues_max": 4, "keep": 0}, "redis": {"partitions": 1}})
    muster.map("TASK.CONFIG", "configured", "lease", "5s")
    assert muster.ask("TASK.PAUSE", "paused") == "OK"
    submit(muster, "full")
    submit(muster, "empty", "x", "DELAY", "1h")
    queues = {"configured", "paused", "full"}
    refused(muster, "BUSY", ("TASK.SUBMIT", "new", "x"), ("TASK.PAUSE", "new"), ("TASK.CONFIG", "new", "lease", "5s"))
    assert as_map(muster.ask("TASK.CONFIG", "new")) and not stores.keys("*:queue_info:new")
    muster.map("TASK.CANCEL", ids_in(stores, "empty", "delayed")[0])
    wait_until(lambda: not ids_in(stores, "empty", "cancelled"), 20, "its task has gone")
    assert muster.ask("TASK.PAUSE", "new") == "OK"
    known = {name.rsplit(":", 1)[1] for name in stores.keys("*:queue_info:*")}
    assert known == queues | {"new"} == redis_of(stores).smembers(stores.key(tag_of(stores, "new") + ":queues"))
    refused(muster, "BUSY", ("TASK.SUBMIT", "another", "x"))
    assert tasks.drain(muster, "full") == ["x"]
    recount(stores)


def test_a_claim_of_a_queue_that_nobody_knows(muster, stores):
    """Nothing, and nothing is made."""
    assert claim(muster, "nowhere") == [] and claim(muster, "nowhere", "w1", "COUNT", 100) == []
    assert not [name for name in stores.keys("*nowhere*") if ":waiting:" not in name]
    assert muster.ask("TASK.CLAIM", "nowhere", "w1", "WAIT", "1") == []


# ---- pause ----

def test_a_paused_queue_takes_and_gives_nothing(muster, stores):
    """While it is paused tasks are submitted, ended and cancelled; none is claimed, until it is resumed. A restart does
    not end the pause."""
    submit(muster, "mail", "a")
    held = claim_one(muster, "mail")
    submit(muster, "mail", "b")
    assert muster.ask("TASK.PAUSE", "mail") == muster.ask("TASK.PAUSE", "mail") == "OK"
    submit(muster, "mail", "c")
    assert claim(muster, "mail") == [] and muster.ask("TASK.CLAIM", "mail", "w1", "WAIT", "20") == []
    assert tasks.claims(done(muster, held, "NEXT")) == [] and status(muster, held) == "success"
    muster.restart()
    assert claim(muster, "mail") == [] and len(ids_in(stores, "mail", "queue")) == 2
    assert muster.ask("TASK.RESUME", "mail") == muster.ask("TASK.RESUME", "mail") == "OK"
    assert tasks.drain(muster, "mail") == ["b", "c"]


# ---- rights ----

def test_who_may_what(make_muster, tmp_path):
    """`task` submits and works, `read` looks, `admin` pauses and sets; each is refused the others'."""
    users = tmp_path / "users"
    users.write_text("".join(f"{name} {sha256(name.encode()).hexdigest()} {right}\n" for name, right in (
        ("worker", "task"), ("reader", "read"), ("boss", "admin"))), encoding="ascii")
    muster = make_muster(config={"server": {"users_file": users}})
    commands = {"task": (("TASK.SUBMIT", "mail", "x"), ("TASK.CLAIM", "mail", "w"), ("TASK.BEAT", "w", "0" * 12, "1"),
                         ("TASK.DONE", "0" * 12, "1"), ("TASK.FAIL", "0" * 12, "1"), ("TASK.RELEASE", "0" * 12, "1"),
                         ("TASK.CANCEL", "0" * 12), ("TASK.RETRY", "0" * 12)),
                "read": (("TASK.GET", "0" * 12), ("TASK.LIST", "mail"), ("TASK.STATS", "mail")),
                "admin": (("TASK.PAUSE", "mail"), ("TASK.RESUME", "mail"), ("TASK.CONFIG", "mail"))}
    for name, right in (("worker", "task"), ("reader", "read"), ("boss", "admin")):
        with muster.raw(30) as raw:
            assert raw.command("AUTH", name) == "OK"
            for needed, words in ((needed, words) for needed, some in commands.items() for words in some):
                reply = str(raw.command(*words))
                assert reply.startswith("NOPERM ") == (needed != right), (name, words, reply)


def test_what_a_journal_record_may_hold(muster, stores):
    """A worker, a key, an error with everything that separates records: the books say it as it was."""
    hostile = "a|b|c\n\r\0%s"
    submit(muster, "mail", hostile, "KEY", "k;:/\\,'\"", "RETRIES", 0)
    held = claim_one(muster, "mail", "w.1@host")
    fail(muster, held, "ERROR", hostile)
    rows = wait_until(lambda: stores.sql("SELECT worker, dedupe_key, error, payload FROM task"), 20, "a row")
    assert {name: text(value) for name, value in rows[0].items()} == {
        "worker": "w.1@host", "dedupe_key": "k;:/\\,'\"", "error": hostile, "payload": hostile}
