# SPDX-License-Identifier: MIT
"""Tasks through the command line tool, on a real musterd: giving in, taking, ending, looking, queues."""
import subprocess

import pytest

from harness.cli import Cli
from harness.muster import Muster, now_ms
from harness.wait import wait_until

ALL_BYTES = bytes(range(256)) * 3


@pytest.fixture(name="cli")
def fixture_cli(muster, tmp_path):
    return Cli(muster.port, tmp_path, Muster.build())


@pytest.fixture(name="raw")
def fixture_raw(cli):
    """raw(words...) runs the tool and gives its standard output as bytes."""
    def run(*words, stdin=b""):
        return subprocess.run(cli.command(*words), input=stdin, capture_output=True, check=True, timeout=60,
                              env=cli.environment({})).stdout
    return run


@pytest.fixture(name="submit")
def fixture_submit(cli):
    """submit(words...) gives a task in and returns its id."""
    def submit(*words, **options):
        result = cli("task", "submit", *words, **options)
        assert result.code == 0, result.err
        return result.out.strip()
    return submit


def claim(cli, queue, *words):
    rows = cli("task", "claim", queue, "--json", *words).rows
    return [(row["id"], row["token"]) for row in rows]


def status_of(muster, task):
    return muster.map("TASK.GET", task)["status"]


# --- giving in -------------------------------------------------------------------------------------------------

def test_payload_is_kept_byte_for_byte(submit, raw, tmp_path):
    path = tmp_path / "payload"
    path.write_bytes(ALL_BYTES)
    assert raw("task", "show", submit("q", "--file", path), "--payload") == ALL_BYTES
    assert raw("task", "show", submit("q", "-", stdin=ALL_BYTES), "--payload") == ALL_BYTES
    assert raw("task", "show", submit("q", "a word"), "--payload") == b"a word"
    assert raw("task", "show", submit("q"), "--payload") == b""


def test_options_of_a_task(muster, cli, submit):
    task = submit("q", "x", "--priority", "2", "--retries", "0", "--lease", "7s", "--delay", "1h", "--key", "k",
                  "--window", "2h")
    seen = muster.map("TASK.GET", task)
    assert (seen["priority"], seen["max_retries"], seen["key"], seen["status"]) == (2, 0, "k", "pending")
    assert seen["not_before"] > now_ms() + 3_500_000
    again = cli("task", "submit", "q", "y", "--key", "k")
    assert (again.code, again.out.strip()) == (0, task) and "pending" in again.err
    assert cli("task", "submit", "q", "y", "--key", "k", "--json").row["duplicate"] == 1
    refused = cli("task", "submit", "q", "x", "--priority", "11")
    assert refused.code == 1 and refused.err.startswith("muster: ERR ")


# --- taking and ending -----------------------------------------------------------------------------------------

def test_claim_and_end(muster, cli, submit):
    assert cli("task", "claim", "q").out == "Nothing is ready.\n"
    ids = [submit("q", f"payload {n}") for n in range(4)]
    table = cli("task", "claim", "q", "--worker", "w1").out.splitlines()
    assert table[0].split() == ["ID", "TOKEN", "PRIORITY", "ATTEMPT", "DEADLINE", "PAYLOAD"]
    assert table[1].startswith(ids[0]) and table[1].endswith("payload 0")
    token = table[1].split()[1]
    assert cli("task", "beat", ids[0], token, "--worker", "w1").out == "extended\n"
    assert cli("task", "done", ids[0], token, "--result", "fine").out == "OK\n"
    assert muster.map("TASK.GET", ids[0])["result"] == "fine"
    late = cli("task", "beat", ids[0], token, "--worker", "w1")
    assert (late.code, late.out) == (1, "stale\n")
    (second, second_token), (third, third_token), (fourth, fourth_token) = claim(cli, "q", "--count", "3")
    assert [second, third, fourth] == ids[1:]
    failed = cli("task", "fail", second, second_token, "--error", "no luck", "--delay", "1h")
    assert failed.code == 0 and status_of(muster, second) == "pending"
    assert muster.map("TASK.GET", second)["error"] == "no luck"
    assert cli("task", "release", third, third_token).out == "OK\n" and status_of(muster, third) == "pending"
    stale = cli("task", "done", third, third_token)
    assert stale.code == 1 and stale.err.startswith("muster: STALE ")
    assert cli("task", "cancel", fourth).out == "1 done\n"
    told = cli("task", "beat", fourth, fourth_token)
    assert (told.code, told.out) == (1, "cancel\n")


def test_result_from_a_file(cli, submit, raw):
    submit("q", "x")
    task, token = claim(cli, "q")[0]
    assert cli("task", "done", task, token, "--file", "-", stdin=ALL_BYTES).code == 0
    assert raw("task", "show", task, "--output") == ALL_BYTES


def test_claim_waits(cli, submit):
    with subprocess.Popen(cli.command("task", "claim", "q", "--wait", "30s", "--json"), stdout=subprocess.PIPE,
                          env=cli.environment({}), text=True) as waiting:
        wait_until(lambda: cli("task", "stats", "q", "--json").row["waiting"] == 1, 20, "the claim waits")
        task = submit("q", "at last")
        out = waiting.communicate(timeout=30)[0]
    assert task in out and "at last" in out


# --- looking ---------------------------------------------------------------------------------------------------

def test_list_and_show(muster, cli, submit):
    before = now_ms()
    ids = [submit("q", f"p{n}", "--priority", 1 + n % 3) for n in range(6)]
    submit("q", "later", "--delay", "1h")
    task, token = claim(cli, "q", "--worker", "me")[0]
    muster.ask("TASK.FAIL", task, token, "ERROR", "tab\there", "DELAY", "2h")
    assert len(cli("task", "list", "q", "--json").rows) == 7
    assert {row["id"] for row in cli("task", "list", "q", "--json", "--status", "ready").rows} == set(ids) - {task}
    assert {row["id"] for row in cli("task", "list", "q", "--json", "--priority", "2-3").rows} >= {ids[1], ids[2]}
    assert [row["id"] for row in cli("task", "list", "q", "--json", "--priority", "1", "--status", "ready").rows] == [
        i for n, i in enumerate(ids) if n % 3 == 0 and i != task]
    assert cli("task", "list", "q", "--until", before - 60000).out == "No tasks.\n"
    assert len(cli("task", "list", "q", "--json", "--since", before - 60000).rows) == 7
    lines = cli("task", "list", "q").out.splitlines()
    assert lines[0].startswith("ID") and any("tab?here" in line for line in lines)
    shown = cli("task", "show", task).out
    assert "status       pending" in shown and "error        tab?here" in shown and "payload" not in shown
    assert cli("task", "show", task, "--json").row["payload"].startswith("p")
    assert cli("task", "show", "0000000000zz").code == 1
    assert cli("task", "list", "q", "--status", "odd").code == 1


def test_stats(cli, submit):
    assert cli("task", "stats").out == "No queues.\n"
    for queue in ("alpha", "beta"):
        submit(queue, "12345")
    lines = cli("task", "stats").out.splitlines()
    assert lines[0].split()[:4] == ["QUEUE", "READY", "DELAYED", "RUNNING"]
    assert sorted(line.split()[0] for line in lines[1:]) == ["alpha", "beta"]
    row = cli("task", "stats", "alpha", "--json").row
    assert (row["queue"], row["ready"], row["bytes"]) == ("alpha", 1, 5)
    assert "ready        1" in cli("task", "stats", "alpha").out


# --- many, and queues ------------------------------------------------------------------------------------------

def test_many_at_once(muster, cli):
    """More than a page of a list that shrinks while it is walked."""
    count = 1203
    client = muster.client()
    with client.pipeline(transaction=False) as pipe:
        for n in range(count):
            pipe.execute_command("TASK.SUBMIT", "q", n, "RETRIES", 0)
        pipe.execute()
    with client.pipeline(transaction=False) as pipe:
        done = 0
        while done < count:
            tasks = client.execute_command("TASK.CLAIM", "q", "w", "COUNT", 100)
            done += len(tasks)
            for task in tasks:
                fields = task if isinstance(task, dict) else dict(zip(task[::2], task[1::2]))
                pipe.execute_command("TASK.FAIL", fields["id"], fields["token"])
        pipe.execute()
    assert muster.map("TASK.STATS", "q")["failed"] == count
    assert cli("task", "retry", "--all", "--queue", "q", "--status", "failed").out == f"{count} done\n"
    assert muster.map("TASK.STATS", "q")["ready"] == count
    assert cli("task", "cancel", "--all", "--queue", "q", "--status", "ready", "--json").row == {
        "done": count, "refused": 0}
    assert muster.map("TASK.STATS", "q")["cancelled"] == count


def test_named_ones(muster, cli, submit):
    first, second = submit("q", "1"), submit("q", "2")
    result = cli("task", "cancel", first, "0000000000zz", second)
    assert result.code == 1 and result.out == "2 done, 1 refused\n"
    assert result.err.startswith("muster: 0000000000zz: UNKNOWN ")
    assert cli("task", "retry", first, second).out == "2 done\n" and status_of(muster, first) == "pending"


def test_pause_and_configuration(cli, submit):
    submit("q", "x")
    assert cli("task", "pause", "q").out == "OK\n"
    assert claim(cli, "q") == [] and cli("task", "stats", "q", "--json").row["paused"] == 1
    assert cli("task", "resume", "q").out == "OK\n" and len(claim(cli, "q")) == 1
    assert cli("task", "config", "q", "retries", "7", "lease", "3s", "--json").row["retries"] == "7"
    assert "own          lease, retries" in cli("task", "config", "q").out
    assert cli("task", "config", "q", "retries", "default", "--json").row["retries"] == "3"
    assert cli("task", "config", "q", "nonsense", "1").code == 1


def test_check_repairs(stores, cli, submit):
    task = submit("q", "x")
    assert cli("task", "check").code == 0
    ready, = stores.keys("*}:queue:q")
    assert stores.redis.zrem(stores.key(ready), task) == 1
    found = cli("task", "check")
    assert found.code == 1 and task in found.out and "findings     1, 0 repaired" in found.out
    assert cli("task", "check", "--repair").code == 0 and cli("task", "check", "--json").row["findings"] == 0
    assert claim(cli, "q")[0][0] == task


@pytest.mark.parametrize("words", [
    (), ("frobnicate",), ("submit",), ("submit", "q", "a", "b"), ("submit", "q", "a", "--file", "x"), ("claim",),
    ("claim", "q", "--wait", "soon"), ("done", "x"), ("done", "x", "1", "--result", "a", "--file", "b"), ("retry",),
    ("retry", "--all"), ("retry", "x", "--all", "--queue", "q", "--status", "failed"),
    ("retry", "--all", "--queue", "q"),
    ("cancel", "x", "--queue", "q"), ("show",), ("stats", "q", "r"), ("pause",), ("check", "q"),
    ("list", "q", "--since", "25:00"), ("list", "q", "--payload")])
def test_wrong_usage_is_2(tmp_path, words):
    result = Cli(1, tmp_path, Muster.build())("task", *words)
    assert result.code == 2 and result.err and not result.out


def test_a_file_that_is_not_there(tmp_path):
    result = Cli(1, tmp_path, Muster.build())("task", "submit", "q", "--file", tmp_path / "none")
    assert result.code == 1 and "none: can't read it" in result.err
