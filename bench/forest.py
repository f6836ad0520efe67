# SPDX-License-Identifier: MIT
"""The tree of the team benchmarks: nodes 1 to n, breadth first, four children each; a million are eleven levels."""
import random

from scene import IDS_SEED, employee

FANOUT = 4
BASE = "muster:{org}:"


def parent_of(node):
    return (node - 2) // FANOUT + 1 if node > 1 else None


def first_at(depth):
    """The leftmost node so many levels below the root; its subtree is the fullest of its level."""
    return (FANOUT ** depth - 1) // (FANOUT - 1) + 1


def levels(nodes):
    """(first, last) of each level."""
    found, first = [], 1
    while first <= nodes:
        found.append((first, min(nodes, first + FANOUT ** len(found) - 1)))
        first = found[-1][1] + 1
    return found


def below(node, nodes):
    """How many descendants a node has."""
    count, first, last = -1, node, node
    while first <= nodes:
        count += min(last, nodes) - first + 1
        first, last = FANOUT * (first - 1) + 2, FANOUT * last + 1
    return count


def path_of(node):
    ids = []
    while node is not None:
        ids.append(str(node))
        node = parent_of(node)
    return ":".join(reversed(ids))


def write_parents(path, parents, form="{}"):
    """A file of teams 1, 2 …, whose parents these are (None: a root); `form` makes ids of the numbers."""
    with open(path, "w", encoding="utf-8") as f:
        f.write("kind,id,parent,name,manager\n")
        for i, parent in enumerate(parents, 1):
            f.write(f"department,{form.format(i)},{form.format(parent) if parent else ''},Team {i},\n")


def write_tree(path, nodes, form="{}"):
    write_parents(path, map(parent_of, range(1, nodes + 1)), form)


def write_deep(path, depth, count, form):
    """A chain of `depth` teams, and `count` more below its end."""
    write_parents(path, [min(i, depth) or None for i in range(depth + count)], form)


def write_people(path, count, nodes):
    """People in twenty teams of the lowest level."""
    with open(path, "w", encoding="utf-8") as f:
        f.write("kind,id,parent,name,manager\n")
        for i in range(count):
            f.write(f"employee,{employee(i)},{nodes - i % 20},Employee Number {i},\n")


def write_wide(path, ids, width, parent):
    """Nodes with as many children as `width`, all below `parent`."""
    with open(path, "w", encoding="utf-8") as f:
        f.write("kind,id,parent,name,manager\n")
        for id in ids:
            f.write(f"department,{id},{parent},Wide {id},\n")
            for i in range(width):
                f.write(f"department,{id}-{i},{id},Team {id}-{i},\n")


def some_nodes(nodes, count):
    return [str(n) for n in random.Random(IDS_SEED).choices(range(1, nodes + 1), k=count)]
