# SPDX-License-Identifier: MIT
"""What becomes of tasks in MySQL, and what is told of their ends: all of it, whatever breaks, and nothing twice."""
import subprocess
from collections import Counter
from datetime import datetime, timezone

import pytest

from harness.attendance import as_map, failures, locked, ms_of, pipelined, text, wait_quiet
from harness.muster import Muster
from harness.proxy import Proxy
from harness.tasks import (TaskNotices, await_task, beat, bytes_client, claim, claim_one, done, dumps, fail, get,
                           ids_in, redis_ms, release, submit, tag_of, wait_gone)
from harness.wait import wait_until

INSTANTS = ("submitted", "claimed", "finished", "updated", "at", "not_before")


def readable(row):
    return {name: ms_of(value) if name in INSTANTS else text(value) for name, value in row.items()}


def rows(stores, queue):
    """The rows of `task` of a queue: {id: row}, instants as unix ms."""
    found = [readable(row) for row in stores.sql("SELECT * FROM task WHERE queue = %s", (queue,))]
    return {row["id"]: row for row in found}


def wait_status(stores, task, status):
    def statuses():
        return [text(found["status"]) for found in stores.sql("SELECT status FROM task WHERE id = %s", (task,))]
    wait_until(lambda: statuses() == [status], 20, f"task {task} is in MySQL as {status}")


def row_of(stores, task):
    found, = stores.sql("SELECT * FROM task WHERE id = %s", (task,))
    return found


def events(stores, task):
    return [readable(row) for row in
            stores.sql("SELECT * FROM task_event WHERE task = %s ORDER BY journal_ref", (task,))]


def dump(stores):
    return {table: stores.sql(f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("task", "task_event")}


def wait_rows(stores, queue, count, deadline=60):
    def there():
        found, = stores.sql("SELECT COUNT(*) AS n FROM task WHERE queue = %s", (queue,))
        assert found["n"] == count, found["n"]
        return True
    wait_until(there, deadline, f"{count} tasks of {queue} are in MySQL")


def run(muster, queue, count, worker="w1"):
    """Submits and completes so many tasks; their ids."""
    made = []
    for first in range(0, count, 100):
        made += [submit(muster, queue, f"n{first + n}") for n in range(min(100, count - first))]
        for task in claim(muster, queue, worker, "COUNT", 100):
            assert done(muster, task) == "OK"
    return made


def part_key(stores, queue, kind):
    """The full name of a key of a queue's partition: its journal, its cursor."""
    return stores.key(f"{tag_of(stores, queue)}:{kind}")


def plant(stores, queue, *records):
    """Records as a script would have journalled them, in one entry."""
    name = part_key(stores, queue, "journal")
    fields = [word for record in records for word in ("e", record)]
    stores.redis.execute_command("XADD", name, "*", *fields)


def work_date(unix_ms):
    """Of an instant, as the tests' daemons are configured."""
    return str(datetime.fromtimestamp(unix_ms / 1000 - 4 * 3600, timezone.utc).date())


# ---- rows ----

def test_every_field_arrives(muster, stores):
    """A success with its result, a failure with error and payload, byte by byte."""
    anything = bytes(range(256))
    with muster.raw() as raw:
        won = as_map(raw.command("TASK.SUBMIT", "mail", anything, "PRIORITY", "2", "KEY", "order:7"))[b"id"].decode()
        lost = as_map(raw.command("TASK.SUBMIT", "mail", anything, "RETRIES", "0"))[b"id"].decode()
        first, second = (as_map(item) for item in raw.command("TASK.CLAIM", "mail", "w.1@host", "COUNT", "2"))
        assert raw.command("TASK.DONE", won, first[b"token"], "RESULT", anything) == "OK"
        assert isinstance(raw.command("TASK.FAIL", lost, second[b"token"], "ERROR", "it's \\ broken: é"), list)
    wait_rows(stores, "mail", 2)
    told = {task: get(muster, task) for task in (won, lost)}
    row = row_of(stores, won)
    assert (row["result"], row["error"], row["payload"]) == (anything, None, None)
    found = readable(row)
    assert {name: found[name] for name in ("status", "priority", "submitted", "claimed", "finished", "worker", "token",
                                           "retries", "crashes", "dedupe_key")} == {
        "status": "success", "priority": 2, "submitted": told[won]["submitted"], "claimed": told[won]["claimed"],
        "finished": told[won]["finished"], "worker": "w.1@host", "token": int(told[won]["token"]), "retries": 0,
        "crashes": 0, "dedupe_key": "order:7"}
    assert found["submitted"] <= found["claimed"] <= found["finished"] == found["updated"]
    assert str(row["work_date"]) == work_date(found["finished"])
    row = row_of(stores, lost)
    assert (row["result"], row["error"], row["payload"]) == (None, "it's \\ broken: é".encode(), anything)
    assert readable(row)["status"] == "failed" and not events(stores, won)
    event, = events(stores, lost)
    assert (event["event"], event["error"], event["claimed"], event["worker"], event["at"]) == (
        "failed", "it's \\ broken: é", told[lost]["claimed"], "w.1@host", told[lost]["finished"])


def test_the_whole_way_of_a_task(muster, stores):
    """Released, failed, timed out, brought back, done: an event each in their order, and one row that follows."""
    task = submit(muster, "mail", "body", "RETRIES", 2)
    assert release(muster, claim_one(muster, "mail", "w1")) == "OK"
    fail(muster, claim_one(muster, "mail", "w2"), "ERROR", "one", "DELAY", "0.05")
    claimed = await_task(muster, "mail", "w3", "LEASE", "0.1")
    wait_gone(stores, "mail", claimed)
    claimed = claim_one(muster, "mail", "w4", "LEASE", "0.1")
    wait_gone(stores, "mail", claimed)
    wait_rows(stores, "mail", 1)
    row = rows(stores, "mail")[task]
    assert (row["status"], row["retries"], row["crashes"], row["worker"], row["payload"]) == (
        "timeout", 2, 2, "w4", "body")
    failure, = stores.sql("SELECT * FROM task_failures")
    assert (text(failure["task"]), failure["error"], failure["payload_bytes"]) == (task, "the lease ran out", 4)

    assert muster.ask("TASK.RETRY", task) == "OK"
    wait_status(stores, task, "pending")
    assert rows(stores, "mail")[task]["finished"] is None and not stores.sql("SELECT * FROM task_failures")
    assert done(muster, claim_one(muster, "mail", "w5"), "RESULT", "sent") == "OK"
    wait_status(stores, task, "success")
    row = rows(stores, "mail")[task]
    assert (row["retries"], row["crashes"], row["worker"], row["result"], row["error"], row["payload"]) == (
        0, 0, "w5", "sent", None, None)
    found = events(stores, task)
    assert [(e["event"], e["worker"], e["retries"], e["crashes"]) for e in found] == [
        ("released", "w1", 0, 0), ("retry", "w2", 1, 0), ("expired", "w3", 2, 1), ("timeout", "w4", 2, 2),
        ("retried", "w4", 0, 0)]
    assert found[1]["error"] == "one" and found[1]["not_before"] >= found[1]["at"] + 50
    assert [e["at"] for e in found] == sorted(e["at"] for e in found)


def test_reports(muster, stores):
    """The views count what happened."""
    run(muster, "mail", 3)
    submit(muster, "mail", "x", "RETRIES", 1)
    fail(muster, claim_one(muster, "mail"), "DELAY", "0")
    fail(muster, claim_one(muster, "mail"), "ERROR", "no such host")
    cancelled = submit(muster, "mail", "y")
    assert muster.map("TASK.CANCEL", cancelled)["status"] == "cancelled"
    submit(muster, "post", "z")
    assert release(muster, claim_one(muster, "post")) == "OK"
    assert done(muster, claim_one(muster, "post")) == "OK"
    wait_rows(stores, "mail", 5)
    wait_rows(stores, "post", 1)
    daily = {text(row["queue"]): row for row in stores.sql("SELECT * FROM task_daily")}
    assert {name: int(daily["mail"][name]) for name in ("ended", "success", "failed", "timeout", "cancelled")} == {
        "ended": 5, "success": 3, "failed": 1, "timeout": 0, "cancelled": 1}
    took = daily["mail"]
    assert 0 <= took["wait_ms_mean"] <= took["wait_ms_max"] < 60000
    assert 0 <= took["run_ms_mean"] <= took["run_ms_max"] < 60000
    failure, = stores.sql("SELECT * FROM task_failures")
    assert (text(failure["queue"]), failure["status"], failure["retries"], failure["error"]) == (
        "mail", "failed", 1, "no such host")
    again = {text(row["queue"]): (row["tasks"], row["retries"], row["expired"], row["released"], row["brought_back"])
             for row in stores.sql("SELECT * FROM task_retries")}
    assert again == {"mail": (1, 1, 0, 0, 0), "post": (1, 0, 0, 1, 0)}


# ---- what can't be written, or only with pains ----

RECORD = "K|{change}|{id}|mail|{priority}|0|0|7|w1|-|1796000001000|1796000002000|-|0|4|3|boomabc"


def test_more_than_one_statement_may_hold(muster, stores):
    """Payloads that together are over the server's packet size, of bytes that take twice their room as text."""
    first, = run(muster, "mail", 1)
    ids = [f"{n:010d}{first[10:]}" for n in range(20)]
    payload = bytes(range(256)) * 2800
    head = RECORD.format(change="failed", id="{id}", priority=5).removesuffix("0|4|3|boomabc")
    plant(stores, "mail", *(f"{head.format(id=task)}0|0|{len(payload)}|".encode() + payload for task in ids))
    wait_rows(stores, "mail", 21)
    found = stores.sql("SELECT payload FROM task WHERE status = 'failed'")
    assert len(found) == 20 and all(row["payload"] == payload for row in found) and not failures(muster)


def test_rows_that_mysql_refuses(muster, stores):
    """They are kept as failures and stop nobody; with the cause gone a retry writes them."""
    good = run(muster, "mail", 3)
    wait_rows(stores, "mail", 3)
    other = "0000000000" + good[0][10:]
    bad = RECORD.format(change="failed", id=other, priority=1000)
    plant(stores, "mail", RECORD.format(change="failed", id=good[0], priority=5), bad, "K|success|nonsense",
          RECORD.format(change="failed", id=good[1], priority=5))
    wait_until(lambda: len(failures(muster)) == 2, 20, "two failures")
    refused, malformed = sorted(failures(muster), key=lambda row: row["reason"], reverse=True)
    assert (refused["kind"], refused["reason"]) == ("task", "refused") and other in refused["detail"]
    assert (malformed["kind"], malformed["reason"]) == ("task", "malformed")
    assert Counter(row["status"] for row in rows(stores, "mail").values()) == {"failed": 2, "success": 1}
    assert muster.ask("FAILURE.RETRY", "ALL") == 0
    stores.sql("ALTER TABLE task MODIFY priority SMALLINT UNSIGNED NOT NULL")
    assert muster.ask("FAILURE.RETRY", "ALL") == 1
    row = rows(stores, "mail")[other]
    assert (row["priority"], row["error"], row["payload"]) == (1000, "boom", "abc")
    assert [e["event"] for e in events(stores, other)] == ["failed"]
    assert [row["reason"] for row in failures(muster)] == ["malformed"]


def test_one_queue_that_has_everything(muster, stores):
    """The readers of a journal do not pause while more is there: 30,000 ends in one partition take seconds."""
    first, = run(muster, "mail", 1)
    assert muster.terminate() == 0
    ids = [f"{n:010d}{first[10:]}" for n in range(30000)]
    for n in range(0, len(ids), 250):
        plant(stores, "mail", *(RECORD.format(change="success", id=task, priority=5) for task in ids[n:n + 250]))
    muster.start()
    wait_quiet(muster, 20)
    wait_rows(stores, "mail", 30001)


# ---- faults ----

def test_mysql_stopped(make_muster, stores, intact):
    """MySQL stands still until the link is given up: tasks go on, stay in Redis, and all arrive once it is back."""
    muster = make_muster(config={"mysql": {"timeout": "1s"}})
    made = run(muster, "mail", 100)
    wait_rows(stores, "mail", 100)
    intact.pause("mariadb")
    made += run(muster, "mail", 1500)
    lost = [submit(muster, "mail", "x", "RETRIES", 0) for _ in range(50)]
    for task in claim(muster, "mail", "w1", "COUNT", 50):
        fail(muster, task, "ERROR", "e")
    assert len(ids_in(stores, "mail", "success")) >= 1500
    wait_until(lambda: int(muster.info()["ledger_retries"]) > 0, 20, "a window is given up")
    intact.resume("mariadb")
    wait_rows(stores, "mail", 1650, 90)
    assert {task: row["status"] for task, row in rows(stores, "mail").items()} == {
        **dict.fromkeys(made, "success"), **dict.fromkeys(lost, "failed")}
    counted, = stores.sql("SELECT COUNT(*) AS n FROM task_event")
    assert counted["n"] == 50


def test_killed_between_the_commit_and_the_cursor(make_muster, stores):
    """The rows are there, the cursor has not moved: the window is written again, and changes nothing."""
    with Proxy(stores.stack["redis"].port()) as proxy:
        muster = make_muster(config={"redis": {"port": proxy.port}})
        for _ in range(20):
            submit(muster, "mail", "x", "RETRIES", 0)
        running = claim(muster, "mail", "w1", "COUNT", 20)
        name = part_key(stores, "mail", "cursor")
        before = stores.redis.hget(name, "ledger")
        with locked(stores, "task", "task_event"):
            # At once, so that they are one entry, or two.
            pipelined(muster, [("TASK.FAIL", task["id"], task["token"], "ERROR", task["id"]) for task in running])
            wait_until(lambda: [1 for row in stores.sql("SHOW PROCESSLIST") if "INSERT INTO task" in str(row["Info"])],
                       20, "the ledger waits for the tables")
            proxy.pause()
        written = wait_until(lambda: dump(stores)["task"] and dump(stores), 20, "the commit")
        muster.kill9()
        proxy.cut()
        assert stores.redis.hget(name, "ledger") == before
        proxy.resume()
        muster.start()
        wait_rows(stores, "mail", 20)
        wait_quiet(muster)
        for table, found in dump(stores).items():
            assert len(found) == 20 and [row for row in found if row in written[table]] == written[table]
        assert {task: (row["status"], row["error"]) for task, row in rows(stores, "mail").items()} == {
            task["id"]: ("failed", task["id"]) for task in running}


def test_an_old_record_that_comes_again(muster, stores):
    """A daemon that has lost a partition may still write a window that another has passed: the row stays newer."""
    task = submit(muster, "mail", "x", "RETRIES", 0)
    fail(muster, claim_one(muster, "mail"))
    assert muster.ask("TASK.RETRY", task) == "OK"
    assert done(muster, claim_one(muster, "mail", "w2")) == "OK"
    wait_status(stores, task, "success")
    wait_quiet(muster)
    assert muster.terminate() == 0
    written = dump(stores)
    ms, number, index = (int(part) for part in events(stores, task)[0]["journal_ref"].split("-"))
    assert index == 0
    journal, cursor = part_key(stores, "mail", "journal"), part_key(stores, "mail", "cursor")
    stores.redis.delete(journal)
    stores.redis.xadd(journal, {"e": RECORD.format(change="failed", id=task, priority=5)}, f"{ms}-{number}")
    stores.redis.hset(cursor, "ledger", "0-0")
    muster.start()
    wait_until(lambda: stores.redis.hget(cursor, "ledger") == f"{ms}-{number}", 20, "it is written again")
    assert dump(stores) == written


def test_redis_comes_back_earlier(muster, stores):
    """As it was before its last writes, by a clock that is behind: what is written then has smaller ids than what the
    daemon has read, and arrives all the same."""
    run(muster, "mail", 1)
    wait_rows(stores, "mail", 1)
    wait_quiet(muster)
    journal = part_key(stores, "mail", "journal")
    names = [name for name in stores.keys(f"{tag_of(stores, 'mail')}:*") if not name.endswith(":owner")]
    before, client = dumps(stores, names), bytes_client(stores)
    client.execute_command("XSETID", journal, f"{redis_ms(stores) + 3600_000}-0")
    run(muster, "mail", 1)
    wait_rows(stores, "mail", 2)
    wait_quiet(muster)
    for name, (value, expires) in before.items():
        client.restore(stores.key(name), max(0, expires), value, replace=True)
    client.client_kill_filter(_type="normal", skipme=True)
    wait_until(lambda: isinstance(muster.ask("TASK.STATS", "mail"), list), 20, "the daemon is connected again")
    later, = run(muster, "mail", 1)
    assert float(client.xinfo_stream(journal)["last-generated-id"].split(b"-")[0]) < redis_ms(stores) + 60_000
    wait_status(stores, later, "success")


@pytest.mark.timeout(180)
def test_rabbitmq_cut_while_tasks_time_out(make_muster, stores):
    """Lines to RabbitMQ that are reset and refused, and a daemon killed on top: each end is told at least once, and a
    repeat has the ids of the first."""
    with Proxy(stores.stack["rabbitmq"].port()) as proxy:
        muster = make_muster(config={"amqp": {"port": proxy.port}})
        notices = TaskNotices(stores, "task.timeout.*")
        made = []
        for fault in (lambda: proxy.cut(reset=True), proxy.refuse, lambda: proxy.refuse(False),
                      lambda: proxy.cut_after(700), muster.kill9):
            for n in range(100):
                made.append(submit(muster, f"q{n % 4}", "x", "RETRIES", 0))
            for n in range(4):
                assert len(claim(muster, f"q{n}", "w1", "COUNT", 100, "LEASE", "0.1")) == 25
            fault()
        muster.start()
        expected = {(task, "timeout"): 1 for task in made}
        wait_until(lambda: notices.told() == expected, 60, "every end is told, with one id each")
        wait_quiet(muster)
        # The same message again is the same message: its id and its events.
        bodies = {}
        for _, properties, body in notices.messages:
            assert bodies.setdefault(properties.message_id, body["events"]) == body["events"]
        assert len({event["id"] for body in bodies.values() for event in body}) == len(made)


# ---- notices ----

def test_what_a_notice_says(muster, stores):
    notices = TaskNotices(stores, "task.#")
    task = submit(muster, "mail", "secret", "PRIORITY", 9, "KEY", "order:7", "RETRIES", 0)
    run_of = claim_one(muster, "mail", "w1")
    fail(muster, run_of, "ERROR", "no \"such\" host")
    event, = notices.wait_for("task.failed", 1)
    told = get(muster, task)
    (key, properties, body), = notices.messages
    assert key == "task.failed.mail" and properties.type == "task.failed" and properties.delivery_mode == 2
    assert {name: body[name] for name in body if name != "events"} == {
        "schema": 1, "type": "task.failed", "queue": "mail"}
    assert event.pop("id") and event == {
        "task": task, "at": told["finished"], "submitted": told["submitted"], "priority": 9, "retries": 0, "crashes": 0,
        "worker": "w1", "key": "order:7", "error": "no \"such\" host", "type": "task.failed", "queue": "mail"}


def one_of_each_end(muster, stores, queue):
    submit(muster, queue, "a")
    assert done(muster, claim_one(muster, queue)) == "OK"
    submit(muster, queue, "b", "RETRIES", 0)
    fail(muster, claim_one(muster, queue))
    submit(muster, queue, "c", "RETRIES", 0)
    wait_gone(stores, queue, claim_one(muster, queue, "w1", "LEASE", "0.1"))
    assert muster.map("TASK.CANCEL", submit(muster, queue, "d"))["status"] == "cancelled"
    submit(muster, queue, "e")
    running = claim_one(muster, queue)
    assert muster.map("TASK.CANCEL", running["id"])["status"] == "running"
    assert beat(muster, "w1", running)["cancel"] == [running["id"]] and release(muster, running) == "OK"


def test_which_ends_are_told(make_muster, stores):
    """As the configuration says, also after a reload; a word that is none is refused and changes nothing."""
    muster = make_muster()
    notices = TaskNotices(stores, "task.#")

    def told(queue):
        wait_quiet(muster)
        return Counter(e["type"].removeprefix("task.") for e in notices.events() if e["queue"] == queue)
    one_of_each_end(muster, stores, "first")
    assert told("first") == {"failed": 1, "timeout": 1, "cancelled": 2}
    muster.configure({"task": {"notices": "success"}})
    assert muster.ask("RELOAD") == "OK"
    one_of_each_end(muster, stores, "second")
    assert told("second") == {"success": 1}
    muster.configure({"task": {"notices": "failed, sucess"}})
    reply = muster.ask("RELOAD")
    assert "notices = failed, sucess: expected any of success, failed, timeout, cancelled" in reply, reply
    checked = subprocess.run([str(Muster.build() / "daemon" / "musterd"), "--check-config", str(muster.config_path)],
                             capture_output=True, timeout=30, check=False)
    assert checked.returncode == 1 and b"expected any of success" in checked.stderr
    one_of_each_end(muster, stores, "third")
    assert told("third") == {"success": 1}
    assert muster.ask("CONFIG", "GET", "task.notices")[1] == "success"
    muster.configure({"task": {"notices": ""}})
    assert muster.ask("RELOAD") == "OK"
    one_of_each_end(muster, stores, "fourth")
    assert told("fourth") == {}
