# SPDX-License-Identifier: MIT
"""What is read of tasks and queues: whole and byte for byte, in pages that stay right while tasks come and go, and
nothing or an error rather than a guess where Redis is damaged."""
import random
from collections import Counter

import pytest

from harness.attendance import as_map
from harness.muster import text_of
from harness.raw import encode
from harness.tasks import (BAND, ENDS, EPOCH, beat, claim, claim_one, done, fail, get, ids_in, key_of, listed, pipeline,
                           redis_ms, redis_of, refused, sequence_of, stats, submit)
from harness.wait import wait_until

MANY = 20_000
PLACES = ("ready", "delayed", "running", *ENDS)
BYTES = bytes(range(256)) + b"\r\n$3\r\n-ERR \x00\xff\xfe \xf0\x9f\x98\x80 *1\r\n"
NONE = {"not_before": None, "worker": None, "claimed": None, "deadline": None, "token": None, "retries": 0,
        "attempt": 1, "crashes": 0, "max_retries": None, "key": None, "cancel": 0, "finished": None, "error": None,
        "result": None}


def submitted_of(task):
    return EPOCH + sequence_of(task) // 125


def page(muster, queue, *words):
    cursor, items = muster.ask("TASK.LIST", queue, *words)
    return cursor, [as_map(item)["id"] for item in items]


def pages(muster, queue, *words, between=lambda: None):
    """The ids of a walk, page by page; between() is called after each."""
    cursor = None
    while cursor != "":
        cursor, ids = page(muster, queue, *words, *(("CURSOR", cursor) if cursor else ()))
        yield ids
        between()


def walk(muster, queue, *words, **options):
    return [task for ids in pages(muster, queue, *words, **options) for task in ids]


def ids_of(tasks):
    return [task["id"] for task in tasks]


def submit_many(muster, queue, count, words=lambda i: ()):
    """The ids of many tasks, in their order."""
    ids = []
    with muster.raw(60) as raw:
        for first in range(0, count, 500):
            replies = pipeline(raw, [("TASK.SUBMIT", queue, f"p{i}", *words(i))
                                     for i in range(first, min(first + 500, count))])
            ids += [as_map(reply)["id"] for reply in replies]
    return ids


# ---- TASK.GET ----

def test_a_task_from_its_submission_to_its_end(muster, stores):
    """Every field at every stage; null where there is none."""
    before = redis_ms(stores)
    task = submit(muster, "mail", "hello")
    assert get(muster, task) == {**NONE, "id": task, "queue": "mail", "status": "pending", "priority": 5, "size": 5,
                                 "submitted": submitted_of(task), "payload": "hello"}
    assert before <= submitted_of(task) <= redis_ms(stores)
    claimed = claim_one(muster, "mail", "w@1", "LEASE", "30s")
    running = get(muster, task)
    assert running == {**get(muster, task), "status": "running", "worker": "w@1", "token": claimed["token"],
                       "deadline": claimed["deadline"], "claimed": claimed["deadline"] - 30_000, "finished": None}
    later = fail(muster, claimed, "ERROR", "no luck", "DELAY", "10m")
    waiting = get(muster, task)
    assert waiting == {**running, "status": "pending", "deadline": None, "retries": 1, "attempt": 2, "error": "no luck",
                       "not_before": later["not_before"]}
    assert muster.ask("TASK.RETRY", task) == "OK"
    again = claim_one(muster, "mail", "w2")
    assert done(muster, again, "RESULT", "42") == "OK"
    ended = get(muster, task)
    assert ended == {**waiting, "status": "success", "worker": "w2", "token": again["token"], "not_before": None,
                     "claimed": ended["claimed"], "finished": ended["finished"], "result": "42"}
    assert ended["claimed"] <= ended["finished"] <= redis_ms(stores)


def test_what_a_task_was_given_at_its_submission(muster):
    task = submit(muster, "mail", "", "PRIORITY", 2, "RETRIES", 0, "KEY", "k1", "DELAY", "1h")
    found = get(muster, task)
    assert {**found, "not_before": None} == {**NONE, "id": task, "queue": "mail", "status": "pending", "priority": 2,
                                             "size": 0, "submitted": submitted_of(task), "payload": "",
                                             "max_retries": 0, "key": "k1"}
    assert 3_599_000 <= found["not_before"] - found["submitted"] <= 3_601_000


def test_one_that_is_to_be_cancelled_says_so(muster):
    running = submit(muster, "mail")
    claimed = claim_one(muster, "mail")
    muster.map("TASK.CANCEL", running)
    found = get(muster, running)
    assert (found["status"], found["cancel"], found["finished"]) == ("running", 1, None)
    assert fail(muster, claimed)["status"] == "cancelled"
    found = get(muster, running)
    assert (found["status"], found["deadline"]) == ("cancelled", None) and found["finished"]


@pytest.mark.parametrize("protocol", [2, 3])
def test_any_bytes_come_back(muster, protocol):
    """Payload and result hold every byte there is; so may the text that a queue's worker failed with."""
    with muster.raw() as raw:
        raw.command("HELLO", protocol)

        def fields(reply):
            return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))
        task = fields(raw.command("TASK.SUBMIT", "bin", BYTES))[b"id"]
        other = fields(raw.command("TASK.SUBMIT", "bin", b"\x00", "RETRIES", 0))[b"id"]
        for verb, word, text in (("TASK.DONE", "RESULT", BYTES[::-1]), ("TASK.FAIL", "ERROR", "é\t\"'|\\".encode())):
            claimed = fields(raw.command("TASK.CLAIM", "bin", "w")[0])
            raw.command(verb, claimed[b"id"], claimed[b"token"], word, text)
        first, second = fields(raw.command("TASK.GET", task)), fields(raw.command("TASK.GET", other))
        assert (first[b"payload"], first[b"size"], first[b"result"]) == (BYTES, len(BYTES), BYTES[::-1])
        assert (second[b"payload"], second[b"result"]) == (b"\x00", None)
        assert b"|\\" in second[b"error"]
        items = [fields(item) for item in raw.command("TASK.LIST", "bin")[1]]
        assert [item[b"id"] for item in items] == [task, other]
        assert not any({b"payload", b"result"} & item.keys() for item in items)


def test_many_gets_at_once_are_answered_in_order(muster):
    """More payload than one call of a script may carry: what is left over is asked for again."""
    tasks = {submit(muster, "big", f"{i:03}" * 40_000): i for i in range(40)}
    with muster.raw(60) as raw:
        replies = pipeline(raw, [("TASK.GET", task) for task in tasks] + [("TASK.GET", "0" * 12), ("PING",)])
    assert replies[-1] == "PONG" and replies[-2].startswith("UNKNOWN ")
    for (task, i), reply in zip(tasks.items(), replies):
        found = as_map(reply)
        assert (found["id"], found["payload"]) == (task, f"{i:03}" * 40_000)


def test_what_is_no_id_is_no_task(muster):
    task = submit(muster, "mail")
    for word in ("", "x", task[:-1], task + "0", task.upper() + "A", "-" * 12, " " + task[1:], "w" * 12,
                 task[:10] + "vv", "v" * 12, task[:4] + "\x00" + task[5:], "0" * 12):
        assert muster.ask("TASK.GET", word).startswith("UNKNOWN "), repr(word)
    assert muster.ask("TASK.GET").startswith("ERR ")


DAMAGE = {
    "the hash is a string": lambda r, k, t: (r.delete(k("task", t)), r.set(k("task", t), "x")),
    "the payload is a list": lambda r, k, t: (r.delete(k("payload", t)), r.rpush(k("payload", t), "x")),
    "the payload has gone": lambda r, k, t: r.delete(k("payload", t)),
    "the payload is another": lambda r, k, t: r.set(k("payload", t), "longer"),
    "no status": lambda r, k, t: r.hdel(k("task", t), "status"),
    "no queue": lambda r, k, t: r.hdel(k("task", t), "queue"),
    "no such status": lambda r, k, t: r.hset(k("task", t), "status", "asleep"),
    "no priority": lambda r, k, t: r.hdel(k("task", t), "priority"),
    "a priority of 11": lambda r, k, t: r.hset(k("task", t), "priority", 11),
    "retries of nothing": lambda r, k, t: r.hset(k("task", t), "retries", "many"),
    "in no place": lambda r, k, t: r.zrem(k("queue"), t),
    "another place": lambda r, k, t: r.hset(k("task", t), "status", "running"),
    "the place is a set": lambda r, k, t: (r.delete(k("queue")), r.sadd(k("queue"), t)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_task_is_corrupt(muster, stores, damage):
    task = submit(muster, "mail", "body")
    other = submit(muster, "other")

    def key(kind, rest=None):
        return key_of(stores, "mail", kind, rest)
    DAMAGE[damage](redis_of(stores), key, task)
    refused(muster, "CORRUPT", ("TASK.GET", task))
    assert get(muster, other)["id"] == other
    shown = muster.ask("TASK.LIST", "mail")
    if damage == "the place is a set":
        assert shown.startswith("CORRUPT ")
    elif not damage.startswith("the payload"):
        assert shown == ["", []]


# ---- TASK.LIST ----

@pytest.fixture(name="places")
def fixture_places(muster, stores):
    """Three tasks at each place of a queue, of priorities 2, 5 and 9; {place: ids in the order of the walk}."""
    found = {}
    priorities = (9, 5, 2)

    def three(*words):
        return [submit(muster, "q", "x", "PRIORITY", priority, *words) for priority in priorities]

    for end, verb in (("success", done), ("failed", fail)):
        three("RETRIES", 0)
        tasks = claim(muster, "q", "w1", "COUNT", 3)
        for task in tasks:
            verb(muster, task)
        found[end] = ids_of(tasks)
    found["cancelled"] = three()
    for task in found["cancelled"]:
        muster.map("TASK.CANCEL", task)
    three("RETRIES", 0, "LEASE", "100ms")
    found["timeout"] = ids_of(claim(muster, "q", "w9", "COUNT", 3))
    for task in found["timeout"]:
        wait_until(lambda task=task: get(muster, task)["status"] == "timeout", 15, "the lease runs out")
    three()
    found["running"] = []
    for worker, lease in (("w1", "10m"), ("w1", "20m"), ("w2", "30m")):
        found["running"] += ids_of(claim(muster, "q", worker, "LEASE", lease))
    found["delayed"] = [submit(muster, "q", "x", "PRIORITY", priority, "DELAY", f"{hours}h")
                        for priority, hours in zip(priorities, (1, 2, 3))]
    found["ready"] = three()[::-1]
    for end in ENDS:  # those of one millisecond in the order of their ids
        assert set(found[end]) == set(ids_in(stores, "q", end))
        found[end] = ids_in(stores, "q", end)
    return {place: found[place] for place in PLACES}


def test_the_walk_goes_from_place_to_place(muster, places):
    """All of it in pages of every size; and each place alone."""
    expected = [task for ids in places.values() for task in ids]
    for count in (1, 2, 3, 4, 7, 20, 21, 22, 1000):
        found = list(pages(muster, "q", "COUNT", count))
        assert [task for ids in found for task in ids] == expected
        assert [len(ids) for ids in found[:-1]] == [count] * (len(found) - 1) and found[-1]
    for status, ids in {**places, "pending": places["ready"] + places["delayed"]}.items():
        assert walk(muster, "q", "STATUS", status.upper()) == ids == walk(muster, "q", "STATUS", status, "COUNT", 1)


def test_items_are_what_get_says(muster, places):
    for item in listed(muster, "q", "COUNT", 5):
        whole = get(muster, item["id"])
        assert item == {field: value for field, value in whole.items() if field not in ("payload", "result")}
    assert len(places) == 7


@pytest.mark.parametrize("status", ["ready", "delayed", "running", "success", "failed", "timeout", "cancelled", None])
def test_filters(muster, places, status):
    """By priority, by time of submission and by worker, alone and together: as a look at each task finds them."""
    everything = listed(muster, "q")
    where = {task: place for place, ids in places.items() for task in ids}
    times = [task["submitted"] for task in everything]
    words = ("STATUS", status) if status else ()
    for low, high in ((1, 10), (2, 2), (3, 9), (5, 5), (6, 8), (10, 10)):
        for first, last in ((0, max(times)), (min(times), min(times)), (sorted(times)[4], sorted(times)[-4]),
                            (max(times), max(times) + 10_000), (1, 1000)):
            expected = [task["id"] for task in everything if low <= task["priority"] <= high and
                        first <= task["submitted"] <= last and status in (None, where[task["id"]])]
            for count in (1, 100):
                assert expected == walk(muster, "q", *words, "COUNT", count, "PRIORITY", low, high,
                                        "SUBMITTED", f"{first}" if first > 10**11 else 0, last if last > 10**11 else 1)
    for worker in ("w1", "w2", "nobody"):
        places_of = (status,) if status else ("running",)
        expected = [task["id"] for task in everything if task["worker"] == worker and where[task["id"]] in places_of]
        assert walk(muster, "q", *words, "WORKER", worker) == expected
        assert walk(muster, "q", *words, "WORKER", worker, "COUNT", 1) == expected


def test_times_may_be_given_as_everywhere(muster):
    task = submit(muster, "q")
    second = submitted_of(task) // 1000
    minute = "2027-01-01T00:00:00+02:00"
    assert walk(muster, "q", "SUBMITTED", second, second + 1) == [task]
    assert walk(muster, "q", "SUBMITTED", "2026-01-01T00:00:00Z", minute) == ([task] if second < 1798754400 else [])
    assert walk(muster, "q", "SUBMITTED", second + 1, "9999-12-31T23:59:59Z") == []
    exact = submitted_of(task)
    assert walk(muster, "q", "SUBMITTED", exact, exact) == [task]
    assert walk(muster, "q", "SUBMITTED", exact + 1, exact + 1) == []
    assert walk(muster, "q", "SUBMITTED", exact - 1, exact - 1) == []


def test_bad_questions(muster):
    submit(muster, "q")
    refused(muster, "ERR", *[("TASK.LIST", "q", *words.split()) for words in (
        "STATUS", "STATUS asleep", "STATUS ready STATUS ready", "PRIORITY", "PRIORITY 1", "PRIORITY 0 5",
        "PRIORITY 1 11", "PRIORITY 5 4", "PRIORITY 1.5 2", "PRIORITY 1 2 PRIORITY 1 2", "SUBMITTED 1", "SUBMITTED 2 1",
        "SUBMITTED x 1", "SUBMITTED 1 x", "SUBMITTED -1 1", "WORKER a/b", "COUNT 0", "COUNT 1001", "COUNT x", "CURSOR",
        "BOGUS", "CURSOR 1", "CURSOR ready", "CURSOR ready:1:2:30:0000", "CURSOR :::::", "CURSOR 0")])
    refused(muster, "ERR", ("TASK.LIST",), ("TASK.LIST", ""), ("TASK.LIST", "a b"), ("TASK.LIST", "x" * 65),
            ("TASK.LIST", "q", "CURSOR", b"\x00" * 5), ("TASK.LIST", "q", "WORKER", ""))
    assert muster.ask("TASK.LIST", "never") == ["", []]
    assert muster.ask("TASK.LIST", "q", "CURSOR", "", "STATUS", "failed") == ["", []]


def test_a_cursor_is_good_for_its_own_question_only(muster):
    submit_many(muster, "q", 5)
    submit_many(muster, "q2", 5)
    cursor, _ = page(muster, "q", "COUNT", 2)
    assert cursor
    refused(muster, "ERR", ("TASK.LIST", "q2", "CURSOR", cursor),
            *[("TASK.LIST", "q", "CURSOR", cursor, *words.split())
              for words in ("STATUS ready", "PRIORITY 1 9", "WORKER w", "SUBMITTED 0 1790000000")],
            *[("TASK.LIST", "q", "CURSOR", changed)
              for changed in (cursor[:-1], cursor[1:], cursor + "0", cursor.upper(),
                              *[cursor[:i] + ("7" if cursor[i] != "7" else "8") + cursor[i + 1:]
                                for i in range(len(cursor))])])
    assert page(muster, "q", "CURSOR", cursor, "COUNT", 1000)[1] == walk(muster, "q")[2:]


# ---- long walks ----

@pytest.fixture(name="many")
def fixture_many(muster):
    """20,000 ready tasks of mixed priorities; their ids in the order of claims."""
    ids = submit_many(muster, "big", MANY, lambda i: ("PRIORITY", i * 7 % 10 + 1))
    assert len(set(ids)) == MANY
    order = {task: (i * 7 % 10 + 1, i) for i, task in enumerate(ids)}
    return sorted(ids, key=order.get)


@pytest.mark.timeout(300)
def test_a_walk_over_many_while_others_come_and_go(muster, many):
    """What stays in its place is seen once, in its order; what comes in behind the walk does not keep it going."""
    rng = random.Random(4)
    gone = set()

    def change():
        """Half of the changes are just where the walk is."""
        for task in rng.sample(many, 5) + [walked[-1]]:
            if task not in gone:
                muster.map("TASK.CANCEL", task)
                gone.add(task)
        submit_many(muster, "big", 400, lambda i: ("PRIORITY", rng.randint(1, 10)))
    walked, seen = [], []
    for ids in pages(muster, "big", "COUNT", 1000, "STATUS", "ready"):
        walked += ids
        seen.append(len(ids))
        change()
    assert len(walked) == len(set(walked))
    assert [task for task in many if task not in gone] == [task for task in walked if task not in gone]
    assert set(walked) <= set(many) and max(seen) <= 1000 and len(seen) < 200


@pytest.mark.timeout(300)
def test_pages_do_not_hold_redis_up(muster, stores, many):
    """However long the walk and whatever the filter: a bounded piece of work a call. What a script calls is counted: a
    time would be that of a busy machine."""
    server = stores.redis
    walks = {"all": (), "one priority": ("PRIORITY", 7, 7), "nothing of it": ("SUBMITTED", 1, 2),
             "by worker": ("STATUS", "ready", "WORKER", "w1")}
    expected = {"all": MANY, "one priority": MANY // 10, "nothing of it": 0, "by worker": 0}
    for name, words in walks.items():
        server.config_resetstat()
        count, calls = 0, 0
        for ids in pages(muster, "big", "COUNT", 1000, *words):
            count, calls = count + len(ids), calls + 1
        assert count == expected[name]
        spent = Counter({command.removeprefix("cmdstat_"): found["calls"]
                         for command, found in server.info("commandstats").items()})
        assert spent["hmget"] <= 300 * calls and calls <= MANY / 300 + 2, (name, calls, spent)
        assert sum(spent[command] for command in ("zrange", "zcount", "zscore", "zrank")) <= 50 * calls
    assert many


@pytest.mark.timeout(300)
def test_a_walk_over_what_runs_and_is_kept_alive(muster, many):
    """Heartbeats move tasks towards the end of the walk while it goes on: none is missed, and it ends."""
    claimed = []
    with muster.raw(60) as raw:
        asked = [("TASK.CLAIM", "big", f"w{i % 3}", "COUNT", 100, "LEASE", "30m") for i in range(20)]
        for reply in pipeline(raw, asked):
            claimed += [as_map(item) for item in reply]
    rng = random.Random(7)
    walked = []
    for ids in pages(muster, "big", "STATUS", "running", "COUNT", 150):
        walked += ids
        beat(muster, "w0", *rng.sample(claimed, 100))
    assert set(walked) == {task["id"] for task in claimed}
    by_worker = [walk(muster, "big", "WORKER", f"w{i}", "COUNT", 70) for i in range(3)]
    assert Counter(task for ids in by_worker for task in ids) == Counter(task["id"] for task in claimed)
    assert len(claimed) == 2000 and {task["id"] for task in claimed} <= set(many)


def test_a_worker_of_many_and_a_worker_of_few(muster, stores):
    """A small set of a worker is read, a big one is looked for among all that runs: the same list either way, also when
    it changes from one to the other between two pages."""
    ids = submit_many(muster, "q", 700)
    claims = []
    for worker in ("big", "small", "big", "big", "small", "big", "big"):
        claims += [(worker, task) for task in claim(muster, "q", worker, "COUNT", 100, "LEASE", "10m")]
    submit(muster, "q2")
    claim_one(muster, "q2", "small")
    expected = {name: [task["id"] for worker, task in claims if worker == name] for name in ("big", "small")}
    assert [len(expected[name]) for name in ("big", "small")] == [500, 200] and len(ids) == 700
    for name, tasks in expected.items():
        assert walk(muster, "q", "WORKER", name, "COUNT", 90) == sorted(
            tasks, key=lambda task: (redis_of(stores).zscore(key_of(stores, "q", "lease"), task), task))
    order = walk(muster, "q", "WORKER", "big")
    cursor, first = page(muster, "q", "WORKER", "big", "COUNT", 100)
    dropped = order[150:390]
    for worker, task in claims:
        if task["id"] in dropped:
            assert (worker, done(muster, task)) == ("big", "OK")
    rest = page(muster, "q", "WORKER", "big", "COUNT", 1000, "CURSOR", cursor)[1]
    assert first + rest == [task for task in order if task not in dropped]


def test_a_walk_through_entries_of_one_score(muster, stores):
    """Thousands of them, in small pages; and the entry that the cursor names may have gone."""
    ids = submit_many(muster, "q", 3000, lambda i: ("DELAY", "1h"))
    delayed = key_of(stores, "q", "delayed")
    redis_of(stores).zadd(delayed, {task: 2 ** 52 for task in ids})
    assert walk(muster, "q", "COUNT", 97) == ids
    walked = []
    for part in pages(muster, "q", "COUNT", 97, between=lambda: redis_of(stores).zrem(delayed, walked[-1])):
        walked += part
    assert walked == ids


def test_a_task_that_moves_on_is_seen_later(muster):
    """Places are walked in the order in which tasks go through them."""
    ids = submit_many(muster, "q", 50)
    cursor, first = page(muster, "q", "COUNT", 10)
    assert first == ids[:10]
    for task in claim(muster, "q", "w", "COUNT", 30):
        if task["id"] != ids[29]:
            done(muster, task)
    rest = []
    while cursor:
        cursor, part = page(muster, "q", "COUNT", 10, "CURSOR", cursor)
        rest += part
    assert set(first + rest) == set(ids)


# ---- a queue that ages ----

def test_priorities_of_a_queue_that_has_aged(muster, stores):
    """A task that has gone up is where it will be claimed, and is listed by its own priority; also when the queue does
    not age any more."""
    old = [submit(muster, "q", "x", "PRIORITY", priority) for priority in (6, 9)]
    assert as_map(muster.ask("TASK.CONFIG", "q", "age_after", "300ms"))
    ready = key_of(stores, "q", "queue")

    def aged():
        return all(redis_of(stores).zscore(ready, task) < 2 * BAND for task in old)
    wait_until(aged, 30, "both have come up")
    assert as_map(muster.ask("TASK.CONFIG", "q", "age_after", "default"))
    young = submit(muster, "q", "x", "PRIORITY", 6)
    assert walk(muster, "q") == [*old, young]
    assert walk(muster, "q", "PRIORITY", 6, 6) == [old[0], young] == walk(muster, "q", "PRIORITY", 6, 6, "COUNT", 1)
    assert walk(muster, "q", "PRIORITY", 1, 5) == [] and walk(muster, "q", "PRIORITY", 7, 10) == [old[1]]
    assert stats(muster, "q")["total_aged"] > 0


# ---- damage ----

def test_what_is_no_task_is_not_listed(muster, stores):
    """Entries that are nothing, in pages of one and of many: they are passed over and the walk ends."""
    good = submit_many(muster, "q", 20)
    client, ready = redis_of(stores), key_of(stores, "q", "queue")
    junk = ["", "x", "\x00\x01", "a:b|c", "ü" * 300, " " * 12, "ZZZZZZZZZZZZ", good[0].upper() + "A", "v" * 12,
            *[f"{i:010}00" for i in range(700)]]
    client.zadd(ready, {member: 5 * BAND + i for i, member in enumerate(junk)})
    client.zadd(ready, {"between": 5 * BAND + sequence_of(good[5]), "half": 5 * BAND + 0.5, "inf": "inf", "-": "-inf"})
    client.zadd(key_of(stores, "q", "delayed"), {good[3]: 12345, "inf": "inf", "far": 1e300})
    client.zadd(key_of(stores, "q", "lease"), {good[4]: 1, "x" * 5000: 2.5})
    for count in (1, 7, 1000):
        assert walk(muster, "q", "COUNT", count) == [*good, good[3]]


def test_a_place_of_another_type(muster, stores):
    tasks = submit_many(muster, "q", 3)
    redis_of(stores).set(key_of(stores, "q", "lease"), "x")
    refused(muster, "CORRUPT", ("TASK.LIST", "q"), ("TASK.LIST", "q", "STATUS", "running"))
    assert walk(muster, "q", "STATUS", "pending") == tasks
    redis_of(stores).set(key_of(stores, "q", "worker", "w"), "x")
    refused(muster, "CORRUPT", ("TASK.LIST", "q", "WORKER", "w"))
    found = stats(muster, "q")
    assert (found["ready"], found["running"], found["success"]) == (3, None, 0)


# ---- TASK.STATS ----

def test_stats_of_a_queue(muster, places):
    found = stats(muster, "q")
    assert [found[place] for place in PLACES] == [3] * 7
    assert found == {**found, "queue": "q", "waiting": 0, "paused": 0, "bytes": 21, "total_submitted": 21,
                     "total_success": 3, "total_failed": 3, "total_timeout": 3, "total_cancelled": 3,
                     "total_dropped": 0, "oldest": submitted_of(places["ready"][0])}
    assert muster.ask("TASK.PAUSE", "q") == "OK" and stats(muster, "q")["paused"] == 1
    empty = stats(muster, "never")
    assert (empty.pop("queue"), empty.pop("oldest"), set(empty.values())) == ("never", None, {0})
    refused(muster, "ERR", ("TASK.STATS", ""), ("TASK.STATS", "a b"), ("TASK.STATS", "q", "COUNT"),
            ("TASK.STATS", "q", "COUNT", 1), ("TASK.STATS", "COUNT", 0), ("TASK.STATS", "CURSOR", "x"),
            ("TASK.STATS", "CURSOR", "0"), ("TASK.STATS", "CURSOR", "48:q"), ("TASK.STATS", "CURSOR", "0:"),
            ("TASK.STATS", "CURSOR", "-1:q"), ("TASK.STATS", "CURSOR", "0:a b"))


def queues(muster, *words, between=lambda: None):
    found, cursor = [], None
    while cursor != "":
        cursor, items = muster.ask("TASK.STATS", *words, *(("CURSOR", cursor) if cursor else ()))
        found.append([as_map(item) for item in items])
        between()
    return found


@pytest.mark.timeout(300)
def test_stats_of_all_queues(muster):
    """Each once, in pages of any size, also while queues come in; of many in one partition too."""
    assert muster.ask("TASK.STATS") == ["", []]
    names = [f"q{i}" for i in range(300)] + ["x" * 64, "7", "8", "9"]
    with muster.raw(60) as raw:
        pipeline(raw, [("TASK.SUBMIT", name, "x", "PRIORITY", 3) for name in names + names[:10]])
    for count in (1, 7, 100, 1000):
        found = queues(muster, "COUNT", count)
        assert all(len(part) <= count for part in found)
        flat = [item for part in found for item in part]
        assert Counter(item["queue"] for item in flat) == Counter(names)
        assert {item["queue"]: item["ready"] for item in flat} == {name: 1 + (name in names[:10]) for name in names}
    fresh = iter(range(10_000))
    found = queues(muster, "COUNT", 20, between=lambda: [submit(muster, f"new{next(fresh)}") for _ in range(3)])
    counted = Counter(item["queue"] for part in found for item in part)
    assert set(counted.values()) == {1} and set(names) <= counted.keys()
    assert all(item == stats(muster, item["queue"]) for item in found[0])


def test_a_damaged_set_of_queues(muster, stores):
    submit(muster, "q")
    client = redis_of(stores)
    names = key_of(stores, "q", "queues").removesuffix(":q")
    client.sadd(names, "a b", "x" * 65, "\x00")
    assert [item["queue"] for part in queues(muster) for item in part] == ["q"]
    client.set(key_of(stores, "q", "waiting"), "x")
    assert stats(muster, "q")["waiting"] is None
    client.set(names, "x")
    refused(muster, "CORRUPT", ("TASK.STATS",))
    assert stats(muster, "q")["ready"] == 1
    client.set(key_of(stores, "q", "queue_info"), "x")
    found = stats(muster, "q")
    assert (found["ready"], found["bytes"], found["total_submitted"], found["paused"]) == (1, None, None, None)


# ---- faults ----

def test_redis_is_lost_under_a_question(make_muster, intact):
    """Each is answered, by an error; what was gathered of many queues is dropped."""
    muster = make_muster(config={"redis": {"timeout": "500ms"}})
    tasks = submit_many(muster, "q", 20)
    submit_many(muster, "q2", 1)
    questions = [("TASK.STATS",), ("TASK.STATS", "q"), ("TASK.LIST", "q"), *[("TASK.GET", task) for task in tasks[:2]]]
    before = [muster.ask(*words) for words in questions]
    raws = [muster.raw(30) for _ in questions]
    intact.pause("redis")
    for raw, words in zip(raws, questions):
        raw.send(encode(*words))
    for raw, words in zip(raws, questions):
        assert text_of(raw.read()).startswith("UNAVAILABLE "), words
        assert text_of(raw.command(*words)).startswith(("UNAVAILABLE ", "NOTREADY ")), words
        raw.close()
    intact.resume("redis")
    wait_until(lambda: isinstance(muster.ask("TASK.GET", tasks[0]), list), 20, "service resumes")
    assert [muster.ask(*words) for words in questions] == before


def test_scripts_are_lost(muster, stores):
    """A script whose text Redis has forgotten is sent again; no answer shows it."""
    tasks = submit_many(muster, "q", 50)
    for _ in range(10):
        stores.redis.script_flush()
        assert get(muster, tasks[0])["id"] == tasks[0]
        stores.redis.script_flush()
        assert walk(muster, "q", "COUNT", 30) == tasks
        stores.redis.script_flush()
        assert stats(muster, "q")["ready"] == 50
