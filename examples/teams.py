#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Looks at the tree of teams and changes it with care:

  teams.py below TEAM          all below a team, as deep as they stand, page by page
  teams.py line EMPLOYEE       his teams, each with the managers up to the top
  teams.py move TEAM PARENT|-  says what would be touched, then moves it, unless somebody has changed it meanwhile"""
import os
import sys
import time

import redis

muster = redis.Redis(os.environ.get("MUSTER_HOST", "127.0.0.1"), int(os.environ.get("MUSTER_PORT", "7411")),
                     decode_responses=True)


def fields(reply):
    """A map: a dict in RESP3, a flat list of field and value in RESP2."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))


def patiently(*command):
    """BUSY means that nothing was done; UNAVAILABLE that nobody knows: a change may be sent again."""
    for wait in (0.1, 0.5, 2, 5):
        try:
            return muster.execute_command(*command)
        except redis.ConnectionError:
            time.sleep(wait)
        except redis.ResponseError as error:
            if not str(error).startswith(("BUSY", "NOTREADY", "UNAVAILABLE")):
                raise
            time.sleep(wait)
    return muster.execute_command(*command)


def below(team):
    cursor = None
    while cursor != "":
        more = ["CURSOR", cursor] if cursor else []
        cursor, page = patiently("TEAM.DESCENDANTS", team, "DETAIL", "COUNT", 1000, *more)
        for item in map(fields, page):
            print("  " * (item["depth"] - 1) + item["name"], f"({item['id']})")


def line(employee):
    for team in map(fields, patiently("TEAM.OF", employee)):
        above = [f"{step['name']} ({step['manager'] or 'nobody'})" for step in map(fields, team["line"])]
        print("home:  " if team["home"] else "member:", ", ".join(above))


def move(team, parent):
    seen = fields(patiently("TEAM.GET", team))
    touched = fields(patiently("TEAM.MOVE", team, parent, "DRYRUN"))
    print(f"{seen['path']}: {touched['nodes']} teams, {touched['employees']} people, "
          f"{touched['supervisors']} supervisors", "in steps" if touched["job"] else "at once")
    patiently("TEAM.MOVE", team, parent, "IF", seen["version"])
    print("now", patiently("TEAM.PATH", team))


def main():
    verbs = {"below": below, "line": line, "move": move}
    try:
        verbs[sys.argv[1]](*sys.argv[2:])
    except redis.ResponseError as error:
        sys.exit(f"teams.py: {error}")


main()
