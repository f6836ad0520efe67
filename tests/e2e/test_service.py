# SPDX-License-Identifier: MIT
"""The daemon under systemd: readiness, status, watchdog, inherited sockets."""
import contextlib
import os
import socket
import subprocess

import pytest
from harness.raw import Raw
from harness.wait import wait_until


class Manager:
    """Starts a daemon as systemd would and hears what it says."""

    def __init__(self, muster, directory):
        self.muster = muster
        self.heard = []
        self.address = str(directory / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.address)
        self.socket.setblocking(False)

    def start(self, listening=None, **env):
        binary = os.environ.get("MUSTERD") or str(self.muster.build() / "daemon" / "musterd")
        # The shell's number becomes the daemon's: that is what LISTEN_PID and WATCHDOG_PID have to hold.
        script = 'export LISTEN_PID=$$ WATCHDOG_PID=$$; exec "$0" --config "$1"'
        if listening is not None:
            script += f" 3<&{listening.fileno()}"
            env["LISTEN_FDS"] = "1"
        with open(self.muster.log_path, "ab") as log:
            self.muster.process = subprocess.Popen(
                ["bash", "-c", script, binary, str(self.muster.config_path)], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env={**os.environ, "NOTIFY_SOCKET": self.address, **env},
                pass_fds=[] if listening is None else [listening.fileno()])

    def lines(self):
        """All that was said so far, one assignment a line."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.heard += self.socket.recv(4096).decode().split("\n")
        return self.heard

    def wait_for(self, line, times=1):
        wait_until(lambda: self.lines().count(line) >= times, 30, f"{line} is said")


@pytest.fixture(name="manager")
def fixture_manager(make_muster, tmp_path):
    manager = Manager(make_muster(start=False), tmp_path)
    yield manager
    manager.socket.close()


def test_ready_reload_stop(manager):
    manager.start()
    manager.wait_for("READY=1")
    assert not manager.muster.ask("STATUS", "e.1").startswith("NOTREADY")
    manager.muster.reload()
    manager.wait_for("READY=1", times=2)
    lines = manager.lines()
    assert "RELOADING=1" in lines and any(line.startswith("MONOTONIC_USEC=") for line in lines)
    assert manager.muster.terminate() == 0
    assert "STOPPING=1" in manager.lines() and "WATCHDOG=1" not in manager.lines()


def test_watchdog_is_fed(manager):
    manager.start(WATCHDOG_USEC="300000")
    manager.wait_for("WATCHDOG=1", times=3)


def test_sockets_of_systemd(manager):
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        port = listening.getsockname()[1]
        with Raw(port, 30) as early:  # before the daemon is there: it waits and is not refused
            early.send(b"PING\r\n")
            manager.start(listening)
            assert early.read() == "PONG"
        assert manager.muster.terminate() == 0
        with Raw(port, 30) as late:  # the socket outlives the daemon
            late.send(b"PING\r\n")
            manager.start(listening)
            assert late.read() == "PONG"
        manager.muster.port = port
        assert manager.muster.info()["tcp_port"] == str(port)
