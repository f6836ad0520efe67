# SPDX-License-Identifier: MIT
"""The company of the demo: its departments, its people, and what each of them does that day.

What must come of a day is written down here for each person, by what he does and never by asking Muster: the
reconciliation compares what it finds in MySQL, RabbitMQ and Redis with this."""
import csv
import random
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

FIRST = ("Anna Jonas Leyla Marek Zoë Piotr Ingrid Mehmet Chloé Søren Yuki Olga Luís Nadia Björn Aylin Émile Katarzyna "
         "Hans Fatima Jürgen 伟 Dmitri Noor Ada Omar Greta Iván").split()
LAST = ("Müller Schmidt Kowalski Öztürk García Novák Nguyễn Jensen Rossi Fischer Petrov Łukasik Martin Sørensen Weiß "
        "O'Neill 王 Haddad Brandt Silva Vogel Tanaka Lindqvist Costa").split()

MINUTE = 60_000


class Clock:
    """Instants of the demo's day, in unix milliseconds, from local times."""

    def __init__(self, zone):
        self.zone = zone
        # Tomorrow: the daemon begins at the real time and has its map ready, so that the move leaves no day out.
        self.day = (datetime.now(ZoneInfo(zone)) - timedelta(hours=4)).date() + timedelta(days=1)
        self.next_day = self.day + timedelta(days=1)

    def at(self, text, after=0):
        """Milliseconds of a local time of that day, or of days after it."""
        hour, minute = (int(part) for part in text.split(":"))
        day = self.day + timedelta(days=after)
        return int(datetime(day.year, day.month, day.day, hour, minute, tzinfo=ZoneInfo(self.zone)).timestamp()) * 1000


class Department:
    def __init__(self, number, parent, name, level):
        self.id, self.parent, self.name, self.level = number, parent, name, level
        self.path = ((*parent.path, parent.id) if parent else ())  # of its ancestors


def build_departments(count):
    """Four levels: the company, regions, sites, teams; about the cube root of `count` below each."""
    regions = min(max(1, round(count ** (1 / 3))), count - 1)
    sites = min(round(count ** (2 / 3)), count - 1 - regions)
    teams = count - 1 - regions - sites
    top = Department("company", None, "The whole company", 1)
    level2 = [Department(f"r{i + 1}", top, f"Region {i + 1}", 2) for i in range(regions)]
    level3 = [Department(f"s{i + 1}", level2[i % regions], f"Site {i + 1}", 3) for i in range(sites)]
    level4 = [Department(f"t{i + 1}", level3[i % len(level3)], f"Team {i + 1}", 4) for i in range(teams)]
    return [top, *level2, *level3, *level4]


class Person:
    """Somebody, and what must come of his day."""
    __slots__ = ("id", "name", "dept", "plan", "status", "first_in", "last_out", "counted", "raw", "told", "morning")

    def __init__(self, number, name, dept):
        self.id, self.name, self.dept = number, name, dept
        self.plan = ""
        self.status = ""  # in attendance_day
        self.first_in = self.last_out = None
        self.counted = 0  # punches of the day that count
        self.raw = []  # (direction, ms) of attendance_event
        self.told = ()  # kinds of notices, each as often as a supervisor must hear it
        self.morning = ""  # how ROLL.COUNT counts him at half past ten


# What a share of the people does; the rest comes in time and leaves in time. In thousandths.
SHARES = {
    "absent": 20, "late": 60, "early": 20, "late_early": 5, "only_come": 10, "only_leave": 5, "lunch": 50,
    "no_direction": 30, "double_tap": 10, "resent": 10, "wrong_button": 2, "past_midnight": 3, "offline_gate": 3,
    "forgiven": 1, "warehouse": 1, "to_the_second": 1, "a_millisecond_late": 1, "out_to_the_second": 1,
    "a_millisecond_early": 1,
}


class Company:
    def __init__(self, employees, departments, clock, seed=7411):
        self.clock = clock
        self.random = random.Random(seed)
        self.departments = build_departments(departments)
        self.people = []
        # What is sent when: {moment: [command line]}. The moments are those the clock is moved to.
        self.schedule = defaultdict(list)
        self.repeats = 0  # commands that say again what has been said
        self.misdated = 5  # punches of a reader whose clock is wrong
        self.watched = []  # come in the rush too, one by one, and look at their own state at once
        self.hire(employees)
        self.give_plans()

    def hire(self, employees):
        choose, weights = self.random, [1 if d.level < 4 else 4 for d in self.departments]
        homes = choose.choices(self.departments, weights, k=employees)
        for i, home in enumerate(homes):
            name = f"{choose.choice(FIRST)} {choose.choice(LAST)}"
            self.people.append(Person(f"e{i + 1:06}", name, home))

    def give_plans(self):
        plans = []
        for plan, share in SHARES.items():
            plans += [plan] * max(1, round(len(self.people) * share / 1000))
        plans += ["rush"] * (len(self.people) // 5) + ["watched"] * min(200, len(self.people) // 20)
        plans += ["usual"] * (len(self.people) - len(plans))
        self.random.shuffle(plans)
        for person, plan in zip(self.people, plans):
            person.plan = plan
            getattr(self, "plan_" + plan)(person)

    def write_csv(self, path):
        with open(path, "w", encoding="utf-8", newline="") as f:
            out = csv.writer(f)
            out.writerow(["kind", "id", "parent", "name", "manager"])
            for d in self.departments:
                out.writerow(["department", d.id, d.parent.id if d.parent else "", d.name, ""])
            for p in self.people:
                out.writerow(["employee", p.id, p.dept.id, p.name, ""])

    # ---- moments ----

    def between(self, begin, end, step=10):
        """A moment from `begin` to before `end`, a multiple of `step` minutes after `begin`."""
        first, last = self.clock.at(begin), self.clock.at(end)
        return self.random.randrange(first, last, step * MINUTE)

    def arrival(self):
        return self.between("07:00", "08:51")

    def evening(self):
        return self.between("18:00", "19:30")

    # ---- what is said, and what comes of it ----

    def say(self, moment, person, direction, *more, at=None):
        """A punch at `moment`; `at` for a reader that delivers it at that moment and saw it at another time."""
        words = ["CHECKIN", person.id, *({"I": ["IN"], "O": ["OUT"], "U": []}[direction]), *more]
        if at is not None:
            words += ["AT", str(at)]
        self.schedule[moment].append(" ".join(words))
        person.raw.append((direction, at if at is not None else moment))

    @staticmethod
    def expect(person, status, first_in, last_out, counted, told, morning="present"):
        person.status, person.first_in, person.last_out = status, first_in, last_out
        person.counted, person.told, person.morning = counted, told, morning

    def come_and_go(self, person, come, go, status="present", morning="present", told=("in", "out")):
        self.say(come, person, "I")
        self.say(go, person, "O")
        self.expect(person, status, come, go, 2, told, morning)

    def plan_usual(self, person):
        self.come_and_go(person, self.arrival(), self.evening())

    def plan_rush(self, person):
        self.come_and_go(person, self.clock.at("08:55"), self.evening())

    def plan_watched(self, person):
        come, go = self.clock.at("08:55"), self.evening()
        self.watched.append(person)
        person.raw.append(("I", come))
        self.say(go, person, "O")
        self.expect(person, "present", come, go, 2, ("in", "out"))

    def plan_to_the_second(self, person):
        self.come_and_go(person, self.clock.at("09:00"), self.evening())

    def plan_a_millisecond_late(self, person):
        self.come_and_go(person, self.clock.at("09:00") + 1, self.evening(), "late", "late", ("in", "late", "out"))

    def plan_out_to_the_second(self, person):
        self.come_and_go(person, self.arrival(), self.clock.at("18:00"))

    def plan_a_millisecond_early(self, person):
        self.come_and_go(person, self.arrival(), self.clock.at("18:00") - 1, "early")

    def plan_late(self, person):
        come = self.between("09:05", "10:25", 5)
        self.come_and_go(person, come, self.evening(), "late", "late", ("in", "late", "out"))

    def plan_early(self, person):
        self.come_and_go(person, self.arrival(), self.between("15:00", "17:51"), "early")

    def plan_late_early(self, person):
        come, go = self.between("09:05", "10:25", 5), self.between("15:00", "17:51")
        self.come_and_go(person, come, go, "late_early", "late", ("in", "late", "out"))

    def plan_past_midnight(self, person):
        self.come_and_go(person, self.arrival(), self.clock.at("01:30", 1))

    def plan_only_come(self, person):
        come = self.arrival()
        self.say(come, person, "I")
        self.expect(person, "missing_out", come, None, 1, ("in",))

    def plan_only_leave(self, person):
        go = self.evening()
        self.say(go, person, "O")
        self.expect(person, "missing_in", None, go, 1, ("out",), "not_yet")

    def plan_lunch(self, person):
        come, go = self.arrival(), self.evening()
        self.say(come, person, "I")
        self.say(self.clock.at("12:00"), person, "O")
        self.say(self.clock.at("12:45"), person, "I")
        self.say(go, person, "O")
        self.expect(person, "present", come, go, 4, ("in", "in", "out", "out"))

    def plan_no_direction(self, person):
        come, go = self.arrival(), self.evening()
        self.say(come, person, "U")
        self.say(go, person, "U")
        self.expect(person, "present", come, go, 2, ("in", "out"))

    def plan_double_tap(self, person):
        """The badge twice, ten seconds apart: kept, but told and counted once."""
        self.plan_usual(person)
        come = person.first_in
        self.say(come, person, "I", at=come + 10_000)

    def plan_resent(self, person):
        """A reader that did not get its answer says it again, with the same event id."""
        come, go = self.arrival(), self.evening()
        self.say(come, person, "I", "ID", "gate." + person.id)
        self.schedule[come].append(self.schedule[come][-1])
        self.repeats += 1
        self.say(go, person, "O")
        self.expect(person, "present", come, go, 2, ("in", "out"))

    def plan_wrong_button(self, person):
        """OUT in the morning instead of IN."""
        come, go = self.arrival(), self.evening()
        self.say(come, person, "O")
        self.say(go, person, "O")
        self.expect(person, "present", come, go, 2, ("out", "out"), "missing_in")

    def plan_offline_gate(self, person):
        """Gate 7 has no network until ten and delivers what it saw then."""
        come, go = self.between("08:10", "08:51"), self.evening()
        self.say(self.clock.at("10:00"), person, "I", "SOURCE", "gate-7", at=come)
        self.say(go, person, "O")
        self.expect(person, "present", come, go, 2, ("in", "out"))

    def plan_forgiven(self, person):
        """Late at the desk, but gate 7 has seen him before nine: the lateness is withdrawn."""
        come, desk, go = self.clock.at("08:50"), self.clock.at("09:20"), self.evening()
        self.say(desk, person, "I")
        self.say(self.clock.at("10:00"), person, "I", "SOURCE", "gate-7", at=come)
        self.say(go, person, "O")
        self.expect(person, "present", come, go, 3, ("in", "in", "late", "withdrawn", "out"))

    def plan_absent(self, person):
        self.expect(person, "absent", None, None, 0, ("absent",), "not_yet")

    def plan_warehouse(self, person):
        """The reader of the warehouse delivers after the close: the absence is withdrawn, the row revised."""
        come, go = self.clock.at("08:40"), self.clock.at("18:10")
        self.say(self.clock.at("06:00", 1), person, "I", "SOURCE", "warehouse", at=come)
        self.say(self.clock.at("06:00", 1), person, "O", "SOURCE", "warehouse", at=go)
        self.expect(person, "present", come, go, 2, ("absent", "withdrawn"), "not_yet")

    # ---- sums ----

    def staffed(self):
        """Ids of the departments that have employees: the others have no maps and nothing to close."""
        return {p.dept.id for p in self.people}

    def statuses(self, closed_only=False):
        """People by status; with closed_only as the close finds them, before the warehouse has delivered."""
        return Counter("absent" if closed_only and p.plan == "warehouse" else p.status for p in self.people)

    def morning(self):
        return Counter(p.morning for p in self.people)

    def notices(self, kinds=None, below=None):
        """{(employee, kind): how many}, of all, or of some kinds and of a department and what is below it."""
        found = Counter()
        for p in self.people:
            if below is None or p.dept.id == below or any(up == below for up in p.dept.path):
                for kind in p.told:
                    if kinds is None or kind in kinds:
                        found[p.id, kind] += 1
        return found
