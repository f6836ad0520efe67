# SPDX-License-Identifier: MIT
"""The commands that change tasks and queues: what each answers, what it refuses, and what is left when it does."""
import contextlib

import pytest

from harness.muster import text_of
from harness.tasks import (beat, claim, claim_one, claims, done, fail, get, hash_of, info_of, key_of, redis_ms,
                           redis_of, refused, release, submit)
from harness.wait import wait_until

NO_TASK = "0" * 12


# ---- SUBMIT ----

def test_submit_answers_with_an_id_that_tells_when(muster, stores):
    before = redis_ms(stores)
    ids = [submit(muster, "mail", f"{i}") for i in range(3)]
    assert ids == sorted(ids) and len(set(ids)) == 3
    task = get(muster, ids[0])
    assert before <= task["submitted"] <= redis_ms(stores)
    assert (task["queue"], task["status"], task["priority"], task["size"]) == ("mail", "pending", 5, 1)


def test_submit_takes_its_options_in_any_order(muster):
    words = [("PRIORITY", "2"), ("DELAY", "1.5m"), ("KEY", "k~!"), ("WINDOW", "2h"), ("RETRIES", "0"),
             ("LEASE", "250ms")]
    for n, order in enumerate((words, words[::-1])):
        flat = [word for pair in order for word in pair]
        task = get(muster, submit(muster, f"q{n}", "x", *flat))
        assert (task["priority"], task["max_retries"], task["key"]) == (2, 0, "k~!")
        assert 90000 <= task["not_before"] - task["submitted"] < 100000


def test_submit_refuses_what_it_does_not_understand(muster):
    submit(muster, "q")
    refused(muster, "ERR", *[("TASK.SUBMIT", "q", "x", "PRIORITY", bad) for bad in
                             ("0", "11", "-1", "1.5", "5x", "", " 5", "0x5", "99999999999999999999")])
    refused(muster, "ERR", *[("TASK.SUBMIT", "q", "x", word, bad) for word in ("DELAY", "LEASE") for bad in
                             ("", "x", "-1", "5x", "1.5.5", "1 s", "99999999999999999999", "9999999d")])
    refused(muster, "ERR", *[("TASK.SUBMIT", "q", "x", "LEASE", bad) for bad in ("0", "99ms", "0.0999", "61m")])
    refused(muster, "ERR", *[("TASK.SUBMIT", "q", "x", "KEY", bad) for bad in
                             ("", "a b", "a|b", "\x7f", "ä", "k" * 201, "a\0b", "-")])
    refused(muster, "ERR", *[("TASK.SUBMIT", "q", "x", "KEY", "k", "WINDOW", bad) for bad in ("", "0", "-5", "x")])
    refused(muster, "ERR", *[("TASK.SUBMIT", "q", "x", "RETRIES", bad) for bad in ("", "-1", "1.0", "1000001")])
    refused(muster, "ERR", *[("TASK.SUBMIT", bad, "x") for bad in ("", "-", "a b", "a|b", "q" * 65, "ä", "a.b")])
    refused(muster, "ERR", ("TASK.SUBMIT", "q"), ("TASK.SUBMIT", "q", "x", "WINDOW", "5s"),
            ("TASK.SUBMIT", "q", "x", "PRIORITY"), ("TASK.SUBMIT", "q", "x", "PRIORITY", "1", "PRIORITY", "1"),
            ("TASK.SUBMIT", "q", "x", "HURRY", "1"))


def test_errors_say_what_was_expected(muster):
    for words, expected in ((("TASK.SUBMIT", "q", "x", "PRIORITY", "11"), "a whole number from 1 to 10"),
                            (("TASK.SUBMIT", "q", "x", "LEASE", "2h"), "from 100ms to 1h"),
                            (("TASK.SUBMIT", "q", "x", "DELAY", "5x"), "a duration such as"),
                            (("TASK.CONFIG", "q", "lease", "soon"), "a duration such as"),
                            (("TASK.CONFIG", "q", "lease", "2d"), "100ms to 1d"),
                            (("TASK.CONFIG", "q", "length", "1"), "lease, retries, crashes"),
                            (("TASK.DONE", NO_TASK, "x"), "the number that TASK.CLAIM gave")):
        with muster.raw() as raw:
            reply = text_of(raw.command(*words))
            assert reply.startswith("ERR ") and expected in reply, reply


def test_a_key_that_is_held_answers_with_its_task(muster):
    first = submit(muster, "q", "x", "KEY", "k")
    assert muster.map("TASK.SUBMIT", "q", "y", "KEY", "k") == {"id": first, "status": "pending", "duplicate": 1}
    task = claim_one(muster, "q")
    assert muster.map("TASK.SUBMIT", "q", "y", "KEY", "k") == {"id": first, "status": "running", "duplicate": 1}
    assert done(muster, task) == "OK"
    assert submit(muster, "q", "y", "KEY", "k") != first


# ---- the worker's verbs ----

@pytest.mark.parametrize("verb, words, repeated", [
    ("TASK.DONE", ("RESULT", "\0\xffr"), "OK"), ("TASK.FAIL", ("ERROR", "no", "DELAY", "5m"), None),
    ("TASK.RELEASE", (), "OK")])
def test_only_the_token_of_the_claim_ends_it(muster, stores, verb, words, repeated):
    submit(muster, "q")
    other = submit(muster, "q2")
    task, second = claim_one(muster, "q"), claim_one(muster, "q2")
    assert second["id"] == other
    refused(muster, "STALE", (verb, task["id"], str(int(task["token"]) + 1000), *words))
    refused(muster, "ERR", *[(verb, task["id"], bad, *words) for bad in ("", "x", "0", "-1", "1.5", "9" * 20)])
    refused(muster, "UNKNOWN", *[(verb, bad, task["token"], *words) for bad in
                                 ("", "x", NO_TASK, "zzzzzzzzzzzz", task["id"] + "0", task["id"].upper() + "!")])
    reply = muster.ask(verb, task["id"], task["token"], *words)
    before = hash_of(stores, "q", task["id"])
    assert muster.ask(verb, task["id"], task["token"], *words) == (repeated or reply)
    assert hash_of(stores, "q", task["id"]) == before
    for foreign in {"TASK.DONE", "TASK.FAIL", "TASK.RELEASE"} - {verb}:
        refused(muster, "STALE", (foreign, task["id"], task["token"]))


def test_done_keeps_the_result_byte_by_byte(muster, stores):
    result = bytes(range(256)) + b"\r\n$5\r\n"
    submit(muster, "q")
    task = claim_one(muster, "q")
    assert muster.ask("TASK.DONE", task["id"], task["token"], "RESULT", result) == "OK"
    kept = redis_of(stores).hget(key_of(stores, "q", "task", task["id"]), "result")
    assert kept.encode("utf-8", "surrogateescape") == result


def test_a_result_over_its_limit_is_refused_and_the_task_goes_on(make_muster):
    muster = make_muster(config={"task": {"max_result": "100"}})
    submit(muster, "q")
    task = claim_one(muster, "q")
    refused(muster, "TOOBIG", ("TASK.DONE", task["id"], task["token"], "RESULT", "r" * 101))
    assert done(muster, task, "RESULT", "r" * 100) == "OK"


def test_done_claims_the_next(muster):
    ids = [submit(muster, "q", f"p{i}") for i in range(4)]
    submit(muster, "other")
    task = claim_one(muster, "q", "w.7")
    [second] = claims(done(muster, task, "NEXT"))
    assert (second["id"], second["payload"], second["queue"]) == (ids[1], "p1", "q")
    assert get(muster, ids[1])["worker"] == "w.7"
    rest = claims(done(muster, second, "COUNT", "5", "NEXT", "RESULT", "r"))
    assert [t["id"] for t in rest] == ids[2:]
    assert claims(done(muster, rest[0], "NEXT", "WAIT", "50")) == []
    # Who repeats it, since the answer was lost, gets more: the first answer's are his by their lease only.
    assert claims(done(muster, rest[0], "NEXT")) == []
    refused(muster, "STALE", ("TASK.DONE", rest[1]["id"], "1", "NEXT"))
    refused(muster, "ERR", ("TASK.DONE", rest[1]["id"], rest[1]["token"], "COUNT", "1"),
            ("TASK.DONE", rest[1]["id"], rest[1]["token"], "WAIT", "1"),
            ("TASK.DONE", rest[1]["id"], rest[1]["token"], "NEXT", "COUNT", "0"),
            ("TASK.DONE", rest[1]["id"], rest[1]["token"], "NEXT", "WAIT", "-1"))
    assert get(muster, rest[1]["id"])["status"] == "running"


def test_fail_says_when_it_runs_again(muster, stores):
    task_id = submit(muster, "q", "x", "RETRIES", "2")
    reply = fail(muster, claim_one(muster, "q"), "DELAY", "0.2")
    assert (reply["id"], reply["status"], reply["retries"]) == (task_id, "pending", 1)
    assert abs(reply["not_before"] - redis_ms(stores) - 200) < 150
    task = wait_until(lambda: claim(muster, "q"), 10, "the task is ready again")[0]
    assert task["attempt"] == 2
    assert fail(muster, task, "DELAY", "0") == {"id": task_id, "status": "pending", "retries": 2, "not_before": None}
    reply = fail(muster, claim_one(muster, "q"), "ERROR", "boom")
    assert reply == {"id": task_id, "status": "failed", "retries": 2, "not_before": None}
    assert get(muster, task_id)["error"] == "boom"


def test_an_error_is_cut_between_characters_and_mended(make_muster):
    muster = make_muster(config={"task": {"max_error": "16"}})
    for text, kept in (("x" * 17, "x" * 16), ("xx" + "ä" * 20, "xx" + "ä" * 7), ("x" + "ä" * 20, "x" + "ä" * 7),
                       (b"a\xffb", "a\ufffdb"), ("two\nlines|;", "two\nlines|;")):
        task_id = submit(muster, "q", "x", "RETRIES", "0")
        fail(muster, claim_one(muster, "q"), "ERROR", text)
        assert get(muster, task_id)["error"] == kept


def test_a_released_task_is_the_next_again(muster):
    ids = [submit(muster, "q") for _ in range(3)]
    assert release(muster, claim_one(muster, "q")) == "OK"
    task = claim_one(muster, "q")
    assert (task["id"], task["attempt"]) == (ids[0], 1)


# ---- BEAT ----

def test_one_beat_tells_of_each_task(muster, stores):
    for _ in range(3):
        submit(muster, "a")
    submit(muster, "b", "x", "LEASE", "5m")
    kept, lost, cancelled = claim(muster, "a", "w", "COUNT", "3")
    other = claim_one(muster, "b", "w")
    assert done(muster, lost) == "OK"
    assert muster.map("TASK.CANCEL", cancelled["id"]) == {"id": cancelled["id"], "status": "running"}
    reply = beat(muster, "w", other, lost, cancelled, kept, {"id": "rubbish", "token": "1"},
                 {"id": NO_TASK, "token": "1"})
    assert reply == {"extended": [other["id"], kept["id"]], "stale": [lost["id"], "rubbish", NO_TASK],
                     "cancel": [cancelled["id"]]}
    assert abs(get(muster, other["id"])["deadline"] - redis_ms(stores) - 300000) < 5000
    assert beat(muster, "w", {"id": "rubbish", "token": "1"}) == {"extended": [], "stale": ["rubbish"], "cancel": []}
    beat(muster, "w", kept, words=("LEASE", "20m"))
    assert abs(get(muster, kept["id"])["deadline"] - redis_ms(stores) - 1200000) < 5000


def test_beat_of_many(muster):
    for _ in range(450):
        submit(muster, "q")
    tasks = [t for _ in range(5) for t in claim(muster, "q", "w", "COUNT", "100")]
    reply = beat(muster, "w", *tasks)
    assert reply == {"extended": [t["id"] for t in tasks], "stale": [], "cancel": []} and len(tasks) == 450


def test_beat_refuses_what_it_does_not_understand(muster):
    submit(muster, "q")
    task = claim_one(muster, "q")
    pair = (task["id"], task["token"])
    refused(muster, "ERR", ("TASK.BEAT", "w"), ("TASK.BEAT", "w", task["id"]), ("TASK.BEAT", "w", *pair, task["id"]),
            ("TASK.BEAT", "w", "LEASE", "5s"), ("TASK.BEAT", "w", *pair, "LEASE"),
            ("TASK.BEAT", "w", *pair, "LEASE", "5s", *pair), ("TASK.BEAT", "w", *pair, "LEASE", "2h"),
            ("TASK.BEAT", "a b", *pair), ("TASK.BEAT", "", *pair), ("TASK.BEAT", "w", task["id"], "x"),
            ("TASK.BEAT", "w", *pair, task["id"], ""))


# ---- from outside ----

def test_cancel_and_retry(muster):
    task_id = submit(muster, "q", "x", "KEY", "k")
    assert muster.map("TASK.CANCEL", task_id) == {"id": task_id, "status": "cancelled"}
    refused(muster, "CONFLICT", ("TASK.CANCEL", task_id))
    holder = submit(muster, "q", "y", "KEY", "k")
    refused(muster, "CONFLICT", ("TASK.RETRY", task_id))
    assert done(muster, claim_one(muster, "q")) == "OK"
    refused(muster, "CONFLICT", ("TASK.RETRY", holder), ("TASK.CANCEL", holder))
    assert muster.ask("TASK.RETRY", task_id) == "OK"
    assert muster.ask("TASK.RETRY", task_id) == "OK"
    task = claim_one(muster, "q")
    refused(muster, "CONFLICT", ("TASK.RETRY", task_id))
    assert muster.map("TASK.CANCEL", task_id)["status"] == "running"
    assert muster.map("TASK.CANCEL", task_id)["status"] == "running"
    assert fail(muster, task)["status"] == "cancelled"
    delayed = submit(muster, "q", "x", "DELAY", "1h")
    assert muster.ask("TASK.RETRY", delayed) == "OK"
    assert claim_one(muster, "q")["id"] == delayed
    refused(muster, "UNKNOWN", *[(verb, bad) for verb in ("TASK.CANCEL", "TASK.RETRY") for bad in ("", "x", NO_TASK)])


# ---- queues ----

def test_a_paused_queue_gives_nothing(muster, stores):
    assert muster.ask("TASK.PAUSE", "q") == "OK"
    task_id = submit(muster, "q")
    assert claim(muster, "q") == [] and muster.map("TASK.CONFIG", "q")["paused"] == 1
    assert muster.ask("TASK.PAUSE", "q") == "OK" and muster.ask("TASK.RESUME", "q") == "OK"
    assert muster.ask("TASK.RESUME", "q") == "OK" and muster.map("TASK.CONFIG", "q")["paused"] == 0
    assert claim_one(muster, "q")["id"] == task_id
    refused(muster, "ERR", ("TASK.PAUSE", ""), ("TASK.RESUME", "a b"), ("TASK.PAUSE",), ("TASK.PAUSE", "q", "x"))
    assert "paused" not in info_of(stores, "q")


def test_config_of_a_queue(muster, stores):
    defaults = {"paused": 0, "lease": "1m", "retries": "3", "crashes": "3", "backoff": "5s", "backoff_max": "10m",
                "max_tasks": "1000000", "max_bytes": "1g", "keep": "1000", "keep_for": "1d", "age_after": "0s",
                "own": []}
    assert muster.map("TASK.CONFIG", "q") == defaults
    assert not stores.keys("{*}:queue_info:q")
    changed = {**defaults, "lease": "1500ms", "retries": "0", "max_bytes": "10m",
               "own": ["lease", "retries", "max_bytes"]}
    assert muster.map("TASK.CONFIG", "q", "LEASE", "1.5s", "max_bytes", "10m", "retries", "0") == changed
    assert muster.map("TASK.CONFIG", "q") == changed
    info = info_of(stores, "q")
    assert (info["lease"], info["retries"], info["max_bytes"]) == ("1500", "0", "10485760")
    submit(muster, "q")
    task = claim_one(muster, "q")
    assert task["lease"] == 1500
    assert fail(muster, task)["status"] == "failed"
    words = ("lease", "default", "max_bytes", "DEFAULT", "retries", "default")
    assert muster.map("TASK.CONFIG", "q", *words) == defaults
    refused(muster, "ERR", *[("TASK.CONFIG", "q", *words) for words in (
        ("lease",), ("lease", ""), ("lease", "5x"), ("lease", "99ms"), ("lease", "5s\0"), ("lease", "5" * 64),
        ("retries", "-1"), ("retries", "1.5"), ("crashes", "0"), ("queues_max", "5"), ("", "5"), ("max_bytes", "1"),
        ("lease", "5s", "retries", "x"), ("lease", "5s") * 11)])
    refused(muster, "ERR", ("TASK.CONFIG", "a b"), ("TASK.CONFIG",))


# ---- room ----

def test_a_queue_that_is_full_refuses(muster):
    muster.ask("TASK.CONFIG", "q", "max_tasks", "2")
    ids = [submit(muster, "q", "x", "KEY", f"k{i}") for i in range(2)]
    refused(muster, "BUSY", ("TASK.SUBMIT", "q", "x"))
    assert muster.map("TASK.SUBMIT", "q", "x", "KEY", "k1")["id"] == ids[1]
    submit(muster, "other")
    muster.ask("TASK.CONFIG", "big", "max_bytes", "1k")
    submit(muster, "big", "x" * 1000)
    refused(muster, "BUSY", ("TASK.SUBMIT", "big", "x" * 25))
    submit(muster, "big", "x" * 24)


@contextlib.contextmanager
def maxmemory(stores, share):
    """Redis with a limit of which it uses this share."""
    used = stores.redis.info("memory")["used_memory"]
    stores.redis.config_set("maxmemory", int(used / share))
    try:
        yield
    finally:
        stores.redis.config_set("maxmemory", 0)


def busy(muster):
    with muster.raw() as raw:
        return text_of(raw.command("TASK.SUBMIT", "q", "x"))


@pytest.mark.parametrize("share, reason", [(0.95, "Redis is nearly full"), (1.5, "")])
def test_with_redis_nearly_full_or_over_full_tasks_come_to_their_end(muster, stores, share, reason):
    """What is there can be carried to its end; nothing new is taken in."""
    held = submit(muster, "q", "x", "KEY", "k", "PRIORITY", "10")
    for _ in range(8):
        submit(muster, "q", "x", "RETRIES", "0")
    tasks = claim(muster, "q", "w", "COUNT", "4")
    with maxmemory(stores, share):
        wait_until(lambda: muster.info()["redis_memory_full"] in (1, "1"), 20, "the daemon has seen it")
        reply = busy(muster)
        assert reply.startswith("BUSY ") and reason in reply, reply
        assert done(muster, tasks[0], "RESULT", "r") == "OK"
        assert fail(muster, tasks[1], "ERROR", "e")["status"] == "failed"
        assert release(muster, tasks[2]) == "OK"
        assert beat(muster, "w", tasks[3])["extended"] == [tasks[3]["id"]]
        assert claim_one(muster, "q")["id"] == tasks[2]["id"]
        assert muster.map("TASK.CANCEL", held)["status"] == "cancelled"
    wait_until(lambda: muster.info()["redis_memory_full"] in (0, "0"), 20, "there is room again")
    submit(muster, "q")


# ---- rights, INFO ----

def test_a_worker_needs_the_right_task_only(make_muster, tmp_path):
    (tmp_path / "users").write_text(
        "mill 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b task\n"  # "secret"
        "boss 1c8bfe8f801d79745c4631d09fff36c82aa37fc4cce4fc946683d7b336b63032 read,write,admin\n",  # "letmein"
        encoding="ascii")
    muster = make_muster(config={"server": {"users_file": tmp_path / "users"}}, start=False)
    muster.start(wait=False)
    muster.wait_answering()
    with muster.raw() as raw:
        assert text_of(raw.command("AUTH", "mill", "secret")) == "OK"

        def ready():
            reply = raw.command("TASK.SUBMIT", "q", "x")
            return reply if isinstance(reply, list) else None
        wait_until(ready, 30, "a worker may submit")
        raw.send(b"TASK.CLAIM q w\r\n")
        assert len(raw.read()) == 1
        for words in (("TASK.PAUSE", "q"), ("TASK.CONFIG", "q"), ("TASK.STATS", "q"), ("TASK.LIST", "q")):
            assert text_of(raw.command(*words)).startswith("NOPERM")
    with muster.raw() as raw:
        assert text_of(raw.command("AUTH", "boss", "letmein")) == "OK"
        assert text_of(raw.command("TASK.PAUSE", "q")) == "OK"
        for words in (("TASK.SUBMIT", "q", "x"), ("TASK.CLAIM", "q", "w"), ("TASK.CANCEL", NO_TASK)):
            assert text_of(raw.command(*words)).startswith("NOPERM")


def test_info_counts_what_was_answered(muster):
    submit(muster, "q", "x", "KEY", "k")
    muster.map("TASK.SUBMIT", "q", "x", "KEY", "k")
    muster.map("TASK.CANCEL", submit(muster, "q"))
    task = claim_one(muster, "q")
    assert done(muster, task) == "OK"
    refused(muster, "STALE", ("TASK.FAIL", task["id"], task["token"]))
    info = muster.info()
    for name, count in {"submitted": 2, "duplicates": 1, "refused": 0, "claimed": 1, "done": 1, "failed": 0,
                        "released": 0, "cancelled": 1, "stale": 1}.items():
        assert int(info[f"tasks_{name}"]) == count, name
