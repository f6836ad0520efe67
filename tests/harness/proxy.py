# SPDX-License-Identifier: MIT
"""A TCP proxy whose line can be paused, cut, reset, slowed to single bytes or refused: stands between musterd and
a server. It runs in a thread of its own; every method may be called from the test's."""
import contextlib
import selectors
import socket
import struct
import threading


class Line:
    """One connection: the client's socket and the server's, and what waits to be sent to each."""

    def __init__(self, client, server):
        self.peer = {client: server, server: client}
        self.waiting = {client: bytearray(), server: bytearray()}
        self.client = client

    def sockets(self):
        return list(self.peer)


class Proxy:
    """Proxy(port_of_server).port is where to connect. Use as a context manager or call close()."""

    def __init__(self, target, port=0):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        self.selector = selectors.DefaultSelector()
        self.wake_read, self.wake_write = socket.socketpair()
        self.wake_read.setblocking(False)
        self.lines = []
        self.jobs = []
        self.lock = threading.Lock()
        self.paused = False
        self.refusing = False
        self.chunk = 65536
        self.bytes_left = None
        self.accepted = 0
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(self.wake_read, selectors.EVENT_READ)
        self.running = True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def pause(self):
        """Connections stay open and nothing passes, as behind a firewall that drops."""
        self.do(lambda: setattr(self, "paused", True))

    def resume(self):
        self.do(lambda: setattr(self, "paused", False))

    def cut(self, reset=False):
        """Closes every line, with a RST when `reset`; new ones are taken."""
        self.do(lambda: [self.drop(line, reset) for line in list(self.lines)])

    def refuse(self, refusing=True):
        """Cuts, and closes whoever comes until refuse(False)."""
        self.do(lambda: setattr(self, "refusing", refusing))
        if refusing:
            self.cut()

    def trickle(self, chunk=1):
        """Passes at most so many bytes at a time."""
        self.do(lambda: setattr(self, "chunk", chunk))

    def cut_after(self, count):
        """Cuts the line in the middle of what the server says, `count` bytes from now."""
        self.do(lambda: setattr(self, "bytes_left", count))

    def close(self):
        self.do(lambda: setattr(self, "running", False))
        self.thread.join()
        for line in list(self.lines):
            self.drop(line)
        for s in (self.listener, self.wake_read, self.wake_write):
            s.close()

    def do(self, job):
        """Runs the job in the proxy's thread, and waits for it."""
        done = threading.Event()
        with self.lock:
            self.jobs.append((job, done))
        self.wake_write.send(b"x")
        assert done.wait(10), "the proxy's thread is stuck"

    def run(self):
        while self.running:
            for key, events in self.selector.select(1):
                if key.fileobj is self.listener:
                    self.accept()
                elif key.fileobj is self.wake_read:
                    self.run_jobs()
                else:
                    self.serve(key.fileobj, key.data, events)

    def run_jobs(self):
        with contextlib.suppress(BlockingIOError):
            self.wake_read.recv(4096)
        with self.lock:
            jobs, self.jobs = self.jobs, []
        for job, done in jobs:
            job()
            done.set()
        for line in self.lines:
            self.watch(line)

    def accept(self):
        client, _ = self.listener.accept()
        self.accepted += 1
        if self.refusing:
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self.target), 5)
        except OSError:
            client.close()
            return
        line = Line(client, server)
        for s in line.sockets():
            s.setblocking(False)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(s, selectors.EVENT_READ, line)
        self.lines.append(line)
        self.watch(line)

    def watch(self, line):
        """Listens for what may pass: nothing while paused, and no more than 1 MiB ahead of a slow reader."""
        for s in line.sockets():
            events = 0
            if not self.paused and len(line.waiting[line.peer[s]]) < 1 << 20:
                events |= selectors.EVENT_READ
            if not self.paused and line.waiting[s]:
                events |= selectors.EVENT_WRITE
            self.select(s, events, line)

    def select(self, s, events, line):
        registered = s in self.selector.get_map()
        if events and registered:
            self.selector.modify(s, events, line)
        elif events:
            self.selector.register(s, events, line)
        elif registered:
            self.selector.unregister(s)

    def serve(self, s, line, events):
        if line not in self.lines:
            return
        try:
            if events & selectors.EVENT_READ and not self.take(s, line):
                self.drop(line)
                return
            if events & selectors.EVENT_WRITE:
                sent = s.send(line.waiting[s][:self.chunk])
                del line.waiting[s][:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.drop(line)
            return
        self.watch(line)

    def take(self, s, line):
        """Reads from one side for the other. False at its end."""
        data = s.recv(65536)
        if not data:
            return False
        if s is not line.client and self.bytes_left is not None:
            data, self.bytes_left = data[:self.bytes_left], self.bytes_left - len(data)
            if self.bytes_left <= 0:
                self.bytes_left = None
                with contextlib.suppress(OSError):
                    line.client.send(line.waiting[line.client] + data)
                return False
        line.waiting[line.peer[s]] += data
        return True

    def drop(self, line, reset=False):
        self.lines.remove(line)
        for s in line.sockets():
            self.select(s, 0, line)
            if reset:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
