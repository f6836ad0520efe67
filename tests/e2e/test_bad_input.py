# SPDX-License-Identifier: MIT
"""Input that is wrong: each has its documented code and a text that says what was expected, and changes nothing."""
import pytest

from harness.attendance import DAY, at, day_after, dump, failures, found, ms, pipelined, punch, wait_quiet
from harness.wait import wait_until

BAD_IDS = [b"", b"a b", b" a", b"a\n", b"a\x00b", b"a\x7f", b"\x01", b"x" * 65, b"a:b", b"a|b", b"a#", b"a/b", b"*",
           b"{p0}", "ö".encode(), b"\xff\xfe", b"a\r\nPING"]
PEOPLE_ONLY = [b"a.b", b"a@b"]
BAD_NAMES = [b"\xff\xfe", b"abc\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"a\nb", b"a\x00", b"\x7f", b"n" * 256,
             "é".encode() * 128]
BAD_TIMES = ["NaN", "nan", "inf", "-1", "-0", "+5", "1e12", "0x10", "1.5", "", " 1", "1 ", "2031-04-31T08:00:00Z",
             "2031-02-29T08:00:00Z", "2031-13-01T08:00:00Z", "2031-03-03", "2031-03-03T24:00:00Z",
             "2031-03-03T08:60:00Z", "2031-03-03T08:00:60Z", "2031-03-03T08:00:00", "2031-03-03T08:00Z",
             "2031-03-03T08:00:00+1",
             "2031-03-03T08:00:00Zx", "08:00", "yesterday", "99999999999999999999999", "1" * 400]


@pytest.fixture(name="day")
def fixture_day(held, stores):
    """Noon of DAY with two departments and two people; everything is at rest."""
    held.set_clock(at("12:00"))
    found(held, {"hq": ["ada"], "lab/hq": ["b.o@x"]})
    punch(held, "ada", "IN", "08:55")
    wait_until(lambda: [key for key in stores.keys() if key.endswith(f":day:lab:{day_after(DAY)}")], 10, "the maps")
    wait_until(lambda: [key for key in stores.keys() if key.endswith(f":day:hq:{day_after(DAY)}")], 10, "the maps")
    wait_quiet(held)
    return held


def refused(muster, stores, commands, code, *words):
    """Each command is answered with the code and all the words, and Redis is as it was."""
    before = dump(stores)
    for command, reply in zip(commands, pipelined(muster, commands)):
        assert isinstance(reply, str) and reply.startswith(code + " "), (command, reply)
        missing = [word for word in words if word not in reply]
        assert not missing, (command, reply)
        assert "\n" not in reply and len(reply) < 400
    assert dump(stores) == before


def test_ids(day, stores):
    """Ids are 1 to 64 letters, digits, `_` and `-`, of people also `.` and `@`; anything else is told so."""
    expected = ("invalid", "expected 1 to 64 letters")
    people = [(command, *([bad, "hq"] if command == "EMPLOYEE.MOVE" else [bad])) for bad in BAD_IDS for command in (
        "CHECKIN", "STATUS", "EMPLOYEE.SET", "EMPLOYEE.GET", "EMPLOYEE.REMOVE", "EMPLOYEE.MOVE")]
    people += [("CHECKIN", "ada", "IN", word, bad) for bad in BAD_IDS[1:] for word in ("ID", "SOURCE")]
    people += [("TEAM.ADD", "new", "hq", "MANAGER", bad) for bad in BAD_IDS[1:]]
    refused(day, stores, people, "ERR", *expected)
    teams = [command for bad in BAD_IDS + PEOPLE_ONLY for command in (
        ("TEAM.MOVE", bad, "-"), ("TEAM.ADD", "new", bad), ("TEAM.GET", bad), ("ROLL", bad), ("ROLL.COUNT", bad),
        ("EMPLOYEE.MOVE", "ada", bad), ("EMPLOYEE.SET", "new", "DEPT", bad), ("DAY.CLOSE", DAY, "DEPT", bad),
        ("FAILURE.LIST", "DEPT", bad))]
    teams += [("TEAM.ADD", bad, "-") for bad in BAD_IDS + PEOPLE_ONLY if bad != b"*"]  # which makes an id
    refused(day, stores, teams, "ERR", *expected)


def test_ids_at_their_limits(day):
    """64 bytes of every allowed kind are an id like any other."""
    dept, person = "Az09_-" + "d" * 58, "Az09_-.@" + "p" * 56
    assert day.ask("TEAM.ADD", dept, "lab") == "OK" and day.ask("EMPLOYEE.SET", person, "DEPT", dept) == "OK"
    assert day.map("CHECKIN", person, "IN", "AT", at("08:59"), "ID", "i" * 64, "SOURCE", "s" * 64)["dept"] == dept
    assert day.map("STATUS", person)["path"] == f"hq:lab:{dept}"
    assert [row["id"] for row in day.roll(dept)] == [person]
    # Ids are bytes: another case is another one.
    assert day.ask("STATUS", person.upper()).startswith("UNKNOWN ")


def test_unknown(day, stores):
    """Who and what is not there is UNKNOWN, and naming it makes nothing."""
    refused(day, stores, [("CHECKIN", "nobody"), ("CHECKIN", "nobody", "IN", "AT", at("08:00")), ("STATUS", "nobody"),
                          ("STATUS", "nobody", "DAY", DAY), ("EMPLOYEE.GET", "nobody"), ("EMPLOYEE.REMOVE", "nobody"),
                          ("EMPLOYEE.MOVE", "nobody", "hq")], "UNKNOWN", "no such employee")
    refused(day, stores, [("ROLL", "nowhere"), ("ROLL.COUNT", "nowhere"), ("TEAM.GET", "nowhere"),
                          ("EMPLOYEE.SET", "new", "DEPT", "nowhere"), ("EMPLOYEE.MOVE", "ada", "nowhere"),
                          ("DAY.CLOSE", day_after(DAY, -1), "DEPT", "nowhere")], "UNKNOWN", "no such department")
    refused(day, stores, [("TEAM.ADD", "new", "nowhere"), ("TEAM.ADD", "self", "self")], "UNKNOWN", "no such parent")
    assert day.map("EMPLOYEE.GET", "ada")["dept"] == "hq"


def test_times(day, stores):
    """What is no time is ERR with the forms that are; what lies outside the accepted window is TIME, and kept for
    people to look at."""
    refused(day, stores, [("CHECKIN", "ada", "IN", "AT", time) for time in BAD_TIMES], "ERR", "invalid time in AT",
            "RFC 3339")
    outside = ["2000-01-01T00:03:00Z", "946684980", "0", "1", "2063-04-05T08:00:00Z", "9999-12-31T23:59:59Z",
               "999999999999999", at("11:59", day_after(DAY, -7)), at("13:00:00.001")]
    for time in outside:
        reply = day.ask("CHECKIN", "ada", "OUT", "AT", time)
        assert reply.startswith("TIME ") and "not counted" in reply, (time, reply)
    assert day.map("STATUS", "ada")["punches"] == 1
    wait_quiet(day)
    assert len(failures(day)) == len(outside)
    # The same instant in each form, and the last that is taken at each end.
    for time in ("2031-03-03T12:04:59.5Z", "2031-03-03T13:04:59.500+01:00", "2031-03-03t07:04:59.5-05:00",
                 "2031-03-03 12:04:59.500999Z", "1930305899500"):
        assert day.map("CHECKIN", "ada", "OUT", "AT", time)["out"] == 1930305899500
    assert day.map("STATUS", "ada")["punches"] == 2
    assert day.map("CHECKIN", "b.o@x", "IN", "AT", at("12:00", day_after(DAY, -7)))["day"] == day_after(DAY, -7)


def test_names(day, stores):
    """Names are UTF-8 up to 255 bytes without control characters, and come back byte for byte."""
    commands = [command for bad in BAD_NAMES for command in (
        ("EMPLOYEE.SET", "new", "DEPT", "hq", "NAME", bad), ("EMPLOYEE.SET", "ada", "NAME", bad),
        ("TEAM.ADD", "new", "hq", "NAME", bad))]
    refused(day, stores, commands, "ERR", "invalid name, expected UTF-8", "255")
    for name in ("Zoë | O'Brien \"Bobby\" \\ ; DROP TABLE employee", "王小明 🙂", "n" * 255, "a|b|c", "", "  blanks  "):
        assert day.ask("EMPLOYEE.SET", "b.o@x", "NAME", name) == "OK"
        assert day.map("EMPLOYEE.GET", "b.o@x")["name"] == name and day.map("STATUS", "b.o@x")["name"] == name
        assert [row["name"] for row in day.roll("lab")] == [name]
    assert day.map("CHECKIN", "b.o@x", "IN", "AT", at("08:00"))["punches"] == 1
    assert day.map("EMPLOYEE.GET", "b.o@x")["name"] == "  blanks  "
    wait_quiet(day)
    assert stores.sql("SELECT name FROM employee WHERE id = 'b.o@x'") == [{"name": "  blanks  "}]


def test_syntax(day, stores):
    """Words too many, too few, twice, or with a value that no option takes: ERR, and what was expected."""
    refused(day, stores, [
        ("CHECKIN", "ada", "INOUT"), ("CHECKIN", "ada", "IN", "OUT"), ("CHECKIN", "ada", "IN", "AT"),
        ("CHECKIN", "ada", "AT", at("08:00"), "AT", at("08:00")), ("CHECKIN", "ada", "AT", at("08:00"), "IN"),
        ("STATUS", "ada", "DAY"), ("STATUS", "ada", DAY), ("ROLL", "hq", "SUBTREE", "SUBTREE"),
        ("ROLL.COUNT", "hq", "COUNT", "5"), ("EMPLOYEE.SET", "ada", "hq"), ("EMPLOYEE.SET", "ada", "DEPT"),
        ("TEAM.ADD", "new", "-", "X"), ("DAY.CLOSE", DAY, "lab"), ("FAILURE.LIST", "ALL")], "ERR", "expected")
    refused(day, stores, [("CHECKIN",), ("STATUS",), ("TEAM.ADD", "new"), ("EMPLOYEE.MOVE", "ada"), ("DAY.CLOSE",),
                          ("DAY.INIT", DAY, DAY), ("EMPLOYEE.GET", "ada", "bo"), ("FAILURE.RETRY",)], "ERR",
            "wrong number of arguments")
    refused(day, stores, [("ROLL", "hq", "COUNT", word) for word in ("0", "-1", "1001", "x", "1.5", "")], "ERR",
            "COUNT", "expected a number")
    refused(day, stores, [("ROLL", "hq", "STATE", word) for word in ("here", "", "ABSENTT", "not yet")], "ERR", "STATE",
            "expected")
    refused(day, stores, [("ROLL", "hq", "CURSOR", word) for word in (
        "x", "lab:0", "/", "/x", "/-1", "hq/=", "a b/0", "/" + "9" * 80, "/=" + "a" * 80)], "ERR", "CURSOR", "expected")
    refused(day, stores, [("STATUS", "ada", "DAY", word) for word in ("2031-02-30", "x", "", "2031-03-03T00:00:00Z")],
            "ERR", "day", "expected")


def test_conflicts(day, stores):
    """What contradicts what is there says so; what repeats it is fine."""
    refused(day, stores, [("TEAM.ADD", "lab", "-"), ("TEAM.ADD", "lab", "hq", "NAME", "Other"),
                          ("TEAM.ADD", "hq", "lab")], "EXISTS")
    before = dump(stores)
    for words in (("TEAM.ADD", "lab", "hq"), ("EMPLOYEE.SET", "ada", "DEPT", "hq"), ("EMPLOYEE.SET", "ada"),
                  ("EMPLOYEE.MOVE", "ada", "hq")):
        assert day.ask(*words) == "OK"
    assert dump(stores) == before


def test_a_reader_that_repeats_itself(make_muster, stores):
    """More punches than max_punches keep no one from going home: first in and last out stay, and every event is in
    the journal's books."""
    muster = make_muster(held_clock=True, config={"day": {"max_punches": 8}})
    muster.set_clock(at("20:00"))
    found(muster, {"lab": ["ada"]})
    replies = pipelined(muster, [("CHECKIN", "ada", "IN", "AT", at(f"08:{minute:02}")) for minute in range(10, 40)])
    assert all(isinstance(reply, list) for reply in replies)
    assert punch(muster, "ada", "OUT", "18:00")["state"] == "present"
    status = muster.map("STATUS", "ada")
    assert (status["in"], status["out"]) == (ms(at("08:10")), ms(at("18:00"))) and status["punches"] <= 8
    wait_quiet(muster)
    assert stores.sql("SELECT COUNT(*) AS n FROM attendance_event") == [{"n": 31}]
