# SPDX-License-Identifier: MIT
"""Reads of the tree and of who is in it: exact, in pages that stay right while the tree changes, and an error rather
than a guess where the tree is damaged.

Most tests begin with the tree 1 -> 2 -> 3 -> 4, 1 -> 5 -> 6."""
import random
import time

import pytest

from harness.attendance import as_map, pipelined
from harness.teams import (check_redis, code_of, do, entry_count, everything, ids_below, maps, plant, refused, same,
                           walk)
from harness.treemodel import Model, in_order
from harness.wait import wait_until

TREE = ("1", "2/1", "3/2", "4/3", "5/1", "6/5")


@pytest.fixture(name="tree")
def fixture_tree(muster):
    plant(muster, *TREE)
    return muster


# ---- one node, and the line above it ----

def test_what_is_said_of_a_team(tree):
    do(tree, "TEAM.MANAGER 3 ada", "TEAM.RENAME 3 Lab", "EMPLOYEE.SET ada DEPT 3", "EMPLOYEE.SET bo DEPT 4",
       "TEAM.JOIN 3 bo")
    assert tree.map("TEAM.GET", "3") == {"id": "3", "name": "Lab", "parent": "2", "path": "1:2:3", "manager": "ada",
                                         "state": "active", "descendants": 1, "members": 2, "version": 3}
    assert maps(tree.ask("TEAM.ANCESTORS", "4")) == [
        {"id": "1", "name": "1", "manager": "", "state": "active"},
        {"id": "2", "name": "2", "manager": "", "state": "active"},
        {"id": "3", "name": "Lab", "manager": "ada", "state": "active"}]
    assert tree.ask("TEAM.ANCESTORS", "1") == [] and tree.ask("TEAM.PATH", "1") == "1"
    assert tree.map("TEAM.COUNT", "2") == {"descendants": 2, "listed": 2, "employees": 0, "employees_subtree": 2}


def test_who_is_below_whom(tree):
    """A team is not below itself, nor below its children, nor below what only begins with the same letters."""
    do(tree, "TEAM.ADD 20 1", "TEAM.ADD 201 20")
    below = {(x, y) for x in ("1", "2", "3", "4", "20", "201") for y in ("1", "2", "3", "20", "201")
             if tree.ask("TEAM.ISBELOW", x, y) == 1}
    assert below == {("2", "1"), ("3", "1"), ("4", "1"), ("20", "1"), ("201", "1"), ("3", "2"), ("4", "2"), ("4", "3"),
                     ("201", "20")}


def test_a_team_whose_id_begins_another_is_not_above_it(tree):
    """2 and 20 under one parent: lists, members and pages of 2 have nothing of 20's."""
    do(tree, "TEAM.ADD 20 1", "TEAM.ADD 201 20", "EMPLOYEE.SET ada DEPT 201", "EMPLOYEE.SET bo DEPT 3")
    assert ids_below(tree, "2") == ["3", "4"] == ids_below(tree, "2", "COUNT", 1)
    assert ids_below(tree, "20") == ["201"] and tree.map("TEAM.GET", "2")["descendants"] == 2
    assert walk(tree, "TEAM.MEMBERS", "2", "SUBTREE") == ["bo"]
    assert tree.ask("TEAM.ISMEMBER", "2", "ada", "SUBTREE") == 0
    assert ids_below(tree, "1", "COUNT", 1) == ["2", "3", "4", "20", "201", "5", "6"]


NOWHERE = ("GET x", "PATH x", "ANCESTORS x", "COUNT x", "CHILDREN x", "DESCENDANTS x", "ISBELOW x 1", "ISBELOW 1 x",
           "MEMBERS x", "MEMBERS x SUBTREE", "ISMEMBER x ada", "ISMEMBER 1 nobody", "OF nobody", "SUPERVISORS nobody",
           "JOIN x ada", "JOIN 1 nobody", "LEAVE x ada", "LEAVE 1 nobody", "MOVE x 1", "MOVE 1 x", "REMOVE x CASCADE",
           "RESTORE x", "RENAME x y", "MANAGER x ada", "JOBS 999", "CANCEL 999")
MALFORMED = ("GET", "GET 1 2", "CHILDREN 1 COUNT 0", "CHILDREN 1 COUNT x", "DESCENDANTS 1 DEPTH",
             "DESCENDANTS 1 DEPTH 0",
             "DESCENDANTS 1 DEPTH -1", "DESCENDANTS 1 ALL ALL", "DESCENDANTS 1 CURSOR a*b", "CHILDREN 1 CURSOR {x}",
             "ISBELOW 1", "MEMBERS 1 BELOW", "CANCEL x", "CANCEL -1", "JOBS x", "MOVE 1", "MOVE 2 3 IF",
             "MOVE 2 3 IF x",
             "REMOVE 2 EVERYTHING", "ADD 7", "ADD 7 1 MANAGER a*b", "JOIN 1", "JOIN 1 a*b", "RENAME 2", "MANAGER 2 a*b")


def test_what_is_not_there_is_unknown_and_what_is_malformed_an_error(tree):
    do(tree, "EMPLOYEE.SET ada DEPT 1")
    for code, commands in (("UNKNOWN", NOWHERE), ("ERR", MALFORMED)):
        for command in commands:
            refused(tree, "TEAM." + command, code)


# ---- lists ----

def random_tree(muster, count, seed):
    """A tree of many shapes with some retired teams, and its model."""
    rng = random.Random(seed)
    model, commands = Model(), []
    for n in range(count):
        parent = "-" if n % 40 == 0 else rng.choice([x for x in model.nodes if len(model.path(x)) < 20])
        team = rng.choice((f"1{n}", f"t{n}", f"T-{n}", f"_{n}"))
        commands.append(("TEAM.ADD", team, parent))
        model = model.after(*commands[-1])
    for team in rng.sample([x for x in model.nodes if x != "0"], count // 20):
        commands.append(("TEAM.REMOVE", team, "RETIRE"))
        model = model.after(*commands[-1])
    assert set(pipelined(muster, commands)) == {"OK"}
    return model


def test_lists_agree_with_a_plain_tree(muster):
    """Children and descendants of every team, by depth, with and without retired ones, in small pages and large: depth
    first, by id, each once."""
    model = random_tree(muster, 300, 1)
    for top in ["-", *model.nodes]:
        node = "" if top == "-" else top
        for everything_too in ((), ("ALL",)):
            for depth in ((), ("DEPTH", 1), ("DEPTH", 3)):
                found = model.walk(node, bool(everything_too), int(depth[1]) if depth else None)
                assert ids_below(muster, top, *everything_too, *depth) == [x for x, _ in found]
            found = model.walk(node, bool(everything_too), 1)
            assert walk(muster, "TEAM.CHILDREN", top, *everything_too) == [x for x, _ in found]
    for count in (1, 7, 1000):
        assert ids_below(muster, "-", "ALL", "COUNT", count) == [x for x, _ in model.walk("", True)]
        items = walk(muster, "TEAM.DESCENDANTS", "-", "DETAIL", "COUNT", count)
        assert maps(items) == [model.detail(*found) for found in model.walk("")]


def test_a_wide_team_in_pages(muster, stores):
    """20,000 direct children: every page is quick wherever it begins, and while children are added, removed and moved
    the pages show every child that was there throughout, once."""
    width = 20000
    do(muster, "TEAM.ADD wide -", "TEAM.ADD other -")
    ids = [f"c{n:05}" for n in range(width)]
    assert set(pipelined(muster, [("TEAM.ADD", team, "wide") for team in ids], 1000)) == {"OK"}
    assert muster.map("TEAM.COUNT", "wide")["listed"] == width
    rng = random.Random(3)
    with muster.raw(30) as raw:
        assert raw.command("TEAM.CHILDREN", "wide", "COUNT", 100)[1][0] == b"c00000"
        slowest = 0.0
        for _ in range(200):
            after = rng.choice(ids)
            begun = time.monotonic()
            page = raw.command("TEAM.CHILDREN", "wide", "COUNT", 100, "CURSOR", after)
            slowest = max(slowest, time.monotonic() - begun)
            assert [team.decode() for team in page[1]] == ids[ids.index(after) + 1:][:100]
        print(f"slowest of 200 pages: {slowest * 1000:.1f} ms")
        assert slowest < 0.1
        touched, seen, cursor, turn = set(), [], "", 0
        while True:
            reply = raw.command("TEAM.CHILDREN", "wide", "COUNT", 500, *(("CURSOR", cursor) if cursor else ()))
            seen += [team.decode() for team in reply[1]]
            cursor = reply[0].decode()
            if not cursor:
                break
            turn += 1
            gone, moved = rng.choice(ids), rng.choice(ids)
            # The very node that the cursor stands at goes, too.
            victims = {gone, moved, cursor.rpartition(":")[2]} - touched
            for team in victims:
                command = ("TEAM.MOVE", team, "other") if team == moved else ("TEAM.REMOVE", team)
                assert raw.command(*command) == "OK"
            assert raw.command("TEAM.ADD", f"c{rng.randrange(width):05}-{turn}", "wide") == "OK"
            touched |= victims
    assert len(seen) == len(set(seen)) and seen == in_order(seen)
    assert set(ids) - touched <= set(seen) and turn > 30


def test_pages_of_descendants_while_the_tree_changes(muster):
    """A walk in small pages over a tree that is being changed ends, and shows each team that stayed in its
    place, once."""
    model = random_tree(muster, 300, 2)
    rng = random.Random(4)
    unmoved, seen, cursor = set(model.nodes), [], None
    while cursor != "":
        cursor, items = muster.ask("TEAM.DESCENDANTS", "-", "ALL", "COUNT", 10, *(("CURSOR", cursor) if cursor else ()))
        seen += items
        team, parent = rng.choice(list(model.nodes)), rng.choice(list(model.nodes))
        words = ("TEAM.MOVE", team, parent) if rng.random() < 0.7 else ("TEAM.REMOVE", team, "LIFT")
        if muster.ask(*words) == "OK":
            unmoved -= set(model.subtree(team))
            model = model.after(*words)
    assert [x for x in seen if x in unmoved] == [x for x in model.descendants("") if x in unmoved]
    assert len(unmoved) > 50


def test_reads_of_another_daemon_are_exact_at_once(make_muster):
    """What one daemon has acknowledged every read of the other shows, without waiting."""
    one, two = make_muster(), make_muster()
    plant(one, *TREE)
    for turn in range(60):
        place = ("5", "2", "-")[turn % 3]
        do(one, f"TEAM.MOVE 3 {place}")
        reads = [lambda: two.ask("TEAM.PATH", "4"), lambda: ids_below(two, "5"),
                 lambda: two.map("TEAM.GET", "5")["descendants"], lambda: two.ask("TEAM.CHILDREN", "5")[1],
                 lambda: two.map("TEAM.COUNT", "5")["descendants"],
                 lambda: two.ask("TEAM.ISBELOW", "4", "5")]
        right = {"5": ["1:5:3:4", ["3", "4", "6"], 3, ["3", "6"], 3, 1], "2": ["1:2:3:4", ["6"], 1, ["6"], 1, 0],
                 "-": ["3:4", ["6"], 1, ["6"], 1, 0]}[place]
        which = turn % len(reads)
        assert reads[which]() == right[which], (turn, place)


# ---- what is read from the picture ----

def read_by(muster):
    """How many teams were read from the picture, and how many by the script."""
    info = muster.info()
    return int(info["teams_read_by_picture"]), int(info["teams_read_by_script"])


def in_turn(muster, command):
    """Asks until the answer comes from the picture, and returns it: what has just been written is read first."""
    def from_picture():
        before = read_by(muster)
        reply = muster.ask(*command.split())
        after = read_by(muster)
        return [reply] if after[0] > before[0] and after[1] == before[1] else None
    return wait_until(from_picture, 10, f"{command} is answered from the picture")[0]


def test_the_picture_answers_what_nobody_has_written_since(tree, stores):
    """Both ways of reading say the same; a write of any other client to one of the nodes is seen by the next read."""
    do(tree, "TEAM.MANAGER 3 ada", "TEAM.REMOVE 2 RETIRE", "EMPLOYEE.SET bo DEPT 4", "EMPLOYEE.SET cy DEPT 1",
       "TEAM.JOIN 4 cy")
    dept = stores.key("{org}:dept:")
    for command in ("TEAM.GET 4", "TEAM.PATH 4", "TEAM.ANCESTORS 4", "TEAM.ISBELOW 4 2", "TEAM.GET 1"):
        by_picture = in_turn(tree, command)
        for node in "1234":
            stores.redis.hset(dept + node, "touched", "1")
        before = read_by(tree)
        assert tree.ask(*command.split()) == by_picture
        after = read_by(tree)
        assert after[0] == before[0] and after[1] > before[1], "somebody has written: Redis is looked at"
    stores.redis.hset(dept + "1", "name", "x")
    for _ in range(3):
        assert maps(tree.ask("TEAM.ANCESTORS", "4"))[0]["name"] == "x", "and by every one after it"


def test_damage_is_seen_by_the_very_next_read(tree, stores):
    """Again and again: a node of a line that has been read is damaged behind the daemon's back, and healed."""
    dept, rng = stores.key("{org}:dept:"), random.Random(5)
    with tree.raw() as raw:
        for turn in range(300):
            node, wrong = rng.choice([("2", "4"), ("3", "3"), ("4", "nowhere"), ("2", "3")])
            right = stores.redis.hget(dept + node, "parent_id")
            assert raw.command("TEAM.PATH", "4") == b"1:2:3:4"
            stores.redis.hset(dept + node, "parent_id", wrong)
            assert code_of(str(raw.command("TEAM.PATH", "4"))) == "CORRUPT", turn
            stores.redis.hset(dept + node, "parent_id", right)
    assert in_turn(tree, "TEAM.PATH 4") == "1:2:3:4"


def test_reads_are_exact_while_the_watch_is_cut_off(tree, stores):
    """Redis closes the connection that tells of writes, over and over; what is written meanwhile is seen."""
    dept = stores.key("{org}:dept:")
    for turn in range(20):
        assert in_turn(tree, "TEAM.PATH 4") == "1:2:3:4"
        watch, = (c["id"] for c in stores.redis.client_list() if c["name"] == "musterd-watch")
        if turn % 2:
            stores.redis.client_kill_filter(_id=watch)
        stores.redis.hset(dept + "2", "parent_id", "4")
        if not turn % 2:
            stores.redis.client_kill_filter(_id=watch)
        refused(tree, "TEAM.PATH 4", "CORRUPT")
        stores.redis.hset(dept + "2", "parent_id", "1")
        assert tree.ask("TEAM.PATH", "4") == "1:2:3:4"


# ---- damage ----

DAMAGED_READS = ("GET 4", "PATH 4", "ANCESTORS 4", "COUNT 4", "CHILDREN 4", "DESCENDANTS 4", "ISBELOW 4 1", "MEMBERS 4",
                 "MEMBERS 4 SUBTREE", "ISMEMBER 4 ada SUBTREE", "OF ada", "SUPERVISORS ada")
DAMAGED_CHANGES = ("ADD x 4", "MOVE 6 4", "MOVE 4 6", "REMOVE 4", "REMOVE 4 CASCADE", "RENAME 4 x", "MANAGER 4 ada",
                   "REMOVE 4 RETIRE")


@pytest.mark.parametrize("damage", ["circle", "itself", "orphan", "far orphan"])
def test_a_damaged_branch_is_said_to_be(tree, stores, damage):
    """A circle or a missing parent above a team, put there by hand: every read and every change of that branch answers
    CORRUPT, soon; other branches are served."""
    do(tree, "EMPLOYEE.SET ada DEPT 4", "EMPLOYEE.SET bo DEPT 6", "TEAM.MANAGER 1 bo")
    dept = stores.key("{org}:dept:")
    if damage == "circle":
        stores.redis.hset(dept + "2", "parent_id", "4")
    elif damage == "itself":
        stores.redis.hset(dept + "3", "parent_id", "3")
    elif damage == "orphan":
        stores.redis.hset(dept + "4", "parent_id", "nowhere")
    else:
        stores.redis.delete(dept + "2")
    begun = time.monotonic()
    for command in DAMAGED_READS:
        reply = tree.ask(*f"TEAM.{command}".split())
        assert code_of(reply) == "CORRUPT", (command, reply)
    for command in DAMAGED_CHANGES:
        refused(tree, "TEAM." + command, "CORRUPT")
    if damage != "orphan":
        refused(tree, "TEAM.REMOVE 3 LIFT", "CORRUPT")
    assert time.monotonic() - begun < 10
    assert tree.ask("TEAM.PATH", "6") == "1:5:6" and ids_below(tree, "5") == ["6"]
    assert maps(tree.ask("TEAM.SUPERVISORS", "bo")) == [] and tree.ask("TEAM.ISMEMBER", "5", "bo", "SUBTREE") == 1
    do(tree, "TEAM.ADD x 6", "TEAM.REMOVE 6 LIFT")


def test_the_check_names_a_circle(tree, stores):
    """TEAM.CHECK finds all that hang in a circle and changes nothing unless told to repair the truth."""
    stores.redis.hset(stores.key("{org}:dept:2"), "parent_id", "4")
    before = everything(stores)
    reply = str(tree.ask("TEAM.CHECK"))
    assert everything(stores) == before
    assert all(f"'{team}'" in reply or team in reply for team in "234"), reply


# ---- who is in which team ----

def test_a_member_of_several_teams(tree, stores):
    """Joining the team above does not end the membership below, and leaving one leaves the other."""
    do(tree, "EMPLOYEE.SET u DEPT 6", "TEAM.JOIN 4 u", "TEAM.JOIN 2 u")
    same(tree, "TEAM.JOIN 2 u")
    assert stores.redis.smembers(stores.key("{org}:user_teams:u")) == {"4", "2"}
    do(tree, "TEAM.LEAVE 4 u")
    same(tree, "TEAM.LEAVE 4 u")
    assert stores.redis.smembers(stores.key("{org}:user_teams:u")) == {"2"}
    assert [tree.ask("TEAM.ISMEMBER", team, "u") for team in "123456"] == [0, 1, 0, 0, 0, 1]
    assert [tree.ask("TEAM.ISMEMBER", team, "u", "SUBTREE") for team in "123456"] == [1, 1, 0, 0, 1, 1]


def test_nobody_is_counted_twice(tree):
    """Over a subtree each person counts once, however many of its teams he is in; members of a team itself are none of
    those below."""
    do(tree, "EMPLOYEE.SET u DEPT 0", "EMPLOYEE.SET v DEPT 0", "TEAM.JOIN 3 u", "TEAM.JOIN 4 u", "TEAM.JOIN 6 u",
       "TEAM.JOIN 4 v")
    for words in (("2", "SUBTREE"), ("1", "SUBTREE", "COUNT", 1)):
        assert sorted(walk(tree, "TEAM.MEMBERS", *words)) == ["u", "v"]
    assert walk(tree, "TEAM.MEMBERS", "2") == [] and tree.map("TEAM.GET", "2")["members"] == 0
    assert tree.map("TEAM.COUNT", "2") == {"descendants": 2, "listed": 2, "employees": 0, "employees_subtree": 2}
    do(tree, "EMPLOYEE.MOVE u 3")
    assert walk(tree, "TEAM.MEMBERS", "3") == ["u"] and tree.map("TEAM.COUNT", "1")["employees_subtree"] == 2


def test_home_and_joined_do_not_overlap(tree, stores):
    """Joining one's home stores nothing, moving home into a joined team ends the membership, and nobody leaves his
    home."""
    do(tree, "EMPLOYEE.SET ada DEPT 3")
    same(tree, "TEAM.JOIN 3 ada")
    refused(tree, "TEAM.LEAVE 3 ada", "CONFLICT")
    do(tree, "TEAM.JOIN 5 ada", "EMPLOYEE.MOVE ada 5")
    assert not stores.keys("{org}:user_teams:*") and not stores.keys("{org}:members:*")
    assert tree.map("TEAM.GET", "5")["members"] == 1 and walk(tree, "TEAM.MEMBERS", "3") == []
    model = Model()
    for node in TREE:
        model = model.after("TEAM.ADD", node.partition("/")[0], node.partition("/")[2] or "-")
    check_redis(stores, model.after("EMPLOYEE.SET", "ada", "DEPT", "5"))


def test_all_teams_of_one_person(tree):
    """Home and joined teams, each with the line up to the root."""
    do(tree, "EMPLOYEE.SET ada DEPT 3", "TEAM.JOIN 6 ada", "TEAM.MANAGER 1 boss", "TEAM.MANAGER 3 ada",
       "TEAM.MANAGER 5 cy", "TEAM.RENAME 2 Two")
    entries = {entry["team"]: {**entry, "line": maps(entry["line"])} for entry in maps(tree.ask("TEAM.OF", "ada"))}
    one, five = {"id": "1", "name": "1", "manager": "boss"}, {"id": "5", "name": "5", "manager": "cy"}
    assert entries == {
        "3": {"team": "3", "name": "3", "home": 1, "path": "1:2:3",
              "line": [{"id": "3", "name": "3", "manager": "ada"}, {"id": "2", "name": "Two", "manager": ""}, one]},
        "6": {"team": "6", "name": "6", "home": 0, "path": "1:5:6",
              "line": [{"id": "6", "name": "6", "manager": ""}, five, one]}}


def test_supervisors_up_every_line(tree):
    """Managers above home and joined teams, nearest first, each once, never oneself."""
    do(tree, "EMPLOYEE.SET ada DEPT 4", "TEAM.JOIN 6 ada", "TEAM.MANAGER 4 ada", "TEAM.MANAGER 3 bo",
       "TEAM.MANAGER 5 cy", "TEAM.MANAGER 1 boss", "TEAM.MANAGER 2 cy")
    entries = maps(tree.ask("TEAM.SUPERVISORS", "ada"))
    assert [(entry["employee"], entry["team"], entry["distance"]) for entry in entries] in (
        [("bo", "3", 1), ("cy", "5", 1), ("boss", "1", 2)], [("cy", "5", 1), ("bo", "3", 1), ("boss", "1", 2)])


def test_an_employee_who_is_removed_is_in_no_team(tree, stores):
    """All of it goes in one step: one record says that he has gone, one that his memberships have."""
    do(tree, "EMPLOYEE.SET ada DEPT 3", *[f"TEAM.JOIN {team} ada" for team in "12456"])
    before = {name: entry_count(stores, name) for name in stores.keys("*:journal")}
    do(tree, "EMPLOYEE.REMOVE ada")
    after = {name: entry_count(stores, name) for name in stores.keys("*:journal")}
    assert sorted(after[name] - before[name] for name in after if after[name] != before[name]) == [1, 1]
    assert not stores.keys("{org}:user_teams:*") and not stores.keys("{org}:members:*") and not stores.keys("dir:*")
    assert [walk(tree, "TEAM.MEMBERS", team) for team in "123456"] == [[]] * 6
    do(tree, "EMPLOYEE.SET ada DEPT 3")
    assert [as_map(entry)["team"] for entry in tree.ask("TEAM.OF", "ada")] == ["3"]


def test_nobody_is_in_more_than_500_teams(muster):
    plant(muster, "hq")
    assert set(pipelined(muster, [("TEAM.ADD", f"t{n}", "hq") for n in range(501)])) == {"OK"}
    do(muster, "EMPLOYEE.SET ada DEPT hq")
    replies = pipelined(muster, [("TEAM.JOIN", f"t{n}", "ada") for n in range(501)])
    assert replies[:500] == ["OK"] * 500 and replies[500].startswith("CONFLICT ")
    assert len(muster.ask("TEAM.OF", "ada")) == 501
    do(muster, "TEAM.LEAVE t7 ada", "TEAM.JOIN t500 ada")
    do(muster, "EMPLOYEE.REMOVE ada")
    assert muster.map("TEAM.GET", "t500")["members"] == 0


def test_members_in_pages(muster):
    """Home and joined people of a large subtree, in pages of any size, each once, by id."""
    plant(muster, "hq", *[f"d{n}/hq" for n in range(20)])
    people = [f"e{n:04}" for n in range(1500)]
    commands = [("EMPLOYEE.SET", e, "DEPT", f"d{n % 20}") for n, e in enumerate(people)]
    commands += [("TEAM.JOIN", f"d{(n * 7 + 1) % 20}", e) for n, e in enumerate(people) if n % 3 == 0]
    assert set(pipelined(muster, commands)) == {"OK"}
    for count in (1000, 99):
        found = walk(muster, "TEAM.MEMBERS", "hq", "SUBTREE", "COUNT", count)
        assert sorted(found) == people and len(found) == len(people)
    there = {e for n, e in enumerate(people) if n % 20 == 3 or (n % 3 == 0 and (n * 7 + 1) % 20 == 3)}
    found = walk(muster, "TEAM.MEMBERS", "d3", "COUNT", 10)
    assert set(found) == there and len(found) == len(there)
    counts = muster.map("TEAM.COUNT", "hq")
    assert counts == {"descendants": 20, "listed": 20, "employees": 0, "employees_subtree": 1500}
