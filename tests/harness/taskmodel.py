# SPDX-License-Identifier: MIT
"""What a queue of tasks is, as plainly as it can be said: a list of tasks, each with the one place where it is.

Queue.judge(words, reply) does what a command is to do and says what is wrong with its reply; without a reply, because
it was cut off, it only does it. Nothing here knows a clock: leases run out and delays end when the test says so, by
expire() and promote(). Ids, tokens and times are learnt from the replies; until then a task is known by its payload, so
the payloads of a queue are all different."""
import copy
from collections import Counter

from harness.attendance import as_map

ENDS = ("success", "failed", "timeout", "cancelled")
LOST = ("failed", "timeout", "cancelled")  # what RETRY brings back
WINNERS = {"TASK.DONE": "D", "TASK.FAIL": "F", "TASK.RELEASE": "R"}
COUNTED = (*ENDS, "submitted", "retried", "expired", "released", "brought_back")


class Mismatch(AssertionError):
    """A reply that is not the one."""


class Task:
    """`place`: ready, delayed, running or an end; `ended`: by what the token has lost its hold, D, F, R, X, or ""."""

    def __init__(self, number, payload, priority, max_retries, key, windowed):
        self.number = number  # order of submission
        self.payload = payload
        self.priority = priority
        self.max_retries = max_retries
        self.key = key
        self.windowed = windowed
        self.id = self.token = self.worker = None
        self.place = "ready"
        self.ended = ""
        self.retries = self.crashes = 0
        self.cancel = False
        self.old_tokens = []

    def status(self):
        return "pending" if self.place in ("ready", "delayed") else self.place

    def picture(self):
        """What a reader of Redis must find."""
        return {"place": self.place, "priority": self.priority, "retries": self.retries, "crashes": self.crashes,
                "cancel": self.cancel and self.place not in LOST[:2], "worker": self.worker if self.place == "running"
                else None, "key": self.key}


def picture_of(found):
    """The same of what tasks.Recount has found."""
    fields = found.fields
    return {"place": found.place, "priority": int(fields["priority"]), "retries": int(fields.get("retries", 0)),
            "crashes": int(fields.get("crashes", 0)), "cancel": fields.get("cancel") == "1",
            "worker": fields.get("worker") if found.place == "running" else None, "key": fields.get("key")}


def option(words, name, default=None):
    return words[words.index(name) + 1] if name in words[2:] else default


class Queue:
    """One queue and its rules. `retries`, `crashes`: what holds for a task that says nothing else."""

    def __init__(self, name, retries=3, crashes=3):
        self.name = name
        self.retries = retries
        self.crashes = crashes
        self.tasks = []
        self.by_id = {}
        self.keys = {}
        self.paused = False
        self.counts = Counter()

    def copy(self):
        return copy.deepcopy(self)

    def at(self, *places):
        return [task for task in self.tasks if task.place in places]

    def ready(self):
        """In the order of claims."""
        return sorted(self.at("ready"), key=lambda task: (task.priority, task.number))

    # ---- a command ----

    def judge(self, words, reply=None):
        """Raises Mismatch when the reply is not what the rules say."""
        words = [str(word) for word in words]
        check = COMMANDS[words[0]](self, words)
        if reply is None:
            return
        try:
            check(reply)
        except AssertionError as error:
            raise Mismatch(f"{self.name}: {' '.join(words)} -> {reply}: {error}") from None

    def held_by(self, words):
        """The task whose present token this is, or the code of the refusal, or "" for the repeat of what has won."""
        task = self.by_id.get(words[1])
        if task is None:
            return None, "UNKNOWN"
        if task.token != words[2]:
            return task, "STALE"
        if task.place == "running":
            return task, None
        return task, "" if task.ended == WINNERS.get(words[0]) else "STALE"

    def submit(self, words):
        key = option(words, "KEY")
        holder = self.holder(key)
        if holder:
            return is_map(id=holder.id, status=holder.status(), duplicate=1)
        task = Task(len(self.tasks), words[2], int(option(words, "PRIORITY", 5)),
                    int(option(words, "RETRIES", self.retries)), key, "WINDOW" in words)
        task.place = "delayed" if option(words, "DELAY", "0") != "0" else "ready"
        self.tasks.append(task)
        self.counts["submitted"] += 1
        if key:
            self.keys[key] = task

        def check(reply):
            made = is_map(status="pending", duplicate=0)(reply)
            self.learn(task, made["id"])
        return check

    def holder(self, key):
        holder = self.keys.get(key)
        return holder if holder and (holder.windowed or holder.place not in ENDS) else None

    def learn(self, task, identity):
        assert not self.by_id or identity > max(self.by_id), f"{identity} is not above all before"
        task.id = identity
        self.by_id[identity] = task

    def claim(self, words):
        return self.give(words[2], int(option(words, "COUNT", 1)))

    def give(self, worker, count):
        tasks = [] if self.paused else self.ready()[:count]
        for task in tasks:
            task.place, task.worker, task.ended = "running", worker, ""
            task.old_tokens += [task.token] if task.token else []
            task.token = None

        def check(reply):
            got = [as_map(item) for item in reply] if isinstance(reply, list) else reply
            expected = [(task.id, task.payload, task.priority, task.retries + 1, self.name) for task in tasks]
            found = [(t["id"], t["payload"], t["priority"], t["attempt"], t["queue"]) for t in got]
            assert found == expected, f"expected {expected}"
            for task, given in zip(tasks, got):
                task.token = given["token"]
                assert all(int(old) < int(task.token) for old in task.old_tokens), "tokens are to rise"
        return check

    def end(self, words):
        task, code = self.held_by(words)
        if code:
            return is_error(code)
        if code is None:
            getattr(self, "by_" + words[0][5:].lower())(task, words)
        if words[0] == "TASK.FAIL":
            return is_map(id=task.id, status=task.status(), retries=task.retries)
        if "NEXT" in words[3:]:
            return self.give(task.worker, int(option(words, "COUNT", 1)))
        return is_ok

    def by_done(self, task, _):
        self.finish(task, "success", "D")

    def by_release(self, task, _):
        if task.cancel:
            self.finish(task, "cancelled", "R")
            return
        task.place, task.ended = "ready", "R"
        self.counts["released"] += 1

    def by_fail(self, task, words):
        if task.cancel or task.retries >= task.max_retries:
            self.finish(task, "cancelled" if task.cancel else "failed", "F")
            return
        task.retries += 1
        task.place, task.ended = "ready" if option(words, "DELAY") == "0" else "delayed", "F"
        self.counts["retried"] += 1

    def finish(self, task, end, ended=None):
        task.place = end
        task.ended = ended or task.ended
        self.counts[end] += 1
        if self.keys.get(task.key) is task and (end == "cancelled" or not task.windowed):
            del self.keys[task.key]

    def beat(self, words):
        lists = {"extended": [], "stale": [], "cancel": []}
        pairs = words[2:words.index("LEASE")] if "LEASE" in words else words[2:]
        for identity, token in zip(pairs[::2], pairs[1::2]):
            _, code = self.held_by(("", identity, token))
            holds = code is None
            lists["stale" if not holds else "cancel" if self.by_id[identity].cancel else "extended"].append(identity)
        return is_map(**lists)

    def cancel(self, words):
        task = self.by_id.get(words[1])
        if task is None:
            return is_error("UNKNOWN")
        if task.place in ENDS:
            return is_error("CONFLICT")
        if task.place == "running":
            task.cancel = True
        else:
            self.finish(task, "cancelled")
        return is_map(id=task.id, status=task.status())

    def retry(self, words):
        task = self.by_id.get(words[1])
        if task is None:
            return is_error("UNKNOWN")
        holder = self.holder(task.key)
        if task.place in ("running", "success") or (task.place in LOST and holder and holder is not task):
            return is_error("CONFLICT")
        if task.place in LOST:
            task.retries = task.crashes = 0
            task.cancel, task.ended = False, ""
            self.counts["brought_back"] += 1
            if task.key and not task.windowed:
                self.keys[task.key] = task
        task.place = "ready"
        return is_ok

    def pause(self, _):
        self.paused = True
        return is_ok

    def resume(self, _):
        self.paused = False
        return is_ok

    def get(self, words):
        task = self.by_id.get(words[1])
        if task is None:
            return is_error("UNKNOWN")
        held = {"worker": task.worker, "token": task.token} if task.place == "running" else {}
        return is_map(id=task.id, queue=self.name, status=task.status(), priority=task.priority, retries=task.retries,
                      crashes=task.crashes, key=task.key, payload=task.payload, size=len(task.payload), **held)

    def stats(self, _):
        counts = Counter(task.place for task in self.tasks)
        return is_map(queue=self.name, paused=int(self.paused),
                      **{place: counts[place] for place in ("ready", "delayed", "running", *ENDS)},
                      bytes=sum(len(task.payload) for task in self.tasks))

    def list(self, words):
        """STATUS of a place or of pending; ready ones in the order of claims. A page may be short, and has a cursor
        then."""
        place = option(words, "STATUS")
        places = ("ready", "delayed") if place == "pending" else (place,)
        listed = self.ready() if place == "ready" else self.at(*places)
        expected = [(task.id, task.status(), task.priority, task.retries) for task in listed]

        def check(reply):
            assert isinstance(reply, list), "expected a list"
            cursor, items = reply[0], [as_map(item) for item in reply[1]]
            found = [(t["id"], t["status"], t["priority"], t["retries"]) for t in items]
            assert len(found) == len(expected) if not cursor else len(found) < len(expected), f"of {len(expected)}"
            if place == "ready":
                assert found == expected[:len(found)], f"expected {expected}"
            assert set(found) <= set(expected), f"expected {expected}"
        return check

    # ---- what time does ----

    def expire(self, task):
        """Its lease has run out."""
        task.crashes += 1
        if task.cancel:
            self.finish(task, "cancelled", "X")
        elif task.retries >= task.max_retries:
            self.finish(task, "timeout", "X")
        elif task.crashes >= self.crashes:
            self.finish(task, "failed", "X")
        else:
            task.retries += 1
            task.place, task.ended = "ready", "X"
            self.counts["expired"] += 1

    @staticmethod
    def promote(task):
        """Its delay is over."""
        task.place = "ready"

    # ---- compared with Redis ----

    def differences(self, found):
        """Between the model and {id: tasks.Found} of the queue."""
        there = {one.payload: (identity, one) for identity, one in found.items()}
        wrong = [f"{task.payload} is not there" for task in self.tasks if task.payload not in there]
        wrong += [f"{payload} was never submitted" for payload in there.keys() - {task.payload for task in self.tasks}]
        if wrong:
            return wrong
        for task in self.tasks:
            identity, one = there[task.payload]
            expected, is_so = task.picture(), picture_of(one)
            if task.place in ENDS:  # of no meaning then
                expected["cancel"] = is_so["cancel"]
            if is_so != expected or task.id not in (None, identity):
                wrong.append(f"{identity}, {task.payload}: {is_so} instead of {expected}")
        order = [one.payload for one in sorted(found.values(), key=lambda one: one.score) if one.place == "ready"]
        if order != [task.payload for task in self.ready()]:
            wrong.append(f"the order is {order}")
        return wrong

    def adopt(self, found):
        """Learns ids and tokens whose replies were cut off."""
        for identity, one in sorted(found.items()):
            task = next(task for task in self.tasks if task.payload == one.payload)
            if task.id is None:
                self.learn(task, identity)
            task.token = one.fields.get("token")


# ---- what a reply must be ----

def is_ok(reply):
    assert reply == "OK", "expected OK"


def is_error(code):
    def check(reply):
        assert isinstance(reply, str) and reply.split(" ", 1)[0] == code, f"expected {code}"
    return check


def is_map(**fields):
    """A map with at least these fields; the map."""
    def check(reply):
        assert isinstance(reply, list), f"expected {fields}"
        told = as_map(reply)
        wrong = {name: value for name, value in fields.items() if told.get(name, "nothing") != value}
        assert not wrong, f"expected {wrong}"
        return told
    return check


COMMANDS = {"TASK.SUBMIT": Queue.submit, "TASK.CLAIM": Queue.claim, "TASK.DONE": Queue.end, "TASK.FAIL": Queue.end,
            "TASK.RELEASE": Queue.end, "TASK.BEAT": Queue.beat, "TASK.CANCEL": Queue.cancel, "TASK.RETRY": Queue.retry,
            "TASK.PAUSE": Queue.pause, "TASK.RESUME": Queue.resume, "TASK.GET": Queue.get, "TASK.STATS": Queue.stats,
            "TASK.LIST": Queue.list}
