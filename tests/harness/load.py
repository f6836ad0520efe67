# SPDX-License-Identifier: MIT
"""Check-ins from several pipelining connections at once, which survive that the daemon or its stores go away: what was
not answered, or refused for the moment, is sent again. So in the end every event was accepted, and when one is
missing, an accepted one was lost."""
import threading
from collections import Counter, deque

from harness.raw import ErrorReply, Raw, encode

AGAIN = ("BUSY", "UNAVAILABLE", "NOTREADY")


class Load:
    """Load(port, events) begins at once; an event is (employee, words after CHECKIN id ...). `.accepted` are the
    indices of accepted events, `.errors` counts codes. finish() waits for the last; stop() ends early."""

    def __init__(self, port, events, connections=4, at_once=25):
        self.port = port
        self.events = events
        self.at_once = at_once
        self.accepted = set()
        self.errors = Counter()
        self.refused = []  # errors that no repeat can heal
        self.broken = 0
        self.running = True
        self.pause = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(range(n, len(events), connections),), daemon=True)
                        for n in range(connections)]
        for thread in self.threads:
            thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def run(self, mine):
        left = deque(mine)
        while left and self.running:
            try:
                with Raw(self.port, 20) as raw:
                    while left and self.running:
                        self.exchange(raw, left)
            except (OSError, EOFError):
                self.broken += 1
                self.pause.wait(0.02)

    def exchange(self, raw, left):
        part = [left[n] for n in range(min(self.at_once, len(left)))]
        raw.send(b"".join(encode("CHECKIN", *self.events[n]) for n in part))
        waited = False
        for n in part:
            reply = raw.read()
            left.popleft()
            if not isinstance(reply, ErrorReply):
                self.accepted.add(n)
                continue
            code = str(reply).split(" ", 1)[0]
            self.errors[code] += 1
            if code in AGAIN:
                left.append(n)
                waited = True
            else:
                self.refused.append((self.events[n], str(reply)))
        if waited:
            self.pause.wait(0.02)

    def stop(self):
        self.running = False
        self.pause.set()
        for thread in self.threads:
            thread.join(30)

    def finish(self, deadline=60):
        for thread in self.threads:
            thread.join(deadline)
        self.stop()
        assert not self.refused, self.refused[:3]
        missing = len(self.events) - len(self.accepted)
        assert not missing, f"{missing} of {len(self.events)} events were never accepted; {dict(self.errors)}"
