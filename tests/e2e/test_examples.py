# SPDX-License-Identifier: MIT
"""The programs of examples/ do what they say."""
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.wait import wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(name="example")
def fixture_example(make_muster, stores):
    """example(name, words...) starts an example against a daemon with a department `lab` below `hq`."""
    muster = make_muster(config={"amqp": {"delays": "1s"}})
    assert muster.ask("TEAM.ADD", "hq", "-") == "OK" and muster.ask("TEAM.ADD", "lab", "hq") == "OK"
    assert muster.ask("EMPLOYEE.SET", "ada", "DEPT", "lab") == "OK"
    state = stores.stack.state
    env = {**os.environ, "MUSTER_PORT": str(muster.port), "AMQP_PORT": str(stores.stack["rabbitmq"].port()),
           "AMQP_USER": state["amqp_user"], "AMQP_PASSWORD": state["amqp_password"], "AMQP_VHOST": stores.name}

    def start(name, *words):
        command = [sys.executable] if name.endswith(".py") else ["sh"]
        return subprocess.Popen([*command, str(EXAMPLES / name), *words], env=env, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
    start.muster = muster
    return start


def test_checkin_py(example):
    out, err = example("checkin.py", "ada", "in").communicate(timeout=30)
    assert out.startswith("ada is ") and out.endswith("(punches: 1)\n"), out + err
    assert example.muster.map("STATUS", "ada")["punches"] == 1


def test_checkin_raw_sh(example):
    out, err = example("checkin_raw.sh", "ada").communicate(timeout=30)
    assert "ada" in out and out.endswith("+OK\n"), out + err
    assert example.muster.map("STATUS", "ada")["in"] is not None


def test_supervisor_consumer_py(example):
    """The first try is rejected; the retry prints the event of the department below."""
    consumer = example("supervisor_consumer.py", "hq", "--fail")
    stores = example.muster.stores
    try:
        def consuming():
            with contextlib.suppress(Exception):
                return stores.amqp().queue_declare("supervisor.hq", passive=True).method.consumer_count
            return 0
        wait_until(consuming, 30, "the consumer is there")
        example.muster.map("CHECKIN", "ada", "IN")
        assert consumer.stdout.readline().startswith("rejected ")
        line = consumer.stdout.readline()
        while line.startswith("rejected "):
            line = consumer.stdout.readline()
        assert line.split()[2:] == ["lab", "ada"], line
    finally:
        consumer.kill()
        consumer.communicate()


def test_teams_py(example):
    """The tree is drawn, the line of managers is named, and a team moves."""
    muster = example.muster
    assert muster.ask("TEAM.ADD", "store", "-", "NAME", "Store", "MANAGER", "bob") == "OK"
    assert muster.ask("TEAM.ADD", "desk", "lab", "NAME", "Help desk") == "OK"
    assert muster.ask("TEAM.JOIN", "store", "ada") == "OK"
    said = [example("teams.py", *words).communicate(timeout=30)[0].splitlines()
            for words in (("below", "hq"), ("line", "ada"), ("move", "lab", "store"), ("below", "store"))]
    assert said == [["lab (lab)", "  Help desk (desk)"],
                    ["home:   lab (nobody), hq (nobody)", "member: Store (bob)"],
                    ["hq:lab: 2 teams, 1 people, 1 supervisors at once", "now store:lab"],
                    ["lab (lab)", "  Help desk (desk)"]]


def test_task_worker_py(example):
    muster = example.muster
    first = muster.map("TASK.SUBMIT", "words", "one two\nthree")["id"]
    out, err = example("task_worker.py", "words", "1").communicate(timeout=30)
    assert out == f"{first} 3\n", out + err
    seen = muster.map("TASK.GET", first)
    assert (seen["status"], seen["result"]) == ("success", "3")
    worker = example("task_worker.py", "words")
    second = muster.map("TASK.SUBMIT", "words", b"\xff" * 5)["id"]
    assert worker.stdout.readline() == f"{second} 1\n"
    worker.terminate()
    assert worker.wait(30) == 0
    worker.communicate()


def test_task_worker_py_gives_up(example, tmp_path):
    """Made slow, it stops in the middle of a task that is cancelled, and tells of one that fails."""
    muster, step = example.muster, "words += len(line.split())"
    text = (EXAMPLES / "task_worker.py").read_text(encoding="utf-8")
    assert step in text
    slow = tmp_path / "task_worker.py"
    slow.write_text(text.replace(step, "stop.wait(0.2 if line else int('x'))"), encoding="utf-8")
    worker = example(str(slow), "words", "2")
    task = muster.map("TASK.SUBMIT", "words", "line\n" * 500, "LEASE", "600ms")["id"]
    wait_until(lambda: muster.map("TASK.GET", task)["status"] == "running", 20, "it has begun")
    assert muster.map("TASK.CANCEL", task)["status"] == "running"
    wait_until(lambda: muster.map("TASK.GET", task)["status"] == "cancelled", 20, "it is cancelled")
    broken = muster.map("TASK.SUBMIT", "words", "\n", "RETRIES", 0)["id"]
    out, err = worker.communicate(timeout=30)
    assert out.startswith(f"{task} cancelled\n{broken} failed: invalid literal"), out + err
    seen = muster.map("TASK.GET", broken)
    assert seen["status"] == "failed" and "ValueError" in seen["error"]


def test_task_worker_py_is_too_late(example, tmp_path):
    """Its FAIL and its RELEASE are STALE, since the claims have ended just before: it says so, and goes on."""
    muster, step, tell = example.muster, "words += len(line.split())", "patiently(client, *end)"
    text = (EXAMPLES / "task_worker.py").read_text(encoding="utf-8")
    assert step in text and tell in text
    late = tmp_path / "task_worker.py"
    late.write_text(text.replace(step, "stop.wait(60 if line else int('x'))")
                    .replace(tell, f"patiently(client, 'TASK.DONE', *claim), {tell}"), encoding="utf-8")
    broken = muster.map("TASK.SUBMIT", "words", "\n")["id"]
    task = muster.map("TASK.SUBMIT", "words", "line\nline", "LEASE", "600ms")["id"]
    worker = example(str(late), "words", "2")
    wait_until(lambda: muster.map("TASK.GET", task)["status"] == "running", 20, "it has begun")
    assert muster.map("TASK.CANCEL", task)["status"] == "running"
    out, err = worker.communicate(timeout=30)
    assert [line.split()[:2] for line in out.splitlines()] == [[broken, "STALE"], [task, "STALE"]], out + err
    assert worker.returncode == 0


def test_task_worker_py_ends_without_the_daemon(example):
    """SIGTERM ends it while the daemon is away."""
    muster = example.muster
    worker = example("task_worker.py", "words")
    wait_until(lambda: muster.map("TASK.STATS", "words")["waiting"] == 1, 20, "it waits")
    muster.kill9()
    worker.terminate()
    _, err = worker.communicate(timeout=30)
    assert worker.returncode == 1 and err == "no answer to TASK.CLAIM\n", err


def test_report_sql(example, stores):
    """Every statement runs, on the tables as the daemon made them."""
    text = "\n".join(line for line in (EXAMPLES / "report.sql").read_text(encoding="utf-8").splitlines()
                     if not line.startswith("--"))
    statements = [statement for statement in text.split(";") if statement.strip()]
    assert len(statements) == 6
    for statement in statements:
        assert stores.sql(statement.replace("%", "%%")) == []
