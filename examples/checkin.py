#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks an employee in and prints the day: checkin.py EMPLOYEE [in|out]

Any Redis client library is a Muster client; this is redis-py. The event gets an id of its own, so that sending it
again after a lost connection or UNAVAILABLE counts once."""
import os
import sys
import time
import uuid

import redis

PASSING = ("BUSY", "NOTREADY", "UNAVAILABLE")


def fields(reply):
    """A map: a dict in RESP3, a flat list of field and value in RESP2."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))


def check_in(muster, employee, direction):
    command = ["CHECKIN", employee, direction, "AT", time.time_ns() // 1_000_000, "ID", uuid.uuid4().hex]
    for wait in (0.1, 0.5, 2, 5):
        try:
            return fields(muster.execute_command(*command))
        except redis.ConnectionError:
            time.sleep(wait)
        except redis.ResponseError as error:
            if not str(error).startswith(PASSING):
                raise
            time.sleep(wait)
    return fields(muster.execute_command(*command))


def main():
    employee, direction = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else "in").upper()
    muster = redis.Redis(os.environ.get("MUSTER_HOST", "127.0.0.1"), int(os.environ.get("MUSTER_PORT", "7411")),
                         decode_responses=True)
    day = check_in(muster, employee, direction)
    print(f"{day['id']} is {day['state']} on {day['day']} (punches: {day['punches']})")


main()
