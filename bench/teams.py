# SPDX-License-Identifier: MIT
"""A tree of a million teams: what it takes to make it and to keep it, to look at it and to change it, with MariaDB's
recursive queries on the same tree in the same run. And a company of ordinary size."""
import functools
import random
import time
from statistics import median

from changes import changes
from company import DEPTH
from forest import BASE, below, first_at, levels, path_of, some_nodes, write_deep, write_people, write_tree
from instruments import Counter, Probe, Slowlog, peak, run_import
from relational import ANCESTORS, COUNT, DESCENDANTS, GET, ISBELOW, PATH_DESCENDANTS, connected
from report import milliseconds
from scene import IDS_SEED, BenchError, department, employee, paused, wait_until

PEOPLE = 2_000
LARGE = 5_000  # subtrees whose listing is dominated by what is in them
BARE = "EMPLOYEE.GET"
ONE, MANY, PIPELINED = "1 connection", "50 connections", "pipelined"
POINT_READS = ("TEAM.GET", "TEAM.PATH", "TEAM.ANCESTORS", "TEAM.ISBELOW")
DRAIN_SECONDS = 900  # what the stores have not had by then need not be waited for


def check_reply(reply):
    if isinstance(reply, str) and reply != "OK":
        raise BenchError(reply)
    return reply


def timed(work):
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def mapped(reply):
    """A map as it comes in RESP2."""
    check_reply(reply)
    return {key.decode(): value for key, value in zip(reply[::2], reply[1::2])}


def used_memory(scene):
    return scene.redis.info("memory")["used_memory"]


def drain(scene):
    """How long, as text, until RabbitMQ and MariaDB have had everything."""
    begun = time.monotonic()
    try:
        scene.drain(DRAIN_SECONDS)
    except BenchError:
        return f"over {DRAIN_SECONDS}"
    return f"{time.monotonic() - begun:.1f}"


def journal_size(scene):
    """Bytes of what is only on its way."""
    return scene.redis.memory_usage(BASE + "journal", samples=0) or 0


def await_departments(scene, count):
    wait_until(lambda: scene.info()["Organisation"]["departments"] == str(count), 300, f"{count} departments are known")


# ---- import, memory, start ----

def bytes_by_kind(scene, nodes):
    """Bytes a node of each kind of key: up to 200 nodes of each level are asked for, and stand for all of it."""
    kinds, found = ("dept", "direct_children", "children", "names"), {}
    for kind in kinds:
        total = 0
        for first, last in levels(nodes):
            sample = random.Random(IDS_SEED).sample(range(first, last + 1), min(200, last - first + 1))
            pipe = scene.redis.pipeline(transaction=False)
            for node in sample:
                pipe.memory_usage(f"{BASE}{kind}:{node}", samples=0)
            total += sum(size or 0 for size in pipe.execute()) / len(sample) * (last - first + 1)
        found[kind] = total / nodes
    return found


def restart(scene, count):
    """Seconds from starting musterd on the tree until it knows all of it."""
    scene.close_raw()
    scene.stack.stop(["musterd"])
    begun = time.monotonic()
    scene.stack.start(["musterd"])
    scene.await_commands()
    await_departments(scene, count)
    return time.monotonic() - begun


def build(scene, report, nodes):
    scene.fresh()
    scene.drain()
    before, idle = used_memory(scene), scene.resident()
    path = scene.dir / "teams.csv"
    write_tree(path, nodes)
    cpu = scene.cpu()
    seconds, client = run_import(scene, path)
    cpu = {name: used - cpu[name] for name, used in scene.cpu().items()}
    grown = peak(scene)
    drained = drain(scene)
    again, _ = run_import(scene, path)
    size = (used_memory(scene) - journal_size(scene) - before) / nodes
    kinds = bytes_by_kind(scene, nodes)
    started = restart(scene, nodes + 1)
    daemon = scene.resident()

    part = report.part(f"Making {nodes:,} teams, and what they take")
    part.table("what", "number")
    part.row("`muster import` of the file, seconds", f"{seconds:.1f}")
    part.row("teams a second", nodes / seconds)
    for name in ("redis", "musterd", "clients", "mariadb", "rabbitmq"):
        part.row(f"processor time meanwhile, us a team: {name}", f"{cpu[name] * 1e6 / nodes:.1f}")
    part.row("seconds more until RabbitMQ and MariaDB have had it all", drained)
    part.row("the same import once more, seconds (nothing to create)", f"{again:.1f}")
    part.row("most memory, MiB: the client", f"{client:.0f}")
    part.row("most memory, MiB: musterd", f"{grown:.0f}")
    part.row("Redis, bytes a team (`used_memory` after less before and journal)", size)
    for kind, share in kinds.items():
        part.row(f"Redis, bytes a team: {kind}:<id>", share)
    part.row("Redis, bytes a team: tables of keys, roots, what else there is", size - sum(kinds.values()))
    part.row("musterd, MiB after a start (fresh and empty)", f"{daemon:.0f} ({idle:.1f})")
    part.row("musterd, bytes a team", (daemon - idle) * 2**20 / nodes)
    part.row("seconds from starting musterd until it knows them all", f"{started:.1f}")
    part.row("of these, loading the tree", f"{int(scene.info()['Organisation']['tree_load_ms']) / 1000:.1f}")
    part.target("import of a million teams under two minutes", f"{seconds:.0f} s for {nodes:,}",
                seconds * 1e6 / nodes < 120)
    part.target("at most 600 bytes of Redis a team", f"{size:.0f}", size <= 600)
    part.note("Import beside everything else: relay and ledger tell RabbitMQ and MariaDB of every team on the same two "
              "cores. By kind: `MEMORY USAGE … SAMPLES 0` of up to 200 nodes of each level.")
    part.data.update(import_seconds=seconds, drain=drained, cpu=cpu, bytes=size, kinds=kinds, daemon=daemon, idle=idle,
                     start=started, again=again, client=client, peak=grown)


def size_of(scene, count, write, *words):
    """Bytes of Redis a team, of a tree imported into an empty one."""
    scene.fresh()
    path = scene.dir / "shape.csv"
    write(path, *words)
    before = used_memory(scene)
    run_import(scene, path)
    return (used_memory(scene) - journal_size(scene) - before) / count


def shapes(scene, report, quick):
    """What depth costs, and the kind of ids."""
    count = 2_000 if quick else 20_000
    part = report.part("Memory by depth and by ids")
    part.table("teams", "ids", "Redis, bytes a team", "bytes more a level")
    for name, form in (("numbers", "{}"), ("`t1`, `t2` …", "t{}"), ("36 digits", "{:036}")):
        size = size_of(scene, count, write_tree, count, form)
        part.row(f"{count:,}, four below each", name, size, "-")
        part.data[name] = size
    for name, form in (("8 digits", "{:08}"), ("36 digits", "{:036}")):
        sizes = {depth: size_of(scene, count, write_deep, depth, count, form) for depth in (1, 10, 63)}
        for depth, size in sizes.items():
            part.row(f"{count:,} side by side, {depth} levels below the top", name, size,
                     "-" if depth == 1 else (size - sizes[1]) / (depth - 1))
        part.data["deep, " + name] = sizes
    part.note("Side by side, below the end of a chain: every team is in as many big sets, the worst case. Redis "
              "packs a set of at most 512 ids that are numbers without leading zeros into 2 to 8 bytes each.")


# ---- reads of one team ----

def cost(result):
    """Microseconds of a command: the median latency of one connection, the share of the time of many."""
    return result["latency_us"]["p50"] if result["connections"] == 1 else 1e6 / result["rate"]


def measure_reads(scene, nodes, requests, repeats):
    """{command: {way: [cost]}}, each command in turn, several times."""
    ids, people = scene.dir / "nodes", scene.dir / "people"
    ids.write_text("".join(id + "\n" for id in some_nodes(nodes, 100_000)))
    people.write_text("".join(employee(i) + "\n" for i in range(PEOPLE)))
    commands = {name: ("--ids", ids, name, "{}") for name in ("TEAM.GET", "TEAM.PATH", "TEAM.ANCESTORS", "TEAM.COUNT")}
    commands["TEAM.ISBELOW"] = ("--ids", ids, "TEAM.ISBELOW", "{}", "2")
    commands[BARE] = ("--ids", people, BARE, "{}")
    ways = {ONE: (1, 1, requests), MANY: (50, 1, 5 * requests), PIPELINED: (50, 16, 5 * requests)}
    found = {name: {way: [] for way in ways} for name in (BARE, *POINT_READS, "TEAM.COUNT")}
    for _ in range(repeats):
        for way, (connections, depth, count) in ways.items():
            for name, costs in found.items():
                costs[way].append(cost(scene.load("--requests", count, *commands[name], connections=connections,
                                                  depth=depth)))
    return found


def point_reads(scene, report, nodes, quick):
    """Beside the cheapest command that asks Redis for one field."""
    requests, repeats = (2_000, 2) if quick else (10_000, 3)
    path = scene.dir / "people.csv"
    write_people(path, PEOPLE, nodes)
    run_import(scene, path)
    with paused(scene, "mariadb", "rabbitmq"):
        found = measure_reads(scene, nodes, requests, repeats)
    times = {name: {way: median(own / bare for own, bare in zip(costs[way], found[BARE][way])) for way in costs}
             for name, costs in found.items()}
    part = report.part("Reading one team")
    part.table("command", "us, 1 connection", f"times {BARE}", "a second, 50 connections", "times",
               "a second, pipelined", "times")
    for name, costs in found.items():
        part.row(name, f"{median(costs[ONE]):.0f}", f"{times[name][ONE]:.2f}", 1e6 / median(costs[MANY]),
                 f"{times[name][MANY]:.2f}", 1e6 / median(costs[PIPELINED]), f"{times[name][PIPELINED]:.2f}")
    worst = {way: max((times[name][way], name) for name in POINT_READS) for way in (ONE, MANY, PIPELINED)}
    part.target("point reads within 1.5 times a bare GET through the daemon",
                "; ".join(f"{way}: {ratio:.2f} ({name})" for way, (ratio, name) in worst.items()),
                max(worst[ONE], worst[MANY])[0] <= 1.5)
    part.note(f"Ids of any level at random, so most are of the two lowest. {repeats} runs of each in turn, medians; "
              "`times` is the median of the runs' own ratios. One connection: the median latency. 50 connections have "
              f"one command on its way on each, pipelined 16. {BARE} is one HGET of Redis through the daemon. "
              "TEAM.COUNT also counts the people of the whole subtree; no target is about that. RabbitMQ and MariaDB "
              "are stopped (SIGSTOP).")
    part.data.update(costs=found)


# ---- lists ----

def depths_of(nodes):
    return range(len(levels(nodes)) - 5, 0, -1)


def read_in_turn(sides, repeats, count):
    """{side: milliseconds}, medians. Every side must find as many."""
    seconds = {side: [] for side in sides}
    for _ in range(repeats):
        for side, work in sides.items():
            begun = time.monotonic()
            found = work()
            seconds[side].append(time.monotonic() - begun)
            if found != count:
                raise BenchError(f"{side} says {found} descendants, not {count}")
    return {side: median(values) * 1000 for side, values in seconds.items()}


def lists(scene, report, nodes, database):
    """Descendants of subtrees of many sizes, each side reading ids and counting them."""
    part = report.part("Descendants, all of a subtree")
    part.table("descendants", "musterd, ms", "us each", "SSCAN, ms", "us each", "SMEMBERS, ms", "us each",
               "musterd / SSCAN", "MariaDB, ms", "MariaDB by path, ms", "MariaDB / musterd")
    ratios = {}
    with Counter(scene.port()) as daemon, Counter(scene.stack["redis"].port()) as redis:
        for depth in depths_of(nodes):
            node = first_at(depth)
            count, key, path = below(node, nodes), f"{BASE}children:{node}", path_of(node)
            ms = read_in_turn({
                "musterd": functools.partial(daemon.pages, "TEAM.DESCENDANTS", node),
                "SSCAN": functools.partial(redis.scan, key),
                "SMEMBERS": functools.partial(redis.members, key),
                "MariaDB": functools.partial(database.rows, DESCENDANTS.format(id=node)),
                "MariaDB by path": functools.partial(database.rows, PATH_DESCENDANTS.format(path=path)),
            }, 3 if count > 50_000 else 9, count)
            ratios[count] = ms["musterd"] / ms["SSCAN"]
            cells = [text for side in ("musterd", "SSCAN", "SMEMBERS")
                     for text in (f"{ms[side]:.1f}", f"{ms[side] * 1000 / count:.2f}")]
            part.row(f"{count:,}", *cells, f"{ratios[count]:.2f}", f"{ms['MariaDB']:.1f}",
                     f"{ms['MariaDB by path']:.1f}", f"{ms['MariaDB'] / ms['musterd']:.1f}")
            part.data[count] = ms
    part.target(f"descendants at Redis's own speed an element, in subtrees of {LARGE:,} and more",
                "; ".join(f"{n:,}: {r:.2f} times SSCAN" for n, r in ratios.items()),
                all(r <= 1.1 for n, r in ratios.items() if n >= LARGE))
    part.note("Small subtrees are dominated by what makes the list exact: a script that climbs from the team and says "
              "how far the journal is. Pages of 1,000 ids each, of musterd and of SSCAN; SMEMBERS is one reply, during "
              "which nobody else is served. musterd's are in depth-first order, the others in none. The reader counts "
              "lines; that of MariaDB is its own client (`--quick`). MariaDB's pages are in its buffer pool.")


# ---- the same questions to both ----

def side_by_side(scene, report, nodes, database, quick):
    ids = some_nodes(nodes, 500 if quick else 5_000)
    big, small = first_at(1), first_at(max(1, len(levels(nodes)) - 5))
    part = report.part("The same questions to musterd and to MariaDB")
    part.table("question", "musterd, us", "MariaDB, us", "MariaDB / musterd")

    def both(what, musterd_us, mariadb_us):
        part.row(what, musterd_us, mariadb_us, f"{mariadb_us / musterd_us:.1f}")
        part.data[what] = [musterd_us, mariadb_us]

    file = scene.dir / "nodes"
    file.write_text("".join(id + "\n" for id in ids))
    for what, words, query in (("one team", ["TEAM.GET", "{}"], GET),
                               ("its ancestors with their names", ["TEAM.ANCESTORS", "{}"], ANCESTORS),
                               ("is it below another", ["TEAM.ISBELOW", "{}", "2"], ISBELOW)):
        both(what, 1e6 / scene.load("--ids", file, *words, connections=1)["rate"], database.each(query, ids) * 1e6)
    for node in (small, big):
        count = below(node, nodes)
        got = int(mapped(scene.ask("TEAM.GET", node))["descendants"])
        if got != count:
            raise BenchError(f"TEAM.GET {node}: {got} descendants, not {count}")
        both(f"how many descendants, {count:,} of them",
             median(timed(lambda: scene.ask("TEAM.GET", node)) for _ in range(50)) * 1e6,
             median(database.run(COUNT.format(id=node))[1] for _ in range(5)) * 1e6)
    part.note("One connection, one question at a time, random ids. musterd's client is the load generator, MariaDB's "
              "`mariadb-slap`; the counts are asked through a plain socket and the `mariadb` client.")


def check(scene, report, nodes):
    """A pass over every key, beside a probe; nothing is to be found, although all of the above went on before."""
    with Slowlog(scene.redis) as slow, Probe(scene) as probe:
        begun = time.monotonic()
        while (found := mapped(scene.ask("TEAM.CHECK")))["state"] != b"done":
            continue  # it answers after ten minutes in any case; asking again joins it
        seconds = time.monotonic() - begun
    part = report.part("TEAM.CHECK")
    part.table("what", "number")
    part.row("seconds", f"{seconds:.1f}")
    for key in ("nodes", "keys", "findings"):
        part.row(key, int(found[key]))
    part.row("keys a second", int(found["keys"]) / seconds)
    part.row("longest script", milliseconds(slow.longest_us))
    part.row("scripts over 5 ms", str(slow.over))
    part.row("HGET probe beside it, p99 and most", f"{milliseconds(probe.result['p99'])}, "
             f"{milliseconds(probe.result['max'])}")
    part.target("a check of a million teams under two minutes", f"{seconds:.0f} s for {int(found['nodes']):,}",
                seconds * 1e6 / nodes < 120)
    part.target("no findings after all that went before", f"{int(found['findings'])}", int(found["findings"]) == 0)
    part.data.update(seconds=seconds, longest_us=slow.longest_us, over=slow.over, probe=probe.result)


def teams(scene, report, quick):
    nodes = scene.nodes
    build(scene, report, nodes)
    point_reads(scene, report, nodes, quick)
    with paused(scene, "rabbitmq"), connected(scene) as database:
        seconds = database.load(nodes)
        lists(scene, report, nodes, database)
        side_by_side(scene, report, nodes, database, quick)
        changes(scene, report, nodes, database, quick)
        check(scene, report, nodes)
    shapes(scene, report, quick)
    report.note(f"{nodes:,} teams, four below each, {len(levels(nodes))} levels, ids 1 to {nodes:,} level by level; "
                f"every answer is compared with what the numbering says. MariaDB's table of parents (key, parent "
                f"indexed, name) and its table of paths took {seconds:.0f} s to load.")


# ---- a company ----

def write_commands(path, lines):
    path.write_text("".join(line + "\n" for line in lines))
    return path


def company(scene, report, quick):
    people, departments = (10_000, 100) if quick else (100_000, 500)
    report.table("what", "a second", "us at 1 connection", "times EMPLOYEE.GET")
    import_seconds = scene.fresh(people, departments)
    file = scene.dir / "commands"
    managers = [f"TEAM.MANAGER {department(i)} {employee(i)}" for i in range(departments)]
    joins = [f"TEAM.JOIN {department((i * 7 + 1) % departments)} {employee(i)}" for i in range(people)]
    for lines in (managers, joins):
        rate = scene.load("--commands", write_commands(file, lines), depth=DEPTH)["rate"]
    report.row("TEAM.JOIN, 50 connections, 8 on their way on each", rate, "-", "-")
    scene.drain()
    ids = scene.dir / "ids"
    with paused(scene, "mariadb", "rabbitmq"):
        rows = {words[0]: [scene.load("--ids", ids, "--requests", people // 4, *words, connections=n)["rate"]
                           for n in (50, 1)]
                for words in (["EMPLOYEE.GET", "{}"], ["TEAM.OF", "{}"], ["TEAM.SUPERVISORS", "{}"],
                              ["TEAM.ISMEMBER", department(1), "{}", "SUBTREE"])}
        bare = rows["EMPLOYEE.GET"][1]
        for name, (many, one) in rows.items():
            report.row(f"{name}, 50 connections", many, f"{1e6 / one:.0f}", f"{bare / one:.2f}")
        with Counter(scene.port()) as daemon:
            begun = time.monotonic()
            members = daemon.pages("TEAM.MEMBERS", department(0), "SUBTREE")
            report.row("TEAM.MEMBERS of all, ids", members / (time.monotonic() - begun), "-", "-")
        if members != people:
            raise BenchError(f"TEAM.MEMBERS lists {members} people, not {people}")
        counted = timed(lambda: check_reply(scene.ask("TEAM.COUNT", department(0))))
        moves = [timed(lambda p=p: check_reply(scene.ask("TEAM.MOVE", department(1), department(p))))
                 for p in (2, 0) * 50]
        checked = timed(lambda: check_reply(scene.ask("TEAM.CHECK")))
    size = int(mapped(scene.ask("TEAM.GET", department(1)))["descendants"]) + 1
    report.row(f"TEAM.MOVE of a branch of {size} departments", 1 / median(moves), f"{median(moves) * 1e6:.0f}", "-")
    report.row("TEAM.COUNT of the whole company", 1 / counted, f"{counted * 1e6:.0f}", "-")
    report.note(f"{people:,} people at home in {departments} departments, eight below each, imported in "
                f"{import_seconds:.1f} s; each has joined one more, every department has a manager. RabbitMQ and "
                f"MariaDB are stopped for the reads and moves. TEAM.CHECK of all of it took {checked:.2f} s.")
    report.data.update(import_seconds=import_seconds, join=rate, rows=rows, moves=moves, check=checked, count=counted)
