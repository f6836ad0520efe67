# SPDX-License-Identifier: MIT
"""Changes of the tree of teams: what each does, what it leaves alone, what is refused, and that nothing is half done.

Most tests begin with the tree 1 -> 2 -> 3 -> 4, 1 -> 5 -> 6."""
import threading
import unicodedata

import pytest

from harness.attendance import Notices, as_map, pipelined, wait_quiet
from harness.raw import encode
from harness.muster import text_of
from harness.teams import (changed, check_clean, check_redis, do, entry_count, everything, ids_below, org_keys, plant,
                           refused, same)
from harness.treemodel import Model
from harness.wait import wait_until

TREE = ("1", "2/1", "3/2", "4/3", "5/1", "6/5")


@pytest.fixture(name="tree")
def fixture_tree(muster):
    plant(muster, *TREE)
    return muster


def model_of(*commands, max_depth=64):
    model = Model(max_depth=max_depth)
    for node in TREE:
        team, _, parent = node.partition("/")
        model = model.after("TEAM.ADD", team, parent or "-")
    for command in commands:
        model = model.after(*command.split())
    return model


def path(muster, team):
    return muster.ask("TEAM.PATH", team)


def children(muster, team, *words):
    return muster.ask("TEAM.CHILDREN", team, *words)[1]


def members_of_set(stores, name):
    return stores.redis.smembers(stores.key("{org}:" + name))


# ---- ids and names ----

def test_an_id_comes_back_as_it_went_in(muster, stores):
    """Ids are text whatever they look like: in every reply, in keys, in paths, in sets."""
    for team in ("9223372036854775807", "9007199254740993", "9223372036854775808", "007", "-1", "1e3", "0x10", "_",
                 "A-b_9", "x" * 64):
        check_id(muster, stores, team)
    check_redis(stores, Model())


def check_id(muster, stores, team):
    do(muster, f"TEAM.ADD {team} -", f"TEAM.ADD below {team}", f"TEAM.ADD beside {team}", f"TEAM.MOVE beside below")
    got = muster.map("TEAM.GET", team)
    assert (got["id"], got["name"], got["path"], got["descendants"]) == (team, team, team, 2)
    assert path(muster, "beside") == f"{team}:below:beside" and muster.map("TEAM.GET", "below")["parent"] == team
    assert set(ids_below(muster, "-")) == {"0", team, "below", "beside"} and children(muster, team) == ["below"]
    assert stores.redis.hget(stores.key("{org}:dept:" + team), "name") == team
    do(muster, f"TEAM.REMOVE {team} CASCADE")


def test_an_id_that_would_cut_keys_or_paths_is_refused(tree):
    for team in ("1:2", "a.b", "#", "a*", "{x}", "", " ", "a b", "ä", "x" * 65, "a/b", "a\nb", "a|b", "**"):
        for words in (("TEAM.ADD", team, "1"), ("TEAM.ADD", "new", team), ("TEAM.MOVE", "4", team),
                      ("TEAM.MOVE", team, "1"), ("TEAM.REMOVE", team), ("TEAM.RENAME", team, "x")):
            refused(tree, words, "ERR")
        for verb in ("GET", "PATH", "COUNT", "ANCESTORS", "CHILDREN", "DESCENDANTS", "MEMBERS"):
            assert tree.ask("TEAM." + verb, team).startswith("ERR "), (verb, team)


def test_names_may_hold_anything(tree):
    """What separates ids in paths and records is nothing special in a name."""
    for name in ("a:b/c.d", "a|b|c", "*", "#", "{org}", "NAME", "-", "Zoë \"Q\" O'Neil\\", "王小明", "🏭", "x" * 255):
        assert tree.ask("TEAM.RENAME", "4", name) == "OK"
        assert tree.map("TEAM.GET", "4")["name"] == name and path(tree, "4") == "1:2:3:4"
        assert ids_below(tree, "3", "DETAIL")[0][3] == name


def test_names_that_are_too_long_or_no_text_are_refused(tree):
    for name in (b"x" * 256, "ä".encode() * 128, b"\xff\xfe", b"a\x00b", b"a\nb"):
        refused(tree, ("TEAM.RENAME", "4", name), "ERR")
        refused(tree, ("TEAM.ADD", "7", "1", "NAME", name), "ERR")
    refused(tree, ("TEAM.RENAME", "4", ""), "ERR")  # to ADD it stands for the id


def test_siblings_have_different_names_without_regard_to_case_or_form(tree, stores):
    """One name in another case, or composed in another way, is taken; elsewhere in the tree it is free. What is kept
    and shown is the composed form."""
    composed = "Bür\u00f6 Straße \u00c5"
    do(tree, "TEAM.ADD n 5", "TEAM.ADD m 2")
    assert tree.ask("TEAM.RENAME", "n", composed) == tree.ask("TEAM.RENAME", "m", composed) == "OK"
    for n, (name, taken) in enumerate((
            (unicodedata.normalize("NFD", composed), True), (composed.upper(), True),
            (composed.lower(), True), (composed.replace("ß", "ss"), True), (composed.replace("ß", "ẞ"), True),
            (composed.replace("\u00c5", "\u212b"), True), (composed.replace("ö", "o"), False),
            ("Istanbul", False), ("ıstanbul", False), ("İstanbul", False), ("ISTANBUL", True), ("istanbul", True),
            ("ΣΊΣΥΦΟΣ", False), ("σίσυφος", True), ("ﬁn", False), ("FIN", True), ("a b", False), ("a  b", False))):
        words = ("TEAM.ADD", f"n{n}", "5", "NAME", name)
        if taken:
            refused(tree, words, "CONFLICT")
            refused(tree, ("TEAM.RENAME", "6", name), "CONFLICT")
        else:
            assert tree.ask(*words) == "OK", name
        assert tree.ask("TEAM.ADD", f"e{n}", "4", "NAME", f"{n}{name}") == "OK", name
    refused(tree, "TEAM.MOVE m 5", "CONFLICT")
    decomposed = unicodedata.normalize("NFD", composed)
    assert tree.ask("TEAM.RENAME", "n", decomposed) == "OK" and tree.map("TEAM.GET", "n")["version"] == 2
    assert tree.map("TEAM.GET", "n")["name"] == composed
    assert stores.redis.hget(stores.key("{org}:names:5"), composed.casefold()) == "n"
    assert tree.ask("TEAM.RENAME", "n", composed.upper()) == "OK"
    assert tree.map("TEAM.GET", "n")["name"] == composed.upper()


def test_a_name_is_free_again_when_its_holder_has_gone(tree):
    """Renamed, moved away, removed alone or with all above it: then a sibling may take the name; not while the holder
    is only retired."""
    do(tree, "TEAM.ADD a 1 NAME lab", "TEAM.RENAME a shop", "TEAM.ADD b 1 NAME Lab", "TEAM.MOVE b 6",
       "TEAM.ADD c 1 NAME lab", "TEAM.REMOVE c", "TEAM.ADD d 1 NAME LAB", "TEAM.REMOVE 2 CASCADE",
       "TEAM.ADD e 1 NAME 2", "TEAM.ADD 3 e",
       "TEAM.REMOVE d RETIRE")
    refused(tree, "TEAM.ADD f 1 NAME lab", "CONFLICT")
    do(tree, "TEAM.RENAME d store", "TEAM.ADD f 1 NAME lab", "TEAM.REMOVE 5 LIFT")
    refused(tree, "TEAM.ADD g 1 NAME 6", "CONFLICT")
    do(tree, "TEAM.ADD h 1 NAME 5")


def test_many_ids_made_at_the_same_time_differ(tree, stores):
    """1,000 teams with `*` over ten connections: 1,000 ids, and as many children more."""
    replies = []

    def add():
        with tree.raw(30) as raw:
            raw.send(b"".join(encode("TEAM.ADD", "*", "1") for _ in range(100)))
            replies.extend(text_of(raw.read()) for _ in range(100))
    threads = [threading.Thread(target=add) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = set(replies)
    assert len(replies) == 1000 and len(made) == 1000
    assert members_of_set(stores, "direct_children:1") == made | {"2", "5"}
    assert tree.map("TEAM.GET", "1")["descendants"] == 1005 and members_of_set(stores, "children:1") > made


def test_an_id_is_made_once_for_a_name(tree):
    """Sent again, a TEAM.ADD with `*` and a name gives the team that it made; with another manager it is a conflict."""
    team = tree.ask("TEAM.ADD", "*", "5", "NAME", "Lab", "MANAGER", "ada")
    assert tree.map("TEAM.GET", team)["name"] == "Lab"
    assert tree.ask("TEAM.ADD", "*", "5", "NAME", "Lab", "MANAGER", "ada") == team
    refused(tree, "TEAM.ADD * 5 NAME Lab MANAGER bo", "CONFLICT")
    refused(tree, "TEAM.ADD * 5 NAME LAB MANAGER ada", "CONFLICT")
    assert tree.ask("TEAM.ADD", "*", "2", "NAME", "Lab", "MANAGER", "ada") != team


# ---- cycles and roots ----

def test_nothing_moves_below_itself(tree):
    for move in ("2 4", "1 4", "2 3", "3 3", "1 1", "1 6", "5 6"):
        refused(tree, f"TEAM.MOVE {move}", "CONFLICT")


def test_two_moves_that_would_make_a_circle_together(make_muster, stores):
    """2 below 5 and 5 below 2, at the same time through two daemons, again and again: one is done, the other refused,
    and every team is still below 1."""
    pair = [make_muster() for _ in range(2)]
    plant(pair[0], *TREE)
    for turn in range(40):
        with pair[0].raw() as one, pair[1].raw() as two:
            one.send(encode("TEAM.MOVE", "2", "5"))
            two.send(encode("TEAM.MOVE", "5", "2"))
            replies = [text_of(one.read()), text_of(two.read())]
        assert sorted(reply.split(" ")[0] for reply in replies) == ["CONFLICT", "OK"], replies
        assert set(ids_below(pair[turn % 2], "1")) == {"2", "3", "4", "5", "6"}
        do(pair[turn % 2], "TEAM.MOVE 2 1" if replies[0] == "OK" else "TEAM.MOVE 5 1")
    assert {node: stores.redis.hget(stores.key("{org}:dept:" + node), "parent_id") for node in "123456"} == \
        {"1": "", "2": "1", "3": "2", "4": "3", "5": "1", "6": "5"}
    check_clean(pair[0])


def test_to_the_top_and_back(tree, stores):
    """The top is a place to move to: paths begin anew, and the sets of those above lose the subtree; back again all is
    as it was, but for the version."""
    do(tree, "TEAM.MOVE 3 -")
    assert (path(tree, "3"), path(tree, "4")) == ("3", "3:4")
    assert members_of_set(stores, "roots") == {"0", "1", "3"}
    assert members_of_set(stores, "children:1") == {"2", "5", "6"} and members_of_set(stores, "children:2") == set()
    assert children(tree, "-") == ["0", "1", "3"]
    check_redis(stores, model_of("TEAM.MOVE 3 -"))
    do(tree, "TEAM.MOVE 3 2")
    check_redis(stores, model_of("TEAM.MOVE 3 -", "TEAM.MOVE 3 2"))


def test_a_move_to_where_it_is_changes_nothing(tree):
    same(tree, "TEAM.MOVE 3 2")
    same(tree, "TEAM.MOVE 3 2 IF 17")
    same(tree, "TEAM.MOVE 1 -")


def test_a_move_takes_the_subtree_out_of_all_old_places(tree, stores):
    do(tree, "TEAM.MOVE 3 5")
    assert members_of_set(stores, "children:2") == set() and members_of_set(stores, "children:5") == {"6", "3", "4"}
    assert members_of_set(stores, "children:1") == {"2", "3", "4", "5", "6"}
    assert [tree.map("TEAM.GET", team)["descendants"] for team in "1235"] == [5, 0, 1, 3]
    check_redis(stores, model_of("TEAM.MOVE 3 5"))


def test_a_client_that_knows_an_old_place_does_no_harm(make_muster, stores):
    """What one client believes about the tree matters nowhere: an ADD goes below the parent's present place."""
    one, two = make_muster(), make_muster()
    plant(one, *TREE)
    assert path(two, "3") == "1:2:3"
    do(one, "TEAM.MOVE 3 5")
    do(two, "TEAM.ADD x 3")
    assert (path(two, "x"), path(one, "x")) == ("1:5:3:x", "1:5:3:x")
    do(one, "TEAM.REMOVE 3 CASCADE")
    assert two.ask("TEAM.ADD", "y", "3").startswith("UNKNOWN ") and two.ask("TEAM.GET", "x").startswith("UNKNOWN ")
    check_redis(stores, model_of("TEAM.REMOVE 3 CASCADE"))


# ---- removals ----

def test_a_team_with_children_or_employees_is_not_removed_unasked(tree, stores):
    refused(tree, "TEAM.REMOVE 2", "CONFLICT")
    do(tree, "EMPLOYEE.SET ada DEPT 4", "TEAM.JOIN 6 ada")
    refused(tree, "TEAM.REMOVE 4", "CONFLICT")
    do(tree, "TEAM.REMOVE 6", "EMPLOYEE.MOVE ada 5", "TEAM.REMOVE 4")
    check_redis(stores, model_of("EMPLOYEE.SET ada DEPT 5", "TEAM.REMOVE 6", "TEAM.REMOVE 4"))


def test_a_cascade_takes_all_and_leaves_no_key(tree, stores):
    script = ("EMPLOYEE.SET ada DEPT 4", "EMPLOYEE.SET bo DEPT 2", "TEAM.JOIN 3 bo", "TEAM.JOIN 5 bo",
              "TEAM.REMOVE 2 CASCADE")
    do(tree, *script)
    for team in "234":
        assert tree.ask("TEAM.GET", team).startswith("UNKNOWN ")
        assert not stores.keys(f"{{org}}:*:{team}") and not stores.keys(f"*:emps:{team}")
    assert tree.map("EMPLOYEE.GET", "ada")["dept"] == "0" and tree.map("EMPLOYEE.GET", "bo")["dept"] == "0"
    check_redis(stores, model_of(*script))
    do(tree, "TEAM.ADD 2 5", "TEAM.ADD 3 2")
    assert path(tree, "3") == "1:5:2:3" and tree.map("TEAM.GET", "3")["version"] == 1
    check_clean(tree)


def test_lift_hands_children_and_people_to_the_parent(tree, stores):
    script = ("EMPLOYEE.SET ada DEPT 2", "EMPLOYEE.SET bo DEPT 2", "TEAM.JOIN 1 bo", "TEAM.JOIN 2 ada",
              "TEAM.JOIN 3 ada", "TEAM.ADD 7 2 NAME 2", "TEAM.REMOVE 2 LIFT")
    do(tree, *script)
    assert children(tree, "1") == ["3", "5", "7"] and path(tree, "4") == "1:3:4"
    assert tree.map("EMPLOYEE.GET", "ada")["dept"] == "1" and tree.map("TEAM.GET", "1")["members"] == 2
    assert tree.map("TEAM.GET", "3")["version"] == 1 and not stores.keys("{org}:*:2")
    check_redis(stores, model_of(*script))
    check_clean(tree)


def test_lift_of_a_root_makes_roots(tree, stores):
    do(tree, "EMPLOYEE.SET ada DEPT 1", "TEAM.REMOVE 1 LIFT")
    assert children(tree, "-") == ["0", "2", "5"] and path(tree, "4") == "2:3:4"
    assert (tree.map("TEAM.GET", "2")["parent"], tree.map("TEAM.GET", "2")["path"]) == ("", "2")
    assert tree.ask("TEAM.ANCESTORS", "2") == [] and tree.map("EMPLOYEE.GET", "ada")["dept"] == "0"
    check_redis(stores, model_of("EMPLOYEE.SET ada DEPT 1", "TEAM.REMOVE 1 LIFT"))


def test_lift_does_not_make_two_of_a_name(tree):
    do(tree, "TEAM.ADD x 2 NAME Five", "TEAM.RENAME 5 FIVE")
    refused(tree, "TEAM.REMOVE 2 LIFT", "CONFLICT")
    do(tree, "TEAM.RENAME x other", "TEAM.REMOVE 2 LIFT")


def test_retiring_hides_and_changes_no_structure(tree, stores):
    """A retired team and all below it are not listed unless asked for; they count, they move, and come back."""
    do(tree, "EMPLOYEE.SET ada DEPT 3", "TEAM.REMOVE 2 RETIRE")
    same(tree, "TEAM.REMOVE 2 RETIRE")
    same(tree, "TEAM.REMOVE 2 RETIRE IF 99")
    assert ids_below(tree, "1") == ["5", "6"] and ids_below(tree, "1", "ALL") == ["2", "3", "4", "5", "6"]
    assert children(tree, "1") == ["5"] and children(tree, "1", "ALL") == ["2", "5"]
    got = tree.map("TEAM.GET", "2")
    assert (got["state"], got["version"], got["descendants"]) == ("retired", 2, 2)
    counts = tree.map("TEAM.COUNT", "1")
    assert (counts["descendants"], counts["listed"], counts["employees_subtree"]) == (5, 2, 1)
    assert tree.ask("TEAM.ISBELOW", "4", "2") == 1 and path(tree, "4") == "1:2:3:4"
    for command in ("TEAM.ADD x 2", "TEAM.MOVE 6 2", "TEAM.JOIN 2 ada", "EMPLOYEE.SET bo DEPT 2",
                    "EMPLOYEE.MOVE ada 2"):
        refused(tree, command, "CONFLICT")
    do(tree, "TEAM.MOVE 3 5", "TEAM.RESTORE 2")
    same(tree, "TEAM.RESTORE 2")
    assert ids_below(tree, "2") == [] and ids_below(tree, "1") == ["2", "5", "3", "4", "6"]
    check_redis(stores, model_of("EMPLOYEE.SET ada DEPT 3", "TEAM.REMOVE 2 RETIRE", "TEAM.MOVE 3 5", "TEAM.RESTORE 2"))


def test_people_of_a_lifted_team_pass_by_retired_ones(tree, stores):
    """They get to the nearest team above that is not retired; the children get to the parent all the same."""
    script = ("EMPLOYEE.SET ada DEPT 3", "EMPLOYEE.SET bo DEPT 4", "TEAM.JOIN 1 bo", "TEAM.REMOVE 2 RETIRE",
              "TEAM.REMOVE 3 LIFT", "TEAM.REMOVE 4 LIFT")
    do(tree, *script)
    assert tree.map("EMPLOYEE.GET", "ada")["dept"] == "1" and tree.map("EMPLOYEE.GET", "bo")["dept"] == "1"
    check_redis(stores, model_of(*script))
    script += ("TEAM.REMOVE 1 RETIRE", "EMPLOYEE.SET cy DEPT 5", "TEAM.REMOVE 5 LIFT")
    do(tree, *script[-3:])
    assert tree.map("EMPLOYEE.GET", "cy")["dept"] == "0"
    check_redis(stores, model_of(*script))


def test_the_department_of_those_without_one_stays(tree):
    for mode in ("", " CASCADE", " LIFT", " RETIRE"):
        refused(tree, "TEAM.REMOVE 0" + mode, "CONFLICT")
    refused(tree, "TEAM.MOVE 0 6", "CONFLICT")
    same(tree, "TEAM.MOVE 0 -")
    do(tree, "TEAM.RENAME 0 Nowhere", "TEAM.ADD x 0", "TEAM.MANAGER 0 ada")


# ---- depth ----

def test_the_tree_is_no_deeper_than_configured(make_muster, stores):
    """A root is level 1. What would be deeper is refused, a moved subtree by its deepest node, and nothing is
    written."""
    muster = make_muster(config={"team": {"max_depth": 4}})
    plant(muster, *TREE)
    refused(muster, "TEAM.ADD x 4", "ERR")
    refused(muster, "TEAM.MOVE 5 3", "ERR")
    refused(muster, "TEAM.MOVE 5 4", "ERR")
    do(muster, "TEAM.MOVE 6 3", "TEAM.MOVE 5 3", "TEAM.MOVE 6 -", "TEAM.MOVE 1 -")
    refused(muster, "TEAM.MOVE 1 6", "ERR")
    do(muster, "TEAM.REMOVE 2 LIFT", "TEAM.MOVE 1 6")
    assert path(muster, "4") == "6:1:3:4"
    check_redis(stores, model_of("TEAM.MOVE 6 3", "TEAM.MOVE 5 3", "TEAM.MOVE 6 -", "TEAM.REMOVE 2 LIFT",
                                 "TEAM.MOVE 1 6", max_depth=4))


# ---- one change, one record ----

def test_each_change_is_one_record_and_every_repeat_none(tree, stores):
    """Every change writes one record, with the team's next version; sent again it answers OK and writes nothing."""
    before = entry_count(stores)
    changes = ("TEAM.ADD x 6 NAME X MANAGER ada", "TEAM.RENAME x Lab", "TEAM.MANAGER x bo", "TEAM.MANAGER x -",
               "TEAM.MOVE x 4", "TEAM.REMOVE x RETIRE", "TEAM.RESTORE x", "TEAM.REMOVE 3 LIFT")
    for number, command in enumerate(changes, 1):
        do(tree, command)
        assert entry_count(stores) == before + number, command
        if "LIFT" not in command:
            same(tree, command)
    do(tree, "TEAM.REMOVE 2 CASCADE")
    assert entry_count(stores) == before + len(changes) + 1
    records = [fields["e"].split("|", 9) for _, fields in stores.redis.xrange(stores.key("{org}:journal"))][-9:]
    assert [(r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9]) for r in records] == [
        ("add", "x", "6", "ada", "1", "active", "1:5:6:x", "-", "X"),
        ("rename", "x", "6", "ada", "2", "active", "1:5:6:x", "-", "Lab"),
        ("manager", "x", "6", "bo", "3", "active", "1:5:6:x", "-", "Lab"),
        ("manager", "x", "6", "-", "4", "active", "1:5:6:x", "-", "Lab"),
        ("move", "x", "4", "-", "5", "active", "1:2:3:4:x", "1:5:6:x", "Lab"),
        ("retire", "x", "4", "-", "6", "retired", "1:2:3:4:x", "-", "Lab"),
        ("restore", "x", "4", "-", "7", "active", "1:2:3:4:x", "-", "Lab"),
        ("lift", "3", "2", "-", "2", "removed", "1:2:3", "-", "3"),
        ("remove", "2", "1", "-", "2", "removed", "1:2", "-", "2")]


def test_the_same_add_again_is_ok_another_is_not(tree):
    same(tree, "TEAM.ADD 3 2")
    refused(tree, "TEAM.ADD 3 5", "EXISTS")
    refused(tree, "TEAM.ADD 3 2 NAME other", "EXISTS")
    refused(tree, "TEAM.ADD 3 2 MANAGER ada", "EXISTS")


def test_a_change_may_name_the_version_that_it_knows(tree):
    """IF: done when that is the version, refused otherwise; each change makes the next. What is so already is OK
    whatever the version."""
    for version, command in enumerate(("TEAM.RENAME 3 Lab", "TEAM.MANAGER 3 ada", "TEAM.MOVE 3 5",
                                       "TEAM.REMOVE 3 RETIRE", "TEAM.RESTORE 3"), 1):
        refused(tree, f"{command} IF {version + 1}", "CONFLICT")
        do(tree, f"{command} IF {version}")
        assert tree.map("TEAM.GET", "3")["version"] == version + 1
        same(tree, f"{command} IF {version}")
    for command in ("TEAM.REMOVE 4", "TEAM.REMOVE 5 LIFT", "TEAM.REMOVE 2 CASCADE"):
        refused(tree, command + " IF 2", "CONFLICT")
        do(tree, command + " IF 1")
    refused(tree, "TEAM.RENAME 6 x IF 0", "ERR")
    assert ids_below(tree, "1") == ["3", "6"]


def test_a_rename_touches_one_team(tree, stores):
    """Names are in no path: besides the name's own index one key changes, and those below show the new name."""
    before = org_keys(stores)
    do(tree, "TEAM.RENAME 2 Research")
    after = org_keys(stores)
    assert {key for key in after if after[key] != before[key]} == {"dept:2", "names:1"}
    assert [as_map(item)["name"] for item in tree.ask("TEAM.ANCESTORS", "4")] == ["1", "Research", "3"]
    assert path(tree, "4") == "1:2:3:4"


def test_a_dry_run_counts_and_changes_nothing(tree):
    """How many teams, people and managers a change would touch: managers of the subtree, above it, and above the new
    place."""
    do(tree, "EMPLOYEE.SET ada DEPT 2", "EMPLOYEE.SET bo DEPT 4", "TEAM.JOIN 3 ada", "TEAM.JOIN 3 bo",
       "TEAM.MANAGER 1 boss", "TEAM.MANAGER 3 cy", "TEAM.MANAGER 5 di", "EMPLOYEE.SET ed DEPT 6", "TEAM.JOIN 1 ed")
    before = everything(tree.stores)
    for command, nodes, employees, supervisors in (
            ("TEAM.MOVE 2 5", 3, 2, 3), ("TEAM.REMOVE 2 CASCADE", 3, 2, 2), ("TEAM.REMOVE 4 CASCADE", 1, 1, 2)):
        assert tree.map(*command.split(), "DRYRUN") == {
            "legal": 1, "nodes": nodes, "employees": employees, "supervisors": supervisors,
            "job": int(command != "TEAM.MOVE 2 5")}
    for command in ("TEAM.REMOVE 3 RETIRE", "TEAM.RENAME 3 x", "TEAM.ADD x 4", "TEAM.REMOVE 2 LIFT", "TEAM.MANAGER 3 -",
                    "TEAM.ADD * 4 NAME x", "TEAM.MOVE 2 1"):
        assert tree.map(*command.split(), "DRYRUN")["legal"] == 1, command
    assert not changed(before, everything(tree.stores))


def test_a_dry_run_of_many_teams(tree):
    """Each manager counts once, however many teams and pages of them the subtree has."""
    do(tree, *(f"TEAM.ADD w{n} {'2' if n == 0 else f'w{(n - 1) // 9}'} MANAGER m{n % 25}" for n in range(450)),
       "TEAM.MANAGER 1 m3", "TEAM.MANAGER 5 boss", "EMPLOYEE.SET ada DEPT w449", "TEAM.JOIN w0 ada")
    assert tree.map("TEAM.MOVE", "2", "5", "DRYRUN") == {
        "legal": 1, "nodes": 453, "employees": 1, "supervisors": 26, "job": 0}


ILLEGAL = (
    ("TEAM.MOVE 2 4", "CONFLICT"), ("TEAM.MOVE 2 nobody", "UNKNOWN"), ("TEAM.REMOVE 2", "CONFLICT"),
    ("TEAM.ADD 3 5", "EXISTS"), ("TEAM.ADD x nobody", "UNKNOWN"), ("TEAM.RENAME 2 5", "CONFLICT"),
    ("TEAM.MANAGER nobody ada", "UNKNOWN"), ("TEAM.RESTORE nobody", "UNKNOWN"), ("TEAM.MOVE 2 5 IF 7", "CONFLICT"),
    ("TEAM.REMOVE nobody CASCADE", "UNKNOWN"), ("TEAM.REMOVE 0 CASCADE", "CONFLICT"),
    ("TEAM.REMOVE 2 CASCADE LIFT", "ERR"), ("TEAM.ADD x 1 NAME 5", "CONFLICT"))


def test_a_dry_run_of_what_is_illegal_says_so(tree):
    for command, code in ILLEGAL:
        refused(tree, command + " DRYRUN", code)
        refused(tree, command, code)


# ---- who is told ----

def told(queue):
    """(change, team) of what has come to a queue."""
    return [(event["type"].removeprefix("team."), event["team"]) for event in queue.events()]


def test_supervisors_of_both_places_hear_of_a_move(tree, stores):
    """A queue bound to a team and all below it hears of every change there, of a move at both ends, and needs no new
    binding when the tree changes."""
    wait_quiet(tree)
    queues = {key: Notices(stores, key)
              for key in ("team.*.2.#", "team.*.5.#", "team.*.1.#", "team.*.3", "team.move.#")}
    do(tree, "TEAM.MOVE 3 5", "TEAM.RENAME 4 Four", "TEAM.REMOVE 4", "TEAM.REMOVE 6 RETIRE")
    all_of = [("move", "3"), ("rename", "4"), ("remove", "4"), ("retire", "6")]
    wait_until(lambda: told(queues["team.*.1.#"]) == all_of, 20, "all is told to the top")
    got = {key: told(queue) for key, queue in queues.items()}
    assert got == {"team.*.2.#": [("move", "3")], "team.*.5.#": all_of, "team.*.1.#": all_of,
                   "team.*.3": [("move", "3")], "team.move.#": [("move", "3")]}
    do(tree, "TEAM.REMOVE 5 LIFT", "TEAM.REMOVE 2 CASCADE")
    wait_until(lambda: told(queues["team.*.1.#"])[4:] == [("lift", "5"), ("remove", "2")], 20, "removals are told")
    assert told(queues["team.*.2.#"])[1:] == [("remove", "2")] and told(queues["team.*.5.#"])[4:] == [("lift", "5")]


def test_a_pipeline_of_a_whole_company(muster, stores):
    """Many changes over one connection take effect in order, whatever is batched behind the scenes."""
    commands = [("TEAM.ADD", f"d{n}", "-" if n == 0 else f"d{(n - 1) // 4}") for n in range(400)]
    commands += [("TEAM.MOVE", f"d{n}", f"d{n % 5}") for n in range(100, 200)]
    commands += [("TEAM.REMOVE", f"d{n}") for n in range(399, 300, -1)]
    model = Model()
    for words in commands:
        model = model.after(*words)
    assert set(pipelined(muster, commands, 500)) == {"OK"}
    check_redis(stores, model)
    check_clean(muster)
