# SPDX-License-Identifier: MIT
"""node-redis 6, which speaks RESP3 and nothing else, and ioredis 6, which asks for INFO first."""
import json
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def node_version():
    if shutil.which("node") is None:
        return 0
    text = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return int(text.lstrip("v").split(".")[0])


@pytest.mark.skipif(node_version() < 20, reason="node-redis 6 takes Node 20 or later, which is not installed")
def test_node_clients(muster):
    done = subprocess.run(["node", str(HERE / "node_client.mjs"), str(muster.port)], cwd=HERE, timeout=60,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert "error" not in seen
    assert seen["ping"] == "PONG"
    assert seen["team"] == "OK"
    assert seen["employee"] == "OK"
    assert seen["checkin"]["id"] == "n.1"
    assert len(seen["statuses"]) == 100
    assert all(status["state"] and status["in"] == seen["checkin"]["in"] for status in seen["statuses"])
    assert seen["refused"].startswith("UNKNOWN ")
    assert seen["ioPing"] == "PONG"
    assert seen["ioStatus"]
