# SPDX-License-Identifier: MIT
"""Waiting for a condition. No test sleeps to let something happen."""
import time


def wait_until(condition, deadline=10.0, what="the condition"):
    """Calls `condition` until it gives something true, and returns that; AssertionError after `deadline` seconds.

    An AssertionError inside the condition counts as not yet, and its text is shown at the end."""
    end = time.monotonic() + deadline
    pause = 0.005
    while True:
        reason = ""
        try:
            value = condition()
        except AssertionError as error:
            value, reason = None, f": {error}"
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError(f"{what} did not come true within {deadline:g} s{reason}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
