# SPDX-License-Identifier: MIT
"""Runs the `muster` command line tool, and a server of canned answers for what a real musterd says rarely."""
import json
import os
import socketserver
import subprocess
import threading

import stack as servers

# Nothing of the machine's own may reach the tool.
FOREIGN = ("MUSTER_", "AMQP_", "XDG_", "NO_COLOR", "TZ", "LC_", "LANG")


class Result:
    """What one run said; .rows is its standard output as JSON, a document a line."""

    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode("utf-8", "replace")

    @property
    def rows(self):
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def row(self):
        assert len(self.rows) == 1, self.out + self.err
        return self.rows[0]


class Cli:
    """cli("status", "E1", "--json") runs the tool against a port of this machine."""

    def __init__(self, port, home, build):
        self.port = port
        self.home = home
        self.binary = os.environ.get("MUSTER") or str(build / "cli" / "muster")

    def environment(self, extra):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        return {**kept, "HOME": str(self.home), "TZ": "UTC", "MUSTER_PORT": str(self.port), **extra}

    def command(self, *words):
        return [self.binary, *map(str, words)]

    def __call__(self, *words, stdin=b"", env=None, timeout=90):
        stdin = stdin.encode() if isinstance(stdin, str) else stdin
        return Result(subprocess.run(self.command(*words), input=stdin, capture_output=True, timeout=timeout,
                                     check=False, env=self.environment(env or {})))


class Canned:
    """A server that answers as `answer(words)` says: bytes, or None to close the connection. It keeps what it was
    asked in .asked, a list of lists of words."""

    def __init__(self, answer):
        self.asked = []
        canned = self

        class Handler(socketserver.StreamRequestHandler):
            def words(self):
                head = self.rfile.readline()
                if not head.startswith(b"*"):
                    return None
                words = []
                for _ in range(int(head[1:])):
                    size = int(self.rfile.readline()[1:])
                    words.append(self.rfile.read(size + 2)[:-2].decode("utf-8", "replace"))
                return words

            def handle(self):
                while (words := self.words()) is not None:
                    canned.asked.append(words)
                    reply = answer(words)
                    if reply is None:
                        return
                    self.wfile.write(reply)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self.port = servers.free_port()
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
