# SPDX-License-Identifier: MIT
"""People and teams: joining and leaving, lists of a subtree in pages that the tree's changes don't break, and what is
read of many teams in several steps."""
import random

import pytest

from harness.attendance import as_map, found, pipelined
from harness.raw import ErrorReply
from harness.teams import Asked, code_of, do, maps, plant, refused, same, tree_entries, walk
from harness.treemodel import Model

TREE = ("1", "2/1", "3/2", "4/3", "5/1", "6/5")


@pytest.fixture(name="tree")
def fixture_tree(muster):
    plant(muster, *TREE)
    return muster


def people_of(muster, team, *words):
    return sorted(walk(muster, "TEAM.MEMBERS", team, *words))


def subtree_count(muster, team):
    return muster.map("TEAM.COUNT", team)["employees_subtree"]


# ---- joining and leaving ----

def test_each_change_is_one_record(tree, stores):
    """What changes is in the journal once; what is so already is not."""
    do(tree, "EMPLOYEE.SET ada DEPT 3")
    before = len(tree_entries(stores))
    do(tree, "TEAM.JOIN 2 ada", "TEAM.JOIN 2 ada", "TEAM.JOIN 3 ada", "TEAM.LEAVE 5 ada", "TEAM.LEAVE 2 ada",
       "TEAM.LEAVE 2 ada")
    records = [entry.split("|") for entry in tree_entries(stores)[before:]]
    assert [record[:4] for record in records] == [["J", "join", "2", "ada"], ["J", "leave", "2", "ada"]]
    assert all(len(record) == 5 and int(record[4]) > 10**12 for record in records)


def test_a_retired_team_takes_nobody_and_keeps_who_is_there(tree):
    do(tree, "EMPLOYEE.SET ada DEPT 3", "EMPLOYEE.SET bo DEPT 0", "EMPLOYEE.SET cy DEPT 0", "TEAM.JOIN 3 bo",
       "TEAM.REMOVE 3 RETIRE")
    refused(tree, "TEAM.JOIN 3 cy", "CONFLICT")
    same(tree, "TEAM.JOIN 3 bo")
    same(tree, "TEAM.JOIN 3 ada")
    assert people_of(tree, "3") == ["ada", "bo"] == people_of(tree, "1", "SUBTREE")
    assert tree.ask("TEAM.ISMEMBER", "2", "bo", "SUBTREE") == 1 and subtree_count(tree, "2") == 2
    do(tree, "TEAM.LEAVE 3 bo")
    assert people_of(tree, "3") == ["ada"]
    do(tree, "TEAM.RESTORE 3", "TEAM.JOIN 3 cy")


def test_half_a_membership_is_made_whole(tree, stores):
    """One of its two keys was lost: joining again writes both, leaving takes both."""
    do(tree, "EMPLOYEE.SET ada DEPT 3", "TEAM.JOIN 5 ada", "TEAM.JOIN 6 ada")
    stores.redis.srem(stores.key("{org}:members:5"), "ada")
    stores.redis.srem(stores.key("{org}:user_teams:ada"), "6")
    do(tree, "TEAM.JOIN 5 ada", "TEAM.LEAVE 6 ada")
    assert people_of(tree, "5") == ["ada"] and people_of(tree, "6") == []
    assert stores.redis.smembers(stores.key("{org}:user_teams:ada")) == {"5"}


def test_what_the_key_of_another_type_answers(tree, stores):
    """Nothing is done and nothing guessed."""
    do(tree, "EMPLOYEE.SET ada DEPT 3")
    stores.redis.set(stores.key("{org}:members:6"), "x")
    commands = ("TEAM.GET 6", "TEAM.JOIN 6 ada", "TEAM.MEMBERS 1 SUBTREE")
    assert [code_of(tree.ask(*line.split())) for line in commands] == ["CORRUPT", "ERR", "CORRUPT"]
    assert not stores.keys("{org}:user_teams:*") and people_of(tree, "3") == ["ada"]


# ---- what one employee's teams say ----

def test_all_protocols_say_the_same(tree):
    """Maps in RESP3, flat arrays in RESP2; the home first, then by id; ties of nearness by id."""
    do(tree, "EMPLOYEE.SET ada DEPT 6", "TEAM.JOIN 4 ada", "TEAM.JOIN 2 ada", "TEAM.MANAGER 6 zoe", "TEAM.MANAGER 4 bo",
       "TEAM.MANAGER 1 zoe", "TEAM.MANAGER 3 ada", "TEAM.MANAGER 2 cy")
    with tree.raw() as raw:
        raw.command("HELLO", 3)
        of = raw.command("TEAM.OF", "ada")
        assert [(entry[b"team"], entry[b"home"], entry[b"path"]) for entry in of] == [
            (b"6", 1, b"1:5:6"), (b"2", 0, b"1:2"), (b"4", 0, b"1:2:3:4")]
        assert [step[b"id"] for step in of[2][b"line"]] == [b"4", b"3", b"2", b"1"]
        assert raw.command("TEAM.SUPERVISORS", "ada") == [
            {b"employee": b"bo", b"team": b"4", b"distance": 0}, {b"employee": b"cy", b"team": b"2", b"distance": 0},
            {b"employee": b"zoe", b"team": b"6", b"distance": 0}]
        assert raw.command("TEAM.COUNT", "5") == {
            b"descendants": 1, b"listed": 1, b"employees": 0, b"employees_subtree": 1}
        assert raw.command("TEAM.MEMBERS", "1", "SUBTREE") == [b"", [b"ada"]]
        assert isinstance(raw.command("TEAM.OF", "nobody"), ErrorReply)
    two = tree.ask("TEAM.OF", "ada")
    assert [list(as_map(entry)) for entry in two] == [["team", "name", "home", "path", "line"]] * 3
    assert [as_map(entry)["distance"] for entry in tree.ask("TEAM.SUPERVISORS", "ada")] == [0, 0, 0]


@pytest.mark.parametrize("state, retired, home", [
    ("lifted", "", "2"), ("lifted", "2", "1"), ("removed", "", "0"), ("retired", "", "3")])
def test_a_home_that_is_going_stands_for_the_next_one(tree, stores, state, retired, home):
    """While a job moves people out of a department, one who is still in it is said to be where he will be."""
    do(tree, "EMPLOYEE.SET ada DEPT 3", "TEAM.JOIN 6 ada", "TEAM.MANAGER 2 bo", "TEAM.MANAGER 3 cy")
    if retired:
        do(tree, f"TEAM.REMOVE {retired} RETIRE")
    stores.redis.hset(stores.key("{org}:dept:3"), "state", state)
    of = [as_map(entry) for entry in tree.ask("TEAM.OF", "ada")]
    assert [(entry["team"], entry["home"]) for entry in of] == [(home, 1), ("6", 0)]
    assert [tree.ask("TEAM.ISMEMBER", team, "ada") for team in ("0", "1", "2")] == [int(home == x) for x in "012"]
    nearest = {"0": [], "1": [], "2": ["bo"], "3": ["cy", "bo"]}[home]
    assert [as_map(entry)["employee"] for entry in tree.ask("TEAM.SUPERVISORS", "ada")] == nearest


def test_many_teams_on_long_lines_are_read_in_several_steps(make_muster):
    """500 teams of one person at the ends of lines a hundred levels deep: more than one call of a script may read."""
    muster = make_muster(config={"team": {"max_depth": 1000}})
    plant(muster, "top")
    commands, ends = [], []
    for line in range(20):
        commands += [("TEAM.ADD", f"l{line}.{level}".replace(".", "-"), f"l{line}-{level - 1}" if level else "top")
                     for level in range(100)]
        ends += [f"l{line}-{level}" for level in range(75, 100)]
    assert set(pipelined(muster, commands, 1)) == {"OK"}
    do(muster, "EMPLOYEE.SET ada DEPT top", "TEAM.MANAGER top boss", "TEAM.MANAGER l19-50 cy")
    assert set(pipelined(muster, [("TEAM.JOIN", team, "ada") for team in ends])) == {"OK"}
    of = maps(muster.ask("TEAM.OF", "ada"))
    assert [entry["team"] for entry in of] == ["top", *sorted(ends)]
    assert all(entry["path"].split(":") == ["top", *(f"{entry['team'].split('-')[0]}-{n}" for n in
               range(int(entry["team"].split("-")[1]) + 1))] for entry in of[1:])
    above = maps(muster.ask("TEAM.SUPERVISORS", "ada"))
    assert [(entry["employee"], entry["distance"]) for entry in above] == [("boss", 0), ("cy", 25)]
    assert [muster.ask("TEAM.ISMEMBER", team, "ada", "SUBTREE") for team in ("l7-3", "l19-99", "0")] == [1, 1, 0]
    assert subtree_count(muster, "top") == 1 == subtree_count(muster, "l3-0")
    do(muster, "EMPLOYEE.MOVE ada 0")
    for count in (1, 1000):
        assert walk(muster, "TEAM.MEMBERS", "top", "SUBTREE", "COUNT", count) == ["ada"]
    assert subtree_count(muster, "top") == 1


# ---- the people of a subtree ----

def random_company(muster, rng):
    """60 teams and 300 people at home in some of them, who have joined up to four others; and the model."""
    model = Model()
    for n in range(60):
        model = model.after("TEAM.ADD", f"t{n}", rng.choice(["-", *(x for x in model.nodes if x != "0")]) if n else "-")
    teams = [x for x in model.nodes if x != "0"]
    for n in range(300):
        model = model.after("EMPLOYEE.SET", f"e{n}", "DEPT", rng.choice(teams[:20] + ["0"]))
        for team in rng.sample(teams, rng.choice((0, 0, 1, 2, 4))):
            model = model.after("TEAM.JOIN", team, f"e{n}")
    plant(muster, *(f"{x}/{node.parent}" if node.parent else x for x, node in model.nodes.items() if x != "0"))
    commands = [("EMPLOYEE.SET", e, "DEPT", dept) for e, dept in model.home.items()]
    commands += [("TEAM.JOIN", team, e) for e, joined in model.joined.items() for team in joined]
    assert set(pipelined(muster, commands)) == {"OK"}
    return model


def test_lists_and_counts_agree_with_a_plain_model(muster):
    """Of every team, itself and with all below it: each person once, whatever the size of the pages."""
    rng = random.Random(11)
    model = random_company(muster, rng)
    for team in model.nodes:
        assert people_of(muster, team) == sorted(model.people({team}))
        for count in (1, 10, 1000):
            assert people_of(muster, team, "SUBTREE", "COUNT", count) == sorted(model.people(model.subtree(team)))
        assert muster.map("TEAM.COUNT", team) == model.count(team)
        assert muster.map("TEAM.GET", team)["members"] == len(model.people({team}))
    for person in rng.sample(sorted(model.home), 60):
        inside = [x for x in model.nodes if muster.ask("TEAM.ISMEMBER", x, person, "SUBTREE") == 1]
        assert inside == [x for x in model.nodes if person in model.people(model.subtree(x))]
        assert {as_map(entry)["team"] for entry in muster.ask("TEAM.OF", person)} == model.teams(person)
        above = {s["employee"]: s for s in maps(muster.ask("TEAM.SUPERVISORS", person))}
        assert above == {}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pages_while_tree_and_people_change(muster, seed):
    """A walk in pages of one while teams are moved, lifted and removed under it, the one it stands at too, and people
    join and leave: it ends, and whoever stayed where he was is listed once."""
    rng = random.Random(seed)
    model = random_company(muster, rng)
    top = next(x for x in model.nodes if len(model.subtree(x)) > 15)
    inside = model.people(model.subtree(top))
    still = {e for e in inside if not model.joined.get(e)}
    seen, cursor = [], ""
    while True:
        reply = muster.ask("TEAM.MEMBERS", top, "SUBTREE", "COUNT", 5, *(("CURSOR", cursor) if cursor else ()))
        cursor, items = reply
        seen += items
        if not cursor:
            break
        path = [x for x in cursor.rpartition("/")[0].split(":") if x]
        victim = rng.choice([*path[-1:], *(x for x in model.subtree(top) if x != top)])
        command = rng.choice([("TEAM.MOVE", victim, rng.choice(list(model.nodes))), ("TEAM.REMOVE", victim, "LIFT"),
                              ("TEAM.JOIN", victim, "e1"), ("TEAM.ADD", f"n{len(seen)}", victim),
                              ("TEAM.REMOVE", victim, "CASCADE")])
        if victim not in model.nodes or muster.ask(*command) != "OK":
            continue
        if command[0] in ("TEAM.MOVE", "TEAM.REMOVE"):
            still -= model.people(model.subtree(victim))
        model = model.after(*command)
    assert sorted(e for e in seen if e in still) == sorted(still)
    assert people_of(muster, top, "SUBTREE") == sorted(model.people(model.subtree(top)))


def test_a_count_that_a_move_came_between_begins_anew(make_muster):
    """Two teams with the same people, at home in one and joined in the other: they are in the subtree all the while, as
    the one is moved out and in. At whichever of its steps a count meets the move, it has them all."""
    one, two = (make_muster() for _ in range(2))
    found(one, {"x": [], "b/x": [], "m/x": 5, "far": []})
    assert set(pipelined(one, [("TEAM.JOIN", "b", f"e.m.{n}") for n in range(5)])) == {"OK"}
    counts = []
    for n in range(150):
        asked, moved = Asked(two, "TEAM.COUNT", "x"), Asked(one, "TEAM.MOVE", "m", ("far", "x")[n % 2])
        counts.append(as_map(asked.answer())["employees_subtree"])
        assert moved.answer() == "OK"
    assert counts == [5] * len(counts)


def test_a_large_team_in_pages_while_it_shrinks(muster):
    """2,000 who have joined and 2,000 at home; half of them go while the list is read, which makes Redis move the rest
    about: nobody who stays is missed, and no page has anybody twice."""
    plant(muster, "hq", "lab/hq")
    homes, joined = [f"h{n}" for n in range(2000)], [f"j{n}" for n in range(2000)]
    found(muster, {"far": joined})
    assert set(pipelined(muster, [("EMPLOYEE.SET", e, "DEPT", "lab") for e in homes] +
                         [("TEAM.JOIN", "lab", e) for e in joined])) == {"OK"}
    assert muster.map("TEAM.COUNT", "hq") == {"descendants": 1, "listed": 1, "employees": 0, "employees_subtree": 4000}
    leaving = [("EMPLOYEE.MOVE", e, "0") for e in homes[::2]] + [("TEAM.LEAVE", "lab", e) for e in joined[::2]]
    seen, cursor = [], ""
    while True:
        more = ("CURSOR", cursor) if cursor else ()
        cursor, items = muster.ask("TEAM.MEMBERS", "hq", "SUBTREE", "COUNT", 100, *more)
        assert len(items) == len(set(items))
        seen += items
        if not cursor:
            break
        pipelined(muster, [leaving.pop() for _ in range(min(len(leaving), 100))])
    assert set(homes[1::2] + joined[1::2]) <= set(seen)
    pipelined(muster, leaving)
    assert people_of(muster, "lab") == sorted(homes[1::2] + joined[1::2]) and subtree_count(muster, "hq") == 2000


def test_damage_below_is_found(tree, stores):
    """A broken branch below the team that is asked about: its people can't be told, so nothing is."""
    do(tree, "EMPLOYEE.SET ada DEPT 4", "EMPLOYEE.SET bo DEPT 6")
    stores.redis.hset(stores.key("{org}:dept:3"), "parent_id", "4")
    for words in (("TEAM.MEMBERS", "1", "SUBTREE"), ("TEAM.COUNT", "1"), ("TEAM.COUNT", "2")):
        assert code_of(tree.ask(*words)) == "CORRUPT", words
    assert people_of(tree, "5", "SUBTREE") == ["bo"] and subtree_count(tree, "5") == 1


@pytest.mark.parametrize("cursor", ["x", "/", "a b/h", "/x1", "/hx", "/h-1", "2/h1/2", "/h" + "9" * 30])
def test_cursors_that_nobody_gave(tree, cursor):
    refused(tree, ("TEAM.MEMBERS", "1", "SUBTREE", "CURSOR", cursor), "ERR")


# ---- ROLL over the tree ----

def test_roll_while_the_tree_changes(held, stores):
    """ROLL in pages of one: the department that the cursor stands at moves away, and another is removed; the others are
    all there, each once. What another branch has acknowledged is seen at once."""
    found(held, {"hq": 2, "a/hq": 2, "b/hq": 2, "c/hq": 2, "d/c": 2, "z": 0})
    seen, cursor = [], ""
    while True:
        cursor, items = held.ask("ROLL", "hq", "SUBTREE", "COUNT", 1, *(("CURSOR", cursor) if cursor else ()))
        seen += [as_map(item)["id"] for item in items]
        if not cursor:
            break
        if cursor.startswith("b/"):
            do(held, "TEAM.MOVE b z", "TEAM.REMOVE c LIFT")
    rest = [f"e.{dept}.{n}" for dept in ("hq", "a", "d") for n in range(2)]
    assert sorted(e for e in seen if e in rest) == sorted(rest)
    assert held.map("ROLL.COUNT", "z", "SUBTREE")["total"] == 2 and held.map("ROLL.COUNT", "z")["total"] == 0
    assert held.map("ROLL.COUNT", "hq", "SUBTREE")["departments"] == 3
    stores.redis.hset(stores.key("{org}:dept:hq"), "parent_id", "d")
    assert code_of(held.ask("ROLL", "hq")) == "CORRUPT" == code_of(held.ask("ROLL.COUNT", "a", "SUBTREE"))


def test_rolls_and_members_of_another_daemon_are_exact_at_once(make_muster):
    one, two = make_muster(held_clock=True), make_muster(held_clock=True)
    found(one, {"hq": 0, "a/hq": 1, "b/hq": 1, "c/b": 1})
    for turn in range(20):
        place, a, b = (("a", 2, 1), ("b", 1, 2))[turn % 2]
        do(one, f"TEAM.MOVE c {place}")
        assert two.map("ROLL.COUNT", "a", "SUBTREE")["total"] == a and subtree_count(two, "b") == b
        assert len(people_of(two, "a", "SUBTREE")) == a and two.ask("TEAM.ISMEMBER", place, "e.c.0", "SUBTREE") == 1
