# SPDX-License-Identifier: MIT
"""Thousands of changes and reads of the tree by several clients through two daemons at once, with jobs in flight and
kills, every answer judged by a plain model.

How it works. One thread plays all clients: each has a connection of its own and at most one command under way, so that
the order of what is sent and answered is known, and commands of different clients truly overlap inside the daemons and
in Redis. Moves, lifts and removals run as jobs of many small steps (the limits are set low), so most changes have
others' reads and changes in their midst. `harness.history` keeps every state that is possible at a time and finds any
answer that none of them gives: an effect seen early, late, in halves, or seen and then not seen. At most CHANGES_MAX
changes are under way together, and two more while a daemon does not answer; more would only slow the judge.

What an answer means: OK and errors are judged by the model, which knows all rules. BUSY, and the answer of a job that
was cancelled, mean that nothing was done, and BUSY is right only when another change was under way. A daemon is stopped
now and then, so that its job stands still until it wakes up or the other has taken over. Or it is killed with all that
it has under way: such a change may have had its effect, may have it later (its job goes on at the other daemon), or
never; clients send it again, as they are told to. When the jobs are done, what Redis holds decides between the possible
states, exactly one of which must be left.

A reader of Redis alone takes part, who knows the rule of doc/teams.md by which pending jobs are left out.

Answers about people are put together from several partitions one after the other; whoever did not move meanwhile must
be in them, see people_fit().

Two profiles. "wide" has a tree of some size, where reads are long and changes far apart. In "hot" ids and names are
few, jobs take a write a step, and most changes are where others are under way: conflicts are the rule.

The same seed makes the same commands as long as the answers come in the same order. MUSTER_TREE_SEEDS and
MUSTER_TREE_STEPS set how many seeds of each profile and how many commands of each."""
import os
import random
import selectors
import time
import unicodedata
from collections import Counter, deque
from typing import NamedTuple

import pytest

from harness import teams
from harness.attendance import wait_quiet
from harness.history import History, Mismatch, Read
from harness.muster import text_of
from harness.raw import Raw, encode
from harness.treemodel import Model, Refused
from harness.wait import wait_until

SEEDS = os.environ.get("MUSTER_TREE_SEEDS")
STEPS = int(os.environ.get("MUSTER_TREE_STEPS", "4000"))
CLIENTS = 5  # of each daemon
CHANGES_MAX = 4
MAX_DEPTH = 12
PATIENCE = 30  # seconds that an answer may take
CONFIG = {"server": {"log_level": "info"}, "redis": {"lease": "1s"}, "day": {"close_auto": "no"}}


class Profile(NamedTuple):
    seeds: int  # unless MUSTER_TREE_SEEDS says otherwise
    size: int  # nodes, about
    chunk: int  # writes a step of a job
    near: float  # how often a command is about a place where a change is under way
    again: float  # how often a change is sent that is under way
    ids: list
    people: list
    names: list
    changes: dict  # kind -> weight


PROFILES = {
    "wide": Profile(
        seeds=4, size=250, chunk=10, near=0.25, again=0.02,
        ids=[str(n) for n in range(1, 400)] + [f"t-{n}" for n in range(100)], people=[f"e{n}" for n in range(60)],
        names=[f"Büro {n}" for n in range(60)] + [f"Straße {n}" for n in range(20)] +
        ["Ωmega", "naïve", "Plain", "a:b/c.d"],
        changes={"add": 26, "rename": 4, "manager": 5, "move": 18, "lift": 6, "cascade": 5, "remove": 5, "retire": 3,
                 "restore": 4, "join": 9, "leave": 6, "hire": 6, "transfer": 10, "dismiss": 2}),
    "hot": Profile(
        seeds=2, size=60, chunk=1, near=0.6, again=0.08,
        ids=[str(n) for n in range(1, 90)], people=[f"e{n}" for n in range(200)],
        names=[f"Büro {n}" for n in range(12)] + ["Ωmega", "naïve", "Plain", "a:b/c.d"],
        changes={"add": 26, "rename": 14, "manager": 5, "move": 18, "lift": 16, "cascade": 8, "remove": 5, "retire": 9,
                 "restore": 9, "join": 12, "leave": 12, "hire": 6, "transfer": 16, "dismiss": 2})}
PLAYS = [(name, seed) for name, profile in PROFILES.items() for seed in range(1, int(SEEDS or profile.seeds) + 1)]

READS = {"get": 8, "children": 7, "descendants": 12, "ancestors": 6, "count": 8, "path": 6, "isbelow": 6,
         "members": 10, "ismember": 6, "of": 6, "supervisors": 5}


class Script:
    """What clients say: the next command, made of what is there according to a model, sometimes of what is not."""

    def __init__(self, rng, profile):
        self.rng = rng
        self.profile = profile
        self.cursors = deque(maxlen=20)  # words of reads that have more to show
        self.under_way = []  # words of the changes that others have sent

    def pick(self, weights):
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def node(self, model):
        """Any node, sometimes one that is not there, and often one where something is happening."""
        near = [word for words in self.under_way for word in words if word in model.nodes]
        if near and self.rng.random() < self.profile.near:
            node = self.rng.choice(near)
            return self.rng.choice((node, *model.subtree(node), *model.ancestors(node)))
        return self.rng.choice(self.profile.ids) if self.rng.random() < 0.04 else self.rng.choice(list(model.nodes))

    def top(self, model):
        return "-" if self.rng.random() < 0.1 else self.node(model)

    def person(self, model=None):
        """Anybody, or mostly one who is there."""
        there = sorted(model.home) if model and self.rng.random() < 0.9 else []
        return self.rng.choice(there or self.profile.people)

    def name(self):
        name = self.rng.choice(self.profile.names)
        return self.rng.choice((name, name.upper(), unicodedata.normalize("NFD", name)))

    def version(self, model, node):
        """IF in some of the changes, mostly with the right version."""
        if self.rng.random() > 0.2:
            return ()
        version = model.nodes[node].version if node in model.nodes else 1
        return ("IF", version + (self.rng.random() < 0.2))

    def change(self, model):
        if self.under_way and self.rng.random() < self.profile.again:
            return self.rng.choice(self.under_way)
        kind = self.pick(self.profile.changes)
        if kind in ("cascade", "lift", "remove") and len(model.nodes) < self.rng.random() * self.profile.size:
            kind = "add"
        elif kind == "add" and len(model.nodes) > self.profile.size:
            kind = "move"
        node = self.node(model)
        words = getattr(self, kind)(model, node) + self.options(kind, model, node)
        return tuple(map(str, words))

    def options(self, kind, model, node):
        takes = ("rename", "manager", "move", "lift", "cascade", "remove", "retire", "restore")
        return self.version(model, node) if kind in takes else ()

    def add(self, model, node):
        new = self.rng.choice(self.profile.ids)
        if new in model.nodes and self.rng.random() < 0.8:
            new = self.rng.choice(self.profile.ids)
        words = ("TEAM.ADD", new, "-" if self.rng.random() < 0.05 else node)
        if self.rng.random() < 0.5:
            words += ("NAME", self.name())
        return words + (("MANAGER", self.person()) if self.rng.random() < 0.3 else ())

    def rename(self, _, node):
        return ("TEAM.RENAME", node, self.name())

    def manager(self, _, node):
        return ("TEAM.MANAGER", node, self.rng.choice(("-", self.person(), self.person())))

    def move(self, model, node):
        return ("TEAM.MOVE", node, self.top(model))

    def lift(self, _, node):
        return ("TEAM.REMOVE", node, "LIFT")

    def cascade(self, model, node):
        """Mostly of a small subtree, so that there is a tree left."""
        if node in model.nodes and len(model.subtree(node)) > 25 and self.rng.random() < 0.9:
            return ("TEAM.REMOVE", node)
        return ("TEAM.REMOVE", node, "CASCADE")

    def remove(self, model, node):
        leaves = [x for x in model.nodes if not model.children(x)]
        return ("TEAM.REMOVE", self.rng.choice((self.rng.choice(leaves), node)))

    def retire(self, _, node):
        return ("TEAM.REMOVE", node, "RETIRE")

    def restore(self, model, node):
        retired = [x for x in model.nodes if model.is_retired(x)]
        return ("TEAM.RESTORE", self.rng.choice(retired) if retired else node)

    def join(self, model, node):
        return ("TEAM.JOIN", node, self.person(model))

    def leave(self, model, node):
        employee = self.person(model)
        joined = sorted(model.joined.get(employee, ()))
        return ("TEAM.LEAVE", self.rng.choice(joined) if joined and self.rng.random() < 0.8 else node, employee)

    def hire(self, _, node):
        return ("EMPLOYEE.SET", self.person(), "DEPT", node)

    def transfer(self, model, node):
        return ("EMPLOYEE.MOVE", self.person(model), node)

    def dismiss(self, model, _):
        return ("EMPLOYEE.REMOVE", self.person(model))

    def read(self, model):
        if self.cursors and self.rng.random() < 0.1:
            return self.rng.choice(self.cursors)
        return tuple(map(str, self.question(model)))

    def question(self, model):
        kind, node = self.pick(READS), self.node(model)
        if kind in ("children", "descendants"):
            return self.listing(kind, model)
        if kind == "isbelow":
            return ("TEAM.ISBELOW", node, self.node(model))
        if kind == "members":
            return ("TEAM.MEMBERS", node, *(["SUBTREE"] if self.rng.random() < 0.5 else []), "COUNT", 1000)
        if kind == "ismember":
            return ("TEAM.ISMEMBER", node, self.person(model), *(["SUBTREE"] if self.rng.random() < 0.5 else []))
        return ("TEAM." + kind.upper(), self.person(model) if kind in ("of", "supervisors") else node)

    def listing(self, kind, model):
        words = ("TEAM." + kind.upper(), self.top(model))
        if kind == "descendants" and self.rng.random() < 0.3:
            words += ("DEPTH", self.rng.randint(1, 4))
        words += tuple(word for word in ("ALL", "DETAIL") if self.rng.random() < 0.4)
        return words + ("COUNT", self.rng.choice((3, 1000)))


class Client:
    """A connection to one daemon. `asked`: the Change, the Read or the words under way."""

    def __init__(self, muster, number):
        self.muster = muster
        self.name = f"{muster.dir.name}/{number}"
        self.raw = None
        self.asked = None
        self.words = ()
        self.since = 0

    def connect(self, selector):
        self.raw = Raw(self.muster.port, PATIENCE)
        selector.register(self.raw.socket, selectors.EVENT_READ, self)

    def cut(self, selector):
        if self.raw:
            selector.unregister(self.raw.socket)
            self.raw.close()
        self.raw = self.asked = None

    def send(self, words, asked):
        self.words, self.asked, self.since = words, asked, time.monotonic()
        self.raw.send(encode(*words))

    def reply(self):
        return text_of(self.raw.read())


class Play:
    """One seed of a profile: play() the steps, then finish()."""

    def __init__(self, daemons, stores, profile, seed):
        self.daemons = daemons
        self.stores = stores
        self.seed = seed
        self.rng = random.Random(seed)
        self.script = Script(self.rng, profile)
        self.history = History(Model(max_depth=MAX_DEPTH))
        self.selector = selectors.DefaultSelector()
        self.clients = [Client(daemon, n) for n in range(CLIENTS) for daemon in daemons]
        self.step = 0
        self.log = deque(maxlen=1000)
        self.again = deque()  # changes whose answer was cut off
        self.codes = Counter()
        self.down = None  # the daemon that does not answer
        self.killed = False  # it was killed, not stopped
        self.next_fault = self.rng.randint(150, 400)
        for client in self.clients:
            client.connect(self.selector)

    def play(self, steps):
        try:
            while self.step < steps:
                idle = [client for client in self.clients
                        if client.raw and not client.asked and client.muster is not self.down]
                if idle and self.rng.random() < 0.8:
                    self.speak(self.rng.choice(idle))
                    self.step += 1
                self.listen(0 if idle else 1)
                self.faults()
            if self.down:
                self.revive()
            self.settle()
        except Mismatch as mismatch:
            raise AssertionError(self.story(mismatch)) from mismatch

    # ---- what is said and heard ----

    def speak(self, client):
        model = self.history.model
        self.script.under_way = [change.words for change in self.history.under_way]
        if self.rng.random() < 0.05:
            self.look_into_redis(self.script.node(model))
        if self.rng.random() < 0.02:
            client.send(("TEAM.JOBS",), "jobs")
        elif len(self.history.under_way) < CHANGES_MAX + 2 * bool(self.down) and self.rng.random() < 0.6:
            words = self.again.popleft() if self.again else self.script.change(model)
            client.send(words, self.history.begin(words))
        else:
            words = self.script.read(model)
            client.send(words, self.history.look(words))

    def look_into_redis(self, team):
        """A reader who asks no daemon."""
        read = self.history.look(("children:" + team,))
        found = teams.seen_in_redis(self.stores, team)
        self.log.append((self.step, "redis", ("children", team), found))
        self.history.shown(read, lambda model: found == (set(model.descendants(team)) if team in model.nodes else None))

    def listen(self, timeout):
        for key, _ in self.selector.select(timeout):
            self.hear(key.data)
        for client in self.clients:
            late = client.asked and time.monotonic() - client.since > PATIENCE
            assert not late, self.story(f"{client.name} has no answer to {client.words} after {PATIENCE} s")

    def hear(self, client):
        reply, asked, words = client.reply(), client.asked, client.words
        client.asked = None
        self.log.append((self.step, client.name, words, reply))
        code = teams.code_of(reply) or "OK"
        self.codes[words[0], code] += 1
        if asked == "jobs":
            self.meddle(client, reply)
        elif asked == "cancel":
            assert code in ("OK", "CONFLICT", "UNKNOWN"), self.story(f"{words}: {reply}")
        elif isinstance(asked, Read):
            self.judge_read(asked, words, reply)
        else:
            self.judge_change(asked, words, code, reply)

    def meddle(self, client, reply):
        """Cancels a job."""
        jobs = teams.maps(reply)
        if jobs:
            client.send(("TEAM.CANCEL", self.rng.choice(jobs)["job"]), "cancel")

    def judge_read(self, read, words, reply):
        models = self.history.models(read)
        # Pages can't know where a team has gone that is behind the cursor now; a count begins anew.
        touched = read.moved() if words[0] == "TEAM.COUNT" else read.moved() | read.carried()
        if not teams.people_fit(models, touched, words, reply):
            raise Mismatch(f"{' '.join(words)}: {reply} fits none of {len(models)} possible states; on their way "
                           f"{touched}\n{possible(models, words)}")
        try:
            self.history.shown(read, lambda model: teams.is_answer(model, words, reply))
        except Mismatch as mismatch:
            raise Mismatch(f"{mismatch}\nanswer: {reply}\n{possible(models, words)}") from None
        if words[0] in teams.LISTS and isinstance(reply, list) and reply[0]:
            at = words.index("CURSOR") if "CURSOR" in words else len(words)
            self.script.cursors.append(words[:at] + ("CURSOR", reply[0]))

    def judge_change(self, change, words, code, reply):
        if code == "BUSY" or "cancelled" in str(reply):
            if code == "BUSY" and change.alone:
                raise Mismatch(f"{words}: {reply}, with no other change under way")
            self.history.did_nothing(change)
        elif code == "UNAVAILABLE":
            self.again.append(words)
        else:
            self.history.answered(change, code)

    # ---- faults ----

    def faults(self):
        """Kills a daemon now and then and starts it again, or stops it for a while, with jobs in their midst."""
        if self.step < self.next_fault:
            return
        if self.down:
            self.revive()
            self.next_fault = self.step + self.rng.randint(100, 500)
            return
        self.down = self.rng.choice(self.daemons)
        self.killed = self.rng.random() < 0.4
        if self.killed:
            self.kill(self.down)
        else:
            self.down.pause()
        self.log.append((self.step, self.down.dir.name, "killed" if self.killed else "stopped", ""))
        self.next_fault = self.step + self.rng.randint(1, 100 if self.killed else 300)

    def revive(self):
        daemon, self.down = self.down, None
        self.log.append((self.step, daemon.dir.name, "back", ""))
        if not self.killed:
            daemon.resume()
            return
        daemon.wait_answering()
        daemon.wait_ready()
        for client in self.clients:
            if not client.raw:
                client.connect(self.selector)
        self.settle()

    def kill(self, daemon):
        """It begins to start again at once, while the other serves."""
        daemon.kill9()
        for client in self.clients:
            if client.muster is not daemon:
                continue
            if client.asked in self.history.under_way:
                self.again.append(client.words)
                self.log.append((self.step, client.name, client.words, "cut off"))
            elif client.asked in self.history.reads:
                self.history.drop(client.asked)
            client.cut(self.selector)
        daemon.start(wait=False)

    def settle(self):
        """Lets everything end that is under way; what Redis holds then must be one of the possible states."""
        while any(client.asked for client in self.clients):
            self.listen(1)
        while self.again:
            words = self.again.popleft()
            client = self.rng.choice(self.clients)
            client.send(words, self.history.begin(words))
            while client.asked:
                self.listen(1)
        wait_until(lambda: not self.stores.redis.exists(self.stores.key("{org}:jobs")), PATIENCE, "all jobs are done")
        keys, homes = teams.org_keys(self.stores), teams.homes(self.stores)
        models = {world.key[0]: world.model for world in self.history.worlds.values()}
        try:
            self.history.settle(lambda model: keys == model.redis() and homes == model.home)
        except Mismatch as mismatch:
            wrong = min((teams.differences(keys, model.redis()) + teams.differences(homes, model.home)
                         for model in models.values()), key=len)
            raise Mismatch("\n".join([str(mismatch), "the nearest:", *map(short, wrong[:20])])) from None

    def finish(self):
        """Redis key by key, what TEAM.CHECK says, and what the ledger has written."""
        model = self.history.model
        assert len(self.history.worlds) == 1
        teams.check_redis(self.stores, model)
        for daemon in self.daemons:
            assert teams.ids_below(daemon, "-", "ALL", "COUNT", 1000) == model.descendants("")
            teams.check_clean(daemon)
        wait_quiet(self.daemons[0])
        teams.check_mysql(self.stores, model)
        teams.check_redis(self.stores, model)
        for client in self.clients:
            client.cut(self.selector)

    def story(self, what):
        """What was said of the nodes concerned before it went wrong."""
        known = {*self.script.profile.ids, *self.script.profile.people}
        ids = known & set(str(what).split("\n", 1)[0].replace(":", " ").split())
        said = [f"  {step} {who}: {words} -> {short(reply)}" for step, who, words, reply in self.log
                if isinstance(words, str) or ids & set(map(str, words))]
        under_way = [" ".join(map(str, change.words)) for change in self.history.under_way]
        return "\n".join([f"seed {self.seed}, step {self.step}: {what}", f"under way: {under_way}", *said[-40:]])


def short(reply):
    text = str(reply)
    return text if len(text) < 200 else text[:200] + "..."


def expected(model, words):
    try:
        plain = {"TEAM.CHILDREN": lambda: model.walk("" if words[1] == "-" else words[1], "ALL" in words, 1),
                 "TEAM.DESCENDANTS": lambda: model.walk("" if words[1] == "-" else words[1], "ALL" in words),
                 "TEAM.GET": lambda: model.get(words[1]), "TEAM.COUNT": lambda: model.count(words[1]),
                 "TEAM.MEMBERS": lambda: model.members(words[1], "SUBTREE" in words),
                 "TEAM.ISMEMBER": lambda: model.members(words[1], "SUBTREE" in words),
                 "TEAM.OF": lambda: model.of(words[1]), "TEAM.SUPERVISORS": lambda: model.supervisors(words[1])}
        answer = plain[words[0]]() if words[0] in plain else teams.EXACT[words[0]](model, words)
    except Refused as refused:
        answer = refused
    return f"  a possible state gives {short(answer)}"


def possible(models, words):
    return "\n".join(sorted({expected(model, words) for model in models}))


@pytest.mark.timeout(60 + STEPS // 10)
@pytest.mark.parametrize("name,seed", PLAYS)
def test_no_client_sees_what_can_not_be(make_muster, stores, name, seed):
    """Adds, renames, moves, lifts, removals, joins, hires and reads by ten clients of two daemons, with kills: every
    answer is one that a plain tree could have given at that time, and in the end Redis holds just that tree."""
    profile = PROFILES[name]
    team = {"max_depth": MAX_DEPTH, "inline_max": 8, "chunk": profile.chunk}
    play = Play([make_muster(config={**CONFIG, "team": team}) for _ in range(2)], stores, profile, seed)
    begun = time.monotonic()
    play.play(STEPS)
    play.finish()
    jobs = stores.redis.get(stores.key("{org}:next_job"))
    codes = Counter()
    for (_, code), n in play.codes.items():
        codes[code] += n
    cancelled = play.codes["TEAM.CANCEL", "OK"]
    print(f"\n{name} {seed}: {play.step} commands, {jobs} jobs, {cancelled} cancelled, "
          f"{time.monotonic() - begun:.1f} s, {len(play.history.model.nodes)} nodes, {dict(codes)}")
