# SPDX-License-Identifier: MIT
"""The command line tool without a musterd: usage, exit codes, files and environment, and an import that meets a
server which is busy, goes away, or refuses some of it."""
import itertools
import os
import pty
import queue
import re
import subprocess
import threading
from pathlib import Path

import pytest

from harness.cli import Canned, Cli
from harness.muster import Muster
from stack import free_port

HEAD = "kind,id,parent,name,manager\n"


def flat(**fields):
    """A map as RESP2 has it."""
    parts = []
    for name, value in fields.items():
        parts.append(b"$%d\r\n%s\r\n" % (len(name), name.encode()))
        if value is None:
            parts.append(b"$-1\r\n")
        elif isinstance(value, int):
            parts.append(b":%d\r\n" % value)
        else:
            data = value if isinstance(value, bytes) else value.encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"*%d\r\n" % len(parts) + b"".join(parts)


@pytest.fixture(name="run")
def fixture_run(tmp_path):
    """run(port, words...)"""
    def run(port, *words, **options):
        return Cli(port, tmp_path, Muster.build())(*words, **options)
    return run


@pytest.fixture(name="people")
def fixture_people(tmp_path):
    """people(text) writes an import file and gives its name."""
    def write(text):
        path = tmp_path / "people.csv"
        path.write_text(text, encoding="utf-8")
        return str(path)
    return write


def ok(_):
    return b"+OK\r\n"


# --- usage, exit codes, options ---------------------------------------------------------------------------------

def test_help_names_every_command(run):
    overview = run(1, "help").out
    for name in re.findall(r"^  (\w+) ", overview.split("Commands:")[1].split("Options")[0], re.M):
        assert run(1, "help", name).out.startswith(f"usage: muster {name}")
        assert run(1, name, "--help").out == run(1, "help", name).out
    assert run(1, "--version").out.startswith("muster ")


def test_man_page_names_every_command_and_option(run):
    page = (Path(__file__).resolve().parents[2] / "man" / "muster.1").read_text(encoding="utf-8").replace("\\-", "-")
    overview = run(1, "help").out
    for name in re.findall(r"^  (\w+) ", overview.split("Commands:")[1].split("Options")[0], re.M):
        assert re.search(rf"^\.It Cm {name}\b", page, re.M), name
        for option in re.findall(r"--([a-z-]+)", run(1, "help", name).out + overview):
            assert re.search(rf"Fl -{option}\b", page), (name, option)


@pytest.mark.parametrize("words", [
    (), ("nonsense",), ("help", "nonsense"), ("status",), ("status", "E1", "E2"), ("status", "--nope", "E1"),
    ("status", "E1", "--port", "0"), ("status", "E1", "--timeout", "never"), ("status", "E1", "--port"),
    ("status", "--json=1", "E1"), ("close", "2026-02-30"), ("close", "2026-02-20", "--limit", "x"), ("day",),
    ("roll", "D1", "--count", "--state", "late"), ("checkin", "E1", "sideways"), ("checkin", "E1", "--at", "25:00"),
    ("employee", "frobnicate"), ("employee", "get"), ("employee", "get", "E1", "--name", "x"), ("team", "add", "D1"),
    ("failures", "retry"), ("failures", "list", "1"), ("replay", "a", "b"), ("replay", "a", "--limit", "1"), ("call",),
    ("import",), ("import", "--window", "0", "x.csv"), ("status", "E1", "--config", "/nonexistent/muster.conf")])
def test_wrong_usage_is_2(run, words):
    result = run(1, *words)
    assert result.code == 2 and result.err and not result.out


def test_nobody_there_is_3(run):
    result = run(free_port(), "status", "E1")
    assert result.code == 3 and "Connection refused" in result.err


def test_no_answer_in_time_is_3(run):
    with Canned(lambda _: b"") as server:
        result = run(server.port, "status", "E1", "--timeout", "0.2")
    assert result.code == 3 and "no answer in time" in result.err


def test_refusal_is_1(run):
    with Canned(lambda _: b"-UNKNOWN no such employee\r\n") as server:
        result = run(server.port, "status", "E1")
    assert (result.code, result.out, result.err) == (1, "", "muster: UNKNOWN no such employee\n")


def test_options_stand_anywhere(run):
    with Canned(lambda _: flat(id="E1", state="present")) as server:
        for words in (("--json", "status", "E1"), ("status", "--json", "E1"), ("status", "E1", "--json")):
            assert run(1, "--port", server.port, *words).row == {"id": "E1", "state": "present"}


def test_call_leaves_its_arguments_alone(run):
    with Canned(lambda words: b"*2\r\n:1\r\n$-1\r\n") as server:
        assert run(server.port, "call", "--json", "SET", "--port", "--", "-h").row == [1, None]
        assert server.asked == [["SET", "--port", "--", "-h"]]
        assert run(server.port, "call", "X").out == "1) 1\n2) (nil)\n"


def test_command_line_over_environment_over_file(run, tmp_path):
    config = tmp_path / "client.conf"
    user_file = tmp_path / ".config" / "muster.conf"
    user_file.parent.mkdir()
    with Canned(ok) as server:
        config.write_text(f"[server]\nhost = localhost\nport = {server.port}\n[amqp]\nvhost = x\n", encoding="utf-8")
        user_file.write_text(config.read_text(encoding="utf-8"), encoding="utf-8")
        assert run("", "call", "A").code == 0
        assert run("", "call", "--config", config, "B").code == 0
        assert run(1, "call", "--config", config, "C").code == 3
        assert run(1, "call", "--config", config, "--port", server.port, "D").code == 0
        config.write_text("[server]\nprot = 1\n", encoding="utf-8")
        assert "[server] prot: no such key" in run("", "call", "--config", config, "E").err
        config.write_text("[server\n", encoding="utf-8")
        assert "line 1" in run("", "call", "--config", config, "F").err
    assert [words[0] for words in server.asked] == ["A", "B", "D"]


def test_token_logs_in(run, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret\n", encoding="utf-8")
    with Canned(ok) as server:
        assert run(server.port, "call", "--token-file", token, "--user", "reader", "PING").code == 0
        assert run(server.port, "call", "PING", env={"MUSTER_TOKEN": "t2"}).code == 0
    assert server.asked == [["AUTH", "reader", "s3cret"], ["PING"], ["AUTH", "t2"], ["PING"]]
    with Canned(lambda _: b"-NOAUTH wrong token\r\n") as server:
        result = run(server.port, "call", "PING", env={"MUSTER_TOKEN": "t2"})
    assert result.code == 1 and "NOAUTH" in result.err and "t2" not in result.err


# --- output ----------------------------------------------------------------------------------------------------

def test_escape_sequences_do_not_reach_the_terminal(run):
    with Canned(lambda _: flat(id="E1", name=b"\x1b[31mred\xff", state="late", late=192000)) as server:
        text = run(server.port, "status", "E1").out
        assert "\x1b" not in text and "?[31mred?" in text and "3m12s" in text
        assert run(server.port, "status", "E1", "--json").row["name"] == "\x1b[31mred\ufffd"


def test_roll_follows_the_cursor(run):
    def answer(words):
        cursor = words[words.index("CURSOR") + 1] if "CURSOR" in words else "0"
        following = str(int(cursor) + 1) if cursor != "2" else ""
        row = flat(id=f"E{cursor}", name="Zoë", dept="D1", state="present", punches=1, out=None,
                   **{"in": 1796036400000})
        return b"*2\r\n$%d\r\n%s\r\n*1\r\n%s" % (len(following), following.encode(), row)

    with Canned(answer) as server:
        result = run(server.port, "roll", "D1", "--day", "2026-11-30", "--state", "present", "--subtree")
        assert result.out.splitlines() == [
            "EMPLOYEE  NAME  DEPARTMENT  STATE          IN  OUT  PUNCHES  LATE  EARLY",
            "E0        Zoë   D1          present  11:00:00    -        1     -      -",
            "E1        Zoë   D1          present  11:00:00    -        1     -      -",
            "E2        Zoë   D1          present  11:00:00    -        1     -      -"]
        assert server.asked[1] == ["ROLL", "D1", "DAY", "2026-11-30", "STATE", "present", "SUBTREE", "CURSOR", "1",
                                   "COUNT", "500"]
        assert [row["id"] for row in run(server.port, "roll", "D1", "--json").rows] == ["E0", "E1", "E2"]


def test_reader_that_goes_away_is_not_an_error_message(run, tmp_path):
    row = flat(id="E1", state="present")
    page = b"*2\r\n$1\r\n1\r\n*500\r\n" + row * 500
    with Canned(lambda _: page) as server:
        cli = Cli(server.port, tmp_path, Muster.build())
        command = " ".join(cli.command("roll", "D1")) + " | head -3"
        done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=30, check=True,
                              env=cli.environment({}))
    assert done.stderr == b"" and done.stdout.count(b"\n") == 3


def test_colours_and_progress_on_a_terminal_only(run, tmp_path):
    with Canned(lambda _: flat(id="E1", state="absent")) as server:
        cli = Cli(server.port, tmp_path, Muster.build())
        assert "\x1b" not in run(server.port, "status", "E1").out
        for words, colored in ((("status", "E1"), True), (("status", "E1", "--no-color"), False)):
            reader, writer = pty.openpty()
            subprocess.run(cli.command(*words), stdout=writer, check=True, timeout=30, env=cli.environment({}))
            os.close(writer)
            assert (b"\x1b[31mabsent" in os.read(reader, 4096)) is colored
            os.close(reader)


def day(state, **fields):
    numbers = {"expected": 3, "written": 3, "failed": 0, "absent": 1}
    return flat(**{"day": "2026-11-30", "state": state, **numbers, **fields})


def test_close_waits_until_closed(run):
    """Through a daemon that is still at it after its minute, busy, gone and back."""
    replies = iter([day("closing"), b"-NOTREADY starting\r\n", None, day("closed")])
    with Canned(lambda _: next(replies)) as server:
        result = run(server.port, "close", "2026-11-30", "--wait", "--json")
    assert result.code == 0 and result.row["state"] == "closed"
    assert [words[0] for words in server.asked] == ["DAY.CLOSE"] * 4


def test_close_shows_how_far_it_is(tmp_path):
    """DAY.CLOSE is answered at the end only; meanwhile DAY.STATE gives the progress."""
    looked = threading.Semaphore(0)

    def answer(words):
        if words[0] == "DAY.CLOSE":
            assert all(looked.acquire(timeout=20) for _ in range(3))
            return day("closed", written=200, expected=200)
        looked.release()
        return day("closing", written=50, expected=200)

    with Canned(answer) as server:
        cli = Cli(server.port, tmp_path, Muster.build())
        reader, writer = pty.openpty()
        subprocess.run(cli.command("close", "2026-11-30", "--wait"), stdout=subprocess.DEVNULL, stderr=writer,
                       check=True, timeout=30, env=cli.environment({}))
        os.close(writer)
        drawn = os.read(reader, 65536).decode()
        os.close(reader)
    assert "closing [######..................]  25%  50 rows" in drawn
    assert [words[0] for words in server.asked[:2]] == ["DAY.CLOSE", "DAY.STATE"]


def test_close_of_a_department_ends_with_its_reply(run):
    with Canned(lambda _: day("closing")) as server:
        assert run(server.port, "close", "2026-11-30", "--dept", "D1", "--wait").code == 0
    assert server.asked == [["DAY.CLOSE", "2026-11-30", "DEPT", "D1"]]


def test_close_of_a_day_that_never_was(run):
    with Canned(lambda _: day("none")) as server:
        result = run(server.port, "close", "2026-11-30", "--wait")
    assert result.code == 1 and "nothing to close" in result.err


def test_close_stops_at_a_refusal(run):
    replies = iter([day("closing"), b"-NOPERM not yours\r\n"])
    with Canned(lambda _: next(replies)) as server:
        result = run(server.port, "close", "2026-11-30", "--wait")
    assert result.code == 1 and result.err.endswith("muster: NOPERM not yours\n")


def test_close_has_a_limit_and_tells_failed_rows(run):
    state = {"state": "closing", "failed": 0}
    with Canned(lambda _: day(**state)) as server:
        result = run(server.port, "close", "2026-11-30", "--wait", "--limit", "1")
        assert result.code == 1 and "not closed after 1 s" in result.err
        state.update(state="closed", failed=2)
        result = run(server.port, "close", "2026-11-30", "--wait")
        assert result.code == 1 and "2 rows could not be written" in result.err
        assert run(server.port, "close", "2026-11-30").code == 0


# --- the tree ---------------------------------------------------------------------------------------------------

def page(cursor, *rows):
    return b"*2\r\n$%d\r\n%s\r\n*%d\r\n" % (len(cursor), cursor.encode(), len(rows)) + b"".join(rows)


def team(key, depth, listed, **fields):
    return flat(**{"id": key, "name": key, "depth": depth, "manager": "", "state": "active", "descendants": listed,
                   "listed": listed, **fields})


def test_tree_is_drawn_page_by_page(run):
    """Nothing is held back: the corner of the last of many is known when it comes, pages later."""
    pages = {"": page("a:a1", team("a", 1, 1), team("a1", 2, 0)), "a:a1": page("b", team("b", 1, 0, name=b"\x1b[1mB")),
             "b": page("", team("c", 1, 2), team("c1", 2, 1, manager="ann"), team("c11", 3, 0))}

    def answer(words):
        if words[0] == "TEAM.DESCENDANTS":
            return pages[words[words.index("CURSOR") + 1] if "CURSOR" in words else ""]
        if words[0] == "TEAM.CHILDREN":
            return page("", team("a", 1, 1), team("b", 1, 0), team("c", 1, 2))
        return team("top", 0, 6)

    with Canned(answer) as server:
        result = run(server.port, "tree", "top", "--depth", "3")
        assert result.out.splitlines() == [
            "top  (6 below)", "|-- a  (1 below)", "|   `-- a1", "|-- b  ?[1mB", "`-- c  (2 below)",
            "    `-- c1  ann  (1 below)", "        `-- c11"]
        assert server.asked[2] == ["TEAM.DESCENDANTS", "top", "DEPTH", "3", "DETAIL", "COUNT", "500"]
        assert "└── c  (2 below)" in run(server.port, "tree", "top", env={"LC_ALL": "C.UTF-8"}).out
        assert [row["id"] for row in run(server.port, "tree", "top", "--json").rows] == [
            "top", "a", "a1", "b", "c", "c1", "c11"]


def test_long_changes_show_how_far_they_are(tmp_path):
    """TEAM.MOVE is answered when its job has ended; meanwhile TEAM.JOBS gives the progress."""
    looked = threading.Semaphore(0)

    def answer(words):
        if words[0] == "TEAM.MOVE":
            assert all(looked.acquire(timeout=20) for _ in range(2))
            return b"+OK\r\n"
        looked.release()
        jobs = [flat(job="7", op="move", team="other", done=1, total=9),
                flat(job="8", op="move", team="D1", done=50, total=200)]
        return b"*%d\r\n" % len(jobs) + b"".join(jobs)

    with Canned(answer) as server:
        cli = Cli(server.port, tmp_path, Muster.build())
        reader, writer = pty.openpty()
        done = subprocess.run(cli.command("team", "move", "D1", "D2", "--timeout", "0.1"), stdout=subprocess.PIPE,
                              stderr=writer, check=True, timeout=30, env=cli.environment({}))
        os.close(writer)
        drawn = os.read(reader, 65536).decode()
        os.close(reader)
    assert done.stdout == b"OK\n" and "changing [######..................]  25%  50 departments" in drawn


def test_long_change_of_a_server_that_hangs_is_3(run):
    with Canned(lambda _: b"") as server:
        result = run(server.port, "team", "move", "D1", "D2", "--timeout", "0.3")
    assert result.code == 3 and "no answer" in result.err


def checked(state, findings, repaired):
    item = flat(code="DSMISS", id="4", detail="1", repaired=repaired)
    fields = flat(state=state, keys=100, nodes=20, findings=findings, repaired=repaired).split(b"\r\n", 1)[1]
    return (b"*14\r\n" + fields + b"$5\r\ncodes\r\n" + flat(DSMISS=findings) + b"$5\r\nitems\r\n*1\r\n" + item)


def test_check_is_waited_for(run):
    replies = iter([checked("running", 1, 0), checked("done", 2, 1), checked("done", 1, 1), checked("done", 2, 2)])
    with Canned(lambda _: next(replies)) as server:
        result = run(server.port, "check")
        assert result.code == 1 and result.out.splitlines() == [
            "checked      20 departments, 100 keys", "findings     2, 1 repaired", "             DSMISS 2",
            "CODE    ID  REPAIRED  DETAIL", "DSMISS  4          1  1", "and 1 more"]
        assert run(server.port, "check", "--repair").code == 0
        row = run(server.port, "check", "--repair", "--truth", "--json").row
        assert row["codes"] == {"DSMISS": 2} and row["items"][0]["id"] == "4"
    assert server.asked == [["TEAM.CHECK"]] * 2 + [["TEAM.CHECK", "REPAIR"], ["TEAM.CHECK", "REPAIR", "TRUTH"]]


def test_export_that_fails_leaves_no_file(run, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("before", encoding="utf-8")

    def answer(words):
        return page("", team("a", 1, 0)) if words[0] == "TEAM.DESCENDANTS" else b"-UNAVAILABLE redis\r\n"

    with Canned(answer) as server:
        result = run(server.port, "export", target)
    assert result.code == 1 and "UNAVAILABLE" in result.err
    assert target.read_text(encoding="utf-8") == "before" and not list(tmp_path.glob("*.part"))


def test_employee_who_goes_during_an_export_is_left_out(run):
    def answer(words):
        if words[0] == "TEAM.DESCENDANTS":
            return page("", team("a", 1, 0))
        if words[0] == "TEAM.MEMBERS":
            more = "CURSOR" in words
            return page("" if more else "2", *(b"$2\r\ne%d\r\n" % n for n in ([2, 4] if more else [3, 2, 1])))
        if words[1] == "e3":
            return b"-UNKNOWN no such employee\r\n"
        return flat(id=words[1], name="N", dept="a" if words[1] != "e1" else "b")

    with Canned(answer) as server:
        result = run(server.port, "export")
    assert result.out.splitlines() == ["kind,id,parent,name,manager,state", "department,a,,a,,", "employee,e2,a,N,,",
                                       "employee,e4,a,N,,", "member,e1,a,,,"]


def test_export_does_not_ask_each_team_of_an_empty_branch(run):
    """A big branch is asked for anybody at all, page by page; when there is nobody its teams are passed over."""
    teams = [team("a", 1, 150), team("a1", 2, 120), team("a11", 3, 0), team("b", 1, 150), team("b1", 2, 0)]

    def answer(words):
        if words[0] == "TEAM.DESCENDANTS":
            return page("", *teams)
        if words[0] == "EMPLOYEE.GET":
            return flat(id=words[1], name="", dept="b")
        empty_page = page("" if "CURSOR" in words else "1")
        return page("", b"$2\r\ne1\r\n") if words[1] == "b" else page("") if words[1] == "b1" else empty_page

    with Canned(answer) as server:
        result = run(server.port, "export")
    assert result.out.splitlines()[-1] == "employee,e1,b,,,"
    assert [words[1:3] for words in server.asked if words[0] == "TEAM.MEMBERS"] == [
        ["a", "SUBTREE"], ["a", "SUBTREE"], ["b", "SUBTREE"], ["b", "COUNT"], ["b1", "COUNT"]]


# --- import ----------------------------------------------------------------------------------------------------

def empty(words):
    """A server that knows no team yet and accepts everything."""
    return b"-UNKNOWN no such department\r\n" if words[0] == "TEAM.GET" else b"+OK\r\n"


def test_parents_first_then_people_then_states(run, people):
    """Of a department whose parent was just made nothing has to be asked."""
    name = people("\ufeffkind,id,parent,name,manager,state\r\n"
                  "member,E2,D2,,,\r\nemployee,E1,D2,\"Lovelace, Ada\",,\r\n"
                  "department,D2,D1,Research,E1,retired\r\ndepartment,D1,,Head,,active\r\nemployee,E2,,,,\r\n")
    with Canned(empty) as server:
        result = run(server.port, "import", name)
    assert result.code == 0 and result.err == ""
    assert server.asked == [["TEAM.GET", "D1"], ["TEAM.ADD", "D1", "-", "NAME", "Head"],
                            ["TEAM.ADD", "D2", "D1", "NAME", "Research", "MANAGER", "E1"],
                            ["EMPLOYEE.SET", "E1", "DEPT", "D2", "NAME", "Lovelace, Ada"], ["EMPLOYEE.SET", "E2"],
                            ["TEAM.JOIN", "D2", "E2"], ["TEAM.REMOVE", "D2", "RETIRE"]]
    assert result.out.splitlines()[:3] == ["departments  2 created, 0 unchanged, 0 failed",
                                           "employees    2 sent, 2 ok, 0 failed", "members      1 sent, 1 ok, 0 failed"]


def test_what_is_there_is_not_added(run, people):
    """The same: left alone. Another name: the server is to say what it thinks of it. What is retired already stays."""
    name = people("kind,id,parent,name,state\ndepartment,D1,,Head,\ndepartment,D2,D1,Two,\ndepartment,D3,D1,,retired\n")
    known = {"D1": flat(id="D1", parent="", name="Head", manager="", state="active"),
             "D2": flat(id="D2", parent="D1", name="Other", manager="", state="active"),
             "D3": flat(id="D3", parent="D1", name="D3", manager="", state="retired")}
    with Canned(lambda words: known[words[1]] if words[0] == "TEAM.GET" else b"-EXISTS the id is taken\r\n") as server:
        result = run(server.port, "import", name, "--json")
    assert [words[:2] for words in server.asked] == [
        ["TEAM.GET", "D1"], ["TEAM.GET", "D2"], ["TEAM.GET", "D3"], ["TEAM.ADD", "D2"]]
    assert result.code == 1 and result.err == f"{name}:3: EXISTS the id is taken\n"
    assert result.row["departments"] == {"sent": 3, "ok": 2, "failed": 1, "created": 0, "unchanged": 2}


def test_whole_trees_or_nothing(run, people):
    name = people(HEAD + "department,A,,,\ndepartment,A1,A,,\ndepartment,A2,A1,,E 1\n"
                  "department,B,,,\ndepartment,B1,B,,\ndepartment,C,,,\ndepartment,C1,C,Same,\n"
                  "department,C2,C,SAME,\nemployee,E1,A1,,\nemployee,E2,B1,,\n")
    with Canned(empty) as server:
        result = run(server.port, "import", name, "--whole")
    lines = dict(line.removeprefix(name + ":").split(": ", 1) for line in result.err.splitlines())
    left_out = "left out: something in its tree is wrong"
    assert lines.pop("4").startswith("manager: ")
    assert lines == {"2": left_out, "3": left_out, "7": left_out, "8": left_out,
                     "10": "its department A1 of line 3 failed",
                     "9": "the department C1 of line 8 has this name and the same parent"}
    assert [words[:2] for words in server.asked if words[0] != "CONFIG"] == [
        ["TEAM.GET", "B"], ["TEAM.ADD", "B"], ["TEAM.ADD", "B1"], ["EMPLOYEE.SET", "E2"]]
    with Canned(empty) as server:
        result = run(server.port, "import", people(HEAD + "department,A,,,\nrobot,R,,,\n"), "--whole")
    assert result.code == 1 and server.asked == [] and "--whole" in result.err


def test_duplicates(run, people):
    """The same line again is no error; the same id with two parents is, in the later line."""
    name = people(HEAD + "department,A,,,\ndepartment,B,,,\ndepartment,X,A,,\ndepartment,X,A,,\ndepartment,X,B,,\n")
    with Canned(empty) as server:
        result = run(server.port, "import", name, "--json")
    assert result.code == 1 and result.err == f"{name}:6: this department is in line 4 already, and not the same\n"
    assert result.row["duplicates"] == 1 and result.row["departments"]["created"] == 3


def test_from_stdin(run):
    with Canned(ok) as server:
        assert run(server.port, "import", "-", "--json", stdin=HEAD + "employee,E1,,,").row["employees"] == {
            "sent": 1, "ok": 1, "failed": 0}
        result = run(server.port, "import", "-", stdin=HEAD + "employee,,,,\n")
        assert result.code == 1 and result.err.startswith("stdin:2: id: ")


def test_each_failed_line_is_named_once(run, people):
    name = people(HEAD + "department,bad,,,\ndepartment,below,bad,,\nemployee,E1,below,,\nemployee,E2,bad,,\n"
                  "department,good,,,\nemployee,E3,good,,\nemployee,E 4,good,,\nemployee,E5,nowhere,,\n"
                  "department,good,,Other,\ndepartment,x,y,,\ndepartment,y,x,,\nemployee,\"E\"6,,,\nrobot,R1,,,\n"
                  "employee,E7\n")

    def answer(words):
        if words[0] == "TEAM.GET":
            return empty(words)
        if words[1] == "bad":
            return b"-CONFLICT it is elsewhere\r\n"
        return b"-UNKNOWN no such department\r\n" if "nowhere" in words else b"+OK\r\n"

    with Canned(answer) as server:
        result = run(server.port, "import", name, "--json")
    lines = dict(line.removeprefix(name + ":").split(": ", 1) for line in result.err.splitlines())
    assert result.code == 1 and len(result.err.splitlines()) == len(lines)
    assert lines.pop("8").startswith("id: ")
    assert lines == {
        "2": "CONFLICT it is elsewhere", "3": "its parent bad of line 2 failed",
        "4": "its department below of line 3 failed", "5": "its department bad of line 2 failed",
        "9": "UNKNOWN no such department", "10": "this department is in line 6 already, and not the same",
        "11": "this department is above itself", "12": "this department is above itself",
        "13": "text behind the closing quote", "14": "kind: expected department, employee or member",
        "15": "expected 5 fields as in the head line, found 2"}
    assert [words[1] for words in server.asked] == ["bad", "good", "bad", "good", "E3", "E5"]
    row = result.row
    assert row["departments"] == {"sent": 2, "ok": 1, "failed": 5, "created": 1, "unchanged": 0}
    assert row["employees"] == {"sent": 2, "ok": 1, "failed": 4} and row["malformed"] == 3


def test_dry_run_sends_nothing(run, people):
    name = people(HEAD + "department,D1,,,\nemployee,E1,D1,,\nemployee,,D1,,\n")
    result = run(free_port(), "import", "--dry-run", "--json", name)
    assert result.code == 1 and result.row["employees"] == {"sent": 0, "ok": 1, "failed": 1}
    assert result.row["dry_run"] is True


@pytest.mark.parametrize("text", ["", "employee,E1,,\n", "kind,id,nmae\nemployee,E1,x\n", "kind,name\n"])
def test_head_line_is_needed(run, people, text):
    with Canned(ok) as server:
        result = run(server.port, "import", people(text))
        assert result.code == 1 and ":1: " in result.err and server.asked == []


def test_missing_file(run, tmp_path):
    result = run(1, "import", tmp_path / "none.csv")
    assert result.code == 1 and "No such file" in result.err


def many(count):
    return HEAD + "".join(f"employee,E{n},,Person {n},\n" for n in range(count))


@pytest.mark.parametrize("setback", [b"-BUSY later\r\n", b"-NOTREADY starting\r\n", b"-UNAVAILABLE redis\r\n", None])
def test_setbacks_are_retried_in_order(run, people, setback):
    """Every 97th command meets a setback; in the end each employee was accepted, and the last answer to each came
    in the order of the file."""
    counter = itertools.count(1)
    accepted = []

    def answer(words):
        if next(counter) % 97 == 0:
            return setback
        accepted.append(int(words[1][1:]))
        return b"+OK\r\n"

    with Canned(answer) as server:
        result = run(server.port, "import", people(many(300)), "--window", "40", "--json")
    assert result.code == 0 and result.err == ""
    assert result.row["employees"] == {"sent": 300, "ok": 300, "failed": 0}
    last = list(dict.fromkeys(reversed(accepted)))[::-1]
    assert last == list(range(300))


def test_gives_up_without_progress(run, people):
    with Canned(lambda _: b"-BUSY later\r\n") as server:
        result = run(server.port, "import", people(many(3)), "--retry", "1", "--json")
    assert result.code == 1 and "gave up after 1 s without progress: BUSY later" in result.err
    assert result.row["complete"] is False and result.row["employees"]["ok"] == 0


def test_server_that_stays_away_is_3(run, people):
    counter = itertools.count()
    with Canned(lambda _: b"+OK\r\n" if next(counter) < 5 else None) as server:
        result = run(server.port, "import", people(many(20)), "--retry", "0", "--json")
    assert result.code == 3 and result.row["complete"] is False and result.row["employees"]["ok"] == 5


def test_right_is_missing_for_everything(run, people):
    with Canned(lambda _: b"-NOPERM not yours\r\n") as server:
        result = run(server.port, "import", people(many(3000)))
    assert result.code == 1 and result.err == "muster: NOPERM not yours\n"


def peak_memory(process):
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"^VmHWM:\s+(\d+) kB", status, re.M).group(1))


def test_memory_does_not_grow_with_employees(tmp_path, people):
    """Peak memory of the tool at the last employee of 20,000 and of 60,000."""
    peaks = []
    for count in (20000, 60000):
        running = queue.Queue()

        def answer(words, last=f"E{count - 1}", running=running):
            if words[1] == last:
                peaks.append(peak_memory(running.get(timeout=10)))
            return b"+OK\r\n"

        with Canned(answer) as server:
            cli = Cli(server.port, tmp_path, Muster.build())
            # The address sanitizer keeps what is freed; here it is not to.
            env = cli.environment({"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"})
            with subprocess.Popen(cli.command("import", people(many(count))), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=env) as process:
                running.put(process)
                assert process.wait(90) == 0
            assert sum(words[0] == "EMPLOYEE.SET" for words in server.asked) == count
    assert len(peaks) == 2 and peaks[1] < peaks[0] + 2048, peaks


def test_progress_bar_on_a_terminal(tmp_path, people):
    with Canned(ok) as server:
        cli = Cli(server.port, tmp_path, Muster.build())
        reader, writer = pty.openpty()
        subprocess.run(cli.command("import", people(many(100))), stdout=subprocess.DEVNULL, stderr=writer, check=True,
                       timeout=30, env=cli.environment({}))
        os.close(writer)
        drawn = os.read(reader, 65536).decode()
        os.close(reader)
    assert re.search(r"\rimporting \[#{24}\] 100%  100 employees, \d+/s", drawn)
