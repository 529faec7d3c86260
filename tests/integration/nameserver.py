"""A name server on an address of loopback of its own, and commands that ask it and no other: they
run in a mount namespace with another /etc/resolv.conf. This needs root and util-linux (unshare).

    with nameserver.NameServer() as names:
        names.hosts["pawl.test"] = ["127.0.0.1", "127.0.0.2"]
        names.services["_pawl._tcp.test"] = [(0, 1, 7117, "a.test")]
        subprocess.run(names.command("pawl", ...))
"""

import os
import random
import shutil
import socket
import struct
import subprocess
import tempfile
import threading

A, AAAA, SRV = 1, 28, 33
NO_SUCH_NAME = 3
INSIDE = """set -e
mount --make-rprivate /
mount --bind "$1/resolv.conf" /etc/resolv.conf
mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf
shift
exec "$@"
"""


class NameServer:
    def __init__(self):
        # Names as they are asked for, in lower case.
        self.hosts, self.services = {}, {}
        # The names that are never answered.
        self.silent = set()
        # The names that were asked for, in order.
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for _ in range(100):
            self.address = "127.%d.%d.%d" % tuple(random.randrange(1, 255) for _ in range(3))
            try:
                self.socket.bind((self.address, 53))
                break
            except OSError:
                continue
        self.dir = tempfile.mkdtemp(prefix="pawl-names-")
        self._write("resolv.conf", "nameserver %s\noptions attempts:1 timeout:2\n" % self.address)
        self._write("nsswitch.conf", "hosts: files dns\n")
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _write(self, name, text):
        with open(os.path.join(self.dir, name), "w", encoding="ascii") as f:
            f.write(text)

    def command(self, *arguments):
        return ["unshare", "-m", "sh", "-c", INSIDE, "sh", self.dir, *arguments]

    def close(self):
        # A datagram wakes the thread, which then sees that it is to end.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"", (self.address, 53))
        self.thread.join()
        self.socket.close()
        shutil.rmtree(self.dir)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _serve(self):
        while True:
            query, sender = self.socket.recvfrom(4096)
            if not query:
                return
            answer = self._answer(query)
            if answer:
                self.socket.sendto(answer, sender)

    def _answer(self, query):
        name, end = _read_name(query, 12)
        kind = struct.unpack(">H", query[end:end + 2])[0]
        self.asked.append(name)
        if name in self.silent:
            return None
        records = []
        if kind == A:
            records = [socket.inet_aton(a) for a in self.hosts.get(name, [])]
        elif kind == SRV:
            records = [struct.pack(">HHH", *record[:3]) + _write_name(record[3])
                       for record in self.services.get(name, [])]
        known = name in self.hosts or name in self.services
        head = query[:2] + struct.pack(">HHHHH", 0x8580 | (0 if known else NO_SUCH_NAME), 1,
                                       len(records), 0, 0)
        body = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(r)) + r
                        for r in records)
        return head + query[12:end + 4] + body


def _read_name(data, at):
    labels = []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("ascii").lower())
        at += 1 + data[at]
    return ".".join(labels), at + 1


def _write_name(name):
    return b"".join(bytes([len(p)]) + p.encode("ascii") for p in name.split(".") if p) + b"\0"


def why_not():
    """Returns None if this works here, or a sentence that says why not."""
    if os.geteuid() != 0:
        return "a name server of our own needs root"
    if not shutil.which("unshare"):
        return "the program unshare is missing (Debian: util-linux)"
    try:
        names = NameServer()
    except OSError as error:
        return "port 53 cannot be used on loopback: %s" % error
    with names:
        names.hosts["there.test"] = ["127.0.0.9"]
        tried = subprocess.run(names.command("getent", "ahostsv4", "there.test"),
                               capture_output=True, text=True, timeout=20)
    if tried.returncode or "127.0.0.9" not in tried.stdout:
        return "a mount namespace does not work here: %s" % tried.stderr.strip()
    return None
