"""The servers that the suites of clients run against: redis-server and memcached, and a cluster of
Pawl with a proxy. Each listens on loopback, at a port of its own."""

import os
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import pawltest  # noqa: E402

START_S = 20
MAX_LEASE = "1h"
# The suites take locks without an end, play a thief, and expect that a lock of 200 ms is over soon
# after.
OPTIONS = "slack = 0ms\nwithout_end = keep\noverwrite = break\n"


class Original:
    """A server of Redis or memcached, for a with statement."""

    def __init__(self, kind):
        self.port, self.dir = pawltest.free_port(), tempfile.mkdtemp(prefix="pawl-clients-")
        self.words = {
            "redis": ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "",
                      "--appendonly", "no", "--dir", self.dir],
            "memcached": ["memcached", "-l", "127.0.0.1", "-p", str(self.port), "-u", "nobody"]}
        self.words = self.words[kind]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while True:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            if time.monotonic() > end or self.process.poll() is not None:
                self.__exit__()
                raise SystemExit("%s does not listen" % self.words[0])
            time.sleep(0.02)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir)


class Pawl(pawltest.Cluster):
    """Three masters, of which the clients ask the first one. For clients of Redis there is a proxy
    before it."""

    def __init__(self, pawld, kind):
        super().__init__(pawld, cluster="max_lease = %s" % MAX_LEASE,
                         node="[%s]\n%s" % (kind, OPTIONS))
        self.kind, self.proxy = kind, None

    def listens(self, name):
        if name != "a":
            return ""
        self.port = pawltest.free_port()
        return "listen_%s = 127.0.0.1:%d\n" % (self.kind, self.port)

    def __enter__(self):
        super().__enter__()
        if self.kind == "redis":
            self.proxy = Proxy(self.port)
            self.port = self.proxy.port
        return self

    def __exit__(self, *of):
        if self.proxy:
            self.proxy.close()
        super().__exit__(*of)


class Stream:
    """A socket whose commands or replies are read one by one, as the bytes that they are."""

    def __init__(self, sock):
        self.file, self.sock = sock.makefile("rb"), sock

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        return line

    def one(self):
        """Returns the bytes of the next value, and a list of the strings that it consists of."""
        line = self.line()
        kind, rest = line[:1], line[1:].strip()
        if kind in b"$=!" and rest != b"-1":
            body = self.file.read(int(rest) + 2)
            return line + body, [body[:-2]]
        if kind in b"*~>%" and rest != b"-1":
            whole, words = line, []
            for _ in range(int(rest) * (2 if kind == b"%" else 1)):
                text, more = self.one()
                whole, words = whole + text, words + more
            return whole, words
        return line, line.split()


class Proxy:
    """Passes on what clients of Redis and the node send, except for what the suites do around
    locks: SADD makes a key of a type that is none of Pawl's, and FLUSHDB and FLUSHALL delete the
    keys that were seen."""

    def __init__(self, node):
        proxy = self
        self.node, self.seen, self.foreign, self.lock = node, set(), set(), threading.Lock()

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                with socket.create_connection(("127.0.0.1", proxy.node)) as sock:
                    try:
                        proxy.serve(Stream(self.request), Stream(sock))
                    except (EOFError, OSError):
                        pass  # One of the two has left.

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def serve(self, client, node):
        while True:
            raw, words = client.one()
            answer = self.answer_of(words, node)
            if answer is None:
                node.sock.sendall(raw)
                answer = node.one()[0]
            client.sock.sendall(answer)
            if words[0].upper() == b"QUIT":
                return  # The handler closes both connections, as the node closes its own.

    def answer_of(self, words, node):
        """Returns the proxy's own answer to a command, or None if the node is to answer."""
        name = words[0].upper()
        if name == b"SADD":
            self.foreign.add(words[1])
            return b":1\r\n"
        if name in (b"FLUSHDB", b"FLUSHALL"):
            self.flush(node)
            return b"+OK\r\n"
        if name == b"DEL" and self.foreign & set(words[1:]):
            self.foreign -= set(words[1:])
            return b":1\r\n"
        keys = set(self.keys_of(name, words))
        if keys & self.foreign:
            # A script with a value and a length would take the lock, and finds it held. Others
            # look at the value.
            takes = name in (b"EVAL", b"EVALSHA") and len(words) - 3 - int(words[2]) == 2
            return b":0\r\n" if takes else b"-WRONGTYPE The key holds another kind of value\r\n"
        with self.lock:
            self.seen |= keys
        return None

    @staticmethod
    def keys_of(name, words):
        if name in (b"EVAL", b"EVALSHA"):
            count = words[2] if len(words) > 2 and re.fullmatch(rb"\d+", words[2]) else b"0"
            return words[3:3 + int(count)]
        return words[1:2] if name in (b"SET", b"SETNX", b"SETEX", b"PSETEX") else []

    def flush(self, node):
        with self.lock:
            keys, self.seen = self.seen, set()
        self.foreign.clear()
        for key in keys:
            node.sock.sendall(b"*2\r\n$3\r\nDEL\r\n$%d\r\n%s\r\n" % (len(key), key))
            node.one()
