# SPDX-License-Identifier: MIT
"""The tree through the command line tool, on a real musterd: import and export, drawing, changes, checks."""
import json
import re
import subprocess

import pytest

from harness.cli import Cli
from harness.muster import Muster, Stores
from harness.wait import wait_until

HEAD = "kind,id,parent,name,manager,state\n"
# What 1 -> 2 -> 3 -> 4, 1 -> 5 -> 6 looks like in a file, with everything that a line can hold.
COMPANY = HEAD + '''\
department,0,,Unassigned,,
department,1,,"Müller, ""Söhne"" & Co",ada,
department,2,1,a:b/c.d,,
department,3,2,🦆 Entwicklung,bo@x.org,retired
department,4,3, leading blank,,
department,5,1,研究,,
department,6,5,"#*{x}""",,
employee,di,0,Nowhere yet,,
employee,ada,1,"Lovelace, Ada",,
employee,bo@x.org,3,"Bo ""the"" B",,
member,ada,3,,,
employee,cy,4,Zoë,,
member,ada,6,,,
member,cy,6,,,
'''


@pytest.fixture(name="cli_for")
def fixture_cli_for(tmp_path):
    return lambda muster: Cli(muster.port, tmp_path, Muster.build())


@pytest.fixture(name="cli")
def fixture_cli(muster, cli_for):
    return cli_for(muster)


@pytest.fixture(name="write")
def fixture_write(tmp_path):
    """write(text) makes an import file and gives its path."""
    def write(text, name="company.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path
    return write


@pytest.fixture(name="other")
def fixture_other(stack, tmp_path):
    """A second Muster on stores of its own, with nothing in it."""
    stores = Stores(stack)
    muster = Muster(stores, tmp_path / "elsewhere").start()
    yield muster
    muster.close()
    stores.remove()


def failed_lines(result, path):
    return dict(line.removeprefix(f"{path}:").split(": ", 1) for line in result.err.splitlines())


def counts(result):
    row = result.row["departments"]
    return row["created"], row["unchanged"], row["failed"]


# --- import ----------------------------------------------------------------------------------------------------

def test_order_of_lines_does_not_matter(muster, other, cli_for, write):
    """Children before their parents make the tree that sorted lines make."""
    lines = ["department,4,3\n", "department,3,2\n", "department,2,1\n", "department,1,\n"]
    for daemon, order in ((muster, lines), (other, lines[::-1])):
        result = cli_for(daemon)("import", write("kind,id,parent\n" + "".join(order)), "--json")
        assert result.code == 0 and counts(result) == (4, 0, 0)
    assert muster.map("TEAM.GET", "4")["path"] == "1:2:3:4"
    assert cli_for(muster)("export", "-").out == cli_for(other)("export", "-").out


def test_what_can_not_be_placed_fails_alone(muster, cli, write):
    """A parent that is nowhere costs itself and what is below it; a circle is told of, line by line."""
    path = write("kind,id,parent\ndepartment,1,\ndepartment,91,9\ndepartment,9,77\ndepartment,911,91\n"
                 "department,2,1\ndepartment,a,b\ndepartment,b,a\nemployee,e,911\nmember,e,9\nemployee,f,2\n")
    result = cli("import", path, "--json")
    lines = failed_lines(result, path)
    assert result.code == 1 and counts(result) == (2, 0, 5)
    assert lines.pop("4").startswith("UNKNOWN ")
    assert lines == {"3": "its parent 9 of line 4 failed", "5": "its parent 91 of line 3 failed",
                     "7": "this department is above itself", "8": "this department is above itself",
                     "9": "its department 911 of line 5 failed", "10": "its department 9 of line 4 failed"}
    for team in ("9", "91", "911", "a", "b"):
        assert muster.ask("TEAM.GET", team).startswith("UNKNOWN")
    assert muster.map("TEAM.GET", "2")["members"] == 1


def test_second_run_creates_nothing(muster, cli, write):
    """A second run of the same file creates nothing."""
    path = write(COMPANY)
    for expected in ((6, 1, 0), (0, 7, 0)):
        result = cli("import", path, "--json")
        assert result.code == 0, result.err
        assert counts(result) == expected
        assert result.row["employees"]["ok"] == 4 and result.row["members"]["ok"] == 3
    teams = [row for row in cli("tree", "--all", "--json").rows if row["id"] != "0"]
    assert [row["id"] for row in teams] == ["1", "2", "3", "4", "5", "6"]
    assert [row["version"] for row in teams] == [1, 1, 2, 1, 1, 1], "only the retiring was a change"
    assert muster.map("TEAM.GET", "1")["descendants"] == 5
    assert "7 unchanged" in cli("import", path).out


def test_one_id_with_two_parents(muster, cli, write):
    """The first line counts, the second is an error."""
    path = write("kind,id,parent\ndepartment,1,\ndepartment,2,\ndepartment,3,1\ndepartment,3,2\ndepartment,3,1\n")
    result = cli("import", path, "--json")
    assert result.code == 1 and result.row["duplicates"] == 1
    assert failed_lines(result, path) == {"5": "this department is in line 4 already, and not the same"}
    assert muster.ask("TEAM.PATH", "3") == "1:3"


def test_whole_tree_is_left_out(muster, cli, write):
    depth = 64
    chain = "".join(f"department,d{n},{f'd{n - 1}' if n else ''}\n" for n in range(depth + 1))
    path = write("kind,id,parent\ndepartment,1,\ndepartment,2,1\ndepartment,2 2,2\ndepartment,ok,\n" + chain)
    result = cli("import", path, "--whole", "--json")
    lines = failed_lines(result, path)
    assert result.code == 1 and counts(result) == (1, 0, 3 + depth + 1)
    assert lines["70"] == f"too deep, expected at most {depth} levels" and lines["6"].startswith("left out")
    assert muster.ask("TEAM.GET", "1").startswith("UNKNOWN") and muster.ask("TEAM.GET", "d0").startswith("UNKNOWN")
    result = cli("import", path, "--json")
    assert counts(result) == (2 + depth, 1, 2), "without the word only the bad ones are left out"
    assert muster.ask("TEAM.GET", f"d{depth}").startswith("UNKNOWN")


def test_names_are_compared_as_the_server_does(cli, write):
    path = write("kind,id,parent,name\ndepartment,1,,Top\ndepartment,2,1,Straße\ndepartment,3,1,STRASSE\n"
                 "department,4,1,cafe\u0301\n")
    result = cli("import", path)
    assert failed_lines(result, path) == {"4": "the department 2 of line 3 has this name and the same parent"}
    assert cli("import", write("kind,id,parent,name\ndepartment,4,1,Caf\u00e9\n", "b.csv")).code == 1, "another name"
    result = cli("import", write("kind,id,parent,name\ndepartment,4,1,cafe\u0301\n", "c.csv"), "--json")
    assert result.code == 0 and counts(result) == (0, 1, 0), "the same in another spelling"
    other = write("kind,id,parent,name\ndepartment,5,1,CAF\u00c9\n", "d.csv")
    assert failed_lines(cli("import", other), other)["2"].startswith("CONFLICT ")


def test_import_of_departments_survives_kill9(muster, cli, write):
    count = 6000
    path = write("kind,id,parent\n" + "".join(
        f"department,n{n},{f'n{(n - 1) // 4}' if n else ''}\n" for n in reversed(range(count))))
    with subprocess.Popen(cli.command("import", path, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=cli.environment({})) as process:
        wait_until(lambda: str(muster.ask("TEAM.GET", "n400")).startswith("["), 30, "the import has begun")
        muster.kill9()
        muster.start()
        out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err.decode()
    row = json.loads(out)["departments"]
    assert row["ok"] == row["created"] == count and row["failed"] == 0
    assert muster.map("TEAM.GET", "n0")["descendants"] == count - 1
    assert counts(cli("import", path, "--json")) == (0, count, 0)


# --- export ----------------------------------------------------------------------------------------------------

def test_export_gives_the_same_file_back(muster, other, cli_for, write, tmp_path):
    assert cli_for(muster)("import", write(COMPANY)).code == 0
    exported = cli_for(muster)("export").out
    assert exported == COMPANY
    result = cli_for(other)("import", "-", stdin=exported)
    assert result.code == 0, result.err
    again = tmp_path / "again.csv"
    assert cli_for(other)("export", again).out == f"{again}: 7 departments, 4 employees, 3 members\n"
    assert again.read_text(encoding="utf-8") == COMPANY
    assert cli_for(other)("export", again, "--json").row["members"] == 3
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("again")] == ["again.csv"]


def test_unassigned_of_another_name(muster, other, cli_for):
    """Department 0 is there from the start; in a file it may have another name."""
    assert muster.ask("TEAM.RENAME", "0", "Noch ohne") == "OK" and muster.ask("TEAM.MANAGER", "0", "di") == "OK"
    assert muster.ask("TEAM.ADD", "hq", "-") == "OK" and muster.ask("EMPLOYEE.SET", "di") == "OK"
    exported = cli_for(muster)("export").out
    result = cli_for(other)("import", "-", "--json", stdin=exported)
    assert result.code == 0 and counts(result) == (1, 1, 0), result.err
    assert cli_for(other)("export").out == exported == HEAD + (
        "department,0,,Noch ohne,di,\ndepartment,hq,,hq,,\nemployee,di,0,,,\n")


def test_export_of_a_part(muster, cli, write):
    assert cli("import", write(COMPANY)).code == 0
    lines = COMPANY.splitlines()
    wanted = [lines[0]] + [line for line in lines if re.match("(department,[34]|(employee|member),[^,]+,[34]),", line)]
    assert cli("export", "-", "3").out.splitlines() == wanted
    result = cli("export", "-", "nowhere")
    assert result.code == 1 and result.err.startswith("muster: UNKNOWN ")


def test_export_of_many(muster, other, cli_for, write):
    """More than a page of everything: of departments, of people in one, of members."""
    people = "".join(f"employee,e{n:04},{'big' if n % 2 else f't{n % 1200}'},Person {n},,\n" for n in range(3000))
    teams = "".join(f"department,t{n},{'big' if n < 700 else ''},,,{'retired' if n % 97 == 0 else ''}\n"
                    for n in range(1200))
    members = "".join(f"member,e{n:04},t3,,,\n" for n in range(1400))
    assert cli_for(muster)("import", write(HEAD + "department,big,,,,\n" + teams + people + members)).code == 0
    exported = cli_for(muster)("export").out
    lines = exported.splitlines()
    assert [sum(line.startswith(kind) for line in lines) for kind in ("department,", "employee,", "member,")] == [
        1202, 3000, 1400 - sum(n % 2 == 0 and n % 1200 == 3 for n in range(1400))]
    assert len(set(lines)) == len(lines)
    assert cli_for(other)("import", "-", stdin=exported).code == 0
    assert cli_for(other)("export").out == exported


# --- tree ------------------------------------------------------------------------------------------------------

TREE = """\
1  Müller, "Söhne" & Co  ada  (5 below)
├── 2  a:b/c.d  (2 below)
│   └── 3  🦆 Entwicklung  bo@x.org  (1 below)  retired
│       └── 4   leading blank
└── 5  研究  (1 below)
    └── 6  #*{x}"
"""


def test_tree_is_drawn(muster, cli, write):
    utf8 = {"LC_ALL": "C.UTF-8"}
    assert cli("import", write(COMPANY)).code == 0
    assert cli("tree", "1", "--all", env=utf8).out == TREE
    assert cli("tree", "--all", env=utf8).out == "0  Unassigned\n" + TREE
    ascii_tree = TREE.replace("├──", "|--").replace("└──", "`--").replace("│", "|")
    assert cli("tree", "1", "--all").out == ascii_tree
    assert cli("tree", "1", env=utf8).out == "".join(TREE.splitlines(True)[i] for i in (0, 1, 4, 5))
    assert cli("tree", "1", "--depth", "1", env=utf8).out == "".join(TREE.splitlines(True)[i] for i in (0, 1, 4))
    assert cli("tree", "--depth", "1").out.splitlines() == ["0  Unassigned", TREE.splitlines()[0]]
    assert [row["id"] for row in cli("tree", "2", "--all", "--json").rows] == ["2", "3", "4"]
    assert cli("tree", "nowhere").code == 1


def test_corners_without_the_retired(muster, cli, write):
    """The last that is shown has the corner, though retired ones come behind it."""
    assert cli("import", write("kind,id,parent,state\ndepartment,1,,\ndepartment,2,1,\ndepartment,3,1,retired\n"
                               "department,31,3,\n")).code == 0
    assert cli("tree", "1").out.splitlines() == ["1  (3 below)", "`-- 2"]


def test_wide_and_deep_trees(muster, cli, write):
    deep, wide = 60, 1500
    assert cli("import", write(
        "kind,id,parent\n" + "".join(f"department,d{n},{f'd{n - 1}' if n else ''}\n" for n in range(deep)) +
        "".join(f"department,w{n:04},d0\n" for n in range(wide)))).code == 0
    lines = cli("tree", "d0").out.splitlines()
    assert len(lines) == deep + wide
    assert lines[deep - 1] == "|   " + "    " * (deep - 3) + f"`-- d{deep - 1}"
    assert lines[-1] == f"`-- w{wide - 1:04}" and lines[-2].startswith("|-- ")


# --- changes and questions -------------------------------------------------------------------------------------

@pytest.fixture(name="tree")
def fixture_tree(muster, cli, write):
    result = cli("import", write(HEAD + """\
department,1,,Top,boss,
department,2,1,Two,,
department,3,2,Three,ada,
department,4,3,,,
department,5,1,,,
department,6,5,,,
employee,boss,1,,,
employee,ada,3,Ada,,
employee,bo,4,,,
member,bo,6,,,
"""))
    assert result.code == 0, result.err
    return muster


def test_changes(tree, cli):
    assert cli("team", "add", "7", "2", "--name", "Seven", "--manager", "bo").out == "OK\n"
    made = cli("team", "add", "*", "7", "--name", "Made", "--json").row
    assert tree.map("TEAM.GET", made)["path"] == f"1:2:7:{made}"
    assert cli("team", "rename", "7", "Sieben").out == "OK\n"
    assert cli("team", "manager", "7", "-").out == "OK\n"
    seven = cli("team", "get", "7", "--json").row
    assert (seven["name"], seven["manager"], seven["version"]) == ("Sieben", "", 3)
    refused = cli("team", "move", "7", "5", "--if-version", "1")
    assert refused.code == 1 and refused.err.startswith("muster: CONFLICT ")
    dry = cli("team", "move", "7", "5", "--if-version", "3", "--dry-run", "--json").row
    assert dry["legal"] == 1 and dry["nodes"] == 2
    assert tree.ask("TEAM.PATH", "7") == "1:2:7"
    assert cli("team", "move", "7", "5", "--if-version", "3").out == "OK\n"
    assert cli("team", "path", "7").out == "1:5:7\n"
    assert cli("team", "move", "7", "-").code == 0 and cli("team", "path", "7").out == "7\n"
    assert cli("team", "remove", "7").code == 1
    assert cli("team", "remove", "7", "--lift").out == "OK\n" and cli("team", "path", made).out == f"{made}\n"
    assert cli("team", "remove", made).out == "OK\n"
    for verb, state in ((("remove", "2", "--retire"), "retired"), (("restore", "2"), "active")):
        assert cli("team", *verb).out == "OK\n" and cli("team", "get", "2", "--json").row["state"] == state
    assert cli("team", "remove", "2", "--cascade").out == "OK\n"
    assert cli("team", "get", "4").code == 1 and cli("employee", "get", "bo", "--json").row["dept"] == "0"


def test_questions(tree, cli):
    assert cli("team", "children", "1").out.splitlines() == [
        "ID  NAME  MANAGER  STATE   BELOW", "2   Two   -        active      2", "5   5     -        active      1"]
    assert [row["id"] for row in cli("team", "children", "-", "--json").rows] == ["0", "1"]
    assert cli("team", "children", "4").out == "None.\n"
    assert [row["id"] for row in cli("team", "ancestors", "4", "--json").rows] == ["1", "2", "3"]
    assert cli("team", "ancestors", "3").out.splitlines()[1:] == [
        "1   Top   boss     active", "2   Two   -        active"]
    assert cli("team", "count", "1", "--json").row == tree.map("TEAM.COUNT", "1")
    assert cli("team", "members", "1").out == "EMPLOYEE\nboss\n"
    assert sorted(cli("team", "members", "1", "--subtree", "--json").rows) == ["ada", "bo", "boss"]
    teams = cli("team", "of", "bo", "--json").rows
    assert {(row["team"], row["home"]) for row in teams} == {("4", 1), ("6", 0)}
    assert [above["id"] for above in next(row for row in teams if row["team"] == "4")["line"]] == ["4", "3", "2", "1"]
    assert "4     home  Top / Two / Three / 4" in cli("team", "of", "bo").out.splitlines()
    assert [row["employee"] for row in cli("team", "supervisors", "bo", "--json").rows] == ["ada", "boss"]
    assert cli("team", "supervisors", "boss").out == "No one.\n"
    assert cli("team", "leave", "6", "bo").out == "OK\n" and cli("team", "members", "6").out == "No one.\n"
    assert cli("team", "join", "6", "bo").out == "OK\n" and cli("team", "members", "6").out == "EMPLOYEE\nbo\n"


@pytest.mark.parametrize("words", [
    ("team",), ("team", "frobnicate"), ("team", "get"), ("team", "get", "1", "--all"), ("team", "move", "1"),
    ("team", "remove", "1", "--lift", "--cascade"), ("team", "join", "1", "e", "--dry-run"), ("tree", "1", "2"),
    ("tree", "--depth", "0"), ("tree", "--depth", "x"), ("jobs", "cancel"), ("jobs", "list", "1"), ("check", "1"),
    ("check", "--truth"), ("export", "a", "b", "c"), ("watch", "1", "--what", "nothing")])
def test_wrong_usage_is_2(cli, words):
    result = cli(*words)
    assert result.code == 2 and result.err and not result.out


def test_jobs(tree, cli):
    assert cli("jobs").out == "Nothing is under way.\n" and cli("jobs", "list", "--json").out == ""
    result = cli("jobs", "cancel", "999")
    assert result.code == 1 and result.err.startswith("muster: ")


# --- check -----------------------------------------------------------------------------------------------------

def test_check_finds_and_repairs(tree, cli, stores):
    result = cli("check")
    assert result.code == 0 and re.match(r"checked +7 departments", result.out), result.out
    stores.redis.srem(stores.key("{org}:children:1"), "4")
    result = cli("check")
    assert result.code == 1 and re.search(r"^findings +[1-9]\d*, 0 repaired$", result.out, re.M)
    row = cli("check", "--json").row
    assert row["findings"] > 0 and row["repaired"] == 0 and sum(row["codes"].values()) == row["findings"]
    assert {item["id"] for item in row["items"]} <= {"1", "4"}
    result = cli("check", "--repair")
    assert result.code == 0, result.out
    assert stores.redis.sismember(stores.key("{org}:children:1"), "4")
    assert cli("check", "--json").row["findings"] == 0


# --- notices ---------------------------------------------------------------------------------------------------

def test_watch_tells_of_changes(tree, cli, stores):
    state = tree.stack.state
    amqp = {"MUSTER_AMQP_PORT": str(tree.stack["rabbitmq"].port()), "MUSTER_AMQP_USER": state["amqp_user"],
            "MUSTER_AMQP_PASSWORD": state["amqp_password"], "MUSTER_AMQP_VHOST": stores.name}
    with subprocess.Popen(cli.command("watch", "2", "--what", "team", "--limit", "1", "--json"), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=cli.environment(amqp)) as process:
        assert b"Watching" in process.stderr.readline()
        assert cli("team", "move", "4", "5").code == 0
        out, err = process.communicate(timeout=60)
    notice = json.loads(out)
    assert process.returncode == 0, err.decode()
    assert notice["type"].startswith("team.")
