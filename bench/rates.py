# SPDX-License-Identifier: MIT
"""How many check-ins a second, and how long one takes: against the script called directly, against the plain
recipe, and at many connections."""
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import median

from report import milliseconds, spread
from scene import BenchError, at, paused
from script_calls import ScriptCalls

CONNECTIONS, DEPTH = 50, 64


class Side:
    """One of the things that are compared: check-ins and seconds of each of its runs, and what it cost."""

    def __init__(self, name):
        self.name, self.rates, self.done, self.cost = name, [], 0, Counter()

    def run(self, scene, work, settle=lambda: None):
        before = scene.cpu()
        done, seconds = work()
        settle()
        after = scene.cpu()
        self.rates.append(done / seconds)
        self.done += done
        self.cost.update({name: after[name] - before[name] for name in after})

    def rate(self):
        return median(self.rates)

    def microseconds(self, name):
        """Processor time of one check-in, in a process."""
        return f"{self.cost[name] * 1e6 / self.done:.1f}"

    def json(self):
        return {"rates": [round(r) for r in self.rates], "checkins": self.done,
                "cpu_us": {name: round(s * 1e6 / self.done, 2) for name, s in self.cost.items()}}


def both_ways(scene, day, depth):
    """Everybody in, everybody out: two punches each. (check-ins, seconds)"""
    done, seconds = 0, 0.0
    for direction, moment in (("IN", "08:30"), ("OUT", "18:30")):
        scene.set_clock(at(day, moment))
        result = scene.check_in(direction, connections=CONNECTIONS, depth=depth)
        done, seconds = done + result["answered"], seconds + result["seconds"]
    return done, seconds


def script_calls_so_far(scene):
    return scene.redis.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]


def counted_both_ways(scene, day, batches):
    """Also notes how many check-ins a script call carried."""
    before = script_calls_so_far(scene)
    done, seconds = both_ways(scene, day, DEPTH)
    batches.append(done / (script_calls_so_far(scene) - before))
    return done, seconds


def stream_both_ways(scene, calls, day, batch):
    seconds = 0.0
    for direction, moment in (("I", "08:30"), ("O", "18:30")):
        path = scene.dir / "stream"
        calls.write_stream(day, direction, at(day, moment), batch, path)
        seconds += scene.load("--resp", path, port=scene.stack["redis"].port(), connections=CONNECTIONS)["seconds"]
        path.unlink()
    return 2 * scene.employees, seconds


def compare_script(scene, report, mode, repeats, settle):
    muster, bench, stream = Side("musterd"), Side("redis-benchmark"), Side("load, each person once")
    random_calls, exact_calls = ScriptCalls(scene, "random:"), ScriptCalls(scene, "exact:")
    random_calls.prepare()
    exact_calls.prepare()
    batches = []
    for day in range(1, repeats + 1):
        scene.begin_day(day)
        settle()
        muster.run(scene, lambda: counted_both_ways(scene, day, batches), settle)
        batch = max(1, round(median(batches)))
        random_calls.begin_day(day)
        exact_calls.begin_day(day)
        bench.run(scene, lambda: random_calls.by_redis_benchmark(day, 2 * scene.employees, batch, CONNECTIONS))
        stream.run(scene, lambda: stream_both_ways(scene, exact_calls, day, batch))
    for side in (muster, bench, stream):
        report.row(f"{mode}: {side.name}", spread(side.rates), f"{muster.rate() / side.rate():.2f}",
                   f"{max(muster.rates) / max(side.rates):.2f}",
                   *(side.microseconds(name) for name in ("musterd", "redis", "mariadb", "rabbitmq", "clients")))
    report.data[mode] = {"batch": batches, "sides": {s.name: s.json() for s in (muster, bench, stream)}}
    report.note(f"{mode}: the best runs, which others on the machine disturbed least, compare as "
                f"{max(muster.rates):,.0f} to {max(bench.rates):,.0f} of redis-benchmark, "
                f"{max(muster.rates) / max(bench.rates):.2f}.")
    return muster.rate() / bench.rate(), median(batches)


def checkin_vs_script(scene, report, quick):
    employees, repeats = (20_000, 2) if quick else (100_000, 5)
    report.table("side", "check-ins/s: median (least to most)", "musterd / this", "of the best runs",
                 "CPU us each: musterd", "redis", "mariadbd", "beam", "clients")
    scene.fresh(employees)
    with paused(scene, "mariadb", "rabbitmq"):
        alone, batch = compare_script(scene, report, "stores stopped", repeats, lambda: None)
    scene.fresh(employees)
    running, batch_running = compare_script(scene, report, "all running", repeats, scene.drain)
    report.target("at least 0.9 of redis-benchmark calling the same script with the same batch", f"{alone:.2f} with "
                  f"MariaDB and RabbitMQ stopped, {running:.2f} with all running", alone >= 0.9)
    report.note(f"{employees:,} employees in {scene.departments} departments, each in and out once a run; {repeats} "
                f"runs of each side in turn. musterd: {CONNECTIONS} connections, {DEPTH} commands on their way on "
                f"each. Its script calls carried {batch:.0f} check-ins on average with the stores stopped and "
                f"{batch_running:.0f} with all running (check-ins divided by the calls of `INFO commandstats`); "
                f"the other sides use that number.")
    report.note(f"redis-benchmark: {CONNECTIONS} connections, one call at a time on each. It varies people and "
                "instants (`__rand_int__`) inside a batch but not which departments a batch is of, so it runs once for "
                "each set of departments. The third side sends what musterd would send, each person once, from our "
                "own load generator.")
    report.note("Stopped means SIGSTOP: the journal only grows. In the other half relay and ledger work while "
                "check-ins come, on the same cores; the processor time of musterd's side then includes all that "
                "follows, until every notice is confirmed and all history is written. Direct calls cause no such work.")


# ---- the plain recipe ----

def plain_in_python(scene, processes, requests):
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("plain.py")), str(scene.stack["redis"].port()), str(processes),
         str(requests)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"plain.py: {done.stderr}")
    return requests, float(done.stdout)


def plain_in_c(scene, processes, requests):
    result = scene.program("plain", "--port", scene.stack["redis"].port(), "--connections", processes,
                           "--requests", requests, "--employees", scene.employees)
    return result["answered"], result["seconds"]


def compare_plain(scene, report, mode, repeats, settle):
    script, plain = Side("plain recipe, redis-py"), Side("plain recipe, C and hiredis")
    single, piped = Side("musterd, one at a time"), Side("musterd, pipelined")
    for day in range(1, repeats + 1):
        script.run(scene, lambda: plain_in_python(scene, CONNECTIONS, scene.employees // 10))
        plain.run(scene, lambda: plain_in_c(scene, CONNECTIONS, scene.employees))
        for side, number, depth in ((single, 2 * day - 1, 1), (piped, 2 * day, DEPTH)):
            scene.begin_day(number)
            settle()
            side.run(scene, lambda: both_ways(scene, number, depth), settle)
    for side in (script, plain, single, piped):
        report.row(f"{mode}: {side.name}", spread(side.rates), f"{piped.rate() / side.rate():.1f}",
                   f"{single.rate() / side.rate():.1f}")
    report.data[mode] = {side.name: side.json() for side in (script, plain, single, piped)}
    return {side.name: piped.rate() / side.rate() for side in (script, plain)}


def plain_recipe(scene, report, quick):
    employees, repeats = (20_000, 2) if quick else (100_000, 3)
    report.table("side", "check-ins/s: median (least to most)", "times as many through musterd, pipelined",
                 "with one command at a time")
    scene.fresh(employees)
    with paused(scene, "mariadb", "rabbitmq"):
        alone = compare_plain(scene, report, "stores stopped", repeats, lambda: None)
    scene.fresh(employees)
    running = compare_plain(scene, report, "all running", repeats, scene.drain)
    for name, times in alone.items():
        report.target(f"10 times the {name}", f"{times:.1f} times with MariaDB and RabbitMQ stopped, "
                      f"{running[name]:.1f} with all running, pipelined", times >= 10)
    report.note(f"The recipe: SET NX PX (lock), HGET, HSET, DEL (unlock), HSET, PUBLISH; each a round trip to the same "
                f"Redis, {CONNECTIONS} processes with one connection each. It keeps no journal and no history, sends "
                f"no notice that waits for its reader, recognises no repeats. musterd: {CONNECTIONS} connections with "
                f"{DEPTH} commands on their way on each, or one. Stopped and running as above.")


# ---- latency ----

def latency(scene, report, quick):
    count, repeats, seconds = (10_000, 1, 2) if quick else (100_000, 3, 15)
    connections = 500
    report.table("500 connections", "rate/s", "p50", "p99", "p99.9", "max")
    scene.fresh(20_000 if quick else 100_000)
    worst, results = {}, {}

    def measure(name, *words, depth=1):
        result = scene.load(*words, connections=connections, depth=depth)
        results.setdefault(name, []).append(result)

    ids = scene.dir / "ids"
    for day in range(1, repeats + 1):
        scene.begin_day(day)
        scene.drain()
        measure("PING, one at a time on each", "--requests", count, "PING")
        scene.set_clock(at(day, "08:30"))
        measure("CHECKIN, one at a time on each", "--requests", count, "--ids", ids, "CHECKIN", "{}", "IN")
        scene.drain()
        for rate in (1000, 5000):
            scene.set_clock(at(day, "12:00") + rate)
            measure(f"CHECKIN, {rate:,} a second whatever the answers", "--rate", rate, "--requests",
                    rate * seconds, "--ids", ids, "CHECKIN", "{}", "OUT", depth=100)
            scene.drain()
    for name, runs in results.items():
        p = {key: median(run["latency_us"][key] for run in runs) for key in ("p50", "p99", "p999")}
        worst[name] = p["p99"]
        report.row(name, median(run["rate"] for run in runs), milliseconds(p["p50"]), milliseconds(p["p99"]),
                   milliseconds(p["p999"]), milliseconds(max(run["latency_us"]["max"] for run in runs)))
        report.data[name] = [{"rate": run["rate"], "latency_us": run["latency_us"]} for run in runs]
    closed = worst["CHECKIN, one at a time on each"]
    report.target("p99 under 50 ms at 500 connections without pipelining", milliseconds(closed), closed < 50_000)
    report.note(f"Median of {repeats} runs, the greatest of all maxima. Relay, ledger, RabbitMQ and MariaDB work at "
                "the same time. PING asks nothing of Redis: what client, kernel and loop take. One at a time, 500 "
                "connections always wait for 500 answers: the latency is what that many in front take. At a fixed rate "
                "a latency runs from the moment at which the command was due.")
