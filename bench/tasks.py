# SPDX-License-Identifier: MIT
"""Tasks: submit, claim and done through musterd, and the same client against beanstalkd; BullMQ on the same Redis;
memory of a task; the longest script; claims while a million ended tasks are archived."""
import contextlib
import json
import re
import socket
import subprocess
import time
from statistics import median

from report import milliseconds, spread
from scene import ROOT, BenchError, paused, wait_until
from stack import free_port

CONNECTIONS, BATCH = 50, 20
BULLMQ = ROOT / "bench" / "bullmq"
ROOM = {"task": {"max_tasks": 100_000_000, "max_bytes": "100g"}}  # nothing is archived while stores are stopped


@contextlib.contextmanager
def beanstalkd(scene, *options):
    """A server of its own; its log, when it keeps one, in the scratch folder."""
    port, folder = free_port(), scene.dir / "beanstalkd"
    folder.mkdir(exist_ok=True)
    words = ["beanstalkd", "-l", "127.0.0.1", "-p", str(port), "-z", "65536",
             *(str(folder) if word == "LOG" else word for word in options)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until(lambda: reachable(port), 10, "beanstalkd listens")
            yield port
        finally:
            server.terminate()
    subprocess.run(["rm", "-rf", str(folder)], check=False)


def reachable(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def run(scene, protocol, phase, port, tasks, size, connections=CONNECTIONS, batch=BATCH):
    result = scene.program("queue", "--protocol", protocol, "--phase", phase, "--port", port, "--tasks", tasks,
                           "--bytes", size, "--connections", connections, "--batch", batch)
    if result["done"] < tasks:
        raise BenchError(f"{protocol}: {result['done']} of {tasks} done: {result['trouble']}")
    return result["done"] / result["seconds"]


def phases(scene, protocol, port, tasks, size):
    """Submits, works off, and does both at once; tasks a second of each."""
    return {phase: run(scene, protocol, phase, port, tasks, size) for phase in ("submit", "work", "cycle")}


SIDES = {
    "everysec": {"beanstalkd, memory": (), "beanstalkd, log flushed every 50 ms": ("-b", "LOG", "-f", "50")},
    "always": {"beanstalkd, log flushed at every write": ("-b", "LOG", "-f", "0")},
}


def compare(scene, report, fsync, size, tasks, repeats):
    sides = {"musterd": [], **{name: [] for name in SIDES[fsync]}}
    scene.fresh(config=ROOM)
    scene.redis.config_set("appendfsync", fsync)
    scene.redis.config_set("slowlog-log-slower-than", 5000)
    scene.redis.slowlog_reset()
    with paused(scene, "mariadb", "rabbitmq"):
        for _ in range(repeats):
            sides["musterd"].append(phases(scene, "muster", scene.port(), tasks, size))
            for name, options in SIDES[fsync].items():
                with beanstalkd(scene, *options) as port:
                    sides[name].append(phases(scene, "beanstalkd", port, tasks, size))
    slow = [entry for entry in scene.redis.slowlog_get(1000) if "EVALSHA" in str(entry["command"])]
    scene.redis.config_set("appendfsync", "everysec")
    ours = {phase: median(r[phase] for r in sides["musterd"]) for phase in ("submit", "work", "cycle")}
    for name, runs in sides.items():
        report.row(f"{fsync}, {size} bytes: {name}", *(spread([r[phase] for r in runs]) for phase in ours),
                   f"{ours['cycle'] / median(r['cycle'] for r in runs):.2f}")
    report.data[f"{fsync} {size}"] = sides
    first = next(iter(SIDES[fsync]))
    return ours["cycle"] / median(r["cycle"] for r in sides[first]), len(slow)


def bullmq(scene, jobs, size):
    """(submits, jobs worked off) a second."""
    if not (BULLMQ / "node_modules").is_dir():
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=BULLMQ,
                       stdin=subprocess.DEVNULL, check=True)
    done = subprocess.run(["node", str(BULLMQ / "cycle.mjs"), str(scene.stack["redis"].port()), str(jobs), str(size),
                           str(CONNECTIONS)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"BullMQ: {done.stderr[:800]}")
    result = json.loads(done.stdout)
    return jobs / result["submit_seconds"], jobs / result["work_seconds"]


def compare_bullmq(scene, report, tasks, jobs, repeats):
    ours, theirs = [], []
    scene.fresh(config=ROOM)
    with paused(scene, "mariadb", "rabbitmq"):
        for _ in range(repeats):
            ours.append(phases(scene, "muster", scene.port(), tasks, 100))
            theirs.append(bullmq(scene, jobs, 100))
    submit, work = (median(r[phase] for r in ours) for phase in ("submit", "work"))
    their_submit, their_work = (median(r[i] for r in theirs) for i in (0, 1))
    report.row("everysec, 100 bytes: BullMQ", spread([t[0] for t in theirs]), spread([t[1] for t in theirs]), "",
               f"{work / their_work:.1f} of its processed jobs")
    report.target("ten times BullMQ on the same Redis", f"{submit / their_submit:.1f} times its submits, "
                  f"{work / their_work:.1f} times its processed jobs", work >= 10 * their_work)
    report.data["bullmq"] = {"musterd": ours, "bullmq": theirs}


def throughput(scene, report, quick):
    tasks, repeats = (20_000, 1) if quick else (100_000, 3)
    report.table("side", "submits/s: median (least to most)", "claims and dones/s", "full cycles/s", "musterd / this")
    slow = 0
    for fsync in SIDES:
        for size in (100, 1000):
            share = tasks if fsync == "everysec" else tasks // 20
            ratio, over = compare(scene, report, fsync, size, share, repeats)
            slow += over
            if size == 100:
                report.target(f"as many full cycles as beanstalkd ({fsync})", f"{ratio:.2f} of them", ratio >= 1)
    report.target("no script over 5 ms", f"{slow} of them (SLOWLOG of all runs above)", slow == 0)
    compare_bullmq(scene, report, tasks // 2, tasks // 10, repeats)
    report.note(f"{CONNECTIONS} connections; each sends {BATCH} commands in one write and reads all answers before "
                f"it sends more: SUBMITs, then a CLAIM with COUNT {BATCH} and the DONEs of what it gave; puts, then "
                f"{BATCH} reserves and deletes. A full cycle does all three at once. MariaDB and RabbitMQ are stopped "
                "(SIGSTOP): ended tasks stay in the journal.")


def memory(scene, report, quick):
    tasks = 50_000 if quick else 1_000_000
    scene.fresh(config=ROOM)
    before = scene.redis.info("memory")["used_memory"]
    run(scene, "muster", "submit", scene.port(), tasks, 100)
    each = (scene.redis.info("memory")["used_memory"] - before) / tasks
    report.table("what", "bytes")
    report.row("Redis, a task that waits, 100 bytes of payload among them", f"{each:.0f}")
    report.target("under 500 bytes of Redis for a task with 100 bytes of payload", f"{each:.0f} at {tasks:,} tasks",
                  each < 500)


def claim_p99(scene, tasks):
    result = scene.program("queue", "--protocol", "muster", "--phase", "cycle", "--port", scene.port(), "--tasks",
                           tasks, "--connections", 10, "--batch", 1, "--queue", "probe")
    return result["claim_p99_us"]


def archive(scene, report, quick):
    tasks, probe = (20_000, 2_000) if quick else (1_000_000, 20_000)
    scene.fresh(config=ROOM)
    scene.drain()
    quiet = median(claim_p99(scene, probe) for _ in range(3))
    with paused(scene, "mariadb", "rabbitmq"):
        run(scene, "muster", "cycle", scene.port(), tasks, 100)
    begun = time.monotonic()
    busy = []
    while not scene.is_drained() and len(busy) < 20:
        busy.append(claim_p99(scene, probe))
    scene.drain()
    seconds = time.monotonic() - begun
    rows = scene.sql("SELECT COUNT(*) FROM task")[0][0]
    if rows < tasks:
        raise BenchError(f"MySQL has {rows} of {tasks} tasks")
    ratio = median(busy) / quiet if busy else 0
    report.table("what", "here")
    report.row("p99 of a claim, 10 connections, nothing else going on", milliseconds(quiet))
    report.row(f"the same while {tasks:,} ended tasks go to MySQL", milliseconds(median(busy)) if busy else "too short")
    report.row("ended tasks archived a second, meanwhile", f"{tasks / seconds:,.0f}")
    report.target("p99 of a claim within 2 times while a million ended tasks are archived", f"{ratio:.1f} times",
                  ratio <= 2)


def flat(scene, report, quick):
    """Memory over many tasks, with everything running."""
    tasks, step = (40_000, 10_000) if quick else (2_000_000, 100_000)
    scene.fresh(config=ROOM)
    used, begun = [], time.monotonic()
    for _ in range(tasks // step):
        run(scene, "muster", "cycle", scene.port(), step, 100)
        scene.drain()
        settle(scene)
        used.append(scene.redis.info("memory")["used_memory"] / 2 ** 20)
    report.table("what", "here")
    report.row(f"Redis after {step:,} tasks", f"{used[0]:.1f} MiB")
    report.row(f"after {tasks:,}", f"{used[-1]:.1f} MiB")
    report.row("tasks a second, with all their history written", f"{tasks / (time.monotonic() - begun):,.0f}")
    report.target("memory flat over two million tasks", f"{used[-1] - used[0]:+.1f} MiB since the first {step:,}, at "
                  f"most {max(used) - used[0]:+.1f}", used[-1] - used[0] <= 2)
    report.data["used_mib"] = used


def settle(scene):
    """Until the sweep has let go what may go."""
    def done():
        pattern = re.compile(r"status:bench:success$")
        keys = [k for k in scene.redis.scan_iter(match="*status:bench:success", count=10000) if pattern.search(k)]
        return all(scene.redis.zcard(key) <= 1000 for key in keys)
    wait_until(done, 600, "ended tasks leave Redis")


def tasks(scene, report, quick):
    throughput(scene, report.part("Cycles, beside beanstalkd and BullMQ"), quick)
    memory(scene, report.part("Memory"), quick)
    archive(scene, report.part("Claims while ended tasks are archived"), quick)
    flat(scene, report.part("Memory over many tasks"), quick)
