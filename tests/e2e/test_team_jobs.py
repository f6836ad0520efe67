# SPDX-License-Identifier: MIT
"""Big changes of the tree run as jobs of small steps: exact for everybody all the while, resumed whatever is killed,
undone when cancelled, and nobody else is kept waiting."""
import random
import threading
import time

import pytest

from harness import teams
from harness.attendance import as_map, pipelined
from harness.teams import Asked, check_clean, check_redis, code_of, do, job_of, maps, org_keys, wait_no_job
from harness.treemodel import Model, Node
from harness.wait import wait_until

BIG = 20000
MANY = 6000  # where a step handles ten
SLOW = {"server": {"log_level": "info"}, "redis": {"lease": "1s"}, "team": {"chunk": 10}}
FRAME = {"top": "", "l1": "top", "l2": "l1", "r1": "top", "r2": "r1", "big": "l2"}


def parents(count=MANY, fan_out=4, top="big"):
    """Ids below `top` with their parents, in an order in which they can be added."""
    return {f"n{n}": top if n < fan_out else f"n{n // fan_out - 1}" for n in range(count)}


def build(muster, nodes):
    """The frame and the nodes below it, and the model of all."""
    nodes = {**FRAME, **nodes}
    replies = pipelined(muster, [("TEAM.ADD", team, parent or "-") for team, parent in nodes.items()], 2000)
    assert set(replies) == {"OK"}, set(replies)
    return Model({**Model().nodes, **{team: Node(parent, team) for team, parent in nodes.items()}})


def staff(muster, model, count=300):
    """Employees with homes and memberships in the big subtree."""
    rng, commands = random.Random(1), []
    below = model.subtree("big")
    for n in range(count):
        commands.append(("EMPLOYEE.SET", f"e{n}", "DEPT", rng.choice(below)))
        commands.append(("TEAM.JOIN", rng.choice(below), f"e{n}"))
    home, joined = {}, {}
    for verb, one, *rest in commands:
        if verb == "EMPLOYEE.SET":
            home[one] = rest[1]
        elif home[rest[0]] != one:
            joined[rest[0]] = frozenset({one})
    assert set(pipelined(muster, commands)) == {"OK"}
    return model.replace(home=home, joined=joined)


def outside(stores, team):
    """How many descendants a reader of Redis alone finds."""
    return len(teams.seen_in_redis(stores, team))


def counts(muster, team):
    return muster.map("TEAM.GET", team)["descendants"]


# ---- kills ----

def changes_of(kind, turn):
    if kind == "move":
        return ("TEAM.MOVE", "big", ("r2", "l2")[turn % 2])
    return ("TEAM.REMOVE", "big", {"cascade": "CASCADE", "lift": "LIFT"}[kind])


def wait_further(stores, share):
    """Until the job under way has done this share of what was left to do. False when there is none, or no more."""
    begun = job_of(stores)

    def further():
        job = job_of(stores)
        if not job or job["job"] != begun["job"]:
            return ["ended"]
        left = int(begun["total"]) - int(begun["done"])
        return int(job["done"]) >= int(begun["done"]) + share * left and ["further"]
    return begun is not None and wait_until(further, 30, f"{share:.0%} more of the job is done") == ["further"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind,most", [("move", 8), ("cascade", 5), ("lift", 5)])
def test_a_job_goes_on_after_kill9(make_muster, stores, kind, most):
    """Killed at random points of a job, the daemon goes on where it was when it is started again; the command sent
    again says OK, or that there is nothing left to do, and every key is right in the end."""
    muster = make_muster(config=SLOW)
    model = staff(muster, build(muster, parents(MANY, 4 if kind != "lift" else MANY)))
    rng, killed, turn = random.Random(5), 0, 0
    words = changes_of(kind, turn)
    asked = Asked(muster, *words)
    asked.wait_begun(stores)
    while killed < most:
        if not wait_further(stores, rng.random() * 0.7):
            if kind != "move":
                break
            assert muster.ask(*words) == "OK"
            model = model.after(*words)
            turn += 1
            words = changes_of(kind, turn)
            asked = Asked(muster, *words)
            asked.wait_begun(stores)
            continue
        for team in ("top", "l1", "r1", "r2"):
            before, said, after = outside(stores, team), counts(muster, team), outside(stores, team)
            assert said in (before, after), (team, before, said, after)
        muster.kill9()
        killed += 1
        asked.raw.close()
        muster.start()
        # What an impatient client does: it is told to wait, or that all is done.
        asked = Asked(muster, *words)
    assert killed > 1 or kind == "lift"
    wait_no_job(stores)
    assert asked.answer().split(" ")[0] in ("OK", "BUSY", "UNKNOWN")
    again = muster.ask(*words)
    assert again == "OK" if kind == "move" else again.startswith("UNKNOWN "), again
    model = model.after(*words)
    check_redis(stores, model)
    check_clean(muster)
    assert counts(muster, "top") == len(model.descendants("top"))


@pytest.mark.timeout(180)
def test_a_job_survives_redis(make_muster, stores, intact):
    """Redis is killed and comes back from its log in the middle of a move: the job goes on from what was kept."""
    muster = make_muster(config=SLOW)
    model = build(muster, parents())
    asked = Asked(muster, "TEAM.MOVE", "big", "r2")
    asked.wait_progress(stores, 0.3)
    intact.kill("redis")
    begun = time.monotonic()
    assert asked.answer().startswith("UNAVAILABLE ")
    assert time.monotonic() - begun < 10
    intact.start(["redis"])
    wait_until(lambda: isinstance(muster.ask("TEAM.GET", "big"), list), 30, "service resumes")
    wait_no_job(stores)
    assert muster.ask("TEAM.MOVE", "big", "r2") == "OK"
    check_redis(stores, model.after("TEAM.MOVE", "big", "r2"))
    check_clean(muster)


@pytest.mark.timeout(180)
def test_a_job_does_not_care_about_scripts_flushed(make_muster, stores):
    muster = make_muster(config=SLOW)
    model = build(muster, parents())
    ended = threading.Event()

    def flush():
        while not ended.wait(0.002):
            stores.redis.script_flush()
    flusher = threading.Thread(target=flush)
    flusher.start()
    try:
        do(muster, "TEAM.MOVE big r2", "TEAM.MOVE big l2", "TEAM.MOVE big r2", "TEAM.REMOVE big LIFT",
           "TEAM.REMOVE n1 CASCADE")
    finally:
        ended.set()
        flusher.join()
    for words in (("TEAM.MOVE", "big", "r2"), ("TEAM.REMOVE", "big", "LIFT"), ("TEAM.REMOVE", "n1", "CASCADE")):
        model = model.after(*words)
    check_redis(stores, model)


@pytest.mark.timeout(180)
def test_a_job_changes_hands(make_muster, stores):
    """Of two daemons one works on the job; stopped for longer than its lease, it finds that the other has gone on, and
    does no harm when it wakes up. Whoever asked the other has the answer."""
    pair = [make_muster(config=SLOW) for _ in range(2)]
    model = build(pair[0], parents())
    place = "l2"
    for turn in range(4):
        place = {"l2": "r2", "r2": "l2"}[place]
        owner = stores.redis.get(stores.key("{org}:owner")) or ""
        holder = next((d for d in pair if str(d.port) in owner or str(d.process.pid) in owner), pair[turn % 2])
        other = pair[1 - pair.index(holder)]
        asked = Asked(other, "TEAM.MOVE", "big", place)
        asked.wait_progress(stores, (0.1, 0.4, 0.6, 0.9)[turn])
        holder.pause()
        answer = asked.answer()
        assert answer == "OK", answer
        wait_no_job(stores)
        holder.resume()
        wait_until(lambda h=holder, p=place: as_map(h.ask("TEAM.GET", "big"))["parent"] == p, 10, "it has learnt of it")
        model = model.after("TEAM.MOVE", "big", place)
    check_redis(stores, model)
    check_clean(pair[0])


# ---- cancelling, conflicts ----

@pytest.mark.timeout(180)
@pytest.mark.parametrize("words,shares", [(("TEAM.MOVE", "big", "r2"), (0, 0.1, 0.3)),
                                          (("TEAM.REMOVE", "big", "LIFT"), (0, 0, 0))])
def test_a_cancelled_job_leaves_nothing(make_muster, stores, words, shares):
    """Cancelled before its instant, a change leaves Redis as it was; after it, cancelling is too late."""
    muster = make_muster(config=SLOW)
    model = build(muster, parents(MANY, 4 if words[0] == "TEAM.MOVE" else MANY))
    before, entries = org_keys(stores), teams.entry_count(stores)
    cancelled = 0
    for share in shares:
        asked = Asked(muster, *words)
        job = asked.wait_progress(stores, share)
        if muster.ask("TEAM.CANCEL", job["job"]) != "OK":
            break
        assert asked.answer().startswith("CONFLICT ")
        wait_no_job(stores)
        assert not teams.differences(org_keys(stores), before) and teams.entry_count(stores) == entries
        shown, = maps(muster.ask("TEAM.JOBS", job["job"]))
        assert (shown["phase"], shown["team"], shown["job"]) == ("cancelled", "big", int(job["job"]))
        assert muster.ask("TEAM.CANCEL", job["job"]) == "OK" and muster.ask("TEAM.JOBS") == []
        cancelled += 1
    else:
        asked = Asked(muster, *words)
        job = asked.wait_begun(stores)
        shown, = maps(muster.ask("TEAM.JOBS"))
        assert (str(shown["job"]), shown["team"], shown["total"] > 0) == (job["job"], "big", True)
        wait_until(lambda: (job_of(stores) or {"phase": "finish"})["phase"] == "finish", 30, "its instant is over")
        assert muster.ask("TEAM.CANCEL", job["job"]).startswith("CONFLICT ")
    assert cancelled and asked.answer() == "OK"
    check_redis(stores, model.after(*words))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("words,nodes", [(("TEAM.MOVE", "big", "r2"), parents()),
                                         (("TEAM.REMOVE", "big", "LIFT"), parents(MANY, MANY))], ids=["move", "lift"])
def test_a_version_holds_until_the_instant_of_the_change(make_muster, stores, words, nodes):
    """IF is asked again at the flip: a change of the team while the job prepares makes it a CONFLICT, all is undone,
    and who asks the same without IF does not join it."""
    muster = make_muster(config=SLOW)
    model = build(muster, nodes)
    do(muster, "EMPLOYEE.SET ada DEPT l1")
    asked = Asked(muster, *words, "IF", 1)
    job = asked.wait_begun(stores)
    assert code_of(muster.ask(*words)) == "BUSY"
    do(muster, "TEAM.MANAGER big ada")
    assert job_of(stores)["phase"] == "prepare", "the job was too quick for this test"
    assert asked.answer() == "CONFLICT the version is 2 now"
    wait_no_job(stores)
    shown, = maps(muster.ask("TEAM.JOBS", job["job"]))
    assert (shown["phase"], shown["error"]) == ("failed", "CONFLICT the version is 2 now")
    model = model.after("EMPLOYEE.SET", "ada", "DEPT", "l1").after("TEAM.MANAGER", "big", "ada")
    check_redis(stores, model)
    do(muster, " ".join(words) + " IF 2")
    check_redis(stores, model.after(*words))


@pytest.mark.timeout(180)
def test_what_is_in_the_way_of_a_job_is_busy(make_muster, stores):
    """While a subtree is on its way, what would move it, its old or its new place is refused as BUSY and does nothing;
    what does not hinder it is done, and a team added below it arrives with it."""
    muster = make_muster(config=SLOW)
    model = build(muster, parents())
    do(muster, "EMPLOYEE.SET ada DEPT l1", "TEAM.ADD free top", "TEAM.ADD freer free")
    asked = Asked(muster, "TEAM.MOVE", "big", "r2")
    asked.wait_progress(stores, 0.01)
    busy = ["TEAM.MOVE big top", "TEAM.MOVE big r1", "TEAM.REMOVE big", "TEAM.REMOVE big LIFT",
            "TEAM.REMOVE n0 CASCADE",
            "TEAM.MOVE n5 free", "TEAM.MOVE n5 n1", "TEAM.MOVE free n9", "TEAM.MOVE l2 free", "TEAM.MOVE r1 free",
            "TEAM.REMOVE l2 LIFT", "TEAM.REMOVE l1 CASCADE", "TEAM.REMOVE r2 CASCADE", f"TEAM.REMOVE n{MANY - 1}"]
    replies = [muster.ask(*command.split()) for command in busy]
    fine = ["TEAM.ADD new1 n7", "TEAM.ADD new2 big", "TEAM.RENAME n8 Eight", "TEAM.MANAGER big ada", "TEAM.JOIN n9 ada",
            "TEAM.ADD x r2", "TEAM.ADD y l2", "TEAM.MOVE freer top", "EMPLOYEE.MOVE ada n3", "TEAM.REMOVE n4 RETIRE",
            "TEAM.REMOVE free"]
    do(muster, *fine)
    assert job_of(stores)["phase"] == "prepare", "the job was too quick for this test"
    assert [command for command, reply in zip(busy, replies) if code_of(reply) != "BUSY"] == [], replies
    assert asked.answer() == "OK"
    for command in ("EMPLOYEE.SET ada DEPT l1", "TEAM.ADD free top", "TEAM.ADD freer free", *fine, "TEAM.MOVE big r2"):
        model = model.after(*command.split())
    check_redis(stores, model)
    assert muster.ask("TEAM.PATH", "new1").startswith("top:r1:r2:big:")
    check_clean(muster)


def test_names_at_the_new_place_are_set_aside(make_muster, stores):
    """A name under which a team is to arrive can't be taken meanwhile, and is free again when the move is cancelled."""
    muster = make_muster(config=SLOW)
    build(muster, parents())
    asked = Asked(muster, "TEAM.MOVE", "big", "r2")
    asked.wait_progress(stores, 0.01)
    replies = [muster.ask("TEAM.ADD", "x", "r2", "NAME", "BIG"), muster.ask("TEAM.ADD", "x", "l2", "NAME", "Big")]
    assert muster.ask("TEAM.CANCEL", job_of(stores)["job"]) == "OK"
    assert [code_of(reply) for reply in replies] == ["BUSY", "CONFLICT"] and asked.answer().startswith("CONFLICT ")
    do(muster, "TEAM.ADD x r2 NAME BIG")
    assert muster.ask("TEAM.MOVE", "big", "r2").startswith("CONFLICT ")


# ---- others meanwhile ----

class Probe(threading.Thread):
    """Asks Redis for one field every millisecond and notes the longest wait."""

    def __init__(self, stores):
        super().__init__()
        self.stores = stores
        self.waits = []
        self.ended = threading.Event()

    def run(self):
        key = self.stores.key("{org}:dept:top")
        while not self.ended.wait(0.001):
            begun = time.perf_counter()
            self.stores.redis.hget(key, "name")
            self.waits.append(time.perf_counter() - begun)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


class Watch(threading.Thread):
    """Reads through a daemon and straight from Redis until told to stop; each read is to be one of two answers, and
    never the first again once it was the second."""

    def __init__(self, reads):
        super().__init__()
        self.reads = reads  # name -> (function, answer before, answer after)
        self.after = dict.fromkeys(reads, False)
        self.wrong = []
        self.count = 0
        self.ended = threading.Event()

    def run(self):
        while not self.ended.is_set():
            for name, (ask, before, after) in self.reads.items():
                answer = ask()
                self.count += 1
                if answer == after:
                    self.after[name] = True
                elif answer != before or self.after[name]:
                    self.wrong.append((name, answer, before, after, self.after[name]))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


@pytest.mark.timeout(240)
def test_others_neither_wait_nor_see_halves(make_muster, stores):
    """A move and a cascade of 20,000 teams, and a lift of 5,000 children, with readers at the other daemon and at Redis
    itself: each sees all of it or nothing, and Redis answers a probe all the while."""
    pair = [make_muster(config={"server": {"log_level": "info"}}) for _ in range(2)]
    model = build(pair[0], {**parents(BIG), "wide": "r2", **{f"w{n}": "wide" for n in range(5000)}})
    script = [("TEAM.MOVE", "big", "r2"), ("TEAM.REMOVE", "wide", "LIFT"), ("TEAM.REMOVE", "big", "CASCADE")]
    for words in script:
        later = model.after(*words)
        reads = {}
        for team in ("top", "l1", "l2", "r1", "r2"):
            both = (len(model.descendants(team)), len(later.descendants(team)))
            reads["count of " + team] = (lambda t=team: pair[1].map("TEAM.COUNT", t)["descendants"], *both)
            reads["get of " + team] = (lambda t=team: counts(pair[1], t), *both)
            reads["set of " + team] = (lambda t=team: outside(stores, t), *both)
            reads["children of " + team] = (
                lambda t=team: len(teams.walk(pair[1], "TEAM.CHILDREN", t, "COUNT", 1000)) if t != "r2" else 0,
                *((0, 0) if team == "r2" else (len(model.children(team)), len(later.children(team)))))
        with Watch(reads) as watch:
            assert pair[0].ask(*words) == "OK"
        assert not watch.wrong and watch.count > 10, watch.wrong[:5]
        model = later
    check_redis(stores, model)
    check_clean(pair[1])


@pytest.mark.timeout(240)
def test_no_step_of_a_job_stops_redis(make_muster, stores):
    """A probe beside the jobs is answered soon, and no script takes long. The limits are wide, since machines that run
    tests have other things to do; the numbers are printed."""
    muster = make_muster(config={"server": {"log_level": "info"}})
    build(muster, {**parents(BIG), "wide": "r2", **{f"w{n}": "wide" for n in range(5000)}})
    for words in (("TEAM.MOVE", "big", "r2"), ("TEAM.REMOVE", "wide", "LIFT"), ("TEAM.REMOVE", "big", "CASCADE")):
        stores.redis.config_set("slowlog-log-slower-than", 5000)
        stores.redis.slowlog_reset()
        begun = time.monotonic()
        with Probe(stores) as probe:
            assert muster.ask(*words) == "OK"
        waits = sorted(probe.waits)
        steps = [entry["duration"] for entry in stores.redis.slowlog_get(1000) if b"EVAL" in entry["command"]]
        print(f"{' '.join(words)}: {time.monotonic() - begun:.2f} s, {len(waits)} probes, "
              f"99 % {waits[len(waits) * 99 // 100] * 1000:.1f} ms, longest {waits[-1] * 1000:.1f} ms; "
              f"{len(steps)} scripts over 5 ms, longest {max(steps, default=0) / 1000:.1f} ms")
        assert waits[len(waits) // 2] < 0.05 and waits[-1] < 1
