# SPDX-License-Identifier: MIT
"""What supervisors are told, where it arrives, and what happens to a notice that a consumer does not want."""
import pytest

from harness.attendance import DAY, Notices, as_map, at, close_day, found, ms, pipelined, punch, wait_quiet
from harness.wait import wait_until


@pytest.fixture(name="noon")
def fixture_noon(held):
    held.set_clock(at("12:00"))
    return held


def kinds(events, employee=None):
    return sorted(event["type"].removeprefix("attendance.") for event in events
                  if employee in (None, event.get("employee")))


def test_who_hears_of_what(noon, stores):
    """A department's own key, the keys of all above it, one kind alone: each queue gets what it asked for, once, and
    the default queue gets all."""
    found(noon, {"hq": ["boss"], "east/hq": [], "lab/east": ["ada"], "west/hq": ["bo"]})
    wait_quiet(noon)
    queues = {key: Notices(stores, key) for key in (
        "attendance.*.lab", "attendance.*.hq.#", "attendance.*.hq", "attendance.*.east.#", "attendance.*.west.#",
        "attendance.late.hq.#", "attendance.#")}
    both = Notices(stores, "attendance.*.lab", "attendance.*.lab.#", "attendance.in.#", "#")
    punch(noon, "ada", "IN", "08:55")
    punch(noon, "bo", "IN", "09:30")
    punch(noon, "boss", "IN", "08:00")
    wait_quiet(noon)
    got = {key: sorted((e["employee"], e["type"].removeprefix("attendance.")) for e in queue.events())
           for key, queue in queues.items()}
    ada, bo, late, boss = ("ada", "in"), ("bo", "in"), ("bo", "late"), ("boss", "in")
    assert got == {"attendance.*.lab": [ada], "attendance.*.hq.#": [ada, bo, late, boss], "attendance.*.hq": [boss],
                   "attendance.*.east.#": [ada], "attendance.*.west.#": [bo, late], "attendance.late.hq.#": [late],
                   "attendance.#": [ada, bo, late, boss]}
    assert len(both.events()) == 4
    declared = stores.amqp().queue_declare("muster.supervisors", passive=True).method.message_count
    assert declared >= 4


def test_what_a_notice_says(noon, stores):
    """JSON with a schema, the department with its path, the day, and events with id, instants and state; persistent,
    typed, with an id of its own."""
    found(noon, {"hq": [], "lab/hq": ["ada"]})
    assert noon.ask("EMPLOYEE.SET", "ada", "NAME", "Ada \"Countess\" Lovelace, née Byron") == "OK"
    notices = Notices(stores, "attendance.late.lab")
    punch(noon, "ada", "IN", "09:10", "SOURCE", "door-7")
    notices.wait_for("attendance.late", 1)
    (key, properties, body), = notices.messages
    assert key == "attendance.late.lab" and properties.delivery_mode == 2 and properties.type == "attendance.late"
    assert properties.message_id and properties.content_type == "application/json"
    event, = body.pop("events")
    assert body == {"schema": 1, "type": "attendance.late", "dept": "lab", "dept_name": "lab", "path": ["hq", "lab"],
                    "day": DAY}
    assert event.pop("id") and event == {
        "employee": "ada", "name": "Ada \"Countess\" Lovelace, née Byron", "at": ms(at("09:10")),
        "received": ms(at("12:00")), "state": "late", "in": ms(at("09:10")), "late_ms": 600000, "source": "door-7"}


def test_what_is_told_and_what_is_not(noon, stores):
    """Late is told when someone becomes late, and taken back when an earlier punch shows that he was not; a second in,
    a repeat and a double tap tell nothing new; an out alone is told with its state, and no absence."""
    found(noon, {"lab": ["steady", "late", "pardoned", "tapper", "out"]})
    notices = Notices(stores, "attendance.*.lab")
    for employee, direction, time in (
            ("steady", "IN", "08:50"), ("steady", "IN", "09:30"), ("steady", "IN", "09:30"), ("late", "IN", "09:05"),
            ("late", "OUT", "11:00"), ("pardoned", "IN", "09:20"), ("pardoned", "IN", "08:45"),
            ("tapper", "IN", "09:00:00.100"), ("tapper", "IN", "09:00:00.900"), ("out", "OUT", "11:59")):
        punch(noon, employee, direction, time)
    events = notices.wait_quiet(noon)
    assert kinds(events, "steady") == ["in", "in"]
    assert kinds(events, "late") == ["in", "late", "out"]
    assert kinds(events, "pardoned") == ["in", "in", "late", "withdrawn"]
    assert [e["of"] for e in events if e["type"] == "attendance.withdrawn"] == ["late"]
    assert kinds(events, "tapper") == ["in", "late"]
    assert [(e["type"], e["state"]) for e in events if e["employee"] == "out"] == [("attendance.out", "missing_in")]
    close_day(noon)
    events = notices.wait_quiet(noon)
    assert kinds(events).count("absent") == 0
    closed, = [event for event in events if event["type"] == "attendance.closed"]
    assert (closed["expected"], closed["written"], closed["absent"], closed["late"]) == (5, 5, 0, 2)


def test_a_rush_is_grouped(noon, stores):
    """Many check-ins of one department make few messages, in which each event still has an id and a place of its own;
    a single one is told at once and alone."""
    people = found(noon, {"lab": 800})
    notices = Notices(stores, "attendance.in.lab")
    pipelined(noon, [("CHECKIN", employee, "IN", "AT", at("08:55")) for employee in people], 400)
    events = notices.wait_quiet(noon)
    assert sorted(event["employee"] for event in events) == sorted(people)
    assert len({event["id"] for event in events}) == 800 and len(notices.messages) < 80
    assert len({properties.message_id for _, properties, _ in notices.messages}) == len(notices.messages)
    single = Notices(stores, "attendance.out.lab")
    punch(noon, people[0], "OUT", "11:00")
    single.wait_for("attendance.out", 1, 3)


def test_absentees_of_a_large_department(noon, stores):
    """A thousand absentees are told in messages of a bounded size, each once, before the day is reported closed."""
    people = found(noon, {"lab": 1000})
    notices = Notices(stores, "attendance.*.lab")
    close_day(noon)
    events = notices.wait_quiet(noon)
    assert sorted(e["employee"] for e in events if e["type"] == "attendance.absent") == sorted(people)
    assert kinds(events).count("closed") == 1
    assert 2 <= len([1 for _, _, body in notices.messages if body["type"] == "attendance.absent"]) < 20


def test_a_notice_that_a_consumer_rejects(make_muster, stores):
    """It comes back after each delay with the same id and body and a count, then it is parked with its reason; shown
    by NOTICE.PARKED, it goes back to its queue by NOTICE.REPLAY, and other queues never see any of it."""
    muster = make_muster(held_clock=True, config={"amqp": {"delays": "1s"}})
    muster.set_clock(at("12:00"))
    found(muster, {"lab": ["ada"]})
    other = Notices(stores, "attendance.in.lab")
    channel = stores.amqp()
    queue = channel.queue_declare("supervisor.lab", durable=True, arguments={
        "x-queue-type": "quorum", "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "muster.dead"}).method.queue
    channel.queue_bind(queue, "muster.notices", "attendance.in.lab")
    punch(muster, "ada", "IN", "08:55")

    def get():
        method, properties, body = channel.basic_get(queue)
        return method and (method.delivery_tag, properties, body)
    seen = []
    for _ in range(2):
        tag, properties, body = wait_until(get, 20, "the notice arrives")
        seen.append((properties.message_id, body, (properties.headers or {}).get("x-muster-attempt")))
        channel.basic_nack(tag, requeue=False)
    assert seen[0][:2] == seen[1][:2] and seen[1][2] is not None
    parked = wait_until(lambda: muster.ask("NOTICE.PARKED"), 20, "it is parked")
    row = as_map(parked[0])
    assert (row["id"], row["type"], row["queue"], row["reason"]) == (seen[0][0], "attendance.in", queue, "rejected")
    assert row["body"].encode() == seen[0][1]
    assert muster.ask("NOTICE.REPLAY", "ID", "no-such") == 0 and muster.ask("NOTICE.REPLAY", "ID", row["id"]) == 1
    tag, properties, body = wait_until(get, 20, "it is back")
    assert (properties.message_id, body) == seen[0][:2]
    channel.basic_ack(tag)
    assert muster.ask("NOTICE.PARKED") == []
    assert len(other.events()) == 1


def test_a_lateness_falls_with_a_punch_of_the_same_moment(noon, stores):
    """Late by seconds; then another reader delivers a punch from just before nine, within the debounce window of the
    first. It counts as the same coming, and takes the lateness back."""
    found(noon, {"lab": ["close.call"]})
    notices = Notices(stores, "attendance.#")
    punch(noon, "close.call", "IN", "09:00:20")
    notices.wait_for("attendance.late", 1)
    punch(noon, "close.call", "IN", "08:59:55")
    withdrawn = notices.wait_for("attendance.withdrawn", 1)
    assert [event["of"] for event in withdrawn] == ["late"]
    notices.wait_quiet(noon)
    assert len(notices.events("attendance.in")) == 1
