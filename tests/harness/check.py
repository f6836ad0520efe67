# SPDX-License-Identifier: MIT
"""TEAM.CHECK and TASK.CHECK: asking, and what they found."""
from harness.attendance import as_map


def run_check(muster, command, subject, *words):
    """One check; its map, `items` as a sorted list of (code, the fields of `subject`, detail)."""
    reply = muster.ask(command, *words)
    assert isinstance(reply, list), reply
    result = as_map(reply)
    result["codes"] = as_map(result["codes"])
    result["items"] = sorted((i["code"], *(i[field] for field in subject), i["detail"])
                             for i in map(as_map, result["items"]))
    return result


def named(result):
    return {item[:2] for item in result["items"]}


def assert_nothing_found(result):
    assert (result["state"], result["findings"], result["items"]) == ("done", 0, []), result
