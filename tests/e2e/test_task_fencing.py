# SPDX-License-Identifier: MIT
"""Who holds a task: the token of the last claim, until the task has ended, was given back, or its lease has run out and
the sweep has taken it. Whoever comes late changes nothing, whoever repeats what has won is told so again."""
import threading
from collections import Counter

from harness import tasks
from harness.attendance import pipelined
from harness.muster import text_of
from harness.tasks import (TaskNotices, await_task, beat, changed, claim, claim_one, done, fail, get, hash_of, ids_in,
                           info_of, kept, key_of, pipeline, recount, redis_ms, refused, release, status, still, submit,
                           wait_gone)
from harness.wait import wait_until

VERBS = ("DONE", "FAIL", "RELEASE")


def say(muster, verb, task):
    """The reply to a verb of a worker: OK for each that was taken, else the error's code."""
    if verb == "BEAT":
        told = beat(muster, "w1", task)
        assert not told["cancel"] and told["extended"] + told["stale"] == [task["id"]], told
        return "OK" if told["extended"] else "STALE"
    reply = muster.ask(f"TASK.{verb}", task["id"], task["token"])
    return "OK" if isinstance(reply, list) else reply.split(" ", 1)[0]


def stale(muster, task, *verbs):
    """None of the verbs is taken with this token, and nothing changes."""
    before = still(muster.stores)
    for verb in verbs or (*VERBS, "BEAT"):
        assert say(muster, verb, task) == "STALE", verb
    assert not changed(before, still(muster.stores))


def lose(muster, task, queue="mail"):
    """Lets the lease run out and the sweep take the task."""
    assert beat(muster, "w1", task, words=("LEASE", "0.1"))["extended"] == [task["id"]]
    wait_gone(muster.stores, queue, task)


def pass_deadline(stores, queue, task):
    """Sets the deadline back by a minute, so that it has passed and the sweep, which looks when it was due, has not
    been."""
    deadline = (redis_ms(stores) - 60000) * 1000
    assert stores.redis.zadd(key_of(stores, queue, "lease"), {task["id"]: deadline}, xx=True, ch=True) == 1


# ---- two workers, one task ----

def test_a_worker_that_lost_its_lease_is_told_so(muster, stores):
    """The first is slow, the second gets the task: the first's DONE is STALE, the second's counts, once."""
    submit(muster, "mail")
    slow = claim_one(muster, "mail", "w1")
    lose(muster, slow)
    second = claim_one(muster, "mail", "w2")
    assert second["id"] == slow["id"] and int(second["token"]) > int(slow["token"]) and second["attempt"] == 2
    assert done(muster, slow, "RESULT", "late").startswith("STALE ")
    assert done(muster, second, "RESULT", "good") == "OK"
    assert done(muster, slow).startswith("STALE ")
    found = get(muster, second)
    assert (found["status"], found["result"], found["worker"]) == ("success", "good", "w2")
    assert info_of(stores, "mail")["success"] == "1" and recount(stores).counts("mail") == {"success": 1}


def test_nothing_of_a_stale_worker_is_kept(muster):
    """Its error, result, delay or beat does not touch the live attempt: the hash is as it was, byte for byte."""
    submit(muster, "mail")
    slow = claim_one(muster, "mail", "w1")
    lose(muster, slow)
    live = claim_one(muster, "mail", "w2")
    pair = (slow["id"], slow["token"])
    refused(muster, "STALE", ("TASK.FAIL", *pair, "ERROR", "boom"), ("TASK.FAIL", *pair, "DELAY", "1h"),
            ("TASK.FAIL", *pair), ("TASK.DONE", *pair, "RESULT", "late"), ("TASK.DONE", *pair, "NEXT"),
            ("TASK.RELEASE", *pair))
    stale(muster, slow)
    assert say(muster, "BEAT", live) == "OK" and done(muster, live) == "OK"


def test_a_stale_next_claims_nothing(muster, stores):
    """DONE with NEXT whose token does not hold gets no task either."""
    submit(muster, "mail", "a")
    slow = claim_one(muster, "mail")
    lose(muster, slow)
    submit(muster, "mail", "b")
    refused(muster, "STALE", ("TASK.DONE", slow["id"], slow["token"], "NEXT", "COUNT", "5"))
    assert len(ids_in(stores, "mail", "queue")) == 2


def test_a_lost_task_that_nobody_has_claimed_is_lost_all_the_same(muster):
    """One rule, whether it waits again or somebody else has it: the old token is STALE and the task stays pending."""
    submit(muster, "mail")
    slow = claim_one(muster, "mail")
    lose(muster, slow)
    stale(muster, slow)
    assert status(muster, slow) == "pending" and claim_one(muster, "mail")["id"] == slow["id"]


def test_past_the_deadline_the_token_holds_until_the_sweep(muster, stores):
    """The token decides, not the clock: what comes late but before the sweep is taken."""
    for verb, expected in (("DONE", "success"), ("FAIL", "pending"), ("RELEASE", "pending"), ("BEAT", "running")):
        submit(muster, verb)
        task = claim_one(muster, verb, "w1", "LEASE", "1h")
        pass_deadline(stores, verb, task)
        assert say(muster, verb, task) == "OK"
        found = get(muster, task)
        assert (found["status"], found["crashes"]) == (expected, 0)
    recount(stores)


def test_done_at_the_moment_of_the_deadline(muster, stores):
    """Hundreds of DONE that meet the sweep: each is either taken, and the task has ended, or is STALE, and the task is
    ready again with one crash. Those that a second worker has by then are his."""
    replies = pipelined(muster, [("TASK.SUBMIT", "mail", n) for n in range(400)])
    assert len(replies) == 400
    outcome = Counter()
    held = [task for _ in range(4) for task in claim(muster, "mail", "w1", "COUNT", 100, "LEASE", "0.3")]
    assert len(held) == 400
    deadline = held[-1]["deadline"]
    first = ids_in(stores, "mail", "lease")
    wait_until(lambda: redis_ms(stores) >= deadline - 20, 10, "the deadlines are near")
    late = {}
    with muster.raw(30) as one, muster.raw(30) as two:
        for n in range(0, 400, 10):
            part = held[n:n + 10]
            answers = pipeline(one, [("TASK.DONE", task["id"], task["token"]) for task in part])
            outcome.update(answer.split(" ", 1)[0] for answer in answers)
            for task, answer in zip(part, answers):
                late[task["id"]] = answer != "OK"
            taken = pipeline(two, [("TASK.CLAIM", "mail", "w2", "COUNT", 10, "LEASE", "1h")])[0]
            for item in tasks.claims(taken):
                assert item["attempt"] == 2 and item["id"] in first
    assert set(outcome) <= {"OK", "STALE"} and sum(outcome.values()) == 400, outcome
    left = [task for task in held if hash_of(stores, "mail", task["id"])["worker"] == "w1"]
    if left:
        wait_gone(stores, "mail", *left)
    found = recount(stores).queues["mail"]
    for task, is_late in late.items():
        place, fields = found[task].place, found[task].fields
        assert place in (("ready", "running") if is_late else ("success",)), (task, fields)
        assert fields.get("crashes", "0") == ("1" if is_late else "0"), fields
    counts = recount(stores).counts("mail")
    assert counts["success"] == outcome["OK"] == int(info_of(stores, "mail").get("success", 0))
    print(f"\n{dict(outcome)}")


def test_a_claimed_again_task_is_not_the_sweeps(muster, stores):
    """What the sweep knew of an earlier lease does not count for the next: claimed again at once, a task is left
    alone until its own deadline."""
    submit(muster, "mail")
    for attempt in (1, 2):
        assert await_task(muster, "mail", f"w{attempt}", "LEASE", "0.1")["attempt"] == attempt
    task = await_task(muster, "mail", "w3", "LEASE", "1h")
    for _ in range(3):  # sweeps of the same partition
        submit(muster, "mail", "other", "DELAY", "0.1")
        wait_gone(stores, "mail", place="delayed")
    assert say(muster, "BEAT", task) == "OK"


def test_every_task_goes_to_one(make_muster, stores):
    """Many claim at once through two daemons, some one by one, some in batches: nobody gets what another has."""
    pair = [make_muster(config={"server": {"log_level": "info"}}) for _ in range(2)]
    pipelined(pair[0], [("TASK.SUBMIT", "mail", n) for n in range(3000)])
    got = [[] for _ in range(8)]

    def work(number):
        with pair[number % 2].raw(30) as raw:
            while True:
                reply = text_of(raw.command("TASK.CLAIM", "mail", f"w{number}", "COUNT", 1 + number * 3))
                if not reply:
                    return
                got[number] += tasks.claims(reply)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    ids = [task["id"] for part in got for task in part]
    tokens = [task["token"] for part in got for task in part]
    assert len(ids) == len(set(ids)) == 3000 and len(set(tokens)) == 3000
    assert all([t["token"] for t in part] == sorted((t["token"] for t in part), key=int) for part in got)
    found = recount(stores).queues["mail"]
    assert {found[task["id"]].fields["worker"] for task in got[3]} <= {"w3"}


# ---- leases ----

def test_a_silent_worker_loses_its_task_in_time(muster, stores):
    """Its connection stays open and it says nothing: not before the deadline, and soon after it, the task is ready."""
    submit(muster, "mail")
    with muster.raw(30) as raw:
        task = tasks.claims(text_of(raw.command("TASK.CLAIM", "mail", "w1", "LEASE", "0.5")))[0]
        assert abs(task["deadline"] - redis_ms(stores) - 500) < 400

        def state():
            return ids_in(stores, "mail", "lease"), redis_ms(stores)
        while (now := state())[0]:
            assert now[1] < task["deadline"] + 3000, "still running long after its deadline"
        assert now[1] >= task["deadline"]
        found = get(muster, task)
        assert (found["status"], found["retries"], found["crashes"], found["worker"]) in (
            ("pending", 1, 1, None), ("pending", 1, 1, "w1"))


def test_beats_keep_a_task(muster, stores):
    """Each beat begins the lease anew, as long as it was or as it says; a task kept so is not lost."""
    submit(muster, "mail")
    task = claim_one(muster, "mail", "w1", "LEASE", "0.6")
    end = redis_ms(stores) + 2000
    while redis_ms(stores) < end:
        assert beat(muster, "w1", task) == {"extended": [task["id"]], "stale": [], "cancel": []}
        assert 400 < get(muster, task)["deadline"] - redis_ms(stores) <= 600
    beat(muster, "w1", task, words=("LEASE", "30s"))
    assert 25000 < get(muster, task)["deadline"] - redis_ms(stores) <= 30000
    assert get(muster, task)["crashes"] == 0 and done(muster, task) == "OK"
    recount(stores)


def test_a_beat_for_many(muster, stores):
    """One beat tells of each of its tasks: extended, stale, to be cancelled; what is no task is stale."""
    ids = [submit(muster, queue, n) for n, queue in enumerate(("mail", "mail", "mail", "print", "print"))]
    held = claim(muster, "mail", "w1", "COUNT", 9) + claim(muster, "print", "w1", "COUNT", 9)
    assert [task["id"] for task in held] == ids
    assert done(muster, held[1]) == "OK" and muster.map("TASK.CANCEL", ids[3])["status"] == "running"
    unknown = {"id": ids[0][:-3] + "000", "token": "1"}
    foreign = {"id": ids[4], "token": held[0]["token"] + "0"}
    told = beat(muster, "w1", *held, unknown, foreign)
    assert told == {"extended": [ids[0], ids[2], ids[4]], "stale": [ids[1], unknown["id"], ids[4]],
                    "cancel": [ids[3]]}
    recount(stores)


def test_leases_of_a_task_of_a_queue_and_of_a_claim(muster, stores):
    """The claim's own lease goes before the task's, and that before the queue's, which goes before the server's."""
    def lease(queue, *words):
        task = claim_one(muster, queue, "w1", *words)
        return round((task["deadline"] - redis_ms(stores)) / 1000)
    submit(muster, "plain")
    muster.map("TASK.CONFIG", "own", "lease", "20s")
    submit(muster, "own")
    submit(muster, "own", "x", "LEASE", "30s")
    submit(muster, "own", "x", "LEASE", "30s")
    assert [lease("plain"), lease("own"), lease("own"), lease("own", "LEASE", "40s")] == [60, 20, 30, 40]


def test_a_name_that_is_used_again_does_not_inherit(muster, stores):
    """A worker dies, and another of the same name comes: it holds nothing, can't prolong what it has no token of, and
    the old task expires."""
    submit(muster, "mail", "a")
    old = claim_one(muster, "mail", "host.7", "LEASE", "0.5")
    submit(muster, "mail", "b")
    new = claim_one(muster, "mail", "host.7", "LEASE", "1h")
    assert new["id"] != old["id"]
    told = beat(muster, "host.7", {"id": old["id"], "token": new["token"]}, new)
    assert told == {"extended": [new["id"]], "stale": [old["id"]], "cancel": []}
    wait_gone(stores, "mail", old)
    assert ids_in(stores, "mail", "lease") == [new["id"]] and done(muster, new) == "OK"
    recount(stores)


def test_a_worker_may_not_say_anothers_token(muster):
    """Tokens belong to one task: any other's, one higher, one lower, is STALE."""
    for payload in "abc":
        submit(muster, "mail", payload)
    a, b, c = claim(muster, "mail", "w1", "COUNT", 3)
    for token in (a["token"], c["token"], str(int(c["token"]) + 1), str(2 ** 53), str(2 ** 62)):
        stale(muster, {"id": b["id"], "token": token})
    assert say(muster, "DONE", b) == "OK"


def test_tokens_rise_over_all_claims(muster):
    """Later claims have higher tokens, after a restart too, so that a worker can fence what it does elsewhere."""
    submit(muster, "mail")
    tokens = []
    for n in range(12):
        task = claim_one(muster, "mail")
        tokens.append(int(task["token"]))
        assert release(muster, task) == "OK"
        if n == 6:
            muster.kill9()
            muster.start()
    assert tokens == sorted(set(tokens))


def test_one_expiry_costs_one_retry(muster, stores):
    """With retries left a task whose lease ran out is pending again, not dead, and has used one."""
    submit(muster, "mail", "x", "RETRIES", 3)
    task = claim_one(muster, "mail", "w1", "LEASE", "0.1")
    wait_gone(stores, "mail", task)
    found = get(muster, task)
    assert (found["status"], found["retries"], found["crashes"], found["max_retries"]) == ("pending", 1, 1, 3)
    assert claim_one(muster, "mail")["attempt"] == 2


def test_what_kills_its_workers_is_given_up(make_muster, stores):
    """A task whose every worker dies has failed after so many crashes, however many retries are left, and that is
    told once."""
    muster = make_muster(config={"task": {"crashes": 3}})
    notices = TaskNotices(stores, "task.#")
    task = submit(muster, "mail", "poison", "RETRIES", 10)
    for attempt in range(1, 4):
        assert await_task(muster, "mail", "w1", "LEASE", "0.1")["attempt"] == attempt
        wait_gone(stores, "mail", task)
    found = get(muster, task)
    assert (found["status"], found["crashes"], found["error"]) == ("failed", 3, "crashed 3 times")
    assert claim(muster, "mail") == []
    notices.wait_quiet(muster)
    assert notices.told() == {(task, "failed"): 1}


def test_a_delay_longer_than_the_lease_runs_once(muster, stores):
    """A delayed task holds no lease: it is not taken for lost, however long it waits."""
    task = submit(muster, "mail", "x", "DELAY", "0.6", "LEASE", "0.2")
    assert not ids_in(stores, "mail", "lease") and ids_in(stores, "mail", "delayed") == [task]
    found = await_task(muster, "mail")
    assert (found["id"], found["attempt"]) == (task, 1) and done(muster, found) == "OK"
    fields = get(muster, task)
    assert (fields["status"], fields["retries"], fields["crashes"]) == ("success", 0, 0) and not claim(muster, "mail")


# ---- repeats ----

# What a token has come to; what then answers OK to the same token, and what the task is.
ENDINGS = {
    "done": (lambda muster, task: done(muster, task, "RESULT", "r"), "DONE", "success"),
    "retry": (lambda muster, task: fail(muster, task, "DELAY", "0"), "FAIL", "pending"),
    "delayed": (lambda muster, task: fail(muster, task, "DELAY", "1h"), "FAIL", "pending"),
    "released": (release, "RELEASE", "pending"),
    "lost": (lambda muster, task: lose(muster, task, task["queue"]), None, "pending"),
}


def test_repeats_of_what_has_won(muster, stores):
    """A worker that did not see its answer asks again, as often as it likes and after a restart, and is told the same;
    it counts once. Anything else with that token is STALE."""
    ended = {}
    for queue, (end, _, _) in ENDINGS.items():
        submit(muster, queue, "x", "RETRIES", 2)
        ended[queue] = claim_one(muster, queue)
        end(muster, ended[queue])
    before = still(stores)
    for _ in range(2):
        for queue, (_, winner, _) in ENDINGS.items():
            for verb in (*VERBS, "BEAT", *VERBS):
                assert say(muster, verb, ended[queue]) == ("OK" if verb == winner else "STALE"), (queue, verb)
        muster.restart()
    assert not changed(before, still(stores))
    for queue, (_, _, expected) in ENDINGS.items():
        info = info_of(stores, queue)
        assert status(muster, ended[queue]) == expected
        assert sum(int(info.get(what, 0)) for what in ("success", "retried", "released", "expired", "failed")) == 1


def test_repeats_of_a_last_failure(muster, stores):
    """The FAIL that used up the retries: the repeat says failed again, the other verbs are STALE."""
    submit(muster, "mail", "x", "RETRIES", 0)
    task = claim_one(muster, "mail")
    first = fail(muster, task, "ERROR", "boom")
    assert (first["id"], first["status"], first["retries"]) == (task["id"], "failed", 0)
    assert fail(muster, task, "ERROR", "other") == first and get(muster, task)["error"] == "boom"
    stale(muster, task, "DONE", "RELEASE", "BEAT")
    assert info_of(stores, "mail")["failed"] == "1"


def test_a_repeated_failure_tells_the_same_time(muster):
    """Until when the task waits is said again, not begun anew."""
    submit(muster, "mail")
    task = claim_one(muster, "mail")
    first = fail(muster, task, "DELAY", "30s")
    assert (first["status"], first["retries"]) == ("pending", 1) and first["not_before"] > 0
    assert fail(muster, task, "DELAY", "5s") == first and get(muster, task)["not_before"] == first["not_before"]


def test_no_repeat_once_another_has_the_task(muster):
    """After the next claim the old token is STALE for every verb, also for the one that had won."""
    for queue in ("retry", "released", "lost"):
        submit(muster, queue)
        task = claim_one(muster, queue, "w1")
        ENDINGS[queue][0](muster, task)
        second = claim_one(muster, queue, "w2")
        stale(muster, task)
        assert done(muster, second) == "OK"
        stale(muster, task)


def test_a_repeated_done_with_next_claims_again(muster):
    """The repeat of DONE NEXT is OK for the task that is done, and gets the next one, whose claim before expires."""
    for payload in "abc":
        submit(muster, "mail", payload)
    task = claim_one(muster, "mail", "w1")
    first = tasks.claims(done(muster, task, "NEXT"))
    again = tasks.claims(done(muster, task, "NEXT"))
    assert [t["payload"] for t in first + again] == ["b", "c"] and tasks.claims(done(muster, task, "NEXT")) == []
    assert {get(muster, t)["worker"] for t in first + again} == {"w1"}


def test_in_one_packet(muster, stores):
    """A worker that sends several verbs for a task at once: the first is taken, and the rest judged after it."""
    orders = [("DONE", "FAIL", "DONE", "RELEASE"), ("FAIL", "DONE", "FAIL"), ("RELEASE", "RELEASE", "DONE", "FAIL"),
              ("FAIL", "FAIL", "RELEASE")]
    for verbs in orders:
        submit(muster, "mail")
        task = claim_one(muster, "mail")
        with muster.raw() as raw:
            replies = pipeline(raw, [(f"TASK.{verb}", task["id"], task["token"]) for verb in verbs])
        codes = ["STALE" if str(reply).startswith("STALE ") else "OK" for reply in replies]
        assert codes == ["OK" if verb == verbs[0] else "STALE" for verb in verbs], replies
        if verbs[0] == "RELEASE":
            assert done(muster, claim_one(muster, "mail")) == "OK"
    recount(stores)


def test_redis_has_lost_its_last_second(muster, stores):
    """A claim is undone with it, and the task is given to another worker: with another token, so that the first one is
    told and ends nothing."""
    task = submit(muster, "mail")
    with kept(stores, "mail"):
        first = claim_one(muster, "mail", "w1")
    second = claim_one(muster, "mail", "w2")
    assert (first["id"], second["id"]) == (task, task) and int(second["token"]) > int(first["token"])
    assert beat(muster, "w1", first)["stale"] == [task]
    stale(muster, first)
    assert done(muster, second) == "OK"
    recount(stores)
