# SPDX-License-Identifier: MIT
"""The command line tool on a real musterd: what it prints is what redis-py, pika and SQL find."""
import hashlib
import json
import re
import subprocess

import pika
import pytest

from harness.cli import Cli
from harness.muster import Muster
from harness.wait import wait_until

DAY = "2026-11-30"
COMPANY = """\
kind,id,parent,name,manager
employee,ada,lab,Ada Lovelace,
employee,bo,lab,王小明,
department,lab,research,Laboratory,ada
department,research,hq,Research,
employee,cy,research,Zoë,
department,hq,,Head office,
employee,di,,Nowhere yet,
"""


@pytest.fixture(name="cli_for")
def fixture_cli_for(tmp_path):
    return lambda muster: Cli(muster.port, tmp_path, Muster.build())


@pytest.fixture(name="company")
def fixture_company(tmp_path):
    path = tmp_path / "company.csv"
    path.write_text(COMPANY, encoding="utf-8")
    return path


@pytest.fixture(name="morning")
def fixture_morning(make_muster):
    """A daemon at eight in the morning that closes no day by itself."""
    muster = make_muster(held_clock=True, config={"day": {"close_auto": "no"}})
    muster.set_clock(f"{DAY}T08:00:00Z")
    return muster


def test_import_can_be_repeated(morning, cli_for, company):
    cli = cli_for(morning)
    for created in (3, 0):
        result = cli("import", company, "--json")
        assert result.code == 0, result.err
        assert result.row["departments"] == {"sent": 3, "ok": 3, "failed": 0, "created": created,
                                             "unchanged": 3 - created}
        assert result.row["employees"] == {"sent": 4, "ok": 4, "failed": 0}
    assert morning.map("TEAM.GET", "lab")["path"] == "hq:research:lab"
    assert morning.map("EMPLOYEE.GET", "bo") == {"id": "bo", "name": "王小明", "dept": "lab"}
    assert cli("team", "get", "lab", "--json").row["manager"] == "ada"
    assert cli("employee", "get", "di", "--json").row["name"] == "Nowhere yet"
    assert len(morning.roll("hq", "SUBTREE")) == 3


def test_import_names_what_the_server_refuses(morning, cli_for, company, tmp_path):
    cli = cli_for(morning)
    assert cli("import", company).code == 0
    other = tmp_path / "other.csv"
    other.write_text("kind,id,parent\ndepartment,lab,hq\nemployee,ada,lab\nemployee,ed,nowhere\nemployee,fi,hq\n",
                     encoding="utf-8")
    result = cli("import", other, "--json")
    lines = dict(line.removeprefix(f"{other}:").split(": ", 1) for line in result.err.splitlines())
    assert result.code == 1 and set(lines) == {"2", "3", "4"}
    assert re.match("EXISTS|CONFLICT", lines["2"]) and lines["3"] == "its department lab of line 2 failed"
    assert lines["4"].startswith("UNKNOWN ")
    assert morning.map("EMPLOYEE.GET", "fi")["dept"] == "hq"


def test_import_survives_kill9(muster, cli_for, tmp_path):
    count = 20000
    path = tmp_path / "many.csv"
    path.write_text("kind,id,parent\ndepartment,hq,\n" + "".join(f"employee,e{n},hq\n" for n in range(count)),
                    encoding="utf-8")
    cli = cli_for(muster)
    with subprocess.Popen(cli.command("import", path, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=cli.environment({})) as process:
        wait_until(lambda: str(muster.ask("EMPLOYEE.GET", "e100")).startswith("["), 30, "the import has begun")
        muster.kill9()
        muster.start()
        out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err.decode()
    assert json.loads(out)["employees"] == {"sent": count, "ok": count, "failed": 0}
    assert muster.map("TEAM.GET", "hq")["members"] == count


def test_checkin_status_and_roll(morning, cli_for, company):
    cli = cli_for(morning)
    assert cli("import", company).code == 0
    assert cli("checkin", "bo").code == 0
    morning.set_clock(f"{DAY}T18:30:00Z")
    first = cli("checkin", "ada", "in", "--at", f"{DAY} 09:03:12", "--id", "ev-1", "--source", "door", "--json").row
    again = cli("checkin", "ada", "in", "--at", f"{DAY} 09:03:12", "--id", "ev-1", "--json").row
    assert (first["duplicate"], again["duplicate"], again["punches"]) == (0, 1, 1)
    assert cli("checkin", "ada", "out", "--at", f"{DAY}T18:00:00.001Z").code == 0

    status = cli("status", "ada", "--json").row
    assert status == morning.map("STATUS", "ada") and status["state"] == "late" and status["late"] == 192000
    text = cli("status", "ada").out
    for line in ("employee     ada", "path         hq:research:lab", f"day          {DAY}", "state        late",
                 "in           09:03:12.000", "out          18:00:00.001", "late by      3m12s"):
        assert line in text.splitlines()

    rows = {row["id"]: row for row in cli("roll", "hq", "--subtree", "--json").rows}
    assert set(rows) == {"ada", "bo", "cy"} and rows["cy"]["state"] == "not_yet"
    table = cli("roll", "lab", "--day", DAY).out.splitlines()
    assert table[0].split() == ["EMPLOYEE", "NAME", "DEPARTMENT", "STATE", "IN", "OUT", "PUNCHES", "LATE", "EARLY"]
    assert any(re.match(r"ada +Ada Lovelace +lab +late +09:03:12 +18:00:00 +2 +3m12s +-$", row) for row in table)
    assert [row["id"] for row in cli("roll", "lab", "--state", "late", "--json").rows] == ["ada"]
    assert cli("roll", "lab", "--state", "early").out == "No one.\n"
    assert cli("roll", "hq", "--count", "--subtree", "--json").row == morning.map("ROLL.COUNT", "hq", "SUBTREE")


@pytest.mark.parametrize("words", [("status", "nobody"), ("checkin", "nobody"), ("roll", "nowhere"),
                                   ("employee", "get", "nobody"), ("team", "get", "nowhere")])
def test_unknown_is_1(muster, cli_for, words):
    result = cli_for(muster)(*words)
    assert result.code == 1 and result.err.startswith("muster: UNKNOWN ") and result.out == ""


def test_employee_verbs(muster, cli_for, company):
    cli = cli_for(muster)
    assert cli("import", company).code == 0
    assert cli("employee", "set", "new", "--dept", "hq", "--name", "New One").out == "OK\n"
    assert cli("employee", "move", "new", "lab").code == 0
    assert muster.map("EMPLOYEE.GET", "new") == {"id": "new", "name": "New One", "dept": "lab"}
    assert cli("employee", "remove", "new").code == 0
    assert muster.ask("EMPLOYEE.GET", "new").startswith("UNKNOWN")
    assert cli("team", "add", "annex", "hq", "--name", "Annex").out == "OK\n"
    assert muster.map("TEAM.GET", "annex")["parent"] == "hq"


def test_close_waits_for_the_books(morning, cli_for, company, stores):
    cli = cli_for(morning)
    assert cli("import", company).code == 0
    assert cli("checkin", "ada", "in", "--at", f"{DAY} 07:55").code == 0
    assert cli("day", DAY, "--json").row["state"] == "open"
    morning.set_clock("2026-12-01T04:30:00Z")
    result = cli("close", DAY, "--wait", "--json")
    assert result.code == 0, result.err
    assert (result.row["state"], result.row["written"], result.row["failed"]) == ("closed", result.row["expected"], 0)
    rows = stores.sql("SELECT employee, status FROM attendance_day WHERE work_date = %s", (DAY,))
    assert {row["employee"].decode(): row["status"] for row in rows} == {
        "ada": "missing_out", "bo": "absent", "cy": "absent", "di": "absent"}
    assert re.search(r"^state +closed$", cli("day", DAY).out, re.M)
    assert cli("close", DAY, "--wait").code == 0
    assert cli("init", "2026-12-02", "--json").row["day"] == "2026-12-02"


def test_failures_are_listed_and_discarded(morning, cli_for, stores):
    cli = cli_for(morning)
    assert cli("failures").out == "No failures.\n"
    connection = stores.sql("INSERT INTO persist_failure (kind, ref, work_date, dept, employee, reason, detail, owner, "
                            "created, updated) VALUES ('row', 'x', %s, 'lab', 'ada', 'too_long', 'Data too long', "
                            "'test', NOW(3), NOW(3))", (DAY,))
    assert connection == []
    row = cli("failures", "--json").row
    assert (row["employee"], row["reason"], row["day"], row["dept"]) == ("ada", "too_long", DAY, "lab")
    assert "too_long: Data too long" in cli("failures", "list", "--day", DAY).out
    assert cli("failures", "--dept", "elsewhere").out == "No failures.\n"
    assert cli("failures", "discard", row["id"]).out == "1 discarded\n"
    assert cli("failures").out == "No failures.\n"


def test_parked_notices_are_shown_and_replayed(muster, cli_for, stores):
    cli = cli_for(muster)
    channel = stores.amqp()
    queue = channel.queue_declare("supervisor.test", durable=True, arguments={"x-queue-type": "quorum"}).method.queue
    wait_until(lambda: cli("parked").out == "Nothing is parked.\n", 15, "the parking lot is there")
    channel.confirm_delivery()
    channel.basic_publish("", "muster.parked", b'{"schema":1,"events":[]}', pika.BasicProperties(
        message_id="m-1", type="attendance.late", delivery_mode=2,
        headers={"x-muster-attempt": 4, "x-muster-queue": queue, "x-muster-reason": "rejected"}), mandatory=True)
    row = wait_until(lambda: next(iter(cli("parked", "--json").rows), None), 15, "the notice is shown")
    assert (row["id"], row["type"], row["queue"], row["reason"]) == ("m-1", "attendance.late", queue, "rejected")
    assert '"schema":1' in cli("parked", "--body").out
    assert cli("replay", "m-1").out == "1 sent again\n"
    body = wait_until(lambda: channel.basic_get(queue, auto_ack=True)[2], 15, "the notice is back in its queue")
    assert json.loads(body)["schema"] == 1
    assert cli("parked").out == "Nothing is parked.\n"


def test_info_and_call(muster, cli_for):
    cli = cli_for(muster)
    info = cli("info", "--json").row
    assert info["server"]["uptime_in_seconds"] >= 0
    assert re.search(r"^uptime_in_seconds +\d+$", cli("info", "server").out, re.M)
    assert cli("call", "PING").out == "PONG\n"
    assert cli("call", "ECHO", "--json", "-x").code == 1
    assert cli("call", "--json", "ECHO", "--json").row == "--json"


def test_token_and_rights(make_muster, cli_for, tmp_path):
    users = tmp_path / "users"
    users.write_text("".join(f"{name} {hashlib.sha256(token).hexdigest()} {rights}\n" for name, token, rights in
                             (("reader", b"r-token", "read"), ("boss", b"b-token", "read write admin punch"))),
                     encoding="utf-8")
    token = tmp_path / "token"
    token.write_text("b-token\n", encoding="utf-8")
    muster = make_muster(config={"server": {"users_file": users}}, start=False).start(wait=False)
    muster.wait_answering()
    cli = cli_for(muster)
    add = ("team", "add", "hq", "-")
    wait_until(lambda: cli(*add, "--user", "boss", "--token-file", token).out == "OK\n", 30, "musterd takes commands")
    assert "NOAUTH" in cli(*add).err
    assert cli("team", "get", "hq", "--user", "reader", env={"MUSTER_TOKEN": "r-token"}).code == 0
    refused = cli(*add, "--user", "reader", env={"MUSTER_TOKEN": "r-token"})
    assert refused.code == 1 and "NOPERM" in refused.err
    wrong = cli("team", "get", "hq", "--user", "boss", env={"MUSTER_TOKEN": "r-token"})
    assert wrong.code == 1 and wrong.err.startswith("muster: ")
