"""Real pawld processes on loopback, and a client that shares no code with libpawl. This uses
Python's standard library only."""

import os
import random
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

PATIENCE = 20.0


# ---- MessagePack ----

def pack(value):
    if value is None:
        return b"\xc0"
    if value is True:
        return b"\xc3"
    if value is False:
        return b"\xc2"
    if isinstance(value, int):
        return (b"\xcf" + struct.pack(">Q", value) if value >= 0
                else b"\xd3" + struct.pack(">q", value))
    if isinstance(value, str):
        data = value.encode()
        return b"\xdb" + struct.pack(">I", len(data)) + data
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    if isinstance(value, dict):
        return b"\xdf" + struct.pack(">I",
                                     len(value)) + b"".join(pack(k) + pack(v)
                                                            for k, v in value.items())
    raise TypeError(type(value))


class More(Exception):
    """The message is not complete."""


class Unpacker:
    FIXED = {0xcc: ">B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q", 0xd0: ">b", 0xd1: ">h", 0xd2: ">i",
             0xd3: ">q",
             0xca: ">f", 0xcb: ">d"}
    SIZED = {0xc4: (">B", "bin"), 0xc5: (">H", "bin"), 0xc6: (">I", "bin"), 0xd9: (">B", "str"),
             0xda: (">H", "str"),
             0xdb: (">I", "str"), 0xdc: (">H", "array"), 0xdd: (">I", "array"), 0xde: (">H", "map"),
             0xdf: (">I", "map")}

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        if self.at + size > len(self.data):
            raise More
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def sized(self, kind, size):
        if kind == "bin":
            return self.take(size)
        if kind == "str":
            return self.take(size).decode(errors="surrogateescape")
        if kind == "array":
            return [self.value() for _ in range(size)]
        return {self.value(): self.value() for _ in range(size)}

    def value(self):
        tag = self.take(1)[0]
        if tag < 0x80:
            return tag
        if tag >= 0xe0:
            return tag - 256
        if tag < 0x90:
            return self.sized("map", tag & 15)
        if tag < 0xa0:
            return self.sized("array", tag & 15)
        if tag < 0xc0:
            return self.sized("str", tag & 31)
        if tag in self.FIXED:
            return self.number(self.FIXED[tag])
        if tag in self.SIZED:
            form, kind = self.SIZED[tag]
            return self.sized(kind, self.number(form))
        return {0xc0: None, 0xc2: False, 0xc3: True}[tag]


# ---- a client ----

class Refused(Exception):
    def __init__(self, error):
        super().__init__(error)
        self.error, self.code = error, error["code"]


class Closed(Exception):
    """The node closed the connection."""


def split(address):
    host, port = address.rsplit(":", 1)
    return host.strip("[]"), int(port)


class Client:
    def __init__(self, address, tls=None, timeout=PATIENCE, source=None):
        """`source` is the address of this machine that the client comes from."""
        if address.startswith("unix:"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(address[5:])
        else:
            self.socket = socket.create_connection(split(address), timeout,
                                                   (source, 0) if source else None)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            plain = self.socket
            try:
                self.socket = tls.wrap_socket(plain, server_hostname=split(address)[0])
            except BaseException:
                plain.close()
                raise
        self.input, self.last, self.answers, self.notes = b"", 0, {}, []

    def send(self, method, **params):
        self.last += 1
        self.socket.sendall(pack([0, self.last, method, [params]]))
        return self.last

    def read(self):
        while True:
            unpacker = Unpacker(self.input)
            try:
                value = unpacker.value()
                self.input = self.input[unpacker.at:]
                return value
            except More:
                data = self.socket.recv(1 << 20)
                if not data:
                    raise Closed
                self.input += data

    def take(self, message):
        if message[0] == 2:
            self.notes.append(message)
        else:
            kind, answered, error, result = message
            assert kind == 1
            self.answers[answered] = (error, result)

    def event(self):
        """Returns the next event of the watches of this connection."""
        while not self.notes:
            self.take(self.read())
        _, method, params = self.notes.pop(0)
        assert method == "event" and len(params) == 1
        return params[0]

    def answer(self, msgid):
        while msgid not in self.answers:
            self.take(self.read())
        error, result = self.answers.pop(msgid)
        if error is not None:
            raise Refused(error)
        return result

    def call(self, method, **params):
        return self.answer(self.send(method, **params))

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def lock_id():
    return "%032x" % random.getrandbits(128)


# ---- nodes ----

# What says to other processes of tests that a port is given away, as long as this process lives.
_claims = []


def free_port():
    """Returns a port on which nobody listens, and which no other process of a test gets while this
    one lives: a node that is dead for a while finds its port again. It is below those that the
    system gives to connections, so that none of them takes it before a node listens there."""
    while True:
        port = random.randrange(10000, 32768)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind("\0pawl-test-port-%d" % port)
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return port


class Program:
    """A process, and the lines that it prints."""

    def __init__(self, arguments, stdin=subprocess.DEVNULL, **options):
        self.lines, self.seen = [], threading.Condition()
        self.process = subprocess.Popen(arguments, stdin=stdin, stdout=subprocess.PIPE, text=True,
                                        **options)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.seen:
                self.lines.append(self.kept(line.rstrip("\n")))
                self.seen.notify_all()

    def kept(self, line):
        return line

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def await_line(self, pattern, count=1):
        """Waits for the count-th line that has the pattern, and returns the match."""
        found = lambda: [m for m in (re.search(pattern, line) for line in self.lines) if m]
        with self.seen:
            if not self.seen.wait_for(lambda: len(found()) >= count, PATIENCE):
                raise AssertionError("no %r in %r" % (pattern, self.lines))
            return found()[count - 1]

    def end(self, number=None):
        """Sends the signal, if one is given, and returns the exit status."""
        if number:
            self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        if not self.process.stdout.closed:
            self.end()


class Node:
    """One pawld and the lines it logs."""

    def __init__(self, arguments, name="node"):
        self.name, self.lines, self.seen = name, [], threading.Condition()
        self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            with self.seen:
                self.lines.append(line.decode(errors="replace").rstrip())
                self.seen.notify_all()
        with self.seen:
            self.lines.append(None)
            self.seen.notify_all()

    def wait_log(self, *words, start=0):
        """Waits for the first line from number `start` on that has all words, and returns it."""
        end = time.monotonic() + PATIENCE
        with self.seen:
            at = start
            while True:
                for at in range(at, len(self.lines)):
                    line = self.lines[at]
                    if line is None:
                        raise AssertionError("%s ended and has not logged %r:\n%s"
                                             % (self.name, words, self.log()))
                    if all(word in " %s " % line for word in words):
                        return line
                at = len(self.lines)
                left = end - time.monotonic()
                if left <= 0 or not self.seen.wait(left):
                    raise AssertionError("%s has not logged %r:\n%s"
                                         % (self.name, words, self.log()))

    def log(self):
        return "\n".join("  %s" % line for line in self.lines if line)

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        return self.wait()

    def terminate(self):
        self.process.terminate()
        return self.wait()


ALL = "allow = all on *\n"
KEYS = "allow = read, acquire, wait, watch, priority, status on *\n"


def rights(folder, *sections, local=True):
    """Writes a file of access rules, and returns the section [acl] that names it. Each of the
    sections is a pair of a name and its lines. With `local` the user who runs the tests may do
    everything without TLS, as without a file."""
    if local:
        sections = (*sections, ("plain", ALL), ("unix:uid:%d" % os.getuid(), ALL))
    path = os.path.join(folder, "rights.conf")
    with open(path, "w") as f:
        f.write("".join("[%s]\n%s" % section for section in sections))
    return "[acl]\nfile = %s\n" % path


class Cluster:
    """Masters a, b, c, ... on loopback, with a directory of their own, for a with statement."""

    def __init__(self, pawld, masters=3, cluster="", node="", tls=None):
        self.pawld, self.extra, self.tls = pawld, (cluster, node), tls
        self.names = [chr(ord("a") + i) for i in range(masters)]
        self.dir = tempfile.mkdtemp(prefix="pawl-it-")
        self.nodes = {}

    def config(self, name):
        return os.path.join(self.dir, name + ".conf")

    def write_configs(self):
        self.peers = {n: "127.0.0.1:%d" % free_port() for n in self.names}
        self.clients = {n: "127.0.0.1:%d" % free_port() for n in self.names}
        self.write_files()

    def write_files(self):
        for n in self.names:
            with open(self.config(n), "w") as f:
                f.write("[node]\nname = %s\nstate_dir = %s\n"
                        % (n, os.path.join(self.dir, "state-" + n)))
                f.write("listen_peer = %s\nlisten_client = %s, %s\n%s%s\n" % (
                    self.peers[n], self.clients[n], self.unix(n), self.listens(n), self.extra[1]))
                f.write("[cluster]\nname = test\n%s\n[cluster.masters]\n" % self.extra[0])
                f.write("".join("%s = %s\n" % p for p in self.peers.items()))
                if self.tls:
                    f.write("[tls]\n" + self.tls(self.dir, n))

    def listens(self, name):
        """Returns more lines of [node], with ports that are free now."""
        return ""

    def unix(self, name):
        return "unix:" + os.path.join(self.dir, name + ".sock")

    def start(self, name, pawld=None):
        self.nodes[name] = Node([pawld or self.pawld, "--config", self.config(name)], name)
        return self.nodes[name]

    def start_all(self):
        # A port that was free may be taken by now. Then this begins again with other ports.
        for _ in range(5):
            self.write_configs()
            for n in self.names:
                self.start(n)
            try:
                for n in self.names:
                    self.nodes[n].wait_log(" voting ")
                return self
            except AssertionError:
                if not any("cannot listen" in n.log() for n in self.nodes.values()):
                    raise
                self.stop_all()
        raise AssertionError("five times a port was taken before a node could listen on it")

    def join(self, name):
        """Starts a node that is not among the masters of the configuration file. The node waits
        until it is added."""
        self.peers[name] = "127.0.0.1:%d" % free_port()
        self.clients[name] = "127.0.0.1:%d" % free_port()
        with open(self.config(self.names[0])) as f:
            text = f.read()
        first = self.names[0]
        text = text.replace("name = %s\n" % first, "name = %s\n" % name,
                            1).replace("state-" + first, "state-" + name)
        if self.tls:
            text = text.replace(self.tls(self.dir, first), self.tls(self.dir, name))
        head, masters = text.split("[cluster.masters]", 1)
        head = head.replace(self.peers[first],
                            self.peers[name]).replace(self.clients[first], self.clients[name])
        head = head.replace(self.unix(first), self.unix(name))
        with open(self.config(name), "w") as f:
            f.write(self.joining(name, head + "[cluster.masters]" + masters))
        self.start(name).wait_log(" outside ")

    def joining(self, name, text):
        """Returns the configuration of a node that joins; `text` is what every cluster has."""
        return text

    def client(self, name, **options):
        return Client(self.clients[name], **options)

    def stop_all(self):
        for node in self.nodes.values():
            if node.process.poll() is None:
                node.signal(signal.SIGCONT)
            if not node.process.stdout.closed:
                node.kill()
        self.nodes = {}

    def __enter__(self):
        try:
            return self.start_all()
        except BaseException:
            self.__exit__(BaseException)
            raise

    def end_all(self):
        """Stops the nodes that still run. They must stop without a complaint of a sanitizer."""
        running = [n for n in self.nodes.values() if n.process.poll() is None]
        for node in running:
            node.signal(signal.SIGCONT)
            node.process.terminate()
        for node in running:
            status = node.wait()
            assert status == 0, "%s ended with %d:\n%s" % (node.name, status, node.log())
        for node in self.nodes.values():
            status = node.process.returncode
            assert status >= 0 or status == -signal.SIGKILL, "%s crashed (%d):\n%s" % (
                node.name, status, node.log())

    def __exit__(self, kind=None, *_):
        try:
            if kind is None:
                self.end_all()
        finally:
            self.stop_all()
            shutil.rmtree(self.dir, ignore_errors=True)


def wait_until(case, condition, patience=PATIENCE):
    """Waits until the condition holds. If it does not within `patience` seconds, the test `case`
    fails."""
    end = time.monotonic() + patience
    while not condition():
        case.assertLess(time.monotonic(), end)
        time.sleep(0.02)


def tls_context(ca, cert=None, key=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(ca)
    if cert:
        context.load_cert_chain(cert, key)
    return context


def main(module):
    """Runs a file of tests: the first argument is pawld, the others are for unittest."""
    import sys
    import unittest
    module["PAWLD"] = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__", verbosity=2)
