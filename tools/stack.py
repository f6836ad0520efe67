#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The private servers of the demo, the tests and the benchmarks: Redis, RabbitMQ, MariaDB and musterd.

Everything lives in one folder and listens on free loopback ports that are kept from one start to the next.
Every process, and whatever it forks (RabbitMQ's epmd too), carries the variable MUSTER_STACK_MEMBER with the
component's name and the folder. A process belongs to the stack when its environment says so; the pid files are
for people. So a stale pid file, a reboot or an interrupted start can't make this end a stranger, nor leave
something behind.

As a program: stack.py [--dir DIR] up|down|status|env. From Python: Stack(dir).start(), stop(), kill(name), ...
"""
import argparse
import contextlib
import fcntl
import json
import os
import pwd
import random
import resource
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = "MUSTER_STACK_MEMBER"
SERVERS = ("redis", "rabbitmq", "mariadb")
ALL = SERVERS + ("musterd",)
READY_SECONDS = {"redis": 30, "rabbitmq": 120, "mariadb": 90, "musterd": 60}
PORT_RANGE = (15000, 32000)  # below the range that outgoing connections take theirs from


class StackError(Exception):
    """A server that could not be started or ended; the text says which, why, and where its log is."""


def port_is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port(taken=()):
    """A loopback port that nobody listens on, outside the range of outgoing connections."""
    for _ in range(1000):
        port = random.randrange(*PORT_RANGE)
        if port not in taken and port_is_free(port):
            return port
    raise StackError("no free port on 127.0.0.1")


def raise_file_limit(wanted=65536):
    """Lets the children have as many open files as a daemon with 20,000 clients takes, or all that we may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((wanted, max(hard, wanted)), (hard, hard)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            return


def exchange(port, request, size, timeout=2.0):
    """What a server answers to `request`, up to `size` bytes; b"" when it is not there."""
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout) as s:
            s.settimeout(timeout)
            if request:
                s.sendall(request)
            while len(answer) < size:
                chunk = s.recv(size - len(answer))
                if not chunk:
                    break
                answer += chunk
    except OSError:
        pass
    return answer


def write_private(path, text):
    """Writes a file that only its owner may read, whole or not at all."""
    temporary = path.with_name(path.name + ".new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
        f.write(text)
    temporary.replace(path)


def mark_of(pid):
    """The value of the mark in a living process's environment; None for a process that is no stack's."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return None
    for variable in environment:
        if variable.startswith(f"{MARK}=".encode()) and state not in "ZX":
            return variable.decode().split("=", 1)[1]
    return None


def members(folder):
    """(pid, mark) of every living process of the stack in this folder."""
    marks = ((int(entry), mark_of(entry)) for entry in os.listdir("/proc") if entry.isdigit())
    return [(pid, mark) for pid, mark in marks if mark is not None and mark.endswith(f":{folder}")]


def pidfd_of(pid, mark):
    """A handle of the process, only if it still is who we think it is: the number may have been reused."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    if mark_of(pid) == mark:
        return fd
    os.close(fd)
    return None


def send(pid, mark, number):
    fd = pidfd_of(pid, mark)
    if fd is not None:
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(fd, number)
        os.close(fd)


def wait_gone(fds, seconds):
    """True when the processes behind the handles have ended within the time."""
    deadline = time.monotonic() + seconds
    poll = select.poll()
    left = set(fds)
    for fd in left:
        poll.register(fd, select.POLLIN)
    while left and time.monotonic() < deadline:
        for fd, _ in poll.poll(max(1, (deadline - time.monotonic()) * 1000)):
            poll.unregister(fd)
            left.discard(fd)
    return not left


def passable(path):
    """Whether every folder above lets other users through."""
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


class Component:
    """One server: its folder, ports, command and the question that tells whether it is ready."""

    name = ""
    ports = ()
    grace = 20  # seconds from SIGTERM to SIGKILL

    def __init__(self, stack):
        self.stack = stack
        self.dir = stack.dir / self.name
        self.log = self.dir / "log"
        self.pid_file = stack.dir / f"{self.name}.pid"
        self.child = None

    @property
    def mark(self):
        return f"{self.name}:{self.stack.dir}"

    def port(self, name=None):
        return self.stack.state["ports"][name or self.ports[0]]

    def pids(self):
        return [pid for pid, mark in members(self.stack.dir) if mark == self.mark]

    def main_pid(self):
        """The process that serves, or None. Where a server is several processes, the one that was started."""
        pids = self.pids()
        with contextlib.suppress(OSError, ValueError):
            noted = int(self.pid_file.read_text())
            if noted in pids:
                return noted
        return min(pids) if pids else None

    def prepare(self):
        """Writes what the server reads at its start."""

    def command(self):
        raise NotImplementedError

    def environment(self):
        return {}

    def is_ready(self):
        raise NotImplementedError

    def child_environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("RABBITMQ_", "ERL_", "NOTIFY_", "LISTEN_"))}
        return {**env, **self.environment(), MARK: self.mark}

    def spawn(self):
        """Starts the process in a session of its own, so that ctrl-C of ours does not reach it."""
        raise_file_limit()
        self.dir.mkdir(parents=True, exist_ok=True)
        self.stack.choose_ports(self)
        self.prepare()
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                self.command(), env=self.child_environment(), cwd=self.dir, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True)
        self.pid_file.write_text(f"{self.child.pid}\n")

    def wait_ready(self):
        deadline = time.monotonic() + READY_SECONDS[self.name]
        pause = 0.01
        while not self.is_ready():
            if self.child is not None and self.child.poll() is not None:
                raise StackError(f"{self.name} ended with {self.child.returncode} at its start\n{self.log_tail()}")
            if self.stack.interrupted:
                raise StackError(f"{self.name}: interrupted while it was starting")
            if time.monotonic() > deadline:
                raise StackError(f"{self.name} is not ready after {READY_SECONDS[self.name]} s\n{self.log_tail()}")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.2)
        self.note_pid()

    def note_pid(self):
        pid = self.main_pid()
        if pid is not None:
            self.pid_file.write_text(f"{pid}\n")

    def log_tail(self, lines=15):
        with contextlib.suppress(OSError):
            tail = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
            return f"the end of {self.log}:\n" + "\n".join("    " + line for line in tail)
        return f"no log at {self.log}"

    def start(self):
        if self.main_pid() is None:
            self.spawn()
        self.wait_ready()

    def send_signal(self, number):
        for pid in self.pids():
            send(pid, self.mark, number)

    def stop(self, number=signal.SIGTERM):
        """Ends the server and all it started: the main process first with `number`, then what stays behind."""
        self.end([self.main_pid()], number, self.grace)
        for _ in range(3):
            self.end(self.pids(), signal.SIGTERM if number != signal.SIGKILL else number, 3)
        if self.pids():
            raise StackError(f"{self.name} can't be ended: pids {self.pids()}")
        self.pid_file.unlink(missing_ok=True)

    def end(self, pids, number, grace):
        fds = [fd for fd in (pidfd_of(pid, self.mark) for pid in pids if pid) if fd is not None]
        for fd in fds:
            for n in (number, signal.SIGCONT):  # a paused process takes its signal only when it runs
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(fd, n)
        if not wait_gone(fds, grace):
            for fd in fds:
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
            wait_gone(fds, 5)
        for fd in fds:
            os.close(fd)
        if self.child is not None:
            self.child.poll()


class Redis(Component):
    name = "redis"
    ports = ("redis",)

    def prepare(self):
        (self.dir / "data").mkdir(exist_ok=True)
        write_private(self.dir / "redis.conf", "\n".join([
            "bind 127.0.0.1", f"port {self.port()}", "daemonize no", f"dir {json.dumps(str(self.dir / 'data'))}",
            "appendonly yes", f"appendfsync {self.stack.state['appendfsync']}", "save \"\"",
            "maxmemory-policy noeviction", "set-proc-title no", "enable-debug-command local",
            "maxclients 10000", ""]))

    def command(self):
        return ["redis-server", str(self.dir / "redis.conf")]

    def is_ready(self):
        return exchange(self.port(), b"PING\r\n", 7) == b"+PONG\r\n"


class RabbitMQ(Component):
    name = "rabbitmq"
    ports = ("amqp", "erlang", "epmd")
    grace = 40
    node = "muster@localhost"

    def prepare(self):
        write_private(self.dir / "rabbitmq.conf", "\n".join([
            f"default_user = {self.stack.state['amqp_user']}", f"default_pass = {self.stack.state['amqp_password']}",
            "log.console = true", "log.console.level = warning", "log.file = false", "disk_free_limit.absolute = 50MB",
            ""]))
        (self.dir / "plugins").write_text("[].\n")

    def command(self):
        return ["/usr/lib/rabbitmq/bin/rabbitmq-server"]  # the wrapper on the PATH changes the user

    def environment(self):
        return {
            "HOME": str(self.dir), "RABBITMQ_NODENAME": self.node, "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port("amqp")), "RABBITMQ_DIST_PORT": str(self.port("erlang")),
            "ERL_EPMD_PORT": str(self.port("epmd")), "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(self.dir / "mnesia"), "RABBITMQ_LOG_BASE": str(self.dir / "logs"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.dir / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self.dir / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(self.dir / "rabbitmq-env.conf"),
            # Idle schedulers sleep instead of spinning: two cores are shared with all the rest.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none",
        }

    def main_pid(self):
        for pid in self.pids():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().startswith("beam"):
                    return pid
        return super().main_pid()

    def is_ready(self):
        return exchange(self.port("amqp"), b"AMQP\0\0\x09\x01", 1) == b"\x01"

    def start(self):
        pid = self.main_pid()
        if pid is not None and not Path(f"/proc/{pid}/comm").read_text().startswith("beam"):
            self.stop(signal.SIGKILL)  # an epmd or a shell left over from a killed node
        super().start()

    def evaluate(self, expression):
        """Evaluates Erlang in the node and returns what it gives: rabbitmqctl's work without its two seconds."""
        cookie = (self.dir / ".erlang.cookie").read_text().strip()
        done = subprocess.run(
            ["erl_call", "-sname", self.node, "-c", cookie, "-e"], input=f"{expression}.\n",
            env=self.child_environment(), capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0 or not done.stdout.startswith("{ok, "):
            raise StackError(f"{expression} failed in RabbitMQ: {done.stdout}{done.stderr}")
        return done.stdout[len("{ok, "):-1]

    def ctl(self, *arguments):
        """Runs rabbitmqctl against this node; its output."""
        done = subprocess.run(
            ["/usr/lib/rabbitmq/bin/rabbitmqctl", "--quiet", *arguments], env=self.child_environment(),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise StackError(f"rabbitmqctl {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def add_vhost(self, name):
        user = self.stack.state["amqp_user"]
        self.evaluate(f'rabbit_vhost:add(<<"{name}">>, <<"{user}">>), rabbit_auth_backend_internal:set_permissions('
                      f'<<"{user}">>, <<"{name}">>, <<".*">>, <<".*">>, <<".*">>, <<"{user}">>)')

    def delete_vhost(self, name):
        self.evaluate(f'rabbit_vhost:delete(<<"{name}">>, <<"{self.stack.state["amqp_user"]}">>)')


class MariaDB(Component):
    name = "mariadb"
    ports = ("mysql",)
    grace = 40

    def user(self):
        """As root, the packages' own user where it can reach the folder, otherwise whoever runs this."""
        if os.geteuid() == 0 and passable(self.dir):
            return "mysql"
        return pwd.getpwuid(os.geteuid()).pw_name

    def prepare(self):
        if self.user() == "mysql":
            shutil.chown(self.dir, "mysql")
            self.dir.chmod(0o750)
        if not (self.dir / "data" / "mysql").is_dir() or not (self.dir / "installed").exists():
            self.install()
        self.write_accounts()

    def install(self):
        """Tried twice: with several of them at once on two processors it was seen to fail."""
        if not self.try_install() and not self.try_install():
            log = self.log.read_text(encoding="utf-8", errors="replace")
            wrong = [line for line in log.splitlines() if "ERROR" in line]
            raise StackError("\n".join(["mariadb-install-db failed", *wrong[:5], self.log_tail()]))
        (self.dir / "installed").touch()

    def try_install(self):
        shutil.rmtree(self.dir / "data", ignore_errors=True)
        with open(self.log, "ab") as log:
            done = subprocess.run(
                ["mariadb-install-db", "--no-defaults", f"--user={self.user()}", f"--datadir={self.dir / 'data'}",
                 "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"],
                env=self.child_environment(), cwd=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                check=False)
        return done.returncode == 0

    def write_accounts(self):
        """The server runs this file at every start: accounts are right even when a start was interrupted."""
        state = self.stack.state
        lines = [f"CREATE DATABASE IF NOT EXISTS `{state['mysql_database']}` CHARACTER SET utf8mb4;"]
        for host in ("localhost", "127.0.0.1"):
            account = f"'{state['mysql_user']}'@'{host}'"
            lines += [f"CREATE OR REPLACE USER {account} IDENTIFIED BY '{state['mysql_password']}';",
                      f"GRANT ALL ON `{state['mysql_database']}%`.* TO {account};",
                      f"CREATE OR REPLACE USER 'root'@'{host}' IDENTIFIED BY '{state['mysql_root_password']}';",
                      f"GRANT ALL ON *.* TO 'root'@'{host}' WITH GRANT OPTION;"]
        path = self.dir / "accounts.sql"
        write_private(path, "\n".join(lines) + "\n")
        if self.user() == "mysql":
            shutil.chown(path, "mysql")

    def command(self):
        return ["mariadbd", "--no-defaults", f"--user={self.user()}", f"--datadir={self.dir / 'data'}",
                "--socket=mysql.sock", f"--port={self.port()}", "--bind-address=127.0.0.1", "--skip-name-resolve",
                f"--pid-file={self.dir / 'data' / 'mariadbd.pid'}", f"--init-file={self.dir / 'accounts.sql'}",
                "--character-set-server=utf8mb4", "--innodb-buffer-pool-size=512M"]

    def is_ready(self):
        return len(exchange(self.port(), b"", 5)) == 5


class Musterd(Component):
    name = "musterd"
    ports = ("muster",)
    grace = 30

    def prepare(self):
        binary = Path(self.command()[0])
        if not os.access(binary, os.X_OK):
            raise StackError(f"{binary} is missing: ./dev build makes it")
        write_config(self.dir / "musterd.conf", self.config())

    def config(self):
        state = self.stack.state
        return {
            "server": {"listen": "127.0.0.1", "port": self.port()},
            "redis": {"host": "127.0.0.1", "port": self.port("redis")},
            "amqp": {"host": "127.0.0.1", "port": self.port("amqp"), "user": state["amqp_user"],
                     "password": state["amqp_password"]},
            "mysql": {"host": "127.0.0.1", "port": self.port("mysql"), "user": state["mysql_user"],
                      "password": state["mysql_password"], "database": state["mysql_database"]},
            **self.stack.musterd_config,
        }

    def command(self):
        binary = os.environ.get("MUSTERD") or str(self.stack.build / "daemon" / "musterd")
        held = ["--held-clock"] if self.stack.held_clock else []
        return [binary, "--config", str(self.dir / "musterd.conf"), *held]

    def is_ready(self):
        """It takes commands: the stores are known and no day is left unclosed from before."""
        return b"\r\nready:1\r\n" in exchange(self.port(), b"INFO server\r\nQUIT\r\n", 65536)

    def start(self):
        """A running daemon is started anew when its servers have moved or it is to run in another way."""
        pid = self.main_pid()
        if pid is not None and not (self.is_configured() and command_line(pid) == self.command()):
            self.stop()
        super().start()

    def is_configured(self):
        path = self.dir / "musterd.conf"
        return path.exists() and path.read_text(encoding="utf-8") == config_text(self.config())


def command_line(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    return []


def config_text(sections):
    """A musterd.conf from {section: {key: value}}."""
    lines = []
    for section, keys in sections.items():
        lines += [f"[{section}]", *(f"{key} = {value}" for key, value in keys.items()), ""]
    return "\n".join(lines)


def write_config(path, sections):
    write_private(path, config_text(sections))


class Stack:
    """The servers in one folder. Not for use by two threads; two processes take turns by a lock file."""

    def __init__(self, directory, build=None, appendfsync=None, held_clock=False, musterd_config=None):
        self.dir = Path(directory).resolve()
        self.build = Path(build or ROOT / "build").resolve()
        self.held_clock = held_clock
        self.musterd_config = musterd_config or {}
        self.dir.mkdir(parents=True, exist_ok=True)
        self.state = self.load()
        if appendfsync:
            self.state["appendfsync"] = appendfsync
        self.interrupted = False
        self.components = {c.name: c(self) for c in (Redis, RabbitMQ, MariaDB, Musterd)}

    def __getitem__(self, name):
        return self.components[name]

    @contextlib.contextmanager
    def lock(self):
        with open(self.dir / "lock", "w", encoding="utf-8") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            yield

    def load(self):
        state = {
            "appendfsync": "everysec", "ports": {},
            "amqp_user": "muster", "amqp_password": secrets.token_hex(12),
            "mysql_user": "muster", "mysql_password": secrets.token_hex(12), "mysql_database": "muster",
            "mysql_root_password": secrets.token_hex(12),
        }
        with contextlib.suppress(OSError, ValueError):
            state.update(json.loads((self.dir / "state.json").read_text()))
        return state

    def save(self):
        write_private(self.dir / "state.json", json.dumps(self.state, indent=1) + "\n")

    def choose_ports(self, component):
        """Keeps a port that is still free and takes another where it is not."""
        ports = self.state["ports"]
        for name in component.ports:
            if name not in ports or not port_is_free(ports[name]):
                ports[name] = free_port(ports.values())

    def reserve_ports(self):
        for component in self.components.values():
            if component.main_pid() is None:
                self.choose_ports(component)
        self.save()

    def start(self, names=ALL, report=lambda text: None):
        """Starts what is not running, the servers at the same time, musterd when they are up."""
        with self.lock():
            self.state = {**self.load(), "appendfsync": self.state["appendfsync"]} if self.saved() else self.state
            self.reserve_ports()
            self.start_together([n for n in names if n in SERVERS], report)
            if "musterd" in names:
                self.start_together(["musterd"], report)
            self.save()
            self.write_env()

    def saved(self):
        return (self.dir / "state.json").exists()

    def start_together(self, names, report):
        with ThreadPoolExecutor(max_workers=len(ALL)) as pool:
            begun = time.monotonic()
            jobs = {pool.submit(self[name].start): name for name in names}
            failures = []
            try:
                for job in as_completed(jobs):
                    if job.exception() is None:
                        name = jobs[job]
                        report(f"{name} ready on port {self[name].port()} after {time.monotonic() - begun:.1f} s")
                    elif isinstance(job.exception(), (StackError, OSError)):
                        failures.append(f"{jobs[job]}: {job.exception()}")
                    else:
                        raise job.exception()
            except BaseException:
                self.interrupted = True  # the other starts need not be waited for
                raise
        if failures:
            raise StackError("\n".join(failures))

    def stop(self, names=ALL, discard=False, report=lambda text: None):
        """Ends the named servers, musterd first; `discard` also removes the folder and needs no clean end."""
        with self.lock():
            number = signal.SIGKILL if discard else signal.SIGTERM
            if "musterd" in names:
                self["musterd"].stop()
            with ThreadPoolExecutor(max_workers=len(ALL)) as pool:
                for job in [pool.submit(self[n].stop, number) for n in names if n in SERVERS]:
                    job.result()
            if set(names) == set(ALL):
                self.sweep()
            self.write_env()
            report("stopped")
        if discard:
            shutil.rmtree(self.dir, ignore_errors=True)

    def sweep(self):
        """Ends what tests have started beside the components in the name of this stack."""
        for pid, mark in members(self.dir):
            send(pid, mark, signal.SIGKILL)

    def restart(self, name):
        self[name].stop()
        self[name].start()

    def kill(self, name):
        """kill -9 of the server and of all its processes; start([name]) brings it back."""
        self[name].stop(signal.SIGKILL)

    def pause(self, name):
        self[name].send_signal(signal.SIGSTOP)

    def resume(self, name):
        self[name].send_signal(signal.SIGCONT)

    def env(self):
        """What a program needs to reach the servers."""
        ports, state = self.state["ports"], self.state
        return {
            "MUSTER_PORT": ports.get("muster", ""), "MUSTER_PID": self["musterd"].main_pid() or "",
            "REDIS_PORT": ports.get("redis", ""), "AMQP_PORT": ports.get("amqp", ""),
            "AMQP_USER": state["amqp_user"], "AMQP_PASSWORD": state["amqp_password"],
            "MYSQL_PORT": ports.get("mysql", ""), "MYSQL_USER": state["mysql_user"],
            "MYSQL_PASSWORD": state["mysql_password"], "MYSQL_DATABASE": state["mysql_database"],
            "MYSQL_ROOT_PASSWORD": state["mysql_root_password"], "STACK_DIR": str(self.dir),
        }

    def write_env(self):
        text = "".join(f"{key}={quoted(str(value))}\n" for key, value in self.env().items())
        write_private(self.dir / "stack.env", text)

    def status(self):
        """(name, pid or None, port, ready, resident KiB) of each component."""
        rows = []
        for name in ALL:
            component = self[name]
            pid = component.main_pid()
            port = self.state["ports"].get(component.ports[0])
            rows.append((name, pid, port, pid is not None and component.is_ready(), resident(pid)))
        return rows


def quoted(value):
    plain = all(c.isalnum() or c in "_-./" for c in value)
    return value if plain else "'" + value.replace("'", "'\\''") + "'"


def resident(pid):
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0


def print_status(stack):
    rows = stack.status()
    print(f"{'server':10} {'state':10} {'pid':>8} {'port':>6} {'memory':>10}  log")
    for name, pid, port, ready, kib in rows:
        state = "ready" if ready else "starting" if pid else "down"
        memory = f"{kib / 1024:.1f} MiB" if kib else "-"
        print(f"{name:10} {state:10} {pid or '-':>8} {port or '-':>6} {memory:>10}  {stack[name].log}")
    return 0 if all(row[3] for row in rows) else 3


def arguments():
    parser = argparse.ArgumentParser(prog="stack.py", description="Private Redis, RabbitMQ, MariaDB and musterd.")
    parser.add_argument("--dir", default=str(ROOT / ".run"), help="their folder (default: .run of the source tree)")
    parser.add_argument("--build", help="build folder that musterd is taken from (default: build)")
    actions = parser.add_subparsers(dest="action", required=True)
    up = actions.add_parser("up", help="start what is not running, keep the data, write stack.env")
    up.add_argument("component", nargs="*", choices=[*ALL, []], help="only these")
    up.add_argument("--no-muster", action="store_true", help="the servers without musterd")
    up.add_argument("--held-clock", action="store_true", help="musterd's time stands still until CLOCK.SET")
    up.add_argument("--appendfsync", choices=["always", "everysec", "no"], help="of Redis (default everysec)")
    down = actions.add_parser("down", help="end everything")
    down.add_argument("component", nargs="*", choices=[*ALL, []], help="only these")
    down.add_argument("--discard", action="store_true", help="remove the data too")
    actions.add_parser("status", help="what runs where; exit code 0 when all do, 3 otherwise")
    actions.add_parser("env", help="print what stack.env holds")
    return parser.parse_args()


def run(args):
    stack = Stack(args.dir, build=args.build, appendfsync=getattr(args, "appendfsync", None),
                  held_clock=getattr(args, "held_clock", False))

    def report(text):
        print(f"stack: {text}", flush=True)

    if args.action == "up":
        stack.start(args.component or (SERVERS if args.no_muster else ALL), report)
        report(f"addresses are in {stack.dir / 'stack.env'}")
    elif args.action == "down":
        stack.stop(args.component or ALL, args.discard, report)
    elif args.action == "status":
        return print_status(stack)
    else:
        print("\n".join(f"{key}={quoted(str(value))}" for key, value in stack.env().items()))
    return 0


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(arguments())
    except StackError as error:
        print(f"stack: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stack: interrupted; `down` ends what has been started", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
