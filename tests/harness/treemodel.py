# SPDX-License-Identifier: MIT
"""What an organisation is, as plainly as it can be said: a dict of nodes, a dict of homes, a dict of memberships.

A Model is never changed: after() gives the next one, so that a test can hold several at a time (before a change, after
it). Nothing is derived and kept; descendants, paths and counts are found anew for each question. That is slow, and
right by inspection, which is what a judge is for."""
import unicodedata
from typing import NamedTuple

UNASSIGNED = "0"
JOINED_MAX = 500


class Refused(Exception):
    """A change that is not to be done. `codes`: the errors that may be answered, where several reasons apply."""

    def __init__(self, codes):
        super().__init__(" ".join(sorted(codes)))
        self.codes = frozenset(codes)


class Node(NamedTuple):
    parent: str  # "" = a root
    name: str
    manager: str = ""
    state: str = "active"
    version: int = 1


def normal(name):
    return unicodedata.normalize("NFC", name)


def folded(name):
    """What two siblings may not share."""
    return normal(normal(name).casefold())


def in_order(ids):
    return sorted(ids, key=lambda text: text.encode())


def refuse_if(*reasons):
    """Each reason is (condition, code)."""
    codes = {code for condition, code in reasons if condition}
    if codes:
        raise Refused(codes)


class Model:
    """`nodes`: id -> Node; `home`: employee -> department; `joined`: employee -> frozenset of teams; `removed`: ids of
    nodes that are no more; `max_depth`: levels, a root is level 1."""

    def __init__(self, nodes=None, home=None, joined=None, removed=frozenset(), max_depth=64):
        self.nodes = {UNASSIGNED: Node("", "Unassigned")} if nodes is None else nodes
        self.home = home or {}
        self.joined = joined or {}
        self.removed = removed
        self.max_depth = max_depth
        self.below = None  # children by parent, found when first asked for

    def key(self):
        """Equal for models that are equal."""
        return hash((frozenset(self.nodes.items()), frozenset(self.home.items()), frozenset(self.joined.items())))

    def replace(self, nodes=None, home=None, joined=None, removed=None):
        return Model(self.nodes if nodes is None else nodes, self.home if home is None else home,
                     {e: teams for e, teams in (self.joined if joined is None else joined).items() if teams},
                     self.removed if removed is None else removed, self.max_depth)

    # ---- shape ----

    def children(self, parent):
        if self.below is None:
            self.below = {}
            for child in in_order(self.nodes):
                self.below.setdefault(self.nodes[child].parent, []).append(child)
        return self.below.get(parent, [])

    def subtree(self, top):
        """A node and all below it, depth first, children by id."""
        found = [top]
        for child in self.children(top):
            found += self.subtree(child)
        return found

    def descendants(self, top):
        return self.subtree(top)[1:] if top else [x for root in self.children("") for x in self.subtree(root)]

    def ancestors(self, node):
        """Root first, without the node itself."""
        up = []
        while node := self.nodes[node].parent:
            up.insert(0, node)
        return up

    def path(self, node):
        return self.ancestors(node) + [node]

    def level(self, node):
        return len(self.path(node)) if node else 0

    def height(self, top):
        """Levels of a subtree; 1 for a leaf."""
        return 1 + max((self.height(child) for child in self.children(top)), default=0)

    def is_below(self, node, ancestor):
        return ancestor in self.ancestors(node)

    def is_retired(self, node):
        return bool(node) and self.nodes[node].state == "retired"

    # ---- people ----

    def teams(self, employee):
        return ({self.home[employee]} if employee in self.home else set()) | self.joined.get(employee, frozenset())

    def people(self, teams):
        """Those who have their home in one of the teams or joined it."""
        teams = set(teams)
        return {e for e in self.home if self.teams(e) & teams}

    def residents(self, teams):
        return {e for e, home in self.home.items() if home in teams}

    # ---- changes ----

    def after(self, *words):
        """The model after a command. Raises Refused."""
        verb, *rest = words
        method = CHANGES.get(verb)
        assert method, words
        rest = [str(word) for word in rest]
        options = {}
        for word in ("NAME", "MANAGER", "IF", "DEPT"):
            if word in rest[1:]:
                at = rest.index(word, 1)
                options[word] = rest[at + 1]
                del rest[at:at + 2]
        return method(self, *rest, **options)

    def need(self, *ids):
        refuse_if(*((node not in self.nodes, "UNKNOWN") for node in ids if node))

    def need_version(self, node, wanted):
        refuse_if((wanted is not None and int(wanted) != self.nodes[node].version, "CONFLICT"))

    def is_taken(self, parent, name, but=()):
        return any(folded(self.nodes[x].name) == folded(name) for x in self.children(parent) if x not in but)

    def with_node(self, node, **fields):
        """A node with other fields and the next version; as it was when nothing differs."""
        old = self.nodes[node]
        new = old._replace(**fields)
        if new == old:
            return self
        return self.replace({**self.nodes, node: new._replace(version=old.version + 1)})

    def add(self, node, parent, NAME=None, MANAGER=""):
        parent = "" if parent == "-" else parent
        new = Node(parent, normal(NAME or node), "" if MANAGER == "-" else MANAGER)
        old = self.nodes.get(node)
        if old and old[:3] == new[:3]:
            return self
        refuse_if((old, "EXISTS"))
        self.need(parent)
        refuse_if((self.is_retired(parent), "CONFLICT"), (self.is_taken(parent, new.name), "CONFLICT"),
                  (self.level(parent) >= self.max_depth, "ERR"))
        return self.replace({**self.nodes, node: new}, removed=self.removed - {node})

    def rename(self, node, name, IF=None):
        self.need(node)
        name = normal(name)
        if self.nodes[node].name == name:
            return self
        self.need_version(node, IF)
        refuse_if((self.is_taken(self.nodes[node].parent, name, {node}), "CONFLICT"))
        return self.with_node(node, name=name)

    def set_manager(self, node, manager, IF=None):
        self.need(node)
        manager = "" if manager == "-" else manager
        if self.nodes[node].manager == manager:
            return self
        self.need_version(node, IF)
        return self.with_node(node, manager=manager)

    def move(self, node, parent, IF=None):
        parent = "" if parent == "-" else parent
        self.need(node, parent)
        if self.nodes[node].parent == parent:
            return self
        refuse_if((node in (parent and self.path(parent)), "CONFLICT"), (node == UNASSIGNED, "CONFLICT"))
        self.need_version(node, IF)
        refuse_if((self.is_retired(parent), "CONFLICT"),
                  (self.is_taken(parent, self.nodes[node].name), "CONFLICT"),
                  (self.level(parent) + self.height(node) > self.max_depth, "ERR"))
        return self.with_node(node, parent=parent)

    def remove(self, node, mode=None, IF=None):
        self.need(node)
        if mode == "RETIRE" and self.nodes[node].state == "retired":
            return self
        self.need_version(node, IF)
        refuse_if((node == UNASSIGNED, "CONFLICT"))
        if mode == "RETIRE":
            return self.with_node(node, state="retired")
        if mode == "LIFT":
            return self.lift(node)
        refuse_if((mode is None and (self.children(node) or self.residents({node})), "CONFLICT"))
        return self.without(self.subtree(node), UNASSIGNED)

    def lift(self, node):
        parent, children = self.nodes[node].parent, self.children(node)
        names = {folded(self.nodes[child].name) for child in children}
        refuse_if((any(folded(self.nodes[x].name) in names for x in self.children(parent) if x != node), "CONFLICT"))
        nodes = {x: y._replace(parent=parent) if y.parent == node else y for x, y in self.nodes.items()}
        open_above = [x for x in self.ancestors(node) if not self.is_retired(x)]
        return self.replace(nodes).without([node], open_above[-1] if open_above else UNASSIGNED)

    def without(self, gone, refuge):
        """Without some nodes: who had his home there has it in `refuge` now, who had joined has left."""
        gone = set(gone)
        joined = {e: teams - gone for e, teams in self.joined.items()}
        home = dict(self.home)
        for employee in self.residents(gone):
            home[employee] = refuge
            joined[employee] = joined.get(employee, frozenset()) - {refuge}
        return self.replace({x: y for x, y in self.nodes.items() if x not in gone}, home, joined, self.removed | gone)

    def restore(self, node, IF=None):
        self.need(node)
        if self.nodes[node].state == "active":
            return self
        self.need_version(node, IF)
        return self.with_node(node, state="active")

    def join(self, team, employee):
        self.need(team)
        refuse_if((employee not in self.home, "UNKNOWN"))
        mine = self.joined.get(employee, frozenset())
        if team in self.teams(employee):
            return self
        refuse_if((self.is_retired(team), "CONFLICT"), (len(mine) >= JOINED_MAX, "CONFLICT"))
        return self.replace(joined={**self.joined, employee: mine | {team}})

    def leave(self, team, employee):
        self.need(team)
        refuse_if((employee not in self.home, "UNKNOWN"))
        refuse_if((self.home[employee] == team, "CONFLICT"))
        return self.replace(joined={**self.joined, employee: self.joined.get(employee, frozenset()) - {team}})

    def set_employee(self, employee, DEPT=None):
        dept = DEPT or self.home.get(employee, UNASSIGNED)
        if self.home.get(employee) == dept:
            return self
        self.need(dept)
        refuse_if((self.is_retired(dept), "CONFLICT"))
        joined = {**self.joined, employee: self.joined.get(employee, frozenset()) - {dept}}
        return self.replace(home={**self.home, employee: dept}, joined=joined)

    def move_employee(self, employee, dept):
        refuse_if((employee not in self.home, "UNKNOWN"))
        return self.set_employee(employee, dept)

    def remove_employee(self, employee):
        refuse_if((employee not in self.home, "UNKNOWN"))
        return self.replace(home={e: x for e, x in self.home.items() if e != employee},
                            joined={e: x for e, x in self.joined.items() if e != employee})

    # ---- reads: what the protocol answers, maps as dicts ----

    def get(self, node):
        self.need(node)
        it = self.nodes[node]
        return {"id": node, "name": it.name, "parent": it.parent, "path": ":".join(self.path(node)),
                "manager": it.manager, "state": it.state, "descendants": len(self.descendants(node)),
                "members": len(self.people({node})), "version": it.version}

    def walk(self, top, everything=False, depth=None):
        """What lies below `top` ("" = the roots), depth first, as (id, depth)."""
        self.need(top)
        found = []
        for child in self.children(top):
            if everything or self.nodes[child].state == "active":
                found.append((child, 1))
                if depth is None or depth > 1:
                    found += [(x, d + 1) for x, d in self.walk(child, everything, depth and depth - 1)]
        return found

    def detail(self, node, depth):
        it = self.nodes[node]
        return {"id": node, "name": it.name, "parent": it.parent, "depth": depth, "manager": it.manager,
                "state": it.state, "descendants": len(self.descendants(node)), "listed": len(self.walk(node)),
                "version": it.version}

    def ancestor_maps(self, node):
        self.need(node)
        return [{"id": x, "name": self.nodes[x].name, "manager": self.nodes[x].manager, "state": self.nodes[x].state}
                for x in self.ancestors(node)]

    def count(self, node):
        self.need(node)
        subtree = self.subtree(node)
        return {"descendants": len(subtree) - 1, "listed": len(self.walk(node)), "employees": len(self.people({node})),
                "employees_subtree": len(self.people(subtree))}

    def members(self, team, subtree=False):
        self.need(team)
        return in_order(self.people(self.subtree(team) if subtree else {team}))

    def of(self, employee):
        """By team: all that he is in, with the line from the team up to the root."""
        refuse_if((employee not in self.home, "UNKNOWN"))
        return {team: {"team": team, "name": self.nodes[team].name, "home": int(self.home[employee] == team),
                       "path": ":".join(self.path(team)),
                       "line": [{"id": x, "name": self.nodes[x].name, "manager": self.nodes[x].manager}
                                for x in reversed(self.path(team))]}
                for team in self.teams(employee)}

    def supervisors(self, employee):
        """Manager -> (how near, the teams in which he is so near)."""
        refuse_if((employee not in self.home, "UNKNOWN"))
        found = {}
        for team in self.teams(employee):
            for distance, x in enumerate(reversed(self.path(team))):
                manager = self.nodes[x].manager
                if manager in ("", employee) or (manager in found and found[manager][0] < distance):
                    continue
                if manager not in found or found[manager][0] > distance:
                    found[manager] = (distance, set())
                found[manager][1].add(x)
        return found

    # ---- what Redis and MySQL are to hold ----

    def redis(self):
        """Every key of the tree but the journal and its helpers: name without `{org}:` -> content as redis-py reads
        it."""
        keys = {}
        for node, it in self.nodes.items():
            keys["dept:" + node] = self.stored(node)
            keys.setdefault("roots" if not it.parent else "direct_children:" + it.parent, set()).add(node)
            keys.setdefault("names:" + (it.parent or "-"), {})[folded(it.name)] = node
            for ancestor in self.ancestors(node):
                keys.setdefault("children:" + ancestor, set()).add(node)
        for employee, teams in self.joined.items():
            keys["user_teams:" + employee] = set(teams)
            for team in teams:
                keys.setdefault("members:" + team, set()).add(employee)
        return keys

    def stored(self, node):
        it = self.nodes[node]
        fields = {"name": it.name, "parent_id": it.parent}
        ascii_lower = "".join(c.lower() if c.isascii() else c for c in it.name)
        rare = {"manager": (it.manager, ""), "sub": (str(len(self.descendants(node))), "0"),
                "state": (it.state, "active"), "version": (str(it.version), "1"),
                "fold": (folded(it.name), ascii_lower)}
        return fields | {field: value for field, (value, usual) in rare.items() if value != usual}

    def departments(self):
        """The rows of department that are in force: id -> (parent, path, manager, state, name, version)."""
        return {node: (it.parent, ":".join(self.path(node)), it.manager, it.state, it.name, it.version)
                for node, it in self.nodes.items()}


CHANGES = {"TEAM.ADD": Model.add, "TEAM.RENAME": Model.rename, "TEAM.MANAGER": Model.set_manager,
           "TEAM.MOVE": Model.move, "TEAM.REMOVE": Model.remove, "TEAM.RESTORE": Model.restore,
           "TEAM.JOIN": Model.join, "TEAM.LEAVE": Model.leave, "EMPLOYEE.SET": Model.set_employee,
           "EMPLOYEE.MOVE": Model.move_employee, "EMPLOYEE.REMOVE": Model.remove_employee}
