# SPDX-License-Identifier: MIT
"""The fault proxy does what the tests that use it believe, seen with Redis behind it."""
import pytest
import redis
from harness.proxy import Proxy
from harness.raw import Raw, encode


@pytest.fixture(name="proxy")
def fixture_proxy(stack):
    with Proxy(stack["redis"].port()) as proxy:
        yield proxy


def test_passes_large_data_both_ways(proxy):
    client = redis.Redis(port=proxy.port, socket_timeout=10)
    value = bytes(range(256)) * 20000
    assert client.echo(value) == value
    client.close()


def test_pause_holds_what_was_sent(proxy):
    with Raw(proxy.port, timeout=0.2) as raw:
        assert raw.command("PING") == "PONG"
        proxy.pause()
        raw.send(encode("ECHO", "later"))
        with pytest.raises(TimeoutError):
            raw.socket.recv(1)
        proxy.resume()
        raw.socket.settimeout(10)
        assert raw.socket.recv(100) == b"$5\r\nlater\r\n"


def test_cut_after_ends_in_the_middle_of_a_reply(proxy):
    with Raw(proxy.port) as raw:
        proxy.cut_after(6)
        raw.send(encode("ECHO", "0123456789"))
        assert raw.socket.recv(100) == b"$10\r\n0"
        assert raw.socket.recv(100) == b""
    with Raw(proxy.port) as raw:
        assert raw.command("PING") == "PONG"


def test_reset_and_refuse(proxy):
    with Raw(proxy.port) as raw:
        assert raw.command("PING") == "PONG"
        proxy.cut(reset=True)
        with pytest.raises(ConnectionResetError):
            raw.socket.recv(1)
    proxy.refuse()
    with Raw(proxy.port) as raw:
        assert raw.at_end()
    proxy.refuse(False)
    with Raw(proxy.port) as raw:
        assert raw.command("PING") == "PONG"


def test_trickle_passes_single_bytes(proxy):
    proxy.trickle(1)
    with Raw(proxy.port) as raw:
        assert raw.command("ECHO", "x" * 500) == b"x" * 500
