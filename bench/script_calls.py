# SPDX-License-Identifier: MIT
"""The check-in script called directly on Redis, with the keys and arguments that musterd would give it, under key
prefixes of its own: by redis-benchmark, with random people, and by our load generator, with each person once."""
import random

from scene import IDS_SEED, ROOT, day_text, department, employee, tag_of
from harness.raw import encode

SCRIPT = (ROOT / "persist" / "lua" / "checkin.lua").read_text(encoding="utf-8")
MOST_PUNCHES = "100"


class ScriptCalls:
    def __init__(self, scene, prefix):
        self.scene, self.prefix = scene, prefix
        self.sha = scene.redis.script_load(SCRIPT)
        self.depts = [department(i) for i in range(scene.departments)]
        self.per_dept = scene.employees // scene.departments
        random.Random(IDS_SEED).shuffle(self.depts)

    def key(self, dept, kind):
        return f"{self.prefix}{{{tag_of(dept)}}}:{kind}"

    def members(self, dept):
        """redis-benchmark makes numbers from 0: here each department has its own employees 0 to n - 1."""
        return [employee(i) for i in range(self.per_dept)]

    def prepare(self):
        """Everybody's record."""
        pipe = self.scene.redis.pipeline(transaction=False)
        for dept in self.depts:
            pipe.hset(self.key(dept, f"emps:{dept}"),
                      mapping={id: f"|{dept}||Employee Number {i}" for i, id in enumerate(self.members(dept))})
        pipe.execute()

    def begin_day(self, day):
        """The maps of a day, as musterd makes them; those of the day before and the journals go."""
        old = [key for key in self.scene.redis.scan_iter(self.prefix + "*", count=2000) if ":emps:" not in key]
        pipe = self.scene.redis.pipeline(transaction=False)
        for i in range(0, len(old), 100):
            pipe.unlink(*old[i:i + 100])
        for dept in self.depts:
            pipe.hset(self.key(dept, f"day:{dept}:{day_text(day)}"),
                      mapping={"#": "1", **dict.fromkeys(self.members(dept), "")})
        pipe.execute()

    def event(self, dept, day, direction, id, ms):
        """Keys and arguments of one check-in."""
        date = day_text(day)
        keys = [self.key(dept, f"emps:{dept}"), self.key(dept, f"day:{dept}:{date}"), self.key(dept, "days"),
                self.key(dept, "journal")]
        head = f"P|{date}|{dept}|{dept}|{id}|{direction}|{ms}|{ms}|-|-|-|"
        return keys, [id, f"{direction}{ms}", "", date, dept, head]

    def call(self, day, events):
        keys = [key for event in events for key in event[0]]
        values = [value for event in events for value in event[1]]
        return ["EVALSHA", self.sha, str(len(keys)), *keys, day_text(day), MOST_PUNCHES, *values]

    # ---- redis-benchmark ----

    def by_redis_benchmark(self, day, count, batch, connections):
        """(check-ins, seconds): as many runs as it takes for the batches to touch every department."""
        done, seconds, runs = 0, 0.0, -(-len(self.depts) // batch)
        for run in range(runs):
            depts = [self.depts[(run * batch + i) % len(self.depts)] for i in range(batch)]
            events = [self.event(dept, day, "I", "e__rand_int__", "1__rand_int__") for dept in depts]
            requests = max(1, round(count / runs / batch))
            rate = self.scene.redis_benchmark(requests, self.per_dept, self.call(day, events), connections)
            done, seconds = done + requests * batch, seconds + requests / rate
        return done, seconds

    # ---- each person once ----

    def write_stream(self, day, direction, ms, batch, path):
        """Number of calls in the file; the people in a random order."""
        people = [(i, dept) for dept in self.depts for i in range(self.per_dept)]
        random.Random(IDS_SEED + day).shuffle(people)
        with open(path, "wb") as f:
            for i in range(0, len(people), batch):
                events = [self.event(dept, day, direction, employee(n), ms) for n, dept in people[i:i + batch]]
                f.write(encode(*self.call(day, events)))
        return -(-len(people) // batch)
