# SPDX-License-Identifier: MIT
"""The tree as the protocol, Redis and MySQL show it, compared with treemodel.Model."""
import select

import redis

from harness.attendance import as_map, text
from harness.muster import text_of
from harness.raw import encode
from harness.treemodel import Refused
from harness.wait import wait_until

# Keys of {org} that are not the tree: journals, leases, and the notes of jobs that have ended.
HELPERS = ("journal", "cursor", "owner", "last", "next_id", "next_job", "gone")
ENDED = ("done", "cancelled", "failed")


def code_of(reply):
    """The code of an error reply (of Raw or as text), None for any other."""
    word = str(reply).split(" ", 1)[0]
    return word if isinstance(reply, (str, Exception)) and word.isupper() and word not in ("OK", "PONG") else None


def maps(reply):
    return [as_map(item) for item in reply]


def cursor_of(words):
    return words[words.index("CURSOR") + 1] if "CURSOR" in words else ""


def count_of(words):
    return int(words[words.index("COUNT") + 1]) if "COUNT" in words else 100


# ---- what one state answers, all of it at one instant ----

def page(model, words, reply, items):
    """Whether a page shows just what a walk has found, [(id, depth)], between its cursor and the next one. A cursor is
    a path from below the walk's top: it says how far the walk has got, perhaps past what is not listed."""
    top = "" if words[1] == "-" else words[1]
    prefix = len(model.path(top)) if top else 0

    def place(path):
        return [part.encode() for part in path]
    after, until = place(parts(cursor_of(words))), place(parts(reply[0]))
    expected = []
    for node, depth in items:
        at = place(model.path(node)[prefix:])
        if at > after and (not until or at <= until):
            expected.append(model.detail(node, depth) if "DETAIL" in words else node)
    shown = maps(reply[1]) if "DETAIL" in words else reply[1]
    return shown == expected and len(shown) <= count_of(words) and (not until or until > after)


def parts(cursor):
    return [part for part in cursor.split(":") if part]


def listing(model, words, reply):
    top = "" if words[1] == "-" else words[1]
    depth = 1 if words[0] == "TEAM.CHILDREN" else int(words[words.index("DEPTH") + 1]) if "DEPTH" in words else None
    items = model.walk(top, "ALL" in words, depth)
    return code_of(reply) is None and page(model, words, reply, items)


def get(model, words):
    return {field: value for field, value in model.get(words[1]).items() if field != "members"}


def count(model, words):
    counts = model.count(words[1])
    return {field: counts[field] for field in ("descendants", "listed")}


def is_below(model, words):
    model.need(words[1], words[2])
    return int(model.is_below(words[1], words[2]))


def path(model, words):
    model.need(words[1])
    return ":".join(model.path(words[1]))


def exists(model, words):
    model.need(words[1])


def is_employee(model, words):
    return model.of(words[1]) and None


def both_exist(model, words):
    model.need(words[1])
    return model.of(words[2]) and None


EXACT = {"TEAM.GET": get, "TEAM.PATH": path,
         "TEAM.ANCESTORS": lambda model, words: model.ancestor_maps(words[1]), "TEAM.COUNT": count,
         "TEAM.ISBELOW": is_below, "TEAM.MEMBERS": exists, "TEAM.ISMEMBER": both_exist, "TEAM.OF": is_employee,
         "TEAM.SUPERVISORS": is_employee}
LISTS = ("TEAM.CHILDREN", "TEAM.DESCENDANTS")


def shape(words, reply):
    """The part of a reply that shows one instant, in the model's form."""
    verb = words[0]
    if verb == "TEAM.ANCESTORS":
        return maps(reply)
    if verb in ("TEAM.GET", "TEAM.COUNT"):
        return {field: value for field, value in as_map(reply).items()
                if field not in ("members", "employees", "employees_subtree")}
    return reply if verb in ("TEAM.PATH", "TEAM.ISBELOW") else None


def is_answer(model, words, reply):
    """Whether the state answers so, but for what people_fit() judges."""
    code = code_of(reply)
    try:
        if words[0] in LISTS:
            return listing(model, words, reply)
        expected = EXACT[words[0]](model, words)
    except Refused as refused:
        return code in refused.codes
    return code is None and shape(words, reply) == expected


# ---- people: their answers are put together from several partitions, one after the other ----

# `touched` are those who were on their way meanwhile: they may have been met at both places or at none.

def between(sets, touched, found):
    """Everybody who was there throughout is there, once, and nobody who never was."""
    settled = [e for e in found if e not in touched]
    return set.intersection(*sets) <= {*found, *touched} and set(found) <= set.union(*sets) and \
        len(settled) == len(set(settled))


def in_range(sets, touched, number):
    always, ever = set.intersection(*sets), set.union(*sets)
    return len(always - touched) <= number <= len(ever) + len(ever & touched)


def people_fit(models, touched, words, reply):
    """Whether what a reply says of people fits the states that were possible meanwhile; `touched` as in between()."""
    judge = PEOPLE.get(words[0])
    if judge is None or code_of(reply):
        return True
    able = []
    for model in models:
        try:
            EXACT[words[0]](model, words)
            able.append(model)
        except Refused:
            pass
    return bool(able) and judge(able, touched, words, reply)


def direct(models, team):
    return [model.people({team}) for model in models]


def within(models, team):
    return [model.people(model.subtree(team)) for model in models]


def get_fits(models, touched, words, reply):
    return in_range(direct(models, words[1]), touched, as_map(reply)["members"])


def count_fits(models, touched, words, reply):
    counts = as_map(reply)
    return in_range(direct(models, words[1]), touched, counts["employees"]) and \
        in_range(within(models, words[1]), touched, counts["employees_subtree"])


def members_fit(models, touched, words, reply):
    sets = within(models, words[1]) if "SUBTREE" in words else direct(models, words[1])
    return between(sets, touched, reply[1])


def is_member_fits(models, touched, words, reply):
    sets = within(models, words[1]) if "SUBTREE" in words else direct(models, words[1])
    possible = {int(words[2] in people) for people in sets}
    return reply in ({0, 1} if words[2] in touched else possible)


def of_fits(models, _, words, reply):
    """Each team as some state has it; those that all states have are there."""
    entries = [{**entry, "line": maps(entry["line"])} for entry in maps(reply)]
    possible = [model.of(words[1]) for model in models]
    listed = [entry["team"] for entry in entries]
    return len(set(listed)) == len(listed) and set.intersection(*map(set, possible)) <= set(listed) and \
        all(any(teams.get(entry["team"]) == entry for teams in possible) for entry in entries)


def supervisors_fit(models, _, words, reply):
    entries = maps(reply)
    possible = [model.supervisors(words[1]) for model in models]
    nearness = [entry["distance"] for entry in entries]
    listed = [entry["employee"] for entry in entries]
    return nearness == sorted(nearness) and len(set(listed)) == len(listed) and \
        set.intersection(*map(set, possible)) <= set(listed) and \
        all(any(is_supervisor(found, entry) for found in possible) for entry in entries)


def is_supervisor(found, entry):
    distance, teams = found.get(entry["employee"], (None, ()))
    return distance == entry["distance"] and entry["team"] in teams


PEOPLE = {"TEAM.GET": get_fits, "TEAM.COUNT": count_fits, "TEAM.MEMBERS": members_fit,
          "TEAM.ISMEMBER": is_member_fits, "TEAM.OF": of_fits, "TEAM.SUPERVISORS": supervisors_fit}


# ---- Redis and MySQL ----

READERS = {"hash": "hgetall", "set": "smembers", "string": "get"}


def contents(stores, names):
    """Keys with what is in them, many at a time: name -> hash, set or string."""
    found = {}
    for first in range(0, len(names), 1000):
        part = names[first:first + 1000]
        with stores.redis.pipeline(transaction=False) as pipe:
            for name in part:
                pipe.type(stores.key(name))
            kinds = pipe.execute()
            known = [(name, READERS[kind]) for name, kind in zip(part, kinds) if kind in READERS]
            for name, reader in known:
                getattr(pipe, reader)(stores.key(name))
            found.update(zip((name for name, _ in known), pipe.execute()))
    return found


def org_keys(stores):
    """Everything of {org} but helpers and ended jobs: name -> content."""
    found = {name.removeprefix("{org}:"): value for name, value in contents(stores, stores.keys("{org}:*")).items()}
    return {name: value for name, value in found.items()
            if name not in HELPERS and not (name.startswith("job:") and value.get("phase") in ENDED)}


# What a reader who knows only Redis takes for the descendants of a team: its set without what a pending move or removal
# has put there early or not yet taken out. Nothing when there is no such team, and 'wrong' when `sub` says otherwise.
OUTSIDE = """
local base, x = KEYS[1], ARGV[1]
local up, first = x, true
while up ~= '' do
  local f = redis.call('HMGET', base .. 'dept:' .. up, 'parent_id', 'state')
  if not f[1] or f[2] == 'removed' or (first and f[2] == 'lifted') then return false end
  up, first = f[1], false
end
local found = {}
for _, id in ipairs(redis.call('SMEMBERS', base .. 'children:' .. x)) do found[id] = true end
for _, n in ipairs(redis.call('SMEMBERS', base .. 'jobs')) do
  local f = redis.call('HMGET', base .. 'job:' .. n, 'op', 'id', 'phase', 'old', 'new')
  local list = ':' .. ((f[3] == 'finish' and f[4] or f[5]) or '') .. ':'
  if f[1] and f[1] ~= 'lift' and string.find(list, ':' .. x .. ':', 1, true) then
    found[f[2]] = nil
    for _, id in ipairs(redis.call('SMEMBERS', base .. 'children:' .. f[2])) do found[id] = nil end
  end
end
local ids = {}
for id in pairs(found) do ids[#ids + 1] = id end
if tonumber(redis.call('HGET', base .. 'dept:' .. x, 'sub') or 0) ~= #ids then ids[#ids + 1] = 'wrong' end
return ids
"""


def seen_in_redis(stores, team):
    """The descendants of a team for who knows only Redis and the rule of pending jobs; None when there is none."""
    ids = stores.redis.eval(OUTSIDE, 1, stores.key("{org}:"), team)
    return None if ids is None else set(ids)


def homes(stores):
    return {name.removeprefix("dir:"): dept for name, dept in contents(stores, stores.keys("dir:*")).items()}


def differences(found, expected):
    return [f"{key}: {found.get(key)} instead of {expected.get(key)}"
            for key in sorted(found.keys() | expected.keys()) if found.get(key) != expected.get(key)]


def check_redis(stores, model):
    """Key by key: the tree, homes, and who is where."""
    wrong = differences(org_keys(stores), model.redis())
    wrong += differences(homes(stores), model.home)
    there = {}
    for name in stores.keys("*:emps:*"):
        for employee in stores.redis.hkeys(stores.key(name)):
            there.setdefault(employee, []).append(name.rpartition(":")[2])
    wrong += differences(there, {employee: [dept] for employee, dept in model.home.items()})
    assert not wrong, "\n".join([f"{len(wrong)} keys differ", *wrong[:20]])


def check_mysql(stores, model):
    """The rows of department and team_member, once the ledger has read all."""
    rows = {text(row["id"]): row for row in stores.sql("SELECT * FROM department")}
    live = {dept: (text(row["parent"]), text(row["path"]), text(row["manager"]), text(row["state"]), row["name"],
                   row["version"]) for dept, row in rows.items() if text(row["state"]) != "removed"}
    wrong = differences(live, model.departments())
    joined = {}
    for row in stores.sql("SELECT team, employee FROM team_member"):
        joined.setdefault(text(row["employee"]), set()).add(text(row["team"]))
    wrong += differences(joined, {employee: set(teams) for employee, teams in model.joined.items()})
    assert not wrong, "\n".join([f"{len(wrong)} rows differ", *wrong[:20]])


# ---- asking ----

def walk(muster, *words):
    """All items of a command with a cursor."""
    items, cursor = [], None
    while cursor != "":
        reply = muster.ask(*words, *(("CURSOR", cursor) if cursor else ()))
        assert isinstance(reply, list), (words, cursor, reply)
        cursor, part = reply
        items += part
    return items


def ids_below(muster, team, *words):
    return walk(muster, "TEAM.DESCENDANTS", team, *words)


def check_clean(muster):
    """TEAM.CHECK finds nothing."""
    reply = muster.map("TEAM.CHECK")
    assert not reply.get("findings"), reply


def tree_entries(stores):
    """Every record of the organisation's journal, oldest first."""
    return [fields["e"] for _, fields in stores.redis.xrange(stores.key("{org}:journal"))]


def entry_count(stores, name="{org}:journal"):
    """How many records a journal has ever had."""
    key = stores.key(name)
    return stores.redis.xinfo_stream(key)["entries-added"] if stores.redis.exists(key) else 0


def bytes_client(stores):
    """A second connection, which leaves values as they are."""
    if not hasattr(stores, "undecoded"):
        stores.undecoded = redis.Redis(port=stores.stack["redis"].port(), socket_timeout=10)
    return stores.undecoded


def everything(stores):
    """All that Muster keeps in Redis, byte for byte, but for what moves by itself (leases, cursors, trimming)."""
    found = {}
    for name in stores.keys():
        if name.endswith(":journal"):
            found[name] = entry_count(stores, name)
        elif not name.endswith((":owner", ":cursor")) and name != "daemons":
            found[name] = bytes_client(stores).dump(stores.key(name))
    return found


def changed(before, after):
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def plant(muster, *nodes):
    """Adds nodes, "id/parent" or "id" for a root."""
    for node in nodes:
        team, _, parent = node.partition("/")
        assert muster.ask("TEAM.ADD", team, parent or "-") == "OK", node


def do(muster, *commands):
    """Commands in one line each, all of which answer OK."""
    for command in commands:
        reply = muster.ask(*command.split())
        assert reply == "OK", f"{command}: {reply}"


def refused(muster, command, code):
    """A command (a line, or its words) that answers an error of this code, and changes nothing."""
    words = command.split() if isinstance(command, str) else command
    before = everything(muster.stores)
    reply = muster.ask(*words)
    assert code_of(reply) == code, f"{words}: {reply}"
    assert not changed(before, everything(muster.stores)), words


def same(muster, command, reply="OK"):
    """A command that changes nothing, since all is so already."""
    before = everything(muster.stores)
    assert muster.ask(*command.split()) == reply, command
    assert not changed(before, everything(muster.stores)), command


# ---- jobs ----

class Asked:
    """A command that takes its time, on a connection of its own."""

    def __init__(self, muster, *words):
        self.raw = muster.raw(60)
        self.raw.send(encode(*words))

    def answer(self):
        with self.raw:
            try:
                return text_of(self.raw.read())
            except (OSError, EOFError):
                return "UNAVAILABLE cut off"

    def wait_begun(self, stores):
        """The job that it has become, as job_of() gives it."""
        def begun():
            job = job_of(stores)
            if not job and select.select([self.raw.socket], [], [], 0)[0]:
                raise RuntimeError(f"answered without a job: {self.answer()}")
            return job
        return wait_until(begun, 10, "a job has begun")

    def wait_progress(self, stores, share):
        """Until the job has done this share of its work, or has ended; as wait_begun()."""
        def far():
            job = job_of(stores)
            return job is None or int(job["done"]) >= share * int(job["total"])
        job = self.wait_begun(stores)
        wait_until(far, 30, f"{share:.0%} of the job is done")
        return job


def job_of(stores):
    """The job under way as its hash in Redis, with its number; None when there is none."""
    for number in stores.redis.smembers(stores.key("{org}:jobs")):
        fields = stores.redis.hgetall(stores.key("{org}:job:" + number))
        if fields:
            return {**fields, "job": number}
    return None


def wait_no_job(stores, deadline=40):
    wait_until(lambda: not stores.redis.exists(stores.key("{org}:jobs")), deadline, "all jobs are done")
