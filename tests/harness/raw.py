# SPDX-License-Identifier: MIT
"""A connection that says exactly the bytes it is told to and reads RESP2 and RESP3 replies: for what a client
library would never send."""
import socket


class ErrorReply(Exception):
    """A reply of `-CODE text`."""


class Raw:
    """replies() and read() raise EOFError when the server has closed, TimeoutError when it says nothing."""

    def __init__(self, port, timeout=10.0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def command(self, *words):
        """Sends one command as an array and returns its reply."""
        self.send(encode(*words))
        return self.read()

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError(f"closed after {line!r}")
        return line[:-2]

    def read(self):
        """The next reply: str, int, bytes, None, list, dict, or an ErrorReply (returned, not raised)."""
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return ErrorReply(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b",":
            return float(rest)
        if kind == b"#":
            return rest == b"t"
        if kind == b"_" or line in (b"$-1", b"*-1"):
            return None
        if kind == b"$":
            data = self.file.read(int(rest) + 2)
            if len(data) < int(rest) + 2:
                raise EOFError("closed in a bulk string")
            return data[:-2]
        if kind in (b"*", b"~", b">"):
            return [self.read() for _ in range(int(rest))]
        if kind == b"%":
            return {self.read(): self.read() for _ in range(int(rest))}
        raise AssertionError(f"not a reply: {line!r}")

    def at_end(self):
        """True when the server has closed and there is nothing left to read."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True


def encode(*words):
    parts = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)
