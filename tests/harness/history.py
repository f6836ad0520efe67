# SPDX-License-Identifier: MIT
"""Whether what several clients saw at the same time can be true: a judge of linearizability.

A change takes effect as a whole at some instant between its being sent and its being answered, a read shows one
instant of its own. Nobody sees these instants, so the judge keeps every *world* that is possible: a model, and which of
the changes under way have had their effect in it. Sending a change adds the worlds in which it has come about; its
answer leaves those that agree with it. A change that was never answered (its daemon was killed) stays under way until
settle() is told what became of it. A read is right when a world that was possible between its being sent and its being
answered gives just its answer; from then on no world may be older than all those that do, since time does not go back.

With few changes under way there are few worlds, and nothing is assumed of the order in which things happen."""
from harness.treemodel import Refused


class Mismatch(AssertionError):
    """No possible world gives this answer."""


class Change:
    """`words`: the command; `alone`: no other change was under way at any time meanwhile; `moved`: people
    whose teams it alters, `carried`: those whose teams it takes elsewhere, in any world."""

    def __init__(self, words):
        self.words = words
        self.alone = True
        self.moved = set()
        self.carried = set()


class Read:
    """`seen`: every world that was possible since it was sent; `beside`: every change that was under way since then."""

    def __init__(self, words, seen, beside):
        self.words = words
        self.seen = seen
        self.beside = beside

    def moved(self):
        """People whose teams may have changed meanwhile."""
        return set().union(*(change.moved for change in self.beside))

    def carried(self):
        """People who may have been on their way with their teams."""
        return set().union(*(change.carried for change in self.beside))


class World:
    """`done`: the changes under way that have had their effect, each with its outcome: "OK", or the error codes that
    may be answered."""

    def __init__(self, model, done):
        self.model = model
        self.done = done
        self.key = (model.key(), frozenset(done.items()))

    def after(self, change):
        try:
            model, outcome = self.model.after(*change.words), "OK"
        except Refused as refused:
            model, outcome = self.model, refused.codes
            if "LIFT" in change.words and any(c.words == change.words and self.done[c] == "OK" for c in self.done):
                outcome |= {"OK"}  # it may have joined the job of the other
        if model is not self.model:
            change.moved |= people_moved(self.model, model)
            if change.words[0] in ("TEAM.MOVE", "TEAM.REMOVE"):
                change.carried |= self.model.people(self.model.subtree(change.words[1]))
        return World(model, {**self.done, change: outcome})

    def without(self, change):
        return World(self.model, {c: outcome for c, outcome in self.done.items() if c is not change})

    def answers(self, change, code):
        outcome = self.done.get(change, ())
        return code == outcome if isinstance(outcome, str) else code in outcome


def people_moved(before, after):
    if before.home is after.home and before.joined is after.joined:
        return set()
    both = before.home.keys() | after.home.keys()
    return {e for e in both if before.home.get(e) != after.home.get(e) or before.joined.get(e) != after.joined.get(e)}


class History:
    def __init__(self, model):
        world = World(model, {})
        self.worlds = {world.key: world}
        self.under_way = []
        self.reads = []

    @property
    def model(self):
        """Of the worlds the one that is furthest: what is most likely true now."""
        return max(self.worlds.values(), key=lambda world: len(world.done)).model

    def keep(self, worlds, what):
        worlds = {world.key: world for world in worlds}
        if not worlds:
            possible = [{" ".join(c.words): o for c, o in world.done.items()} for world in self.worlds.values()]
            raise Mismatch(f"{what}; possible were {possible}")
        self.worlds = worlds

    def begin(self, words):
        """A change is sent."""
        change = Change(words)
        for other in self.under_way:
            change.alone = other.alone = False
        self.under_way.append(change)
        new = list(self.worlds.values())
        while new:
            world = new.pop()
            for other in self.under_way:
                if other in world.done:
                    continue
                later = world.after(other)
                if later.key not in self.worlds:
                    self.worlds[later.key] = later
                    new.append(later)
        for read in self.reads:
            read.seen.update(self.worlds)
            read.beside.append(change)
        return change

    def answered(self, change, code):
        """It was answered with "OK" or an error code."""
        self.keep([world.without(change) for world in self.worlds.values() if world.answers(change, code)],
                  f"{' '.join(change.words)}: {code}")
        self.forget(change, lambda world: change not in world.done or world.answers(change, code))

    def did_nothing(self, change):
        """It was answered that nothing has been done."""
        self.keep([world for world in self.worlds.values() if change not in world.done],
                  f"{' '.join(change.words)} has had an effect and says it had none")
        self.forget(change, lambda world: change not in world.done)

    def forget(self, change, is_possible):
        self.under_way.remove(change)
        for read in self.reads:
            read.seen = {key: world for key, world in read.seen.items() if is_possible(world)}

    def look(self, words):
        """A read is sent."""
        read = Read(words, dict(self.worlds), list(self.under_way))
        self.reads.append(read)
        return read

    def drop(self, read):
        """It will not be answered."""
        self.reads.remove(read)

    def shown(self, read, is_right):
        """It was answered; is_right(model) says whether a model gives that answer."""
        self.reads.remove(read)
        verdicts = {}
        for world in read.seen.values():
            if world.key[0] not in verdicts:
                verdicts[world.key[0]] = is_right(world.model)
        right = [world for world in read.seen.values() if verdicts[world.key[0]]]
        if not right:
            raise Mismatch(f"{' '.join(read.words)}: not so in any of {len(verdicts)} possible states")
        if len(right) == len(read.seen):
            return
        under_way = set(self.under_way)
        needed = {frozenset(change for change in world.done if change in under_way) for world in right}
        self.keep([world for world in self.worlds.values() if any(some <= world.done.keys() for some in needed)],
                  f"{' '.join(read.words)}: an older state than others have been shown")

    def models(self, read):
        """Every state that was possible while the read was under way."""
        return list({world.key[0]: world.model for world in read.seen.values()}.values())

    def settle(self, is_right):
        """Nothing is under way any more but what will never be answered; is_right(model) says what has become of it."""
        assert not self.reads
        lost, self.under_way = self.under_way, []
        self.keep([World(world.model, {}) for world in self.worlds.values() if is_right(world.model)],
                  f"what is stored is none of the possible states after {[' '.join(c.words) for c in lost]} were cut")
