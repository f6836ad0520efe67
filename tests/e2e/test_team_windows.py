# SPDX-License-Identifier: MIT
"""What others may do while a job stands still between two of its steps, and what it makes of that when it goes on.

Of two daemons with a long lease the one that works on jobs is stopped: before a job begins, or as soon as the job is
where a test wants it. The other serves all the while."""
import pytest

from harness.attendance import as_map, pipelined
from harness.raw import Raw, encode
from harness.teams import (Asked, check_clean, check_redis, code_of, do, homes, job_of, maps, plant, same,
                           seen_in_redis, wait_no_job, walk)
from harness.treemodel import Model, Node
from harness.wait import wait_until

CONFIG = {"server": {"log_level": "info"}, "redis": {"lease": "60s"}, "day": {"close_auto": "no"},
          "team": {"chunk": 10, "inline_max": 8}}
FRAME = {"g": "", "p": "g", "x": "p", "q": "g"}
KIDS = 1500  # a lift hangs up one a step


class Frozen:
    """`holder`: the daemon that works on jobs; `other`: the one that is asked; `model`: what is true now."""

    def __init__(self, make_muster, stores):
        pair = [make_muster(config=CONFIG) for _ in range(2)]
        self.stores = stores
        self.holder = wait_until(lambda: next(filter(self.holds, pair), None), 10, "one holds the organisation")
        self.other = pair[1 - pair.index(self.holder)]
        self.model = Model()
        self.words = self.job = self.asked = None

    def holds(self, daemon):
        owner = self.stores.redis.get(self.stores.key("{org}:owner")) or ""
        return str(daemon.port) in owner or str(daemon.process.pid) in owner

    def build(self, *commands, **more):
        """The frame, more nodes with their parents, and what else is to be so."""
        nodes = {**FRAME, **more}
        plant(self.other, *(f"{team}/{parent}" if parent else team for team, parent in nodes.items()))
        self.model = Model({**Model().nodes, **{team: Node(parent, team) for team, parent in nodes.items()}})
        self.do(*commands)

    def do(self, *commands):
        do(self.other, *commands)
        for command in commands:
            self.model = self.model.after(*command.split())

    def begin(self, command, when=None):
        """The job stands still once when(job) is true, else before its first step."""
        if not when:
            self.holder.pause()
        self.words, self.asked = command.split(), Asked(self.other, *command.split())
        self.job = self.asked.wait_begun(self.stores)
        if when:
            while (job := job_of(self.stores)) and not when(job):
                pass
            self.holder.pause()
        job = job_of(self.stores)
        assert job and (not when or when(job)), "the job was too quick for this test"
        if job["phase"] == "finish":
            self.model = self.model.after(*self.words)

    def check_busy(self, *commands):
        replies = [self.other.ask(*command.split()) for command in commands]
        assert [code_of(reply) for reply in replies] == ["BUSY"] * len(commands), replies

    def go_on(self):
        """To the job's end: all is as the model says, and as much was done as there was to do."""
        before_its_instant = job_of(self.stores)["phase"] == "prepare"
        self.holder.resume()
        assert self.asked.answer() == "OK"
        wait_no_job(self.stores)
        if before_its_instant:
            self.model = self.model.after(*self.words)
        check_redis(self.stores, self.model)
        check_clean(self.other)
        shown, = maps(self.other.ask("TEAM.JOBS", self.job["job"]))
        assert (shown["phase"], shown["error"]) == ("done", "") and shown["done"] <= shown["total"], shown


@pytest.fixture(name="frozen")
def fixture_frozen(make_muster, stores):
    return Frozen(make_muster, stores)


def is_lifted(job):
    """Nobody has been moved yet, and most children hang where they hung."""
    return job["phase"] == "finish" and job["stage"] == "children"


def kids():
    return {f"k{n}": "x" for n in range(KIDS)}


@pytest.mark.parametrize("words", ["TEAM.REMOVE x LIFT", "TEAM.MOVE x q"])
def test_who_asks_for_the_same_joins_the_job(frozen, words):
    frozen.build(**{f"k{n}": "x" for n in range(20)})
    frozen.begin(words)
    joined = Asked(frozen.other, *words.split())
    assert frozen.other.map("TEAM.GET", "x")["parent"] == "p"  # Redis has had both
    frozen.go_on()
    assert joined.answer() == "OK" and code_of(frozen.other.ask("TEAM.JOBS", 2)) == "UNKNOWN"


# ---- what a job relies on is left alone ----

@pytest.mark.parametrize("words", ["TEAM.REMOVE x LIFT", "TEAM.MOVE x q"])
def test_a_team_keeps_its_name_until_the_job_has_moved_it(frozen, words):
    """One of the children comes to have the name that the lifted team has had: until then it is not to be let go."""
    frozen.build("TEAM.RENAME x Same", "TEAM.RENAME k7 Same", **{f"k{n}": "x" for n in range(20)})
    frozen.begin(words)
    frozen.check_busy("TEAM.RENAME x Other")
    assert frozen.other.ask("TEAM.ADD", "thief", "p", "NAME", "Same").startswith("CONFLICT the name is taken by 'x'")
    frozen.go_on()


@pytest.mark.parametrize("before,busy,fine", [
    ([], ["TEAM.REMOVE p RETIRE"], ["TEAM.REMOVE g RETIRE", "TEAM.REMOVE q RETIRE"]),
    (["TEAM.REMOVE p RETIRE"], ["TEAM.RESTORE p", "TEAM.REMOVE g RETIRE"], ["TEAM.REMOVE q RETIRE"]),
    (["TEAM.REMOVE g RETIRE"], ["TEAM.REMOVE p RETIRE"], ["TEAM.RESTORE g"]),
    (["TEAM.REMOVE p RETIRE", "TEAM.REMOVE g RETIRE"], ["TEAM.RESTORE p", "TEAM.RESTORE g"], [])],
    ids=["parent", "above-it", "parent-of-retired", "department-0"])
def test_where_the_people_of_a_lifted_team_go_stays_as_it_is(frozen, before, busy, fine):
    """It is decided at the instant of the lift: what would decide otherwise waits until all are there."""
    frozen.build(**kids())
    frozen.do(*(f"EMPLOYEE.SET e{n} DEPT x" for n in range(30)), *before)
    frozen.begin("TEAM.REMOVE x LIFT", is_lifted)
    frozen.check_busy(*busy)
    frozen.do(*fine)
    frozen.go_on()
    frozen.do(*busy)


def test_an_id_is_not_given_again_before_its_removal_has_ended(frozen, stores):
    """As it is left by a daemon that is killed between the script that deletes the team and the one that ends the
    job."""
    frozen.build(c="x")
    frozen.do("TEAM.REMOVE x CASCADE")
    frozen.holder.pause()
    stores.redis.hset(stores.key("{org}:job:1"), "phase", "finish")
    stores.redis.persist(stores.key("{org}:job:1"))
    stores.redis.sadd(stores.key("{org}:jobs"), 1)
    frozen.check_busy("TEAM.ADD x p")
    frozen.do("TEAM.ADD y p", "TEAM.ADD c y")
    assert seen_in_redis(stores, "p") == {"y", "c"}
    frozen.holder.resume()
    wait_no_job(stores)
    frozen.do("TEAM.ADD x p")
    assert seen_in_redis(stores, "p") == {"y", "c", "x"}
    check_redis(stores, frozen.model)


# ---- people on their way ----

@pytest.mark.parametrize("words,place", [("TEAM.REMOVE x LIFT", "p"), ("TEAM.REMOVE x CASCADE", "0")])
def test_people_on_their_way_are_where_they_go(frozen, stores, words, place):
    """Before the job has moved somebody, OF and ISMEMBER know his new place, JOIN and LEAVE go by it, the old one is
    unknown, and those that list people at the new one do not have him yet."""
    frozen.build("EMPLOYEE.SET ada DEPT x", "EMPLOYEE.SET bob DEPT x", "TEAM.JOIN q ada", **kids())
    frozen.begin(words, is_lifted if place == "p" else None)
    muster = frozen.other
    assert {entry["team"]: entry["home"] for entry in maps(muster.ask("TEAM.OF", "ada"))} == {place: 1, "q": 0}
    assert muster.ask("TEAM.ISMEMBER", place, "ada") == 1
    assert code_of(muster.ask("TEAM.ISMEMBER", "x", "ada")) == code_of(muster.ask("TEAM.MEMBERS", "x")) == "UNKNOWN"
    assert as_map(muster.ask("TEAM.COUNT", place))["employees"] == 0 == muster.map("TEAM.GET", place)["members"]
    assert muster.ask("TEAM.MEMBERS", place) == ["", []] == muster.ask("ROLL", place)
    if place == "p":
        assert muster.ask("TEAM.ISMEMBER", "g", "ada", "SUBTREE") == 1
        assert walk(muster, "TEAM.MEMBERS", "g", "SUBTREE") == ["ada"] and muster.roll("g", "SUBTREE") == []
    assert muster.map("EMPLOYEE.GET", "ada")["dept"] == "x" == muster.map("STATUS", "ada")["dept"]
    same(muster, f"TEAM.JOIN {place} ada")
    assert code_of(muster.ask("TEAM.LEAVE", place, "ada")) == "CONFLICT"
    assert code_of(muster.ask("TEAM.JOIN", "x", "ada")) == "UNKNOWN"
    frozen.do("TEAM.LEAVE q ada", "TEAM.JOIN q bob", "EMPLOYEE.MOVE bob q")
    frozen.go_on()
    assert homes(stores) == {"ada": place, "bob": "q"}


@pytest.mark.timeout(60)
def test_thousands_of_employees_are_moved(make_muster, stores):
    """Redis empties the table of a department's employees from its first bucket on, and gives empty pages for those;
    the job goes on behind them."""
    muster = make_muster(config={"server": {"log_level": "info"}, "day": {"close_auto": "no"}})
    plant(muster, "g", "p/g", "x/p")
    people = [f"e{n}" for n in range(3000)]
    assert set(pipelined(muster, [("EMPLOYEE.SET", employee, "DEPT", "x") for employee in people])) == {"OK"}
    for words, place in (("TEAM.REMOVE x LIFT", "p"), ("TEAM.REMOVE p CASCADE", "0")):
        do(muster, words)
        assert homes(stores) == dict.fromkeys(people, place)


# ---- what is told of the removed ----

def test_paths_of_removed_teams_do_not_run_through_others(frozen, stores):
    """A team between, deleted already and added again elsewhere, is not the one that was above it."""
    pairs = range(60)
    frozen.build("TEAM.ADD w q", **{f"m{n}": "x" for n in pairs}, **{f"c{n}": f"m{n}" for n in pairs})
    # They need more than one step each, so that most are there longer than what is above them.
    frozen.do(*(f"EMPLOYEE.SET e{n} DEPT c{n}" for n in pairs))

    def stranded():
        with stores.redis.pipeline() as pipe:
            for n in pairs:
                pipe.exists(stores.key(f"{{org}}:dept:m{n}"))
                pipe.exists(stores.key(f"{{org}}:dept:c{n}"))
            there = pipe.execute()
        return [n for n in pairs if there[2 * n:2 * n + 2] == [0, 1]]
    frozen.begin("TEAM.REMOVE x CASCADE", lambda job: len(stranded()) > 5)
    found = stranded()
    frozen.do(*(f"TEAM.ADD m{n} w" for n in found))
    frozen.go_on()
    gone = stores.redis.hgetall(stores.key("{org}:gone"))
    assert [gone[f"c{n}"].split("|")[1] for n in found] == [f"g:p:x:c{n}" for n in found]


BUSY = "local n = 0 for i = 1, 5000000 do n = n + i end return 0"  # some 50 ms


def test_a_team_that_goes_while_its_people_are_listed_is_unknown(make_muster, stores):
    """Between the look at the team and the journal's being read up to it: Redis is kept busy, so that one daemon's look
    and the other's removal wait in this order. Whoever asks gets everybody or UNKNOWN, not the rest of them."""
    one, two = (make_muster(config={"day": {"close_auto": "no"}}) for _ in range(2))
    answers = []
    for n in range(20):
        plant(one, f"x{n}", f"y{n}/x{n}")
        do(one, f"EMPLOYEE.SET ada DEPT y{n}")
        with Raw(stores.stack["redis"].port()) as slow:
            slow.send(encode("EVAL", BUSY, "0"))
            asked = Asked(two, "TEAM.MEMBERS", f"x{n}", "SUBTREE")
            assert [two.ask("PING") for _ in range(2)] == ["PONG", "PONG"]  # its look has been sent
            removed = Asked(one, "TEAM.REMOVE", f"x{n}", "CASCADE")
            answers.append(asked.answer())
            assert removed.answer() == "OK" and slow.read() == 0
    assert [a for a in answers if a != ["", ["ada"]] and code_of(a) != "UNKNOWN"] == [], answers
