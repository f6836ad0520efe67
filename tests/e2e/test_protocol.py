# SPDX-License-Identifier: MIT
"""The protocol as clients and as nobody should speak it: libraries and tools of Redis, pieces, excess, silence,
haste, and connections that break."""
import contextlib
import fcntl
import hashlib
import json
import os
import pty
import re
import resource
import select
import socket
import struct
import subprocess
import termios
import threading

import pytest
import redis
from harness.muster import Muster
from harness.raw import Raw, encode
from harness.wait import wait_until

MIB = 1024 * 1024


def run(*command, stdin=b"", timeout=60):
    done = subprocess.run([str(word) for word in command], input=stdin, capture_output=True, timeout=timeout,
                          check=False)
    return done.stdout.decode("utf-8", "replace") + done.stderr.decode("utf-8", "replace")


def cli(muster, *words, stdin=b""):
    return re.sub(r"\x1b\[\d*m", "", run("redis-cli", "-p", muster.port, *words, stdin=stdin))


def field(muster, name):
    return int(muster.info()[name])


def replies(raw, count):
    return [raw.read() for _ in range(count)]


# ---- clients and tools of Redis ----

def test_redis_py(muster):
    client = muster.client(client_name="gate-7")
    assert client.client_getname() == "gate-7"
    assert client.client_id() > 0
    assert client.echo("x" * 100_000) == "x" * 100_000
    assert client.config_get("server.port") == {"server.port": str(muster.port)}
    assert client.config_get("redis.pass*")["redis.password"] in ("", "(hidden)")
    info = client.info()
    assert info["redis_version"] and info["loading"] == 0 and info["connected_clients"] >= 1
    assert [c["name"] for c in client.client_list()].count("gate-7") == 1
    assert client.command_count() > 30
    with pytest.raises(redis.ResponseError, match="wrong number of arguments for 'echo' command"):
        client.execute_command("ECHO")
    with client.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.echo(number)
        assert pipe.execute() == [str(number) for number in range(1000)]


def test_redis_cli(muster):
    assert cli(muster, "ping") == "PONG\n"
    assert cli(muster, "-3", "ping") == "PONG\n"
    assert json.loads(cli(muster, "--json", "config", "get", "server.port")) == {"server.port": str(muster.port)}
    assert cli(muster, "no.such").strip() == "ERR unknown command 'no.such'"
    assert cli(muster, "client", "no.such").strip() == "ERR unknown subcommand 'no.such'. Try CLIENT HELP."
    assert "SELECT 1 failed: ERR DB index is out of range" in cli(muster, "-n", "1", "ping")


def test_redis_cli_helps(muster):
    shown = cli(muster, "help", "checkin")
    assert "CHECKIN employee [IN|OUT] [AT time] [ID event-id] [SOURCE source]" in shown
    assert "summary: Records that an employee came, went, or was seen." in shown
    assert "group: attendance" in shown
    assert "CLIENT LIST" in cli(muster, "help", "client", "list")


def test_redis_cli_at_its_prompt(muster):
    """COMMAND DOCS is asked for before the first prompt; bulk strings in its flags would abort it."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("4H", 40, 200, 0, 0))
    env = {**os.environ, "TERM": "xterm", "HOME": str(muster.dir)}
    shell = subprocess.Popen(["redis-cli", "-p", str(muster.port)], stdin=inside, stdout=inside, stderr=inside,
                             env=env, start_new_session=True)
    output = b""

    def type_until(typed, text):
        """What comes after `text` is left for the next call."""
        nonlocal output
        os.write(terminal, typed)
        while text not in output:
            assert select.select([terminal], [], [], 10)[0], f"{text} is not in {output}"
            output += os.read(terminal, 4096)
        output = output.partition(text)[2]
    type_until(b"", b"> ")
    type_until(b"checkin ", b"employee [IN|OUT] [AT time]")
    type_until(b"\x15ping\r", b"PONG")
    type_until(b"", b"> ")
    os.write(terminal, b"quit\r")
    assert shell.wait(10) == 0
    os.close(terminal)
    os.close(inside)


def test_redis_cli_stat(muster):
    output = run("timeout", "2.5", "stdbuf", "-oL", "redis-cli", "-p", muster.port, "--stat", "-i", "1")
    assert "clients" in output and re.search(r"\(\+\d+\)", output)


def test_redis_benchmark(muster):
    output = run("redis-benchmark", "-p", muster.port, "-t", "ping", "-n", "20000", "-P", "16", "-q")
    assert "requests per second" in output and "WARNING" not in output and "ERR" not in output


def test_resp3_from_its_place_in_the_pipeline(muster):
    with muster.raw() as raw:
        raw.send(encode("CONFIG", "GET", "server.port") + encode("HELLO", "3") + encode("CONFIG", "GET", "server.port")
                 + encode("HELLO", "9") + encode("RESET") + encode("CONFIG", "GET", "server.port"))
        before, hello, within, refused, reset, after = replies(raw, 6)
    assert before == after == [b"server.port", str(muster.port).encode()]
    assert hello[b"proto"] == 3 and within == {b"server.port": str(muster.port).encode()}
    assert str(refused) == "NOPROTO unsupported protocol version" and reset == "RESET"


def test_help_for_people(muster):
    lines = muster.ask("HELP")
    assert any(line.startswith("CHECKIN employee") for line in lines)
    assert muster.ask("HELP", "CLIENT", "LIST")[0] == "CLIENT LIST"
    assert muster.ask("HELP", "nothing").startswith("ERR no such command")


# ---- pieces ----

def test_a_thousand_commands_in_single_bytes(muster):
    with muster.raw(60) as raw:
        sender = threading.Thread(target=lambda: [raw.send(bytes([b])) for b in encode("ECHO", "a\r\nb") * 1000])
        sender.start()
        assert replies(raw, 1000) == [b"a\r\nb"] * 1000
        sender.join()


def test_a_hundred_thousand_commands_at_once(muster):
    with muster.raw(60) as raw:
        sender = threading.Thread(target=raw.send, args=(encode("PING") * 100_000,))
        sender.start()
        assert all(reply == "PONG" for reply in replies(raw, 100_000))
        sender.join()


def test_half_close_is_answered(muster):
    with muster.raw() as raw:
        raw.send(encode("PING") * 5000 + b"*1\r\n$4\r\nPI")
        raw.socket.shutdown(socket.SHUT_WR)
        assert replies(raw, 5000) == ["PONG"] * 5000
        assert raw.at_end()


def test_quit_answers_what_came_before_and_nothing_after(muster):
    with muster.raw() as raw:
        raw.send(encode("PING") * 3 + encode("QUIT") + encode("PING") * 3)
        assert replies(raw, 4) == ["PONG"] * 3 + ["OK"]
        assert raw.at_end()


# ---- excess ----

@pytest.mark.parametrize("body", [
    pytest.param(b"a" * 10 * MIB + b"\n", id="line"),
    pytest.param(b"*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n" % (10 * MIB, b"a" * 10 * MIB), id="argument"),
    pytest.param(encode("ECHO", *["x"] * 100_000), id="arguments"),
    pytest.param(encode("ECHO", *["x" * 10_000] * 1000), id="together"),
])
def test_too_much_is_refused_once_and_skipped(muster, body):
    muster.ask("PING")
    before = muster.resident()
    with muster.raw(60) as raw:
        sender = threading.Thread(target=raw.send, args=(body + encode("PING"),))
        sender.start()
        assert str(raw.read()).startswith("TOOBIG ")
        assert raw.read() == "PONG"
        sender.join()
    assert muster.resident() - before < 4096


def test_payload_at_the_limit(make_muster):
    muster = make_muster(config={"server": {"max_payload": "64k"}})
    with muster.raw() as raw:
        assert raw.command("ECHO", "x" * (65536 - 4)) == b"x" * (65536 - 4)
        assert str(raw.command("ECHO", "x" * (65536 - 3))).startswith("TOOBIG ")
        assert raw.command("PING") == "PONG"


@pytest.mark.parametrize("sent, error", [
    (b"*-1\r\n", "invalid multibulk length"),
    (b"*2147483648\r\n", "invalid multibulk length"),
    (b"*1\r\n$-1\r\n", "invalid bulk length"),
    (b"*1\r\n$2147483648\r\n", "invalid bulk length"),
    (b"*1\r\n$18446744073709551616\r\n", "invalid bulk length"),
    (b"*1\r\n$12abc\r\n", "invalid bulk length"),
    (b"*1\r\n:4\r\n", "expected '$', got ':'"),
    (b"ECHO \"a\r\n", "unbalanced quotes in request"),
])
def test_what_is_not_resp_is_told_and_closed(muster, sent, error):
    with muster.raw() as raw:
        raw.send(encode("PING") + sent + encode("PING"))
        assert raw.read() == "PONG"
        assert str(raw.read()) == f"ERR Protocol error: {error}"
        assert raw.at_end()


def test_http_is_not_taken_for_commands(muster):
    with muster.raw() as raw:
        raw.send(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nPING\r\n")
        assert raw.at_end()


# ---- silence ----

def test_half_a_line_and_silence(make_muster):
    muster = make_muster(config={"server": {"partial_timeout": "300ms"}})
    with muster.raw() as half, muster.raw() as array, muster.raw() as quiet, muster.raw() as whole:
        half.send(b"PIN")
        array.send(b"*2\r\n$4\r\nECHO\r\n$10\r\nabc")
        assert whole.command("PING") == "PONG"
        assert half.at_end() and array.at_end()
        assert quiet.command("PING") == "PONG" and whole.command("PING") == "PONG"
    assert field(muster, "dropped_slow_clients") == 2


def test_trickle_does_not_reset_the_deadline(make_muster):
    muster = make_muster(config={"server": {"partial_timeout": "300ms"}})
    with muster.raw() as raw:
        ended = threading.Event()

        def trickle():
            with contextlib.suppress(OSError):
                while not ended.wait(0.02):
                    raw.send(b"x")
        sender = threading.Thread(target=trickle)
        sender.start()
        assert raw.at_end()
        ended.set()
        sender.join()


def test_idle_connections_are_closed(make_muster):
    muster = make_muster(config={"server": {"idle_timeout": "1s", "partial_timeout": "200ms"}})
    with muster.raw() as raw:
        assert raw.command("PING") == "PONG"
        assert raw.at_end()
    assert field(muster, "dropped_idle_clients") >= 1


def test_replies_that_nobody_takes(make_muster):
    """Such a client is no longer read, costs a bounded amount, and is closed when it takes nothing for long."""
    muster = make_muster(config={"server": {"partial_timeout": "500ms", "output_limit": "512k"}})
    before = muster.resident()
    with muster.raw(60) as raw:
        raw.socket.setblocking(False)
        request = encode("COMMAND", "DOCS") * 100

        def stuck():
            with contextlib.suppress(BlockingIOError, ConnectionError):
                while raw.socket.send(request):
                    pass
            return field(muster, "dropped_slow_clients") == 1
        wait_until(stuck, 30, "the deaf client is dropped")
    assert muster.resident() - before < 32 * 1024


def test_replies_past_the_limit_wait_for_their_reader(make_muster):
    muster = make_muster(config={"server": {"output_limit": "64k"}})
    one = len(json.dumps(muster.ask("COMMAND", "DOCS")))
    assert one > 1000
    with muster.raw(60) as raw:
        sender = threading.Thread(target=raw.send, args=(encode("COMMAND", "DOCS") * 300 + encode("PING"),))
        sender.start()
        docs = replies(raw, 300)
        assert raw.read() == "PONG" and docs.count(docs[0]) == 300
        sender.join()


# ---- connections ----

def reset(raw):
    """Closes with a reset, as a machine does that loses power."""
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


def test_disconnect_in_the_middle_of_a_reply(muster):
    files = muster.open_files()
    for _ in range(50):
        raw = muster.raw()
        raw.send(encode("COMMAND", "DOCS") * 50 + encode("STATUS", "e.1") * 50)
        raw.socket.recv(1000)
        reset(raw)
    for _ in range(50):
        raw = muster.raw()
        raw.send(encode("STATUS", "e.1"))
        reset(raw)
    wait_until(lambda: muster.open_files() <= files, 10, "all connections are closed")
    assert muster.ask("PING") == "PONG"
    assert field(muster, "commands_in_flight") == 1  # the INFO itself


def test_two_thousand_connections(muster):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    with contextlib.ExitStack() as stack:
        raws = [stack.enter_context(muster.raw(60)) for _ in range(2000)]
        for raw in raws:
            raw.send(encode("PING"))
        assert all(raw.read() == "PONG" for raw in raws)
        assert field(muster, "connected_clients") >= 2000
        assert field(muster, "rejected_connections") == 0
    wait_until(lambda: field(muster, "connected_clients") == 1, 10, "all have gone")


def test_one_too_many_is_busy(make_muster):
    muster = make_muster(config={"server": {"max_clients": 5}})
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            assert stack.enter_context(muster.raw()).command("PING") == "PONG"
        with muster.raw() as refused:
            assert str(refused.read()).startswith("BUSY ") and refused.at_end()
    wait_until(lambda: muster.ask("PING") == "PONG", 10, "there is room again")
    assert field(muster, "rejected_connections") >= 1


def test_out_of_file_descriptors(muster):
    """The daemon rests instead of spinning, tells who waits, and goes on when there is room."""
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(muster.raw())
        assert kept.command("PING") == "PONG"
        limit = resource.prlimit(muster.process.pid, resource.RLIMIT_NOFILE)
        used = {int(number) for number in os.listdir(f"/proc/{muster.process.pid}/fd")}
        lowest_free = min(set(range(len(used) + 1)) - used)
        resource.prlimit(muster.process.pid, resource.RLIMIT_NOFILE, (lowest_free, limit[1]))
        with muster.raw() as refused:
            assert str(refused.read()).startswith("BUSY ")
        assert kept.command("PING") == "PONG"
        resource.prlimit(muster.process.pid, resource.RLIMIT_NOFILE, limit)
    wait_until(lambda: muster.ask("PING") == "PONG", 10, "it accepts again")
    assert muster.log().count("event=accept_failed") < 20


def test_client_kill(muster):
    with muster.raw() as admin, muster.raw() as other, muster.raw() as third:
        number = other.command("CLIENT", "ID")
        assert admin.command("CLIENT", "KILL", "ID", number) == 1 and other.at_end()
        assert admin.command("CLIENT", "KILL", "ID", number) == 0
        addr = "%s:%d" % third.socket.getsockname()[:2]
        assert admin.command("CLIENT", "KILL", addr) == "OK" and third.at_end()
        assert str(admin.command("CLIENT", "KILL", addr)) == "ERR No such client"
        admin.send(encode("CLIENT", "KILL", "USER", "default", "SKIPME", "no") + encode("PING"))
        assert admin.read() >= 1 and admin.at_end()


def test_one_greedy_client_does_not_starve_the_others(muster):
    with muster.raw(60) as greedy, muster.raw(5) as polite:
        stop = threading.Event()

        def flood():
            while not stop.is_set():
                greedy.send(encode("PING") * 1000)

        def swallow():
            with contextlib.suppress(OSError, ValueError):
                while greedy.socket.recv(65536):
                    pass
        threads = [threading.Thread(target=flood), threading.Thread(target=swallow)]
        for thread in threads:
            thread.start()
        assert all(polite.command("PING") == "PONG" for _ in range(200))
        stop.set()
        threads[0].join()
        greedy.socket.shutdown(socket.SHUT_RDWR)
        threads[1].join()


# ---- users ----

def token_hash(token):
    return hashlib.sha256(token.encode()).hexdigest()


@pytest.fixture(name="guarded")
def fixture_guarded(make_muster, tmp_path):
    """A daemon that asks who one is, and the way to change whom it knows."""
    path = tmp_path / "users"

    def write(*lines):
        path.write_text("".join(line + "\n" for line in lines), encoding="ascii")
    write(f"gate {token_hash('gate-token')} punch", f"boss {token_hash('boss-token')} punch read write admin",
          f"ann {token_hash('ann-token')} punch read employee=e.1")
    muster = make_muster(config={"server": {"users_file": path}})
    return muster, write


def test_who_says_nothing_may_little(guarded):
    muster, _ = guarded
    with muster.raw() as raw:
        assert str(raw.command("CHECKIN", "e.1")) == "NOAUTH Authentication required."
        assert str(raw.command("HELLO", "3")).startswith("NOAUTH HELLO must be called")
        assert str(raw.command("AUTH", "wrong")).startswith("WRONGPASS ")
        assert str(raw.command("AUTH", "boss", "gate-token")).startswith("WRONGPASS ")
        assert str(raw.command("ECHO", "x" * 20_000)).startswith("TOOBIG ")
        assert raw.command("PING") == "PONG"


def test_rights(guarded):
    muster, _ = guarded
    assert muster.client(username="gate", password="gate-token").ping() is True
    assert muster.client(password="boss-token").info("server")["redis_version"]
    with muster.raw() as raw:
        raw.send(encode("AUTH", "gate-token") + encode("CLIENT", "LIST") + encode("HELLO", "3", "AUTH", "boss",
                 "boss-token") + encode("CLIENT", "LIST"))
        ok, refused, hello, listed = replies(raw, 4)
    assert ok == "OK" and hello[b"proto"] == 3 and b"user=boss" in listed
    assert str(refused) == "NOPERM this user has no permissions to run the 'client|list' command"


def test_bound_to_one_employee(guarded):
    muster, _ = guarded
    with muster.raw() as raw:
        assert raw.command("AUTH", "ann", "ann-token") == "OK"
        assert str(raw.command("STATUS", "e.2")) == "NOPERM this user may ask for employee e.1 only"
        assert not str(raw.command("STATUS", "e.1")).startswith("NOPERM")
        assert str(raw.command("ROLL", "1")).startswith("NOPERM ")
    assert "event=denied user=ann command=STATUS target=e.2" in muster.log()


def test_users_are_read_again(guarded):
    muster, write = guarded
    with muster.raw() as gate, muster.raw() as boss:
        assert gate.command("AUTH", "gate-token") == "OK" and boss.command("AUTH", "boss-token") == "OK"
        write("nonsense")
        assert str(boss.command("RELOAD")).startswith("ERR nothing was changed: ")
        write(f"boss {token_hash('boss-token')} read admin")
        assert boss.command("RELOAD") == "OK"
        assert str(gate.command("CHECKIN", "e.1")).startswith("NOAUTH ")
        assert str(boss.command("CHECKIN", "e.1")).startswith("NOPERM ")


# ---- the process ----

def test_reload_by_signal(muster):
    muster.configure({"server": {"max_payload": "2k", "max_line": "1k", "port": muster.port}})
    muster.reload()
    wait_until(lambda: "event=reloaded" in muster.log(), 10, "the reload")
    assert muster.ask("ECHO", "x" * 3000).startswith("TOOBIG ")
    assert "event=needs_restart" not in muster.log()


def test_drain_answers_what_is_under_way(muster):
    with muster.raw() as raw:
        raw.send(encode("PING") * 1000)
        assert raw.read() == "PONG"
        assert muster.terminate() == 0
        assert replies(raw, 999) == ["PONG"] * 999 and raw.at_end()
    with pytest.raises(ConnectionError):
        Raw(muster.port)


def musterd(*arguments, stdin=b""):
    binary = os.environ.get("MUSTERD") or str(Muster.build() / "daemon" / "musterd")
    return subprocess.run([binary, *map(str, arguments)], input=stdin, capture_output=True, timeout=30, check=False)


def test_arguments(tmp_path):
    assert musterd("--version").stdout.startswith(b"musterd ")
    assert b"--held-clock" in musterd("--help").stdout
    assert musterd("--nonsense").returncode == 2
    assert musterd("--hash-token", stdin=b"abc\n").stdout.decode().strip() == token_hash("abc")
    sample = tmp_path / "sample"
    sample.write_bytes(musterd("--help-config").stdout)
    assert musterd("--check-config", sample).returncode == 0
    sample.write_text("[server]\nport = many\n", encoding="ascii")
    checked = musterd("--check-config", sample)
    assert checked.returncode == 1 and b"port = many: expected" in checked.stderr
