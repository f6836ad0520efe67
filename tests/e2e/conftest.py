# SPDX-License-Identifier: MIT
"""Fixtures of the end-to-end tests: the real binary on real servers, looked at by independent clients.

./dev test starts servers and names their folder in STACK_DIR; without it the tests start their own. Of several workers
of pytest-xdist the first takes those, each of the others has servers of its own."""
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "tools")]

from harness.muster import Muster, Stores  # noqa: E402
from stack import SERVERS, Stack  # noqa: E402

DEFAULT_TIMEOUT = 120


class TimedOut(Exception):
    """A test took longer than it may."""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """A test that hangs fails after its time, with the place where it hung."""
    marker = item.get_closest_marker("timeout")
    seconds = marker.args[0] if marker else DEFAULT_TIMEOUT

    def on_alarm(*_):
        raise TimedOut(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds, 30)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session", name="stack")
def fixture_stack():
    """Redis, RabbitMQ and MariaDB. A test that kills or stops one starts it again (`intact` sees to it)."""
    given, worker = os.environ.get("STACK_DIR"), os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if given and worker == "gw0":
        yield Stack(given)
        return
    if given:
        directory = str(Path(given, worker))
        os.mkdir(directory)
    else:
        directory = tempfile.mkdtemp(prefix="muster-e2e.")
    os.chmod(directory, 0o755)  # MariaDB's user is to get through
    stack = Stack(directory)
    try:
        stack.start(SERVERS)
        yield stack
    finally:
        stack.stop(discard=True)


@pytest.fixture(name="intact")
def fixture_intact(stack):
    """For tests that stop servers: whatever happens, they run again afterwards."""
    yield stack
    for name in SERVERS:
        stack.resume(name)
    stack.start(SERVERS)


@pytest.fixture(name="stores")
def fixture_stores(stack):
    """The test's own corner of the servers."""
    stores = Stores(stack)
    yield stores
    stores.remove()


@pytest.fixture(name="make_muster")
def fixture_make_muster(stores, tmp_path):
    """make_muster(held_clock=False, config={}, start=True): a daemon on the test's stores; a second one shares them."""
    daemons = []

    def make(held_clock=False, config=None, start=True):
        muster = Muster(stores, tmp_path / f"musterd{len(daemons) + 1}", held_clock, config)
        daemons.append(muster)
        return muster.start() if start else muster

    yield make
    failures = []
    for muster in daemons:
        try:
            muster.close()
        except AssertionError as error:
            failures.append(str(error))
    assert not failures, "\n".join(failures)


@pytest.fixture(name="muster")
def fixture_muster(make_muster):
    """A daemon that lives by the wall clock."""
    return make_muster()


@pytest.fixture(name="held")
def fixture_held(make_muster):
    """A daemon whose clock stands still until set_clock()."""
    return make_muster(held_clock=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Shows the end of each daemon's log with a failure."""
    outcome = yield
    report = outcome.get_result()
    directory = item.funcargs.get("tmp_path") if hasattr(item, "funcargs") else None
    if report.failed and directory is not None:
        for log in sorted(directory.glob("musterd*/log")):
            tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:]
            report.sections.append((f"{log.parent.name}: end of its log", "\n".join(tail)))
