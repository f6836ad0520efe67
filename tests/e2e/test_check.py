# SPDX-License-Identifier: MIT
"""TEAM.CHECK: faults are planted in Redis behind the daemon's back; the check names each of them and nothing else,
a repair leaves the keys as they were, and while changes go on it finds nothing in a sound tree."""
import contextlib
import random
import threading
import time

import pytest
import redis

from harness.attendance import as_map, found, pipelined
from harness.check import assert_nothing_found, named, run_check
from harness.muster import text_of
from harness.wait import wait_until

ORG = "{org}:"
LEFT_OUT = ("journal", "owner", "cursor")  # what others write all the time
TOLD = {"DSMISS", "DCMISS", "DCEXTRA"}  # derived, and the daemons are told to read the tree anew


def dump(stores):
    """All keys of the organisation."""
    keys = {}
    for name in stores.keys("{org}:*"):
        kind = name[len(ORG):]
        if kind in LEFT_OUT:
            continue
        key = stores.key(name)
        read = {"string": stores.redis.get, "hash": stores.redis.hgetall, "set": stores.redis.smembers}
        keys[kind] = read[stores.redis.type(key)](key)
    return keys


def check(muster, *words):
    """One TEAM.CHECK; its map, `items` as a sorted list of (code, id, detail)."""
    return run_check(muster, "TEAM.CHECK", ("id",), *words)


def assert_clean(muster):
    assert_nothing_found(check(muster))


def wait_listed(muster, top, expected):
    """Until the daemon, which walks in memory, has read anew what it may have lacked: at most once in ten seconds."""
    wait_until(lambda: muster.ask("TEAM.DESCENDANTS", top)[1] == expected, 20, f"{expected} are listed")


class Faults:
    """Changes of the keys of a tree by hand."""

    def __init__(self, stores):
        self.redis = stores.redis
        self.stores = stores

    def key(self, name):
        return self.stores.key(ORG + name)

    def __getattr__(self, command):
        """redis-py's command of that name, on a key of the tree."""
        def run(name, *words, **options):
            return getattr(self.redis, command)(self.key(name), *words, **options)
        return run


@pytest.fixture(name="org")
def fixture_org(muster, stores):
    """1 -> 2 -> 3 -> 4, 1 -> 5 -> 6, and 20; ann works in 3 and has joined 5, bob works in 6 and has joined 2."""
    found(muster, {"1/-": 0, "2/1": 0, "3/2": ["ann"], "4/3": 0, "5/1": 0, "6/5": ["bob"], "20/-": 0})
    assert muster.ask("TEAM.JOIN", "5", "ann") == muster.ask("TEAM.JOIN", "2", "bob") == "OK"
    assert_clean(muster)
    return Faults(stores)


DERIVED = {
    "a child that its parent does not list": (
        lambda f: f.srem("direct_children:2", 3), {("DCMISS", "3")}),
    "a root that is not listed": (
        lambda f: f.srem("roots", 20), {("DCMISS", "20")}),
    "a list of children that is gone": (
        lambda f: f.delete("direct_children:1"), {("DCMISS", "2"), ("DCMISS", "5")}),
    "a child of somebody else": (
        lambda f: f.sadd("direct_children:5", 3), {("DCEXTRA", "5")}),
    "a root that has a parent": (
        lambda f: f.sadd("roots", 3), {("DCEXTRA", "-")}),
    "a child that does not exist": (
        lambda f: f.sadd("direct_children:5", "ghost"), {("DCEXTRA", "5")}),
    "a descendant that is missing": (
        lambda f: f.srem("children:1", 4), {("DSMISS", "4")}),
    "a set of descendants that is gone": (
        lambda f: f.delete("children:2"), {("DSMISS", "3"), ("DSMISS", "4")}),
    "a descendant of somebody else": (
        lambda f: f.sadd("children:5", 3), {("DSEXTRA", "5")}),
    "a descendant that does not exist": (
        lambda f: f.sadd("children:5", "ghost"), {("DSEXTRA", "5")}),
    "a stranger in the place of a descendant": (
        lambda f: (f.srem("children:5", 6), f.sadd("children:5", 4)), {("DSMISS", "6"), ("DSEXTRA", "5")}),
    "a stranger that is counted": (
        lambda f: (f.sadd("children:5", 4), f.hincrby("dept:5", "sub", 1)), {("DSEXTRA", "5"), ("SUB", "5")}),
    "a stranger that is counted all the way up": (
        lambda f: [(f.sadd(f"children:{a}", "ghost"), f.hincrby(f"dept:{a}", "sub", 1)) for a in (3, 2, 1)],
        {(code, a) for code in ("DSEXTRA", "SUB") for a in "123"}),
    "a counter that is too high": (
        lambda f: f.hincrby("dept:2", "sub", 5), {("SUB", "2")}),
    "counters that are too low": (
        lambda f: [f.hset(f"dept:{a}", "sub", 0) for a in (1, 2, 3)], {("SUB", "1"), ("SUB", "2"), ("SUB", "3")}),
    "a counter that is no number": (
        lambda f: f.hset("dept:2", "sub", "many"), {("SUB", "2")}),
    "a counter that is gone": (
        lambda f: f.hdel("dept:3", "sub"), {("SUB", "3")}),
    "a name that is not registered": (
        lambda f: f.hdel("names:2", "3"), {("NAMEMISS", "3")}),
    "names that are gone": (
        lambda f: f.delete("names:1"), {("NAMEMISS", "2"), ("NAMEMISS", "5")}),
    "a name that nobody has": (
        lambda f: f.hset("names:2", "sales", 3), {("NAMEEXTRA", "2")}),
    "a name of a node without children": (
        lambda f: f.hset("names:4", "sales", 6), {("NAMEEXTRA", "4")}),
    "a name that a stranger holds": (
        lambda f: f.hset("names:2", "3", 6), {("NAMEMISS", "3")}),
    "a name under another spelling": (
        lambda f: (f.hdel("names:2", "3"), f.hset("names:2", "three", 3)), {("NAMEMISS", "3"), ("NAMEEXTRA", "2")}),
    "keys of a node that does not exist": (
        lambda f: (f.sadd("children:ghost", 4), f.hset("names:ghost", "x", 4), f.sadd("direct_children:ghost", 4)),
        {("KEY", "ghost"), ("DCEXTRA", "ghost")}),
    "a stored path": (
        lambda f: f.hset("dept:4", "path", "1:2:4"), {("FIELD", "4")}),
    "a stored id": (
        lambda f: f.hset("dept:4", "id", "4"), {("FIELD", "4")}),
    "a member whose teams don't say so": (
        lambda f: f.srem("user_teams:ann", 5), {("MEMBER", "5")}),
    "a team whose members don't say so": (
        lambda f: f.srem("members:2", "bob"), {("MEMBER", "2")}),
    "a job that does not exist": (
        lambda f: f.sadd("jobs", 77), {("JOB", "77")}),
    "a removed department of long ago": (
        lambda f: f.hset("gone", "77", "1000|1:77|Sales"), {("GONE", "77")}),
    "a removed department that is no record": (
        lambda f: f.hset("gone", "77", "Sales"), {("GONE", "77")}),
    "a last entry that is not the last": (
        lambda f: f.set("last", "1-1"), {("LAST", "last")}),
    "a last entry that is gone": (
        lambda f: f.delete("last"), {("LAST", "last")}),
}


def test_each_fault_in_what_is_derived_is_named_and_healed(muster, org, stores):
    good = dump(stores)
    for fault, (plant, expected) in DERIVED.items():
        plant(org)
        bad = dump(stores)
        assert bad != good, fault
        result = check(muster)
        assert named(result) == expected and result["repaired"] == 0, (fault, result)
        assert dump(stores) == bad, f"{fault}: a look changes nothing"
        result = check(muster, "REPAIR")
        assert named(result) == expected and result["findings"] == result["repaired"], (fault, result)
        healed = dump(stores)
        if TOLD & set(result["codes"]):
            assert healed["last"] != good["last"], fault
            good["last"] = healed["last"]
        assert healed == good, fault
        assert_clean(muster)


MEMBERS = {
    "a membership in one's own home": (
        lambda f: (f.sadd("members:3", "ann"), f.sadd("user_teams:ann", 3)), {("HOME", "3")}),
    "a membership in no team": (
        lambda f: (f.sadd("members:ghost", "ann"), f.sadd("user_teams:ann", "ghost")), {("NOTEAM", "ghost")}),
    "half a membership in no team": (
        lambda f: f.sadd("members:ghost", "ann"), {("NOTEAM", "ghost")}),
    "the other half of one": (
        lambda f: f.sadd("user_teams:ann", "ghost"), {("NOTEAM", "ghost")}),
    "a member who is no employee": (
        lambda f: f.sadd("members:4", "nobody"), {("NOEMPLOYEE", "4")}),
    "teams of nobody": (
        lambda f: f.sadd("user_teams:no.body@home", 4, 6), {("NOEMPLOYEE", "4"), ("NOEMPLOYEE", "6")}),
}


def test_a_membership_that_can_not_be_is_ended_and_told(muster, org, stores):
    good = dump(stores)
    for fault, (plant, expected) in MEMBERS.items():
        plant(org)
        assert named(check(muster)) == expected, fault
        result = check(muster, "REPAIR")
        assert named(result) == expected and result["findings"] == result["repaired"], (fault, result)
        healed = dump(stores)
        assert healed["last"] != good["last"], f"{fault}: the journal tells of it"
        good["last"] = healed["last"]
        assert healed == good, fault
        assert_clean(muster)


def test_names_of_a_tree_from_before_there_were_any_are_added(muster, org, stores):
    good = dump(stores)
    for kind in good:
        if kind.startswith("names:"):
            org.delete(kind)
    for node, path in {"1": "1", "2": "1:2", "3": "1:2:3", "4": "1:2:3:4"}.items():
        org.hset(f"dept:{node}", "path", path)
    result = check(muster, "REPAIR")
    assert result["codes"] == {"NAMEMISS": 8, "FIELD": 4} and result["repaired"] == 12, result
    assert dump(stores) == good


def test_siblings_with_the_same_name_are_reported_and_left(muster, org, stores):
    org.hset("dept:5", "name", "2")
    org.hdel("names:1", "5")
    bad = dump(stores)
    for words in ((), ("REPAIR",), ("REPAIR", "TRUTH")):
        result = check(muster, *words)
        assert named(result) == {("NAMEDUP", "5")} and result["repaired"] == 0, result
    assert dump(stores) == bad


def test_counters_for_made_ids_are_numbers_again(muster, org):
    org.set("next_id", "x1")
    org.set("next_job", "-")
    assert named(check(muster)) == {("COUNTER", "next_id"), ("COUNTER", "next_job")}
    assert check(muster, "REPAIR")["repaired"] == 2
    assert_clean(muster)
    assert muster.ask("TEAM.ADD", "*", "1").isdigit()


def test_a_job_that_nobody_works_on_is_given_up_or_taken_up(muster, org):
    """Before its instant what it has done is taken back; after it the rest is done."""
    org.hset("job:901", mapping={"op": "move", "id": "3", "parent": "5", "phase": "prepare", "old": "2", "new": "5"})
    org.sadd("children:5", 3, 4)
    assert named(check(muster)) == {("JOB", "901"), ("DSEXTRA", "5")}
    check(muster, "REPAIR")
    assert_clean(muster)
    assert 0 < org.ttl("job:901") <= 3600
    org.hset("job:902", mapping={"op": "remove", "id": "4", "parent": "0", "phase": "finish", "stage": "mark",
                                 "old": "3:2:1", "path": "1:2:3:4", "group": 1, "cursor": "0", "done": 0, "total": 5})
    org.hset("dept:4", "state", "removed")
    org.srem("direct_children:3", 4)
    org.hdel("names:3", "4")
    for above in (3, 2, 1):
        org.hincrby(f"dept:{above}", "sub", -1)
    check(muster, "REPAIR")
    wait_until(lambda: not org.exists("dept:4") and not org.exists("jobs"), 20, "the removal is brought to its end")
    assert_clean(muster)


# ---- the truth ----

def test_a_cycle_is_listed_and_opened_where_a_parent_still_lists_the_child(muster, org, stores):
    good = dump(stores)
    org.hset("dept:2", "parent_id", "4")
    bad = dump(stores)
    for words in (("TEAM.GET", 3), ("TEAM.PATH", 4), ("TEAM.ANCESTORS", 2), ("TEAM.ISBELOW", 4, 1),
                  ("TEAM.ADD", "new", 3), ("TEAM.MOVE", 2, 5)):
        assert muster.ask(*words).startswith("CORRUPT"), words
    cycle = {("CYCLE", "2"), ("CYCLE", "3"), ("CYCLE", "4")}
    assert named(check(muster)) == cycle
    assert named(check(muster, "REPAIR")) == cycle and dump(stores) == bad, "the truth takes a word more"
    result = check(muster, "REPAIR", "TRUTH")
    assert result["findings"] == result["repaired"] > 0, result
    healed = dump(stores)
    assert healed.pop("last") != good.pop("last")
    assert healed["dept:2"].pop("version") == "2"
    assert healed == good
    assert_clean(muster)
    assert muster.ask("TEAM.PATH", 4) == "1:2:3:4"
    wait_listed(muster, 1, ["2", "3", "4", "5", "6"])


def test_a_cycle_that_nothing_above_lists_goes_to_lost_and_found(muster, org, stores):
    org.hset("dept:2", "parent_id", "4")
    org.srem("direct_children:1", 2)
    org.sadd("direct_children:4", 2)
    assert {("CYCLE", "2"), ("CYCLE", "3"), ("CYCLE", "4")} <= named(check(muster))
    assert check(muster, "REPAIR", "TRUTH")["state"] == "done"
    assert_clean(muster)
    assert muster.ask("TEAM.PATH", 4) == "lost-found:2:3:4"
    assert org.hget("dept:2", "lost_parent") == "4"
    wait_listed(muster, "lost-found", ["2", "3", "4"])
    assert muster.map("TEAM.GET", 1)["descendants"] == 2
    wait_until(lambda: paths(stores).get("2") == "lost-found:2", 20, "MySQL has heard of it")


def test_a_node_that_is_its_own_parent(muster, org):
    org.hset("dept:2", "parent_id", "2")
    assert named(check(muster)) == {("CYCLE", "2")}
    check(muster, "REPAIR", "TRUTH")
    assert_clean(muster)
    assert muster.ask("TEAM.PATH", 4) == "1:2:3:4"


def paths(stores):
    return {row["id"].decode(): row["path"].decode() for row in stores.sql("SELECT id, path FROM department")}


def test_an_orphan_comes_back_where_it_is_still_listed(muster, org, stores):
    good = dump(stores)
    org.hset("dept:3", "parent_id", "ghost")
    assert named(check(muster)) == {("ORPHAN", "3")}
    assert named(check(muster, "REPAIR")) == {("ORPHAN", "3")}
    check(muster, "REPAIR", "TRUTH")
    healed = dump(stores)
    assert healed["dept:3"].pop("version") == "2" and healed.pop("last") != good.pop("last")
    assert healed == good


def test_children_of_a_lost_node_go_to_lost_and_found(muster, org, stores):
    org.delete("dept:3")
    assert muster.ask("TEAM.GET", 4).startswith("CORRUPT")
    assert ("ORPHAN", "4") in named(check(muster))
    result = check(muster, "REPAIR")
    assert result["findings"] - result["repaired"] == 1, result
    check(muster, "REPAIR", "TRUTH")
    assert_clean(muster)
    assert muster.ask("TEAM.PATH", 4) == "lost-found:4"
    assert org.hget("dept:4", "lost_parent") == "3"
    assert muster.map("TEAM.GET", 1)["descendants"] == 3
    wait_listed(muster, "-", ["0", "1", "2", "5", "6", "20", "lost-found", "4"])
    wait_until(lambda: paths(stores).get("4") == "lost-found:4", 20, "MySQL has heard of it")


def test_lost_and_found_can_be_lost_itself(muster, org):
    org.delete("dept:3")
    check(muster, "REPAIR", "TRUTH")
    org.hset("dept:lost-found", "parent_id", "4")
    org.srem("roots", "lost-found")
    check(muster, "REPAIR", "TRUTH")
    assert_clean(muster)
    assert muster.ask("TEAM.PATH", 4) == "lost-found:4"


TRUTH = {
    "a state that there is not": (lambda f: f.hset("dept:3", "state", "asleep"), ("STATE", "3")),
    "a lift that nobody does": (lambda f: f.hset("dept:3", "state", "lifted"), ("STATE", "3")),
    "a removal that nobody does": (lambda f: f.hset("dept:3", "state", "removed"), ("STATE", "3")),
    "a version that is no number": (lambda f: f.hset("dept:3", "version", "new"), ("FIELD", "3")),
    "a name that is gone": (lambda f: f.hdel("dept:3", "name"), ("FIELD", "3")),
    "no word of a parent": (lambda f: f.hdel("dept:3", "parent_id"), ("ORPHAN", "3")),
    "a string in the place of the descendants": (
        lambda f: (f.delete("children:2"), f.set("children:2", "x")), ("TYPE", "2")),
    "a string in the place of the children": (
        lambda f: (f.delete("direct_children:2"), f.set("direct_children:2", "x")), ("TYPE", "2")),
    "a set in the place of the names": (
        lambda f: (f.delete("names:2"), f.sadd("names:2", "x")), ("TYPE", "2")),
    "a hash in the place of the roots": (
        lambda f: (f.delete("roots"), f.hset("roots", "x", "y")), ("TYPE", "roots")),
}


def test_what_only_the_word_truth_repairs(muster, org, stores):
    def keys():
        """Without what a change of the truth leaves behind."""
        shown = {kind: value for kind, value in dump(stores).items() if not kind.endswith(":damaged")}
        del shown["last"]
        shown["dept:3"].pop("version", None)
        return shown
    good = keys()
    for fault, (plant, expected) in TRUTH.items():
        plant(org)
        assert named(check(muster)) == {expected}, fault
        result = check(muster, "REPAIR")
        assert named(result) == {expected} and result["repaired"] == 0, (fault, result)
        result = check(muster, "REPAIR", "TRUTH")
        assert expected in named(result) and result["findings"] == result["repaired"], (fault, result)
        assert_clean(muster)
        assert keys() == good, fault
        assert muster.ask("TEAM.PATH", 4) == "1:2:3:4", fault
        for kind in dump(stores):
            if kind.endswith(":damaged"):
                org.delete(kind)


def test_a_node_of_another_type(muster, org):
    org.delete("dept:3")
    org.set("dept:3", "x")
    assert named(check(muster)) == {("TYPE", "3")}, "whether 4 is an orphan is not known yet"
    assert named(check(muster, "REPAIR")) == {("TYPE", "3")}
    check(muster, "REPAIR", "TRUTH")
    assert_clean(muster)
    assert org.get("dept:3:damaged") == "x"
    assert muster.ask("TEAM.PATH", 4) == "lost-found:4"


# ---- the command ----

def test_what_is_answered(muster, org):
    with muster.client() as client:
        status = as_map(client.execute_command("TEAM.CHECK", "STATUS"))
    assert (status["state"], status["mode"], status["findings"]) == ("done", "check", 0)
    org.hincrby("dept:2", "sub", 5)
    with muster.raw(30) as raw:
        raw.command("HELLO", "3")
        reply = raw.command("TEAM.CHECK")
    assert reply[b"state"] == b"done" and reply[b"codes"] == {b"SUB": 1}
    assert reply[b"items"] == [{b"code": b"SUB", b"id": b"2", b"detail": b"7 2", b"repaired": 0}]
    assert reply[b"nodes"] == 8 and reply[b"keys"] >= 8 + 4
    for words in (("TRUTH",), ("STATUS", "REPAIR"), ("REPAIR", "REPAIR"), ("SOON",)):
        assert muster.ask("TEAM.CHECK", *words).startswith("ERR syntax"), words
    info = muster.info()
    assert (info["check_state"], info["check_findings"], info["check_nodes"]) == ("done", "1", "8")


def grow(muster, rng, count, roots=3, prefix="n"):
    """`count` nodes in a random tree, below `roots` roots; their ids, parents first."""
    ids, lines = [], []
    for i in range(count):
        parent = "-" if i < roots else rng.choice(ids[-200:] if rng.random() < 0.5 else ids)
        ids.append(f"{prefix}{i}")
        lines.append(("TEAM.ADD", ids[-1], parent, "NAME", f"Team {prefix} {i}"))
    # One by one in a connection's order: each finds its parent.
    assert set(pipelined(muster, lines, 500)) == {"OK"}
    return ids


def test_one_at_a_time_and_whoever_asks_for_the_same_joins(muster):
    grow(muster, random.Random(1), 3000)
    reply = as_map(muster.ask("TEAM.CHECK", "NOWAIT"))
    assert (reply["state"], reply["mode"]) == ("running", "check")
    assert muster.ask("TEAM.CHECK", "REPAIR").startswith("BUSY")
    results = []
    threads = [threading.Thread(target=lambda: results.append(check(muster))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {r["state"] for r in results} == {"done"} and {r["nodes"] for r in results} == {3001}


def test_a_check_ends_with_the_daemon(muster):
    grow(muster, random.Random(1), 3000)
    with muster.raw(30) as raw:
        raw.send(b"TEAM.CHECK REPAIR\r\n")
        wait_until(lambda: muster.info()["check_state"] == "running", 10, "it runs")
        assert muster.terminate() == 0
        assert str(text_of(raw.read())).startswith("NOTREADY")


def test_a_check_ends_with_redis(muster, intact):
    grow(muster, random.Random(1), 3000)
    with muster.raw(30) as raw:
        raw.send(b"TEAM.CHECK REPAIR\r\n")
        wait_until(lambda: muster.info()["check_state"] == "running", 10, "it runs")
        intact.kill("redis")
        assert str(text_of(raw.read())).startswith("UNAVAILABLE")
    intact.start(["redis"])
    muster.wait_ready()
    assert muster.map("TEAM.CHECK", "STATUS")["state"] == "failed"
    assert_clean(muster)


# ---- many faults, kills, changes under way ----

def tree_of(stores):
    """What the truth in Redis says: {id: parent}, {id: all ids below}, {parent: {folded name: id}}."""
    pipe = stores.redis.pipeline(transaction=False)
    ids = [name[len("{org}:dept:"):] for name in stores.keys("{org}:dept:*") if not name.endswith(":damaged")]
    for node in ids:
        pipe.hgetall(stores.key(f"{ORG}dept:{node}"))
    nodes = dict(zip(ids, pipe.execute()))
    below, names = {node: set() for node in nodes}, {}
    for node, fields in nodes.items():
        names.setdefault(fields["parent_id"], {})[fields.get("fold", fields["name"].lower())] = node
        up, steps = fields["parent_id"], 0
        while up:
            below[up].add(node)
            up, steps = nodes[up]["parent_id"], steps + 1
            assert steps <= len(nodes), f"{node} is in a circle"
    return nodes, below, names


def assert_exact(stores):
    """Every derived key is what follows from the truth, and there is no other."""
    keys = {kind: value for kind, value in dump(stores).items() if not kind.endswith(":damaged")}
    nodes, below, names = tree_of(stores)
    assert {node: int(fields.get("sub", 0)) for node, fields in nodes.items()} == {n: len(b) for n, b in below.items()}
    expected = {f"children:{node}": under for node, under in below.items() if under}
    expected |= {f"names:{parent or '-'}": held for parent, held in names.items()}
    for parent, held in names.items():
        expected[f"direct_children:{parent}" if parent else "roots"] = set(held.values())
    kinds = ("children", "names", "direct_children", "roots")
    assert {k: v for k, v in keys.items() if k.split(":")[0] in kinds} == expected


def plant_any(faults, rng, ids, people):
    """One fault of any kind."""
    node, other, person = rng.choice(ids), rng.choice(ids), rng.choice(people)
    kind = rng.choice(["dept", "children", "direct_children", "names", "members"])
    rng.choice([
        lambda: faults.srem(f"direct_children:{faults.hget(f'dept:{node}', 'parent_id')}", node),
        lambda: faults.srem(f"children:{faults.hget(f'dept:{node}', 'parent_id')}", node),
        lambda: faults.sadd(f"direct_children:{node}", other),
        lambda: faults.sadd(f"children:{node}", other, "ghost"),
        lambda: faults.hset(f"names:{node}", "bogus", other),
        lambda: faults.delete(f"{kind}:{node}"),
        lambda: (faults.delete(f"{kind}:{node}"), faults.set(f"{kind}:{node}", "x")),
        lambda: faults.hincrby(f"dept:{node}", "sub", rng.randint(-5, 5)),
        lambda: faults.hset(f"dept:{node}", "parent_id", rng.choice([other, node, "ghost"])),
        lambda: faults.hdel(f"dept:{node}", rng.choice(["sub", "parent_id", "name"])),
        lambda: faults.hset(f"dept:{node}", "state", rng.choice(["lifted", "removed", "asleep"])),
        lambda: faults.hset(f"dept:{node}", rng.choice(["version", "sub", "path", "id"]), "x"),
        lambda: faults.sadd(f"{kind}:ghost{rng.randint(1, 9)}", other),
        lambda: faults.sadd(f"members:{node}", person),
        lambda: faults.sadd(f"user_teams:{person}", node),
        lambda: faults.sadd("jobs", rng.randint(1, 99)),
        lambda: faults.sadd("roots", node),
    ])()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(6))
def test_all_faults_at_once_in_a_random_tree(muster, stores, seed):
    rng = random.Random(seed)
    ids = grow(muster, rng, 1000)
    people = [f"e{i}" for i in range(20)]
    replies = pipelined(muster, [("EMPLOYEE.SET", e, "DEPT", rng.choice(ids)) for e in people])
    replies += pipelined(muster, [("TEAM.JOIN", rng.choice(ids), rng.choice(people)) for _ in range(100)])
    assert set(replies) == {"OK"}
    assert_clean(muster)
    faults = Faults(stores)
    for _ in range(rng.choice([5, 30, 100])):
        with contextlib.suppress(redis.ResponseError):  # a key that is another fault already
            plant_any(faults, rng, ids, people + ["nobody"])
    assert check(muster)["findings"] > 0
    result = check(muster, "REPAIR")
    again = check(muster)
    assert again["findings"] == result["findings"] - result["repaired"], (result, again)
    result = check(muster, "REPAIR", "TRUTH")
    assert result["state"] == "done" and result["rounds"] < 40, result
    last = check(muster)
    assert set(last["codes"]) <= {"NAMEDUP"}, last
    if last["findings"] == 0:
        assert_exact(stores)


@pytest.mark.timeout(300)
def test_a_repair_that_is_killed_has_made_nothing_worse(muster, stores):
    """After each kill every key is as it was before the faults or as they have left it, or between the two."""
    rng = random.Random(7)
    ids = grow(muster, rng, 2000)
    muster.ask("TEAM.CHECK")
    good = dump(stores)
    faults = Faults(stores)
    for node in rng.sample(ids[3:], 600):
        parent = faults.hget(f"dept:{node}", "parent_id")
        rng.choice([
            lambda p=parent, n=node: faults.srem(f"children:{p}", n),
            lambda p=parent, n=node: faults.hdel(f"names:{p}", good[f"dept:{n}"]["name"].lower()),
            lambda n=node: faults.hincrby(f"dept:{n}", "sub", 3),
            lambda n=node: faults.sadd(f"children:{n}", "ghost", ids[0]),
            lambda n=node: faults.hset(f"dept:{n}", "path", "x"),
        ])()
    bad = dump(stores)
    found_first = check(muster)["findings"]
    for _ in range(4):
        muster.ask("TEAM.CHECK", "REPAIR", "NOWAIT")
        with contextlib.suppress(AssertionError, OSError):
            wait_until(lambda: int(muster.info()["check_findings"]) > rng.randint(0, 300), 5, "it repairs")
        muster.kill9()
        now = {kind: value for kind, value in dump(stores).items() if kind != "last"}
        for kind in {*good, *bad, *now} - {"last"}:
            assert between(now.get(kind), good.get(kind), bad.get(kind)), kind
        muster.start()
        left = check(muster)["findings"]
        assert left <= found_first
        found_first = left
    check(muster, "REPAIR")
    healed = dump(stores)
    assert healed.pop("last") != good.pop("last") and healed == good
    assert_clean(muster)


def between(now, good, bad):
    if now in (good, bad):
        return True
    if isinstance(now, dict):
        return all(now.get(f) in ((good or {}).get(f), (bad or {}).get(f)) for f in {*now, *(good or {}), *(bad or {})})
    return (good or set()) & (bad or set()) <= now <= (good or set()) | (bad or set())


class Changes(threading.Thread):
    """Random changes by one client until told to stop; refusals are all right, lost answers are not, nor is CORRUPT
    unless somebody damages the tree meanwhile."""

    def __init__(self, muster, seed, ids, people, damaged):
        super().__init__(daemon=True)
        self.wrong = ("ERR", "UNAVAILABLE") if damaged else ("ERR", "UNAVAILABLE", "CORRUPT")
        self.muster, self.rng, self.ids, self.people = muster, random.Random(seed), ids, people
        self.over, self.done, self.refused = threading.Event(), 0, None

    def one(self):
        rng, node = self.rng, self.rng.choice(self.ids)
        return rng.choice([
            lambda: ("TEAM.MOVE", node, rng.choice(self.ids + ["-"])),
            lambda: ("TEAM.MOVE", node, rng.choice(self.ids)),
            lambda: ("TEAM.ADD", "*", node, "NAME", f"New {rng.random()}"),
            lambda: ("TEAM.REMOVE", node, rng.choice(["LIFT", "CASCADE", "RETIRE"])),
            lambda: ("TEAM.RESTORE", node),
            lambda: ("TEAM.RENAME", node, f"Name {rng.random()}"),
            lambda: ("TEAM.JOIN", node, rng.choice(self.people)),
            lambda: ("TEAM.LEAVE", node, rng.choice(self.people)),
            lambda: ("EMPLOYEE.SET", rng.choice(self.people), "DEPT", node),
            lambda: ("EMPLOYEE.REMOVE", rng.choice(self.people)),
        ])()

    def run(self):
        with self.muster.raw(60) as raw:
            while not self.over.is_set():
                words = self.one()
                reply = str(text_of(raw.command(*words)))
                self.done += 1
                if reply.startswith(self.wrong) and "too deep" not in reply:
                    self.refused = (words, reply)
                    return


@contextlib.contextmanager
def changes_going_on(muster, other, seed, damaged=False):
    """Three clients of two daemons change a tree at random meanwhile; yields its ids. Nearly every move is a job of
    small steps."""
    rng = random.Random(seed)
    people = [f"e{i}" for i in range(40)]
    ids = grow(muster, rng, 1500)
    pipelined(muster, [("EMPLOYEE.SET", e, "DEPT", rng.choice(ids)) for e in people])
    threads = [Changes(daemon, seed * 10 + i, ids, people, damaged) for i, daemon in enumerate((muster, other, muster))]
    for thread in threads:
        thread.start()
    try:
        yield ids
    finally:
        for thread in threads:
            thread.over.set()
        for thread in threads:
            thread.join()
    assert sum(thread.done for thread in threads) > 100
    wait_until(lambda: muster.ask("TEAM.JOBS") == [], 60, "the jobs have ended")
    for thread in threads:
        assert thread.refused is None, thread.refused


SMALL_STEPS = {"team": {"inline_max": 20, "chunk": 10}}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_found_while_changes_go_on(make_muster, stores, seed):
    """By the daemon that runs the jobs and by another."""
    one, two = make_muster(config=SMALL_STEPS), make_muster(config=SMALL_STEPS)
    checks, until = 0, time.monotonic() + 12
    with changes_going_on(one, two, seed):
        while time.monotonic() < until:
            for muster in (one, two):
                result = check(muster)
                assert result["findings"] == 0, result
                checks += 1
    assert checks >= 4
    assert_clean(two)
    assert_exact(stores)


def test_who_is_missing_in_a_set_as_it_is_removed_is_left_behind(muster, stores):
    """CASCADE finds what is below by the set: an orphan is told to be one, and the repair of the truth takes it in."""
    for words in ("x -", "y x", "z y"):
        assert muster.ask("TEAM.ADD", *words.split()) == "OK"
    stores.redis.srem(stores.key("{org}:children:x"), "z")
    assert muster.ask("TEAM.REMOVE", "x", "CASCADE") == "OK"
    assert muster.ask("TEAM.RENAME", "z", "Z").startswith("CORRUPT ")
    assert named(check(muster)) == {("ORPHAN", "z")} == named(check(muster, "REPAIR"))
    check(muster, "REPAIR", "TRUTH")
    assert_clean(muster)
    assert muster.ask("TEAM.PATH", "z") == "lost-found:z"


@pytest.mark.timeout(300)
def test_faults_are_healed_while_changes_go_on(make_muster, stores):
    """What is derived, in places that jobs are busy with too."""
    one, two = make_muster(config=SMALL_STEPS), make_muster(config=SMALL_STEPS)
    faults, rng, until = Faults(stores), random.Random(3), time.monotonic() + 12
    with changes_going_on(one, two, 3, damaged=True) as ids:
        while time.monotonic() < until:
            for _ in range(10):
                node, other = rng.choice(ids), rng.choice(ids)
                rng.choice([
                    lambda n=node, o=other: faults.srem(f"children:{n}", o, *faults.srandmember(f"children:{n}", 2)),
                    lambda n=node: faults.sadd(f"children:{n}", rng.choice(ids)),
                    lambda n=node, o=other: faults.sadd(f"direct_children:{n}", o),
                    lambda n=node: faults.hset(f"names:{n}", "bogus", n),
                ])()
            check(one, "REPAIR")
            check(two, "REPAIR")
    # Who is missing in the set of a team as it is removed is not found by that: an orphan, until the truth is mended.
    check(two, "REPAIR", "TRUTH")
    assert_clean(one)
    assert_exact(stores)
