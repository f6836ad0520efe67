# SPDX-License-Identifier: MIT
"""`muster work`: a command for each task, on a real musterd; and what it does when the daemon, the command or itself
goes away at the wrong moment."""
import contextlib
import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from harness.cli import Canned, Cli
from harness.muster import Muster
from harness.proxy import Proxy
from harness.wait import wait_until

ALL_BYTES = bytes(range(256)) * 41


def fields(reply):
    """A map of RESP2, its names as text and its values as bytes or numbers."""
    return {name.decode(): value for name, value in zip(reply[::2], reply[1::2])}


class Worker:
    """A `muster work` in the background; .ends are the tasks that it has told of."""

    def __init__(self, cli, *words, env=None):
        self.process = subprocess.Popen(cli.command("work", *words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=cli.environment(env or {}))
        self.lines, self.err = [], []
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.err))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(stream, lines):
        for line in stream:
            lines.append(line.decode("utf-8", "replace"))

    @property
    def ends(self):
        return [json.loads(line) for line in self.lines]

    def wait(self, deadline=30):
        code = self.process.wait(deadline)
        for reader in self.readers:
            reader.join()
        return code

    def stop(self, deadline=30):
        self.process.terminate()
        return self.wait(deadline)


@pytest.fixture(name="cli")
def fixture_cli(muster, tmp_path):
    return Cli(muster.port, tmp_path, Muster.build())


@pytest.fixture(name="work")
def fixture_work(cli):
    """work(words...) starts a worker that ends with the test; --json is given."""
    workers = []

    def start(*words, through=cli, **options):
        workers.append(Worker(through, "--json", *words, **options))
        return workers[-1]
    yield start
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            worker.process.kill()
        worker.process.wait()


@pytest.fixture(name="client")
def fixture_client(muster):
    return muster.client(decode_responses=False)


@pytest.fixture(name="submit")
def fixture_submit(client):
    def submit(payload=b"", *options):
        return fields(client.execute_command("TASK.SUBMIT", "q", payload, *options))["id"].decode()
    return submit


@pytest.fixture(name="get")
def fixture_get(client):
    return lambda task: fields(client.execute_command("TASK.GET", task))


@pytest.fixture(name="stats")
def fixture_stats(client):
    return lambda: fields(client.execute_command("TASK.STATS", "q"))


def status(get, task):
    return get(task)["status"].decode()


def alive(pid):
    with contextlib.suppress(OSError):
        return "Z" not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    return False


def pid_of(path):
    """The number that a command has written, once it is whole."""
    wait_until(lambda: path.exists() and path.read_text(encoding="utf-8").endswith("\n"), 20, f"{path} is written")
    return int(path.read_text(encoding="utf-8"))


# --- how a command ends ----------------------------------------------------------------------------------------

def test_payload_and_result_byte_for_byte(work, submit, get):
    task = submit(ALL_BYTES)
    assert work("q", "--once", "--", "cat").wait() == 0
    seen = get(task)
    assert seen["status"] == b"success" and seen["result"] == ALL_BYTES


def test_environment_and_arguments(work, submit, get):
    task = submit()
    worker = work("q", "--once", "--worker", "me@here", "--", "sh", "-c", "printf '%s|' \"$@\" "
                  '"$MUSTER_TASK_ID" "$MUSTER_TASK_QUEUE" "$MUSTER_TASK_ATTEMPT" "$MUSTER_TASK_TOKEN"; wc -c',
                  "sh", "--jobs", "a b")
    assert worker.wait() == 0
    seen = get(task)
    assert seen["result"].decode() == f"--jobs|a b|{task}|q|1|{worker.ends[0]['token']}|0\n"
    assert seen["worker"] == b"me@here"


def test_inherits_nothing(work, submit, get):
    """A command that lives on must not hold the worker's connections open."""
    task = submit()
    assert work("q", "--once", "--", "ls", "/proc/self/fd").wait() == 0
    assert get(task)["result"].split() == [b"0", b"1", b"2", b"3"], "and the folder that it reads"


@pytest.mark.parametrize("command, error", [
    ("echo out; echo one >&2; echo two >&2; exit 3", b"exit 3: one\ntwo"), ("kill -9 $$", b"signal 9"),
    ("exit 1", b"exit 1"), ("sleep 30", b"ran longer than 300ms"),
    ("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 4", b"exit 4: " + b"x" * 1000)])
def test_failure_and_its_reason(work, submit, get, command, error):
    task = submit(b"", "RETRIES", 0)
    assert work("q", "--once", "--max-time", "300ms", "--", "sh", "-c", command).wait() == 0
    seen = get(task)
    assert (seen["status"], seen["error"], seen["result"]) == (b"failed", error, None)


def test_failure_is_tried_again(client, work, submit, get):
    client.execute_command("TASK.CONFIG", "q", "backoff", "100ms")
    task = submit()
    worker = work("q", "--limit", "3", "--", "sh", "-c", "test $MUSTER_TASK_ATTEMPT = 3")
    assert worker.wait() == 0
    assert [end["end"] for end in worker.ends] == ["failed", "failed", "done"]
    assert [end["attempt"] for end in worker.ends] == [1, 2, 3] and status(get, task) == "success"


def test_given_back(work, submit, get):
    """An exit code may mean: not now. It costs the task nothing."""
    task = submit()
    worker = work("q", "--limit", "2", "--release-on", "75", "--", "sh", "-c", "exit 75")
    assert worker.wait() == 0 and [end["end"] for end in worker.ends] == ["released", "released"]
    seen = get(task)
    assert (seen["status"], seen["retries"], seen["attempt"]) == (b"pending", 0, 1)


def test_long_result_is_cut(make_muster, tmp_path):
    """At what is to be kept, and then at what the server takes."""
    muster = make_muster(config={"task": {"max_result": "1k"}})
    cli = Cli(muster.port, tmp_path, Muster.build())
    ids = [muster.map("TASK.SUBMIT", "q", "x" * 5000)["id"] for _ in range(2)]
    worker = Worker(cli, "q", "--once", "--max-result", "4096", "--", "cat")
    assert worker.wait() == 0
    results = [muster.map("TASK.GET", task)["result"] for task in ids]
    assert results == ["x" * 1024] * 2
    said = "".join(worker.err)
    assert "of 5000 bytes of output, the first 4096" in said and said.count("cut to") == 2


def test_server_that_allows_short_waits(make_muster, tmp_path):
    muster = make_muster(config={"task": {"wait_max": "2s"}})
    worker = Worker(Cli(muster.port, tmp_path, Muster.build()), "q", "--limit", "1", "--", "cat")
    wait_until(lambda: muster.map("TASK.STATS", "q")["waiting"] == 1, 20, "it waits")
    muster.map("TASK.SUBMIT", "q", "x")
    assert worker.wait() == 0 and worker.err == []


def test_output_that_is_left_open(work, submit, get):
    """A task ends with its command, also when that has left something behind that holds its output."""
    task = submit()
    assert work("q", "--once", "--", "sh", "-c", "echo done; sleep 30 & exit 0").wait(10) == 0
    assert get(task)["result"] == b"done\n"


def test_input_that_is_not_read(work, submit, get):
    task = submit(b"x" * 900000)
    assert work("q", "--once", "--", "true").wait() == 0 and status(get, task) == "success"


# --- many ------------------------------------------------------------------------------------------------------

def test_many_at_once(client, work, tmp_path, stats):
    log = tmp_path / "runs"
    with client.pipeline(transaction=False) as pipe:
        for n in range(200):
            pipe.execute_command("TASK.SUBMIT", "q", f"n{n}\n")
        pipe.execute()
    worker = work("q", "--jobs", "4", "--once", "--", "sh", "-c", 'cat >> "$0"', str(log))
    assert worker.wait(60) == 0
    assert sorted(log.read_text(encoding="utf-8").split()) == sorted(f"n{n}" for n in range(200)), "each ran once"
    assert stats()["success"] == 200 and len(worker.ends) == 200


def test_so_many_at_once_and_no_more(work, submit, tmp_path, stats):
    for n in range(6):
        submit(b"%d" % n)
    worker = work("q", "--jobs", "3", "--", "sh", "-c", f"echo $$ > {tmp_path}/$(cat); exec sleep 60")
    wait_until(lambda: len(list(tmp_path.glob("[0-9]"))) == 3, 20, "three run")
    assert (stats()["running"], stats()["ready"]) == (3, 3)
    worker.process.terminate()
    worker.process.send_signal(signal.SIGINT)
    assert worker.wait() == 0 and [end["end"] for end in worker.ends] == ["released"] * 3


def test_waits_for_work(work, submit, stats):
    worker = work("q", "--jobs", "2", "--limit", "2", "--", "cat")
    wait_until(lambda: stats()["waiting"] == 1, 20, "it waits")
    submit(b"a")
    wait_until(lambda: len(worker.ends) == 1, 20, "the first is done")
    submit(b"b")
    assert worker.wait() == 0 and [end["end"] for end in worker.ends] == ["done"] * 2


# --- beats -----------------------------------------------------------------------------------------------------

def test_beats_keep_a_long_task(client, work, submit, get, tmp_path):
    """It runs for several leases, and nobody else gets it."""
    task = submit(b"", "LEASE", "400ms")
    worker = work("q", "--limit", "1", "--", "sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 2")
    pid_of(tmp_path / "pid")
    assert client.execute_command("TASK.CLAIM", "q", "other", "WAIT", 1500) == []
    assert worker.wait() == 0
    seen = get(task)
    assert (seen["status"], seen["attempt"], seen["crashes"]) == (b"success", 1, 0)


def test_lease_of_the_worker(work, submit, get, tmp_path):
    task = submit(b"", "LEASE", "1h")
    worker = work("q", "--lease", "500ms", "--", "sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    pid_of(tmp_path / "pid")
    seen = get(task)
    assert 0 < seen["deadline"] - seen["claimed"] < 3_000
    worker.process.kill()
    wait_until(lambda: status(get, task) == "pending", 20, "the task is back")


def test_killed_worker(client, work, submit, get, tmp_path):
    """kill -9: its command goes with it, and the task is back after the lease."""
    task = submit(b"", "LEASE", "1s")
    worker = work("q", "--", "sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    command = pid_of(tmp_path / "pid")
    worker.process.kill()
    wait_until(lambda: not alive(command), 10, "the command has ended")
    again = client.execute_command("TASK.CLAIM", "q", "other", "WAIT", 20000)
    assert [(entry["id"].decode(), entry["attempt"]) for entry in map(fields, again)] == [(task, 2)]


def test_cancel_ends_the_command(client, work, submit, get, tmp_path):
    task = submit(b"", "LEASE", "600ms")
    worker = work("q", "--limit", "1", "--", "sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    command = pid_of(tmp_path / "pid")
    client.execute_command("TASK.CANCEL", task)
    assert worker.wait() == 0 and not alive(command)
    assert status(get, task) == "cancelled" and worker.ends[0]["end"] == "cancelled"


def test_kill_follows_the_grace(client, work, submit, get, tmp_path):
    """A command that does not heed SIGTERM gets SIGKILL, and what it has started too."""
    task = submit(b"", "LEASE", "600ms")
    worker = work("q", "--limit", "1", "--grace", "200ms", "--", "sh", "-c",
                  f"trap '' TERM; sleep 60 & echo $! > {tmp_path}/pid; while :; do wait; done")
    grandchild = pid_of(tmp_path / "pid")
    client.execute_command("TASK.CANCEL", task)
    assert worker.wait() == 0 and worker.ends[0]["signal"] == 9
    wait_until(lambda: not alive(grandchild), 10, "nothing is left")
    assert status(get, task) == "cancelled"


def test_what_a_command_has_started_goes_with_it(client, work, submit, get, tmp_path):
    """The command heeds SIGTERM, what it has started does not: that is not waited for, and does not stay."""
    task = submit(b"", "LEASE", "600ms")
    worker = work("q", "--limit", "1", "--grace", "60s", "--", "sh", "-c",
                  f"sh -c 'trap \"\" TERM; echo $$ > {tmp_path}/pid; exec sleep 60' & wait")
    grandchild = pid_of(tmp_path / "pid")
    client.execute_command("TASK.CANCEL", task)
    assert worker.wait() == 0 and worker.ends[0]["signal"] == signal.SIGTERM
    wait_until(lambda: not alive(grandchild), 10, "nothing is left")
    assert status(get, task) == "cancelled"


def test_claim_that_ended(work, submit, get, client, tmp_path):
    """The claim is somebody else's: the command is stopped and nothing is told."""
    task = submit(b"", "LEASE", "1s")
    worker = work("q", "--limit", "1", "--", "sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    command = pid_of(tmp_path / "pid")
    worker.process.send_signal(signal.SIGSTOP)
    other = fields(client.execute_command("TASK.CLAIM", "q", "other", "WAIT", 20000, "LEASE", "60s")[0])
    worker.process.send_signal(signal.SIGCONT)
    assert worker.wait() == 0 and not alive(command) and worker.ends[0]["end"] == "stale"
    assert (status(get, task), get(task)["worker"]) == ("running", b"other")
    assert client.execute_command("TASK.DONE", task, other["token"]) == b"OK"


def test_never_two_commands_for_one_task(work, submit, get, tmp_path):
    """It gets its own task once more, since it was too slow: the old command is gone before the new one begins."""
    task = submit(b"", "LEASE", "500ms", "RETRIES", 9)
    worker = work("q", "--jobs", "2", "--grace", "300ms", "--", "sh", "-c", f"trap '' TERM; cd {tmp_path}; "
                  "kill -0 $(cat pid) 2>&- && touch twice; echo $$ > pid; echo >> runs; exec sleep 60")
    pid_of(tmp_path / "pid")
    worker.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: get(task)["attempt"] == 2, 20, "its other place has got the task again")
    worker.process.send_signal(signal.SIGCONT)
    wait_until(lambda: (tmp_path / "runs").read_text(encoding="utf-8").count("\n") >= 2, 20, "it runs again")
    assert not (tmp_path / "twice").exists()


# --- going away ------------------------------------------------------------------------------------------------

def test_sigterm_lets_commands_end(work, submit, get, tmp_path):
    first, second = submit(), submit()
    worker = work("q", "--", "sh", "-c",
                  f"echo $$ > {tmp_path}/pid; while ! test -e {tmp_path}/go; do sleep 0.05; done")
    pid_of(tmp_path / "pid")
    worker.process.terminate()
    wait_until(lambda: "Ending with" in "".join(worker.err), 10, "it has said so")
    assert worker.process.poll() is None
    (tmp_path / "go").touch()
    assert worker.wait() == 0
    assert (status(get, first), status(get, second)) == ("success", "pending")


def test_sigterm_while_it_waits(work, stats):
    worker = work("q", "--", "cat")
    wait_until(lambda: stats()["waiting"] == 1, 20, "it waits")
    assert worker.stop(5) == 0
    wait_until(lambda: stats()["waiting"] == 0, 10, "nobody waits")


def test_second_sigterm_gives_back(work, submit, get, tmp_path):
    task = submit()
    worker = work("q", "--", "sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    command = pid_of(tmp_path / "pid")
    worker.process.terminate()
    wait_until(lambda: "Ending with" in "".join(worker.err), 10, "it has said so")
    assert worker.stop() == 0 and not alive(command)
    seen = get(task)
    assert (seen["status"], seen["retries"], seen["crashes"]) == (b"pending", 0, 0)


def test_daemon_goes_and_comes_back(muster, work, submit, get, tmp_path):
    """The command goes on meanwhile, and its end is told afterwards."""
    task = submit(b"", "LEASE", "30s")
    worker = work("q", "--", "sh", "-c",
                  f"echo $$ > {tmp_path}/pid; while ! test -e {tmp_path}/go; do sleep 0.05; done; echo fine")
    command = pid_of(tmp_path / "pid")
    muster.kill9()
    wait_until(lambda: "trying again" in "".join(worker.err), 20, "it has noticed")
    (tmp_path / "go").touch()
    wait_until(lambda: not alive(command), 20, "the command has ended")
    assert worker.process.poll() is None
    muster.start()
    wait_until(lambda: len(worker.ends) == 1, 30, "the end is told")
    seen = get(task)
    assert (seen["status"], seen["result"], seen["attempt"]) == (b"success", b"fine\n", 1)
    submit()
    wait_until(lambda: len(worker.ends) == 2, 30, "it goes on")
    assert worker.stop() == 0


def test_answers_that_are_lost(muster, client, cli, work, tmp_path, stats):
    """Connections are cut again and again, in the middle of everything: each task is done, and told once."""
    with Proxy(muster.port) as proxy, client.pipeline(transaction=False) as pipe:
        for n in range(120):
            pipe.execute_command("TASK.SUBMIT", "q", f"n{n}\n", "LEASE", "2s", "RETRIES", 50)
        pipe.execute()
        worker = work("q", "--jobs", "3", "--", "sh", "-c", 'cat >> "$0"', str(tmp_path / "runs"),
                      through=Cli(proxy.port, tmp_path, Muster.build()))
        for n in range(10, 120, 10):
            wait_until(lambda n=n: len(worker.lines) >= n, 60, f"{n} are done")
            proxy.cut()
        wait_until(lambda: stats()["success"] == 120, 60, "all are done")
        assert worker.stop() == 0
    assert set((tmp_path / "runs").read_text(encoding="utf-8").split()) == {f"n{n}" for n in range(120)}
    done = [end["id"] for end in worker.ends if end["end"] == "done"]
    assert len(done) == len(set(done)) == 120


# --- what can't be done ----------------------------------------------------------------------------------------

def test_program_that_is_not_there(tmp_path):
    result = Cli(1, tmp_path, Muster.build())("work", "q", "--", "no-such-program")
    assert result.code == 2 and "no-such-program: no such program" in result.err


def test_program_that_goes_away(work, submit, get, tmp_path):
    """It is the worker's fault, not the task's."""
    program = tmp_path / "program"
    program.write_text("#!/nowhere/sh\n", encoding="utf-8")
    program.chmod(0o755)
    task = submit()
    worker = work("q", "--", str(program))
    assert worker.wait() == 1 and "can't start" in "".join(worker.err)
    seen = get(task)
    assert (seen["status"], seen["retries"]) == (b"pending", 0)


def test_nobody_there(tmp_path):
    result = Cli(1, tmp_path, Muster.build())("work", "q", "--once", "--", "true")
    assert result.code == 3 and "can't reach 127.0.0.1:1" in result.err


def test_refused(tmp_path):
    with Canned(lambda words: b"-NOPERM no\r\n" if words[0] == "TASK.CLAIM" else b"+OK\r\n") as server:
        result = Cli(server.port, tmp_path, Muster.build())("work", "q", "--", "true")
    assert (result.code, result.err) == (1, "muster: NOPERM no\n")
    with Canned(lambda _: b"-NOAUTH wrong token\r\n") as server:
        result = Cli(server.port, tmp_path, Muster.build())(
            "work", "q", "--", "true", env={"MUSTER_TOKEN": "s3cret"})
    assert result.code == 1 and result.err == "muster: NOAUTH wrong token\n"


def test_busy_is_not_the_end(tmp_path):
    """What is refused for now is asked again."""
    answers = iter([b"-BUSY later\r\n", b"-NOTREADY starting\r\n", b"*0\r\n"])
    with Canned(lambda words: next(answers) if words[0] == "TASK.CLAIM" else b"+OK\r\n") as server:
        assert Cli(server.port, tmp_path, Muster.build())("work", "q", "--once", "--", "true").code == 0


def test_closed_standard_input(cli, submit, get):
    task = submit(b"bytes")
    subprocess.run([*cli.command("work", "q", "--once", "--", "cat")], check=True, timeout=30, close_fds=True,
                   env=cli.environment({}), preexec_fn=lambda: os.close(0))
    assert get(task)["result"] == b"bytes"


@pytest.mark.parametrize("words", [
    (), ("q",), ("q", "--"), ("q q", "--", "true"), ("q", "--jobs", "0", "--", "true"),
    ("q", "--lease", "x", "--", "true"), ("q", "--nope", "--", "true"), ("q", "--worker", "a b", "--", "true"),
    ("q", "--release-on", "0", "--", "true")])
def test_wrong_usage_is_2(tmp_path, words):
    result = Cli(1, tmp_path, Muster.build())("work", *words)
    assert result.code == 2 and result.err and not result.out
