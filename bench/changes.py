# SPDX-License-Identifier: MIT
"""Big changes of the tree, in steps as musterd makes them and as one script; beside each a probe, and how long scripts
took; and the same in MariaDB."""
import time
from statistics import median, mode

import whole
from forest import FANOUT, below, first_at, levels, parent_of, path_of, write_wide
from instruments import Probe, Slowlog, run_import
from report import milliseconds
from scene import BenchError, paused


class Change:
    """One kind of change, by musterd and by one script in turn, and in MariaDB. Times in seconds."""

    def __init__(self, scene, name, size):
        self.scene, self.name, self.size = scene, name, size
        self.steps, self.script, self.mariadb, self.by_path = [], [], [], []
        self.longest_us, self.over, self.probes, self.stalls_us = 0, 0, [], []

    def in_steps(self, *words):
        with Slowlog(self.scene.redis) as slow, Probe(self.scene) as probe:
            begun = time.monotonic()
            reply = self.scene.ask(*words)
            self.steps.append(time.monotonic() - begun)
        if reply != "OK":
            raise BenchError(f"{' '.join(map(str, words))}: {reply}")
        self.longest_us, self.over = max(self.longest_us, slow.longest_us), self.over + slow.over
        self.probes.append(probe.result)

    def as_script(self, change, *words):
        with Probe(self.scene) as probe:
            self.script.append(whole.run(self.scene, change, *words))
        self.stalls_us.append(probe.result["max"])

    def ratio(self):
        return median(self.steps) / median(self.script)

    def worst_probe(self):
        return max(probe["max"] for probe in self.probes)

    def add_to(self, part):
        part.row(self.name, f"{self.size:,}", f"{median(self.steps) * 1000:.0f}", f"{median(self.script) * 1000:.0f}",
                 f"{self.ratio():.2f}", milliseconds(self.longest_us), str(self.over),
                 milliseconds(median(probe["p99"] for probe in self.probes)), milliseconds(self.worst_probe()),
                 milliseconds(max(self.stalls_us)), f"{median(self.mariadb) * 1000:.1f}",
                 f"{median(self.by_path) * 1000:.0f}" if self.by_path else "-")
        part.data[self.name] = {key: value for key, value in vars(self).items() if key not in ("scene", "name")}
        return self


def moved(scene, database, name, node, there, size, repeats):
    """There and back, musterd and script in turn, also in direction."""
    change, here = Change(scene, name, size), parent_of(node)
    ways = [lambda parent: change.in_steps("TEAM.MOVE", node, parent),
            lambda parent: change.as_script("move", node, parent)]
    with paused(scene, "mariadb"):
        for i in range(repeats):
            for way, parent in zip(ways if i % 2 == 0 else reversed(ways), (there, here)):
                way(parent)
    for old, new in ((here, there), (there, here)) * repeats:
        change.mariadb.append(database.move(node, new))
        change.by_path.append(database.move_path(f"{path_of(old)}:{node}", f"{path_of(new)}:{node}"))
    return change


def ended(scene, name, size, ids, word, script):
    """Removals or lifts, every second one by musterd."""
    change = Change(scene, name, size)
    with paused(scene, "mariadb"):
        for i, id in enumerate(ids):
            if i % 2 == 0:
                change.in_steps("TEAM.REMOVE", id, word)
            else:
                change.as_script(script, id)
    return change


def removed(scene, database, nodes, count):
    """Subtrees that are alike, as most of that level are."""
    sizes = {n: below(n, nodes) + 1 for n in range(first_at(2) + 1, first_at(3))}
    size = mode(sizes.values())
    alike = [n for n in sizes if sizes[n] == size][:count]
    change = ended(scene, "removal with all below it", size, alike, "CASCADE", "remove")
    change.mariadb = [database.remove(n) for n in alike]
    return change


def lifted_wide(scene, database, nodes, count):
    """Teams with very many children, made for it."""
    width, parent = max(1_000, nodes // 50), first_at(1)
    ids = [f"w{i}" for i in range(count)]
    path = scene.dir / "wide.csv"
    write_wide(path, ids, width, parent)
    run_import(scene, path)
    change = ended(scene, f"lift of a team with {width:,} children", 1, ids, "LIFT", "lift")
    for id in range(nodes + 1, nodes + 1 + count * (width + 1), width + 1):
        database.add_wide(id, parent, width)
        change.mariadb.append(database.lift(id, parent))
    return change


def lifted_tall(scene, database, nodes, count):
    """Teams with few children and much below them."""
    ids = range(first_at(3) - count, first_at(3))
    change = ended(scene, f"lift of a team with 4 children, {below(ids[-1], nodes):,} below", 1, ids, "LIFT", "lift")
    change.mariadb = [database.lift(n, parent_of(n)) for n in ids]
    return change


def deep_below(node, nodes):
    """Some levels down from a node of the first level."""
    for _ in range(min(4, len(levels(nodes)) - 5)):
        node = FANOUT * (node - 1) + 2
    return node


def calm_probe(scene):
    with Probe(scene) as probe:
        time.sleep(3)
    return probe.result


def changes(scene, report, nodes, database, quick):
    repeats = 2 if quick else 5
    node, count = first_at(2), 2 * min(repeats, 3)
    size, near = below(node, nodes) + 1, parent_of(node) + 1
    far = deep_below(near, nodes)
    part = report.part("Big changes: in steps, and as one script")
    part.table("change", "teams", "musterd, ms", "one script, ms", "musterd / script", "longest script", "over 5 ms",
               "probe p99", "probe max", "probe max, one script", "MariaDB, ms", "MariaDB by path, ms")
    calm = calm_probe(scene)
    near_move = moved(scene, database, "move to a neighbour", node, near, size, repeats).add_to(part)
    far_move = moved(scene, database, f"move to level {path_of(far).count(':') + 2}", node, far, size, repeats)
    all_kinds = [near_move, far_move.add_to(part), removed(scene, database, nodes, count).add_to(part),
                 lifted_wide(scene, database, nodes, count).add_to(part),
                 lifted_tall(scene, database, nodes, count).add_to(part)]
    over, probe = sum(c.over for c in all_kinds), max(c.worst_probe() for c in all_kinds)
    part.target("no script of a big change over 5 ms",
                f"longest {milliseconds(max(c.longest_us for c in all_kinds))}, {over} over it", over == 0)
    part.target("an HGET beside a big change never over 10 ms", milliseconds(probe), probe < 10_000)
    part.target(f"a move of {size:,} teams at most 1.3 times one script doing it all",
                f"{near_move.ratio():.2f}, to a deep place {far_move.ratio():.2f}", near_move.ratio() <= 1.3)
    part.note(f"{repeats} moves there and {repeats} back each way, musterd and one script in turn; {count} removals "
              "and lifts; medians, and the worst of all probes and scripts. The probe: HGET straight on Redis every "
              "millisecond, its latency counted from the moment at which it was due; with nothing else going on p99 "
              f"{milliseconds(calm['p99'])} and at most {milliseconds(calm['max'])}. Longest script: Redis's SLOWLOG. "
              "RabbitMQ is stopped (SIGSTOP), and MariaDB while the others work.")
    part.note("MariaDB moves a team by changing one row, since the parent is all it stores: what is derived is derived "
              "again by every question. By path: the paths of the subtree rewritten in one statement.")
    part.data["calm"] = calm
